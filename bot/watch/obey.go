package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bot/letter"
	"patchbench/bot/watch/command"
	"patchbench/bot/watch/sender"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/store"
)

// patience is how long a command waits for the series that it is about.
const patience = 24 * time.Hour

// obey does what the pending commands say. How far that is, is kept in the store
// behind each: if the process dies in between, one is obeyed twice, and each does
// nothing more then.
func (w *Watcher) obey(ctx context.Context, now time.Time) error {
	for i := 0; i < len(w.orders.Pending); {
		o := &w.orders.Pending[i]
		mails, err := w.st.Mails(ctx, o.Mail-1, 1)
		if err != nil {
			return err
		}
		if len(mails) > 0 && mails[0].ID == o.Mail { // else it is forgotten
			wait, err := w.hear(ctx, &mails[0], o, now)
			if err != nil {
				return err
			}
			if wait {
				i++
				continue
			}
		}
		w.orders.Pending = slices.Delete(w.orders.Pending, i, i+1)
		if err := w.keep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keep stores how far commands have been obeyed.
func (w *Watcher) keep(ctx context.Context) error {
	text, err := json.Marshal(w.orders)
	if err != nil {
		return err
	}
	return w.st.SetValue(ctx, ordersName, string(text))
}

// giver is a mail with commands, and who gives them.
type giver struct {
	m        *mbox.Message
	received time.Time
	name     string // for reasons
}

// hear does what a mail says; wait means that it is about a series that is not
// decided yet. The commands of those who may not are logged and never answered; who
// may is told of those that cannot be obeyed.
func (w *Watcher) hear(ctx context.Context, mail *store.Mail, o *order, now time.Time) (wait bool, err error) {
	m, err := read(mail.Raw)
	if err != nil || mail.Problem != "" {
		return false, nil
	}
	cfg := w.cfg()
	log := w.o.Log.With("mail", mail.ID, "message_id", m.ID)
	if why := refusal(ctx, cfg, w.authentication(cfg), m, mail.Received, now); why != "" {
		w.count(func(c *Counts) *int64 { return &c.Refused })
		log.Info("command refused", "from", m.From.Email, "reason", why)
		return false, nil
	}
	if again, err := w.heard(ctx, cfg, mail); err != nil {
		return false, err
	} else if again {
		log.Info("command was heard already: this is another copy of its mail", "from", m.From.Email)
		return false, nil
	}
	i, err := w.about(ctx, m)
	if err != nil {
		return false, err
	}
	x := w.collector.Index()
	var task *store.Task
	if i >= 0 {
		if task, err = w.task(ctx, x.Messages(i)); err != nil {
			return false, err
		}
	}
	if task == nil {
		if now.Sub(mail.Received) < patience {
			return true, nil
		}
		log.Info("command is about no series that is known", "from", m.From.Email)
		return false, nil
	}
	g := giver{m, mail.Received, quoted(m.From.Email)}
	for lines := command.Find(m); o.Line < len(lines); {
		line := lines[o.Line]
		why := line.Fault(classes(cfg))
		switch {
		case why != "":
		case line.Verb == command.Stop:
			err = w.stop(ctx, i, g, store.Stopped, "stopped by "+g.name)
		case line.Verb == command.Ignore:
			err = w.ignore(ctx, i, g)
		case line.Verb == command.Run:
			why, err = w.rerun(ctx, cfg, i, task, g, o, line.Args, now)
		}
		if err != nil {
			return false, err
		}
		if why != "" {
			log.Info("command is not obeyed", "from", m.From.Email, "command", quoted(line.String()), "reason", why)
			o.Faults = append(o.Faults, letter.Fault{Line: fmt.Sprintf("%.200s", line), Why: why})
		}
		o.Line, o.Approve = o.Line+1, 0
		if err := w.keep(ctx); err != nil {
			return false, err
		}
		// The next line finds what this one has changed.
		if task, err = w.task(ctx, x.Messages(i)); err != nil {
			return false, err
		}
	}
	if len(o.Faults) == 0 {
		return false, nil
	}
	return false, w.tell(ctx, cfg, i, task, g, o.Faults, now)
}

// heard says that an earlier copy of a mail gave its commands. Only one counts: a
// signature mostly covers the Message-ID, and not always what the mail replies to, so
// that somebody could turn a copy to a series of his own.
func (w *Watcher) heard(ctx context.Context, cfg *service.Config, mail *store.Mail) (bool, error) {
	copies, err := w.st.MailsByKey(ctx, mail.Key)
	if err != nil {
		return false, err
	}
	for _, c := range copies {
		if c.ID >= mail.ID || c.Problem != "" {
			continue
		}
		if m, err := read(c.Raw); err == nil && len(command.Find(m)) > 0 && refusal(ctx, cfg, w.authentication(cfg), m, c.Received, c.Received) == "" {
			return true, nil
		}
	}
	return false, nil
}

// refusal says why the commands of a mail are not obeyed, "" if they are.
func refusal(ctx context.Context, cfg *service.Config, auth sender.Options, m *mbox.Message, received, now time.Time) string {
	if why := sender.Automatic(m); why != "" {
		return "sent by a program (" + why + ")"
	}
	if !properID(m.ID) {
		return "no Message-ID"
	}
	if !listed(cfg.Policy.Commands, m.From.Email) {
		return "the sender may not give commands"
	}
	v := sender.Check(ctx, m, auth)
	switch {
	case !listed(cfg.Policy.Commands, v.Address):
		return "From is not one address"
	case !v.Known:
		return "it is not known that the sender sent it: " + v.Why
	case cfg.Policy.MaxAge > 0 && now.Sub(received) > cfg.Policy.MaxAge:
		return "it is too old"
	case cfg.Policy.MaxAge > 0 && received.Sub(m.Date).Abs() > cfg.Policy.MaxAge:
		// A signature stays good: somebody may send a mail again.
		return "its Date is not that of its arrival"
	}
	if open := sender.Unsigned(m, "date"); len(open) > 0 {
		return "its signature does not cover its Date: somebody may have sent it again"
	}
	if len(sender.Unsigned(m, "message-id")) > 0 && len(sender.Unsigned(m, "in-reply-to", "references")) > 0 {
		return "its signature covers neither its Message-ID nor what it replies to: somebody may have turned it to another series"
	}
	return ""
}

// about gives the series that a reply is about, -1 if none is known: that of the
// nearest mail that it refers to, which may be a letter of ours.
func (w *Watcher) about(ctx context.Context, m *mbox.Message) (int, error) {
	var refs []string
	for _, list := range [][]string{m.InReplyTo, m.References} {
		for _, id := range slices.Backward(list) {
			if len(refs) < 100 {
				refs = appendNew(refs, []string{id})
			}
		}
	}
	x := w.collector.Index()
	for k, i := range x.Holding(refs) {
		if i >= 0 {
			return i, nil
		}
		l, err := w.st.LetterByMessageID(ctx, refs[k])
		if errors.Is(err, store.ErrNoLetter) {
			continue
		}
		if err != nil {
			return -1, err
		}
		t, err := w.st.Task(ctx, l.Task)
		if errors.Is(err, store.ErrNoTask) {
			continue
		}
		if err != nil {
			return -1, err
		}
		if i := x.Holding([]string{t.Ref})[0]; i >= 0 {
			return i, nil
		}
	}
	return -1, nil
}

// stop ends what is going on for all versions of a series that came before the
// command.
func (w *Watcher) stop(ctx context.Context, i int, g giver, to store.State, why string) error {
	x := w.collector.Index()
	for _, k := range series.Versions(x.Replaces(), i) {
		if first, _ := x.Waiting(k); first.After(g.received) && k != i {
			continue
		}
		tasks, err := w.tasks(ctx, x.Messages(k))
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if !active(t.State) {
				continue
			}
			if err := w.st.End(ctx, t.ID, to, why); err != nil && !errors.Is(err, store.ErrState) {
				return err
			}
			w.o.Log.Info("job was ended by mail", "job", t.ID, "series", t.Ref, "reason", why)
		}
	}
	return nil
}

// ignore leaves a thread alone from now on.
func (w *Watcher) ignore(ctx context.Context, i int, g giver) error {
	why := "the thread is left alone, says " + g.name
	x := w.collector.Index()
	var ids []string
	for _, k := range series.Versions(x.Replaces(), i) {
		ids = append(ids, x.Messages(k)[0])
	}
	if refs := references(g.m); len(refs) > 0 {
		ids = appendNew(ids, refs[:1]) // the thread's first mail
	}
	for _, id := range ids {
		if err := w.st.SetValue(ctx, ignoreName(id), why); err != nil {
			return err
		}
	}
	return w.stop(ctx, i, g, store.Ignored, why)
}

// rerun approves a held series, or has one evaluated again, as a mail asks for; the
// answer goes to whoever asked. fault is why that is not done, if he should know.
func (w *Watcher) rerun(ctx context.Context, cfg *service.Config, i int, task *store.Task, g giver, o *order, args string, now time.Time) (fault string, err error) {
	log := w.o.Log.With("message_id", g.m.ID, "series", task.Ref, "job", task.ID)
	r, err := command.ParseRun(args, classes(cfg))
	if err != nil {
		return err.Error(), nil
	}
	if o.Approve == 0 {
		unseen, err := w.unseen(ctx, cfg, i, g)
		if err != nil {
			return "", err
		}
		if unseen {
			return "a part of the series came in after it: look at that, and say it again", nil
		}
	}
	switch {
	case o.Approve != 0 || task.State == store.Held && r.Plain():
		if o.Approve == 0 {
			o.Approve = task.ID
			if err := w.keep(ctx); err != nil {
				return "", err
			}
		}
		err := w.st.Release(ctx, o.Approve, "approved by "+g.name)
		if err == nil {
			log.Info("series was approved by mail", "from", g.m.From.Email)
		} else if errors.Is(err, store.ErrState) {
			err = nil // it was approved already
		}
		return "", err
	case r.Plain() && (task.State == store.Queued || task.State == store.Running):
		log.Info("series is being evaluated already", "from", g.m.From.Email)
		return "", nil
	}
	x := w.collector.Index()
	s, err := x.Series(i)
	if err != nil {
		return "", err
	}
	f, err := w.gather(ctx, cfg, parts(&s, x.Messages(i)))
	if err != nil {
		return "", err
	}
	lists := f.lists(cfg)
	if len(lists) == 0 || f.head == nil {
		log.Info("series came through no list that is served: it cannot be evaluated", "from", g.m.From.Email)
		return "", nil
	}
	l := lists[0]
	for _, other := range lists {
		if other.Address == task.List {
			l = other
		}
	}
	replaces := x.Replaces()
	_, answers, err := w.thread(ctx, replaces, i, references(g.m))
	if err != nil {
		return "", err
	}
	if cfg.Policy.ThreadCap > 0 && answers >= cfg.Policy.ThreadCap {
		log.Info("enough was said in this thread: command is not obeyed", "from", g.m.From.Email, "evaluations", answers)
		return "", nil
	}
	p, err := w.payload(i, &s, f, l)
	if err != nil {
		return "", err
	}
	p.Branch, _ = wanted(l, &s)
	p.Base, p.Benchmarks = r.Base, r.Benchmarks
	if p.Previous, _, err = w.older(ctx, cfg, replaces, i, trusted); err != nil {
		return "", err
	}
	p.Thread = store.Thread{MessageID: g.m.ID, Subject: g.m.Subject, References: references(g.m), Author: g.m.From, List: l.Address, Date: g.m.Date}
	p.Quiet = false // somebody asked
	d := store.Decision{Task: store.Task{
		Key: "run:" + g.m.ID, Kind: store.KindMail, Project: l.Project, Class: r.Class, List: l.Address, Ref: task.Ref, Title: s.Subject,
		Author: g.m.From, Version: s.Version, Content: contentOf(&s) + " " + strings.Join(strings.Fields(args), " "),
		Payload: store.EncodePayload(p), State: store.Queued, Reason: "asked for by " + g.name, Created: now, Supersedes: p.Previous,
	}}
	if o.Line > 0 {
		d.Task.Key += fmt.Sprint(":", o.Line+1)
	}
	if d.Task.Class == "" {
		d.Task.Class = cfg.Worker.Class
		if project := cfg.ProjectOf(l.Project); project != nil && project.Class != "" {
			d.Task.Class = project.Class
		}
	}
	if task.State == store.Held {
		d.Supersede = []string{task.Key}
	}
	t, changed, err := w.st.Decide(ctx, d)
	if err == nil && changed {
		w.count(func(c *Counts) *int64 { return &c.Decisions })
		w.o.Log.Info("series is evaluated as a mail asks", "job", t.ID, "series", t.Ref, "from", g.m.From.Email)
	}
	return "", err
}

// unseen says that a series has parts, of somebody who is not trusted, which came
// in after the command: who gave it has approved what was there then.
func (w *Watcher) unseen(ctx context.Context, cfg *service.Config, i int, g giver) (bool, error) {
	if _, last := w.collector.Index().Waiting(i); !last.After(g.received) {
		return false, nil
	}
	than, err := w.standing(ctx, cfg, i)
	return than != trusted, err
}

// classes are the classes of machines that the service file names.
func classes(cfg *service.Config) []string {
	list := appendNew(nil, []string{cfg.Worker.Class})
	for _, p := range cfg.Projects {
		list = appendNew(list, []string{p.Class})
	}
	return list
}
