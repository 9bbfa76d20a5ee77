// Package store keeps the record: every evaluation with all that its report is
// rendered from, and every sample behind it; and for the service the mails that
// were taken in, the tasks made of them, and the letters and notices that are to
// go out. It stands on one SQLite file, or on PostgreSQL.
//
// In go values as the stages make them; out come the same values, so that a
// report can be rendered again years later. Everything between the service's
// processes goes through here, each step in one transaction and under a unique
// key: whoever is killed anywhere and starts again does not do a thing twice.
// Nothing is judged, rendered or sent here.
//
//	s, err := store.Open(ctx, "sqlite:bot.db")
//	err = s.Save(ctx, e)                  // before measuring, and again after it
//	err = s.AddSamples(ctx, e.ID, batch)  // in between, as often as wanted
//
//	n, err := s.TakeIn(ctx, source, cursor, mails)        // mails and cursor
//	task, fresh, err := s.Decide(ctx, store.Decision{})   // a task and its job in the queue
//	task, err = s.Claim(ctx, id, worker, lease)           // a worker has it
//	err = s.Finish(ctx, id, fence, store.Done, ...)       // its end and the letters it wrote
//	letter, err := s.NextLetter(ctx, now)                 // to be sent, then s.Settle
package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"patchbench/store/db"
	"patchbench/store/outbox"
	"patchbench/store/record"
)

// Errors of Open that can be tested for; the messages around them say what to do.
var (
	// ErrURL says that the store's URL is not one that Open understands.
	ErrURL = db.ErrURL
	// ErrForeign says that the file or database is there and is not a Patchbench store.
	ErrForeign = db.ErrForeign
	// ErrNewer says that a newer Patchbench wrote the store.
	ErrNewer = db.ErrNewer
)

// Store is an open record. It may be used by several goroutines, and by several
// processes at once.
type Store struct {
	*record.Record
	*outbox.Outbox
	db    *db.DB
	queue *river.Client[*sql.Tx] // only puts jobs in
	now   func() time.Time
}

// Open opens the store at url, see db.Open.
func Open(ctx context.Context, url string) (*Store, error) {
	d, err := db.Open(ctx, url, db.Options{})
	if err != nil {
		return nil, err
	}
	return New(d)
}

// New makes a store of an open database, which is the store's from then on.
func New(d *db.DB) (*Store, error) {
	queue, err := river.NewClient(d.Queue(), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("open store %s: queue: %w", d.Name(), err)
	}
	return &Store{Record: record.New(d), Outbox: outbox.New(d), db: d, queue: queue, now: time.Now}, nil
}

// River gives a client of the queue that asks for jobs instead of listening, for
// bot/work alone.
func (s *Store) River(cfg *river.Config) (*river.Client[*sql.Tx], error) {
	c := *cfg
	c.PollOnly = true
	client, err := river.NewClient(s.db.Queue(), &c)
	if err != nil {
		return nil, fmt.Errorf("queue of store %s: %w", s.Path(), err)
	}
	return client, nil
}

// SetClock has the store take the time from now, before it is used.
func (s *Store) SetClock(now func() time.Time) {
	s.now = now
	s.Outbox.SetClock(now)
}

// Close closes the store. What was saved is on disk before.
func (s *Store) Close() error { return s.db.Close() }

// Path is the absolute path of the store's file, or its URL without the password.
func (s *Store) Path() string { return s.db.Name() }

// do runs f in one transaction, see db.Do.
func (s *Store) do(ctx context.Context, what string, f func(*sql.Tx) error) error {
	return s.db.Do(ctx, what, f)
}

// fail says what was being done, and in which store.
func (s *Store) fail(what string, err error) error { return s.db.Fail(what, err) }

// The evaluations that the store keeps, see package record.
type (
	Evaluation = record.Evaluation
	SuiteName  = record.SuiteName
	Summary    = record.Summary
	Point      = record.Point
	IDError    = record.IDError
)

// The outbox of the store, see package outbox.
type (
	Letter      = outbox.Letter
	LetterState = outbox.LetterState
	Recipient   = outbox.Recipient
	Notice      = outbox.Notice
)

// The states of a letter.
const (
	LetterHeld    = outbox.LetterHeld
	LetterQueued  = outbox.LetterQueued
	LetterSending = outbox.LetterSending
	LetterSent    = outbox.LetterSent
	LetterFailed  = outbox.LetterFailed
	LetterUnknown = outbox.LetterUnknown
	LetterDropped = outbox.LetterDropped
)

// ErrNoLetter says that there is no such letter.
var ErrNoLetter = outbox.ErrNoLetter

// Reasons for which measuring ends.
const (
	StoppedDecided     = record.StoppedDecided
	StoppedBudget      = record.StoppedBudget
	StoppedInterrupted = record.StoppedInterrupted
)

// ErrTaken says that another evaluation has the id already: make a new one.
var ErrTaken = record.ErrTaken

// NewID makes an evaluation's id, see record.NewID.
func NewID(t time.Time, random interface{ Uint64() uint64 }) string { return record.NewID(t, random) }

// Encode gives an evaluation as JSON, see record.Encode.
func Encode(e *Evaluation) ([]byte, error) { return record.Encode(e) }
