package outbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/store/db"
)

// LetterState says where a letter stands.
type LetterState string

// The states of a letter.
const (
	LetterHeld    LetterState = "held"    // waits for somebody's approval
	LetterQueued  LetterState = "queued"  // waits to be sent
	LetterSending LetterState = "sending" // is being sent, or was when the sender died
	LetterSent    LetterState = "sent"
	LetterFailed  LetterState = "failed"  // refused for good
	LetterUnknown LetterState = "unknown" // nobody can tell whether it was sent
	LetterDropped LetterState = "dropped" // by hand
)

// Letter is a mail to be sent: an entry of the outbox.
type Letter struct {
	ID        int64
	Key       string // unique: what has one is said once
	Task      int64  // 0 for none
	Channel   string // list address
	MessageID string // without <>
	From      string // address
	To        []Recipient
	Subject   string
	Body      []byte // the bytes as sent, with header
	State     LetterState
	Reason    string
	Approved  bool // by hand: it is sent whatever mode its list is in by now
	Attempts  int
	Next      time.Time // not before
	Created   time.Time
	Started   time.Time // of the last attempt
	Ended     time.Time // zero until it is sent, failed or dropped
}

// Recipient is an address of the envelope and what became of it.
type Recipient struct {
	Address string `json:"address"`
	State   string `json:"state,omitempty"` // "", sent or failed
	Reply   string `json:"reply,omitempty"` // of the server
}

// Errors that can be tested for.
var (
	// ErrNoLetter says that there is no such letter.
	ErrNoLetter = errors.New("no such letter")
	// ErrState says that a letter or notice, or what else is kept beside it, is in a
	// state from which it cannot be moved as wanted.
	ErrState = errors.New("not possible in this state")
)

// letterMoves are the states to which a letter may be moved by hand. A sent one
// is never queued: it would be said twice; it has failed when a mail server reports
// that later. That which is being sent is its sender's, until somebody knows that he
// is gone.
var letterMoves = map[LetterState][]LetterState{
	LetterHeld:    {LetterQueued, LetterDropped},
	LetterQueued:  {LetterHeld, LetterDropped},
	LetterSending: {LetterUnknown},
	LetterSent:    {LetterFailed},
	LetterFailed:  {LetterHeld, LetterQueued, LetterDropped},
	LetterUnknown: {LetterHeld, LetterQueued, LetterSent, LetterFailed, LetterDropped},
	LetterDropped: {LetterHeld, LetterQueued},
}

// letterEnds are the states to which a sender brings the letter that he has.
var letterEnds = []LetterState{LetterQueued, LetterHeld, LetterSent, LetterFailed, LetterUnknown}

// over says whether nothing more happens to a letter in this state by itself.
func (s LetterState) over() bool {
	return s == LetterSent || s == LetterFailed || s == LetterDropped
}

// Put adds a letter to the outbox, queued or held, unless one with its key is
// there. It says whether it was added.
func (o *Outbox) Put(ctx context.Context, l Letter) (added bool, err error) {
	err = o.db.Do(ctx, "put letter "+l.Key+" into the outbox", func(tx *sql.Tx) error {
		added, err = o.Add(ctx, tx, l)
		return err
	})
	return added, err
}

// Add is Put in a transaction of the caller's.
func (o *Outbox) Add(ctx context.Context, tx *sql.Tx, l Letter) (bool, error) {
	if l.State == "" {
		l.State = LetterQueued
	}
	switch {
	case l.Key == "":
		return false, errors.New("it has no key")
	case l.State != LetterQueued && l.State != LetterHeld:
		return false, fmt.Errorf("%w: a letter does not begin as %q", ErrState, l.State)
	case len(l.To) == 0:
		return false, errors.New("it has no recipients")
	}
	to, err := recipients(l.To)
	if err != nil {
		return false, err
	}
	if l.Created.IsZero() {
		l.Created = o.now()
	}
	body := l.Body
	if body == nil {
		body = []byte{}
	}
	result, err := tx.ExecContext(ctx, `
		INSERT INTO letters (letter_key, task, channel, message_id, sender, recipients, subject, state, reason, approved, attempts, next,
			created, started, ended, body)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, $10, $11, '', '', $12) ON CONFLICT (letter_key) DO NOTHING`,
		db.Text(l.Key), l.Task, db.Text(l.Channel), db.Text(l.MessageID), db.Text(l.From), to, db.Text(l.Subject), string(l.State),
		db.Text(l.Reason), db.Time(l.Next), db.Time(l.Created), body)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

func recipients(to []Recipient) (string, error) {
	clean := make([]Recipient, len(to))
	for i, r := range to {
		clean[i] = Recipient{db.Text(r.Address), db.Text(r.State), db.Text(r.Reply)}
	}
	b, err := json.Marshal(clean)
	return string(b), err
}

const letterColumns = `id, letter_key, task, channel, message_id, sender, recipients, subject, state, reason, approved, attempts, next,
	created, started, ended`

func scanLetter(r db.Row, more ...any) (*Letter, error) {
	var l Letter
	var to, next, created, started, ended string
	err := r.Scan(append([]any{&l.ID, &l.Key, &l.Task, &l.Channel, &l.MessageID, &l.From, &to, &l.Subject, &l.State, &l.Reason, &l.Approved, &l.Attempts,
		&next, &created, &started, &ended}, more...)...)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(to), &l.To); err != nil {
		return nil, fmt.Errorf("letter %d: recipients: %w", l.ID, err)
	}
	for _, c := range []struct {
		text string
		time *time.Time
	}{{next, &l.Next}, {created, &l.Created}, {started, &l.Started}, {ended, &l.Ended}} {
		if *c.time, err = db.ParseTime(c.text); err != nil {
			return nil, fmt.Errorf("letter %d: %w", l.ID, err)
		}
	}
	return &l, nil
}

// Letters gives the letters in these states, in all if none is named, without
// their bodies, the newest first.
func (o *Outbox) Letters(ctx context.Context, states ...LetterState) ([]Letter, error) {
	text := `SELECT ` + letterColumns + ` FROM letters`
	var args []any
	var marks []string
	for i, state := range states {
		args = append(args, string(state))
		marks = append(marks, fmt.Sprint("$", i+1))
	}
	if len(states) > 0 {
		text += ` WHERE state IN (` + strings.Join(marks, ", ") + `)`
	}
	var all []Letter
	err := db.Query(ctx, o.db, func(r db.Row) error {
		l, err := scanLetter(r)
		if err == nil {
			all = append(all, *l)
		}
		return err
	}, text+` ORDER BY id DESC`, args...)
	if err != nil {
		return nil, o.db.Fail("list letters", err)
	}
	return all, nil
}

// Letter gives the letter with this id, or ErrNoLetter.
func (o *Outbox) Letter(ctx context.Context, id int64) (*Letter, error) {
	return o.letter(ctx, fmt.Sprintf("read letter %d", id), `id = $1`, id)
}

// LetterByMessageID gives the newest letter with this Message-ID (without <>), or
// ErrNoLetter.
func (o *Outbox) LetterByMessageID(ctx context.Context, id string) (*Letter, error) {
	return o.letter(ctx, "read letter "+id, `id = (SELECT max(id) FROM letters WHERE message_id = $1)`, db.Text(id))
}

func (o *Outbox) letter(ctx context.Context, what, where string, args ...any) (*Letter, error) {
	var body []byte
	l, err := scanLetter(o.db.QueryRowContext(ctx, `SELECT `+letterColumns+`, body FROM letters WHERE `+where, args...), &body)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoLetter
	}
	if err != nil {
		return nil, o.db.Fail(what, err)
	}
	l.Body = body
	return l, nil
}

// NextLetter gives a queued letter that is due and marks it as being sent, its
// Attempts one higher; nil if there is none. The sender then owes a Settle.
func (o *Outbox) NextLetter(ctx context.Context, now time.Time) (*Letter, error) {
	var body []byte
	l, err := scanLetter(o.db.QueryRowContext(ctx, `
		UPDATE letters SET state = 'sending', attempts = attempts + 1, started = $1
		WHERE id = (SELECT id FROM letters WHERE state = 'queued' AND (next <= $1 OR next > $2) ORDER BY next, id LIMIT 1`+o.db.SkipLocked+`)
		RETURNING `+letterColumns+`, body`, db.Time(now), db.Time(now.Add(db.Far))), &body)
	there, err := db.Found(err)
	if err != nil {
		return nil, o.db.Fail("take a letter to send", err)
	}
	if !there {
		return nil, nil
	}
	l.Body = body
	return l, nil
}

// Settle keeps what became of a letter that was being sent, or of which that was
// unknown: State (queued for another try at Next, held, sent, failed or unknown),
// Reason, Next and To. It gives ErrState if the letter is neither, or if another
// sender has it: l's Attempts and Started tell, and stay as they were given.
func (o *Outbox) Settle(ctx context.Context, l *Letter) error {
	return o.db.Do(ctx, fmt.Sprintf("settle letter %d", l.ID), func(tx *sql.Tx) error {
		if !slices.Contains(letterEnds, l.State) {
			return fmt.Errorf("%w: a letter that was being sent does not become %q", ErrState, l.State)
		}
		to, err := recipients(l.To)
		if err != nil {
			return err
		}
		ended := ""
		if l.State.over() {
			ended = db.Time(o.now())
		}
		result, err := tx.ExecContext(ctx, `
			UPDATE letters SET state = $2, reason = $3, next = $4, recipients = $5, ended = $6
			WHERE id = $1 AND state IN ('sending', 'unknown') AND attempts = $7 AND started = $8`,
			l.ID, string(l.State), db.Text(l.Reason), db.Time(l.Next), to, ended, l.Attempts, db.Time(l.Started))
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); n > 0 || err != nil {
			return err
		}
		state, err := o.letterState(ctx, tx, l.ID)
		switch {
		case err != nil:
			return err
		case state == LetterSending:
			return fmt.Errorf("%w: another sender has it", ErrState)
		}
		return fmt.Errorf("%w: it is %s", ErrState, state)
	})
}

func (o *Outbox) letterState(ctx context.Context, tx *sql.Tx, id int64) (state LetterState, err error) {
	err = tx.QueryRowContext(ctx, `SELECT state FROM letters WHERE id = $1`+o.db.ForUpdate, id).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoLetter
	}
	return state, err
}

// MoveLetter moves a letter by hand: approve (held to queued), hold, resend
// (failed or unknown to queued), drop. It gives ErrState if the letter is in none
// of the states from, or one from which there is no such way; a sent letter
// is never queued again. A queued letter is approved, due at once, has its attempts
// counted anew, and is sent again to recipients who were refused, never to those
// who have it.
func (o *Outbox) MoveLetter(ctx context.Context, id int64, from []LetterState, to LetterState, why string) error {
	return o.db.Do(ctx, fmt.Sprintf("move letter %d to %s", id, to), func(tx *sql.Tx) error {
		state, err := o.letterState(ctx, tx, id)
		if err != nil {
			return err
		}
		if !slices.Contains(from, state) || !slices.Contains(letterMoves[state], to) {
			return fmt.Errorf("%w: it is %s", ErrState, state)
		}
		ended, attempts, approved := "", `attempts`, `approved`
		if to.over() {
			ended = db.Time(o.now())
		}
		switch to {
		case LetterHeld:
			approved = `0`
		case LetterQueued:
			attempts, approved = `0`, `1`
			if err := askAgain(ctx, tx, id); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `UPDATE letters SET state = $2, reason = $3, next = '', ended = $4, attempts = `+attempts+`, approved = `+approved+` WHERE id = $1`,
			id, string(to), db.Text(why), ended)
		return err
	})
}

// askAgain forgets that recipients of a letter were refused.
func askAgain(ctx context.Context, tx *sql.Tx, id int64) error {
	l, err := scanLetter(tx.QueryRowContext(ctx, `SELECT `+letterColumns+` FROM letters WHERE id = $1`, id))
	if err != nil {
		return err
	}
	for i := range l.To {
		if l.To[i].State == "failed" {
			l.To[i] = Recipient{Address: l.To[i].Address}
		}
	}
	to, err := recipients(l.To)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE letters SET recipients = $2 WHERE id = $1`, id, to)
	return err
}
