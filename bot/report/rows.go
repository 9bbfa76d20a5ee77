package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// A row is one benchmark's metric, sorted into the part of the report where it
// is told.
type row struct {
	*bench.Comparison
	name   string // benchmark with parameters, cleaned
	metric string // cleaned
	// steps are those that are better or worse, unclear those that are that.
	steps, unclear []bench.Step
}

func changed(v bench.Verdict) bool { return v == bench.Better || v == bench.Worse }

// rows are the tested rows of an evaluation in four heaps.
type rows struct {
	changed, unclear, same, missing []row
	told                            []row // those of the changed that are told one by one
	fewest, most                    int   // rounds of the rows that had any
}

// manyChanged is how many rows may change before wall time that follows cpu time
// is left out.
const manyChanged = 12

// withoutFollowers leaves out the rows of wall time of which the same patches are
// told in the row of cpu time.
func withoutFollowers(changed []row) []row {
	steps := func(w row) string {
		var b strings.Builder
		for _, s := range append(w.steps[:len(w.steps):len(w.steps)], w.Total) {
			fmt.Fprintf(&b, "%d %s %v, ", s.N, s.Verdict, s.Group)
		}
		return b.String()
	}
	cpu := map[string]string{}
	for _, w := range changed {
		if w.metric == bench.CPU.Name {
			cpu[w.name] = steps(w)
		}
	}
	return slices.DeleteFunc(slices.Clone(changed), func(w row) bool {
		return w.metric == bench.Wall.Name && cpu[w.name] == steps(w)
	})
}

func (r *renderer) sortRows() rows {
	var all rows
	for i := range r.e.Results {
		c := &r.e.Results[i]
		if !c.Tested {
			continue
		}
		if c.Rounds > 0 {
			if all.fewest == 0 || c.Rounds < all.fewest {
				all.fewest = c.Rounds
			}
			all.most = max(all.most, c.Rounds)
		}
		w := row{Comparison: c, name: plain.Clean(bench.RowName(c.Benchmark, c.Params)), metric: plain.Clean(c.Metric)}
		same := c.Total.Verdict == bench.Same
		for _, s := range c.Steps {
			switch {
			case changed(s.Verdict):
				w.steps = append(w.steps, s)
			case s.Verdict == bench.Unclear:
				w.unclear = append(w.unclear, s)
			}
		}
		switch {
		case len(w.steps) > 0 || changed(c.Total.Verdict):
			all.changed = append(all.changed, w)
		case len(w.unclear) > 0 || c.Total.Verdict == bench.Unclear:
			all.unclear = append(all.unclear, w)
		case same:
			all.same = append(all.same, w)
		default:
			all.missing = append(all.missing, w)
		}
	}
	sortByWeight(all.changed)
	sortByWeight(all.unclear)
	all.told = all.changed
	if len(all.changed) > manyChanged {
		all.told = withoutFollowers(all.changed)
	}
	return all
}

// weight orders benchmarks: those that got worse first, then the larger change.
func (w row) weight() (worse bool, size float64) {
	size = magnitude(w.Total.Change)
	worse = w.Total.Verdict == bench.Worse
	for _, s := range w.steps {
		worse = worse || s.Verdict == bench.Worse
		size = max(size, magnitude(s.Change))
	}
	return worse, size
}

func magnitude(f *float64) float64 {
	if !figure.Finite(f) {
		return 0
	}
	return math.Abs(*f)
}

// sortByWeight puts the benchmarks that matter most first and keeps the rows of
// a benchmark together: cpu before wall before rss.
func sortByWeight(list []row) {
	type weight struct {
		worse bool
		size  float64
	}
	heaviest := map[string]weight{}
	for _, w := range list {
		worse, size := w.weight()
		h := heaviest[w.name]
		if worse && !h.worse {
			h = weight{true, size}
		} else if worse == h.worse {
			h.size = max(h.size, size)
		}
		heaviest[w.name] = h
	}
	slices.SortStableFunc(list, func(a, b row) int {
		x, y := heaviest[a.name], heaviest[b.name]
		if x.worse != y.worse {
			if x.worse {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(y.size, x.size), compareNames(a.name, b.name), compareMetrics(a.metric, b.metric))
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

func compareMetrics(a, b string) int {
	place := func(m string) int {
		if i := slices.Index(metricOrder, m); i >= 0 {
			return i
		}
		return len(metricOrder)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
}

// value is the figure of version n, or of the version whose build it shares.
func (r *renderer) value(w row, n int) bench.Value {
	for range len(r.e.Versions) + 1 {
		for _, v := range w.Values {
			if v.N == n && figure.Finite(v.Median) {
				return v
			}
		}
		v := r.version(n)
		if v == nil || v.SameAs == nil {
			break
		}
		n = *v.SameAs
	}
	return bench.Value{N: n}
}

// figures are base and patched of a row's total in one unit, each with its
// spread ("+-2.1"). A value that is not there is "-", its spread "".
type figures struct{ base, baseSpread, patched, patchedSpread, unit string }

func (r *renderer) figures(w row) figures {
	a, b := r.value(w, 0), r.value(w, w.Total.N)
	var values []float64
	largest, spread, whole := 0.0, 0.0, true
	for _, v := range []bench.Value{a, b} {
		if v.Median == nil {
			continue
		}
		values = append(values, *v.Median)
		largest = max(largest, math.Abs(*v.Median))
		spread = max(spread, spreadOf(w, v))
		whole = whole && *v.Median == math.Trunc(*v.Median)
	}
	s := figure.ScaleFor(w.Unit, largest)
	for i := range values {
		values[i] /= s.Factor
	}
	d := figure.Decimals(whole && s.Factor == 1 && spread == math.Trunc(spread), spread/s.Factor, values...)
	show := func(v bench.Value) (string, string) {
		if v.Median == nil {
			return "-", ""
		}
		plusMinus := ""
		if figure.Finite(v.Lo) && figure.Finite(v.Hi) && !w.Exact {
			plusMinus = "+-" + figure.Number(spreadOf(w, v)/s.Factor, d)
		}
		return figure.Number(*v.Median/s.Factor, d), plusMinus
	}
	f := figures{unit: s.Unit}
	f.base, f.baseSpread = show(a)
	f.patched, f.patchedSpread = show(b)
	return f
}

// spreadOf is the farther end of the interval of v's median, as a distance.
func spreadOf(w row, v bench.Value) float64 {
	if w.Exact || v.Median == nil || !figure.Finite(v.Lo) || !figure.Finite(v.Hi) {
		return 0
	}
	return max(*v.Median-*v.Lo, *v.Hi-*v.Median, 0)
}

// version is version n of the code, nil if it was never made.
func (r *renderer) version(n int) *bench.Version {
	for i := range r.e.Versions {
		if r.e.Versions[i].N == n {
			return &r.e.Versions[i]
		}
	}
	return nil
}

// patches is how many patches the series or range has, also those that have no
// version.
func (r *renderer) patches() int {
	n := 0
	for _, v := range r.e.Versions {
		n = max(n, v.N)
	}
	if s := r.e.Series; s != nil {
		n = max(n, s.Total)
	}
	return n
}

// patch is the name of patch n: "2/5", "base" for 0.
func (r *renderer) patch(n int) string {
	if n == 0 {
		return "base"
	}
	if v := r.version(n); v != nil && v.Name != "" {
		return plain.Clean(v.Name)
	}
	return strconv.Itoa(n) + "/" + strconv.Itoa(r.patches())
}

// between names the patches lo..hi: "2-4/7".
func (r *renderer) between(lo, hi int) string {
	if lo == hi {
		return r.patch(lo)
	}
	return strconv.Itoa(lo) + "-" + r.patch(hi)
}

// subject is the subject of patch n, cleaned.
func (r *renderer) subject(n int) string {
	if v := r.version(n); v != nil && v.Subject != "" {
		return plain.Clean(v.Subject)
	}
	if r.e.Series != nil {
		for _, p := range r.e.Series.Patches {
			if p.N == n {
				return plain.Clean(p.Subject)
			}
		}
	}
	return ""
}

// size is how many lines patch n adds and deletes, "" if that is not known.
func (r *renderer) size(n int) string {
	v := r.version(n)
	if v == nil || v.Added == 0 && v.Deleted == 0 {
		return ""
	}
	return "+" + strconv.Itoa(v.Added) + " -" + strconv.Itoa(v.Deleted)
}

// names lists patches in few words: "1/5, 3/5", "1-4/5, 6/8".
func (r *renderer) names(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, r.between(list[i], list[j]))
		} else {
			for k := i; k <= j; k++ {
				parts = append(parts, r.patch(list[k]))
			}
		}
		i = j + 1
	}
	return strings.Join(parts, ", ")
}

// Rows are the tested rows of an evaluation by what became of them; those that
// matter most come first, and the rows of a benchmark stand together.
type Rows struct{ Changed, Unclear, Same, Missing []*bench.Comparison }

// RowsOf sorts the rows of an evaluation as its text does.
func RowsOf(e *store.Evaluation) Rows {
	sorted := (&renderer{e: e}).sortRows()
	only := func(list []row) []*bench.Comparison {
		var all []*bench.Comparison
		for _, w := range list {
			all = append(all, w.Comparison)
		}
		return all
	}
	return Rows{only(sorted.changed), only(sorted.unclear), only(sorted.same), only(sorted.missing)}
}

// Rounds are the fewest and the most rounds behind the tested rows of an
// evaluation that have any, 0 if none has.
func Rounds(e *store.Evaluation) (fewest, most int) {
	sorted := (&renderer{e: e}).sortRows()
	return sorted.fewest, sorted.most
}

// ValueOf is the figure of version n in a row, or of the version whose build it
// shares; its Median is nil if there is none.
func ValueOf(e *store.Evaluation, c *bench.Comparison, n int) bench.Value {
	return (&renderer{e: e}).value(row{Comparison: c}, n)
}
