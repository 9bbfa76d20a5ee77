package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// wholeSeries is the table of the rows that changed, base against the last
// version, in at most most lines.
func (r *renderer) wholeSeries(most int) []string {
	var list []rows.Row
	last := -1
	for _, w := range r.Told {
		if w.Total.Change == nil && w.Total.Verdict == bench.NotMeasured {
			continue // what became of it stands among the failures
		}
		list = append(list, w)
		if last < 0 {
			last = w.Total.N
		} else if last != w.Total.N {
			last = 0
		}
	}
	if len(list) == 0 {
		return nil
	}
	what := "the whole series"
	switch {
	case r.Patches() == 1:
		what = "patched"
	case last == 0:
		what = "the last version measured"
	case last != r.Patches():
		what = r.Patch(last) + ", the last version measured"
	case r.e.Series == nil:
		what = "the whole range"
	}
	from := "Base"
	if r.Values() != "" {
		from, what = r.Patch(0), r.Patch(max(last, 1))
	}
	title := fmt.Sprintf("%s against %s (medians +- 95 %%, %s)", from, what, count(list[0].Rounds, "round"))
	if apart(list) {
		title = fmt.Sprintf("%s against %s (medians +- 95 %%, n rounds)", from, what)
	}
	lines := []string{r.title(plain.Cut(title, r.inner))}
	shown := len(list)
	body := r.totalTable(list)
	for len(body)+2 > most && shown > 1 {
		shown = max(1, shown-max(1, (len(body)+2-most)/2))
		body = r.totalTable(list[:shown])
	}
	lines = append(lines, body...)
	if rest := list[shown:]; len(rest) > 0 {
		lines = append(lines, "  "+r.counted(rest))
	}
	if n := len(r.Changed) - len(r.Told); n > 0 {
		lines = append(lines, fmt.Sprintf("  and wall time, which follows cpu time in %s", count(n, "row")))
	}
	return lines
}

// apart says that not all rows have as many rounds.
func apart(list []rows.Row) bool {
	return slices.ContainsFunc(list, func(w rows.Row) bool { return w.Rounds != list[0].Rounds })
}

// counted words the rows for which there was no room.
func (r *renderer) counted(rest []rows.Row) string {
	worse := 0
	for _, w := range rest {
		if is, _ := w.Weight(); w.Total.Verdict == bench.Worse || is && w.Total.Verdict != bench.Better {
			worse++
		}
	}
	return fmt.Sprintf("and %s that changed (%d worse, %d better)", count(len(rest), "more row"), worse, len(rest)-worse)
}

// How a table names its rows.
const (
	inline  = iota // "hash cpu" in the row
	grouped        // "hash" above the rows, "cpu" in each
	above          // "hash cpu" above each row
)

// totalTable lays rows out under their verdicts, in the first way that fits.
func (r *renderer) totalTable(list []rows.Row) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b rows.Row) int { return cmp.Compare(place(a.Total), place(b.Total)) })
	several := false // rows to a benchmark
	for i := 1; i < len(list); i++ {
		several = several || list[i].Name == list[i-1].Name
	}
	from, to := "base", "patched"
	if param := r.Values(); param != "" {
		value := func(n int) string { return plain.Cut(strings.TrimPrefix(r.Patch(n), param+"="), 12) }
		from, to = value(0), value(list[0].Total.N)
	}
	var lines []string
	for _, way := range []struct {
		label int
		gap   int // before values
		bare  bool
	}{{inline, 3, false}, {inline, 2, false}, {grouped, 3, false}, {grouped, 2, false}, {grouped, 1, false}, {above, 2, false}, {above, 1, false}, {above, 1, true}} {
		// A name repeated down the page is noise, a name above a single row too.
		if way.label == grouped && !several || way.label == inline && several && len(list) > 6 {
			continue
		}
		t := &plain.Table{Columns: []plain.Column{
			{}, {Head: from, Gap: way.gap, Align: plain.Point}, {Gap: 1},
			{Head: to, Gap: way.gap, Align: plain.Point}, {Gap: 1}, {Gap: 1},
			{Head: "change", Gap: way.gap, Align: plain.Point}, {Gap: 1}, {Head: "n", Gap: 2},
		}}
		name, verdict := "", bench.Verdict("none")
		for _, w := range list {
			if w.Total.Verdict != verdict {
				name, verdict = "", w.Total.Verdict
				t.Add(r.totalVerdict(verdict))
			}
			label := "  " + w.Label
			switch way.label {
			case inline:
				label = "  " + w.Name + " " + w.Label
			case grouped:
				if w.Name != name {
					t.Add("  " + plain.CutName(w.Name, r.inner-2))
				}
				label = "  " + label
			case above:
				t.Add("  " + plain.CutName(w.Name, r.inner-4-min(20, plain.Columns(w.Label))) + " " + plain.Cut(w.Label, 20))
				label = "    "
			}
			name = w.Name
			f := r.figures(w)
			if way.bare {
				f.baseSpread, f.patchedSpread = "", ""
			}
			c := figure.ChangeOf(w.Total.Change, w.Total.Lo, w.Total.Hi)
			rounds := ""
			if apart(list) {
				rounds = strconv.Itoa(w.Rounds)
			}
			t.Add(label, f.base, f.baseSpread, f.patched, f.patchedSpread, f.unit, c.Middle, interval(w, c), rounds)
		}
		var width int
		if lines, width = t.Render(); width <= r.inner {
			break
		}
	}
	return lines
}

// place orders verdicts of a table.
func place(s bench.Step) int {
	return slices.Index([]bench.Verdict{bench.NotMeasured, bench.Same, bench.Unclear, bench.Better, bench.Worse}, s.Verdict) * -1
}

// totalVerdict is the heading of rows with this verdict on the whole series.
func (r *renderer) totalVerdict(v bench.Verdict) string {
	switch v {
	case bench.Same:
		return "same as a whole, but not at every patch"
	case bench.Unclear:
		return r.verdict(v) + " as a whole"
	}
	return r.verdict(v)
}

// interval stands behind a change in a table.
func interval(w rows.Row, c figure.Change) string {
	switch {
	case w.Exact && c.Middle != "-":
		return "(exact)"
	case c.Lo != "":
		return "(" + c.Lo + " .. " + c.Hi + ")"
	}
	return ""
}
