// Package feed holds the nouns of mail that keeps arriving: what a source (an
// IMAP folder, a Maildir, a public-inbox mirror) gives to whoever stores it.
//
// A source gives its mail in batches, each with a cursor: a text that only the
// source understands and that says where to go on behind this batch. The taker
// stores mails and cursor in one transaction and hands the last cursor back at
// the next start, so that nothing is lost when the program dies anywhere. A mail
// may be given twice (after a lost connection, a renumbered mailbox, a rewritten
// mirror); the taker knows it again by its bytes. No mail is left out, but one that
// its place does not give for days.
//
// The sources are mbox/source/imap, mbox/source/maildir and mbox/source/inbox.
// This package does no input and no output of its own.
package feed

import (
	"context"
	"time"

	"patchbench/mbox"
)

// A Mail is one mail as its source has it.
type Mail struct {
	// Raw is the mail as stored, header and body. Of a mail larger than
	// mbox.MaxMail it is the first CutAt bytes (see Cut).
	Raw []byte
	// Received is when the source got the mail, in UTC: the INTERNALDATE, the
	// file's time, the commit's time.
	Received time.Time
	// Cut says that Raw is not all of the mail.
	Cut bool
}

// A Batch is some mails in the order of their arrival, MaxMails or MaxBytes at
// most unless a single mail is larger.
type Batch struct {
	Mails []Mail
	// Cursor is where to go on behind these mails. A batch may have no mails: at
	// the first start it tells where the source begins.
	Cursor string
}

// An Event tells what happened to a source that its operator should know: a lost
// connection (Err says why), a renumbered mailbox, a mail that was cut.
type Event struct {
	Text   string
	Err    error // nil if nothing failed
	Change Change
}

// Change says what an event means for the source as a whole.
type Change int

// The changes. What befalls a single mail is none.
const (
	None Change = iota
	Down        // nothing comes in, for the reason Err
	Up          // mail comes in again
)

// A Feed is a source that can be followed.
type Feed interface {
	// Name names the place, the same for the same place and without secrets:
	// "imap:user@host/INBOX".
	Name() string
	// Follow gives all mail behind cursor and then what arrives, in order, until
	// ctx ends; it then returns ctx's error. With an empty cursor it begins at the
	// end: what is there already is not given. take stores a batch; if it fails,
	// the same mails are given again later. A lost connection is mended inside,
	// with back-off, and told to notify, which may be nil. Any other error means
	// that waiting would not help: wrong configuration, a cursor of another source.
	Follow(ctx context.Context, cursor string, take func(context.Context, Batch) error, notify func(Event)) error
}

// A Finder looks for one of our own mails.
type Finder interface {
	// Find says whether a mail with this Message-ID, with or without <>, is in the
	// mailbox or archive. An error means that it is not known.
	Find(ctx context.Context, messageID string) (bool, error)
}

// Limits of a batch, and how much is given of a mail that is too large.
const (
	MaxMails = 100
	MaxBytes = 8 << 20
	CutAt    = 64 << 10
)

// Cut returns raw, or its first CutAt bytes if it is larger than mbox.MaxMail,
// and whether it was cut. The rest of the program then sees the header.
func Cut(raw []byte) ([]byte, bool) {
	if len(raw) <= mbox.MaxMail {
		return raw, false
	}
	return raw[:CutAt:CutAt], true
}
