// Package cases holds evaluations of every kind, for the tests of the formats of
// a report. They are made as bot/eval would make them, of a small project that
// does not exist.
package cases

import (
	"fmt"
	"math"
	"time"

	"patchbench/bench"
	"patchbench/bench/headline"
	"patchbench/mbox"
	"patchbench/store"
)

func ptr[T any](v T) *T { return &v }

// A Builder makes the evaluation of a series of patches as bot/eval would.
type Builder struct{ *store.Evaluation }

// New is a series whose patches have these subjects, with all versions
// built and no rows yet.
func New(headline string, verdict bench.Verdict, subjects ...string) Builder {
	m := len(subjects)
	e := &store.Evaluation{
		ID: "20261130-3f9a2c", Created: time.Date(2026, 11, 30, 9, 8, 7, 0, time.UTC),
		Series: &mbox.Series{
			MessageID: "20261129.kit@example.org", Subject: "kit: cleaner hash, faster table", Version: 1,
			Total: m, Received: m, Complete: true, Author: mbox.Address{Name: "Some Author", Email: "one@example.org"},
			Date: time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC), Tags: []string{}, Missing: []int{}, Lists: []string{"kit@lists.example.org"},
		},
		Base:  mbox.Base{Commit: "3f9a2c1d0b7e4a5968778695a4b3c2d1e0f00112", How: mbox.HowBaseCommit, Reason: "named in the cover letter"},
		Suite: store.SuiteName{Name: "kit", Digest: "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730"},
		Host: bench.Host{
			Name: "bench1", CPU: "Example EX-2650 v3 @ 2.30GHz", Cores: 8, Governor: "performance", Kernel: "Linux 6.12.9",
			Memory: 32 << 30, Compiler: "gcc 14.2.0", Sandbox: "bubblewrap 0.11.0", LoadBefore: 0.04, LoadAfter: 1.02,
			PressureBefore: 0.001, PressureAfter: 0.012,
		},
		Rounds: 20, Seed: 7, Stopped: store.StoppedDecided, Margin: 0.01, Verdict: verdict, Headline: headline,
		Command:      "bot eval series.mbox --repo kit.git --suite suite.toml --seed 7",
		BuildSeconds: 31.4, MeasureSeconds: 250.2,
	}
	e.Versions = []bench.Version{{Name: "base", State: bench.Built, Commit: e.Base.Commit}}
	for i, subject := range subjects {
		n := i + 1
		e.Versions = append(e.Versions, bench.Version{
			N: n, Name: fmt.Sprintf("%d/%d", n, m), Subject: subject, State: bench.Built,
			Commit: fmt.Sprintf("%012x%028x", 0x9e3779b97f4a*n&0xffffffffffff, n), Added: 3 + n*n, Deleted: n,
		})
		e.Series.Patches = append(e.Series.Patches, mbox.Patch{N: n, Subject: subject, Author: e.Series.Author, Style: mbox.StyleGit})
	}
	return Builder{e}
}

// Judged gives the evaluation the verdict and the headline that its figures have.
func (b Builder) Judged() Builder {
	b.Verdict, b.Headline = headline.Of(b.Versions, b.Results, b.Failures)
	if s := b.Series; s != nil && len(s.Missing) > 0 {
		b.Headline = headline.Incomplete(s.Received, s.Total, len(b.Versions)-1, b.Headline)
	}
	return b
}

// Commits makes the series a range of commits.
func (b Builder) Commits() Builder {
	b.Series = nil
	b.Base.How, b.Base.Reason = mbox.HowRange, "the left side of v1.0..topic"
	return b
}

// Same gives version n the build of version as.
func (b Builder) Same(n, as int) Builder {
	b.Versions[n].State, b.Versions[n].SameAs = bench.SameBuild, &as
	return b
}

// Row adds a row whose base value is level, in the metric's unit, with a 95 %
// interval of its median of spread (a fraction) on either side. changes are the
// relative changes of steps; the other steps are the same.
func (b Builder) Row(benchmark, metric, unit string, level, spread float64, changes map[int]float64) *bench.Comparison {
	m := bench.MetricFor(metric, unit)
	c := bench.Comparison{
		Benchmark: benchmark, Metric: metric, Unit: unit, Better: m.Better, Exact: m.Exact, Tested: m.Tested, Rounds: 20,
	}
	if !m.Exact {
		c.Detectable = ptr(2.2 * spread)
	}
	verdict := func(change float64) bench.Verdict {
		switch {
		case math.Abs(change) < 0.01:
			return bench.Same
		case (change > 0) == (m.Better == bench.Lower):
			return bench.Worse
		}
		return bench.Better
	}
	step := func(n int, change float64) bench.Step {
		s := bench.Step{N: n, Change: &change, Verdict: verdict(change)}
		if !m.Exact {
			s.Lo, s.Hi, s.P = ptr(change-spread), ptr(change+spread*1.1), ptr(0.0001)
		}
		return s
	}
	value := level
	for n := range b.Versions {
		if n > 0 {
			value *= 1 + changes[n]
			c.Steps = append(c.Steps, step(n, changes[n]))
		}
		v := bench.Value{N: n, Median: ptr(value), Samples: 20}
		if !m.Exact {
			v.Lo, v.Hi = ptr(value*(1-spread)), ptr(value*(1+spread))
		}
		c.Values = append(c.Values, v)
	}
	c.Total = step(len(b.Versions)-1, value/level-1)
	b.Results = append(b.Results, c)
	return &b.Results[len(b.Results)-1]
}

// Process adds cpu, wall, rss and the untested rows of a benchmark; cpu and wall
// change alike.
func (b Builder) Process(benchmark string, seconds, bytes float64, time, memory map[int]float64) {
	b.Row(benchmark, "cpu", "s", seconds, 0.004, time)
	b.Row(benchmark, "wall", "s", seconds*1.07, 0.008, time)
	b.Row(benchmark, "user", "s", seconds*0.9, 0.01, time)
	b.Row(benchmark, "rss", "B", bytes, 0.001, memory)
}

// Fail ends a benchmark's rows at version n: no figures from there on.
func (b Builder) Fail(n int, benchmark string, how bench.Failed, log string) {
	for v := n; v < len(b.Versions); v++ {
		b.Failures = append(b.Failures, bench.Failure{
			N: v, Benchmark: benchmark, Signal: how.Signal, Status: how.Status, Reason: how.Reason, LogTail: log,
		})
	}
	for i := range b.Results {
		c := &b.Results[i]
		if bench.RowName(c.Benchmark, c.Params) != benchmark {
			continue
		}
		for j := range c.Values {
			if c.Values[j].N >= n {
				c.Values[j] = bench.Value{N: c.Values[j].N}
			}
		}
		for j := range c.Steps {
			if c.Steps[j].N >= n {
				c.Steps[j] = bench.Step{N: c.Steps[j].N, Verdict: bench.NotMeasured, Reason: how.String()}
			}
		}
		c.Total = bench.Step{N: c.Total.N, Verdict: bench.NotMeasured, Reason: how.String()}
	}
}

// Unbuilt makes version n one that does not build; its rows are passed over.
func (b Builder) Unbuilt(n int, log string) {
	b.Versions[n].State, b.Versions[n].LogTail = bench.BuildFailed, log
	for i := range b.Results {
		b.Results[i].Values[n] = bench.Value{N: n}
		b.Results[i].Steps[n-1] = bench.Step{N: n, Verdict: bench.NotMeasured, Reason: "does not build"}
	}
}

// Doubt makes a step unclear, or the total for n = 0.
func Doubt(c *bench.Comparison, n int, mid, half float64, reason string) {
	s := bench.Step{N: n, Change: &mid, Lo: ptr(mid - half), Hi: ptr(mid + half), P: ptr(0.2), Verdict: bench.Unclear, Reason: reason}
	if n == 0 {
		s.N = c.Total.N
		c.Total = s
		return
	}
	c.Steps[n-1] = s
}

// Samples gives the runs behind an evaluation's values: as many rounds as a row
// has, spread evenly over the interval of each version's median, and a twin of
// base. They are the same each time.
func Samples(e *store.Evaluation) []bench.Sample {
	var all []bench.Sample
	for _, c := range e.Results {
		for round := 1; round <= c.Rounds; round++ {
			for i, v := range c.Values {
				if v.Median == nil {
					continue
				}
				half := 0.0
				if v.Lo != nil && v.Hi != nil {
					half = *v.Hi - *v.Lo
				}
				// A walk through the interval that visits each part of it.
				at := math.Mod(float64(round)*0.618034+float64(i)*0.37, 1) - 0.5
				s := bench.Sample{Round: round, Version: v.N, Benchmark: c.Benchmark, Params: c.Params, Metric: c.Metric, Unit: c.Unit,
					Value: *v.Median + at*half*2}
				all = append(all, s)
				if v.N == 0 && !c.Exact {
					s.Twin, s.Value = true, *v.Median-at*half*2
					all = append(all, s)
				}
			}
		}
	}
	return all
}
