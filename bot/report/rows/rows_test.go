package rows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store"
)

func ptr[T any](v T) *T { return &v }

// evaluation is a series of m patches with a row for each text: "NAME METRIC
// VERDICT...", the verdicts those of the steps and, at the end, of the total.
func evaluation(m int, texts ...string) *store.Evaluation {
	e := &store.Evaluation{Series: &mbox.Series{Total: m}}
	for n := range m + 1 {
		e.Versions = append(e.Versions, bench.Version{N: n, Name: fmt.Sprintf("%d/%d", n, m), State: bench.Built})
	}
	for _, text := range texts {
		f := strings.Fields(text)
		c := bench.Comparison{Benchmark: f[0], Metric: f[1], Tested: true, Rounds: 20}
		for i, v := range f[2:] {
			s := bench.Step{N: min(i+1, m), Verdict: bench.Verdict(v), Change: ptr(0.01)}
			if v == string(bench.Worse) {
				s.Change = ptr(0.05)
			}
			if i == m {
				c.Total = s
			} else {
				c.Steps = append(c.Steps, s)
			}
		}
		e.Results = append(e.Results, c)
	}
	return e
}

func names(list []Row) (all []string) {
	for _, w := range list {
		all = append(all, w.Name+" "+w.Label)
	}
	return all
}

func TestOf(t *testing.T) {
	e := evaluation(2, "a cpu same same same", "b rss better same better", "c cpu same worse worse", "c wall same unclear unclear",
		"d cpu not-measured not-measured not-measured", "e10 cpu same unclear same", "e2 cpu same unclear same", "f wall worse same same")
	e.Results[2].Rounds = 60
	v := Of(e)
	got := map[string][]string{"changed": names(v.Changed), "unclear": names(v.Unclear), "same": names(v.Same), "missing": names(v.Missing)}
	want := map[string][]string{
		"changed": {"c cpu", "f wall", "b rss"}, "unclear": {"c wall", "e2 cpu", "e10 cpu"}, "same": {"a cpu"}, "missing": {"d cpu"},
	}
	if d := cmp.Diff(want, got); d != "" || v.Fewest != 20 || v.Most != 60 {
		t.Errorf("rounds %d to %d, -want +got:\n%s", v.Fewest, v.Most, d)
	}
}

// TestTold leaves wall time out where cpu time says the same, and only in long
// lists.
func TestTold(t *testing.T) {
	var texts []string
	for i := range 7 {
		texts = append(texts, fmt.Sprintf("b%d cpu worse worse", i), fmt.Sprintf("b%d wall worse worse", i))
	}
	if v := Of(evaluation(1, texts[:12]...)); len(v.Told) != 12 {
		t.Errorf("of 12 rows %d are told", len(v.Told))
	}
	texts[1] = "b0 wall better better"
	want := []string{"b0 cpu", "b0 wall", "b1 cpu", "b2 cpu", "b3 cpu", "b4 cpu", "b5 cpu", "b6 cpu"}
	if d := cmp.Diff(want, names(Of(evaluation(1, texts...)).Told)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestNames(t *testing.T) {
	v := Of(evaluation(9))
	for want, list := range map[string][]int{
		"": nil, "base": {0}, "3/9": {3}, "1/9, 2/9": {2, 1}, "1-3/9": {3, 1, 2, 2}, "1/9, 4-6/9, 8/9": {8, 1, 5, 4, 6},
	} {
		if got := v.Names(list); got != want {
			t.Errorf("%v are %q, want %q", list, got, want)
		}
	}
	if got := (&View{Evaluation: &store.Evaluation{}}).Patch(4); got != "4/0" {
		t.Errorf("a patch that has no version is %q", got)
	}
}

func TestValue(t *testing.T) {
	e := evaluation(3, "a cpu same same same same")
	c := &e.Results[0]
	c.Values = []bench.Value{{N: 0, Median: ptr(1.0)}, {N: 1}, {N: 3, Median: ptr(3.0)}}
	e.Versions[1].SameAs, e.Versions[2].SameAs = ptr(0), ptr(1)
	e.Versions = append(e.Versions, bench.Version{N: 4, SameAs: ptr(5)}, bench.Version{N: 5, SameAs: ptr(4)})
	for n, want := range map[int]float64{0: 1, 1: 1, 2: 1, 3: 3, 4: 0, 5: 0, 9: 0, -1: 0} {
		got := 0.0
		if v := Value(e, c, n); v.Median != nil {
			got = *v.Median
		}
		if got != want {
			t.Errorf("version %d: %v, want %v", n, got, want)
		}
	}
}

func TestEffects(t *testing.T) {
	e := evaluation(4, "a cpu same worse worse same worse", "b cpu better same same same better", "c cpu same same same same worse")
	for _, n := range []int{1, 2} {
		e.Results[0].Steps[n].Group = []int{2, 3}
	}
	var got []string
	for _, f := range Of(e).Effects() {
		got = append(got, fmt.Sprintf("%d-%d %s %s", f.Lo, f.Hi, f.Row.Name, f.Step.Verdict))
	}
	if d := cmp.Diff([]string{"1-1 b better", "2-3 a worse", "0-0 c worse"}, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
