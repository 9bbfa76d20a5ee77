package report

import (
	"fmt"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
	"patchbench/store"
)

// A Fact is something about an evaluation, with its label: "Load", "0.04 before,
// 1.02 after". The text is clean and of any length.
type Fact struct{ Name, Text string }

// Measured says where and how an evaluation was measured. Of one without ID only the
// rounds are known, and of one without builds only what it would have measured.
func Measured(e *store.Evaluation) []Fact { return measured(rows.Of(e)) }

func measured(v *rows.View) []Fact {
	e, h := v.Evaluation, v.Evaluation.Host
	rounds := Fact{"Rounds", strings.Join(append(perRow(v), "seed "+strconv.FormatUint(e.Seed, 10), "margin "+figure.Share(e.Margin)), ", ")}
	if e.ID == "" {
		return []Fact{rounds}
	}
	suite := plain.Clean(e.Suite.Name)
	if e.Suite.Digest != "" {
		suite += " (" + short(e.Suite.Digest) + ")"
	}
	if v.NothingBuilt() {
		return []Fact{{"Suite", suite}, {"Report", plain.Clean(e.ID)}}
	}
	cores, memory := "", ""
	if h.Cores > 0 {
		cores = count(h.Cores, "core")
	}
	if h.Memory > 0 {
		s := figure.ScaleFor(bench.Byte, float64(h.Memory))
		memory = figure.Plain(float64(h.Memory)/s.Factor, 1) + " " + s.Unit
	}
	load := fmt.Sprintf("%.2f before, %.2f after", h.LoadBefore, h.LoadAfter)
	if h.PressureBefore >= 0 && h.PressureAfter >= 0 {
		load += fmt.Sprintf("; CPU pressure %s, %s", figure.Share(h.PressureBefore), figure.Share(h.PressureAfter))
	}
	sandbox := plain.Clean(h.Sandbox)
	if e.Unsafe {
		sandbox = "none (unsafe)"
	}
	return []Fact{
		{"Machine", listed(h.Name, h.CPU, cores, memory, h.Kernel, h.Scheduling(), h.Compiler, h.Instructions)},
		{"Load", load},
		{"Sandbox", sandbox},
		{"Suite", suite},
		rounds,
		{"Time", "builds " + figure.Elapsed(e.BuildSeconds) + ", measuring " + figure.Elapsed(e.MeasureSeconds)},
		{"Report", plain.Clean(e.ID)},
	}
}

// perRow words how many rounds the rows have, and why not more.
func perRow(v *rows.View) []string {
	e := v.Evaluation
	words := []string{"none"}
	switch {
	case v.Most == 0:
	case v.Fewest == v.Most:
		words[0] = fmt.Sprintf("%d per row", v.Most)
	default:
		words[0] = fmt.Sprintf("%d to %d per row", v.Fewest, v.Most)
	}
	switch e.Stopped {
	case store.StoppedDecided:
		switch {
		case e.FixedRounds > 0:
			words = append(words, "as many as asked for")
		case v.Most > 0:
			words = append(words, "until decided")
		}
	case store.StoppedBudget:
		words = append(words, "ended by the time budget")
	case store.StoppedInterrupted:
		words = append(words, "interrupted")
	}
	return words
}

// listed joins those that are not empty, each cleaned.
func listed(list ...string) string {
	var all []string
	for _, s := range list {
		if s != "" {
			all = append(all, plain.Clean(s))
		}
	}
	return strings.Join(all, ", ")
}
