// Package db opens the database that a store stands on: an SQLite file, or a
// PostgreSQL database when several machines work together.
//
// In goes a URL; out comes a database/sql handle whose schema is up to date, the
// queue's tables among it. All that differs between the two databases is in this
// package: how they are opened and claimed, the words of the schema, which rows a
// transaction locks, and what their errors mean. Statements are written in the
// SQL that both know, with $1, $2 for arguments. What the tables mean is the
// business of package store.
//
//	d, err := db.Open(ctx, "sqlite:bot.db", db.Options{})
//	err = d.Do(ctx, "count tasks", func(tx *sql.Tx) error { ... })
package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver"
)

// Errors of Open that can be tested for; the messages around them say what to do.
var (
	// ErrURL says that the store's URL is not one that Open understands.
	ErrURL = errors.New("not a store")
	// ErrForeign says that the file or database is there and is not a Patchbench store.
	ErrForeign = errors.New("not a Patchbench store")
	// ErrNewer says that a newer Patchbench wrote the store.
	ErrNewer = errors.New("written by a newer Patchbench")
)

// DB is an open database. It may be used by several goroutines.
type DB struct {
	*sql.DB
	dialect
	name string
}

// dialect is what differs between databases.
type dialect struct {
	// ForUpdate is put behind a SELECT in a transaction whose rows nobody else
	// may change before it ends; SkipLocked passes over rows that are locked so.
	// SQLite has one writer at a time and needs neither.
	ForUpdate, SkipLocked string

	serialise string // a statement that waits for all transactions that ran it before, with $1 a name
	goose     goose.Dialect
	words     *strings.Replacer // for the words of the schema files
	suffix    string            // of the schema files for this database alone
	queue     func(*sql.DB) riverdriver.Driver[*sql.Tx]
	explain   func(error) error
	again     func(error) bool // the transaction lost against another and may be tried again
}

// Options are for tests.
type Options struct {
	// Wrap, if set, stands between database/sql and the driver.
	Wrap func(driver.Connector) driver.Connector
}

func (o Options) open(c driver.Connector) *sql.DB {
	if o.Wrap != nil {
		c = o.Wrap(c)
	}
	return sql.OpenDB(c)
}

// Open opens the store at url: "sqlite:PATH", a plain path, or
// "postgres://USER:PASSWORD@HOST/DATABASE". An SQLite file (mode 0600) and its folder
// (0700) are made if they are not there; a PostgreSQL database must be there. The
// schema is brought up to date; a store of a newer schema is refused with
// ErrNewer, a file or database that is something else with ErrForeign, both
// untouched. When a new file cannot be finished, nothing of it is left behind.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	scheme, rest, found := strings.Cut(url, ":")
	switch {
	case found && scheme == "sqlite":
		return openSQLite(ctx, strings.TrimPrefix(rest, "//"), o)
	case found && (scheme == "postgres" || scheme == "postgresql"):
		return openPostgres(ctx, url, o)
	case found && strings.HasPrefix(rest, "//"):
		// The URL may hold a password: name its scheme only.
		return nil, fmt.Errorf("%w: %s URLs are not supported: give sqlite:PATH, the path of a file or postgres://", ErrURL, scheme)
	}
	return openSQLite(ctx, url, o)
}

// Name is the absolute path of the file, or the URL without its password.
func (d *DB) Name() string { return d.name }

// Queue is the driver of the queue's client.
func (d *DB) Queue() riverdriver.Driver[*sql.Tx] { return d.queue(d.DB) }

// tries is how often a transaction is run that others got in the way of.
const tries = 5

// Do runs f in one transaction, again if it lost a race against another: f must
// not change anything but the database and what it sets anew each time.
func (d *DB) Do(ctx context.Context, what string, f func(*sql.Tx) error) error {
	for try := 1; ; try++ {
		err := d.once(ctx, f)
		if err == nil {
			return nil
		}
		if end := ctx.Err(); end != nil && !errors.Is(err, end) {
			// The end rolls back at any moment, and what comes next says only that
			// there is no transaction.
			err = fmt.Errorf("%w: %w", end, err)
		}
		if try == tries || ctx.Err() != nil || !d.again(err) {
			return d.Fail(what, err)
		}
		select {
		case <-ctx.Done():
			return d.Fail(what, ctx.Err())
		case <-time.After(time.Duration(try) * 20 * time.Millisecond):
		}
	}
}

func (d *DB) once(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Serialise waits until every transaction that serialised the same name before
// has ended, so that what they number is seen in the order of the numbers.
func (d *DB) Serialise(ctx context.Context, tx *sql.Tx, name string) error {
	if d.serialise == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, d.serialise, name)
	return err
}

// Fail says what was being done, in which store, and what to do about it.
func (d *DB) Fail(what string, err error) error {
	return fmt.Errorf("%s: store %s: %w", what, d.name, d.explain(err))
}

// Text is s as both databases can hold it: without NUL, and with U+FFFD for
// bytes that are not UTF-8.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "")
}

// timeFormat has a fixed width, so that text sorts by time.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

// Time is a time as it is kept, "" for the zero time and for one of a year past
// 9999, whose text would not sort.
func Time(t time.Time) string {
	if t = t.UTC(); t.IsZero() || t.Year() < 1 || t.Year() > 9999 {
		return ""
	}
	return t.Format(timeFormat)
}

// ParseTime reads what Time wrote.
func ParseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(timeFormat, s)
}

// redacted is a URL that may be shown: scheme, user, host and path.
func redacted(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	return shown.String()
}
