package eval

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/store"
)

func evaluation() *store.Evaluation {
	return &store.Evaluation{
		ID: "20261130-abcdef", Seed: 7, FixedRounds: 20, Stopped: store.StoppedInterrupted,
		Suite: store.SuiteName{Name: "kit", Digest: "d1"},
		Host:  bench.Host{Name: "m", CPU: "c", Cores: 2, Kernel: "Linux 6.1", Sandbox: "bubblewrap 0.8.0", SandboxDigest: "s1", Compiler: "cc 12"},
		Versions: []bench.Version{
			{N: 0, Name: "base", Tree: "t0", Digest: "b0"}, {N: 1, Name: "1/2", Tree: "t1", Digest: "b1"}, {N: 2, Name: "2/2", Tree: "t2"}},
	}
}

// A comparison never crosses two machines, kernels, sandboxes, suites, builds or
// compilers.
func TestDiffers(t *testing.T) {
	tests := map[string]struct {
		change func(r *run)
		want   string
	}{
		"nothing":        {func(r *run) {}, ""},
		"same seed":      {func(r *run) { r.Seed, r.Rounds = 7, 20 }, ""},
		"load":           {func(r *run) { r.e.Host.LoadBefore = 9 }, ""},
		"seed":           {func(r *run) { r.Seed = 8 }, "its seed is 7, not 8"},
		"rounds":         {func(r *run) { r.Rounds = 30 }, "30 rounds"},
		"suite":          {func(r *run) { r.e.Suite.Digest = "d2" }, "the suite was d1 and is d2"},
		"machine":        {func(r *run) { r.e.Host.Name = "n" }, "the machine was m and is n"},
		"processor":      {func(r *run) { r.e.Host.Cores = 4 }, "the processor was c, 2 cores and is c, 4 cores"},
		"kernel":         {func(r *run) { r.e.Host.Kernel = "Linux 6.2" }, "the kernel was Linux 6.1 and is Linux 6.2"},
		"sandbox":        {func(r *run) { r.e.Host.Sandbox = "none" }, "the sandbox was bubblewrap 0.8.0 and is none"},
		"sandbox digest": {func(r *run) { r.e.Host.SandboxDigest = "s2" }, "the sandbox's digest was s1 and is s2"},
		"another tree":   {func(r *run) { r.e.Versions[1].Tree = "u" }, "its 1/2 has tree t1"},
		"fewer versions": {func(r *run) { r.e.Versions = r.e.Versions[:2] }, "it has 3 versions and this series 2"},
	}
	for name, tt := range tests {
		r := &run{e: evaluation()}
		tt.change(r)
		got := r.differs(evaluation())
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestSameBuildAndCompiler(t *testing.T) {
	r := &run{e: evaluation(), resumed: evaluation()}
	for digest, ok := range map[string]bool{"b1": true, "b2": false} {
		if err := r.sameBuild(&bench.Version{N: 1, Name: "1/2", Digest: digest}); (err == nil) != ok {
			t.Errorf("build %s after b1: %v", digest, err)
		}
	}
	if err := r.sameBuild(&bench.Version{N: 2, Digest: "new"}); err != nil {
		t.Errorf("a build that was not made before: %v", err)
	}
	for compiler, ok := range map[string]bool{"cc 12": true, "cc 13": false} {
		if err := r.sameCompiler(compiler); (err == nil) != ok {
			t.Errorf("%s after cc 12: %v", compiler, err)
		}
	}
	r.resumed = nil
	if err := r.sameCompiler("cc 13"); err != nil {
		t.Errorf("a new evaluation: %v", err)
	}
}

func TestHad(t *testing.T) {
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
		r := &run{e: &store.Evaluation{Failures: tt.failures}, samples: tt.samples}
		rounds, before := r.had(b, versions)
		if d := cmp.Diff(tt.want, [2]int{rounds, before}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestNewOnly(t *testing.T) {
	line := func(v int, failed bool) bench.Sample {
		s := bench.Sample{Round: 1, Version: v, Benchmark: "b", Metric: "wall"}
		if failed {
			s.Failed = &bench.Failed{Status: 1}
		}
		return s
	}
	r := &run{samples: []bench.Sample{line(0, false), line(1, true)}}
	got := r.newOnly([]bench.Sample{line(1, true), line(2, true), line(0, false)})
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
		if got := moved(tt.rows, bench.Benchmark{Name: "b"}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

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
