package sample

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sample/jsonl"
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
	at := func(run int) func(int) sandbox.Result {
		return func(n int) sandbox.Result {
			if n == run {
				return crash()
			}
			return fine()
		}
	}
	late := func() sandbox.Result {
		return sandbox.Result{Status: -1, Signal: "SIGKILL", Limit: "timed out after 600 s", Wall: 10 * time.Minute}
	}
	leaving := func(left int) func(int) sandbox.Result {
		r := fine()
		r.Left = left
		return always(r)
	}
	random := func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
		return printed(fmt.Sprint(v, n)), nil
	}
	tests := []struct {
		name     string
		bench    bench.Benchmark
		lab      fakeLab
		failures []string // "N benchmark: signal status reason [flaky]"
		warnings []string
		working  int
		runs     map[string]int // nil: not looked at
	}{
		{name: "all work", bench: plainBench, lab: fakeLab{program: only(nil)}, working: 3},
		{
			name: "crash", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"2": always(crash())})},
			failures: []string{"2 hash{n=3}: SIGSEGV 139 SIGSEGV (5 of 5 runs)"},
		},
		{
			name: "crash of the base", bench: plainBench, working: 0,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"0": always(crash())})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)"},
			runs:     map[string]int{"0": 2},
		},
		{
			name: "one crash of the base", bench: plainBench, working: 0,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"0": at(0)})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 unreliable: base fails in some runs: SIGSEGV (1 of 2 runs)"},
			runs:     map[string]int{"0": 2},
		},
		{
			name: "crash of the base's second run, no twin", bench: plainBench, working: 0,
			lab:      fakeLab{noTwin: true, program: only(map[string]func(int) sandbox.Result{"0": at(1), "1": always(crash())})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 unreliable: base fails in some runs: SIGSEGV (1 of 2 runs)"},
			runs:     map[string]int{"0": 2},
		},
		{
			name: "crash of a patch, then of the base", bench: plainBench, working: 0,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(crash()), "2": always(crash()), "0": at(2)})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 unreliable: base fails in some runs: SIGSEGV (1 of 4 runs)"},
			runs:     map[string]int{"0": 3, "twin": 1, "1": 4},
		},
		{
			name: "declared failing before the base fails", bench: plainBench, working: 0,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(crash()), "2": always(crash()), "0": at(4)})},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 unreliable: base fails in some runs: SIGSEGV (1 of 6 runs)"},
			runs:     map[string]int{"0": 5, "twin": 1, "1": 5, "2": 3},
		},
		{
			name: "fails in some runs", bench: plainBench, working: 2,
			lab: fakeLab{program: only(map[string]func(int) sandbox.Result{"1": func(n int) sandbox.Result {
				if n == 2 || n == 3 {
					return fine()
				}
				return sandbox.Result{Status: 1}
			}})},
			failures: []string{"1 hash{n=3}:  1 exit status 1 (3 of 5 runs) flaky"},
			runs:     map[string]int{"0": 4, "twin": 1, "1": 5, "2": 1},
		},
		{
			name: "a time limit, when the failure is confirmed", bench: plainBench, working: 2,
			lab: fakeLab{program: only(map[string]func(int) sandbox.Result{"1": func(n int) sandbox.Result {
				if n == 2 {
					return late()
				}
				return crash()
			}})},
			failures: []string{"1 hash{n=3}: SIGKILL -1 timed out after 600 s (3 of 3 runs)"},
			runs:     map[string]int{"0": 2, "twin": 1, "1": 3, "2": 1},
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
			name: "crash of the twin alone", bench: plainBench, working: 0,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"twin": always(sandbox.Result{Status: 3})})},
			failures: []string{"0 hash{n=3}:  3 unreliable: base's twin, the same build, fails where base did not: exit status 3 (1 of 2 runs)"},
			runs:     map[string]int{"0": 1, "twin": 1},
		},
		{
			name: "time limit", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(late())})},
			failures: []string{"1 hash{n=3}: SIGKILL -1 timed out after 600 s (2 of 2 runs)"},
			runs:     map[string]int{"0": 1, "twin": 1, "1": 2, "2": 1},
		},
		{
			name: "limit of output", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(sandbox.Result{Status: -1, Limit: "printed more than 64 MiB", Wall: time.Second})})},
			failures: []string{"1 hash{n=3}:  -1 printed more than 64 MiB (5 of 5 runs)"},
		},
		{
			name: "program missing", bench: plainBench, working: 2,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"1": always(sandbox.Result{NotStarted: "./kit: no such file"})})},
			failures: []string{"1 hash{n=3}:  -1 could not be started: ./kit: no such file (5 of 5 runs)"},
		},
		{
			name: "other output", bench: checked, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "wrong"})},
			failures: []string{"2 hash{n=3}:  0 output differs from base's (5 of 5 runs)"},
		},
		{
			name: "other output in some runs", bench: checked, working: 2,
			lab: fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if v == "2" && n != 3 {
					return printed("wrong"), nil
				}
				return printed("right"), nil
			}},
			failures: []string{"2 hash{n=3}:  0 output differs from base's (4 of 5 runs) flaky"},
		},
		{
			name: "other output, base does not run", bench: checked, working: 0,
			lab: fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
				if v == "0" {
					return crash(), nil
				}
				return printed("text of " + v), nil
			}},
			failures: []string{"0 hash{n=3}: SIGSEGV 139 SIGSEGV (2 of 2 runs)"},
		},
		{
			name: "output never the same", bench: checked, working: 0,
			lab:      fakeLab{program: random},
			failures: []string{"0 hash{n=3}:  0 its output differs from run to run of the same build, so it cannot be checked"},
			runs:     map[string]int{"0": 1, "twin": 1},
		},
		{
			name: "output never the same, not checked", bench: plainBench, working: 3,
			lab: fakeLab{program: random},
		},
		{
			name: "output the same at first", bench: checked, working: 0,
			lab: fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if v == "twin" || v == "0" && n < 2 {
					return printed("heads"), nil
				}
				return printed("tails"), nil
			}},
			failures: []string{"0 hash{n=3}:  0 its output differs from run to run of the same build, so it cannot be checked"},
			runs:     map[string]int{"0": 3, "twin": 1, "1": 4},
		},
		{
			name: "no results", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"1": "PASS\n"})},
			failures: []string{"1 hash{n=3}:  0 suite produced no results (5 of 5 runs)"},
		},
		{
			name: "row missing", bench: gobench, working: 3,
			lab:      fakeLab{program: output(map[string]string{"1": "BenchmarkA-2 1 1 ns/op\nBenchmarkNew-2 1 1 ns/op\n"})},
			failures: []string{"1 hash/B{n=3}:  0 missing: base printed a result for it, this version did not"},
		},
		{
			name: "row missing in one of two runs", bench: gobench, working: 3,
			lab: fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if v == "1" && n != 1 {
					return printed("BenchmarkA-2 1 1 ns/op\n"), nil
				}
				return printed(two), nil
			}},
			failures: []string{"1 hash/B{n=3}:  0 printed no result for it (1 of 2 runs) flaky"},
			runs:     map[string]int{"0": 1, "twin": 1, "1": 2, "2": 1},
		},
		{
			name: "row twice", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "BenchmarkA-2 1 1 ns/op\n\nBenchmarkA-2 1 2 ns/op\n"})},
			failures: []string{"2 hash{n=3}:  0 standard output:3: A printed twice (first in line 1): run each benchmark once (5 of 5 runs)"},
		},
		{
			name: "not a number", bench: gobench, working: 2,
			lab:      fakeLab{program: output(map[string]string{"2": "x\nBenchmarkA-2 1 NaN ns/op\n"})},
			failures: []string{"2 hash{n=3}:  0 standard output:2: BenchmarkA-2: NaN ns/op is no measurement: it must be finite and not negative (5 of 5 runs)"},
		},
		{
			name: "prepare fails", bench: prepared, working: 2,
			lab: fakeLab{program: only(nil), prep: func(v string, _ int) sandbox.Result {
				if v == "1" {
					return sandbox.Result{Status: 4}
				}
				return sandbox.Result{}
			}},
			failures: []string{"1 hash{n=3}:  4 prepare: exit status 4 (5 of 5 runs)"},
		},
		{
			name: "cleanup fails", bench: prepared, working: 2,
			lab: fakeLab{program: only(nil), clean: func(v string, _ int) sandbox.Result {
				if v == "2" {
					return sandbox.Result{Signal: "SIGABRT", Status: -1}
				}
				return sandbox.Result{}
			}},
			failures: []string{"2 hash{n=3}: SIGABRT -1 cleanup: SIGABRT (5 of 5 runs)"},
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
			failures: []string{"2 hash{n=3}: SIGSEGV 139 SIGSEGV (5 of 5 runs)"},
		},
		{
			name: "prepare fails on the twin", bench: prepared, working: 0,
			lab: fakeLab{program: only(nil), prep: func(v string, _ int) sandbox.Result {
				if v == "twin" {
					return sandbox.Result{Status: 4}
				}
				return sandbox.Result{}
			}},
			failures: []string{"0 hash{n=3}:  4 unreliable: base's twin, the same build, fails where base did not: prepare: exit status 4 (1 of 2 runs)"},
		},
		{
			name: "cleanup fails in some runs of the base", bench: prepared, working: 0,
			lab: fakeLab{
				program: only(map[string]func(int) sandbox.Result{"1": always(crash())}),
				clean: func(v string, n int) sandbox.Result {
					if v == "0" && n == 2 {
						return sandbox.Result{Status: 5}
					}
					return sandbox.Result{}
				},
			},
			failures: []string{"0 hash{n=3}:  5 unreliable: base fails in some runs: cleanup: exit status 5 (1 of 3 runs)"},
		},
		{
			name: "prepare runs into its time limit", bench: prepared, working: 2,
			lab: fakeLab{program: only(nil), prep: func(v string, _ int) sandbox.Result {
				if v == "2" {
					return late()
				}
				return sandbox.Result{}
			}},
			failures: []string{"2 hash{n=3}: SIGKILL -1 prepare: timed out after 600 s (2 of 2 runs)"},
			runs:     map[string]int{"0": 1, "twin": 1, "1": 1},
		},
		{
			name: "row that base prints and its twin does not", bench: gobench, working: 3,
			lab: fakeLab{program: output(map[string]string{
				"twin": "BenchmarkA-2 1 1 ns/op\nBenchmarkC-2 1 1 ns/op\n", "1": "BenchmarkA-2 1 1 ns/op\n", "2": two + "BenchmarkC-2 1 1 ns/op\n",
			})},
			failures: []string{"0 hash/B{n=3}:  0 unreliable: base printed a result for it, its twin, the same build, did not"},
		},
		{
			name: "output never the same, no twin", bench: checked, working: 0,
			lab:      fakeLab{noTwin: true, program: random},
			failures: []string{"0 hash{n=3}:  0 its output differs from run to run of the same build, so it cannot be checked"},
			runs:     map[string]int{"0": 2},
		},
		{
			name: "processes left", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"2": leaving(2)})},
			warnings: []string{"hash{n=3}: patch 2 left 2 processes behind, which were killed and not measured"},
		},
		{
			name: "a process left", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"2": leaving(1)})},
			warnings: []string{"hash{n=3}: patch 2 left 1 process behind, which was killed and not measured"},
		},
		{
			name: "processes left by several", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(map[string]func(int) sandbox.Result{"0": leaving(1), "twin": leaving(1), "2": leaving(3)})},
			warnings: []string{"hash{n=3}: base and patch 2 left 1 to 3 processes behind each, which were killed and not measured"},
		},
		{
			name: "a process left by every version", bench: plainBench, working: 3,
			lab: fakeLab{program: only(map[string]func(int) sandbox.Result{
				"0": leaving(1), "twin": leaving(1), "1": leaving(1), "2": leaving(1),
			})},
			warnings: []string{"hash{n=3}: every version left 1 process behind, which was killed and not measured"},
		},
		{
			name: "no trace", bench: plainBench, working: 3,
			lab:      fakeLab{program: only(nil), noTrace: true},
			warnings: []string{"hash{n=3}: peaks of memory cannot be read on this machine: ptrace: operation not permitted"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, s := newLab(t, 3, tt.bench, &tt.lab)
			w := warmUp(t, s)
			var got []string
			for _, f := range w.Failures {
				text := fmt.Sprintf("%d %s: %s %d %s", f.N, f.Benchmark, f.Signal, f.Status, f.Reason)
				if f.Flaky {
					text += " flaky"
				}
				got = append(got, text)
			}
			if d := cmp.Diff(tt.runs, l.runs); tt.runs != nil && d != "" {
				t.Errorf("runs (-want +got):\n%s", d)
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
				if strings.HasPrefix(f.Benchmark, "hash/") {
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
			if err := jsonl.Write(&lines, w.Samples); err != nil {
				t.Fatal(err)
			}
			if _, err := jsonl.Read("record", &lines); err != nil {
				t.Error(err)
			}
			// A round goes without those that fail.
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if tt.working == 0 {
				if d := cmp.Diff(Round{}, r); d != "" {
					t.Errorf("a round of what is given up (-want +got):\n%s", d)
				}
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

			// Once memory is known well enough, only what costs nothing is read.
			s.EnoughPeaks(0, true)
			before = l.runs["0"]
			if r, err = s.Round(t.Context(), 0, 2); err != nil {
				t.Fatal(err)
			}
			peaks := 3
			if tt.apart {
				peaks = 0
			}
			if got := l.runs["0"] - before; got != 1 {
				t.Errorf("base ran %d times in a round without peaks, want once", got)
			}
			for _, x := range r.Samples {
				if tt.apart && Apart(x.Metric) {
					t.Errorf("a sample of %s in a round without peaks", x.Metric)
				}
			}
			if rss, wall := len(pick(r.Samples, "rss")), len(pick(r.Samples, "wall")); rss != peaks || wall != 3 {
				t.Errorf("%d samples of rss and %d of wall, want %d and 3", rss, wall, peaks)
			}
			s.EnoughPeaks(0, false)
			if r, err = s.Round(t.Context(), 0, 3); err != nil {
				t.Fatal(err)
			}
			if got := len(pick(r.Samples, "rss")); got != 3 {
				t.Errorf("%d samples of rss once they are wanted again, want 3", got)
			}
		})
	}
}

// A benchmark that fails in a quarter of its runs on every version alike is no
// patch's fault: hardly ever does one fail in five runs of five while the base,
// run as often, never does.
func TestFlakyBlamesNobody(t *testing.T) {
	const evaluations, rounds = 400, 3
	for _, share := range []float64{0.05, 0.24, 0.5} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			_, s := newLab(t, 4, plainBench, &fakeLab{program: func(string, int, sandbox.Command) (sandbox.Result, error) {
				if rng.Float64() < share {
					return sandbox.Result{Status: 1}, nil
				}
				return fine(), nil
			}})
			blamed, givenUp, flaky := 0, 0, 0
			count := func(list []bench.Failure) {
				for _, f := range list {
					switch {
					case f.N == 0:
						givenUp++
					case f.Flaky:
						flaky++
					default:
						blamed++
					}
				}
			}
			for range evaluations {
				count(warmUp(t, s).Failures)
				for round := 1; round <= rounds; round++ {
					r, err := s.Round(t.Context(), 0, round)
					if err != nil {
						t.Fatal(err)
					}
					count(r.Failures)
				}
			}
			t.Logf("of %d evaluations %d gave up, %d times a version was flaky, %d times blamed", evaluations, givenUp, flaky, blamed)
			if blamed > 1 {
				t.Errorf("a patch was blamed %d times in %d evaluations", blamed, evaluations)
			}
			if givenUp == 0 || flaky == 0 {
				t.Errorf("given up %d times, flaky %d times: the test reaches neither", givenUp, flaky)
			}
		})
	}
}
