package db_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"patchbench/store/db"
	"patchbench/store/db/dbtest"
)

func open(t *testing.T, url string) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), url, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestPostgresURLs has what is wrong with a URL or a server told without the
// password.
func TestPostgresURLs(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := dead.Addr().String()
	dead.Close()
	for _, c := range []struct {
		name, url string
		is        error
		want      string // part of the error
	}{
		{"bad escape", "postgres://bot:top%zzsecret@db/bot", db.ErrURL, "the postgres URL cannot be read: write it as postgres://USER@HOST/DATABASE"},
		{"bad port", "postgres://bot:topsecret@db:port/bot", db.ErrURL, "the postgres URL cannot be read"},
		{"bad parameter", "postgres://bot:topsecret@db/bot?sslmode=perhaps", db.ErrURL, "open store postgres://bot@db/bot: "},
		{"no server", "postgres://bot:topsecret@" + address + "/bot", nil, "the server cannot be reached: check that it runs, its address and the network"},
		{"password as a parameter", "postgresql://" + address + "/bot?user=bot&password=topsecret", nil, "open store postgresql://" + address + "/bot: the server cannot be reached"},
		{"no socket", "postgres:///bot?host=" + url.QueryEscape(t.TempDir()) + "&user=bot&password=topsecret", nil, "the server cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := db.Open(t.Context(), c.url, db.Options{})
			if err == nil {
				d.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v\nwant ... %s", err, c.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
}

// TestPostgresRefusals has a database refused that is not fit for a store.
func TestPostgresRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string // done with the schema first
		url    func(base *url.URL)
		is     error
		want   string
	}{
		{name: "another program's", before: []string{`CREATE TABLE accounts (id INTEGER)`}, is: db.ErrForeign, want: "another program's tables stand in it"},
		{name: "another program's with migrations", before: []string{`CREATE TABLE goose_db_version (id INTEGER)`, `CREATE TABLE accounts (id INTEGER)`},
			is: db.ErrForeign, want: "another program's tables stand in it"},
		{name: "no such database", url: func(u *url.URL) { u.Path = "/nowhere" }, want: "there is no such database: make it with createdb"},
		{name: "no such schema", url: func(u *url.URL) { u.RawQuery += "_x" }, want: "there is no such schema: make it with CREATE SCHEMA"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := dbtest.Postgres(t)
			admin, err := sql.Open("pgx", raw)
			if err != nil {
				t.Fatal(err)
			}
			defer admin.Close()
			for _, q := range c.before {
				if _, err := admin.ExecContext(t.Context(), q); err != nil {
					t.Fatal(err)
				}
			}
			u, err := url.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if c.url != nil {
				c.url(u)
			}
			d, err := db.Open(t.Context(), u.String(), db.Options{})
			if err == nil {
				d.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v\nwant ... %s", err, c.want)
			}
			var tables int
			if err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()`).Scan(&tables); err != nil || tables != len(c.before) {
				t.Errorf("%d tables, %v, want %d", tables, err, len(c.before))
			}
		})
	}
}

// A first start that is cut short anywhere does not keep the next one from
// making the schema.
func TestOpenCutShort(t *testing.T) {
	const stride = 41 // of some hundred statements
	kinds := map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}
	for kind, url := range kinds {
		t.Run(kind, func(t *testing.T) {
			for point, whole := 0, false; !whole; point += stride {
				url := url(t)
				ctx, cancel := context.WithCancel(t.Context())
				var fault dbtest.Fault
				n, where := 0, ""
				fault.Set(func(when string) {
					if n == point {
						where = when
						cancel()
					}
					n++
				})
				d, err := db.Open(ctx, url, db.Options{Wrap: fault.Wrap})
				fault.Set(nil)
				cancel()
				whole = n <= point
				if err == nil {
					d.Close()
				} else if where == "" {
					t.Fatal(err)
				}
				d, err = db.Open(t.Context(), url, db.Options{})
				if err != nil {
					t.Fatalf("after a cut %s: %v", where, err)
				}
				if _, err := d.ExecContext(t.Context(), `SELECT count(*) FROM tasks, river_job`); err != nil {
					t.Errorf("after a cut %s: %v", where, err)
				}
				d.Close()
			}
		})
	}
}

func TestNewer(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := open(t, url)
		if _, err := d.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)`); err != nil {
			t.Fatal(err)
		}
		d.Close()
		if _, err := db.Open(t.Context(), url, db.Options{}); !errors.Is(err, db.ErrNewer) || !strings.Contains(err.Error(), "its schema is 99, this program knows 3") {
			t.Errorf("error %v", err)
		}
	})
}

// Many that start at once make one schema.
func TestOpenAtOnce(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d, err := db.Open(t.Context(), url, db.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				d.Close()
			})
		}
		wg.Wait()
	})
}

// Both databases have the same tables with the same columns.
func TestSchemas(t *testing.T) {
	lite, post := open(t, dbtest.SQLite(t)), open(t, dbtest.Postgres(t))
	columns := func(d *db.DB, q string) map[string]bool {
		t.Helper()
		rows, err := d.QueryContext(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		all := map[string]bool{}
		for rows.Next() {
			var table, column string
			if err := rows.Scan(&table, &column); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(table, "river_") && !strings.HasPrefix(table, "sqlite_") && !strings.HasPrefix(table, "goose_") {
				all[table+"."+column] = true
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	a := columns(lite, `SELECT m.name, c.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table'`)
	b := columns(post, `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()`)
	if len(a) < 80 {
		t.Errorf("only %d columns", len(a))
	}
	for column := range a {
		if !b[column] {
			t.Errorf("PostgreSQL has no %s", column)
		}
	}
	for column := range b {
		if !a[column] {
			t.Errorf("SQLite has no %s", column)
		}
	}
}

// Two transactions that lock each other out both come through in the end.
func TestDeadlock(t *testing.T) {
	raw := dbtest.Postgres(t)
	d := open(t, raw)
	for _, name := range []string{"a", "b"} {
		if _, err := d.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ($1, '')`, name); err != nil {
			t.Fatal(err)
		}
	}
	var both, wg sync.WaitGroup
	both.Add(2)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		wg.Go(func() {
			first := true
			err := d.Do(t.Context(), "write both", func(tx *sql.Tx) error {
				for i, name := range order {
					if _, err := tx.ExecContext(t.Context(), `UPDATE settings SET value = value || $2 WHERE name = $1`, name, order[0]); err != nil {
						return err
					}
					if i == 0 && first { // both have locked one before they want the other
						first = false
						both.Done()
						both.Wait()
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var a, b string
	if err := d.QueryRowContext(t.Context(), `SELECT (SELECT value FROM settings WHERE name = 'a'), (SELECT value FROM settings WHERE name = 'b')`).Scan(&a, &b); err != nil {
		t.Fatal(err)
	}
	if len(a) != 2 || a != b {
		t.Errorf("values %q and %q", a, b)
	}
}

func TestDo(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := open(t, url)
		fault := errors.New("a fault")
		err := d.Do(t.Context(), "try", func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ('a', 'b')`); err != nil {
				return err
			}
			return fault
		})
		if !errors.Is(err, fault) || err.Error() != "try: store "+d.Name()+": a fault" {
			t.Errorf("error %v", err)
		}
		var n int
		if err := d.QueryRowContext(t.Context(), `SELECT count(*) FROM settings`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows were left, %v", n, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Do(ctx, "try", func(*sql.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		// The end of ctx rolls back in its own time, between any two statements.
		ctx, cancel = context.WithCancel(t.Context())
		err = d.Do(ctx, "try", func(tx *sql.Tx) error {
			cancel()
			for {
				if _, err := tx.ExecContext(t.Context(), `SELECT 1`); err != nil {
					return err
				}
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled inside: %v", err)
		}
	})
}

func TestName(t *testing.T) {
	dir := t.TempDir()
	for url, want := range map[string]string{"sqlite:" + dir + "/a.db": filepath.Join(dir, "a.db"), dir + "/b.db": filepath.Join(dir, "b.db")} {
		if got := open(t, url).Name(); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
	if got := open(t, dbtest.Postgres(t)).Name(); strings.Contains(got, "search_path") || !strings.HasPrefix(got, "postgres://") {
		t.Errorf("name %s", got)
	}
}

// A new file, and what SQLite puts beside it, is its owner's alone.
func TestFileModes(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir+"/bot.db")
	if _, err := d.ExecContext(t.Context(), `INSERT INTO settings (name, value) VALUES ('secret', 'x')`); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 2 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{"": "", "plain": "plain", "a\x00b": "ab", "\xff": "\ufffd", "\xff\xfe!": "\ufffd!", "ä\u202e\x1b": "ä\u202e\x1b"} {
		if got := db.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
