package compare

import (
	"slices"
	"strings"

	"patchbench/bench"
)

// Looks gives the numbers of rounds at which a row is judged by default,
// ascending. Below the first no row can be decided.
func Looks() []int { return slices.Clone(defaultLooks) }

// IsOpen says that rows of a benchmark, also rows that its output is parsed into
// (NAME/...), could be decided by further rounds.
func (r Result) IsOpen(b bench.Benchmark) bool {
	return slices.ContainsFunc(r.Open, func(o Open) bool {
		name, params, _ := strings.Cut(o.Benchmark, "{")
		wantName, wantParams, _ := strings.Cut(b.Key(), "{")
		return params == wantParams && (name == wantName || strings.HasPrefix(name, wantName+"/"))
	})
}
