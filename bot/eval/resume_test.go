package eval

import (
	"strings"
	"testing"

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
