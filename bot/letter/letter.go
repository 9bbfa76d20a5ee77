// Package letter writes the mail that answers a series: the text of its stored
// evaluation, with a header that puts it into the series' thread.
//
// In goes a store.Evaluation, where the answer goes, and the evaluation of the
// version before if there was one; out comes a store.Letter, all bytes of it as
// they will be sent, the same for the same input. It is the stage between
// bot/work, which has evaluated, and bot/reply, which only delivers. Nothing is
// judged, stored or sent here.
//
//	From: Patchbench <bench@example.org>
//	To: Some Author <one@example.org>
//	Cc: kit@lists.example.org
//	Subject: Re: [PATCH 0/5] kit: cleaner hash, faster table
//	Message-ID: <patchbench.5f0c...@example.org>
//	In-Reply-To: <20261129.kit@example.org>
//	References: <20261129.kit@example.org>
//	Auto-Submitted: auto-replied
//	X-Patchbench: 1b6a...
//
// The mail goes to the author and, with a copy, to the list; to nobody else,
// whatever stands in the series. Its Message-ID is a keyed hash of the letter's key:
// a second composing gives the same one, and a stranger cannot guess it. The mark
// X-Patchbench is a keyed hash of the Message-ID, by which Ours knows own mail.
//
// Body: one part of plain text. Text in ASCII is sent as it is, other text as
// quoted-printable: both pass every server unchanged, while 8bit is converted on
// the way by servers without 8BITMIME.
package letter

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store"
)

// ErrRefused says that this evaluation can never be answered by mail, and why:
// trying again gives the same. The messages around it say what is the matter.
var ErrRefused = errors.New("no letter")

// Modes of a list, as store.MailPayload names them.
const (
	modeDryRun     = "dry-run"
	modeAuthorOnly = "author-only"
)

// Options are what a letter needs beside the evaluation. From, Secret, Key and Now
// must be given.
type Options struct {
	From mbox.Address // of the bot
	// Secret keys the hashes of the Message-ID and of the mark.
	Secret []byte
	// AutoSubmitted adds the field by which other robots know not to answer
	// (RFC 3834).
	AutoSubmitted bool
	URL           string    // of the evaluation's page; "" for none
	Key           string    // of the letter: what has one is said once
	Now           time.Time // its date
}

// Compose writes the letter that tells of e. before is the evaluation of the
// version before, or nil. It is nil when there is nothing to say: a neutral result
// on a list that wants none. An error that is ErrRefused is final.
//
// A series that does not apply is told to its author alone. In the mode dry-run
// the letter is held, else it is queued.
func Compose(e, before *store.Evaluation, p store.MailPayload, o Options) (*store.Letter, error) {
	switch {
	case e.Unsafe:
		return nil, fmt.Errorf("%w: evaluation %s was measured without a sandbox", ErrRefused, e.ID)
	case p.Quiet && neutral(e) && (before == nil || neutral(before)):
		return nil, nil
	}
	return compose(p.Thread, p.Mode, e.Conflict == nil, body(e, before, o.URL), o)
}

// compose writes a letter with this text to the author of a mail and, with a copy, to
// its list, if that may have one.
func compose(t store.Thread, mode string, copies bool, text string, o Options) (*store.Letter, error) {
	switch {
	case o.Key == "" || len(o.Secret) == 0:
		return nil, errors.New("compose a letter: no key or no secret is given")
	case !validID(t.MessageID):
		return nil, fmt.Errorf("%w: the mail to be answered has no valid Message-ID", ErrRefused)
	}
	from := strings.ToLower(o.From.Email)
	if !plainAddress(from) {
		return nil, fmt.Errorf("compose a letter: the bot's own address %q cannot be written to: set smtp.from", o.From.Email)
	}
	author, list := t.Author, t.List
	switch {
	case !plainAddress(author.Email):
		return nil, fmt.Errorf("%w: the author's address %.100q is not of the form name@domain", ErrRefused, author.Email)
	case strings.EqualFold(author.Email, from):
		return nil, fmt.Errorf("%w: the author's address is the bot's own", ErrRefused)
	case list != "" && !plainAddress(list):
		return nil, fmt.Errorf("%w: the list's address %.100q is not of the form name@domain", ErrRefused, list)
	}
	if mode == modeAuthorOnly || !copies || strings.EqualFold(author.Email, list) || strings.EqualFold(list, from) {
		list = ""
	}
	l := &store.Letter{
		Key: o.Key, Channel: t.List, MessageID: messageID(o), From: o.From.Email,
		To: []store.Recipient{{Address: author.Email}}, Subject: subject(t.Subject),
		State: store.LetterQueued, Created: o.Now.UTC(), Next: o.Now.UTC(),
	}
	if list != "" {
		l.To = append(l.To, store.Recipient{Address: list})
	}
	if mode == modeDryRun {
		l.State, l.Reason = store.LetterHeld, "dry run: it is sent when it is approved"
	}
	var err error
	l.Body, err = assemble(header(l, t, list, o), text)
	return l, err
}

// neutral says that an evaluation found nothing that its author must know.
func neutral(e *store.Evaluation) bool {
	if e.Verdict != bench.Same && e.Verdict != bench.Unclear || e.Conflict != nil || len(e.Failures) > 0 {
		return false
	}
	if e.Series != nil && !e.Series.Complete {
		return false
	}
	for _, v := range e.Versions {
		if v.State == bench.BuildFailed {
			return false
		}
	}
	for _, c := range e.Results {
		for _, s := range c.Steps {
			// One patch makes it worse, another better again.
			if c.Tested && s.Verdict.Changed() {
				return false
			}
		}
	}
	return true
}
