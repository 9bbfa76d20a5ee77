package imap

import (
	"context"
	"fmt"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// follower is one Follow, over all its connections.
type follower struct {
	source *Source
	at     cursor
	take   func(context.Context, feed.Batch) error
	notify func(feed.Event)

	size   int                // mails asked for at once: fewer after a lost connection
	taken  int                // batches in this session
	moved  bool               // at is further than what was taken
	failed map[goimap.UID]int // how many sessions did not get this mail, though it was asked for alone or others came
}

// brief is how long the first IDLE lasts after there was something: mails come in
// groups, and of one that comes between a command and an IDLE some servers say
// nothing until the next command.
const brief = 2 * time.Second

// window is how many mails' sizes are asked for at once.
const window = 500

func (f *follower) tell(format string, args ...any) {
	feed.Tell(f.notify, feed.Event{Text: f.source.name + ": " + fmt.Sprintf(format, args...)})
}

// warn tells what somebody should look into.
func (f *follower) warn(err error, format string, args ...any) {
	feed.Tell(f.notify, feed.Event{Text: f.source.name + ": " + fmt.Sprintf(format, args...), Err: err})
}

// session follows the folder over one connection until that ends.
func (f *follower) session(ctx context.Context, well func()) error {
	news := make(chan struct{}, 1)
	c, err := f.source.connect(ctx, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer c.close()
	folder, err := c.examine()
	if err != nil {
		return err
	}
	switch {
	case f.at.Validity == 0:
		err = f.begin(ctx, c, folder)
	case f.at.Validity != folder.UIDValidity:
		f.tell("the folder has been numbered anew (UIDVALIDITY %d, was %d): what came since %s is read again", folder.UIDValidity, f.at.Validity, day(f.at.Newest))
		err = f.renumber(c, folder)
	case folder.UIDNext > 0 && folder.UIDNext < f.at.Next:
		f.tell("the folder has gone back (UIDNEXT %d, was %d), as after a restored backup: what came since %s is read again", folder.UIDNext, f.at.Next, day(f.at.Newest))
		err = f.renumber(c, folder)
	}
	if err != nil {
		return err
	}
	for d := brief; ; {
		if err := f.catchUp(ctx, c); err != nil {
			return err
		}
		well()
		some, err := c.idle(ctx, news, min(d, f.source.o.Renew))
		if err != nil {
			return err
		}
		if d = f.source.o.Renew; some {
			d = brief
		}
	}
}

func day(t time.Time) string {
	if t.IsZero() {
		return "the start"
	}
	return t.Add(-overlap).Format(time.DateOnly)
}

func (f *follower) renumber(c *conn, folder *goimap.SelectData) error {
	next, err := c.next(folder)
	if err != nil {
		return err
	}
	f.at.renumbered(folder.UIDValidity, next)
	f.moved = true
	clear(f.failed)
	return nil
}

// begin is the first start: it notes where the folder ends and how old its newest
// mails are, and gives nothing.
func (f *follower) begin(ctx context.Context, c *conn, folder *goimap.SelectData) error {
	next, err := c.next(folder)
	if err != nil {
		return err
	}
	at := cursor{Validity: folder.UIDValidity, Next: next}
	if n := folder.NumMessages; n > 0 {
		first := uint32(1)
		if n > feed.MaxMails {
			first = n - feed.MaxMails + 1
		}
		c.link.expect(fetchAnswer)
		last, err := c.Fetch(goimap.SeqSet{{Start: first, Stop: n}}, &goimap.FetchOptions{UID: true, InternalDate: true}).Collect()
		if err != nil {
			return c.lost("dates", err)
		}
		for _, m := range last {
			if m.InternalDate.After(at.Old) {
				at.Old = m.InternalDate.UTC()
			}
		}
	}
	f.at = at
	if err := f.give(ctx, nil); err != nil {
		f.at = cursor{}
		return err
	}
	return nil
}

// give hands mails and the cursor behind them over.
func (f *follower) give(ctx context.Context, mails []feed.Mail) error {
	if err := f.take(ctx, feed.Batch{Mails: mails, Cursor: f.at.String()}); err != nil {
		return fmt.Errorf("take %d mails: %w", len(mails), err)
	}
	f.taken++
	f.moved = false
	return nil
}

// catchUp gives all mails from the cursor on.
func (f *follower) catchUp(ctx context.Context, c *conn) error {
	for {
		set, err := f.outstanding(c)
		if err != nil {
			return err
		}
		stuck, uids := f.choose(set)
		if len(uids) == 0 {
			if f.at.Until > 0 {
				f.at.Next = max(f.at.Next, f.at.Until)
				f.at.Until, f.at.Since = 0, time.Time{}
				f.moved = true
			}
			if f.moved {
				if err := f.give(ctx, nil); err != nil {
					return err
				}
			}
			return f.askAgain(ctx, c)
		}
		if err := f.window(ctx, c, uids, stuck); err != nil {
			return err
		}
	}
}

// outstanding asks which UIDs are still to be given. A server answers a search
// from n on with the last mail if all are below n.
func (f *follower) outstanding(c *conn) (goimap.UIDSet, error) {
	from := max(f.at.Next, f.at.Until)
	set, err := c.search(&goimap.SearchCriteria{UID: []goimap.UIDSet{{{Start: from, Stop: 0}}}})
	if err != nil || f.at.Next >= f.at.Until {
		return set, err
	}
	// The folder was numbered anew: of the UIDs that it had then the late ones only.
	late, err := c.search(&goimap.SearchCriteria{
		UID:   []goimap.UIDSet{{{Start: f.at.Next, Stop: f.at.Until - 1}}},
		Since: f.at.Since,
	})
	if err != nil {
		return nil, err
	}
	var both goimap.UIDSet
	for _, r := range late {
		if r.Start < f.at.Until {
			both.AddRange(r.Start, min(r.Stop, f.at.Until-1))
		}
	}
	for _, r := range set {
		if r.Stop >= from {
			both.AddRange(max(r.Start, from), r.Stop)
		}
	}
	return both, nil
}

// first gives the first n UIDs of a set from a UID on. Ranges are not written out:
// a server may claim to have four thousand million mails.
func first(set goimap.UIDSet, from goimap.UID, n int) []goimap.UID {
	var uids []goimap.UID
	for _, r := range set {
		for uid := max(r.Start, from); uid != 0 && uid <= r.Stop; uid++ {
			if len(uids) == n {
				return uids
			}
			uids = append(uids, uid)
		}
	}
	return uids
}

// window gives these mails, in batches. Those that are stuck before them are set
// aside with the first that is given.
func (f *follower) window(ctx context.Context, c *conn, uids, stuck []goimap.UID) error {
	about, err := c.fetch(uids, sizes, feed.MaxBytes)
	if err != nil {
		f.blame(uids, err)
		return err
	}
	var batch []goimap.UID
	bytes := int64(0)
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := f.batch(ctx, c, batch, &stuck, false)
		batch, bytes = batch[:0], 0
		return err
	}
	for _, uid := range uids {
		m := about.mails[uid]
		switch {
		case m == nil && !about.refused[uid]:
			continue // it is no longer there
		case m != nil && uid < f.at.Until && !f.at.Old.IsZero() && !m.received.After(f.at.Old):
			continue // it was there at the first start
		case m != nil && m.size > mbox.MaxMail:
			if err := flush(); err != nil {
				return err
			}
			if err := f.batch(ctx, c, []goimap.UID{uid}, &stuck, true); err != nil {
				return err
			}
			continue
		case m != nil:
			if len(batch) >= f.size || bytes+m.size > feed.MaxBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			bytes += m.size
		}
		batch = append(batch, uid)
	}
	if err := flush(); err != nil {
		return err
	}
	if len(stuck) > 0 { // none of the others is there
		clear(f.failed)
		return f.window(ctx, c, stuck[:1], nil)
	}
	if past := uids[len(uids)-1] + 1; past > f.at.Next {
		f.at.Next = past
		f.moved = true
	}
	return nil
}

// batch fetches some mails and gives them. Of large ones it gets the beginning.
// Those that are stuck before them are set aside if any is given.
func (f *follower) batch(ctx context.Context, c *conn, uids []goimap.UID, stuck *[]goimap.UID, large bool) error {
	got, err := c.fetch(uids, whole(large), feed.MaxBytes)
	if len(got.mails) == 0 {
		f.blame(uids, err)
	}
	now := time.Now()
	next := f.at
	var mails []feed.Mail
	var aside []goimap.UID
	moved := false
	for _, uid := range uids {
		m := got.mails[uid]
		if m == nil && err != nil {
			break // the connection ended before this mail
		}
		if m == nil && got.refused[uid] {
			f.failed[uid]++
			if f.failed[uid] < stubborn || len(got.mails) == 0 || len(next.Aside)+len(*stuck)+len(aside) >= mostAside {
				err = fmt.Errorf("the server does not give mail UID %d", uid)
				break
			}
			aside = append(aside, uid)
		}
		next.Next, moved = uid+1, true
		if m != nil {
			next.saw(m.received, now)
			mails = append(mails, f.mail(uid, m))
			delete(f.failed, uid)
		}
	}
	if !moved || len(*stuck) > 0 && len(mails) == 0 {
		return err
	}
	aside = append(*stuck, aside...)
	next.setAside(aside, now)
	before := f.at
	f.at = next
	if err := f.give(ctx, mails); err != nil {
		f.at = before
		return err
	}
	*stuck = nil
	for _, uid := range aside {
		f.warn(fmt.Errorf("the server did not give it in %d attempts, but others", f.failed[uid]), "mail UID %d is set aside and asked for again later", uid)
		delete(f.failed, uid)
	}
	f.size = min(2*f.size, feed.MaxMails)
	return err
}

// What is asked for of mails: how large they are, and all of them.
var sizes = &goimap.FetchOptions{UID: true, InternalDate: true, RFC822Size: true}

// whole asks for mails, of large ones for the beginning.
func whole(large bool) *goimap.FetchOptions {
	section := &goimap.FetchItemBodySection{Peek: true}
	if large {
		section.Partial = &goimap.SectionPartial{Offset: 0, Size: feed.CutAt}
	}
	return &goimap.FetchOptions{UID: true, InternalDate: true, RFC822Size: true, BodySection: []*goimap.FetchItemBodySection{section}}
}

// mail is what the server gave as it is handed on.
func (f *follower) mail(uid goimap.UID, m *mail) feed.Mail {
	if m.size > mbox.MaxMail {
		m.raw = m.raw[:min(len(m.raw), feed.CutAt)]
		f.tell("mail UID %d has %d bytes: its first %d are read", uid, m.size, len(m.raw))
	}
	return feed.Mail{Raw: m.raw, Received: m.received, Cut: m.size > mbox.MaxMail}
}
