package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/source/epoch"
	"patchbench/mbox/source/feed"
)

var errNoMirror = errors.New("no mirror of a public-inbox there (looked for 0.git and git/0.git)")

// follower is one Follow.
type follower struct {
	source *Source
	at     cursor
	first  bool
	take   func(context.Context, feed.Batch) error
	notify func(feed.Event)

	taken int                      // batches in this attempt
	seen  map[string]plumbing.Hash // the epochs' tips when all was given
}

func (f *follower) tell(format string, args ...any) {
	feed.Tell(f.notify, feed.Event{Text: f.source.Name() + ": " + fmt.Sprintf(format, args...)})
}

func (f *follower) run(ctx context.Context, well func()) (further bool, err error) {
	f.taken, f.seen = 0, nil
	for {
		if err := f.look(ctx); err != nil {
			return f.taken > 0, err
		}
		well()
		if err := feed.Sleep(ctx, f.source.poll); err != nil {
			return f.taken > 0, err
		}
	}
}

// look gives what is new.
func (f *follower) look(ctx context.Context) error {
	dirs := epoch.Dirs(f.source.path)
	if len(dirs) == 0 {
		return errNoMirror
	}
	slices.Reverse(dirs)
	if f.first {
		if err := f.begin(ctx, dirs); err != nil {
			return err
		}
	}
	if epoch.Number(dirs[len(dirs)-1]) < f.at.Epoch {
		return fmt.Errorf("epoch %d is gone, from which mail was read, and no later one is there", f.at.Epoch)
	}
	tips := map[string]plumbing.Hash{}
	news := false
	for _, dir := range dirs {
		if epoch.Number(dir) < f.at.Epoch {
			continue
		}
		tip, err := epoch.Tip(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		tips[dir] = tip
		seen, known := f.seen[dir]
		news = news || !known || seen != tip
	}
	if !news {
		return nil
	}
	for _, dir := range dirs {
		if epoch.Number(dir) >= f.at.Epoch {
			if err := f.epoch(ctx, dir); err != nil {
				return err
			}
		}
	}
	f.seen = tips
	return nil
}

// begin is the first start: it notes the newest commit.
func (f *follower) begin(ctx context.Context, dirs []string) error {
	at := cursor{Epoch: epoch.Number(dirs[len(dirs)-1])}
	for _, dir := range slices.Backward(dirs) {
		e, err := epoch.Open(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if e.Tip.IsZero() {
			e.Close() // just begun
			continue
		}
		at.Epoch, at.Commit = epoch.Number(dir), e.Tip.String()
		last, _, err := walk(ctx, e, func(id plumbing.Hash, n int) bool { return n == 10*remembered })
		e.Close()
		if err != nil {
			return err
		}
		now := time.Now()
		for _, c := range slices.Backward(last) {
			at.saw(c.Commit, now)
		}
		if len(at.Mails) == 0 {
			return fmt.Errorf("%s: no mail in its last %d commits: is it of public-inbox's format v2?", dir, len(last))
		}
		at.Old = at.Newest
		break
	}
	before := f.at
	f.at = at
	if err := f.give(ctx, nil); err != nil {
		f.at = before
		return err
	}
	f.first = false
	return nil
}

// placed is a commit with its id.
type placed struct {
	epoch.Commit
	id plumbing.Hash
}

// walk reads commits from the tip back until stop, which gets the id of the next
// one and how many were read, says so; stopped says that it did.
func walk(ctx context.Context, e *epoch.Epoch, stop func(id plumbing.Hash, n int) bool) (list []placed, stopped bool, err error) {
	for at := e.Tip; !at.IsZero(); {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if stop(at, len(list)) {
			return list, true, nil
		}
		c, err := e.Commit(at)
		if err != nil {
			return nil, false, fmt.Errorf("%s: commit %s: %w", e.Dir, at, err)
		}
		list = append(list, placed{c, at})
		at = c.Parent
	}
	return list, false, nil
}

// epoch gives what is new in one epoch: the cursor's, or a later one.
func (f *follower) epoch(ctx context.Context, dir string) error {
	e, err := epoch.Open(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	defer e.Close()
	number := epoch.Number(dir)
	last := ""
	if number == f.at.Epoch {
		last = f.at.Commit
	}
	if e.Tip.IsZero() {
		if last != "" {
			return fmt.Errorf("%s: it is empty, but mail was read from it", dir)
		}
		return nil
	}
	list, met, err := walk(ctx, e, func(id plumbing.Hash, _ int) bool { return id.String() == last })
	if err != nil {
		return err
	}
	if last != "" && !met {
		list = f.rewritten(dir, list)
	}
	return f.batches(ctx, e, number, list)
}

// rewritten gives what is new among all commits of an epoch, newest first, that
// does not hold the cursor's any more.
func (f *follower) rewritten(dir string, list []placed) []placed {
	for i, c := range list {
		if slices.Contains(f.at.Mails, c.Mail.String()) {
			f.tell("%s has been rewritten, as when a mail is purged: going on behind mail %s", dir, c.Mail)
			return list[:i]
		}
	}
	since := f.at.Newest.Add(-overlap)
	f.tell("%s has been rewritten and the last mails are gone: what came since %s is read again", dir, since.Format(time.DateOnly))
	return slices.DeleteFunc(list, func(c placed) bool {
		return c.When.Before(since) || !f.at.Old.IsZero() && !c.When.After(f.at.Old)
	})
}

// batches gives these commits' mails; they stand newest first.
func (f *follower) batches(ctx context.Context, e *epoch.Epoch, number int, list []placed) error {
	var mails []feed.Mail
	size := 0
	next := f.at
	flush := func() error {
		before := f.at
		f.at = next
		if err := f.give(ctx, mails); err != nil {
			f.at = before
			return err
		}
		mails, size = nil, 0
		return nil
	}
	now := time.Now()
	for _, c := range slices.Backward(list) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var raw []byte
		whole, given := int64(0), false
		if !c.Mail.IsZero() {
			var err error
			if raw, whole, err = f.source.read(e, c.Mail); err != nil {
				return fmt.Errorf("%s: mail %s: %w", e.Dir, c.Mail, err)
			}
			given = whole <= f.source.huge
			switch {
			case !given:
				f.tell("mail %s has %d bytes and is left out", c.Mail, whole)
			case whole > mbox.MaxMail:
				f.tell("mail %s has %d bytes: its first %d are read", c.Mail, whole, len(raw))
			}
		}
		if len(mails) > 0 && (len(mails) == feed.MaxMails || size+len(raw) > feed.MaxBytes) {
			if err := flush(); err != nil {
				return err
			}
		}
		if given {
			mails = append(mails, feed.Mail{Raw: raw, Received: c.When, Cut: whole > mbox.MaxMail})
			size += len(raw)
		}
		next.Epoch, next.Commit = number, c.id.String()
		next.saw(c.Commit, now)
	}
	// The last commits may have no mail, or may have been passed over.
	next.Epoch, next.Commit = number, e.Tip.String()
	if len(mails) > 0 || next.Epoch != f.at.Epoch || next.Commit != f.at.Commit {
		return flush()
	}
	return nil
}

// give hands mails and the cursor behind them over.
func (f *follower) give(ctx context.Context, mails []feed.Mail) error {
	if err := f.take(ctx, feed.Batch{Mails: mails, Cursor: f.at.String()}); err != nil {
		return fmt.Errorf("take %d mails: %w", len(mails), err)
	}
	f.taken++
	return nil
}
