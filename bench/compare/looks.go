package compare

import (
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
	wantName, wantParams, _ := strings.Cut(b.Key(), "{")
	for _, o := range r.Open {
		name, params, _ := strings.Cut(o.Benchmark, "{")
		if params == wantParams && (name == wantName || strings.HasPrefix(name, wantName+"/")) {
			needs = append(needs, o.Needs...)
		}
	}
	return needs
}
