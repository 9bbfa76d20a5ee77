// Package store keeps the record: every evaluation with all that its report is
// rendered from, and every sample behind it, in one SQLite file.
//
// In go evaluations and samples as bot/eval makes them; out come the same
// values, so that a report can be rendered again years later. The file is in
// WAL mode, so one process may read while another measures. Nothing is judged,
// rendered or sent here.
//
//	s, err := store.Open(ctx, "sqlite:bot.db")
//	err = s.Save(ctx, e)                  // before measuring, and again after it
//	err = s.AddSamples(ctx, e.ID, batch)  // in between, as often as wanted
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pressly/goose/v3"
	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks our files in SQLite's header ("PtBn"), so that another
// program's database is never migrated by mistake.
const applicationID = 0x5074426e

// Errors of Open that can be tested for; the messages around them say what to do.
var (
	// ErrURL says that the store's URL is not one that Open understands.
	ErrURL = errors.New("not a store")
	// ErrForeign says that the file is there and is not a Patchbench store.
	ErrForeign = errors.New("not a Patchbench store")
	// ErrNewer says that a newer Patchbench wrote the file.
	ErrNewer = errors.New("written by a newer Patchbench")
)

// Store is an open record. It may be used by several goroutines.
type Store struct {
	db   *sql.DB
	path string
}

// Open opens the store at url, "sqlite:PATH" or a plain path, and makes the file
// and its folder (mode 0700) if they are not there. The schema is brought up to
// date; a store of a newer schema is refused with ErrNewer, a file that is
// something else with ErrForeign, both untouched. When a new file cannot be
// finished, nothing of it is left behind.
func Open(ctx context.Context, url string) (*Store, error) {
	path, err := pathOf(url)
	if err != nil {
		return nil, err
	}
	undo, err := prepare(path)
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, path)
	if err != nil {
		undo()
		return nil, fmt.Errorf("open store %s: %w", path, explain(err))
	}
	return s, nil
}

// Close closes the store. What was saved is on disk before.
func (s *Store) Close() error { return s.db.Close() }

// Path is the absolute path of the store's file.
func (s *Store) Path() string { return s.path }

func pathOf(raw string) (string, error) {
	scheme, rest, found := strings.Cut(raw, ":")
	switch {
	case found && scheme == "sqlite":
		raw = strings.TrimPrefix(rest, "//")
	case found && (scheme == "postgres" || scheme == "postgresql" || strings.HasPrefix(rest, "//")):
		// The URL may hold a password: name its scheme only.
		return "", fmt.Errorf("%w: %s URLs are not supported: give sqlite:PATH or the path of a file", ErrURL, scheme)
	}
	if raw == "" || strings.ContainsRune(raw, 0) {
		return "", fmt.Errorf("%w: empty path: give sqlite:PATH or the path of a file", ErrURL)
	}
	path, err := filepath.Abs(raw)
	if err != nil {
		return "", fmt.Errorf("open store %s: %w", raw, err)
	}
	return path, nil
}

// prepare makes the folder and looks at what stands at path. undo removes what
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
	return undo, nil
}

func open(ctx context.Context, path string) (s *Store, err error) {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(20000)&_pragma=foreign_keys(1)&_txlock=immediate"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	// One connection: SQLite has one writer, and the queue that shares this
	// file needs it so.
	db.SetMaxOpenConns(1)
	defer func() {
		if err != nil {
			db.Close()
		}
	}()
	if err := claim(ctx, db); err != nil {
		return nil, err
	}
	if err := migrate(ctx, db); err != nil {
		return nil, err
	}
	return &Store{db: db, path: path}, nil
}

// claim makes an empty database ours and refuses another program's.
func claim(ctx context.Context, db *sql.DB) error {
	var id, objects int64
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil {
		return err
	}
	if id == applicationID {
		return nil
	}
	if objects > 0 || id != 0 {
		return fmt.Errorf("%w: another program's database: choose another file for the store", ErrForeign)
	}
	for _, pragma := range []string{`PRAGMA journal_mode = WAL`, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID)} {
		if _, err := db.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; have > known {
		return fmt.Errorf("%w: its schema is %d, this program knows %d: upgrade Patchbench or choose another file for the store",
			ErrNewer, have, known)
	}
	if _, err := p.Up(ctx); err != nil {
		return err
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

// explain adds to SQLite's errors what to do about them.
func explain(err error) error {
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
