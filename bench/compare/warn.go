package compare

import (
	"fmt"
	"math"
	"slices"

	"patchbench/bench"
)

// twins compares the base with its twin. A row in which equal builds differ by
// what would have been called a change measures something else than the
// patches, so its changes are withdrawn.
//
// The level is alpha times the row's share: as strict as the row's steps are
// judged, so that over all rows a series loses one for nothing in alpha of the
// cases at most.
func (j *judge) twins(c *bench.Comparison) {
	if j.metric.Exact || !j.metric.Tested || len(j.twin) < 3 || j.share == 0 {
		return
	}
	j.alone(c)
	cells := make([][]cell, len(j.twin))
	for i := range cells {
		cells[i] = []cell{{value: j.base[i]}, {value: j.twin[i]}}
	}
	t := newTable(cells)
	threshold := j.alpha * j.share
	p := t.pair(0, 1, ones(make([]float64, t.n)), threshold, j.draw)
	if p > threshold {
		return
	}
	l := levelsOf(t.aligned(span{0, 2}), t.n, 2, ones(make([]float64, t.n)))
	by := j.change(l.level[1]-l.level[0], 0)
	why := fmt.Sprintf("base and a second copy of it differ by %+.1f %% (p = %.2g)", 100*by, p)
	c.Warnings = append(c.Warnings, why)
	for i := range c.Steps {
		withdraw(&c.Steps[i], why)
	}
	withdraw(&c.Total, why)
	j.needs = nil
}

// twinShare is how much of a change from base must be there from its twin too. Of a
// change that is just significant a third is missed by chance once in 150 times.
const twinShare = 1. / 3

// alone withdraws changes from base that its twin does not show: then base's copy is
// the odd one, and no patch. This sees in one row what the test of base against
// its twin would need many more rounds for, as it knows where to look.
func (j *judge) alone(c *bench.Comparison) {
	said := false
	look := func(s *bench.Step, to span) {
		why := j.unseenByTwin(s, to)
		if why == "" {
			return
		}
		withdraw(s, why)
		if !said {
			c.Warnings, said = append(c.Warnings, why), true
		}
	}
	for i := range c.Steps {
		v := slices.IndexFunc(j.versions, func(v version) bool { return v.N == c.Steps[i].N })
		if prev := j.before(v); prev >= 0 && j.versions[v].col > 0 && j.versions[prev].col == 0 {
			look(&c.Steps[i], j.seg.of(j.versions[v].col))
		}
	}
	if last := j.versions[len(j.versions)-1].col; last > 0 {
		look(&c.Total, span{last, last + 1})
	}
}

// unseenByTwin says how a change from base to the columns of a span is not one from
// its twin; "" if it is.
func (j *judge) unseenByTwin(s *bench.Step, to span) string {
	if !s.Verdict.Changed() || to.lo == 0 {
		return ""
	}
	scale := func(x float64) float64 { return x }
	if j.t.log {
		scale = math.Log
	}
	base, twin := make([]float64, len(j.twin)), make([]float64, len(j.twin))
	for i, r := range j.twinned {
		var there []float64
		for _, c := range j.cells[r][to.lo:to.hi] {
			there = append(there, scale(c.value))
		}
		base[i], twin[i] = median(there)-scale(j.base[i]), median(there)-scale(j.twin[i])
	}
	b, t := midmean(base), midmean(twin)
	if math.Abs(t) >= twinShare*math.Abs(b) && (t > 0) == (b > 0) {
		return ""
	}
	return fmt.Sprintf("from a second copy of base it is %+.1f %%, not %+.1f %%", 100*j.change(t, 0), 100*j.change(b, 0))
}

// midmean is the mean of the middle half: nearly as sharp as the mean, and deaf to
// single disturbed runs as the median is.
func midmean(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	cut := len(s) / 4
	s = s[cut : len(s)-cut]
	sum := 0.
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

func withdraw(s *bench.Step, why string) {
	if s.Verdict.Changed() {
		s.Verdict, s.Reason = bench.Unclear, "withdrawn: "+why
	}
}

// warnings name what makes a row's figures doubtful.
func (j *judge) warnings() []string {
	var out []string
	if j.demoted {
		out = append(out, "declared exact, but equal builds gave different figures: judged as a noisy one")
	}
	if !j.metric.Tested || j.metric.Exact || j.t.n < 8 {
		return out
	}
	switch speed, modes := j.speedChange(), j.modes(); {
	case speed != "":
		out = append(out, speed)
	case modes != "":
		out = append(out, modes)
	}
	return out
}

const (
	// speedShift is the least relative change of a machine's speed worth a word.
	speedShift = 0.05
	// apart is how many standard deviations two clusters must lie apart
	// (Ashman's D; two halves of a uniform law give 3.5).
	apart = 5
)

// speedChange says that the machine changed its speed at some round.
func (j *judge) speedChange() string {
	m := make([]float64, j.t.n)
	for r := range m {
		m[r] = median(j.t.x[r*j.t.k : (r+1)*j.t.k])
	}
	at, diff, d := split(m, max(3, len(m)/8))
	by := j.change(diff, 0)
	if d < apart || math.Abs(by) < speedShift {
		return ""
	}
	return fmt.Sprintf("from round %d on all versions are %.0f %% %s: the machine changed its speed", j.rounds[at], 100*math.Abs(by), moreLess(by))
}

func moreLess(d float64) string {
	if d < 0 {
		return "lower"
	}
	return "higher"
}

// modes says that the values of equal builds fall into two clusters, as they are
// or less each round's median.
func (j *judge) modes() string {
	plain := slices.Clone(j.t.x)
	for _, g := range j.seg.segments() {
		var in []float64
		for r := range j.t.n {
			in = append(in, j.t.x[r*j.t.k+g.lo:r*j.t.k+g.hi]...)
		}
		m := median(in)
		for r := range j.t.n {
			for v := g.lo; v < g.hi; v++ {
				plain[r*j.t.k+v] -= m
			}
		}
	}
	for _, x := range [][]float64{plain, j.t.residuals(j.seg.segments())} {
		slices.Sort(x)
		at, diff, d := split(x, max(3, len(x)*15/100))
		by := j.change(diff, 0)
		if d < apart || math.Abs(by) <= j.marginAt(0) {
			continue
		}
		return fmt.Sprintf("two modes: %.0f %% of the runs are about %.0f %% higher than the rest", 100*float64(len(x)-at)/float64(len(x)), 100*math.Abs(by))
	}
	return ""
}

// split cuts x in two so that the squares within are least, at least atLeast
// values on each side, and gives the place, the difference of the means and
// Ashman's D.
func split(x []float64, atLeast int) (at int, diff, d float64) {
	n := len(x)
	sum, sq := make([]float64, n+1), make([]float64, n+1)
	for i, v := range x {
		v -= x[0] // keeps the squares small
		sum[i+1], sq[i+1] = sum[i]+v, sq[i]+v*v
	}
	best := math.Inf(1)
	for c := atLeast; c <= n-atLeast; c++ {
		a, b := float64(c), float64(n-c)
		va := sq[c] - sum[c]*sum[c]/a
		vb := sq[n] - sq[c] - (sum[n]-sum[c])*(sum[n]-sum[c])/b
		if va+vb >= best {
			continue
		}
		best, at = va+vb, c
		diff = (sum[n]-sum[c])/b - sum[c]/a
		d = math.Abs(diff) * math.Sqrt2 / math.Sqrt(max(va/a+vb/b, 1e-18))
	}
	return at, diff, d
}

// When a run counts as one that waited: something waited for a CPU for more than
// waitShare of its time; and when that is worth a word: in more than waitRuns of a
// benchmark's runs.
const (
	waitShare = 0.5
	waitRuns  = 0.1
	waitNamed = 3 // benchmarks named
)

// waits says in which benchmarks programs waited for a CPU, by the pressure that
// the kernel told of each run.
func waits(rows []*row) []string {
	var names []string
	waited, all, asked := 0, 0, 0
	for _, r := range rows {
		if r.metric.Name != bench.Wall.Name || r.metric.Unit != bench.Second {
			continue
		}
		n, of := 0, 0
		for _, rounds := range r.all {
			for _, c := range rounds {
				psi, ok := c.covariates["psi_ns"]
				if !ok || !(psi >= 0) || !(c.value > 0) {
					continue
				}
				of++
				if psi > waitShare*c.value*1e9 {
					n++
				}
			}
		}
		if of > 0 {
			asked++
		}
		if of > 0 && float64(n) > waitRuns*float64(of) {
			names = append(names, r.key)
			waited, all = waited+n, all+of
		}
	}
	if len(names) == 0 {
		return nil
	}
	if len(names) == asked && asked > waitNamed {
		names = []string{"all benchmarks"}
	}
	text := names[0]
	for i, name := range names[1:min(waitNamed, len(names))] {
		if i+2 == len(names) {
			text += " and " + name
		} else {
			text += ", " + name
		}
	}
	if more := len(names) - waitNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []string{fmt.Sprintf("%s: in %d of %d runs programs waited for a CPU for more than half of the time", text, waited, all)}
}
