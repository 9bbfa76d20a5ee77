package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func TestUnmeasured(t *testing.T) {
	base := 0
	built := bench.Version{N: 0, Name: "base", State: bench.Built}
	for _, c := range []struct {
		name     string
		versions []bench.Version
		failures []bench.Failure
		want     []string
		total    string
	}{
		{"all builds equal", []bench.Version{built,
			{N: 1, State: bench.SameBuild, SameAs: &base}, {N: 2, State: bench.SameBuild, SameAs: &base}}, nil,
			[]string{"same: same build as base", "same: same build as base"}, "same: same build as base"},
		{"one does not build", []bench.Version{built,
			{N: 1, State: bench.BuildFailed}, {N: 2, State: bench.SameBuild, SameAs: &base}}, nil,
			[]string{"not-measured: does not build", "same: same build as base"}, "same: same build as base"},
		{"fails on the last", []bench.Version{built,
			{N: 1, State: bench.SameBuild, SameAs: &base}, {N: 2, State: bench.Built}},
			[]bench.Failure{{N: 2, Benchmark: "sort", Signal: "SIGSEGV"}},
			[]string{"same: same build as base", "not-measured: SIGSEGV"}, "not-measured: SIGSEGV"},
		{"fails on base", []bench.Version{built, {N: 1, State: bench.Built}},
			[]bench.Failure{{N: 0, Benchmark: "sort", Status: 3}},
			[]string{"not-measured: exit status 3"}, "not-measured: exit status 3"},
		{"interrupted", []bench.Version{built, {N: 1, State: bench.Built}, {N: 2, State: bench.NotBuilt}}, nil,
			[]string{"not-measured: not run", "not-measured: not built"}, "not-measured: not built"},
	} {
		rows := Unmeasured(c.versions, bench.Benchmark{Name: "sort"}, c.failures)
		if len(rows) != 3 {
			t.Fatalf("%s: %d rows, want wall, cpu and rss", c.name, len(rows))
		}
		for _, r := range rows {
			var got []string
			for _, s := range r.Steps {
				got = append(got, string(s.Verdict)+": "+s.Reason)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, r.Metric, diff)
			}
			if got := string(r.Total.Verdict) + ": " + r.Total.Reason; got != c.total {
				t.Errorf("%s, %s: total %q, want %q", c.name, r.Metric, got, c.total)
			}
		}
	}
}
