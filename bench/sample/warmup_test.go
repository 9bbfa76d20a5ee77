package sample

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

func TestWarmUp(t *testing.T) {
	gobench := func(b bench.Benchmark) bench.Benchmark { b.Parse = "gobench"; return b }(plainBench)
	checked := func(b bench.Benchmark) bench.Benchmark { b.CheckStdout = true; return b }(plainBench)
	prepared := func(b bench.Benchmark) bench.Benchmark {
		b.Prepare.Args, b.Cleanup.Args = []string{"prepare"}, []string{"cleanup"}
		return b
	}(plainBench)
	two := "BenchmarkA-2 100 5 ns/op\nBenchmarkB-2 100 7 ns/op\n"
	output := func(by map[string]string) func(string, int, sandbox.Command) (sandbox.Result, error) {
		return func(v string, _ int, _ sandbox.Command) (sandbox.Result, error) {
			if text, ok := by[v]; ok {
				return printed(text), nil
			}
			return printed(two), nil
		}
	}
	always := func(r sandbox.Result) func(int) sandbox.Result { return func(int) sandbox.Result { return r } }
	tests := []struct {
		name     string
		bench    bench.Benchmark
		lab      fakeLab
		failures []string // "N benchmark: signal status reason"
		warnings []string
		working  int
	}{
		{name: "all work", bench: plainBench, lab: fakeLab{program: only(nil)}, working: 3},
		{
			name: "crash", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"2": always(crash())})},
			failures: []string{"2 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)"},
		},
		{
			name: "crash of the base", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"0": always(crash())})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)"},
		},
		{
			name: "one crash of two", bench: plainBench, working: 3,
			lab: fakeLab{program: only(map[string]func(int) sandbox.Result{"1": func(n int) sandbox.Result {
				if n == 0 {
					return crash()
				}
				return fine()
			}})},
			warnings: []string{"hash{n=3}: patch 1 failed in 1 of 2 runs: SIGSEGV"},
		},
		{
			name: "crash of the twin alone", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"twin": always(sandbox.Result{Status: 3})})},
			warnings: []string{"hash{n=3}: no A/A check: the base's twin fails where the base does not: exit status 3"},
		},
		{
			name: "time limit", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(sandbox.Result{Status: -1, Signal: "SIGKILL", Limit: "timed out after 600 s"})})},
			failures: []string{"1 hash{n=3}: SIGKILL -1 timed out after 600 s (2 of 2 runs)"},
		},
		{
			name: "program missing", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(sandbox.Result{NotStarted: "./kit: no such file"})})},
			failures: []string{"1 hash{n=3}:  -1 could not be started: ./kit: no such file (2 of 2 runs)"},
		},
		{
			name: "other output", bench: checked, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "wrong"})},
			failures: []string{"2 hash{n=3}:  0 output differs from base's (2 of 2 runs)"},
		},
		{
			name: "other output, base does not run", bench: checked, working: 1,
			lab: fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
				switch v {
				case "0":
					return crash(), nil
				case "1":
					return printed("right"), nil
				case "twin":
					return crash(), nil
				}
				return printed("wrong"), nil
			}},
			failures: []string{
				"0 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)",
				"2 hash{n=3}:  0 output differs from patch 1's (2 of 2 runs)",
			},
		},
		{
			name: "output never the same", bench: checked, working: 1,
			lab: fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
				return printed(fmt.Sprint(v, n)), nil
			}},
			failures: []string{
				"1 hash{n=3}:  0 output differs from base's (2 of 2 runs)",
				"2 hash{n=3}:  0 output differs from base's (2 of 2 runs)",
			},
			warnings: []string{"hash{n=3}: no A/A check: the base's twin fails where the base does not: output is not the same in every run of one version: it cannot be compared with the base's"},
		},
		{
			name: "no results", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"1": "PASS\n"})},
			failures: []string{"1 hash{n=3}:  0 suite produced no results (2 of 2 runs)"},
		},
		{
			name: "row missing", bench: gobench, working: 3,
			lab:      fakeLab{program: output(map[string]string{"1": "BenchmarkA-2 1 1 ns/op\nBenchmarkNew-2 1 1 ns/op\n"})},
			failures: []string{"1 hash/B{n=3}:  0 missing: base printed a result for it, this version did not"},
		},
		{
			name: "row twice", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "BenchmarkA-2 1 1 ns/op\n\nBenchmarkA-2 1 2 ns/op\n"})},
			failures: []string{"2 hash{n=3}:  0 standard output:3: A printed twice (first in line 1); use -count=1 (2 of 2 runs)"},
		},
		{
			name: "not a number", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "x\nBenchmarkA-2 1 NaN ns/op\n"})},
			failures: []string{"2 hash{n=3}:  0 standard output:2: BenchmarkA-2: NaN ns/op is no measurement: it must be finite and not negative (2 of 2 runs)"},
		},
		{
			name: "prepare fails", bench: prepared, working: 2,
			lab: fakeLab{program: only(nil), prep: func(v string, _ int) sandbox.Result {
				if v == "1" {
					return sandbox.Result{Status: 4}
				}
				return sandbox.Result{}
			}},
			failures: []string{"1 hash{n=3}:  4 prepare: exit status 4 (2 of 2 runs)"},
		},
		{
			name: "cleanup fails", bench: prepared, working: 2,
			lab: fakeLab{program: only(nil), clean: func(v string, _ int) sandbox.Result {
				if v == "2" {
					return sandbox.Result{Signal: "SIGABRT", Status: -1}
				}
				return sandbox.Result{}
			}},
			failures: []string{"2 hash{n=3}: SIGABRT -1 cleanup: SIGABRT (2 of 2 runs)"},
		},
		{
			name: "the run's failure counts, not that of the cleanup behind it", bench: prepared, working: 2,
			lab: fakeLab{
				program: only(map[string]func(int) sandbox.Result{"2": always(crash())}),
				clean: func(v string, _ int) sandbox.Result {
					if v == "2" {
						return sandbox.Result{Status: 1}
					}
					return sandbox.Result{}
				},
			},
			failures: []string{"2 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)"},
		},
		{
			name: "output never the same, no twin", bench: checked, working: 0,
			lab: fakeLab{noTwin: true, program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
				return printed(fmt.Sprint(v, n)), nil
			}},
			failures: []string{
				"0 hash{n=3}:  0 output is not the same in every run of one version: it cannot be compared with the base's (2 of 3 runs)",
				"1 hash{n=3}:  0 output differs from base's (2 of 2 runs)",
				"2 hash{n=3}:  0 output differs from base's (2 of 2 runs)",
			},
		},
		{
			name: "processes left", bench: plainBench, working: 3,
			lab: fakeLab{program: only(map[string]func(int) sandbox.Result{"2": func(int) sandbox.Result {
				r := fine()
				r.Left = 2
				return r
			}})},
			warnings: []string{"hash{n=3}: patch 2 left 2 processes behind, which were killed and not measured"},
		},
		{
			name: "no trace", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(nil), noTrace: true},
			warnings: []string{"hash{n=3}: peaks of memory cannot be read on this machine: could not be started: ptrace: operation not permitted"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s := newLab(t, 3, tt.bench, &tt.lab)
			w := warmUp(t, s)
			var got []string
			for _, f := range w.Failures {
				got = append(got, fmt.Sprintf("%d %s: %s %d %s", f.N, f.Benchmark, f.Signal, f.Status, f.Reason))
			}
			if d := cmp.Diff(tt.failures, got); d != "" {
				t.Errorf("failures (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.warnings, w.Warnings); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
			if w.Working != tt.working {
				t.Errorf("working = %d, want %d", w.Working, tt.working)
			}
			// The record tells of the same failures, and of the rows that lack for them.
			var whole []bench.Failure
			want := map[string]bool{}
			for _, f := range w.Failures {
				want[fmt.Sprint(f.N, f.Benchmark)] = true
				if strings.HasPrefix(f.Reason, "missing") {
					continue
				}
				whole = append(whole, f)
				if tt.bench.Parse != "" {
					want[fmt.Sprint(f.N, "hash/A{n=3}")], want[fmt.Sprint(f.N, "hash/B{n=3}")] = true, true
				}
			}
			recorded := map[string]bool{}
			for _, f := range recordedFailures(w.Samples) {
				recorded[fmt.Sprint(f.N, f.Benchmark)] = true
			}
			if d := cmp.Diff(want, recorded); d != "" {
				t.Errorf("failures by the record (-want +got):\n%s", d)
			}
			var lines bytes.Buffer
			if err := WriteJSONL(&lines, w.Samples); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadSamples("record", &lines); err != nil {
				t.Error(err)
			}
			// A round goes without those that fail.
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range r.Samples {
				for _, f := range whole {
					if l.Version == f.N && l.Discarded == "" && l.Failed == nil {
						t.Errorf("failing version %d has a sample: %+v", f.N, l)
					}
				}
			}
		})
	}
}

func TestPeaksApart(t *testing.T) {
	tests := []struct {
		name  string
		cost  time.Duration
		apart bool
		share float64
		round time.Duration
	}{
		{"free", 0, false, 0, 3 * time.Second},
		{"below half a percent", 100 * time.Microsecond, false, 0.3 / 99.7, 3 * time.Second},
		{"above", 200 * time.Microsecond, true, 0.6 / 99.4, 6 * time.Second},
		{"more than the run itself", time.Second, true, 1, 6 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, s := newLab(t, 2, plainBench, &fakeLab{program: only(nil), stopCost: tt.cost})
			w := warmUp(t, s)
			if w.PeaksApart != tt.apart || w.Round != tt.round || w.TraceShare-tt.share > 1e-9 || tt.share-w.TraceShare > 1e-9 {
				t.Errorf("apart, share, round = %v, %v, %v; want %v, %v, %v", w.PeaksApart, w.TraceShare, w.Round, tt.apart, tt.share, tt.round)
			}
			before := l.runs["0"]
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			runs := 1
			if tt.apart {
				runs = 2
			}
			if got := l.runs["0"] - before; got != runs {
				t.Errorf("base ran %d times in the round, want %d", got, runs)
			}
			if got := len(pick(r.Samples, "rss")); got != 3 {
				t.Errorf("%d samples of rss, want 3", got)
			}
			if got := len(pick(r.Samples, "wall")); got != 3 {
				t.Errorf("%d samples of wall, want 3", got)
			}
		})
	}
}
