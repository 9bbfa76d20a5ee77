package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"patchbench/bench"
	"patchbench/bot/report/delta"
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
	d := delta.Of(both[0], both[1])
	if c.Format == "json" {
		return writeJSON(t.stdout, d)
	}
	return diffText(t.stdout, d, c.All)
}

const diffCell = 34 // columns of one side

func diffText(w io.Writer, d delta.Delta, all bool) error {
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
		if !all && !r.Told() {
			same[r.Total[0].Verdict]++
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", printable(r.Benchmark), printable(r.Metric))
		line := func(steps [2]*delta.Step, none string) {
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
func cell(s *delta.Step, none string) string {
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
