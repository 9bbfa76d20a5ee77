package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks our files in SQLite's header ("PtBn"), so that another
// program's database is never migrated by mistake.
const applicationID = 0x5074426e

var sqliteDialect = dialect{
	goose:   goose.DialectSQLite3,
	suffix:  ".sqlite.sql",
	words:   strings.NewReplacer("IDENTITY", "INTEGER PRIMARY KEY AUTOINCREMENT", "BYTES", "BLOB"),
	queue:   func(db *sql.DB) riverdriver.Driver[*sql.Tx] { return riversqlite.New(db) },
	explain: explainSQLite,
	// A busy database is waited for by SQLite itself.
	again: func(error) bool { return false },
}

func openSQLite(ctx context.Context, raw string, o Options) (*DB, error) {
	if raw == "" || strings.ContainsRune(raw, 0) {
		return nil, fmt.Errorf("%w: empty path: give sqlite:PATH, the path of a file or postgres://", ErrURL)
	}
	path, err := filepath.Abs(raw)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", raw, err)
	}
	undo, err := prepare(path)
	if err != nil {
		return nil, err
	}
	d, err := openFile(ctx, path, o)
	if err != nil {
		undo()
		return nil, fmt.Errorf("open store %s: %w", path, explainSQLite(err))
	}
	return d, nil
}

// prepare looks at what stands at path, and makes folder and file. undo removes what
// was not there before.
func prepare(path string) (undo func(), err error) {
	fail := func(err error, advice string) (func(), error) {
		var p *fs.PathError
		where := path
		if errors.As(err, &p) {
			where, err = p.Path, p.Err
		}
		return nil, fmt.Errorf("open store %s: %s: %w: %s", path, where, err, advice)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("open store %s: %w: it is a folder or device: give the path of a file in it", path, ErrForeign)
	case err == nil:
		return func() {}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return fail(err, "choose another file for the store")
	}
	var made []string
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, dir)
	}
	undo = func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			os.Remove(path + suffix)
		}
		for _, dir := range made {
			os.Remove(dir)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		undo()
		return fail(err, "make the folder or choose another file for the store")
	}
	// Mails and secrets are nobody else's business; SQLite gives its other files
	// the same mode.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		undo()
		return fail(err, "check the permissions of the file and its folder, or choose another file for the store")
	}
	f.Close()
	return undo, nil
}

// file makes connections to one SQLite file.
type file struct {
	driver driver.Driver
	dsn    string
}

func (f file) Connect(context.Context) (driver.Conn, error) { return f.driver.Open(f.dsn) }
func (f file) Driver() driver.Driver                        { return f.driver }

func openFile(ctx context.Context, path string, o Options) (*DB, error) {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(20000)&_pragma=foreign_keys(1)&_txlock=immediate"}
	named, err := sql.Open("sqlite", dsn.String()) // finds the driver, opens nothing yet
	if err != nil {
		return nil, err
	}
	named.Close()
	d := &DB{DB: o.open(file{named.Driver(), dsn.String()}), dialect: sqliteDialect, name: path}
	// One connection: SQLite has one writer, and the queue that shares this
	// file needs it so.
	d.SetMaxOpenConns(1)
	err = d.claimFile(ctx)
	if err == nil {
		err = d.Upgrade(ctx)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// claimFile makes an empty database ours and refuses another program's.
func (d *DB) claimFile(ctx context.Context) error {
	var id, objects int64
	if err := d.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return err
	}
	if err := d.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil {
		return err
	}
	if id == applicationID {
		return nil
	}
	if objects > 0 || id != 0 {
		return fmt.Errorf("%w: another program's database: choose another file for the store", ErrForeign)
	}
	for _, pragma := range []string{`PRAGMA journal_mode = WAL`, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)} {
		if _, err := d.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

// lockFolder keeps two processes from making the same file at once. The folder
// is locked, not the file, since closing any handle of the file would drop the
// locks that SQLite holds on it.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	// A file system without such locks is none the worse for it: SQLite's own
	// locks still keep the file whole.
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	return func() { f.Close() }, nil
}

// explainSQLite adds to SQLite's errors what to do about them.
func explainSQLite(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: it is not an SQLite file: choose another file for the store", ErrForeign)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("the file is damaged: restore a copy or move it away: %w", err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("no space left: free some on its file system or choose another file for the store: %w", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY:
		return fmt.Errorf("it cannot be written: check the permissions of the file and its folder, or choose another file for the store: %w", err)
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("reading or writing failed: check the disk and the space left on it: %w", err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("another process holds it: wait for it or end it: %w", err)
	}
	return err
}
