package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// sameBuilds are the versions that were not measured again, and those that were
// not built.
func (r *renderer) sameBuilds() []string {
	if r.allSame() || r.NothingBuilt() {
		return nil // and it is said with the rows, or why
	}
	same := map[int][]int{}
	var notBuilt []int
	for _, v := range r.e.Versions {
		switch {
		case v.State == bench.SameBuild && v.SameAs != nil:
			same[*v.SameAs] = append(same[*v.SameAs], v.N)
		case v.State == bench.NotBuilt && !slices.Contains(r.e.NotTried, v.N) && (r.e.Conflict == nil || r.e.Conflict.N != v.N):
			notBuilt = append(notBuilt, v.N)
		}
	}
	var lines []string
	for _, as := range slices.Sorted(maps.Keys(same)) {
		lines = append(lines, plain.Wrap(fmt.Sprintf("%s: same build as %s, not measured again", r.Names(same[as]), r.Patch(as)), r.inner, "  ")...)
	}
	if n := len(lines); n > 6 {
		lines = append(lines[:5], fmt.Sprintf("and the same for %s", count(n-5, "more version")))
	}
	if len(notBuilt) > 0 {
		lines = append(lines, plain.Wrap(r.Names(notBuilt)+": not built, so not measured", r.inner, "  ")...)
	}
	return lines
}

// allSame says that no patch changes the build.
func (r *renderer) allSame() bool {
	for i, v := range r.e.Versions {
		if i > 0 && (v.State != bench.SameBuild || v.SameAs == nil || *v.SameAs != 0) {
			return false
		}
	}
	return len(r.e.Versions) > 1
}

// mostUnclear is how many unclear rows are told one by one.
const mostUnclear = 12

// unclear are rows that neither changed nor are shown to be the same, each with
// its interval and what would settle it; then such steps of rows that changed.
func (r *renderer) unclear() []string {
	all := r.View.Doubts()
	if len(all) == 0 {
		return nil
	}
	var lines []string
	for _, way := range []struct {
		above bool // labels stand above the rows
		room  int  // for reasons
	}{{false, 48}, {false, 32}, {false, 24}, {true, 48}, {true, 32}, {true, 24}, {true, 16}, {true, 8}} {
		t := &plain.Table{Columns: []plain.Column{
			{}, {Gap: 2}, {Head: "change", Gap: 2, Align: plain.Point}, {Gap: 1}, {Gap: 1, Align: plain.Point}, {Head: "rounds", Gap: 2}, {Gap: 1},
		}}
		for i, d := range all {
			if i == mostUnclear && len(all) > mostUnclear+1 {
				rest := "  and " + count(len(all)-i, "more row")
				if d.Wall() {
					rest += ", all of wall time"
				}
				t.Add(rest)
				break
			}
			label, scope := "  "+d.Row.Name+" "+d.Row.Label, r.doubtful(d)
			if way.above || plain.Columns(label) > r.inner-50 {
				t.Add("  " + plain.CutName(d.Row.Name, r.inner-3-min(20, plain.Columns(d.Row.Label))) + " " + plain.Cut(d.Row.Label, 20))
				label = "  "
			}
			c := figure.ChangeOf(d.Step.Change, d.Step.Lo, d.Step.Hi)
			lo, dots, hi := figure.Signed(c.Lo), "..", figure.Signed(c.Hi)
			switch {
			case lo == "":
				lo, dots = c.Middle, ""
			case !strings.HasPrefix(c.Middle, "x"):
				hi += " %"
			}
			reason := plain.Clean(d.Step.Reason)
			if strings.HasPrefix(reason, "withdrawn: ") {
				reason = "withdrawn, see Warnings" // which say why for all of them
			}
			t.Add(label, scope, lo, dots, hi, strconv.Itoa(d.Row.Rounds)+word(reason != "", ",", ""), plain.Cut(reason, way.room))
		}
		var width int
		if lines, width = t.Render(); width <= r.width {
			break
		}
	}
	note := " (neither changed nor the same for certain)"
	if slices.ContainsFunc(all, func(d rows.Doubt) bool { return d.More > 0 }) {
		note = " (neither changed nor the same for certain; +n: at n patches too)"
	}
	return append([]string{r.title("Unclear") + plain.Cut(note, r.width-len("Unclear"))}, lines...)
}

// doubtful says where a row is in doubt: "series (+2)", "4/5", "" where there is
// one patch only.
func (r *renderer) doubtful(d rows.Doubt) string {
	scope := "series"
	switch {
	case r.Patches() == 1:
		return ""
	case d.Lo > 0:
		scope = r.Between(d.Lo, d.Hi)
	}
	if d.More > 0 {
		scope += fmt.Sprintf(" (+%d)", d.More)
	}
	return scope
}

// missing are rows without figures that no failure explains: a row that only
// some versions have, or a counter that could not see the program.
func (r *renderer) missing() []string {
	built := func(v bench.Version) bool { return v.N > 0 && (v.State == bench.Built || v.State == bench.SameBuild) }
	if r.NothingBuilt() || len(r.e.Versions) > 1 && !slices.ContainsFunc(r.e.Versions, built) {
		return nil // each patch's failure is told
	}
	failed := map[string]bool{}
	for _, f := range r.e.Failures {
		failed[plain.Clean(f.Benchmark)] = true
	}
	type key struct{ name, reason string }
	var order []key
	metrics := map[key][]string{}
	for _, w := range r.Missing {
		if failed[w.Name] {
			continue
		}
		reason := w.Total.Reason
		for _, s := range w.Steps {
			reason = cmp.Or(reason, s.Reason)
		}
		k := key{w.Name, cmp.Or(plain.Clean(reason), "no figures")}
		if metrics[k] == nil {
			order = append(order, k)
		}
		metrics[k] = append(metrics[k], w.Label)
	}
	if len(order) == 0 {
		return nil
	}
	lines := []string{r.title("Not measured")}
	for i, k := range order {
		if i == 6 && len(order) > 7 {
			lines = append(lines, "  and "+count(len(order)-i, "more benchmark"))
			break
		}
		lines = append(lines, "  "+plain.Cut(k.name+" "+strings.Join(metrics[k], ", ")+": "+k.reason, r.inner-2))
	}
	return lines
}

// unchanged is one line for all rows that did not change, with the smallest
// change that would have been seen of each metric.
func (r *renderer) unchanged() []string {
	list := r.Same
	if len(list) == 0 {
		return nil
	}
	if r.allSame() {
		return plain.Wrap(fmt.Sprintf("No change in %s: every build is the same as base's, and was not measured again.", count(len(list), "row")), r.inner, "  ")
	}
	largest, amounts := map[string]float64{}, map[string]float64{}
	units := map[string]string{}
	for _, w := range list {
		switch {
		case !figure.Finite(w.Detectable) || w.Exact:
		case *w.Detectable >= 1 && len(w.Values) > 0 && figure.Finite(w.Values[0].Median):
			// A share of next to nothing, as what a baseline leaves, tells less than
			// the amount does.
			amounts[w.Label] = max(amounts[w.Label], *w.Detectable*math.Abs(*w.Values[0].Median))
			units[w.Label] = w.Unit
		default:
			largest[w.Label] = max(largest[w.Label], *w.Detectable)
			units[w.Label] = w.Unit
		}
	}
	noun := "row"
	if len(r.Changed)+len(r.Unclear) > 0 {
		noun = "other row"
	}
	text := "No change in " + count(len(list), noun)
	var seen []string
	for _, m := range slices.SortedFunc(maps.Keys(units), rows.CompareMetrics) {
		said := plain.Cut(m, 16)
		if share, ok := largest[m]; ok {
			said += " " + figure.Share(share)
		}
		if amount, ok := amounts[m]; ok {
			s := figure.ScaleFor(units[m], amount)
			near := strings.TrimSpace(figure.Plain(amount/s.Factor, 0)+" "+s.Unit) + " near 0"
			if _, both := largest[m]; both {
				near = "(" + near + ")"
			}
			said += " " + near
		}
		seen = append(seen, said)
	}
	if len(seen) == 0 {
		return []string{text + "."}
	}
	text += "; would have seen "
	if line := text + strings.Join(seen, ", ") + "."; plain.Columns(line) <= r.width {
		return []string{line}
	}
	text = strings.Replace(text, " other ", " ", 1)
	if line := text + strings.Join(seen, ", ") + "."; plain.Columns(line) <= r.width {
		return []string{line}
	}
	for n := len(seen) - 1; ; n-- {
		line := text + strings.Join(seen[:n], ", ") + ", ..."
		if plain.Columns(line) <= r.width || n == 1 {
			return []string{line}
		}
	}
}

// mostWarnings is how many warnings are told one by one.
const mostWarnings = 8

// warnings are those of the evaluation and of its rows, each once.
func (r *renderer) warnings() []string {
	var order []string
	about := map[string][]string{}
	for _, w := range r.e.Warnings {
		if _, told := about[w]; !told {
			order = append(order, w)
			about[w] = nil
		}
	}
	for _, c := range r.e.Results {
		for _, w := range c.Warnings {
			if _, told := about[w]; !told {
				order = append(order, w)
			}
			about[w] = append(about[w], plain.Clean(bench.RowName(c.Benchmark, c.Params))+" "+plain.Clean(c.Metric))
		}
	}
	if len(order) == 0 {
		return nil
	}
	lines := []string{r.title("Warnings")}
	for i, w := range order {
		if i == mostWarnings && len(order) > mostWarnings+1 {
			lines = append(lines, "  and "+count(len(order)-i, "more warning"))
			break
		}
		text := plain.Clean(w)
		if rows := about[w]; len(rows) > 0 {
			for j := range rows {
				rows[j] = plain.CutName(rows[j], 30)
			}
			if len(rows) > 3 {
				rows = append(rows[:2:2], fmt.Sprintf("%d more rows", len(rows)-2))
			}
			text = strings.Join(rows, ", ") + ": " + text
		}
		for _, line := range plain.Wrap(plain.Cut(text, 3*r.inner), r.inner-2, "  ") {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}
