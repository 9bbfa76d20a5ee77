package check

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

// checked makes what a run on the base gave: a kit of two benchmarks.
func checked() *eval.Checked {
	rng := rand.New(rand.NewPCG(1, 2))
	c := &eval.Checked{
		Evaluation: &store.Evaluation{
			Base:  mbox.Base{Commit: "4117fd7219ff0123456789012345678901234567", How: mbox.HowBranch, Reason: "the tip of HEAD"},
			Suite: store.SuiteName{Name: "kit", Digest: "e336df1a0db7"}, Seed: 1, Rounds: 5,
			Host:     bench.Host{Name: "m", CPU: "Example CPU", Cores: 2, Kernel: "Linux 6.1", PressureBefore: .02, PressureAfter: -1},
			Versions: []bench.Version{{Name: "base", State: bench.Built, Digest: "b0"}},
		},
		SuiteFile: ".patchbench.toml", BaseBuild: 17 * time.Second, AgainBuild: 1100 * time.Millisecond, VersionBytes: 29 << 20,
		Again: &bench.Version{N: 1, State: bench.Built, Digest: "b0"},
		Benchmarks: []eval.CheckedBenchmark{
			{Benchmark: bench.Benchmark{Name: "hash"}, Works: true, Run: 150 * time.Millisecond, Rounds: 5},
			{Benchmark: bench.Benchmark{Name: "table", Params: map[string]string{"n": "1000"}}, Works: true, Run: 300 * time.Millisecond, Rounds: 5},
		},
	}
	for _, b := range c.Benchmarks {
		for round := 1; round <= b.Rounds; round++ {
			for _, twin := range []bool{false, true} {
				add := func(m bench.Metric, v, sd float64) {
					c.Samples = append(c.Samples, bench.Sample{Round: round, Twin: twin, Benchmark: b.Benchmark.Name, Params: b.Benchmark.Params,
						Metric: m.Name, Unit: m.Unit, Value: v * (1 + sd*rng.NormFloat64())})
				}
				wall := b.Run.Seconds()
				add(bench.Wall, wall, .1)
				add(bench.CPU, wall*.9, .01)
				add(bench.User, wall*.8, .02)
				add(bench.RSS, 40<<20, .0005)
			}
		}
	}
	malloc := bench.MetricFor("malloc", bench.Byte)
	for _, twin := range []bool{false, true} {
		c.Samples = append(c.Samples, bench.Sample{Round: 1, Twin: twin, Benchmark: "hash", Metric: malloc.Name, Unit: malloc.Unit, Value: 10 << 20})
	}
	return c
}

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*eval.Checked)
		ok     bool
	}{
		{"good", func(*eval.Checked) {}, true},
		{"notes", func(c *eval.Checked) {
			c.Again.Digest = "b1"
			c.Cut = true
			c.Rounds = 1
			c.Host.PressureAfter, c.Host.Governor, c.Host.Autogroup = .42, "powersave", true
			c.Warnings = []string{"hash: base left 2 processes behind, which were killed and not measured"}
			c.Benchmarks[0].Count, c.Benchmarks[0].Recount = 40*time.Second, 15*time.Second
			for _, twin := range []bool{false, true} {
				c.Samples = append(c.Samples, bench.Sample{Round: 1, Twin: twin, Benchmark: "hash", Metric: "allocs", Unit: bench.Count, Value: 1000})
			}
			c.Samples = append(c.Samples, bench.Sample{Round: 1, Benchmark: "table", Params: map[string]string{"n": "1000"}, Metric: "copied", Unit: bench.Byte,
				Failed: &bench.Failed{Reason: "table is a Go program: valgrind does not see its allocations"}})
			c.Benchmarks[1].Run, c.Benchmarks[1].PeaksApart, c.Benchmarks[1].TraceShare = 95*time.Second, true, .031
			for i := range c.Samples {
				switch s := &c.Samples[i]; {
				case s.Round > 1 && s.Benchmark == "table":
					s.Discarded = "stall"
				case (s.Metric == "malloc" || s.Metric == "allocs") && s.Twin:
					s.Value++
				case s.Benchmark == "hash" && s.Metric != bench.RSS.Name:
					s.Value /= 20
				case s.Benchmark == "hash" && s.Round%2 == 0 && s.Twin:
					s.Value *= 1.3
				}
			}
		}, true},
		// What a program prints, and a baseline that leaves next to nothing.
		{"printed", func(c *eval.Checked) {
			c.Benchmarks[0].Benchmark = bench.Benchmark{Name: "suite", Parse: "google-benchmark"}
			c.Samples = nil
			add := func(round int, row string, m bench.Metric, base, twin float64) {
				l := bench.Sample{Round: round, Benchmark: row, Metric: m.Name, Unit: m.Unit, Value: base}
				c.Samples = append(c.Samples, l)
				l.Twin, l.Value = true, twin
				c.Samples = append(c.Samples, l)
			}
			for round := 1; round <= 5; round++ {
				f := float64(1 + round%2) // twice as much in every other round
				for _, row := range []string{"suite/copy", "suite/move{n=1}"} {
					add(round, row, bench.Wall, 46e-9, 46e-9)
					add(round, row, bench.MetricFor("bytes_per_second", "B/s"), 80<<20, 80<<20*f)
					add(round, row, bench.MetricFor("ratio", bench.Count), 0.5, 0.5)
					add(round, row, bench.MetricFor("hit", "%"), 93.5, 93.5)
					add(round, row, bench.MetricFor("allocs/op", bench.Count), 3, 3)
				}
				add(round, "table", bench.RSS, 20<<10, 20<<10*f)
			}
			c.Benchmarks[1].Benchmark.Params = nil
		}, true},
		{"faults", func(c *eval.Checked) {
			c.Benchmarks[0].Works = false
			c.Failures = []bench.Failure{
				{Benchmark: "hash", Status: 3, LogTail: "hash: no input\x1b[31m\nuse: hash FILE\n"},
				{Benchmark: "table{n=5}", Signal: "SIGSEGV"},
				{Benchmark: "write", Status: 2, LogTail: "sh: 1: cannot create out.txt: Read-only file system\n"},
				{Benchmark: "fetch", Status: 1, LogTail: "dial tcp: lookup example.org: Temporary failure in name resolution\n"},
				{Benchmark: "print", Reason: "suite produced no results (2 of 2 runs)", LogTail: "BenchmarkX 1 2 ns/op\n"},
				{Benchmark: "say", Reason: "suite produced no results (2 of 2 runs)"},
			}
			c.Samples = c.Samples[20:]
		}, false},
		{"no-build", func(c *eval.Checked) {
			c.Versions[0].State, c.Versions[0].LogTail = bench.BuildFailed, "make: gmake: no such file\nmake kit: exit status 127\n"
			c.Sandbox = sandbox.Facts{Hidden: []string{"/srv/tools/bin: not a toolchain known"}}
			c.Again, c.Benchmarks, c.Samples, c.VersionBytes, c.BaseBuild = nil, nil, nil, 0, 0
		}, false},
		{"variant", func(c *eval.Checked) {
			c.Versions[0].Variants = []bench.VariantBuild{
				{Params: map[string]string{"alloc": "pool"}, State: bench.Built},
				{Params: map[string]string{"alloc": "arena"}, State: bench.BuildFailed, LogTail: "arena.c:1: no such type\n"},
			}
			c.Benchmarks[1].Works = false
		}, false},
		{"no-second-build", func(c *eval.Checked) {
			c.Again.State, c.Again.LogTail = bench.BuildFailed, "cp: cannot create 'out': File exists\n"
		}, false},
		{"one-build", func(c *eval.Checked) { c.Again, c.BaseBuild = nil, 25*time.Minute }, true},
		{"conflict", func(c *eval.Checked) {
			c.Versions[0].State = bench.NotBuilt
			c.Conflict = &mbox.Conflict{Files: []mbox.ConflictFile{{Path: "mem.c", Hunk: 1, Line: 12, Reason: "meter.mbox, which every version gets, does not apply to the base"}}}
			c.Again, c.Benchmarks, c.Samples = nil, nil, nil
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := checked()
			c.change(in)
			r := Judge(in)
			if r.OK != c.ok {
				t.Errorf("ok = %v, want %v", r.OK, c.ok)
			}
			var text strings.Builder
			if err := r.Text(&text); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(text.String()) {
				if n := plain.Columns(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			cases.Golden(t, c.name+".txt", text.String())
			data, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			cases.Golden(t, c.name+".json", string(data)+"\n")
		})
	}
}
