package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"patchbench/store"
	"patchbench/store/storetest"
)

// A store that an older program wrote is brought up to date, with all that it holds.
func TestUpgrade(t *testing.T) {
	for _, name := range []string{"schema2.sql"} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			path := filepath.Join(t.TempDir(), "bot.db")
			dump, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			old, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := old.ExecContext(ctx, string(dump)); err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			s := storetest.OpenURL(t, path)
			e, err := s.Evaluation(ctx, "20260102")
			if err != nil || e.Series.Subject != "table: grow by half" || *e.Results[0].Values[0].Median != 0.5 {
				t.Errorf("evaluation %+v, %v", e, err)
			}
			if got := collect(t, s, e.ID); len(got) != 1 || got[0].Value != 0.5 || got[0].Params["n"] != "3" {
				t.Errorf("samples %+v", got)
			}
			if points, err := s.History(ctx, "hash", "cpu", time.Time{}); err != nil || len(points) != 1 {
				t.Errorf("history %+v, %v", points, err)
			}
			task := decide(t, s, store.Task{Key: "k", State: store.Queued})
			if _, err := s.Claim(ctx, task.ID, "w", time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

// BenchmarkOpen opens a store that is there, as every command does.
func BenchmarkOpen(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			url := url(b)
			storetest.OpenURL(b, url)
			for b.Loop() {
				s, err := store.Open(b.Context(), url)
				if err != nil {
					b.Fatal(err)
				}
				s.Close()
			}
		})
	}
}
