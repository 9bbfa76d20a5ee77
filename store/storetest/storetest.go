// Package storetest opens stores for tests: SQLite in a temporary folder, and
// PostgreSQL where there is one.
package storetest

import (
	"path/filepath"
	"testing"

	"patchbench/store"
)

// Open gives a new SQLite store, closed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bot.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Each runs a test on every database that there is.
func Each(t *testing.T, f func(*testing.T, *store.Store)) {
	t.Run("sqlite", func(t *testing.T) { f(t, Open(t)) })
}
