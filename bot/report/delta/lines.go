package delta

import (
	"fmt"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// The longest list of rows in Lines.
const mostRows = 12

// Lines tells in a few clean lines of at most width columns what became of the
// changes of the version before: rows in which the whole series is better or
// worse in either of the two.
func Lines(before, now *store.Evaluation, width int) []string {
	name := plain.Clean(before.ID)
	if before.Series != nil && now.Series != nil && before.Series.Version < now.Series.Version {
		name = fmt.Sprintf("v%d (%s)", before.Series.Version, name)
	}
	what := "measured at another time"
	var others []string
	for _, x := range differences(before, now) {
		switch x.what {
		case "machines":
			others = append(others, "on another machine")
		case "bases", "suites":
			others = append(others, "with another "+strings.TrimSuffix(x.what, "s"))
		}
	}
	if len(others) > 0 {
		what += ", " + strings.Join(others, ", ")
	}
	lines := plain.Wrap("Since "+name+", which was "+what, width, "  ")
	for _, line := range plain.Wrap(plain.Cut("it said: "+plain.Clean(before.Headline), 2*(width-2)), width-2, "  ") {
		lines = append(lines, "  "+line)
	}
	t := &plain.Table{Columns: []plain.Column{{}, {Gap: 2}, {Gap: 1, Align: plain.Point}, {Gap: 2}, {Gap: 2}, {Gap: 1, Align: plain.Point}}}
	rows := 0
	for _, r := range Of(before, now).Rows {
		a, b := r.Total[0], r.Total[1]
		if !(a != nil && a.Verdict.Changed()) && !(b != nil && b.Verdict.Changed()) {
			continue
		}
		if rows++; rows > mostRows {
			continue
		}
		av, ac := short(a)
		bv, bc := short(b)
		t.Add("  "+plain.CutName(plain.Clean(r.Benchmark+" "+r.Metric), max(12, width-44)), av, ac, "->", bv, bc)
	}
	table, _ := t.Render()
	lines = append(lines, table...)
	if rows > mostRows {
		lines = append(lines, fmt.Sprintf("  and %d rows more", rows-mostRows))
	}
	return lines
}

// short is a side's verdict and its change, if that is worth telling.
func short(s *Step) (verdict, change string) {
	switch {
	case s == nil:
		return "no row", ""
	case s.Verdict == bench.NotMeasured:
		return "no figure", ""
	case s.Change == nil || !s.Verdict.Changed():
		return plain.Clean(string(s.Verdict)), ""
	}
	return string(s.Verdict), fmt.Sprintf("%+.1f %%", 100**s.Change)
}
