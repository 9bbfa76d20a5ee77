package store

import (
	"context"
	"errors"
	"time"
)

var errNotYet = errors.New("not yet there")

// Mail is a message as it was taken in.
type Mail struct {
	// ID is the place in the order of taking in, from 1.
	ID int64
	// Key is the Message-ID without <>, or "sha256:HEX" for a mail without a usable one.
	Key string
	// SHA256 is that of Raw, in hexadecimal digits; TakeIn works it out.
	SHA256   string
	Source   string    // name of the feed
	Received time.Time // UTC
	Raw      []byte    // the bytes as received
	Problem  string    // why the mail cannot be read, "" if it can
}

// Cursor is where a source's next batch begins, "" before the first.
func (s *Store) Cursor(ctx context.Context, source string) (string, error) { return "", errNotYet }

// TakeIn keeps mails and moves the source's cursor in one transaction. A mail
// whose bytes are there already is passed over. It gives how many were new.
func (s *Store) TakeIn(ctx context.Context, source, cursor string, mails []Mail) (int, error) {
	return 0, errNotYet
}

// Mails gives up to limit mails behind id after, by ID.
func (s *Store) Mails(ctx context.Context, after int64, limit int) ([]Mail, error) {
	return nil, errNotYet
}

// MailsByKey gives all mails with these keys, by ID.
func (s *Store) MailsByKey(ctx context.Context, keys ...string) ([]Mail, error) {
	return nil, errNotYet
}

// PruneMails removes what was received before a time and gives how many mails that were.
func (s *Store) PruneMails(ctx context.Context, before time.Time) (int, error) {
	return 0, errNotYet
}
