package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/headline"
)

// An exact counter and a noisy row of one benchmark each keep their verdict, and
// the noisy one names the counter where it cannot tell, or tells the opposite.
func TestExactBesideNoisy(t *testing.T) {
	instructions := bench.MetricFor("instructions", "1")
	flat := []float64{1, 1, 1, 1}
	up := []float64{1000, 1000, 1050, 1050}
	tests := map[string]struct {
		exact, cpu []float64
		sd         float64
		want       []string // cpu: verdict: reason up to the first ";"
		counter    []string
		summary    string
	}{
		"the counter moves, time is unclear": {up, flat, .2,
			[]string{"unclear: needs about # rounds", "unclear: instructions +5.0 % here", "unclear: needs about # rounds", "total unclear: instructions +5.0 % here"},
			[]string{"same", "worse", "same", "total worse"}, "worse: 2/3 makes b use 5.0 % more instructions"},
		"the counter moves, time is the same": {up, flat, .002,
			[]string{"same: ", "same: ", "same: ", "total same: "},
			[]string{"same", "worse", "same", "total worse"}, "worse: 2/3 makes b use 5.0 % more instructions"},
		"time moves, the counter does not": {[]float64{1000, 1000, 1000, 1000}, []float64{1, 1, 1.1, 1.1}, .002,
			[]string{"same: ", "worse: ", "same: ", "total worse: "},
			[]string{"same", "same", "same", "total same"}, "worse: 2/3 makes b 10.0 % slower (cpu)"},
		"they move together": {up, []float64{1, 1, 1.1, 1.1}, .002,
			[]string{"same: ", "worse: ", "same: ", "total worse: "},
			[]string{"same", "worse", "same", "total worse"}, "worse: 2/3 makes b 10.0 % slower (cpu); 2/3 makes b use 5.0 % more instructions"},
		"they move apart": {up, []float64{1, 1, .9, .9}, .002,
			[]string{"same: ", "better: instructions +5.0 % here", "same: ", "total better: instructions +5.0 % here"},
			[]string{"same", "worse", "same", "total worse"}, "mixed: 2/3 makes b 10.0 % faster (cpu); 2/3 makes b use 5.0 % more instructions"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := append(made(bench.CPU, "b", tt.cpu, 20, tt.sd, 3), made(instructions, "b", tt.exact, 1, 0, 1)...)
			// Another benchmark's counter says nothing of this one.
			s = append(s, made(instructions, "other", []float64{1000, 1200, 1200, 1200}, 1, 0, 1)...)
			versions := builtVersions(4)
			cs := Compare(versions, s, nil, fixed(20)).Comparisons
			got := words(cs[0])
			for i, st := range append(cs[0].Steps, cs[0].Total) {
				reason, _, _ := strings.Cut(st.Reason, ";")
				got[i] += ": " + digits(reason)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("cpu (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.counter, words(cs[1])); d != "" {
				t.Errorf("instructions (-want +got):\n%s", d)
			}
			if _, line := headline.Of(versions, cs[:2], nil); line != tt.summary {
				t.Errorf("summary %q, want %q", line, tt.summary)
			}
		})
	}
}

// digits puts # for a number of rounds.
func digits(s string) string {
	if strings.HasPrefix(s, "needs ") {
		return "needs about # rounds"
	}
	return s
}

// A counter that could not be had is not measured, with its reason, and takes
// nothing else with it; one that does not repeat asks for no rounds.
func TestCounterThatIsNotCounted(t *testing.T) {
	versions := builtVersions(3)
	s := made(bench.Wall, "b", []float64{1, 1, 1}, 20, 0.001, 1)
	line := func(version int, metric, why string, value float64, twin bool) bench.Sample {
		m := bench.MetricFor(metric, "")
		l := bench.Sample{Round: 1, Version: version, Twin: twin, Benchmark: "b", Metric: metric, Unit: m.Unit, Value: value}
		if why != "" {
			l.Failed = &bench.Failed{Status: -1, Reason: why}
		}
		return l
	}
	for n := range versions {
		s = append(s, line(n, "copied", "kit is a Go program", 0, false))
	}
	s = append(s, line(0, "heap", "", 100, false), line(0, "heap", "", 100, true), line(1, "heap", "", 120, false), line(2, "heap", "under valgrind: SIGSEGV", 0, false))
	s = append(s, line(0, "instructions", "", 1000, false), line(0, "instructions", "", 1001, true), line(1, "instructions", "", 1500, false), line(2, "instructions", "", 1500, false))
	r := Compare(versions, s, nil, Options{Seed: 1})
	got := map[string][]string{}
	for _, c := range r.Comparisons {
		got[c.Metric] = append(words(c), c.Steps[1].Reason)
	}
	want := map[string][]string{
		"wall":         {"same", "same", "total same", ""},
		"copied":       {"not-measured", "not-measured", "total not-measured", "kit is a Go program"},
		"heap":         {"worse", "not-measured", "total not-measured", "under valgrind: SIGSEGV"},
		"instructions": {"unclear", "unclear", "total unclear", "one round only"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("verdicts and the reason of the last step (-want +got):\n%s", d)
	}
	if needs := r.Needs(bench.Benchmark{Name: "b"}); len(needs) > 0 {
		t.Errorf("rounds are wanted for a counter: %v", needs)
	}
}

// A metric that is only shown gets verdicts where the suite asks for them.
func TestTested(t *testing.T) {
	m := bench.MetricFor("sys", "")
	s := append(made(m, "a", []float64{1, 1.5}, 20, 0.001, 1), made(m, "b", []float64{1, 1.5}, 20, 0.001, 1)...)
	r := Compare(builtVersions(2), s, nil, Options{Seed: 1, Final: true, Tested: func(row, metric string) bool { return row == "b" && metric == "sys" }})
	got := map[string]bench.Verdict{}
	for _, c := range r.Comparisons {
		got[c.Benchmark] = c.Total.Verdict
		if c.Tested != (c.Benchmark == "b") {
			t.Errorf("%s: tested = %v", c.Benchmark, c.Tested)
		}
	}
	if d := cmp.Diff(map[string]bench.Verdict{"a": bench.Shown, "b": bench.Worse}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
