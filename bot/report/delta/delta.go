// Package delta sets the verdicts of two evaluations side by side, as those of
// v1 and v2 of a series.
//
// In go two evaluations, out comes which row had which verdict in each. Their
// figures are of different times and nothing is tested between them; what they
// differ in beyond the code (machine, suite, base) is noted. `bot diff` shows the
// whole of it, a reply what changed, in a few lines:
//
//	Since v1 (20261129-3f9a2c), which was measured at another time
//	  it said: worse: 2/5 makes hash 5.1 % slower (cpu)
//	  hash cpu   worse  +5.1 %  ->  same
//	  table rss  worse +19.8 %  ->  worse +18.9 %
package delta

import (
	"fmt"
	"slices"

	"patchbench/bench"
	"patchbench/store"
)

// Delta is two evaluations side by side. Its JSON form is that of
// `bot diff --format json`.
type Delta struct {
	Evaluations [2]Head `json:"evaluations"`
	// Notes say in what the two cannot be compared.
	Notes []string `json:"notes"`
	Rows  []Row    `json:"rows"`
}

// Head is one of the two.
type Head struct {
	ID       string        `json:"id"`
	Created  string        `json:"created"` // RFC 3339
	Subject  string        `json:"subject"`
	Verdict  bench.Verdict `json:"verdict"`
	Headline string        `json:"headline"`
}

// Row is one benchmark's metric.
type Row struct {
	Benchmark string   `json:"benchmark"`
	Metric    string   `json:"metric"`
	Total     [2]*Step `json:"total"` // nil where there is no such row
	Patches   []Patch  `json:"patches"`
}

// Patch is a patch that changes the row in one of the two.
type Patch struct {
	Subject string   `json:"subject"`
	Steps   [2]*Step `json:"steps"` // nil where there is no such patch
}

// Step is one side's step, with the name of the patch and the row's rounds.
type Step struct {
	bench.Step
	Name   string `json:"name"`
	Rounds int    `json:"rounds"`
}

// Of sets two evaluations side by side, the earlier one first. Only tested rows
// are taken, those of the first in its order, then what the second alone has.
func Of(a, b *store.Evaluation) Delta {
	d := Delta{Notes: []string{}, Rows: []Row{}}
	for i, e := range []*store.Evaluation{a, b} {
		d.Evaluations[i] = Head{ID: e.ID, Created: e.Created.UTC().Format("2006-01-02T15:04:05Z"), Verdict: e.Verdict, Headline: e.Headline}
		if e.Series != nil {
			d.Evaluations[i].Subject = e.Series.Subject
		}
	}
	for _, x := range differences(a, b) {
		d.Notes = append(d.Notes, fmt.Sprintf("different %s: %.40s and %.40s", x.what, x.a, x.b))
	}
	at := map[string]int{}
	for side, e := range []*store.Evaluation{a, b} {
		for _, c := range e.Results {
			if !c.Tested {
				continue
			}
			name := bench.RowName(c.Benchmark, c.Params)
			i, ok := at[name+" "+c.Metric]
			if !ok {
				i = len(d.Rows)
				at[name+" "+c.Metric] = i
				d.Rows = append(d.Rows, Row{Benchmark: name, Metric: c.Metric, Patches: []Patch{}})
			}
			d.Rows[i].Total[side] = &Step{c.Total, "whole", c.Rounds}
			d.Rows[i].steps(side, e, c)
		}
	}
	// A patch that changes nothing on either side is not worth a line.
	for i := range d.Rows {
		d.Rows[i].Patches = slices.DeleteFunc(d.Rows[i].Patches, func(p Patch) bool {
			return !slices.ContainsFunc(p.Steps[:], func(s *Step) bool { return s != nil && s.Verdict.Changed() })
		})
	}
	return d
}

// difference is what two evaluations differ in beyond the code.
type difference struct{ what, a, b string }

func differences(a, b *store.Evaluation) []difference {
	all := []difference{
		{"machines", a.Host.Name, b.Host.Name},
		{"processors", a.Host.CPU, b.Host.CPU},
		{"kernels", a.Host.Kernel, b.Host.Kernel},
		{"compilers", a.Host.Compiler, b.Host.Compiler},
		{"sandboxes", a.Host.Sandbox, b.Host.Sandbox},
		{"suites", digest(a.Suite.Digest), digest(b.Suite.Digest)},
		{"bases", digest(a.Base.Commit), digest(b.Base.Commit)},
		{"margins", fmt.Sprintf("%g %%", 100*a.Margin), fmt.Sprintf("%g %%", 100*b.Margin)},
	}
	return slices.DeleteFunc(all, func(d difference) bool { return d.a == d.b })
}

// digest is a digest or a commit in twelve digits.
func digest(s string) string { return s[:min(12, len(s))] }

// steps enters one side's patches, which are the same on both sides when they
// have the same subject.
func (r *Row) steps(side int, e *store.Evaluation, c bench.Comparison) {
	for _, s := range c.Steps {
		step := &Step{Step: s, Rounds: c.Rounds}
		subject := ""
		for _, v := range e.Versions {
			if v.N == s.N {
				step.Name, subject = v.Name, v.Subject
			}
		}
		i := slices.IndexFunc(r.Patches, func(p Patch) bool { return p.Subject == subject && p.Steps[side] == nil })
		if i < 0 {
			i = len(r.Patches)
			r.Patches = append(r.Patches, Patch{Subject: subject})
		}
		r.Patches[i].Steps[side] = step
	}
}

// Told says that a row deserves a line: a change, or verdicts that differ.
func (r *Row) Told() bool {
	a, b := r.Total[0], r.Total[1]
	return len(r.Patches) > 0 || a == nil || b == nil || a.Verdict != b.Verdict || a.Verdict.Changed()
}
