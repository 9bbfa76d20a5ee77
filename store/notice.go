package store

import (
	"context"
	"time"
)

// Notice is what should stand at a pull request.
type Notice struct {
	Repo      string // owner/name
	Number    int
	Head      string // commit
	Comment   string // Markdown
	Check     string // JSON of the check run
	Seq       int64  // counts changes, from 1
	Sent      int64  // the Seq that was delivered last
	CommentID int64
	CheckID   int64
	CheckHead string
	Next      time.Time // not before
	Attempts  int
	Reason    string
}

// PutNotice replaces what should stand at a pull request.
func (s *Store) PutNotice(ctx context.Context, n Notice) error { return errNotYet }

// NextNotice gives a notice to deliver, nil if none is due.
func (s *Store) NextNotice(ctx context.Context, now time.Time) (*Notice, error) {
	return nil, errNotYet
}

// SettleNotice keeps what became of a notice.
func (s *Store) SettleNotice(ctx context.Context, n *Notice) error { return errNotYet }

// Delivery says whether a webhook's delivery id is new, and remembers it for 30 days.
func (s *Store) Delivery(ctx context.Context, id string) (bool, error) { return false, errNotYet }

// Value gives a small thing kept under a name, "" if there is none.
func (s *Store) Value(ctx context.Context, name string) (string, error) { return "", errNotYet }

// SetValue keeps a small thing under a name.
func (s *Store) SetValue(ctx context.Context, name, value string) error { return errNotYet }
