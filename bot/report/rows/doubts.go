package rows

import (
	"cmp"
	"math"
	"slices"

	"patchbench/bench"
	"patchbench/bot/report/figure"
)

// A Doubt is a row of which some step, or the whole, neither changed nor is shown
// to be the same.
type Doubt struct {
	Row  Row
	Step bench.Step // the widest; its Reason says what would settle it
	// Lo and Hi are the patches that the step is laid to, 0 for the whole series.
	Lo, Hi int
	More   int // further unclear steps
}

// Wall says that it is a row of wall time, which is often noise where cpu time
// is settled.
func (d Doubt) Wall() bool { return d.Row.Label == bench.Wall.Name }

// Doubts are the rows that are unclear, then the rows that changed of which other
// steps are; those of wall time come last.
func (v *View) Doubts() []Doubt {
	var all []Doubt
	for _, w := range slices.Concat(v.Unclear, v.Changed) {
		w.Doubts = unexplained(w)
		d := Doubt{Row: w, Step: w.Total, More: len(w.Doubts)}
		// Where a single patch is in doubt, the series is since that is.
		if w.Total.Verdict != bench.Unclear || len(w.Doubts) == 1 {
			if len(w.Doubts) == 0 {
				continue
			}
			d.Step = slices.MaxFunc(w.Doubts, func(a, b bench.Step) int { return cmp.Compare(breadth(a), breadth(b)) })
			d.Lo, d.Hi, d.More = d.Step.N, d.Step.N, len(w.Doubts)-1
			if len(d.Step.Group) == 2 {
				d.Lo, d.Hi = d.Step.Group[0], d.Step.Group[1]
			}
		}
		if d.Step.Reason == "" {
			for _, s := range w.Doubts {
				d.Step.Reason = cmp.Or(d.Step.Reason, s.Reason)
			}
		}
		if v.Patches() == 1 {
			d.Lo, d.Hi, d.More = 0, 0, 0
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b Doubt) int {
		switch {
		case a.Wall() == b.Wall():
			return 0
		case a.Wall():
			return 1
		}
		return -1
	})
	return all
}

// unexplained are the unclear steps of a row that are not among the patches to
// which a change of the row is laid already.
func unexplained(w Row) []bench.Step {
	var groups [][]int
	for _, s := range append(w.Changes[:len(w.Changes):len(w.Changes)], w.Total) {
		if s.Verdict.Changed() && len(s.Group) == 2 {
			groups = append(groups, s.Group)
		}
	}
	if len(w.Changes) == 0 && w.Total.Verdict.Changed() && len(groups) == 0 {
		return nil // the change lies in the series, and it is said so
	}
	return slices.DeleteFunc(slices.Clone(w.Doubts), func(s bench.Step) bool {
		return slices.ContainsFunc(groups, func(g []int) bool { return g[0] <= s.N && s.N <= g[1] })
	})
}

func breadth(s bench.Step) float64 {
	if !figure.Finite(s.Lo) || !figure.Finite(s.Hi) {
		return math.Inf(1)
	}
	return *s.Hi - *s.Lo
}
