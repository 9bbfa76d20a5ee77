package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"patchbench/bench"
	"patchbench/store"
)

type diffCommand struct {
	IDs []string `arg:"" name:"id" help:"Two evaluations, for instance of version 1 and 2 of a series; the start of an id is enough."`
	storeFlag
	formatFlag
	All bool `help:"Also list the rows whose verdict is the same on both sides."`
}

func (c *diffCommand) Run(ctx context.Context, t *terminal) error {
	if len(c.IDs) != 2 {
		return usage(fmt.Errorf("%d evaluations are named: two are set side by side", len(c.IDs)))
	}
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var both [2]*store.Evaluation
	for i, id := range c.IDs {
		if both[i], err = s.Evaluation(ctx, id); err != nil {
			return usage(err)
		}
	}
	d := sideBySide(both)
	if c.Format == "json" {
		return writeJSON(t.stdout, d)
	}
	return d.text(t.stdout, c.All)
}

// difference is two evaluations side by side. Their figures are of different
// times, and nothing is tested between them.
type difference struct {
	Evaluations [2]diffHead `json:"evaluations"`
	// Notes say in what the two cannot be compared.
	Notes []string  `json:"notes"`
	Rows  []diffRow `json:"rows"`
}

type diffHead struct {
	ID       string        `json:"id"`
	Created  string        `json:"created"`
	Subject  string        `json:"subject"`
	Verdict  bench.Verdict `json:"verdict"`
	Headline string        `json:"headline"`
}

// diffRow is one benchmark's metric.
type diffRow struct {
	Benchmark string     `json:"benchmark"`
	Metric    string     `json:"metric"`
	Total     [2]*aStep  `json:"total"` // nil where there is no such row
	Patches   []diffStep `json:"patches"`
}

// diffStep is a patch that changes the row in one of the two.
type diffStep struct {
	Subject string    `json:"subject"`
	Steps   [2]*aStep `json:"steps"` // nil where there is no such patch
}

// aStep is one side's step, with the name of the patch and the row's rounds.
type aStep struct {
	bench.Step
	Name   string `json:"name"`
	Rounds int    `json:"rounds"`
}

func sideBySide(both [2]*store.Evaluation) difference {
	d := difference{Notes: []string{}, Rows: []diffRow{}}
	for i, e := range both {
		d.Evaluations[i] = diffHead{ID: e.ID, Created: e.Created.UTC().Format("2006-01-02T15:04:05Z"), Verdict: e.Verdict, Headline: e.Headline}
		if e.Series != nil {
			d.Evaluations[i].Subject = e.Series.Subject
		}
	}
	a, b := both[0], both[1]
	for _, x := range []struct{ what, a, b string }{
		{"machines", a.Host.Name, b.Host.Name},
		{"processors", a.Host.CPU, b.Host.CPU},
		{"kernels", a.Host.Kernel, b.Host.Kernel},
		{"compilers", a.Host.Compiler, b.Host.Compiler},
		{"sandboxes", a.Host.Sandbox, b.Host.Sandbox},
		{"suites", a.Suite.Digest, b.Suite.Digest},
		{"bases", a.Base.Commit, b.Base.Commit},
		{"margins", fmt.Sprintf("%g %%", 100*a.Margin), fmt.Sprintf("%g %%", 100*b.Margin)},
	} {
		if x.a != x.b {
			d.Notes = append(d.Notes, fmt.Sprintf("different %s: %.40s and %.40s", x.what, x.a, x.b))
		}
	}
	at := map[string]int{}
	for side, e := range both {
		for _, c := range e.Results {
			if !c.Tested {
				continue
			}
			name := bench.RowName(c.Benchmark, c.Params)
			i, ok := at[name+" "+c.Metric]
			if !ok {
				i = len(d.Rows)
				at[name+" "+c.Metric] = i
				d.Rows = append(d.Rows, diffRow{Benchmark: name, Metric: c.Metric, Patches: []diffStep{}})
			}
			d.Rows[i].Total[side] = &aStep{c.Total, "whole", c.Rounds}
			d.Rows[i].steps(side, e, c)
		}
	}
	// A patch that changes nothing on either side is not worth a line.
	for i := range d.Rows {
		d.Rows[i].Patches = slices.DeleteFunc(d.Rows[i].Patches, func(p diffStep) bool {
			return !slices.ContainsFunc(p.Steps[:], func(s *aStep) bool { return s != nil && s.Verdict.Changed() })
		})
	}
	return d
}

// steps enters one side's patches, which are the same on both sides when they
// have the same subject.
func (r *diffRow) steps(side int, e *store.Evaluation, c bench.Comparison) {
	for _, s := range c.Steps {
		step := &aStep{Step: s, Rounds: c.Rounds}
		subject := ""
		for _, v := range e.Versions {
			if v.N == s.N {
				step.Name, subject = v.Name, v.Subject
			}
		}
		i := slices.IndexFunc(r.Patches, func(p diffStep) bool { return p.Subject == subject && p.Steps[side] == nil })
		if i < 0 {
			i = len(r.Patches)
			r.Patches = append(r.Patches, diffStep{Subject: subject})
		}
		r.Patches[i].Steps[side] = step
	}
}

// told says that a row deserves a line: a change, or verdicts that differ.
func (r *diffRow) told() bool {
	a, b := r.Total[0], r.Total[1]
	return len(r.Patches) > 0 || a == nil || b == nil || a.Verdict != b.Verdict || a.Verdict.Changed()
}

const diffCell = 34 // columns of one side

func (d difference) text(w io.Writer, all bool) error {
	var b strings.Builder
	for _, e := range d.Evaluations {
		fmt.Fprintf(&b, "%s  %s  %s\n", printable(e.ID), e.Created[:10], printable(e.Headline))
	}
	fmt.Fprint(&b, "The figures are of different times: they are shown side by side, not tested.\n")
	for _, n := range d.Notes {
		fmt.Fprintf(&b, "  %s\n", printable(n))
	}
	fmt.Fprintf(&b, "\n  %-*s  %s\n", diffCell, printable(d.Evaluations[0].ID), printable(d.Evaluations[1].ID))
	same := map[bench.Verdict]int{}
	for _, r := range d.Rows {
		if !all && !r.told() {
			same[r.Total[0].Verdict]++
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", printable(r.Benchmark), printable(r.Metric))
		line := func(steps [2]*aStep, none string) {
			left := cell(steps[0], none)
			fmt.Fprintf(&b, "  %s%s  %s\n", left, strings.Repeat(" ", max(0, diffCell-utf8.RuneCountInString(left))), cell(steps[1], none))
		}
		line(r.Total, "no such row")
		for _, p := range r.Patches {
			fmt.Fprintf(&b, "  %s\n", clip(printable(p.Subject), 2*diffCell))
			line(p.Steps, "no such patch")
		}
	}
	for _, v := range []bench.Verdict{bench.Same, bench.Unclear, bench.NotMeasured} {
		if n := same[v]; n > 0 {
			fmt.Fprintf(&b, "rows that are %s on both sides: %d\n", v, n)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cell is one side of a line: "2/5 worse +5.1 % (+4.6 .. +5.6)".
func cell(s *aStep, none string) string {
	if s == nil {
		return none
	}
	name := s.Name
	if s.Group != nil && s.Group[0] < s.Group[1] {
		name = fmt.Sprintf("%d-%d", s.Group[0], s.Group[1])
	}
	text := name + " " + string(s.Verdict)
	if s.Change == nil {
		if s.Reason != "" {
			text += ": " + s.Reason
		}
		return clip(printable(text), diffCell)
	}
	text += fmt.Sprintf(" %+.1f %%", 100**s.Change)
	if s.Lo != nil && s.Hi != nil {
		text += fmt.Sprintf(" (%+.1f..%+.1f)", 100**s.Lo, 100**s.Hi)
	}
	return printable(text)
}

// clip cuts a text to so many characters.
func clip(text string, columns int) string {
	if r := []rune(text); len(r) > columns {
		return string(r[:columns-2]) + ".."
	}
	return text
}
