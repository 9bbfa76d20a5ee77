package sample

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
	"patchbench/bench/sandbox/perf"
)

// What becomes of instructions on machines that count them, and on others.
func TestInstructions(t *testing.T) {
	const none = "this machine has no hardware counter"
	tests := []struct {
		name string
		// counted is what becomes of a command whose instructions are to be counted.
		counted func(v string, c sandbox.Command) sandbox.Result
		apart   bool
		bench   func(*bench.Benchmark)
		says    string
		// want are the lines of a round, by version, and what Exact counts.
		want     []string
		counters []string
	}{
		{name: "counted", says: "instructions by perf_event",
			want: []string{"0: 1000", "1: 2000", "twin: 1000"}, counters: []string{"allocs"}},
		{name: "with peaks apart", apart: true, says: "instructions by perf_event",
			want: []string{"0: 1000", "1: 2000", "twin: 1000"}, counters: []string{"allocs"}},
		{name: "with results of its own", says: "instructions by perf_event", bench: func(b *bench.Benchmark) { b.Parse = "gobench" },
			want: []string{"0: 1000", "1: 2000", "twin: 1000"}, counters: []string{"allocs"}},
		{name: "copies", says: "instructions by perf_event", bench: func(b *bench.Benchmark) { b.Parallel = 3 },
			want: []string{"0: 3000", "1: 6000", "twin: 3000"}, counters: []string{"allocs"}},
		{name: "less a baseline", says: "instructions by perf_event", bench: func(b *bench.Benchmark) {
			b.Baseline = &bench.Benchmark{Name: "start", Run: bench.Program{Args: []string{"./kit", "start"}}}
		}, want: []string{"0: 900", "1: 1900", "twin: 900"}, counters: []string{"allocs"}},
		{name: "no counter", counted: func(string, sandbox.Command) sandbox.Result {
			r := fine()
			r.Uncounted = none
			return r
		}, says: "instructions by valgrind: " + none, counters: []string{"instructions", "allocs"}},
		{name: "a counter that stands still", counted: func(string, sandbox.Command) sandbox.Result { return fine() },
			says: "instructions by valgrind: the hardware counter of this machine stands still", counters: []string{"instructions", "allocs"}},
		{name: "not counted once", counted: func(v string, c sandbox.Command) sandbox.Result {
			r := fine()
			r.Counted = 1000
			if v == "1" {
				r.Counted, r.Uncounted = 0, "in use"
			}
			return r
		}, says: "instructions by perf_event", want: []string{"0: 1000", "1: in use", "twin: 1000"}, counters: []string{"allocs"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := plainBench
			b.Metrics = []string{"instructions", "allocs", "sys"}
			if tt.bench != nil {
				tt.bench(&b)
			}
			if tt.counted == nil {
				tt.counted = func(v string, c sandbox.Command) sandbox.Result {
					r := fine()
					if b.Parse != "" {
						r = printed("BenchmarkKit 10 100 ns/op\n")
					}
					r.Counted = map[string]int64{"1": 2000}[v]
					switch {
					case c.Args[len(c.Args)-1] == "start":
						r.Counted = 100
					case r.Counted == 0:
						r.Counted = 1000
					}
					return r
				}
			}
			_, s := newLab(t, 2, b, &fakeLab{program: func(v string, _ int, c sandbox.Command) (sandbox.Result, error) {
				if c.Count != nil && *c.Count != perf.Instructions {
					t.Errorf("event %v", *c.Count)
				}
				if c.Count != nil && !c.Peaks && c.Args[0] != "sh" {
					t.Errorf("%v is counted where it is timed alone", c.Args)
				}
				r := tt.counted(v, c)
				if c.Count == nil {
					r.Counted, r.Uncounted = 0, ""
				}
				return r, nil
			}})
			warmUp(t, s)
			s.states[0].apart = tt.apart
			says, err := s.Instructions(t.Context())
			if err != nil || says != tt.says {
				t.Errorf("says %q, %v; want %q", says, err, tt.says)
			}
			if d := cmp.Diff(tt.counters, s.Counters(0)); d != "" {
				t.Errorf("counted by Exact (-want +got):\n%s", d)
			}
			got := map[string]string{}
			r, err := s.Round(t.Context(), 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range r.Samples {
				if l.Metric != "instructions" {
					continue
				}
				v, text := fmt.Sprint(l.Version), fmt.Sprint(l.Value)
				if l.Twin {
					v = "twin"
				}
				if l.Failed != nil {
					text = l.Failed.String()
				}
				if l.Benchmark != "hash" || l.Unit != bench.Count || l.Position == nil || got[v] != "" {
					t.Errorf("sample %+v", l)
				}
				got[v] = text
			}
			want := map[string]string{}
			for _, w := range tt.want {
				v, text, _ := strings.Cut(w, ": ")
				want[v] = text
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("in a round (-want +got):\n%s", d)
			}
		})
	}
}
