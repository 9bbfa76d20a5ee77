package compare

import (
	"iter"
	"slices"
	"strings"

	"patchbench/bench"
)

// Looks gives the numbers of rounds at which a row is judged by default,
// ascending. Below the first no row can be decided.
func Looks() []int { return slices.Clone(defaultLooks) }

// Needs are, for every open step of a benchmark's rows, also of those that its
// output is parsed into (NAME/...), about how many rounds in all would decide it;
// nil when further rounds are not wanted.
func (r Result) Needs(b bench.Benchmark) []int {
	var needs []int
	for o := range r.openOf(b) {
		needs = append(needs, o.Needs...)
	}
	return needs
}

// Wants says that one of a benchmark's open rows, as for Needs, is of a metric for
// which is holds.
func (r Result) Wants(b bench.Benchmark, is func(metric string) bool) bool {
	for o := range r.openOf(b) {
		if slices.ContainsFunc(o.Metrics, is) {
			return true
		}
	}
	return false
}

func (r Result) openOf(b bench.Benchmark) iter.Seq[Open] {
	return func(yield func(Open) bool) {
		params := bench.RowName("", b.Params)
		for _, o := range r.Open {
			// Braces may stand in the names of results, too.
			name, ok := strings.CutSuffix(o.Benchmark, params)
			if ok && (name == b.Name || strings.HasPrefix(name, b.Name+"/")) && !yield(o) {
				return
			}
		}
	}
}
