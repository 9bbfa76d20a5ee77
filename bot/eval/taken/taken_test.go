package taken

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sample"
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
		if got := Repeats(tt.samples, bench.Benchmark{Name: "b"}, "allocs"); got != tt.want {
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
		rounds, last := Countings(tt.samples, bench.Benchmark{Name: "b"}, []string{"allocs"}, []sample.Version{{}, {Twin: true}, {N: 1}, {N: 2}})
		if d := cmp.Diff(tt.want, [2]int{rounds, last}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestRounds(t *testing.T) {
	b := bench.Benchmark{Name: "b"}
	runs := func(name string, round int, versions ...int) (out []bench.Sample) {
		for _, v := range versions {
			out = append(out, bench.Sample{Benchmark: name, Metric: "wall", Round: round, Version: v})
		}
		return out
	}
	failed := runs("b", 1, 2)
	failed[0].Failed = &bench.Failed{Status: 1}
	discarded := runs("b", 3, 0, 1, 2)
	for i := range discarded {
		discarded[i].Discarded = "stall"
	}
	versions := []sample.Version{{N: 0}, {N: 1}, {N: 2}, {Twin: true}}
	tests := map[string]struct {
		samples  []bench.Sample
		failures []bench.Failure
		want     [2]int
	}{
		"none":               {nil, nil, [2]int{0, 0}},
		"two rounds":         {append(runs("b", 1, 0, 1, 2), runs("b", 2, 2, 1, 0)...), nil, [2]int{2, 0}},
		"another benchmark":  {runs("c", 1, 0, 1, 2), nil, [2]int{0, 0}},
		"rows of its output": {runs("b/Encode", 1, 0, 1, 2), nil, [2]int{1, 0}},
		"a discarded round":  {append(runs("b", 1, 0, 1, 2), discarded...), nil, [2]int{1, 0}},
		"ends, then all":     {append(append(runs("b", 1, 0, 2), runs("b", 2, 0, 2)...), runs("b", 3, 0, 1, 2)...), nil, [2]int{1, 2}},
		"a version that fails": {append(runs("b", 1, 0, 1), failed...),
			[]bench.Failure{{N: 2, Benchmark: "b"}}, [2]int{1, 0}},
	}
	for name, tt := range tests {
		rounds, before := Rounds(tt.samples, tt.failures, b, versions)
		if d := cmp.Diff(tt.want, [2]int{rounds, before}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestNewFailures(t *testing.T) {
	line := func(v int, failed bool) bench.Sample {
		s := bench.Sample{Round: 1, Version: v, Benchmark: "b", Metric: "wall"}
		if failed {
			s.Failed = &bench.Failed{Status: 1}
		}
		return s
	}
	before := []bench.Sample{line(0, false), line(1, true)}
	got := NewFailures([]bench.Sample{line(1, true), line(2, true), line(0, false)}, before)
	if d := cmp.Diff([]bench.Sample{line(2, true), line(0, false)}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestMoved(t *testing.T) {
	row := func(metric string, v bench.Verdict) bench.Comparison {
		return bench.Comparison{Benchmark: "b", Metric: metric, Tested: true, Total: bench.Step{Verdict: v}}
	}
	other := row("cpu", bench.Worse)
	other.Benchmark = "c"
	shown := row("user", bench.Worse)
	shown.Tested = false
	tests := map[string]struct {
		rows []bench.Comparison
		want bool
	}{
		"no row":               {nil, false},
		"all the same":         {[]bench.Comparison{row("cpu", bench.Same), row("wall", bench.Same)}, false},
		"better":               {[]bench.Comparison{row("cpu", bench.Same), row("rss", bench.Better)}, true},
		"unclear":              {[]bench.Comparison{row("cpu", bench.Unclear), row("wall", bench.Same)}, true},
		"wall, cpu settled":    {[]bench.Comparison{row("wall", bench.Unclear), row("cpu", bench.Same)}, false},
		"wall alone":           {[]bench.Comparison{row("wall", bench.Unclear)}, true},
		"fails on the last":    {[]bench.Comparison{row("cpu", bench.NotMeasured)}, true},
		"another benchmark":    {[]bench.Comparison{row("cpu", bench.Same), other}, false},
		"only shown":           {[]bench.Comparison{row("cpu", bench.Same), shown}, false},
		"wall moved, cpu same": {[]bench.Comparison{row("wall", bench.Worse), row("cpu", bench.Same)}, true},
	}
	for name, tt := range tests {
		if got := Moved(tt.rows, bench.Benchmark{Name: "b"}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNewCounts(t *testing.T) {
	before := counts("b", "allocs", 1, map[int]float64{0: 5, -1: 5, 2: 6})
	now := slices.Concat(counts("b", "allocs", 1, map[int]float64{0: 7}), counts("b", "allocs", 1, map[int]float64{1: 5}),
		counts("b", "allocs", 2, map[int]float64{0: 5}), counts("b", "heap", 1, map[int]float64{0: 5}), counts("c", "allocs", 1, map[int]float64{0: 5}))
	if d := cmp.Diff(now[1:], NewCounts(now, before)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
