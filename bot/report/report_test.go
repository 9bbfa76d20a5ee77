package report

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/record"
)

func ptr[T any](v T) *T { return &v }

func render(t *testing.T, e *store.Evaluation, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, e, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			text := render(t, build().Evaluation, Options{})
			cases.Golden(t, name+".txt", text)
			check(t, build().Evaluation, text, 78)
			if again := render(t, build().Evaluation, Options{}); again != text {
				t.Error("a second rendering differs")
			}
			wide := render(t, build().Evaluation, Options{Width: 120})
			check(t, build().Evaluation, wide, 120)
		})
	}
}

// check holds for every text: few and short lines, and nothing foreign but
// printable characters that stand in the evaluation.
func check(t *testing.T, e *store.Evaluation, text string, width int) {
	t.Helper()
	record, err := store.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > mostLines {
		t.Errorf("%d lines", len(lines))
	}
	for i, line := range lines {
		if n := plain.Columns(line); n > width {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if line != strings.TrimRight(line, " ") {
			t.Errorf("line %d ends with blanks: %q", i+1, line)
		}
		for _, r := range line {
			if r < ' ' || r == 0x7f || r >= 0x80 && (plain.Clean(string(r)) != string(r) || !strings.ContainsRune(string(record), r)) {
				t.Errorf("line %d holds %q: %q", i+1, r, line)
			}
		}
	}
}

func TestTextColor(t *testing.T) {
	e := cases.All["planted"]().Evaluation
	text := render(t, e, Options{Color: true})
	cases.Golden(t, "color.txt", text)
	var bare strings.Builder
	for rest := text; rest != ""; {
		before, after, found := strings.Cut(rest, "\x1b[")
		bare.WriteString(before)
		if found {
			_, after, _ = strings.Cut(after, "m")
		}
		rest = after
	}
	if d := cmp.Diff(render(t, e, Options{}), bare.String()); d != "" {
		t.Errorf("colours change the layout (-without +with):\n%s", d)
	}
}

func TestJSON(t *testing.T) {
	for _, name := range []string{"one-improvement", "hostile"} {
		t.Run(name, func(t *testing.T) {
			var a, b bytes.Buffer
			e := cases.All[name]().Evaluation
			if err := JSON(&a, e); err != nil {
				t.Fatal(err)
			}
			cases.Golden(t, name+".json", a.String())
			for _, r := range a.String() {
				if r != '\n' && plain.Clean(string(r)) != string(r) && r != 0x301 {
					t.Errorf("%q stands in the JSON", r)
				}
			}
			back, err := record.Decode(a.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			if err := JSON(&b, back); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(a.String(), b.String()); d != "" {
				t.Errorf("JSON of what was read back (-first +second):\n%s", d)
			}
			record, err := store.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			if err := json.Unmarshal(record, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(a.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the values changed:\n%s", d)
			}
		})
	}
}

// TestContract names each field that scripts may rely on.
func TestContract(t *testing.T) {
	var b bytes.Buffer
	e := cases.All["planted"]().Evaluation
	e.Claims = cases.All["claims"]().Claims
	if err := JSON(&b, e); err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(b.Bytes(), &top); err != nil {
		t.Fatal(err)
	}
	first := func(v any) map[string]any { return v.([]any)[0].(map[string]any) }
	result := first(top["results"])
	for _, c := range []struct {
		name   string
		object map[string]any
		fields string
	}{
		{"evaluation", top, "id series base suite host versions results failures claims rounds stopped verdict headline warnings"},
		{"base", top["base"].(map[string]any), "commit how reason"},
		{"suite", top["suite"].(map[string]any), "name digest"},
		{"version", first(top["versions"]), "n name commit tree state same_as log_tail"},
		{"result", result, "benchmark params metric unit better exact tested rounds detectable values steps total warnings"},
		{"value", first(result["values"]), "n median lo hi samples"},
		{"step", first(result["steps"]), "n change lo hi p verdict reason group"},
		{"total", result["total"].(map[string]any), "change lo hi p verdict"},
		{"claim", first(top["claims"]), "n line text subject quantity unit before after change benchmark metric measured lo hi verdict"},
		{"failure", first(top["failures"]), "n benchmark signal status log_tail"},
	} {
		for _, field := range strings.Fields(c.fields) {
			if _, ok := c.object[field]; !ok {
				t.Errorf("%s has no %q", c.name, field)
			}
		}
	}
	if bytes.Contains(b.Bytes(), []byte(`"warnings": null`)) || !bytes.Contains(b.Bytes(), []byte(`"warnings": []`)) {
		t.Error("an empty list is not []")
	}
}

func BenchmarkTextLargest(b *testing.B) {
	e := cases.All["largest"]().Evaluation
	for b.Loop() {
		if err := Text(&bytes.Buffer{}, e, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONLargest(b *testing.B) {
	e := cases.All["largest"]().Evaluation
	for b.Loop() {
		if err := JSON(&bytes.Buffer{}, e); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("hash", "a subject", "log\nline", "s", 1.5, 0.01, 0.3, 2)
	f.Add("\x1b[2J", strings.Repeat("長", 99), "\r\r\t", "B/op", math.MaxFloat64, -0.5, math.SmallestNonzeroFloat64, 30)
	f.Add("", "", "", "", math.NaN(), math.Inf(1), -1.0, -1)
	f.Add("a'b \"c\\", "'", "'", "1", 1e-300, 1e300, 0.0, 7)
	f.Fuzz(func(t *testing.T, name, subject, log, unit string, level, change, spread float64, n int) {
		n = 1 + (n%8+8)%8
		var list []string
		for range n {
			list = append(list, subject)
		}
		b := cases.New(subject+" "+name, bench.Verdict(unit), list...)
		b.Process(name, level, level, map[int]float64{n: change}, map[int]float64{1: spread})
		b.Row(name+subject, unit, unit, level, spread, map[int]float64{1: change})
		b.Row(subject, "wall", "s", level, spread, nil)
		cases.Doubt(&b.Results[len(b.Results)-1], 0, change, spread, log)
		b.Unbuilt(1+n/2%n, log)
		b.Fail(n, name, bench.Failed{Reason: unit, Status: n}, log)
		b.Command = "bot eval " + name + " " + subject + " " + log
		b.Warnings = []string{log, name}
		b.Conflict = &mbox.Conflict{N: n + 1, Files: []mbox.ConflictFile{{Path: name, Hunk: 1, Line: 2, Reason: log}}}
		b.MeasureSeconds, b.Margin = level, change
		text := render(t, b.Evaluation, Options{})
		for i, line := range strings.Split(text, "\n") {
			if plain.Columns(line) > 78 || slices.ContainsFunc([]rune(line), func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e }) {
				t.Errorf("line %d, %d columns: %q", i+1, plain.Columns(line), line)
			}
		}
		if strings.Count(text, "\n") > mostLines {
			t.Errorf("%d lines", strings.Count(text, "\n"))
		}
	})
}

// TestSparse renders cases.All that hold next to nothing, as an early
// interrupt leaves them.
// TestSeenNearZero has rows that did not change and of which next to nothing is
// left, as of those that a baseline is taken from.
func TestSeenNearZero(t *testing.T) {
	row := func(benchmark string, base, detectable float64) bench.Comparison {
		same := bench.Step{N: 1, Verdict: bench.Same, Change: ptr(0.0), Lo: ptr(-0.001), Hi: ptr(0.001)}
		return bench.Comparison{Tested: true, Benchmark: benchmark, Metric: "rss", Unit: "B", Rounds: 20, Detectable: &detectable,
			Values: []bench.Value{{Median: &base}, {N: 1, Median: &base}}, Steps: []bench.Step{same}, Total: same}
	}
	for _, tc := range []struct {
		name string
		rows []bench.Comparison
		want string
	}{
		{"none", []bench.Comparison{row("a", 4<<20, 0.034)}, "would have seen rss 3.4 %."},
		{"one of two", []bench.Comparison{row("a", 4<<20, 0.034), row("b", -12<<10, 7.5)}, "would have seen rss 3.4 % (90 KiB near 0)."},
		{"the largest of all", []bench.Comparison{row("a", -12<<10, 7.5), row("b", 2<<10, 80)}, "would have seen rss 160 KiB near 0."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &store.Evaluation{Headline: "h", Versions: []bench.Version{{N: 0}, {N: 1}}, Results: tc.rows}
			text := strings.Join(strings.Fields(render(t, e, Options{})), " ")
			if !strings.Contains(text, tc.want) {
				t.Errorf("want %q in:\n%s", tc.want, text)
			}
		})
	}
}

func TestSparse(t *testing.T) {
	for _, c := range []struct {
		name string
		e    store.Evaluation
		want string // first line
	}{
		{"zero", store.Evaluation{}, "Verdict:"},
		{"no versions", store.Evaluation{Verdict: bench.FailedSeries, Series: &mbox.Series{Total: 3}, Results: []bench.Comparison{{Tested: true}}}, "Verdict: failed"},
		{"steps of versions that are not there", store.Evaluation{Headline: "h", Results: []bench.Comparison{
			{Tested: true, Benchmark: "a", Metric: "cpu", Steps: []bench.Step{
				{N: 3, Verdict: bench.Worse}, {N: 9, Verdict: bench.Better, Group: []int{2, 9}}, {N: 4, Verdict: bench.Unclear}}},
			{Tested: true, Benchmark: "b", Metric: "cpu", Total: bench.Step{N: 4, Verdict: bench.Unclear}},
			{Tested: true, Benchmark: "c", Metric: "cpu", Total: bench.Step{N: 4, Verdict: bench.Worse}},
			{Tested: true, Benchmark: "d", Metric: "cpu", Total: bench.Step{N: 4, Verdict: bench.NotMeasured, Reason: "added in 2/4"}},
		}}, "h"},
		{"a version that is the same as itself", store.Evaluation{Headline: "h",
			Versions: []bench.Version{{N: 0, State: bench.SameBuild, SameAs: ptr(1)}, {N: 1, State: bench.SameBuild, SameAs: ptr(0)}},
			Results:  []bench.Comparison{{Tested: true, Metric: "cpu", Total: bench.Step{N: 1, Verdict: bench.Worse, Change: ptr(0.1)}}}}, "h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := render(t, &c.e, Options{Width: 1})
			first, _, _ := strings.Cut(text, "\n")
			if first != c.want {
				t.Errorf("first line %q, want %q", first, c.want)
			}
			check(t, &c.e, text, 60)
		})
	}
}
