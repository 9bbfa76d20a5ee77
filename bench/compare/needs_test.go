package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// Further rounds are wanted of the benchmark whose row is open, whatever its
// program calls its results.
func TestNeeds(t *testing.T) {
	var r Result
	for n, row := range []string{"jmh", "grep{n=1}", "grep{n=10}", "jmh/Sort.run{size=10}", "grep/a{b}{n=1}", "jmh{", "net/pull{n=1}"} {
		r.Open = append(r.Open, Open{Benchmark: row, Needs: []int{n}, Metrics: []string{"cpu"}})
	}
	n := func(value string) map[string]string { return map[string]string{"n": value} }
	for _, tt := range []struct {
		of   bench.Benchmark
		want []int
	}{
		{bench.Benchmark{Name: "jmh"}, []int{0, 3}},
		{bench.Benchmark{Name: "grep", Params: n("1")}, []int{1, 4}},
		{bench.Benchmark{Name: "grep", Params: n("10")}, []int{2}},
		{bench.Benchmark{Name: "grep", Params: n("0")}, nil},
		{bench.Benchmark{Name: "net", Params: n("1")}, []int{6}},
		{bench.Benchmark{Name: "ne", Params: n("1")}, nil},
	} {
		if d := cmp.Diff(tt.want, r.Needs(tt.of)); d != "" {
			t.Errorf("rounds that %s needs (-want +got):\n%s", tt.of.Key(), d)
		}
		if wants := r.Wants(tt.of, func(m string) bool { return m == "cpu" }); wants != (tt.want != nil) {
			t.Errorf("%s wants cpu: %v", tt.of.Key(), wants)
		}
	}
}
