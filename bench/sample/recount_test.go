package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
	"patchbench/bench/sandbox/perf"
)

// A program that is never twice the same is counted again in rounds.
func TestRecount(t *testing.T) {
	sb := openSandbox(t, false)
	dir := buildCounted(t)
	suite := &bench.Suite{Name: "counted", Benchmarks: []bench.Benchmark{{
		Name: "clock", Run: bench.Program{Args: []string{"./counted", "clock", "300000"}}, Metrics: []string{"instructions", "allocs", "heap"},
	}}}
	s, err := Open(t.Context(), sb, suite, []Version{countedVersion(t, dir, sb.Own, Version{}), countedVersion(t, dir, sb.Own, Version{Twin: true}),
		countedVersion(t, dir, sb.Own, Version{N: 1})}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	// Whatever this machine can.
	s.perfKnown, s.noPerf = true, "not here"
	if _, err := s.WarmUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	var got []string
	values := map[float64]bool{}
	for round := 1; round <= 3; round++ {
		e, err := s.Exact(t.Context(), 0)
		if round > 1 {
			e, err = s.Recount(t.Context(), 0, round, []string{"instructions"})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range e.Samples {
			if l.Metric != "instructions" {
				if round > 1 {
					t.Errorf("round %d: %s", round, l.Metric)
				}
				continue
			}
			got = append(got, fmt.Sprintf("round %d: %s", l.Round, Version{N: l.Version, Twin: l.Twin}))
			values[l.Value] = true
			if l.Failed != nil || l.Value < 900_000 || l.Value > 9_000_000 {
				t.Errorf("%+v", l)
			}
		}
	}
	slices.Sort(got) // the order within a round is random
	var want []string
	for round := 1; round <= 3; round++ {
		for _, v := range []string{"base", "patch 1", "the base's twin"} {
			want = append(want, fmt.Sprintf("round %d: %s", round, v))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(values) < 3 {
		t.Errorf("the program is nearly always the same: %v", values)
	}
}

// Each further round has an order of its own, and a tool that was found out not to
// do is not tried again.
func TestRecountOrder(t *testing.T) {
	b := plainBench
	b.Metrics = []string{"instructions", "allocs"}
	var ran, tools []string
	_, s := newLab(t, 4, b, &fakeLab{program: func(v string, _ int, c sandbox.Command) (sandbox.Result, error) {
		switch text := strings.Join(c.Args, " "); {
		case strings.Contains(text, "exec valgrind"):
			ran = append(ran, v)
			_, tool, _ := strings.Cut(text, "--tool=")
			tool, _, _ = strings.Cut(tool, " ")
			tools = append(tools, tool)
		case strings.Contains(text, "totals:"):
			return printed("== 0/7.out\npid: 7\ntotals: 500\n== 0/8.out\npid: 8\ntotals: 100\n"), nil
		case strings.Contains(text, "$PATCHBENCH_COUNTERS"):
			return printed(valgrindLog("==7== I refs: 500\n==7== Total: 64 bytes in 2 blocks\n") + "== 0/8.log\n==8== Parent PID: 7\n==8== I refs: 100\n"), nil
		}
		return fine(), nil
	}})
	warmUp(t, s)
	if _, err := s.Exact(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(tools, "cachegrind") || !slices.Contains(tools, "callgrind") {
		t.Fatalf("tools %v: the program does not fork", tools)
	}
	var orders [][]string
	for round := 2; round <= 4; round++ {
		ran, tools = nil, nil
		if _, err := s.Recount(t.Context(), 0, round, []string{"instructions"}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slices.Repeat([]string{"callgrind"}, 5), tools); d != "" {
			t.Errorf("tools (-want +got):\n%s", d)
		}
		orders = append(orders, slices.Clone(ran))
		slices.Sort(ran)
		if d := cmp.Diff([]string{"0", "1", "2", "3", "twin"}, ran); d != "" {
			t.Errorf("versions (-want +got):\n%s", d)
		}
	}
	if slices.Equal(orders[0], orders[1]) && slices.Equal(orders[1], orders[2]) {
		t.Errorf("always in the order %v", orders[0])
	}
	for _, metrics := range [][]string{nil, {"sys"}, {"heap"}} {
		if e, err := s.Recount(t.Context(), 0, 5, metrics); err != nil || e.Samples != nil {
			t.Errorf("%v, for which nobody has asked: %v, %v", metrics, e, err)
		}
	}
}

// Where the kernel counts, every round has a figure of every version. The event is
// one that each machine has, in the place of instructions.
func TestCountedInRounds(t *testing.T) {
	for _, unsafe := range []bool{false, true} {
		t.Run(fmt.Sprintf("unsafe %t", unsafe), func(t *testing.T) {
			sb := openSandbox(t, unsafe)
			suite := &bench.Suite{Name: "counted", Benchmarks: []bench.Benchmark{{
				Name: "shell", Run: bench.Program{Line: "for i in 1 2 3; do cat </dev/null; done"}, Metrics: []string{"instructions"},
			}}}
			dir := t.TempDir()
			s, err := Open(t.Context(), sb, suite, []Version{countedVersion(t, dir, sb.Own, Version{}), countedVersion(t, dir, sb.Own, Version{Twin: true})}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			s.event = perf.PageFaults
			switch says, err := s.Instructions(t.Context()); {
			case err != nil:
				t.Fatal(err)
			case says != "instructions by perf_event":
				lacking(t, says)
			}
			if _, err := s.WarmUp(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			for _, apart := range []bool{false, true} {
				s.states[0].apart = apart
				r, err := s.Round(t.Context(), 0, 1)
				if err != nil {
					t.Fatal(err)
				}
				faults, counts := map[bool]float64{}, map[bool]float64{}
				for _, l := range r.Samples {
					switch l.Metric {
					case "instructions":
						counts[l.Twin] = l.Value
					case "faults":
						faults[l.Twin] = l.Value
					}
				}
				for twin, n := range faults {
					// Those of the start and in the kernel are not the program's.
					if counts[twin] < n/4 || counts[twin] > n*5/4 {
						t.Errorf("apart %t: %.0f counted, of %.0f page faults", apart, counts[twin], n)
					}
				}
				if len(counts) != 2 || len(faults) != 2 {
					t.Errorf("apart %t: counts %v, faults %v", apart, counts, faults)
				}
			}
			if e, err := s.Exact(t.Context(), 0); err != nil || e.Samples != nil {
				t.Errorf("counted under valgrind, too: %v, %v", e, err)
			}
		})
	}
}
