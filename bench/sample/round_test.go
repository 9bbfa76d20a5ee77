package sample

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// summary tells for each run of a round, in order, what became of it:
// "VERSION[@POSITION] [discarded] [failed]".
func summary(list []bench.Sample) []string {
	var out []string
	for _, s := range list {
		if s.Metric != "wall" {
			continue
		}
		v := fmt.Sprint(s.Version)
		if s.Twin {
			v = "twin"
		}
		if s.Discarded != "" {
			v += " discarded " + s.Discarded
		}
		if s.Failed != nil {
			v += " failed " + s.Failed.String()
		}
		out = append(out, v)
	}
	return out
}

// kept are the versions with samples that count, sorted.
func kept(list []bench.Sample) []string {
	var out []string
	for _, s := range list {
		if s.Metric == "wall" && s.Discarded == "" && s.Failed == nil {
			v := fmt.Sprint(s.Version)
			if s.Twin {
				v = "twin"
			}
			out = append(out, v)
		}
	}
	return out
}

func TestRoundSamples(t *testing.T) {
	_, s := newLab(t, 1, plainBench, &fakeLab{program: only(nil)})
	warmUp(t, s)
	r, err := s.Round(t.Context(), 0, 3)
	if err != nil {
		t.Fatal(err)
	}
	var base []bench.Sample
	for _, l := range r.Samples {
		if !l.Twin {
			base = append(base, l)
		}
	}
	position := *base[0].Position
	line := func(metric, unit string, v float64, covariates map[string]float64) bench.Sample {
		return bench.Sample{
			Round: 3, Benchmark: "hash", Params: map[string]string{"n": "3"}, Metric: metric, Unit: unit,
			Value: v, Position: &position, Covariates: covariates,
		}
	}
	covariates := map[string]float64{"psi_ns": 1000, "nivcsw": 4}
	want := []bench.Sample{
		line("wall", "s", 0.1, covariates),
		line("cpu", "s", 0.08, covariates),
		line("user", "s", 0.06, nil),
		line("sys", "s", 0.02, nil),
		line("rss", "B", 2<<20, nil),
		line("size", "B", 5<<20, nil),
		line("rss_tree", "B", 3<<20, nil),
		line("faults", "1", 100, nil),
		line("switches", "1", 7, nil),
		line("reads", "B", 8, nil),
		line("writes", "B", 16, nil),
	}
	if d := cmp.Diff(want, base); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
}

func TestRoundParsed(t *testing.T) {
	b := plainBench
	b.Parse = "gobench"
	_, s := newLab(t, 1, b, &fakeLab{program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
		if c.KeepStdout == 0 {
			t.Error("output is not kept")
		}
		return printed("goos: linux\nBenchmarkEncode/n=5-2   100   2000 ns/op   3 MB/s   16 B/op   1 allocs/op   9 cells/op\nPASS\n"), nil
	}})
	warmUp(t, s)
	r, err := s.Round(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range r.Samples {
		if !l.Twin {
			got = append(got, fmt.Sprintf("%s %s %g %s %d", bench.RowName(l.Benchmark, l.Params), l.Metric, l.Value, l.Unit, len(l.Covariates)))
		}
	}
	want := []string{
		"hash{n=3} rss 2.097152e+06 B 0",
		"hash{n=3} size 5.24288e+06 B 0",
		"hash{n=3} rss_tree 3.145728e+06 B 0",
		"hash/Encode/n=5{n=3} sec/op 2e-06 s 2",
		"hash/Encode/n=5{n=3} B/s 3e+06 B/s 0",
		"hash/Encode/n=5{n=3} B/op 16 B 0",
		"hash/Encode/n=5{n=3} allocs/op 1 1 0",
		"hash/Encode/n=5{n=3} cells/op 9 cells/op 0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("samples (-want +got):\n%s", d)
	}
}

// Positions follow the random order, and the same seed repeats it.
func TestRoundOrder(t *testing.T) {
	orders := func() []string {
		_, s := newLab(t, 4, plainBench, &fakeLab{program: only(nil)})
		warmUp(t, s)
		var all []string
		for round := range 20 {
			r, err := s.Round(t.Context(), 0, round+1)
			if err != nil {
				t.Fatal(err)
			}
			for i, l := range pick(r.Samples, "wall") {
				if *l.Position != i {
					t.Errorf("round %d: run %d has position %d", round+1, i, *l.Position)
				}
			}
			all = append(all, strings.Join(summary(r.Samples), " "))
		}
		return all
	}
	a, b := orders(), orders()
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("two samplers of one seed (-first +second):\n%s", d)
	}
	distinct := map[string]bool{}
	for _, o := range a {
		distinct[o] = true
	}
	if len(distinct) < 15 {
		t.Errorf("%d different orders in 20 rounds", len(distinct))
	}
}

func TestRoundFailures(t *testing.T) {
	// The warm-up runs each version once; run 1 is that of the first round.
	at := func(runs ...int) func(int) sandbox.Result {
		return func(n int) sandbox.Result {
			for _, r := range runs {
				if n == r {
					return crash()
				}
			}
			return fine()
		}
	}
	from := func(first int) func(int) sandbox.Result {
		return func(n int) sandbox.Result {
			if n >= first {
				return crash()
			}
			return fine()
		}
	}
	tests := []struct {
		name     string
		bad      map[string]func(int) sandbox.Result
		kept     string // versions with samples that count, each round sorted
		next     string // and in the round after it
		failures []string
		tries    int
		working  int
	}{
		{"none", nil, "0 1 2 twin", "0 1 2 twin", nil, 1, 3},
		{"once", map[string]func(int) sandbox.Result{"1": at(1)}, "0 1 2 twin", "0 1 2 twin", nil, 2, 3},
		{"again", map[string]func(int) sandbox.Result{"1": from(1)}, "0 2 twin", "0 2 twin", []string{"1 SIGSEGV (2 of 3 runs) flaky"}, 2, 2},
		{"two at once", map[string]func(int) sandbox.Result{"1": from(1), "2": from(1)}, "0 twin", "0 twin", []string{"1 SIGSEGV (2 of 3 runs) flaky", "2 SIGSEGV (2 of 3 runs) flaky"}, 3, 1},
		{"one fails, then another once", map[string]func(int) sandbox.Result{"1": from(1), "2": at(1)}, "0 2 twin", "0 2 twin", []string{"1 SIGSEGV (2 of 3 runs) flaky"}, 3, 2},
		{"base once", map[string]func(int) sandbox.Result{"0": at(1)}, "0 1 2 twin", "0 1 2 twin", nil, 2, 3},
		{"base", map[string]func(int) sandbox.Result{"0": from(1)}, "", "", []string{"0 unreliable: base fails in some runs: SIGSEGV (2 of "}, 2, 0},
		{"twin", map[string]func(int) sandbox.Result{"twin": from(1)}, "", "", []string{"0 unreliable: base's twin, the same build, fails where base did not: SIGSEGV (2 of "}, 2, 0},
		{"a patch, and the base once", map[string]func(int) sandbox.Result{"1": from(1), "0": at(1)}, "", "", []string{"0 unreliable: base fails in some runs: SIGSEGV (1 of "}, 3, 0},
		{"a patch, and the twin once", map[string]func(int) sandbox.Result{"1": from(1), "twin": at(1)}, "", "", []string{"0 unreliable: base's twin, the same build, fails where base did not: SIGSEGV (1 of "}, 3, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s := newLab(t, 3, plainBench, &fakeLab{program: only(tt.bad)})
			warmUp(t, s)
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
			empty := cmpopts.EquateEmpty()
			if d := cmp.Diff(strings.Fields(tt.kept), kept(r.Samples), sorted, empty); d != "" {
				t.Errorf("samples that count (-want +got):\n%s\n%q", d, summary(r.Samples))
			}
			var failures []string
			for i, f := range r.Failures {
				text := fmt.Sprintf("%d %s", f.N, f.Reason)
				if f.Flaky {
					text += " flaky"
				}
				// How many runs the base had by then hangs on the order.
				if i < len(tt.failures) && len(tt.failures[i]) < len(text) {
					text = text[:len(tt.failures[i])]
				}
				failures = append(failures, text)
				if f.LogTail != "boom\n" || f.Signal != "SIGSEGV" || f.Benchmark != "hash{n=3}" {
					t.Errorf("failure = %+v", f)
				}
			}
			if d := cmp.Diff(tt.failures, failures, sorted); d != "" {
				t.Errorf("failures (-want +got):\n%s", d)
			}
			if d := cmp.Diff(r.Failures, recordedFailures(r.Samples), cmpopts.IgnoreFields(bench.Failure{}, "Reason", "Flaky", "LogTail")); d != "" {
				t.Errorf("failures by the record (-returned +record):\n%s", d)
			}
			tries := 1 + len(r.Warnings)
			for _, l := range r.Samples {
				if l.Discarded != "" && l.Discarded != "failed" {
					t.Errorf("discarded %q", l.Discarded)
				}
			}
			if tries != tt.tries {
				t.Errorf("%d tries, want %d: %q", tries, tt.tries, summary(r.Samples))
			}
			if r.Working != tt.working {
				t.Errorf("working = %d, want %d", r.Working, tt.working)
			}
			r, err = s.Round(t.Context(), 0, 2)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Fields(tt.next), kept(r.Samples), sorted, empty); d != "" {
				t.Errorf("the next round (-want +got):\n%s", d)
			}
			if len(r.Failures) != 0 {
				t.Errorf("the next round fails again: %+v", r.Failures)
			}
		})
	}
}

func TestRoundAllFail(t *testing.T) {
	_, s := newLab(t, 2, plainBench, &fakeLab{program: func(string, int, sandbox.Command) (sandbox.Result, error) { return crash(), nil }})
	if w := warmUp(t, s); w.Working != 0 || len(w.Failures) != 1 || w.Failures[0].N != 0 {
		t.Errorf("warm-up = %+v", w)
	}
	r, err := s.Round(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Round{}, r); d != "" {
		t.Errorf("a round of nothing (-want +got):\n%s", d)
	}
}

// A row that a version printed in its warm-up and then no longer is a failure.
func TestRoundRowVanishes(t *testing.T) {
	b := plainBench
	b.Parse = "gobench"
	_, s := newLab(t, 2, b, &fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
		if v == "1" && n > 0 {
			return printed("BenchmarkA 1 1 ns/op\n"), nil
		}
		return printed("BenchmarkA 1 1 ns/op\nBenchmarkB 1 1 ns/op\n"), nil
	}})
	warmUp(t, s)
	r, err := s.Round(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Failures) != 1 || r.Failures[0].Reason != "printed no result for B (2 of 3 runs)" {
		t.Errorf("failures = %+v", r.Failures)
	}
	want := []bench.Failure{{N: 1, Benchmark: "hash{n=3}"}, {N: 1, Benchmark: "hash/A{n=3}"}, {N: 1, Benchmark: "hash/B{n=3}"}}
	if d := cmp.Diff(want, recordedFailures(r.Samples)); d != "" {
		t.Errorf("failures by the record (-want +got):\n%s", d)
	}
}

func TestRoundStall(t *testing.T) {
	slow := func(wall time.Duration, psi float64) sandbox.Result {
		r := fine()
		r.Wall, r.PressureNS = wall, int64(psi*float64(wall))
		return r
	}
	tests := []struct {
		name     string
		round    int // 1 is the first after the warm-up
		result   sandbox.Result
		repeated bool // repeats: the run is slow in every try
		tries    int
	}{
		{"slow and waiting", 6, slow(time.Second, 0.9), false, 2},
		{"slow and waiting again", 6, slow(time.Second, 0.9), true, 2},
		{"slow and working", 6, slow(time.Second, 0.3), false, 1},
		{"waiting but not far out", 6, slow(400*time.Millisecond, 0.9), false, 1},
		{"pressure unknown", 6, slow(time.Second, -1e-9), false, 1},
		{"too early to say", 3, slow(time.Second, 0.9), false, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s := newLab(t, 2, plainBench, &fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if v == "1" && (n == tt.round || n > tt.round && tt.repeated) {
					return tt.result, nil
				}
				return fine(), nil
			}})
			warmUp(t, s)
			for round := 1; round <= tt.round; round++ {
				r, err := s.Round(t.Context(), 0, round)
				if err != nil {
					t.Fatal(err)
				}
				tries := 1
				if len(r.Warnings) > 0 {
					tries += len(r.Warnings)
				}
				want := 1
				if round == tt.round {
					want = tt.tries
				}
				if tries != want {
					t.Errorf("round %d: %d tries, want %d: %q", round, tries, want, r.Warnings)
				}
				if got := kept(r.Samples); len(got) != 3 {
					t.Errorf("round %d: samples of %q count", round, got)
				}
				for _, l := range r.Samples {
					if l.Discarded != "" && l.Discarded != "stall" {
						t.Errorf("discarded %q", l.Discarded)
					}
				}
				if round == tt.round && tt.tries == 2 {
					discarded := 0
					for _, l := range r.Samples {
						if l.Discarded == "stall" && l.Version == 1 && l.Metric == "wall" {
							discarded++
						}
					}
					if discarded != 1 {
						t.Errorf("%d runs of version 1 are marked, want 1: %q", discarded, summary(r.Samples))
					}
				}
			}
		})
	}
}

// Whenever ctx ends, an incomplete round leaves no trace.
func TestRoundCancelled(t *testing.T) {
	for runs := range 4 {
		t.Run(fmt.Sprint("after run ", runs), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			total, stop := 0, -1
			_, s := newLab(t, 3, plainBench, &fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if total == stop {
					cancel()
					return sandbox.Result{}, context.Canceled
				}
				total++
				if v == "1" && n > 0 {
					return crash(), nil
				}
				return fine(), nil
			}})
			warmUp(t, s)
			stop = total + runs
			r, err := s.Round(ctx, 0, 1)
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("error = %v", err)
			}
			if d := cmp.Diff(Round{}, r); d != "" {
				t.Errorf("an incomplete round (-want +got):\n%s", d)
			}
			if _, err := s.Round(ctx, 0, 1); !errors.Is(err, context.Canceled) {
				t.Errorf("with an ended context: error = %v", err)
			}
			if _, err := s.WarmUp(ctx, 0); !errors.Is(err, context.Canceled) {
				t.Errorf("warm-up with an ended context: error = %v", err)
			}
			for i, n := range s.states[0].runs {
				if n[0] != 1 || s.states[0].upto[i] != 1 {
					t.Errorf("slot %d: %d runs are remembered, rows %d", i, n, s.states[0].upto[i])
				}
			}
		})
	}
}

func TestRoundMisuse(t *testing.T) {
	_, s := newLab(t, 1, plainBench, &fakeLab{program: only(nil)})
	if _, err := s.Round(t.Context(), 0, 1); err == nil || !strings.Contains(err.Error(), "no warm-up") {
		t.Errorf("round before the warm-up: %v", err)
	}
	warmUp(t, s)
	for _, tt := range []struct{ b, round int }{{-1, 1}, {1, 1}, {0, 0}} {
		if _, err := s.Round(t.Context(), tt.b, tt.round); err == nil {
			t.Errorf("benchmark %d, round %d: no error", tt.b, tt.round)
		}
	}
}

// A version that fails under the trace alone, where peaks are read in a round of
// their own, fails as any other: the timed runs come first, the failure is told
// once, and its timed run does not count.
func TestRoundFailsInPeaks(t *testing.T) {
	bad := false
	var runs []string
	_, s := newLab(t, 3, plainBench, &fakeLab{stopCost: time.Second, program: func(v string, n int, c sandbox.Command) (sandbox.Result, error) {
		kind := "timed "
		if c.Peaks {
			kind = "peaks "
		}
		runs = append(runs, kind+v)
		r := fine()
		if bad && v == "2" && c.Peaks {
			r = crash()
		}
		return r, nil
	}})
	if w := warmUp(t, s); !w.PeaksApart {
		t.Fatal("peaks are not read apart")
	}
	round := func(n int) Round {
		t.Helper()
		runs = nil
		r, err := s.Round(t.Context(), 0, n)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	round(1)
	for k, r := range runs {
		if want := []string{"timed", "peaks"}[k*2/len(runs)]; !strings.HasPrefix(r, want) {
			t.Errorf("run %d of %d is %q, want it %s", k+1, len(runs), r, want)
		}
	}
	bad = true
	r := round(2)
	if len(r.Failures) != 1 || r.Failures[0].N != 2 || r.Working != 2 {
		t.Errorf("failures %+v, %d working; want version 2 alone to fail", r.Failures, r.Working)
	}
	told := 0
	for _, l := range r.Samples {
		switch {
		case l.Discarded != "" || l.Version != 2:
		case l.Failed == nil:
			t.Errorf("version 2 has failed, but %s is kept", l.Metric)
		default:
			told++
		}
	}
	if got := len(kept(r.Samples)); told != 1 || got != 3 {
		t.Errorf("the failure is told %d times, %d wall times are kept; want 1, and 3 with the twin's", told, got)
	}
	if r = round(3); len(runs) != 6 || len(kept(r.Samples)) != 3 {
		t.Errorf("the next round runs %v", runs)
	}
}
