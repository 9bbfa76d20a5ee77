package resume

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
		change func(now *store.Evaluation)
		want   string
	}{
		"nothing":        {func(now *store.Evaluation) {}, ""},
		"none given":     {func(now *store.Evaluation) { now.Seed, now.FixedRounds = 0, 0 }, ""},
		"load":           {func(now *store.Evaluation) { now.Host.LoadBefore = 9 }, ""},
		"seed":           {func(now *store.Evaluation) { now.Seed = 8 }, "its seed is 7, not 8"},
		"rounds":         {func(now *store.Evaluation) { now.FixedRounds = 30 }, "30 rounds"},
		"suite":          {func(now *store.Evaluation) { now.Suite.Digest = "d2" }, "the suite was d1 and is d2"},
		"machine":        {func(now *store.Evaluation) { now.Host.Name = "n" }, "the machine was m and is n"},
		"processor":      {func(now *store.Evaluation) { now.Host.Cores = 4 }, "the processor was c, 2 cores and is c, 4 cores"},
		"kernel":         {func(now *store.Evaluation) { now.Host.Kernel = "Linux 6.2" }, "the kernel was Linux 6.1 and is Linux 6.2"},
		"sandbox":        {func(now *store.Evaluation) { now.Host.Sandbox = "none" }, "the sandbox was bubblewrap 0.8.0 and is none"},
		"sandbox digest": {func(now *store.Evaluation) { now.Host.SandboxDigest = "s2" }, "the sandbox's digest was s1 and is s2"},
		"another tree":   {func(now *store.Evaluation) { now.Versions[1].Tree = "u" }, "its 1/2 has tree t1"},
		"fewer versions": {func(now *store.Evaluation) { now.Versions = now.Versions[:2] }, "it has 3 versions and this series 2"},
	}
	for name, tt := range tests {
		now := evaluation()
		tt.change(now)
		got := differs(evaluation(), now)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestSameBuildAndCompiler(t *testing.T) {
	for digest, ok := range map[string]bool{"b1": true, "b2": false} {
		if err := SameBuild(evaluation(), &bench.Version{N: 1, Name: "1/2", Digest: digest}); (err == nil) != ok {
			t.Errorf("build %s after b1: %v", digest, err)
		}
	}
	if err := SameBuild(evaluation(), &bench.Version{N: 2, Digest: "new"}); err != nil {
		t.Errorf("a build that was not made before: %v", err)
	}
	for compiler, ok := range map[string]bool{"cc 12": true, "cc 13": false} {
		if err := SameCompiler(evaluation(), compiler); (err == nil) != ok {
			t.Errorf("%s after cc 12: %v", compiler, err)
		}
	}
	if err := SameCompiler(nil, "cc 13"); err != nil {
		t.Errorf("a new evaluation: %v", err)
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
		old := &store.Evaluation{Host: bench.Host{Instructions: tt.before}}
		if err := SameInstructions(old, tt.now); (err == nil) != tt.ok {
			t.Errorf("%q after %q: %v", tt.now, tt.before, err)
		}
	}
	if err := SameInstructions(nil, sample.ByPerf); err != nil {
		t.Errorf("a new evaluation: %v", err)
	}
}
