package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"patchbench/store/db"
)

// Notice is what should stand at a pull request: the newest is delivered, those
// before it may never be seen.
type Notice struct {
	Repo      string // owner/name
	Number    int
	Head      string // commit
	Comment   string // Markdown
	Check     string // JSON of the check run
	Seq       int64  // counts changes, from 1
	Sent      int64  // the Seq that was delivered last
	Lent      int64  // counts deliveries begun
	CommentID int64  // at GitHub, 0 for none yet
	CheckID   int64
	CheckHead string    // the commit of CheckID
	Next      time.Time // not before
	Attempts  int       // since the last one that was delivered
	Reason    string    // why it was not delivered
}

// PutNotice says what should stand at a pull request from now on: Head, Comment
// and Check. What is known of GitHub's side stays, and a pause that is being kept.
// The same once more changes nothing.
func (o *Outbox) PutNotice(ctx context.Context, n Notice) error {
	return o.db.Do(ctx, fmt.Sprintf("put notice for %s#%d", n.Repo, n.Number), func(tx *sql.Tx) error { return o.AddNotice(ctx, tx, n) })
}

// AddNotice is PutNotice in a transaction of the caller's.
func (o *Outbox) AddNotice(ctx context.Context, tx *sql.Tx, n Notice) error {
	if n.Repo == "" || n.Number <= 0 {
		return errors.New("it names no pull request")
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO notices (repo, number, head, comment, check_run, seq, sent, lent, comment_id, check_id, check_head, next, attempts, reason)
		VALUES ($1, $2, $3, $4, $5, 1, 0, 0, $6, $7, $8, $9, 0, '')
		ON CONFLICT (repo, number) DO UPDATE SET head = excluded.head, comment = excluded.comment, check_run = excluded.check_run,
			seq = notices.seq + 1
		WHERE notices.head <> excluded.head OR notices.comment <> excluded.comment OR notices.check_run <> excluded.check_run`,
		db.Text(n.Repo), n.Number, db.Text(n.Head), db.Text(n.Comment), db.Text(n.Check), n.CommentID, n.CheckID, db.Text(n.CheckHead), db.Time(n.Next))
	return err
}

// lent is how long a notice is its deliverer's before it is due again.
const lent = 2 * time.Minute

// NextNotice gives a notice that is due, its Attempts and Lent one higher; nil if
// there is none. It is lent for two minutes: unless it is settled until then, it
// is given again.
func (o *Outbox) NextNotice(ctx context.Context, now time.Time) (*Notice, error) {
	var n Notice
	var next string
	err := o.db.QueryRowContext(ctx, `
		UPDATE notices SET next = $2, attempts = attempts + 1, lent = lent + 1
		WHERE (repo, number) = (
			SELECT repo, number FROM notices WHERE sent < seq AND (next <= $1 OR next > $3) ORDER BY next, repo, number LIMIT 1`+o.db.SkipLocked+`)
		RETURNING repo, number, head, comment, check_run, seq, sent, lent, comment_id, check_id, check_head, next, attempts, reason`,
		db.Time(now), db.Time(now.Add(lent)), db.Time(now.Add(db.Far))).
		Scan(&n.Repo, &n.Number, &n.Head, &n.Comment, &n.Check, &n.Seq, &n.Sent, &n.Lent, &n.CommentID, &n.CheckID, &n.CheckHead, &next, &n.Attempts, &n.Reason)
	there, err := db.Found(err)
	if err == nil && there {
		n.Next, err = db.ParseTime(next)
	}
	if err != nil {
		return nil, o.db.Fail("take a notice to deliver", err)
	}
	if !there {
		return nil, nil
	}
	return &n, nil
}

// SettleNotice keeps what became of a notice that NextNotice gave. Sent = Seq
// says that it was delivered, or given up with a Reason: a newer one is due at once.
// Otherwise it is due again at Next. CommentID, CheckID, CheckHead and Reason are kept as they
// are in n. It gives ErrState if the notice has been lent to somebody else since.
func (o *Outbox) SettleNotice(ctx context.Context, n *Notice) error {
	return o.db.Do(ctx, fmt.Sprintf("settle notice for %s#%d", n.Repo, n.Number), func(tx *sql.Tx) error {
		next, attempts := db.Time(n.Next), n.Attempts
		if n.Sent == n.Seq {
			next, attempts = "", 0
		}
		result, err := tx.ExecContext(ctx, `
			UPDATE notices SET sent = $3, comment_id = $4, check_id = $5, check_head = $6, next = $7, attempts = $8, reason = $9
			WHERE repo = $1 AND number = $2 AND lent = $10 AND $3 >= sent AND $3 <= seq`,
			n.Repo, n.Number, n.Sent, n.CommentID, n.CheckID, db.Text(n.CheckHead), next, attempts, db.Text(n.Reason), n.Lent)
		if err != nil {
			return err
		}
		count, err := result.RowsAffected()
		if err == nil && count == 0 {
			err = fmt.Errorf("%w: it is not there or somebody else has taken it since", ErrState)
		}
		return err
	})
}
