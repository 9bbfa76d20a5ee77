// Package maildir follows a Maildir as mail servers deliver into it, and looks
// for mails in it. It only reads: nothing is moved, flagged or deleted, so that a
// mail reader may work on the same folder.
//
//	s, err := maildir.New("Maildir")
//	err = s.Follow(ctx, cursor, take, notify)
//
// A mail is known by its file's unique name, which is what stands before the
// colon. That name is the only thing that stays: a reader moves files from new/ to
// cur/ and renames them when flags change, delivery agents and tools for
// synchronising make files appear in any order, with times of long ago. So the
// cursor holds all unique names that are in the folder, in five bytes each: 70 kB
// for 10,000 mails. Keep the folder of a busy list small.
//
// The first start notes what is there and gives nothing of it. Folders inside the
// Maildir are not read.
package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// pollEvery is how often the folder is looked at.
const pollEvery = time.Second

// Source is a Maildir. It is a feed.Feed and a feed.Finder, and may be used as
// both at once.
type Source struct {
	path string
}

// New names a Maildir. The folder may come later; only then is anything given.
func New(path string) (*Source, error) {
	abs, err := filepath.Abs(path)
	if path == "" || err != nil {
		return nil, fmt.Errorf("maildir: %q is no path", path)
	}
	return &Source{path: abs}, nil
}

// Name is maildir:PATH.
func (s *Source) Name() string { return "maildir:" + s.path }

// Follow is that of feed.Feed.
func (s *Source) Follow(ctx context.Context, cursor string, take func(context.Context, feed.Batch) error, notify func(feed.Event)) error {
	known, err := parseCursor(cursor)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	f := &follower{source: s, known: known, first: cursor == "", take: take, notify: notify, absent: map[key]int{}, unread: map[key]bool{}}
	return feed.Retry(ctx, s.Name(), notify, f.run)
}

// follower is one Follow.
type follower struct {
	source *Source
	known  map[key]bool // mails that were given or were there at the first start
	first  bool
	take   func(context.Context, feed.Batch) error
	notify func(feed.Event)

	absent map[key]int  // known mails that the last looks did not see, and how many
	unread map[key]bool // mails that could not be read, and that this was told of
	seen   stamp        // the folders when they were last looked at
}

// forget is how many looks must miss a mail before its name is forgotten. A file
// that is renamed while the folder is read may be missed once.
const forget = 10

func (f *follower) run(ctx context.Context, well func()) (further bool, err error) {
	f.seen = stamp{}
	for {
		took, err := f.look(ctx)
		further = further || took
		if err != nil {
			return further, err
		}
		well()
		if err := feed.Sleep(ctx, pollEvery); err != nil {
			return further, err
		}
	}
}

// look gives what is new.
func (f *follower) look(ctx context.Context) (took bool, err error) {
	now, err := f.source.stamp()
	if err != nil {
		return false, err
	}
	if now == f.seen && len(f.absent) == 0 && len(f.unread) == 0 {
		return false, nil
	}
	files, err := f.source.list()
	if err != nil {
		return false, err
	}
	here := make(map[key]bool, len(files))
	var fresh []file
	for _, m := range files {
		if here[m.key] {
			continue // met in new/ and, renamed in between, in cur/
		}
		here[m.key] = true
		if !f.known[m.key] && !f.first {
			fresh = append(fresh, m)
		}
	}
	if f.first {
		// A file that was renamed meanwhile may have been missed.
		again, err := f.source.list()
		if err != nil {
			return false, err
		}
		for _, m := range again {
			here[m.key] = true
		}
		if err := f.take(ctx, feed.Batch{Cursor: format(here)}); err != nil {
			return false, fmt.Errorf("take the beginning: %w", err)
		}
		f.known, f.first, f.seen = here, false, now
		return true, nil
	}
	f.prune(here)
	waiting, took, err := f.give(ctx, fresh)
	if err != nil {
		return took, err
	}
	// A folder's time may stand still over two deliveries: look again until it
	// is past.
	if !waiting && time.Since(now.newest) > 2*time.Second {
		f.seen = now
	}
	return took, nil
}

// prune forgets mails that are no longer there.
func (f *follower) prune(here map[key]bool) {
	for k := range f.known {
		switch {
		case here[k]:
			delete(f.absent, k)
		case f.absent[k]+1 >= forget:
			delete(f.absent, k)
			delete(f.known, k)
		default:
			f.absent[k]++
		}
	}
	for k := range f.unread {
		if !here[k] {
			delete(f.unread, k)
		}
	}
}

// give hands new mails over in batches; waiting says that some could not be read.
func (f *follower) give(ctx context.Context, fresh []file) (waiting, took bool, err error) {
	for i := range fresh {
		if fi, err := os.Lstat(fresh[i].path); err == nil {
			fresh[i].when = fi.ModTime().UTC()
		}
	}
	slices.SortFunc(fresh, func(a, b file) int {
		return cmp.Or(a.when.Compare(b.when), strings.Compare(a.name, b.name))
	})
	var batch feed.Batch
	var keys []key
	size := 0
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		for _, k := range keys {
			f.known[k] = true
		}
		batch.Cursor = format(f.known)
		if err := f.take(ctx, batch); err != nil {
			for _, k := range keys {
				delete(f.known, k)
			}
			return fmt.Errorf("take %d mails: %w", len(keys), err)
		}
		took = true
		batch, keys, size = feed.Batch{}, nil, 0
		return nil
	}
	for _, m := range fresh {
		if err := ctx.Err(); err != nil {
			return waiting, took, err
		}
		raw, whole, err := read(m.path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && whole == 0 {
			waiting = true // renamed just now, or not written yet
			continue
		}
		if err != nil {
			waiting = true
			if !f.unread[m.key] {
				f.unread[m.key] = true
				f.tell(fmt.Sprintf("mail %s cannot be read and is tried again", m.name), err)
			}
			continue
		}
		delete(f.unread, m.key)
		if whole > mbox.MaxMail {
			f.tell(fmt.Sprintf("mail %s has %d bytes: its first %d are read", m.name, whole, len(raw)), nil)
		}
		if len(keys) == feed.MaxMails || size+len(raw) > feed.MaxBytes {
			if err := flush(); err != nil {
				return waiting, took, err
			}
		}
		batch.Mails = append(batch.Mails, feed.Mail{Raw: raw, Received: m.when, Cut: whole > mbox.MaxMail})
		keys = append(keys, m.key)
		size += len(raw)
	}
	return waiting, took, flush()
}

func (f *follower) tell(text string, err error) {
	feed.Tell(f.notify, feed.Event{Text: f.source.Name() + ": " + text, Err: err})
}

// file is a mail as it lies in the folder.
type file struct {
	path, name string // name is unique: the file's to its colon
	key        key
	when       time.Time // zero until asked for, and if it is gone by then
}

// stamp tells whether anything was put into the folders or taken out.
type stamp struct {
	cur, newer time.Time
	newest     time.Time
}

func (s *Source) stamp() (stamp, error) {
	var t stamp
	for sub, at := range map[string]*time.Time{"cur": &t.cur, "new": &t.newer} {
		fi, err := os.Stat(filepath.Join(s.path, sub))
		if err != nil {
			return stamp{}, err
		}
		*at = fi.ModTime()
		if at.After(t.newest) {
			t.newest = *at
		}
	}
	return t, nil
}

// list lists the mails. new/ is read before cur/, so that a mail that is moved
// meanwhile is met at least once.
func (s *Source) list() ([]file, error) {
	var files []file
	for _, sub := range []string{"new", "cur"} {
		dir := filepath.Join(s.path, sub)
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".") || !e.Type().IsRegular() {
				continue
			}
			name, _, _ := strings.Cut(e.Name(), ":")
			m := file{path: filepath.Join(dir, e.Name()), name: name, key: keyOf(name)}
			files = append(files, m)
		}
	}
	return files, nil
}

// read reads a mail, or the beginning of one that is too large, and says how many
// bytes it has. What only looks like a file is not waited for.
func read(path string) ([]byte, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !fi.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no file", path)
	}
	size := fi.Size()
	if size > mbox.MaxMail {
		raw := make([]byte, feed.CutAt)
		if _, err := io.ReadFull(f, raw); err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", path, err)
		}
		return raw, size, nil
	}
	raw, err := io.ReadAll(io.LimitReader(f, mbox.MaxMail))
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", path, err)
	}
	return raw, int64(len(raw)), nil
}
