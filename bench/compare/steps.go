package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"patchbench/bench"
)

// step judges what version i does.
func (j *judge) step(i int) bench.Step {
	v := j.versions[i]
	s := bench.Step{N: v.N, Verdict: bench.NotMeasured}
	prev := j.before(i)
	switch {
	case v.col < 0:
		s.Reason = v.reason
		if v.reason == missing && prev >= 0 && prev == i-1 {
			s.Reason = "gone"
		}
		return s
	case i > 0 && j.versions[i-1].reason == missing:
		s.Reason = "added"
		return s
	case prev < 0:
		s.Reason = "nothing to compare with"
		if i > 0 {
			s.Reason += ": " + j.versions[i-1].label + " " + j.versions[i-1].reason
		}
		return s
	case v.col == j.versions[prev].col:
		return j.equal(s, i)
	}
	from := j.versions[prev].col
	e, sig := j.pick(from, v.col)
	j.decide(&s, e, sig, from, v.col)
	if sig == nil && s.Verdict == bench.Same && !j.metric.Exact {
		j.doubt(&s, from, v.col)
	}
	switch {
	case prev < i-1 && s.Verdict != bench.Same:
		s.Group = []int{j.versions[prev+1].N, v.N}
	case !s.Verdict.Changed():
		if b := j.shares(from, v.col); b != nil && j.metric.Tested {
			s.Verdict, s.Reason = bench.Unclear, "may share the change in "+patches(j.patchesOf(*b))
		}
	}
	if s.Verdict.Changed() && sig != nil && sig.from < sig.to {
		s.Group = j.patchesOf(*sig)
		j.open(2 * j.t.n)
	}
	return s
}

// patches words a group.
func patches(g []int) string {
	if g[0] == g[1] {
		return "patch " + strconv.Itoa(g[0])
	}
	return "patches " + strconv.Itoa(g[0]) + "-" + strconv.Itoa(g[1])
}

// before is the last version before i that has figures, -1 for none.
func (j *judge) before(i int) int {
	for i--; i >= 0; i-- {
		if j.versions[i].col >= 0 {
			return i
		}
	}
	return -1
}

// patchesOf is the range of patches among which a bound lies.
func (j *judge) patchesOf(b bound) []int {
	from, to := j.versions[j.before(j.cols[b.from])+1].N, j.versions[j.cols[b.to]].N
	return []int{min(from, to), max(from, to)}
}

// shares finds a bound elsewhere whose change may as well lie between columns a
// and a+1.
func (j *judge) shares(a, b int) *bound {
	if b != a+1 {
		return nil
	}
	for _, x := range j.seg.bounds {
		if x.c != b && x.from <= b && b <= x.to {
			return &x
		}
	}
	return nil
}

// doubt takes back that a step is the same where the two versions beside it,
// looked at alone, differ by more than the margin and chance. Shared levels
// could hide a patch that the next one undoes.
func (j *judge) doubt(s *bench.Step, a, b int) {
	e := j.levels.between(span{a, a + 1}, span{b, b + 1})
	ch := j.change(e.diff, a)
	if math.Abs(ch) <= j.marginAt(a) || math.Abs(e.diff) < doubtZ*e.se {
		return
	}
	s.Verdict = bench.Unclear
	k := j.roundsFor(e, j.marginAt(a))
	s.Reason = fmt.Sprintf("alone the two versions differ by %+.1f %%; %s", 100*ch, needsText("", k))
	j.open(k)
}

// doubtZ is passed by chance once in 100 steps.
const doubtZ = 2.58

// equal is the step of a version whose build is an earlier one's.
func (j *judge) equal(s bench.Step, i int) bench.Step {
	v := j.versions[i]
	s.Change, s.Lo, s.Hi = some(0), some(0), some(0)
	s.Verdict = bench.Same
	s.Reason = bench.SameBuildReason + j.versions[j.cols[v.col]].label
	return s
}

// total judges the whole series.
func (j *judge) total(steps []bench.Step) bench.Step {
	a, b := j.versions[0], j.versions[len(j.versions)-1]
	s := bench.Step{N: b.N, Verdict: bench.NotMeasured}
	switch {
	case a.col < 0 && b.col >= 0 && a.reason == missing:
		s.Reason = "added"
		return s
	case b.col < 0 && a.col >= 0 && b.reason == missing:
		s.Reason = "gone"
		return s
	case a.col < 0:
		s.Reason = a.label + ": " + a.reason
		return s
	case b.col < 0:
		s.Reason = b.reason
		return s
	case a.col == b.col:
		return j.equal(s, len(j.versions)-1)
	}
	e, sig := j.pick(a.col, b.col)
	if j.seg.of(a.col) == j.seg.of(b.col) && j.t.n >= 2 && !j.metric.Exact {
		// Without a step between them the levels are those of the two versions alone.
		e = j.levels.between(span{a.col, a.col + 1}, span{b.col, b.col + 1})
	}
	if j.totalHit {
		sig = &bound{p: j.totalP}
	}
	j.decide(&s, e, sig, a.col, b.col)
	if s.Verdict.Changed() && !j.metric.Exact && !slices.ContainsFunc(steps, func(s bench.Step) bool { return s.Verdict.Changed() }) {
		s.Group = j.patchesOf(j.whereabouts())
	}
	return s
}

// whereabouts is the range of bounds among which a change of the whole series
// may lie, when no step was significant: at least two.
func (j *judge) whereabouts() bound {
	first, last := j.ends()
	if len(j.seg.bounds) > 0 || j.t.k < 3 {
		return bound{from: first + 1, to: last}
	}
	p := j.t.profile(span{0, j.t.k}, ones(make([]float64, j.t.n)))
	best := first + 1
	for c := first + 1; c <= last; c++ {
		if p[c] > p[best] {
			best = c
		}
	}
	from, to := near(p, best)
	from, to = max(from, first+1), min(to, last)
	if from == to {
		from, to = max(from-1, first+1), min(to+1, last)
	}
	return bound{from: from, to: to}
}
