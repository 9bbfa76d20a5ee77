// Package storetest opens stores for tests: SQLite in a temporary folder, and
// PostgreSQL where there is one, as package dbtest has it.
//
//	storetest.Each(t, func(t *testing.T, s *store.Store) { ... })
package storetest

import (
	"context"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"patchbench/store"
	"patchbench/store/db"
	"patchbench/store/db/dbtest"
)

// Fault is for OpenWrapped.
type Fault = dbtest.Fault

// Open gives a new SQLite store, closed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenURL(t, SQLite(t))
}

// OpenURL opens the store at url, and closes it when the test ends.
func OpenURL(t testing.TB, url string) *store.Store {
	t.Helper()
	return OpenWrapped(t, url, func(c driver.Connector) driver.Connector { return c })
}

// OpenWrapped opens the store at url with something between it and the driver.
func OpenWrapped(t testing.TB, url string, wrap func(driver.Connector) driver.Connector) *store.Store {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{Wrap: func(c driver.Connector) driver.Connector {
		if !strings.HasPrefix(url, "postgres") {
			c = unsynced{c}
		}
		return wrap(c)
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// unsynced makes SQLite connections that do not wait for the disk: killed processes
// lose nothing by that, only machines without power do.
type unsynced struct{ driver.Connector }

func (u unsynced) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := u.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.(driver.ExecerContext).ExecContext(ctx, `PRAGMA synchronous = OFF`, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Each runs a test with a new store on each kind of database.
func Each(t *testing.T, f func(*testing.T, *store.Store)) {
	EachURL(t, func(t *testing.T, url string) { f(t, OpenURL(t, url)) })
}

// EachURL runs a test with the URL of a new store on each kind of database.
func EachURL(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { f(t, Postgres(t)) })
}

// SQLite gives the URL of a new store in a temporary folder. The file is there,
// with nothing in its tables: for one that is still to be made see dbtest.SQLite.
func SQLite(t testing.TB) string {
	t.Helper()
	file, err := template()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "bot.db")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + name
}

// template is the file of a new store. Under the race detector its tables take
// half a second to make, and a test's process has a hundred such stores.
var template = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "patchbench-store-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "bot.db")
	d, err := db.Open(context.Background(), "sqlite:"+name, db.Options{})
	if err != nil {
		return nil, err
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
})

// Postgres gives the URL of a new store on PostgreSQL.
func Postgres(t testing.TB) string {
	t.Helper()
	return dbtest.Postgres(t)
}
