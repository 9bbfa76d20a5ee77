package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"patchbench/bot/letter"
	"patchbench/bot/watch/command"
	"patchbench/bot/watch/sender"
	"patchbench/mbox"
	"patchbench/mbox/series/keep"
	"patchbench/mbox/series/patch"
	"patchbench/mbox/source/feed"
	"patchbench/store"
)

// TakeIn puts what a feed gives into the store until ctx ends; it then gives ctx's
// error. Each batch is one transaction with its cursor. A mail that cannot be read
// is stored with the reason, and goes no further. Each of notify hears what happens
// to the feed.
func TakeIn(ctx context.Context, st *store.Store, f feed.Feed, log *slog.Logger, notify ...func(feed.Event)) error {
	name := f.Name()
	cursor, err := st.Cursor(ctx, name)
	if err != nil {
		return err
	}
	take := func(ctx context.Context, b feed.Batch) error {
		mails := make([]store.Mail, len(b.Mails))
		for i, m := range b.Mails {
			mails[i] = received(name, m)
			if p := mails[i].Problem; p != "" {
				log.Warn("mail cannot be read and is put aside", "feed", name, "mail", mails[i].Key, "problem", p)
			}
		}
		n, err := st.TakeIn(ctx, name, b.Cursor, mails)
		if err == nil && len(mails) > 0 {
			log.Info("mail came in", "feed", name, "mails", len(mails), "new", n)
		}
		return err
	}
	return f.Follow(ctx, cursor, take, func(e feed.Event) {
		if e.Err != nil {
			log.Warn(e.Text, "feed", name, "err", e.Err)
		} else {
			log.Info(e.Text, "feed", name)
		}
		for _, hear := range notify {
			hear(e)
		}
	})
}

// received makes a stored mail of a feed's.
func received(source string, m feed.Mail) store.Mail {
	out := store.Mail{Source: source, Received: m.Received, Raw: m.Raw}
	one, err := read(m.Raw)
	switch {
	case m.Cut:
		out.Problem = fmt.Sprintf("mail larger than %d MiB", mbox.MaxMail>>20)
	case err != nil:
		out.Problem = err.Error()
	}
	if one == nil {
		// What the header says is enough to know the mail by.
		one, _ = mbox.ParseHeader(m.Raw)
	}
	if one != nil && properID(one.ID) {
		out.Key = one.ID
	}
	return out
}

// read decodes a mail. No input is known that makes that panic; one that does must
// not end the service, again at each start.
func read(raw []byte) (m *mbox.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("decode mail: %v", p)
		}
	}()
	return mbox.ParseMessage(raw, "")
}

// properID says that an id (without <>) can be referred to.
func properID(id string) bool {
	i := strings.LastIndexByte(id, '@')
	return i > 0 && i < len(id)-1 && len(id) <= 250 &&
		strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }) < 0
}

// take takes one stored mail in, and says whether it holds commands.
func (w *Watcher) take(ctx context.Context, mail *store.Mail) (orders bool, err error) {
	fresh := mail.ID > w.orders.Seen // else it was taken before, and said so
	count := func(f func(*Counts) *int64) {
		if fresh {
			w.count(f)
		}
	}
	count(func(c *Counts) *int64 { return &c.Mails })
	position := fmt.Sprintf("mail %d", mail.ID)
	problem := mail.Problem
	var m *mbox.Message
	if problem == "" {
		if m, err = read(mail.Raw); err != nil {
			problem = err.Error()
		}
	}
	if problem != "" {
		count(func(c *Counts) *int64 { return &c.Unreadable })
		return false, w.collector.AddProblem(mbox.Problem{MessageID: mail.Key, Position: position, Error: problem})
	}
	m.Received, m.Position = mail.Received, position
	if !properID(m.ID) {
		m.ID = ""
	}
	if w.own(m) {
		count(func(c *Counts) *int64 { return &c.Own })
		if !fresh {
			return false, nil
		}
		return false, w.twin(ctx, m)
	}
	if id, why := sender.Bounce(m); id != "" {
		return false, w.bounced(ctx, id, why, fresh)
	}
	key := keep.Hash(mail.Key)
	if _, seen := w.keys[key]; seen {
		if other, err := w.collides(ctx, mail, m); err != nil {
			return false, err
		} else if other {
			count(func(c *Counts) *int64 { return &c.Collisions })
			if fresh {
				w.o.Log.Warn("message-id collision: the mail that came first counts", "mail", mail.ID, "message_id", m.ID)
			}
			return false, nil
		}
	}
	w.keys[key] = struct{}{}
	if err := w.add(m); err != nil {
		return false, err
	}
	if s := patch.ParseSubject(m.Subject); fresh && s.Numbered && !s.Reply && s.N == 1 && s.Total > maxPatches && m.ID != "" {
		if err := w.tooLong(ctx, m, s); err != nil {
			return false, err
		}
	}
	return fresh && len(command.Find(m)) > 0, nil
}

// maxPatches is how many patches a series may have.
const maxPatches = 100

// tooLong keeps why nothing is done about a series with too many patches, once, by
// its first patch: it never comes out of the collector.
func (w *Watcher) tooLong(ctx context.Context, m *mbox.Message, s patch.Subject) error {
	f := facts{ids: m.Lists}
	lists := f.lists(w.cfg())
	if len(lists) == 0 {
		return nil
	}
	t, changed, err := w.st.Decide(ctx, store.Decision{Task: store.Task{
		Key: taskKey(m.ID), Kind: store.KindMail, Project: lists[0].Project, Class: w.cfg().Worker.Class, List: lists[0].Address, Ref: m.ID,
		Title: s.Text, Author: m.From, Version: s.Version, State: store.Ignored, Reason: fmt.Sprintf("series of %d patches, limit %d", s.Total, maxPatches),
		Created: w.o.Now(),
	}})
	if err == nil && changed {
		w.o.Log.Info("series was decided", "job", t.ID, "series", m.ID, "version", s.Version, "state", string(t.State), "reason", t.Reason)
	}
	return err
}

// add gives a mail to the collector, which may panic as read may.
func (w *Watcher) add(m *mbox.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.o.Log.Error("mail cannot be understood and is put aside", "mail", m.Position, "message_id", m.ID, "err", p)
			err = nil
		}
	}()
	return w.collector.Add(m)
}

// own says that a mail is the bot's, or of another bot under its address.
func (w *Watcher) own(m *mbox.Message) bool {
	_, under := letter.Under(m, w.from())
	return under || letter.Ours(m, w.o.Secret, w.from())
}

// from is the bot's address.
func (w *Watcher) from() string {
	if smtp := w.cfg().SMTP; smtp != nil {
		return smtp.From.Email
	}
	return ""
}

// twin keeps that another bot under the same address, or this one before its record
// was lost, has answered a mail: what it wrote is not in this outbox.
func (w *Watcher) twin(ctx context.Context, m *mbox.Message) error {
	id, ok := letter.Under(m, w.from())
	if !ok {
		return nil
	}
	if _, err := w.st.LetterByMessageID(ctx, m.ID); !errors.Is(err, store.ErrNoLetter) {
		return err
	}
	w.count(func(c *Counts) *int64 { return &c.Twins })
	w.o.Log.Warn("a letter under the bot's address is none of its own: does another bot read the same lists?", "message_id", m.ID, "answers", id)
	return w.st.SetAnswered(ctx, id, m.ID)
}

// bounced marks an own letter that came back.
func (w *Watcher) bounced(ctx context.Context, id, why string, fresh bool) error {
	l, err := w.st.LetterByMessageID(ctx, id)
	if errors.Is(err, store.ErrNoLetter) || err == nil && !fresh {
		return nil
	}
	if err != nil {
		return err
	}
	w.count(func(c *Counts) *int64 { return &c.Bounces })
	err = w.st.MoveLetter(ctx, l.ID, []store.LetterState{store.LetterSent, store.LetterUnknown}, store.LetterFailed, why)
	if errors.Is(err, store.ErrState) {
		err = nil // it is known, or was not sent: then the report is no report
	} else if err == nil {
		w.o.Log.Warn("a letter came back", "letter", l.ID, "message_id", id, "reason", why)
	}
	return err
}

// collides says that another mail with the same Message-ID came before, and holds
// other patches. Copies that came through several lists do not collide.
func (w *Watcher) collides(ctx context.Context, mail *store.Mail, m *mbox.Message) (bool, error) {
	mails, err := w.st.MailsByKey(ctx, mail.Key)
	if err != nil {
		return false, err
	}
	for _, first := range mails {
		if first.ID >= mail.ID {
			break
		}
		if one, err := read(first.Raw); first.Problem == "" && err == nil {
			return contents(one) != contents(m), nil
		}
	}
	return false, nil
}

// contents tells two mails apart by what can be evaluated of them.
func contents(m *mbox.Message) string {
	out := ""
	for _, f := range patch.Find(m, patch.Options{}).Patches {
		out += f.Patch.Author.Email + "\x00" + f.Patch.Message + "\x00" + f.Patch.DiffSHA256 + "\x00"
	}
	if out == "" {
		return patch.ParseSubject(m.Subject).Identity()
	}
	return out
}
