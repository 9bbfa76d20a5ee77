package delta

import (
	"fmt"
	"io"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
)

const (
	textWidth  = 78
	mostReason = 24 // columns of why a side has no figures
)

// Text writes the whole of a Delta for a terminal: for each row the series as a
// whole, then the patches that change it, the earlier evaluation at the left. Rows
// of which both sides say the same, and no change, are counted, or with all listed too.
func Text(w io.Writer, d Delta, all bool) error {
	var lines []string
	for _, e := range d.Evaluations {
		lines = append(lines, plain.Wrap(plain.Clean(e.ID+"  "+e.Created[:min(10, len(e.Created))]+"  "+e.Headline), textWidth, "  ")...)
	}
	lines = append(lines, "The figures are of different times: they are shown side by side, not tested.")
	for _, n := range d.Notes {
		lines = append(lines, "  "+plain.Clean(n))
	}
	lines = append(lines, "")

	t := &plain.Table{}
	for _, e := range d.Evaluations {
		t.Columns = append(t.Columns, plain.Column{Head: plain.Clean(e.ID), Gap: 3}, plain.Column{Gap: 1},
			plain.Column{Gap: 1, Align: plain.Point}, plain.Column{Gap: 1})
	}
	same := map[bench.Verdict]int{}
	for _, r := range d.Rows {
		if !all && !r.Told() {
			same[r.Total[0].Verdict]++
			continue
		}
		t.Add(plain.CutName(plain.Clean(r.Benchmark+" "+r.Metric), textWidth))
		add := func(steps [2]*Step, none string) {
			left := side(steps[0], none)
			left[0] = "  " + left[0]
			t.Add(append(left, side(steps[1], none)...)...)
		}
		add(r.Total, "no such row")
		for _, p := range r.Patches {
			t.Add("  " + plain.Cut(plain.Clean(p.Subject), textWidth-2))
			add(p.Steps, "no such patch")
		}
	}
	table, _ := t.Render()
	lines = append(lines, table...)
	for _, v := range []bench.Verdict{bench.Same, bench.Unclear, bench.NotMeasured} {
		if n := same[v]; n > 0 {
			lines = append(lines, fmt.Sprintf("rows that are %s on both sides: %d", v, n))
		}
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// side is one side of a line in four cells: "2/5", "worse", "+5.1 %", "(4.6 .. 5.6)".
func side(s *Step, none string) []string {
	if s == nil {
		return []string{"", "", "", none}
	}
	name := s.Name
	if len(s.Group) == 2 && s.Group[0] < s.Group[1] {
		name = fmt.Sprintf("%d-%d", s.Group[0], s.Group[1])
	}
	cells := []string{plain.Clean(name), plain.Clean(string(s.Verdict)), "", ""}
	if c := figure.ChangeOf(s.Change, s.Lo, s.Hi); c.Middle != "-" {
		cells[2] = c.Middle
		if c.Lo != "" {
			cells[3] = "(" + c.Lo + " .. " + c.Hi + ")"
		}
	} else if s.Reason != "" {
		cells[3] = plain.Cut(plain.Clean(s.Reason), mostReason)
	}
	return cells
}
