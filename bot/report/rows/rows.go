// Package rows reads a stored evaluation for those who render it: what became of
// each row, which patch is behind a change, what patches are called.
//
// In goes a store.Evaluation, out come its tested rows in four heaps, those that
// matter most first, with clean names, and the effects of patches on them. It is
// below all formats of bot/report and lays nothing out.
package rows

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// A Row is one benchmark's metric, sorted into the part of the report where it
// is told.
type Row struct {
	*bench.Comparison
	Name  string // benchmark with parameters, cleaned
	Label string // metric, cleaned
	// Changes are the steps that are better or worse, Doubts those that are unclear.
	Changes, Doubts []bench.Step
}

// A View is an evaluation with its tested rows in four heaps; in each, those that
// matter most come first and the rows of a benchmark stand together.
type View struct {
	Evaluation                      *store.Evaluation
	Changed, Unclear, Same, Missing []Row
	Told                            []Row // those of the changed that are told one by one
	Fewest, Most                    int   // rounds of the rows that had any
}

// manyChanged is how many rows may change before wall time that follows cpu time
// is left out.
const manyChanged = 12

// withoutFollowers leaves out the rows of wall time of which the same patches are
// told in the row of cpu time.
func withoutFollowers(changed []Row) []Row {
	steps := func(w Row) string {
		var b strings.Builder
		for _, s := range append(w.Changes[:len(w.Changes):len(w.Changes)], w.Total) {
			fmt.Fprintf(&b, "%d %s %v, ", s.N, s.Verdict, s.Group)
		}
		return b.String()
	}
	cpu := map[string]string{}
	for _, w := range changed {
		if w.Label == bench.CPU.Name {
			cpu[w.Name] = steps(w)
		}
	}
	return slices.DeleteFunc(slices.Clone(changed), func(w Row) bool {
		return w.Label == bench.Wall.Name && cpu[w.Name] == steps(w)
	})
}

// Of sorts the rows of an evaluation, which must not change from then on.
func Of(e *store.Evaluation) *View {
	all := &View{Evaluation: e}
	for i := range e.Results {
		c := &e.Results[i]
		if !c.Tested {
			continue
		}
		if c.Rounds > 0 {
			if all.Fewest == 0 || c.Rounds < all.Fewest {
				all.Fewest = c.Rounds
			}
			all.Most = max(all.Most, c.Rounds)
		}
		w := Row{Comparison: c, Name: plain.Clean(bench.RowName(c.Benchmark, c.Params)), Label: plain.Clean(c.Metric)}
		same := c.Total.Verdict == bench.Same
		for _, s := range c.Steps {
			switch {
			case s.Verdict.Changed():
				w.Changes = append(w.Changes, s)
			case s.Verdict == bench.Unclear:
				w.Doubts = append(w.Doubts, s)
			}
		}
		switch {
		case len(w.Changes) > 0 || c.Total.Verdict.Changed():
			all.Changed = append(all.Changed, w)
		case len(w.Doubts) > 0 || c.Total.Verdict == bench.Unclear:
			all.Unclear = append(all.Unclear, w)
		case same:
			all.Same = append(all.Same, w)
		default:
			all.Missing = append(all.Missing, w)
		}
	}
	sortByWeight(all.Changed)
	sortByWeight(all.Unclear)
	all.Told = all.Changed
	if len(all.Changed) > manyChanged {
		all.Told = withoutFollowers(all.Changed)
	}
	return all
}

// Weight orders benchmarks: those that got worse first, then the larger change.
func (w Row) Weight() (worse bool, size float64) {
	size = Magnitude(w.Total.Change)
	worse = w.Total.Verdict == bench.Worse
	for _, s := range w.Changes {
		worse = worse || s.Verdict == bench.Worse
		size = max(size, Magnitude(s.Change))
	}
	return worse, size * w.Matters()
}

// Magnitude is the size of a change, 0 for none that can be shown.
func Magnitude(f *float64) float64 {
	if !figure.Finite(f) {
		return 0
	}
	return math.Abs(*f)
}

// sortByWeight puts the benchmarks that matter most first and keeps the rows of
// a benchmark together: cpu before wall before rss.
func sortByWeight(list []Row) {
	type weight struct {
		worse bool
		size  float64
	}
	heaviest := map[string]weight{}
	for _, w := range list {
		worse, size := w.Weight()
		h := heaviest[w.Name]
		if worse && !h.worse {
			h = weight{true, size}
		} else if worse == h.worse {
			h.size = max(h.size, size)
		}
		heaviest[w.Name] = h
	}
	slices.SortStableFunc(list, func(a, b Row) int {
		x, y := heaviest[a.Name], heaviest[b.Name]
		if x.worse != y.worse {
			if x.worse {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.size, x.size), compareNames(a.Name, b.Name), CompareMetrics(a.Label, b.Label))
	})
}

// compareNames orders t2 before t10.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			x, y := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

var metricOrder = []string{"cpu", "wall", "rss"}

// CompareMetrics orders metrics: cpu before wall before rss before the others.
func CompareMetrics(a, b string) int {
	place := func(m string) int {
		if i := slices.Index(metricOrder, m); i >= 0 {
			return i
		}
		return len(metricOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// Value is the figure of version n in a row, or of the version whose build it
// shares; its Median is nil if there is none.
func Value(e *store.Evaluation, c *bench.Comparison, n int) bench.Value {
	for range len(e.Versions) + 1 {
		if i := at(len(c.Values), n, func(i int) int { return c.Values[i].N }); i >= 0 && figure.Finite(c.Values[i].Median) {
			return c.Values[i]
		}
		i := at(len(e.Versions), n, func(i int) int { return e.Versions[i].N })
		if i < 0 {
			break
		}
		as := e.Versions[i].With(c.Params).SameAs
		if as == nil {
			break
		}
		n = *as
	}
	return bench.Value{N: n}
}

// at finds number n in a list, most likely at place n; -1 if it is not there.
func at(length, n int, number func(i int) int) int {
	if n >= 0 && n < length && number(n) == n {
		return n
	}
	for i := range length {
		if number(i) == n {
			return i
		}
	}
	return -1
}

// Value is the figure of version n in a row.
func (v *View) Value(w Row, n int) bench.Value { return Value(v.Evaluation, w.Comparison, n) }
