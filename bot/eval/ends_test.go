package eval

import (
	"testing"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/store"
)

func TestTip(t *testing.T) {
	as := func(n int) *int { return &n }
	measured := func(n ...int) (out []sample.Version) {
		for _, v := range n {
			out = append(out, sample.Version{N: v})
		}
		return out
	}
	three := func(last bench.Version) *run {
		return &run{e: &store.Evaluation{Versions: []bench.Version{{N: 0}, {N: 1}, last}}}
	}
	for name, tt := range map[string]struct {
		r        *run
		measured []sample.Version
		want     int
	}{
		"the last":            {three(bench.Version{N: 2}), measured(0, 1, 2), 2},
		"does not build":      {three(bench.Version{N: 2}), measured(0, 1), 1},
		"as an earlier patch": {three(bench.Version{N: 2, SameAs: as(1)}), measured(0, 1), 1},
		"as base":             {three(bench.Version{N: 2, SameAs: as(0)}), measured(0, 1), 0},
	} {
		if got := tt.r.tip(tt.measured, nil); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
