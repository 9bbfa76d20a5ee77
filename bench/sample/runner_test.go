package sample

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// A box that breaks is our failure: it is started anew, once for a run.
func TestBrokenBox(t *testing.T) {
	broken := errors.New("runner is gone")
	tests := []struct {
		name  string
		times int
		err   error
	}{
		{"once", 1, nil},
		{"twice", 2, broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			left := 0
			l, s := newLab(t, 2, plainBench, &fakeLab{program: func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
				if v == "1" && left > 0 {
					left--
					return sandbox.Result{}, broken
				}
				return fine(), nil
			}})
			warmUp(t, s)
			left = tt.times
			r, err := s.Round(t.Context(), 0, 1)
			if !errors.Is(err, tt.err) {
				t.Fatalf("error = %v, want %v", err, tt.err)
			}
			if l.starts["1"] != 2 || l.starts["0"] != 1 {
				t.Errorf("boxes started: %v", l.starts)
			}
			if tt.err == nil && len(kept(r.Samples)) != 3 {
				t.Errorf("samples of %q count", kept(r.Samples))
			}
		})
	}
}

// A program that takes its runner with it has failed, and the rest goes on.
func TestEndsItsRunner(t *testing.T) {
	prepared := plainBench
	prepared.Prepare.Args, prepared.Cleanup.Args = []string{"prepare"}, []string{"cleanup"}
	killing := func(version string, from, to int) func(string, int, sandbox.Command) (sandbox.Result, error) {
		return func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
			if v == version && n >= from && n < to {
				return sandbox.Result{}, errGone
			}
			return fine(), nil
		}
	}
	const always = 1 << 30
	in := func(version, which string) func(string, string, int) bool {
		return func(v, part string, _ int) bool { return v == version && part == which }
	}
	tests := []struct {
		name   string
		bench  bench.Benchmark
		lab    fakeLab
		warmUp []string // failures
		round  []string
		kept   int // runs of the round that count
		starts map[string]int
	}{
		{
			"patch", plainBench, fakeLab{program: killing("1", 0, always)},
			[]string{"1 it ended the runner that started it (5 of 5 runs)"}, nil, 2, map[string]int{"0": 1, "twin": 1, "1": 6},
		},
		{
			"base", plainBench, fakeLab{program: killing("0", 0, always)},
			[]string{"0 it ended the runner that started it (2 of 2 runs)"}, nil, 0, map[string]int{"0": 3, "twin": 1, "1": 1},
		},
		{
			"once in the round", plainBench, fakeLab{program: killing("1", 1, 2)},
			nil, nil, 3, map[string]int{"0": 1, "twin": 1, "1": 2},
		},
		{
			"from the round on", plainBench, fakeLab{program: killing("1", 1, always)},
			nil, []string{"1 it ended the runner that started it (2 of 3 runs) flaky"}, 2, map[string]int{"0": 1, "twin": 1, "1": 3},
		},
		{
			"prepare", prepared, fakeLab{program: only(nil), kills: in("1", "prepare")},
			[]string{"1 prepare: it ended the runner that started it (5 of 5 runs)"}, nil, 2, map[string]int{"0": 1, "twin": 1, "1": 6},
		},
		{
			"cleanup", prepared, fakeLab{program: only(nil), kills: in("1", "cleanup")},
			[]string{"1 cleanup: it ended the runner that started it (5 of 5 runs)"}, nil, 2, map[string]int{"0": 1, "twin": 1, "1": 6},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, s := newLab(t, 2, tt.bench, &tt.lab)
			tell := func(list []bench.Failure) []string {
				var out []string
				for _, f := range list {
					text := fmt.Sprintf("%d %s", f.N, f.Reason)
					if f.Flaky {
						text += " flaky"
					}
					out = append(out, text)
				}
				return out
			}
			if d := cmp.Diff(tt.warmUp, tell(warmUp(t, s).Failures)); d != "" {
				t.Errorf("failures of the warm-up (-want +got):\n%s", d)
			}
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.round, tell(r.Failures)); d != "" {
				t.Errorf("failures of the round (-want +got):\n%s", d)
			}
			if got := kept(r.Samples); len(got) != tt.kept {
				t.Errorf("runs that count: %q, want %d", got, tt.kept)
			}
			if d := cmp.Diff(tt.starts, l.starts); d != "" {
				t.Errorf("boxes started (-want +got):\n%s", d)
			}
		})
	}
}

// Our own trouble stays an error.
func TestRunnerTrouble(t *testing.T) {
	refused := errors.New("no more boxes")
	tests := []struct {
		name   string
		hangs  time.Duration // before the runner is gone
		refuse bool
		want   error
	}{
		{"no other box", 0, true, refused},
		{"hangs until it is killed", 11 * time.Minute, false, errGone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var l *fakeLab
			trouble := false
			l, s := newLab(t, 2, plainBench, &fakeLab{program: func(v string, _ int, _ sandbox.Command) (sandbox.Result, error) {
				if v != "1" || !trouble {
					return fine(), nil
				}
				l.clock = l.clock.Add(tt.hangs)
				if tt.refuse {
					l.noStart = refused
				}
				return sandbox.Result{}, errGone
			}})
			warmUp(t, s)
			trouble = true
			if r, err := s.Round(t.Context(), 0, 1); !errors.Is(err, tt.want) {
				t.Errorf("error = %v, want %v; %+v", err, tt.want, r.Failures)
			}
			// When the trouble is over, the round can be had after all.
			trouble, l.noStart = false, nil
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := kept(r.Samples); len(got) != 3 {
				t.Errorf("samples of %q count", got)
			}
		})
	}
}
