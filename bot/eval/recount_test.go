package eval

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/store"
)

// counts are figures of a counter on versions in a round; -1 is the base's twin.
func counts(name, metric string, round int, values map[int]float64) (list []bench.Sample) {
	for v, x := range values {
		list = append(list, bench.Sample{Benchmark: name, Metric: metric, Round: round, Version: max(0, v), Twin: v < 0, Value: x})
	}
	return list
}

func TestRepeats(t *testing.T) {
	failed := counts("b", "allocs", 1, map[int]float64{0: 0})
	failed[0].Failed = &bench.Failed{Reason: "valgrind wrote nothing"}
	for name, tt := range map[string]struct {
		samples []bench.Sample
		want    bool
	}{
		"none":                  {nil, true},
		"the same":              {counts("b", "allocs", 1, map[int]float64{0: 5, -1: 5, 1: 6}), true},
		"another than its twin": {counts("b", "allocs", 1, map[int]float64{0: 5, -1: 6}), false},
		"another in round 2":    {append(counts("b", "allocs", 1, map[int]float64{0: 5}), counts("b", "allocs", 2, map[int]float64{0: 6})...), false},
		"two rows":              {append(counts("b/one", "allocs", 1, map[int]float64{0: 5}), counts("b/two", "allocs", 1, map[int]float64{0: 6})...), true},
		"of a row":              {counts("b/one", "allocs", 1, map[int]float64{0: 5, -1: 6}), false},
		"another benchmark's":   {counts("c", "allocs", 1, map[int]float64{0: 5, -1: 6}), true},
		"another counter's":     {counts("b", "heap", 1, map[int]float64{0: 5, -1: 6}), true},
		"not counted once":      {append(counts("b", "allocs", 1, map[int]float64{-1: 6}), failed...), true},
	} {
		if got := repeats(tt.samples, bench.Benchmark{Name: "b"}, "allocs"); got != tt.want {
			t.Errorf("%s: repeats = %t", name, got)
		}
	}
}

func TestCountings(t *testing.T) {
	all := map[int]float64{0: 5, -1: 5, 1: 5, 2: 5}
	ends := map[int]float64{0: 5, -1: 5, 2: 5}
	lost := counts("b", "allocs", 2, map[int]float64{0: 5, 1: 5, 2: 5})
	for i := range lost {
		if lost[i].Version == 2 {
			lost[i].Failed = &bench.Failed{Reason: "valgrind wrote nothing"}
		}
	}
	for name, tt := range map[string]struct {
		samples []bench.Sample
		want    [2]int // rounds, last
	}{
		"none":                         {nil, [2]int{0, 0}},
		"two rounds":                   {slices.Concat(counts("b", "allocs", 1, all), counts("b", "allocs", 2, all)), [2]int{2, 2}},
		"base twice":                   {slices.Concat(counts("b", "allocs", 1, all), counts("b", "allocs", 2, map[int]float64{0: 5})), [2]int{1, 2}},
		"ends first":                   {slices.Concat(counts("b", "allocs", 1, all), counts("b", "allocs", 2, ends), counts("b", "allocs", 3, ends)), [2]int{1, 3}},
		"not counted once":             {slices.Concat(counts("b", "allocs", 1, all), lost), [2]int{2, 2}},
		"another counter beside":       {slices.Concat(counts("b", "allocs", 1, all), counts("b", "heap", 7, all)), [2]int{1, 1}},
		"a version that takes no part": {slices.Concat(counts("b", "allocs", 1, ends), counts("b", "allocs", 2, ends)), [2]int{2, 2}},
		"versions that are not here":   {counts("b", "allocs", 4, map[int]float64{3: 5}), [2]int{0, 0}},
	} {
		r := &run{samples: tt.samples}
		rounds, last := r.countings(bench.Benchmark{Name: "b"}, []string{"allocs"}, []sample.Version{{}, {Twin: true}, {N: 1}, {N: 2}})
		if d := cmp.Diff(tt.want, [2]int{rounds, last}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestSameInstructions(t *testing.T) {
	const valgrind = "instructions by valgrind: "
	for _, tt := range []struct {
		before, now string
		ok          bool
	}{
		{"", "", true}, {"", sample.ByPerf, true}, {sample.ByPerf, sample.ByPerf, true}, {valgrind + "no counter", valgrind + "not allowed", true},
		{sample.ByPerf, valgrind + "not allowed", false}, {valgrind + "not allowed", sample.ByPerf, false},
	} {
		r := &run{e: &store.Evaluation{}, resumed: &store.Evaluation{Host: bench.Host{Instructions: tt.before}}}
		if err := r.sameInstructions(tt.now); (err == nil) != tt.ok {
			t.Errorf("%q after %q: %v", tt.now, tt.before, err)
		}
	}
	if err := (&run{}).sameInstructions(sample.ByPerf); err != nil {
		t.Errorf("a new evaluation: %v", err)
	}
}
