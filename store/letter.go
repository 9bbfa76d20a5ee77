package store

import (
	"context"
	"time"
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

// Put adds a letter to the outbox unless one with its key is there.
func (s *Store) Put(ctx context.Context, l Letter) (bool, error) { return false, errNotYet }

// Letters gives letters without their bodies, the newest first.
func (s *Store) Letters(ctx context.Context, states ...LetterState) ([]Letter, error) {
	return nil, errNotYet
}

// Letter gives a letter.
func (s *Store) Letter(ctx context.Context, id int64) (*Letter, error) { return nil, errNotYet }

// LetterByMessageID gives the letter with this Message-ID (without <>).
func (s *Store) LetterByMessageID(ctx context.Context, id string) (*Letter, error) {
	return nil, errNotYet
}

// NextLetter gives a letter to send, nil if none is due.
func (s *Store) NextLetter(ctx context.Context, now time.Time) (*Letter, error) {
	return nil, errNotYet
}

// Settle keeps what became of a letter.
func (s *Store) Settle(ctx context.Context, l *Letter) error { return errNotYet }

// MoveLetter moves a letter by hand.
func (s *Store) MoveLetter(ctx context.Context, id int64, from []LetterState, to LetterState, why string) error {
	return errNotYet
}
