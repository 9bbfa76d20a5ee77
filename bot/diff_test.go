package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/store"
)

// diffEvaluation is an evaluation whose rows have these steps, by name "hash cpu".
func diffEvaluation(id string, subjects []string, rows map[string][]bench.Step, order ...string) *store.Evaluation {
	e := &store.Evaluation{
		ID: id, Created: time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC), Margin: .01, Headline: "headline of " + id,
		Host: bench.Host{Name: "m", Kernel: "Linux 6.1"}, Suite: store.SuiteName{Name: "kit", Digest: "d"},
		Versions: []bench.Version{{N: 0, Name: "base", State: bench.Built}}, Stopped: store.StoppedDecided,
	}
	for i, s := range subjects {
		e.Versions = append(e.Versions, bench.Version{N: i + 1, Name: string(rune('1'+i)) + "/" + string(rune('0'+len(subjects))), Subject: s, State: bench.Built})
	}
	for _, name := range order {
		b, m, _ := strings.Cut(name, " ")
		steps := rows[name]
		e.Results = append(e.Results, bench.Comparison{Benchmark: b, Metric: m, Unit: "s", Tested: true, Rounds: 20,
			Steps: steps[:len(steps)-1], Total: steps[len(steps)-1]})
	}
	return e
}

func diffStepOf(n int, v bench.Verdict, percent float64, group ...int) bench.Step {
	mid, lo, hi := percent/100, (percent-.4)/100, (percent+.4)/100
	return bench.Step{N: n, Verdict: v, Change: &mid, Lo: &lo, Hi: &hi, Group: group}
}

func TestDiff(t *testing.T) {
	same := func(n int) bench.Step { return diffStepOf(n, bench.Same, .1) }
	crash := bench.Step{N: 2, Verdict: bench.NotMeasured, Reason: "SIGSEGV (2 of 2 runs)"}
	v1 := diffEvaluation("20261129-aaaaaa", []string{"hash: mix more", "table: grow\x1b[31m"}, map[string][]bench.Step{
		"hash cpu":  {diffStepOf(1, bench.Worse, 5.1), same(2), diffStepOf(2, bench.Worse, 5.2)},
		"table rss": {same(1), diffStepOf(2, bench.Worse, 19.8), diffStepOf(2, bench.Worse, 19.8)},
		"sort cpu":  {same(1), same(2), same(2)},
		"sort wall": {same(1), diffStepOf(2, bench.Unclear, 2), diffStepOf(2, bench.Unclear, 2)},
		"gone cpu":  {same(1), same(2), same(2)},
	}, "hash cpu", "table rss", "sort cpu", "sort wall", "gone cpu")
	v2 := diffEvaluation("20261130-bbbbbb", []string{"kit: tidy", "hash: mix more", "new: one"}, map[string][]bench.Step{
		"hash cpu":  {same(1), same(2), same(3), same(3)},
		"table rss": {same(1), same(2), same(3), same(3)},
		"sort cpu":  {same(1), same(2), same(3), same(3)},
		"sort wall": {same(1), diffStepOf(2, bench.Better, -3, 2, 3), same(3), diffStepOf(3, bench.Better, -3)},
		"new cpu":   {same(1), crash, crash, crash},
	}, "hash cpu", "table rss", "sort cpu", "sort wall", "new cpu")
	v2.Host.Kernel, v2.Margin = "Linux 6.2", .02

	db := filepath.Join(t.TempDir(), "bot.db")
	ctx := context.Background()
	st, err := store.Open(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*store.Evaluation{v1, v2} {
		if err := st.Save(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	st.Close()
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string // on stderr
	}{
		"text":        {[]string{"20261129", "20261130"}, 0, ""},
		"all":         {[]string{"20261129", "20261130", "--all"}, 0, ""},
		"json":        {[]string{"20261129", "20261130", "--format", "json"}, 0, ""},
		"one":         {[]string{"20261129"}, 2, "two are set side by side"},
		"three":       {[]string{"20261129", "20261130", "20261129"}, 2, "two are set side by side"},
		"unknown":     {[]string{"20261129", "2025"}, 2, `no evaluation "2025"`},
		"not certain": {[]string{"2026", "20261130"}, 2, "ambiguous"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			status := run(append([]string{"diff", "--store", db}, c.args...), &terminal{strings.NewReader(""), &stdout, &stderr})
			if status != c.status || !strings.Contains(stderr.String(), c.says) {
				t.Fatalf("status %d, want %d with %q\n%s", status, c.status, c.says, stderr.String())
			}
			if status != 0 {
				return
			}
			cases.Golden(t, filepath.Join("diff", name+".golden"), stdout.String())
		})
	}
}
