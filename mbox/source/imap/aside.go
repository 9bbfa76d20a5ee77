package imap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// Aside is a mail that a server has and does not give, so that it was set aside.
type Aside struct {
	UID   goimap.UID `json:"uid"`
	Since time.Time  `json:"since"`           // when it was set aside
	Again time.Time  `json:"again"`           // when it is asked for again
	Tries int        `json:"tries,omitempty"` // how often that was done
}

// SetAside tells from the cursor of a folder which mails are set aside.
func SetAside(cursor string) ([]Aside, error) {
	c, err := parseCursor(cursor)
	return c.Aside, err
}

const (
	// stubborn is how many sessions ask for a mail that the server does not give
	// before it is set aside, if others are given.
	stubborn = 3
	// mostAside bounds the mails that are set aside: where there are more, the
	// server is at fault and not a mail, and is waited for.
	mostAside = 100
)

// pauses are those before a mail that was set aside is asked for again; behind the
// last it is given up.
var pauses = []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour, 24 * time.Hour}

// setAside adds mails, ascending and above those that are there.
func (c *cursor) setAside(uids []goimap.UID, now time.Time) {
	c.Aside = slices.Clone(c.Aside)
	now = now.UTC().Truncate(time.Second)
	for _, uid := range uids {
		c.Aside = append(c.Aside, Aside{UID: uid, Since: now, Again: now.Add(pauses[0])})
	}
}

// choose gives the next mails to ask for, and those before them that are stuck: the
// server has not given them again and again. Others are tried behind those, since
// only what comes of them tells a bad mail from a bad server; where there are none,
// or too many are stuck, all begins anew.
func (f *follower) choose(set goimap.UIDSet) (stuck, uids []goimap.UID) {
	n := min(window, 5*f.size)
	if f.size == 1 {
		n = 1 // that it is known over which mail the connection ends
	}
	for _, uid := range first(set, f.at.Next, n+len(f.failed)) {
		switch {
		case len(uids) == 0 && f.failed[uid] >= stubborn:
			stuck = append(stuck, uid)
		case len(uids) < n:
			uids = append(uids, uid)
		}
	}
	if len(stuck) > 0 && (len(uids) == 0 || len(f.at.Aside)+len(stuck) > mostAside) {
		clear(f.failed)
		return nil, stuck[:1]
	}
	return stuck, uids
}

// blame counts a connection that ended while one mail alone was asked for.
func (f *follower) blame(uids []goimap.UID, err error) {
	if len(uids) == 1 && errors.Is(err, errLost) {
		f.failed[uids[0]]++
	}
}

// askAgain asks for the mails that are set aside, if it is time. That it was done
// is kept before: the connection may end over it.
func (f *follower) askAgain(ctx context.Context, c *conn) error {
	now := time.Now()
	for _, a := range f.at.Aside {
		if now.Before(a.Again) && a.Again.Sub(now) <= 2*pauses[len(pauses)-1] { // else the clock was set back
			continue
		}
		a.Tries++
		if a.Tries < len(pauses) {
			a.Again = now.Add(pauses[a.Tries]).UTC().Truncate(time.Second)
			if err := f.change(ctx, nil, a.UID, &a); err != nil {
				return err
			}
		} else {
			if err := f.change(ctx, nil, a.UID, nil); err != nil {
				return err
			}
			f.warn(errors.New("the server does not give it"), "mail UID %d, set aside on %s, is asked for once more, and then left out", a.UID, a.Since.Format(time.DateOnly))
		}
		m, err := c.one(a.UID)
		if err != nil {
			return fmt.Errorf("ask again for mail UID %d: %w", a.UID, err)
		}
		switch {
		case m != nil:
			f.tell("mail UID %d, which was set aside, is given now", a.UID)
			err = f.change(ctx, []feed.Mail{f.mail(a.UID, m)}, a.UID, nil)
		default:
			there, err := c.search(&goimap.SearchCriteria{UID: []goimap.UIDSet{goimap.UIDSetNum(a.UID)}})
			if err != nil {
				return err
			}
			if !there.Contains(a.UID) {
				f.tell("mail UID %d, which was set aside, is no longer there", a.UID)
				if err := f.change(ctx, nil, a.UID, nil); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one gets one mail, nil if the server does not give it.
func (c *conn) one(uid goimap.UID) (*mail, error) {
	uids := []goimap.UID{uid}
	about, err := c.fetch(uids, sizes, feed.MaxBytes)
	if m := about.mails[uid]; err != nil || m == nil {
		return nil, err
	}
	got, err := c.fetch(uids, whole(about.mails[uid].size > mbox.MaxMail), feed.MaxBytes)
	if m := got.mails[uid]; m != nil {
		return m, nil // whatever happened behind it
	}
	return nil, err
}

// change gives mails, and keeps how a mail that is set aside stands by now; nil takes
// it out.
func (f *follower) change(ctx context.Context, mails []feed.Mail, uid goimap.UID, to *Aside) error {
	before := f.at
	f.at.Aside = nil
	for _, a := range before.Aside {
		switch {
		case a.UID != uid:
			f.at.Aside = append(f.at.Aside, a)
		case to != nil:
			f.at.Aside = append(f.at.Aside, *to)
		}
	}
	err := f.give(ctx, mails)
	if err != nil {
		f.at = before
	}
	return err
}
