package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/storetest"
)

func TestHistory(t *testing.T) { storetest.Each(t, testHistory) }

func testHistory(t *testing.T, s *store.Store) {
	ctx := t.Context()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 12, 0, 0, 0, time.UTC) }
	figure := func(v float64) []bench.Value {
		return []bench.Value{{N: 0, Median: &v, Samples: 20}, {N: 1, Median: &v}}
	}
	// Saved in another order than they were made.
	for _, n := range []int{3, 1, 2, 4} {
		e := &store.Evaluation{ID: fmt.Sprintf("2026010%d-aaaaaa", n), Created: day(n), Base: mbox.Base{Commit: fmt.Sprintf("c%d", n)}, Host: bench.Host{Name: "bench1"},
			Results: []bench.Comparison{
				{Benchmark: "hash", Metric: "cpu", Unit: "s", Tested: true, Rounds: 20, Values: figure(float64(n))},
				{Benchmark: "hash", Metric: "rss", Unit: "B", Values: figure(9)},
				{Benchmark: "sort", Metric: "cpu", Unit: "s", Values: figure(7)},
				{Benchmark: "sort", Params: map[string]string{"t": "x", "n": "2"}, Metric: "cpu", Unit: "s", Values: figure(8)},
			}}
		if n == 4 {
			e.Results[0].Values = []bench.Value{{N: 0}, {N: 1, Median: new(float64)}} // base has no figure
		}
		if err := s.Save(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, benchmark, metric string
		since                   time.Time
		want                    []string
	}{
		{"one metric", "hash", "cpu", time.Time{}, []string{"c1 hash cpu 1", "c2 hash cpu 2", "c3 hash cpu 3"}},
		{"since a day", "hash", "cpu", day(2), []string{"c2 hash cpu 2", "c3 hash cpu 3"}},
		{"all metrics of the newest", "hash", "", day(4), []string{"c4 hash rss 9"}},
		{"all parameters", "sort", "cpu", day(3), []string{"c3 sort cpu 7", "c3 sort cpu 8", "c4 sort cpu 7", "c4 sort cpu 8"}},
		{"a row's full name", "sort{n=2,t=x}", "", day(4), []string{"c4 sort cpu 8"}},
		{"too late", "hash", "", day(9), nil},
		{"no such benchmark", "hsah", "", time.Time{}, nil},
		{"no such metric", "hash", "joules", time.Time{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(what string) {
				t.Helper()
				points, err := s.History(ctx, c.benchmark, c.metric, c.since)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, p := range points {
					got = append(got, fmt.Sprintf("%s %s %s %g", p.Base.Commit, p.Benchmark, p.Metric, *p.Value.Median))
					if p.Host.Name != "bench1" || p.Created.Location() != time.UTC || p.Evaluation != fmt.Sprintf("202601%02d-aaaaaa", p.Created.Day()) {
						t.Errorf("%s: point %+v", what, p)
					}
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("%s: -want +got:\n%s", what, d)
				}
			}
			check("saved")
			if s.DB().ForUpdate == "" { // no PostgreSQL store was there before the points
				migrateAgain(t, s)
				check("migrated")
			}
		})
	}
	if names, err := s.Benchmarks(ctx); err != nil || !slices.Equal(names, []string{"hash", "sort"}) {
		t.Errorf("benchmarks %q, %v", names, err)
	}
}

// migrateAgain has the points made from the records, as in a store of before
// there were any.
func migrateAgain(t *testing.T, s *store.Store) {
	t.Helper()
	if err := s.DB().Downgrade(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.DB().Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkHistory reads one row of 2,000 evaluations of 5 patches and 48 rows.
func BenchmarkHistory(b *testing.B) {
	ctx := b.Context()
	s := storetest.Open(b)
	v := 0.4123
	e := &store.Evaluation{Host: bench.Host{Name: "bench1", CPU: "Example EX-2650", Kernel: "Linux 6.12"}}
	for i := range 12 {
		for _, metric := range []string{"cpu", "wall", "user", "rss"} {
			c := bench.Comparison{Benchmark: fmt.Sprint("workload", i), Metric: metric, Unit: "s", Tested: metric != "user", Rounds: 20}
			for n := range 6 {
				c.Values = append(c.Values, bench.Value{N: n, Median: &v, Lo: &v, Hi: &v, Samples: 20})
				c.Steps = append(c.Steps, bench.Step{N: n, Change: &v, Lo: &v, Hi: &v, P: &v, Verdict: bench.Same})
			}
			e.Results = append(e.Results, c)
		}
	}
	for i := range 2000 {
		e.ID, e.Created = fmt.Sprintf("e%05d", i), time.Date(2020, 1, 1+i, 0, 0, 0, 0, time.UTC)
		if err := s.Save(ctx, e); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		points, err := s.History(ctx, "workload7", "cpu", time.Time{})
		if err != nil || len(points) != 2000 {
			b.Fatal(len(points), err)
		}
	}
}
