package record

import (
	"time"

	"patchbench/bench"
	"patchbench/mbox"
)

// Evaluation is the record of one evaluation: all that a report is rendered
// from. Its JSON form is report.json and `bot eval --format json`.
type Evaluation struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"` // UTC
	// Series is nil for a range of commits.
	Series *mbox.Series `json:"series"`
	Base   mbox.Base    `json:"base"`
	// CompareParam is the build parameter whose values are the versions, all of one
	// commit; "" for a series or range.
	CompareParam string     `json:"compare_param,omitempty"`
	Suite        SuiteName  `json:"suite"`
	Host         bench.Host `json:"host"`
	// Versions are base and one for each patch or commit, in order.
	Versions []bench.Version    `json:"versions"`
	Results  []bench.Comparison `json:"results"`
	Failures []bench.Failure    `json:"failures"`
	// Claims are the numbers that the series gives for itself, each set beside what
	// was measured.
	Claims []bench.Claim `json:"claims"`
	// Conflict is set when a patch did not apply; the patches from it on have
	// no version.
	Conflict *mbox.Conflict `json:"conflict,omitempty"`
	// NotTried are the numbers of patches behind a conflict or a hole.
	NotTried []int `json:"not_tried,omitempty"`
	// Rounds is the largest number of rounds that a row had.
	Rounds int `json:"rounds"`
	// FixedRounds is the number of rounds that was asked for, 0 if measuring
	// went on until the rows were decided.
	FixedRounds int `json:"fixed_rounds,omitempty"`
	// Seed is that of the order of runs and of the permutation tests.
	Seed uint64 `json:"seed"`
	// Stopped says why measuring ended: decided, budget or interrupted.
	Stopped string `json:"stopped"`
	// Margin is the relative change, a fraction, below which a row is the same.
	Margin   float64       `json:"margin"`
	Verdict  bench.Verdict `json:"verdict"`
	Headline string        `json:"headline"`
	Warnings []string      `json:"warnings"`
	// Unsafe marks an evaluation that ran without a sandbox.
	Unsafe bool `json:"unsafe,omitempty"`
	// Command reproduces the evaluation.
	Command string `json:"command"`
	// BuildSeconds and MeasureSeconds are the wall time of both stages.
	BuildSeconds   float64 `json:"build_seconds"`
	MeasureSeconds float64 `json:"measure_seconds"`
}

// Reasons for which measuring ends.
const (
	StoppedDecided     = "decided"
	StoppedBudget      = "budget"
	StoppedInterrupted = "interrupted"
)

// SuiteName identifies the suite that was run.
type SuiteName struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}
