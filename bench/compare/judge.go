package compare

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"patchbench/bench"
)

// judge turns one row into a comparison.
type judge struct {
	plan
	*row
	share float64 // of alpha
	draw  *draw
	// quiet is where the same runs' cpu time changes, for a row of their wall time.
	quiet segmentation

	t      table
	looks  []look
	seg    segmentation
	levels levels
	// totalP is the smallest p of the looks at base and last column, totalHit
	// that one was below its threshold.
	totalP   float64
	totalHit bool
	needs    []int // for each open step the rounds in all that would decide it
}

// comparison judges the row. needs are, for each open step, how many rounds in
// all would decide it; none if further rounds are not wanted.
func (j *judge) comparison() (c bench.Comparison, needs []int) {
	m := j.metric
	c = bench.Comparison{
		Benchmark: j.name, Params: j.params, Metric: m.Name, Unit: m.Unit, Better: m.Better,
		Exact: m.Exact, Tested: m.Tested, Rounds: len(j.rounds), Steps: []bench.Step{}, Warnings: []string{},
	}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	if !j.metric.Exact && len(j.rounds) > 0 {
		j.t = newTable(j.cells)
		j.fit()
	}
	c.Values = j.values()
	for i := range j.versions {
		if i > 0 || j.versions[i].N > 0 {
			c.Steps = append(c.Steps, j.step(i))
		}
	}
	c.Total = j.total(c.Steps)
	c.Warnings = append(c.Warnings, j.warnings()...)
	j.twins(&c)
	c.Detectable = j.detectable()
	return c, j.needs
}

// values gives each version's median.
func (j *judge) values() []bench.Value {
	out := make([]bench.Value, 0, len(j.versions))
	for _, v := range j.versions {
		x := bench.Value{N: v.N}
		if v.col >= 0 {
			s, centre := j.steady(v.col)
			slices.Sort(s)
			x.Samples = len(s)
			x.Median = some(centre)
			if lo, hi, ok := medianInterval(s); ok {
				x.Lo, x.Hi = interval(min(lo, centre), max(hi, centre))
			}
		}
		out = append(out, x)
	}
	return out
}

// steady are a column's figures without what each round as a whole was off, and
// their centre, which is the level that changes are worked out from: so the
// figures of two versions differ by the change between them also where the
// machine's speed came and went.
func (j *judge) steady(col int) (s []float64, centre float64) {
	t := j.t
	if t.n < 2 || t.k < 2 {
		s = j.figures(col)
		return s, median(s)
	}
	rounds := make([]float64, t.n)
	for r := range rounds {
		rounds[r] = median(t.x[r*t.k : (r+1)*t.k])
	}
	middle := median(rounds)
	back := func(x float64) float64 {
		if t.log {
			return math.Exp(x + middle)
		}
		return x + middle
	}
	s = make([]float64, t.n)
	for r := range s {
		s[r] = back(t.x[r*t.k+col] - rounds[r])
	}
	return s, back(j.levels.level[col])
}

// figures are a column's, of complete rounds if there are any.
func (j *judge) figures(col int) []float64 {
	var s []float64
	if j.metric.Exact || len(j.rounds) == 0 {
		for _, c := range j.all[j.versions[j.cols[col]].N] {
			s = append(s, c.value)
		}
		return s
	}
	for _, line := range j.cells {
		s = append(s, line[col].value)
	}
	return s
}

// interval gives both ends or neither: one that is open at an end, since its figure
// is beyond all numbers, tells nothing.
func interval(lo, hi float64) (*float64, *float64) {
	if some(lo) == nil || some(hi) == nil {
		return nil, nil
	}
	return &lo, &hi
}

func some(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// fit cuts the row into segments, look by look, and measures their levels.
func (j *judge) fit() {
	j.seg = segmentation{k: j.t.k}
	j.totalP = 1
	if j.metric.Tested && j.t.k > 1 {
		j.looks = j.due(j.t.n)
	}
	first, last := j.ends()
	for _, l := range j.looks {
		t := j.t.first(l.rounds).adjusted(j.cells, j.seg.segments(), j.metric.Name)
		j.seg.refine(t, l.alpha*j.stepShare()*j.share, j.draw)
		if first < last && t.k > 2 {
			p := t.pair(first, last, t.weights(j.seg.segments()), j.totalThreshold(l), j.draw)
			j.totalP = min(j.totalP, p)
			j.totalHit = j.totalHit || p <= j.totalThreshold(l)
		}
	}
	t := j.t.adjusted(j.cells, j.seg.segments(), j.metric.Name)
	j.seg.settle(t)
	j.seg.follow(t, j.quiet)
	j.levels = levelsOf(t.aligned(span{0, t.k}), t.n, t.k, t.weights(j.seg.segments()))
	j.narrow()
}

// narrow takes out of each bound's range the columns at whose own step too
// little can have happened to share in the blame: less than the margin, or than
// a quarter of the change.
func (j *judge) narrow() {
	if j.t.n < 2 {
		return
	}
	for i := range j.seg.bounds {
		b := &j.seg.bounds[i]
		e, _ := j.pick(b.c-1, b.c)
		main := j.change(e.diff, 0)
		little := max(j.marginAt(0), math.Abs(main)/4)
		small := func(c int) bool {
			e, _ := j.pick(c-1, c)
			end := e.diff + e.half()
			if main < 0 {
				end = e.half() - e.diff
			}
			return j.change(end, 0) < little
		}
		for b.from < b.c && small(b.from) {
			b.from++
		}
		for b.to > b.c && small(b.to) {
			b.to--
		}
	}
}

// stepShare is the steps' part of the row's alpha.
func (j *judge) stepShare() float64 {
	if first, last := j.ends(); j.t.k == 2 && first < last {
		return 1
	}
	return stepShare
}

func (j *judge) totalThreshold(l look) float64 { return l.alpha * (1 - stepShare) * j.share }

// ends are the columns of base and of the last version, equal when one of them
// has none.
func (j *judge) ends() (first, last int) {
	a, b := j.versions[0].col, j.versions[len(j.versions)-1].col
	if a < 0 || b < 0 {
		return 0, 0
	}
	return min(a, b), max(a, b)
}

// pair tests two columns against each other.
func (t table) pair(a, b int, w []float64, threshold float64, d *draw) float64 {
	x := make([]float64, 0, 2*t.n)
	for r := range t.n {
		h := (t.x[r*t.k+b] - t.x[r*t.k+a]) / 2
		x = append(x, -h, h)
	}
	return ranked(x, t.n, 2, w).test(x, t.gap, threshold, d).p
}

// pick gives the effect between two columns and the bound that makes it
// significant, nil if none does.
func (j *judge) pick(a, b int) (effect, *bound) {
	if j.metric.Exact || len(j.rounds) == 0 {
		return effect{}, nil
	}
	x, y := min(a, b), max(a, b)
	p, q := j.seg.of(x), j.seg.of(y)
	var sig *bound
	if p == q {
		p, q = span{p.lo, x + 1}, span{y, q.hi}
	} else if between := j.seg.between(x, y); j.oneWay(x, y) {
		for _, c := range between {
			if sig == nil || c.p > sig.p {
				sig = &c
			}
		}
	}
	var e effect
	if j.t.n < 2 {
		e = effect{diff: j.levels.level[y] - j.levels.level[x], se: math.Inf(1)}
	} else {
		e = j.levels.between(p, q)
	}
	if b < a {
		e.diff = -e.diff
	}
	return e, sig
}

// oneWay says that the levels only rise or only fall from column x to y: then
// they differ at the ends as surely as at each bound between.
func (j *judge) oneWay(x, y int) bool {
	up, down := false, false
	last := math.NaN()
	for _, g := range j.seg.segments() {
		if g.hi <= x || g.lo > y {
			continue
		}
		m := 0.0
		for v := g.lo; v < g.hi; v++ {
			m += j.levels.level[v] / float64(g.hi-g.lo)
		}
		up, down = up || m > last, down || m < last
		last = m
	}
	return !(up && down)
}

// change turns a difference of levels into a relative change from column a.
func (j *judge) change(d float64, a int) float64 {
	if j.t.log {
		return math.Expm1(d)
	}
	if d == 0 {
		return 0
	}
	return d / math.Abs(j.reference(a))
}

// reference is the figure that a change is relative to, in the row's unit.
func (j *judge) reference(col int) float64 {
	return median(j.figures(col))
}

// marginAt is the relative margin at column a.
func (j *judge) marginAt(a int) float64 {
	m := j.margin
	if r := math.Abs(j.reference(a)); j.metric.MarginAbs > 0 && r > 0 {
		m = max(m, j.metric.MarginAbs/r)
	}
	return m
}

// decide fills in the figures and the verdict of the step from column a to b.
func (j *judge) decide(s *bench.Step, e effect, sig *bound, a, b int) {
	if j.metric.Exact {
		j.decideExact(s, a, b)
		return
	}
	n := j.t.n
	if n == 0 {
		s.Reason = "no complete round"
		j.open(j.firstLook())
		return
	}
	s.Change = some(j.change(e.diff, a))
	h := e.half()
	s.Lo, s.Hi = interval(j.change(e.diff-h, a), j.change(e.diff+h, a))
	if !j.metric.Tested {
		s.Verdict = bench.Shown
		return
	}
	if sig != nil {
		s.P = some(sig.p)
	}
	if n == 1 {
		s.Verdict, s.Reason = bench.Unclear, "one round only"
		j.open(j.firstLook())
		return
	}
	m := j.marginAt(a)
	within := s.Lo != nil && *s.Lo >= -m && *s.Hi <= m
	switch {
	case within && len(j.looks) > 0:
		s.Verdict = bench.Same
	case sig != nil && math.Abs(e.diff) > 0 && math.Abs(e.diff) >= h:
		s.Verdict = j.direction(e.diff)
	case sig != nil:
		k := j.roundsFor(e, m)
		s.Verdict, s.Reason = bench.Unclear, "significant, but its interval holds 0; "+needsText("", k)
		j.open(k)
	default:
		s.Verdict = bench.Unclear
		k := j.roundsFor(e, m)
		s.Reason = needsText("", k)
		j.open(k)
	}
}

func (j *judge) direction(d float64) bench.Verdict {
	if (d > 0) == (j.metric.Better == bench.Higher) {
		return bench.Better
	}
	return bench.Worse
}

// decideExact judges a step of a row in which any difference is real.
func (j *judge) decideExact(s *bench.Step, a, b int) {
	x, y := j.reference(a), j.reference(b)
	d := y - x
	defer func() {
		if !j.metric.Tested {
			s.Verdict = bench.Shown
		}
	}()
	switch {
	case d == 0:
		s.Change, s.Lo, s.Hi = some(0), some(0), some(0)
		s.Verdict = bench.Same
		return
	case x == 0:
		s.Reason = "base is 0"
		s.Verdict = j.direction(d)
		return
	}
	ch := d / math.Abs(x)
	s.Change, s.Lo, s.Hi = some(ch), some(ch), some(ch)
	if math.Abs(ch) <= j.marginAt(a) {
		s.Verdict = bench.Same
		return
	}
	s.Verdict = j.direction(d)
}

// critical is about the z that a step needs to be significant with the shares
// of alpha of all looks so far together.
func (j *judge) critical() float64 {
	var alpha float64
	for _, l := range j.looks {
		alpha += l.alpha
	}
	if alpha == 0 {
		alpha = j.plan.looks[0].alpha
	}
	m := float64(len(contrasts(max(2, j.t.k)))) / 2
	p := alpha * j.stepShare() * j.share / max(1, m)
	return distuv.UnitNormal.Quantile(1 - max(p, 1e-12)/2)
}

// power80 is the z that is exceeded in 80 % of cases beyond the critical one.
const power80 = 0.84

// roundsFor is about how many rounds in all would decide a step, by showing it or
// by showing that it lies within the margin.
func (j *judge) roundsFor(e effect, margin float64) int {
	n := float64(j.t.n)
	if e.se == 0 {
		// Nothing varies: the next look will tell.
		for _, l := range j.plan.looks {
			if l.rounds > j.t.n {
				return l.rounds
			}
		}
		return j.t.n + 1
	}
	d := math.Abs(j.change(e.diff, 0))
	se := e.se * math.Abs(j.change(1, 0)) / math.Expm1(1)
	if !j.t.log {
		se = e.se / math.Abs(j.reference(0))
	}
	need := math.Inf(1)
	if d > 0 {
		z := (j.critical() + power80) * se / d
		need = n * z * z
	}
	if d < margin {
		z := 1.96 * se / (margin - d)
		need = min(need, n*z*z)
	}
	if need > 1e5 || math.IsNaN(need) {
		return 100000
	}
	return max(j.t.n+1, j.firstLook(), int(math.Ceil(need)))
}

// needsText words a number of rounds with two figures.
func needsText(metric string, n int) string {
	if metric != "" {
		metric += " "
	}
	if n > 1000 {
		return metric + "needs > 1000 rounds"
	}
	step := 1
	if n > 100 {
		step = 10
	}
	return metric + "needs about " + strconv.Itoa((n+step-1)/step*step) + " rounds"
}

// open says that a step would be decided with n rounds in all.
func (j *judge) open(n int) {
	// Counters are not counted again in every round.
	if j.final || j.demoted || !j.metric.Tested || j.t.n >= j.last() || n > j.last() && j.t.n >= futileFrom {
		return
	}
	j.needs = append(j.needs, max(j.t.n+1, min(n, j.last())))
}

// firstLook is the number of rounds of the first look.
func (j *judge) firstLook() int { return j.plan.looks[0].rounds }

// detectable is the change of a typical step that would most likely have shown.
func (j *judge) detectable() *float64 {
	if !j.metric.Tested || j.metric.Exact || j.t.n < 2 || j.t.k < 2 {
		return nil
	}
	var ses []float64
	for c := 1; c < j.t.k; c++ {
		e, _ := j.pick(c-1, c)
		ses = append(ses, e.se)
	}
	d := (j.critical() + power80) * median(ses)
	return some(j.change(d, 0))
}
