package store

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/mbox"
)

func TestHistory(t *testing.T) {
	ctx := t.Context()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }
	figure := func(v float64) []bench.Value {
		return []bench.Value{{N: 0, Median: &v, Samples: 20}, {N: 1, Median: &v}}
	}
	// Saved in another order than they were made.
	for _, n := range []int{3, 1, 2, 4} {
		e := &Evaluation{ID: fmt.Sprintf("2026010%d-aaaaaa", n), Created: day(n), Base: mbox.Base{Commit: fmt.Sprintf("c%d", n)}, Host: bench.Host{Name: "bench1"},
			Results: []bench.Comparison{
				{Benchmark: "hash", Metric: "cpu", Unit: "s", Tested: true, Rounds: 20, Values: figure(float64(n))},
				{Benchmark: "hash", Metric: "rss", Unit: "B", Values: figure(9)},
				{Benchmark: "sort", Metric: "cpu", Unit: "s", Values: figure(7)},
			}}
		if n == 4 {
			e.Results[0].Values = []bench.Value{{N: 0}, {N: 1, Median: new(float64)}} // base has no figure
		}
		if err := s.Save(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		since time.Time
		keep  func(*bench.Comparison) bool
		want  []string
	}{
		{"one row", time.Time{}, func(c *bench.Comparison) bool { return c.Benchmark == "hash" && c.Metric == "cpu" },
			[]string{"c1 hash cpu 1", "c2 hash cpu 2", "c3 hash cpu 3"}},
		{"since a day", day(2), func(c *bench.Comparison) bool { return c.Benchmark == "hash" && c.Metric == "cpu" },
			[]string{"c2 hash cpu 2", "c3 hash cpu 3"}},
		{"every row of the newest", day(4), func(*bench.Comparison) bool { return true }, []string{"c4 hash rss 9", "c4 sort cpu 7"}},
		{"nothing", day(9), func(*bench.Comparison) bool { return true }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			points, err := s.History(ctx, c.since, c.keep)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range points {
				got = append(got, fmt.Sprintf("%s %s %s %g", p.Base.Commit, p.Benchmark, p.Metric, *p.Value.Median))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
