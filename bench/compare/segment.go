package compare

import (
	"math"
	"slices"
)

// table is a row's complete rounds as numbers to compute with.
type table struct {
	n, k int
	x    []float64 // [round*k+column], logarithms if log
	log  bool
	// gap is the smallest difference between two values of x: how finely the
	// figures were measured, 0 if all are equal.
	gap float64
}

func newTable(cells [][]cell) table {
	t := table{n: len(cells), log: true}
	if t.n > 0 {
		t.k = len(cells[0])
	}
	t.x = make([]float64, 0, t.n*t.k)
	for _, line := range cells {
		for _, c := range line {
			t.x = append(t.x, c.value)
			t.log = t.log && c.value > 0
		}
	}
	if t.log {
		for i, x := range t.x {
			t.x[i] = math.Log(x)
		}
	}
	s := slices.Clone(t.x)
	slices.Sort(s)
	for i := 1; i < len(s); i++ {
		if d := s[i] - s[i-1]; d > 1e-12*math.Abs(s[i]) && (t.gap == 0 || d < t.gap) {
			t.gap = d
		}
	}
	return t
}

// first is the first n rounds.
func (t table) first(n int) table {
	t.x = t.x[:n*t.k]
	t.n = n
	return t
}

// aligned is the columns of s alone, less each round's median over them.
func (t table) aligned(s span) []float64 {
	k := s.hi - s.lo
	out := make([]float64, 0, t.n*k)
	sorted := make([]float64, k)
	for r := range t.n {
		line := t.x[r*t.k+s.lo : r*t.k+s.hi]
		copy(sorted, line)
		slices.Sort(sorted)
		m := sortedMedian(sorted)
		for _, x := range line {
			out = append(out, x-m)
		}
	}
	return out
}

// weights of the rounds by their spread once the segments' levels are taken out:
// a round in which equal builds lay far apart says less. The spread is drawn
// towards that of all rounds as far as few builds cannot tell. The weights do
// not depend on which build of a segment had which value, so that permuting
// stays exact.
func (t table) weights(segments []span) []float64 {
	w := make([]float64, t.n)
	if t.k < 3 {
		return ones(w)
	}
	res := t.residuals(segments)
	for r := range w {
		for _, x := range res[r*t.k : (r+1)*t.k] {
			w[r] += math.Abs(x) / float64(t.k)
		}
	}
	mid := median(w)
	if mid == 0 {
		return ones(w)
	}
	var sum float64
	df := float64(t.k - 1)
	for r := range w {
		s := (weightPrior*mid*mid + df*w[r]*w[r]) / (weightPrior + df)
		w[r] = 1 / math.Sqrt(s)
		sum += w[r]
	}
	for r := range w {
		w[r] *= float64(t.n) / sum
	}
	return w
}

// weightPrior is how many builds' worth of evidence the typical spread counts
// against a round's own.
const weightPrior = 2.0

func ones(w []float64) []float64 {
	for r := range w {
		w[r] = 1
	}
	return w
}

// ranked makes scores of aligned values: joint ranks, less each round's mean,
// times the round's weight.
func ranked(values []float64, n, k int, w []float64) scores {
	s := scores{n: n, k: k, v: ranks(values)}
	for r := range n {
		line := s.v[r*k : (r+1)*k]
		var mean float64
		for _, x := range line {
			mean += x / float64(k)
		}
		for v := range line {
			line[v] = (line[v] - mean) * w[r]
		}
	}
	return s
}

// ranks gives each value its rank from 1; equal values share the mean rank.
// Values that differ by no more than rounding are equal.
func ranks(x []float64) []float64 {
	order := make([]int32, len(x))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && x[order[j]]-x[order[j-1]] <= 1e-12 {
			j++
		}
		for _, o := range order[i:j] {
			out[o] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// segmentation is the columns cut into stretches of equal level.
type segmentation struct {
	k      int
	bounds []bound // ascending by c
}

// bound lies between columns c-1 and c.
type bound struct {
	c int
	p float64
	// from and to are the bounds at which the change may as well lie; both are c
	// if it is pinned.
	from, to int
	up       bool // the level behind it is higher
}

// segments in order.
func (s segmentation) segments() []span {
	out := make([]span, 0, len(s.bounds)+1)
	lo := 0
	for _, b := range s.bounds {
		out = append(out, span{lo, b.c})
		lo = b.c
	}
	return append(out, span{lo, s.k})
}

// of is the segment that column c lies in.
func (s segmentation) of(c int) span {
	for _, g := range s.segments() {
		if c < g.hi {
			return g
		}
	}
	return span{}
}

// between lists the bounds between columns a < b.
func (s segmentation) between(a, b int) []bound {
	var out []bound
	for _, x := range s.bounds {
		if a < x.c && x.c <= b {
			out = append(out, x)
		}
	}
	return out
}

// refine adds the bounds that the table shows at the threshold.
func (s *segmentation) refine(t table, threshold float64, d *draw) {
	w := t.weights(s.segments())
	todo := s.segments()
	for len(todo) > 0 {
		g := todo[0]
		todo = todo[1:]
		k := g.hi - g.lo
		if k < 2 {
			continue
		}
		a := t.aligned(g)
		f := ranked(a, t.n, k, w).test(a, t.gap, threshold, d)
		f.lo, f.c, f.hi = f.lo+g.lo, f.c+g.lo, f.hi+g.lo
		if f.p > threshold {
			continue
		}
		s.bounds = append(s.bounds, bound{c: f.c, p: f.p, from: f.c, to: f.c})
		todo = append(todo, span{g.lo, f.c}, span{f.c, g.hi})
	}
	slices.SortFunc(s.bounds, func(a, b bound) int { return a.c - b.c })
}

// profile gives, for every bound c in lo < c < hi, how well a single change at c
// fits the columns lo..hi-1, as a squared z.
func (t table) profile(g span, w []float64) []float64 {
	k := g.hi - g.lo
	sums, tau := ranked(t.aligned(g), t.n, k, w).sums()
	var total float64
	for _, x := range sums {
		total += x
	}
	out := make([]float64, k)
	var left float64
	for c := 1; c < k; c++ {
		left += sums[c-1]
		l, r := 1/float64(c), 1/float64(k-c)
		d := (total-left)*r - left*l
		if tau > 0 {
			out[c] = d * d / (l + r) / tau
		}
	}
	return out
}

// settle moves each bound to where all rounds together put it, and finds the
// range of bounds that fit as well.
func (s *segmentation) settle(t table) {
	for range 2 {
		for i := range s.bounds {
			g := s.around(i)
			p := t.profile(g, t.weights(s.segments()))
			b := &s.bounds[i]
			for c := range p {
				if p[c] > p[b.c-g.lo] {
					b.c = c + g.lo
				}
			}
			b.from, b.to = near(p, b.c-g.lo)
			b.from, b.to = b.from+g.lo, b.to+g.lo
		}
	}
	s.spread(t)
}

// around is the columns between the bounds beside bound i.
func (s *segmentation) around(i int) span {
	g := span{0, s.k}
	if i > 0 {
		g.lo = s.bounds[i-1].c
	}
	if i+1 < len(s.bounds) {
		g.hi = s.bounds[i+1].c
	}
	return g
}

// follow moves each bound to the one of a quieter figure of the same runs that
// goes the same way and fits nearly as well: what takes more cpu time takes
// more wall time at the same patch.
func (s *segmentation) follow(t table, quiet segmentation) {
	if quiet.k != s.k {
		return
	}
	for i := range s.bounds {
		g := s.around(i)
		p := t.profile(g, t.weights(s.segments()))
		b := &s.bounds[i]
		least := p[b.c-g.lo] - led
		for _, q := range quiet.bounds {
			if q.up == b.up && g.lo < q.from && q.to < g.hi && p[q.c-g.lo] > least {
				least = p[q.c-g.lo]
				b.c, b.from, b.to = q.c, q.from, q.to
			}
		}
	}
}

// led is how much better, in squared z, a change must fit elsewhere for it not to
// lie where the quieter figure has it: a likelihood ratio of 90.
const led = 9.0

// spread widens the range of a bound whose neighbouring column lies between the
// levels of both sides: where three patches add a little each, the one in the
// middle is not to take the blame for all.
func (s *segmentation) spread(t table) {
	w := t.weights(s.segments())
	segments := s.segments()
	for i := range s.bounds {
		b := &s.bounds[i]
		l, r := segments[i], segments[i+1]
		b.up = t.contrastZ(span{l.lo, r.hi}, b.c, w) > 0
		towards := func(z float64) bool { return z > hinted && b.up || z < -hinted && !b.up }
		if l.hi-l.lo > 1 && towards(t.contrastZ(l, l.hi-1, w)) {
			b.from = min(b.from, l.hi-1)
		}
		if r.hi-r.lo > 1 && towards(t.contrastZ(r, r.lo+1, w)) {
			b.to = max(b.to, r.lo+1)
		}
	}
}

// contrastZ is the z of a single change at c within the columns of g.
func (t table) contrastZ(g span, c int, w []float64) float64 {
	k := g.hi - g.lo
	sums, tau := ranked(t.aligned(g), t.n, k, w).sums()
	if !(tau > 0) {
		return 0
	}
	x := contrast{lo: 0, c: c - g.lo, hi: k, left: 1 / float64(c-g.lo), right: 1 / float64(g.hi-c)}
	return x.diff(sums) / math.Sqrt((x.left+x.right)*tau)
}

// pinned is how much worse, in squared z, a change at another bound must fit
// for the change to be pinned.
const pinned = 4.0

// hinted is the z from which a column beside a bound counts as lying between.
const hinted = 2.0

// near is the range of bounds that fit nearly as well as the one at c.
func near(profile []float64, c int) (from, to int) {
	from, to = c, c
	for i := 1; i < len(profile); i++ {
		if profile[c]-profile[i] < pinned {
			from, to = min(from, i), max(to, i)
		}
	}
	return from, to
}
