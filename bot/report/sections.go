package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"patchbench/bench"
)

// An effect is a change that is laid to patch lo, or to somewhere in lo..hi, or
// (lo is 0) to no patch in particular.
type effect struct {
	lo, hi int
	row    row
	step   bench.Step
}

// effects are sorted by patch and, within one, as the rows are.
func (r *renderer) effects() []effect {
	var all []effect
	for _, w := range r.rows.changed {
		steps := w.steps
		if len(steps) == 0 {
			steps = []bench.Step{w.Total}
		}
		for i, s := range steps {
			f := effect{s.N, s.N, w, s}
			if len(s.Group) == 2 {
				f.lo, f.hi = s.Group[0], s.Group[1]
			} else if len(w.steps) == 0 {
				f.lo, f.hi = 0, 0
			}
			if i > 0 && f.lo < f.hi && f.lo == all[len(all)-1].lo && f.hi == all[len(all)-1].hi {
				continue // each patch of a group carries the group's change
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b effect) int {
		if (a.lo == 0) != (b.lo == 0) {
			return cmp.Compare(b.lo, a.lo)
		}
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	return all
}

// patchByPatch is which patch changed what, in at most most lines.
func (r *renderer) patchByPatch(most int) []string {
	if r.patches() == 1 {
		return nil
	}
	var blocks [][]effect
	for _, f := range r.effects() {
		if n := len(blocks); n > 0 && blocks[n-1][0].lo == f.lo && blocks[n-1][0].hi == f.hi {
			blocks[n-1] = append(blocks[n-1], f)
		} else {
			blocks = append(blocks, []effect{f})
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	lines := []string{r.title("Patch by patch")}
	var body []string
	for _, each := range []int{math.MaxInt, 40, 30, 20, 15, 10, 7, 5, 4, 3, 2, 1} {
		if body = r.blocks(blocks, each); len(body)+1 <= most {
			return append(lines, body...)
		}
	}
	// One row for each patch is still too much: the largest effects stay.
	largest := func(b []effect) float64 {
		size := 0.0
		for _, f := range b {
			size = max(size, magnitude(f.step.Change))
		}
		return size
	}
	byWeight := slices.Clone(blocks)
	slices.SortStableFunc(byWeight, func(a, b []effect) int { return cmp.Compare(largest(b), largest(a)) })
	for keep := len(blocks) - 1; keep > 0; keep-- {
		least := largest(byWeight[keep-1])
		var kept [][]effect
		var dropped []string
		for _, b := range blocks {
			if largest(b) >= least && len(kept) < keep {
				kept = append(kept, b)
			} else {
				dropped = append(dropped, r.between(b[0].lo, b[0].hi))
			}
		}
		body = r.blocks(kept, 1)
		more := wrap("and smaller changes by "+strings.Join(dropped, ", "), r.inner-2, "  ")
		for _, line := range more {
			body = append(body, "  "+line)
		}
		if len(body)+1 <= most {
			break
		}
	}
	return append(lines, body...)
}

// blocks lays out effects under their patches, at most each to a patch.
func (r *renderer) blocks(blocks [][]effect, each int) []string {
	t := &table{columns: []column{
		{}, {gap: 2, align: point}, {gap: 1}, {align: point}, {}, {align: point}, {gap: 2},
	}}
	nameWidth := 0
	for _, b := range blocks {
		if b[0].lo > 0 {
			nameWidth = max(nameWidth, columns(r.between(b[0].lo, b[0].hi)))
		}
	}
	indent := strings.Repeat(" ", 2+nameWidth+2)
	room := r.inner - len(indent) - 44
	for _, b := range blocks {
		lo, hi := b[0].lo, b[0].hi
		switch {
		case lo == 0:
			t.add("  In the whole series, but by no single patch for certain")
		case lo < hi:
			t.add("  " + pad(r.between(lo, hi), nameWidth) + "  by one of these patches, or by some of them together:")
			for n := lo; n <= hi; n++ {
				if n == lo+4 && hi > lo+4 {
					t.add(fmt.Sprintf("%sand %s", indent, count(hi-n+1, "more patch")))
					break
				}
				t.add(r.heading(indent+r.patch(n)+" ", n))
			}
		default:
			t.add(r.heading("  "+pad(r.patch(lo), nameWidth)+"  ", lo))
		}
		shown := b[:min(each, len(b))]
		if len(shown) < len(b) {
			// What gets worse, and what changes most, goes first.
			shown = slices.Clone(b)
			slices.SortStableFunc(shown, func(a, b effect) int {
				if x, y := a.step.Verdict == bench.Worse, b.step.Verdict == bench.Worse; x != y {
					if x {
						return -1
					}
					return 1
				}
				return cmp.Compare(magnitude(b.step.Change), magnitude(a.step.Change))
			})
			shown = shown[:each]
		}
		for i, f := range shown {
			label := f.row.name + " " + f.row.metric
			if columns(label) > room {
				t.add(indent + cut(f.row.name, r.inner-len(indent)-21) + " " + cut(f.row.metric, 20))
				label = ""
			}
			c := changeOf(f.step.Change, f.step.Lo, f.step.Hi)
			verdict := r.verdictOf(f.row, f.step)
			if more := len(b) - len(shown); more > 0 && i == len(shown)-1 {
				verdict += fmt.Sprintf("  (+%d more)", more)
			}
			t.add(indent+label, c.middle, open(c.lo), c.lo, dots(c.lo), shut(c.hi), verdict)
		}
	}
	lines, _ := t.render()
	return lines
}

// heading is a line with patch n's subject and, at the right, its size.
func (r *renderer) heading(before string, n int) string {
	size := r.size(n)
	subject := cut(r.subject(n), r.inner-columns(before)-columns(size)-2)
	return pad(before+subject, r.inner-columns(size)) + size
}

// The lengths of what failed, in lines of log and in entries.
const (
	longLog, shortLog = 10, 3
	longLogs          = 2
	mostFailures      = 8
)

// failures are the patches that do not apply, build or run, in order.
func (r *renderer) failures() []string {
	type entry struct {
		n     int
		lines []string
		log   string
	}
	var all []entry
	said := map[int]bool{}
	for i, v := range r.e.Versions {
		if v.State != bench.BuildFailed || said[v.N] {
			continue
		}
		what := "does not build"
		var also []int
		rest := r.e.Versions[i+1:]
		for len(rest) > 0 && rest[0].State == bench.BuildFailed {
			if slices.Equal(tail(rest[0].LogTail, longLog, r.inner), tail(v.LogTail, longLog, r.inner)) {
				also = append(also, rest[0].N)
				said[rest[0].N] = true
			}
			rest = rest[1:]
		}
		if len(also) > 0 {
			what += ", nor " + word(len(also) > 1, "do", "does") + " " + r.names(also) + ", with the same log"
		}
		before := -1
		for _, w := range r.e.Versions[:i] {
			if w.State == bench.Built || w.State == bench.SameBuild {
				before = w.N
			}
		}
		if len(rest) > 0 && before >= 0 && (rest[0].State == bench.Built || rest[0].State == bench.SameBuild) {
			what += fmt.Sprintf("; %s is compared with %s", r.patch(rest[0].N), r.patch(before))
		}
		all = append(all, entry{v.N, []string{what}, v.LogTail})
	}
	for i, f := range r.e.Failures {
		how := ended(f)
		first := true
		var later []int
		for j, g := range r.e.Failures {
			if g.Benchmark != f.Benchmark || ended(g) != how {
				continue
			}
			if j < i {
				first = false
			} else if j > i {
				later = append(later, g.N)
			}
		}
		if !first {
			continue
		}
		what := cut(clean(f.Benchmark), r.inner/2) + ": " + clean(how) + ", not measured"
		if len(later) > 0 {
			what += "; " + r.names(later) + " too"
		}
		all = append(all, entry{f.N, []string{what}, f.LogTail})
	}
	if c := r.e.Conflict; c != nil {
		lines := []string{"does not apply:"}
		for i, f := range c.Files {
			if i == 5 && len(c.Files) > 6 {
				lines = append(lines, fmt.Sprintf("  and %s", count(len(c.Files)-i, "more place")))
				break
			}
			where := clean(f.Path)
			if f.Hunk > 0 {
				where += fmt.Sprintf(", hunk %d", f.Hunk)
			}
			if f.Line > 0 {
				where += fmt.Sprintf(", line %d", f.Line)
			}
			lines = append(lines, "  "+where+": "+clean(f.Reason))
		}
		all = append(all, entry{n: c.N, lines: lines})
	}
	if len(r.e.NotTried) > 0 {
		what := "not tried, since patches before them are missing"
		if r.e.Conflict != nil {
			what = "not tried, since " + r.patch(r.e.Conflict.N) + " does not apply"
		}
		n := slices.Min(r.e.NotTried)
		all = append(all, entry{-n, []string{r.names(r.e.NotTried) + ": " + what}, ""})
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(max(a.n, -a.n), max(b.n, -b.n)) })
	lines := []string{r.paint("Failed", bold)}
	before := 0
	for i, f := range all {
		if i == mostFailures && len(all) > mostFailures+1 {
			lines = append(lines, "  and "+count(len(all)-i, "more failure"))
			break
		}
		if f.n < 0 {
			lines = append(lines, "  "+cut(f.lines[0], r.inner-2))
			continue
		}
		name := r.patch(f.n)
		indent := strings.Repeat(" ", 4+columns(name))
		if i == 0 || f.n != before {
			lines = append(lines, r.heading("  "+name+"  ", f.n))
		}
		before = f.n
		for _, line := range f.lines {
			deeper := indent + line[:len(line)-len(strings.TrimLeft(line, " "))]
			for _, part := range wrap(line, r.inner-len(deeper)-2, "  ") {
				lines = append(lines, deeper+part)
			}
		}
		n := longLog
		if i >= longLogs {
			n = shortLog
		}
		for _, line := range tail(f.log, n, r.width-len(indent)-2) {
			lines = append(lines, indent+"| "+line)
		}
	}
	return lines
}

// ended says how a run ended that failed.
func ended(f bench.Failure) string {
	return bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String()
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// sameBuilds are the versions that were not measured again, and those that were
// not built.
func (r *renderer) sameBuilds() []string {
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
		lines = append(lines, wrap(fmt.Sprintf("%s: same build as %s, not measured again", r.names(same[as]), r.patch(as)), r.inner, "  ")...)
	}
	if n := len(lines); n > 6 {
		lines = append(lines[:5], fmt.Sprintf("and the same for %s", count(n-5, "more version")))
	}
	if len(notBuilt) > 0 {
		lines = append(lines, wrap(r.names(notBuilt)+": not built", r.inner, "  ")...)
	}
	return lines
}

// mostUnclear is how many unclear rows are told one by one.
const mostUnclear = 12

// unclear are rows that neither changed nor are shown to be the same, each with
// its interval and what would settle it; then such steps of rows that changed.
func (r *renderer) unclear() []string {
	type doubt struct {
		row   row
		scope string
		step  bench.Step
		more  int // further unclear steps
	}
	var all []doubt
	for _, w := range slices.Concat(r.rows.unclear, r.rows.changed) {
		d := doubt{row: w, scope: "series", step: w.Total, more: len(w.unclear)}
		if w.Total.Verdict != bench.Unclear {
			if len(w.unclear) == 0 {
				continue
			}
			d.step = slices.MaxFunc(w.unclear, func(a, b bench.Step) int { return cmp.Compare(breadth(a), breadth(b)) })
			d.scope, d.more = r.patch(d.step.N), len(w.unclear)-1
			if len(d.step.Group) == 2 {
				d.scope = r.between(d.step.Group[0], d.step.Group[1])
			}
		}
		if d.step.Reason == "" {
			for _, s := range w.unclear {
				d.step.Reason = cmp.Or(d.step.Reason, s.Reason)
			}
		}
		if r.patches() == 1 {
			d.scope, d.more = "", 0
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return nil
	}
	t := &table{columns: []column{{}, {gap: 2}, {gap: 2, align: point}, {}, {align: point}, {gap: 2}}}
	for i, d := range all {
		if i == mostUnclear && len(all) > mostUnclear+1 {
			t.add("  and " + count(len(all)-i, "more row"))
			break
		}
		label := d.row.name + " " + d.row.metric
		scope := d.scope
		if d.more > 0 {
			scope += fmt.Sprintf(" (+%d)", d.more)
		}
		if columns(label) > r.inner-50 {
			t.add("  " + cut(d.row.name, r.inner-23) + " " + cut(d.row.metric, 20))
			label = ""
		}
		c := changeOf(d.step.Change, d.step.Lo, d.step.Hi)
		lo, hi := signed(c.lo), signed(c.hi)
		switch {
		case lo == "":
			lo = c.middle
		case !strings.HasPrefix(c.middle, "x"):
			hi += " %"
		}
		t.add("  "+label, scope, lo, dots(c.lo), hi, cut(clean(d.step.Reason), 24))
	}
	lines, _ := t.render()
	note := "neither a change nor the lack of one is shown"
	if slices.ContainsFunc(all, func(d doubt) bool { return d.more > 0 }) {
		note += "; (+n): further such patches"
	}
	return append([]string{cut(r.paint("Unclear", bold)+" ("+note+")", r.width)}, lines...)
}

func breadth(s bench.Step) float64 {
	if !finite(s.Lo) || !finite(s.Hi) {
		return math.Inf(1)
	}
	return *s.Hi - *s.Lo
}

func signed(s string) string {
	if s == "" || s[0] == '-' || s[0] == 'x' || strings.Trim(s, "0.") == "" {
		return s
	}
	return "+" + s
}

// missing are rows without figures that no failure explains: a row that only
// some versions have, or a counter that could not see the program.
func (r *renderer) missing() []string {
	failed := map[string]bool{}
	for _, f := range r.e.Failures {
		failed[clean(f.Benchmark)] = true
	}
	type key struct{ name, reason string }
	var order []key
	metrics := map[key][]string{}
	for _, w := range r.rows.missing {
		if failed[w.name] {
			continue
		}
		reason := w.Total.Reason
		for _, s := range w.Steps {
			reason = cmp.Or(reason, s.Reason)
		}
		k := key{w.name, cmp.Or(clean(reason), "no figures")}
		if metrics[k] == nil {
			order = append(order, k)
		}
		metrics[k] = append(metrics[k], w.metric)
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
		lines = append(lines, "  "+cut(k.name+" "+strings.Join(metrics[k], ", ")+": "+k.reason, r.inner-2))
	}
	return lines
}

// unchanged is one line for all rows that did not change, with the smallest
// change that would have been seen of each metric.
func (r *renderer) unchanged() []string {
	list := r.rows.same
	if len(list) == 0 {
		return nil
	}
	allSame := len(r.e.Versions) > 1
	for _, v := range r.e.Versions[min(1, len(r.e.Versions)):] {
		allSame = allSame && v.State == bench.SameBuild && v.SameAs != nil && *v.SameAs == 0
	}
	if allSame {
		return wrap(fmt.Sprintf("No change in %s: every build is the same as base's.", count(len(list), "row")), r.inner, "  ")
	}
	largest := map[string]float64{}
	for _, w := range list {
		if finite(w.Detectable) && !w.Exact {
			largest[w.metric] = max(largest[w.metric], *w.Detectable)
		}
	}
	noun := "row"
	if len(r.rows.changed)+len(r.rows.unclear) > 0 {
		noun = "other row"
	}
	text := "No change in " + count(len(list), noun)
	for i, m := range slices.SortedFunc(maps.Keys(largest), compareMetrics) {
		part := cut(m, 16) + " " + share(largest[m])
		switch {
		case i == 0:
			text += "; seen would have been " + part
		case columns(text)+columns(part) > r.inner-10:
			return []string{text + " or more, ..."}
		default:
			text += ", " + part
		}
	}
	if len(largest) > 0 {
		text += " or more"
	}
	return []string{cut(text+".", r.width)}
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
			about[w] = append(about[w], clean(bench.RowName(c.Benchmark, c.Params))+" "+clean(c.Metric))
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
		text := clean(w)
		if rows := about[w]; len(rows) > 0 {
			for j := range rows {
				rows[j] = cut(rows[j], 30)
			}
			if len(rows) > 3 {
				rows = append(rows[:2:2], fmt.Sprintf("%d more rows", len(rows)-2))
			}
			text = strings.Join(rows, ", ") + ": " + text
		}
		for _, line := range wrap(cut(text, 3*r.inner), r.inner-2, "  ") {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}
