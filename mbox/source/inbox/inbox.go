// Package inbox follows a mirror of a public-inbox (format v2) on disk, as git or
// grok-pull keeps it fresh, and looks for mails in it. It only reads; somebody
// else fetches.
//
//	s, err := inbox.New("/srv/mirror/git", time.Minute)
//	err = s.Follow(ctx, cursor, take, notify)
//
// Each commit of a mirror is one mail. The cursor names the last one given, with
// what finds the place again when its commit is gone:
//
//	{"epoch":1,"commit":"6f0c...","mails":["9ae1...", ...],"newest":"2026-03-01T10:00:00Z","old":"2026-02-01T09:00:00Z"}
//
// The first start notes the newest commit and gives nothing. A commit goes when
// the archive's owner purges a mail, which rewrites all commits after it: then the
// last mails given are looked for by their blob ids, and if these are gone as
// well, all mails since a day before the newest known one are given again, but
// none from before the first start.
package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/source/epoch"
	"patchbench/mbox/source/feed"
)

// Source is a mirror. It is a feed.Feed and a feed.Finder, and may be used as both
// at once.
type Source struct {
	path string
	poll time.Duration
	huge int64 // a mail past this size, in bytes, is not even read
}

// New names a mirror: the folder with 0.git, 1.git and on, or with git/0.git, or
// one epoch by itself. It is looked at every poll; 0 means a minute.
func New(path string, poll time.Duration) (*Source, error) {
	abs, err := filepath.Abs(path)
	if path == "" || err != nil {
		return nil, fmt.Errorf("inbox: %q is no path", path)
	}
	if poll <= 0 {
		poll = time.Minute
	}
	return &Source{path: abs, poll: poll, huge: 64 << 20}, nil
}

// Name is inbox:PATH.
func (s *Source) Name() string { return "inbox:" + s.path }

// cursor is where to go on in a mirror.
type cursor struct {
	Epoch int `json:"epoch"`
	// Commit is the last one given or passed over, "" at the epoch's beginning.
	Commit string    `json:"commit"`
	Mails  []string  `json:"mails,omitempty"` // the last blobs, the newest last
	Newest time.Time `json:"newest,omitzero"` // the latest date given, no later than now
	Old    time.Time `json:"old,omitzero"`    // the latest date there was at the first start
}

// remembered is how many mails a cursor names.
const remembered = 16

// overlap is how much before the newest known mail a rewritten epoch is given
// again: dates are those of mails' arrival, which is not always their order.
const overlap = 24 * time.Hour

func parseCursor(s string) (cursor, error) {
	var c cursor
	if s == "" {
		return c, nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if err == nil {
		if _, tail := d.Token(); tail != io.EOF {
			err = fmt.Errorf("text behind it")
		}
	}
	if err == nil && (c.Epoch < 0 || c.Commit != "" && !plumbing.IsHash(c.Commit)) {
		err = fmt.Errorf("epoch or commit is none")
	}
	if err != nil {
		return cursor{}, fmt.Errorf("cursor %.200q is none of a mirror: %w", s, err)
	}
	return c, nil
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers, texts and times that were read as such
	}
	return string(b)
}

// saw takes note of a mail.
func (c *cursor) saw(m epoch.Commit, now time.Time) {
	if !m.Mail.IsZero() {
		c.Mails = append(slices.Clone(c.Mails), m.Mail.String())
		c.Mails = c.Mails[max(0, len(c.Mails)-remembered):]
	}
	if when := m.When; when.After(now) {
		c.Newest = now.UTC().Truncate(time.Second)
	} else if when.After(c.Newest) {
		c.Newest = when
	}
}

// Follow is that of feed.Feed.
func (s *Source) Follow(ctx context.Context, cursor string, take func(context.Context, feed.Batch) error, notify func(feed.Event)) error {
	at, err := parseCursor(cursor)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	f := &follower{source: s, at: at, first: cursor == "", take: take, notify: notify}
	return feed.Retry(ctx, s.Name(), notify, f.run)
}

// Find looks for a mail of this Message-ID, from the newest commit back through
// the whole mirror. One that was taken back is found as well.
func (s *Source) Find(ctx context.Context, messageID string) (bool, error) {
	id := strings.Trim(strings.TrimSpace(messageID), "<>")
	if id == "" {
		return false, fmt.Errorf("%s: look for a mail: %q is no Message-ID", s.Name(), messageID)
	}
	dirs := epoch.Dirs(s.path)
	if len(dirs) == 0 {
		return false, fmt.Errorf("%s: look for <%s>: %w", s.Name(), id, errNoMirror)
	}
	for _, dir := range dirs {
		if found, err := s.find(ctx, dir, id); found || err != nil {
			if err != nil {
				err = fmt.Errorf("%s: look for <%s>: %w", s.Name(), id, err)
			}
			return found, err
		}
	}
	return false, nil
}

func (s *Source) find(ctx context.Context, dir, id string) (bool, error) {
	e, err := epoch.Open(dir)
	if err != nil {
		return false, err
	}
	defer e.Close()
	for at := e.Tip; !at.IsZero(); {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		c, err := e.Commit(at)
		if err != nil {
			return false, fmt.Errorf("%s: commit %s: %w", dir, at, err)
		}
		at = c.Parent
		if c.Mail.IsZero() {
			continue
		}
		raw, _, err := s.read(e, c.Mail)
		if err != nil {
			return false, fmt.Errorf("%s: mail %s: %w", dir, c.Mail, err)
		}
		if h, err := mbox.ParseHeader(raw); err == nil && h.ID == id {
			return true, nil
		}
	}
	return false, nil
}

// read reads a mail, or the beginning of one that is too large, and says how many
// bytes it has. It gives nil for a huge one.
func (s *Source) read(e *epoch.Epoch, mail plumbing.Hash) ([]byte, int64, error) {
	size, err := e.Size(mail)
	if err != nil || size > s.huge {
		return nil, size, err
	}
	_, raw, err := e.Read(mail)
	if err != nil {
		return nil, size, err
	}
	raw, _ = feed.Cut(raw)
	return slices.Clone(raw), size, nil // the store keeps its own bytes
}
