package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/store"
)

// coverWait is how long patches that answer an unknown mail wait for it: it may be
// their cover letter, under which the answer belongs.
const coverWait = time.Minute

// mostAtHand bounds the prerequisites that go with a series.
const mostAtHand = 20

// decide makes or renews the task of a series. It gives false if it is too early.
func (w *Watcher) decide(ctx context.Context, i int, now time.Time) (told bool, err error) {
	x := w.collector.Index()
	keys := x.Messages(i)
	if until, ok := w.later[keys[0]]; ok {
		if now.Before(until) {
			return false, nil
		}
		delete(w.later, keys[0])
	}
	old, err := w.task(ctx, keys)
	if err != nil {
		return false, err
	}
	if old != nil && old.State != store.Ignored && old.State != store.Incomplete {
		return true, nil
	}
	s, err := x.Series(i)
	if err != nil {
		return false, err
	}
	content := contentOf(&s)
	if old != nil && old.Content == content {
		return true, nil
	}
	cfg := w.cfg()
	f, err := w.gather(ctx, cfg, parts(&s, keys))
	if err != nil {
		return false, err
	}
	v := judge(cfg, &s, f, now)
	// What is left alone now is judged again when more of it comes.
	if until, err := w.early(ctx, i, &s, f, v); err != nil {
		return false, err
	} else if v.state != store.Ignored && now.Before(until) {
		w.later[keys[0]] = until
		return false, nil
	}
	d, err := w.decision(ctx, cfg, i, &s, f, v, now)
	if err != nil {
		return false, err
	}
	d.Task.Content = content
	if old != nil {
		d.Task.Key = old.Key
	}
	if d.Task.State == store.Queued && v.standing != trusted {
		// Before it is queued: if the process dies in between, one too many counts.
		if err := w.served(ctx, now); err != nil {
			return false, err
		}
	}
	t, changed, err := w.st.Decide(ctx, *d)
	if err == nil && changed {
		w.count(func(c *Counts) *int64 { return &c.Decisions })
		w.o.Log.Info("series was decided", "job", t.ID, "series", s.MessageID, "version", s.Version, "state", string(t.State), "reason", t.Reason)
	}
	return err == nil, err
}

// taskKey is the key of a series' task by one of its mails.
func taskKey(id string) string { return "mail:" + id }

// task gives the task of a series by any of its mails, nil without one: what was
// decided before the cover letter came has the key of the first patch.
func (w *Watcher) task(ctx context.Context, keys []string) (*store.Task, error) {
	for _, k := range keys {
		t, err := w.st.TaskByKey(ctx, taskKey(k))
		if !errors.Is(err, store.ErrNoTask) {
			return t, err
		}
	}
	return nil, nil
}

// parts are the keys of all mails that a series is made of, those that it has from
// another version too; the head comes first.
func parts(s *mbox.Series, keys []string) []string {
	out := slices.Clone(keys)
	for _, p := range s.Patches {
		out = appendNew(out, []string{p.MessageID})
	}
	return out
}

// early says until when a series waits for what may be on its way, beyond what the
// collector has waited already. Zero is not at all.
func (w *Watcher) early(ctx context.Context, i int, s *mbox.Series, f *facts, v verdict) (until time.Time, err error) {
	x := w.collector.Index()
	first, last := x.Waiting(i)
	if s.Complete && !x.Filled(i) {
		if s.Cover != nil || s.Total == 1 || f.head == nil {
			return until, nil
		}
		if parents := slices.Concat(f.head.InReplyTo, f.head.References); len(parents) > 0 {
			mails, err := w.st.MailsByKey(ctx, parents[0])
			if err != nil {
				return until, err
			}
			if len(mails) == 0 {
				return last.Add(coverWait), nil
			}
		}
		return until, nil
	}
	if v.list == nil {
		return until, nil
	}
	until = last.Add(v.list.Wait)
	if most := first.Add(v.list.GiveUp); v.list.GiveUp > 0 && until.After(most) {
		until = most
	}
	return until, nil
}

// decision makes a task of a verdict. It looks at other versions, and at what was
// done for the author and in the thread already.
func (w *Watcher) decision(ctx context.Context, cfg *service.Config, i int, s *mbox.Series, f *facts, v verdict, now time.Time) (*store.Decision, error) {
	d := &store.Decision{Task: store.Task{
		Key: taskKey(s.MessageID), Kind: store.KindMail, Ref: s.MessageID, Title: s.Subject, Author: f.author, Version: s.Version,
		Class: cfg.Worker.Class, State: v.state, Reason: v.reason, Created: now,
	}}
	t := &d.Task
	if f.head == nil || !properID(f.head.ID) {
		t.Key, t.Ref = taskKey(w.collector.Index().Messages(i)[0]), ""
	}
	project := (*service.Project)(nil)
	if v.list != nil {
		t.List = v.list.Address
		if project = cfg.ProjectOf(v.list.Project); project != nil {
			t.Project = project.Name
			if project.Class != "" {
				t.Class = project.Class
			}
		}
	}
	replaces := w.collector.Index().Replaces()
	if t.State == store.Incomplete {
		return d, nil
	}
	if newer, err := w.newer(ctx, cfg, replaces, i, v.standing); err != nil {
		return nil, err
	} else if newer != "" && t.State != store.Ignored {
		t.State, t.Reason = store.Superseded, newer
	}
	previous, older, err := w.older(ctx, cfg, replaces, i, v.standing)
	if err != nil {
		return nil, err
	}
	d.Supersede, t.Supersedes = older, previous
	if t.State == store.Queued || t.State == store.Held {
		if err := w.limit(ctx, cfg, t, replaces, i, f, v.standing, now); err != nil {
			return nil, err
		}
	}
	if t.State == store.Queued || t.State == store.Held {
		p, err := w.payload(i, s, f, v.list)
		if err != nil {
			return nil, err
		}
		p.Branch, p.Previous = v.branch, previous
		t.Payload = store.EncodePayload(p)
	}
	return d, nil
}

// payload is what a worker needs of a series.
func (w *Watcher) payload(i int, s *mbox.Series, f *facts, l *service.List) (*store.MailPayload, error) {
	p := &store.MailPayload{
		Series: *s, Mode: l.Mode, Quiet: l.Quiet,
		Thread: store.Thread{
			MessageID: f.head.ID, Subject: f.head.Subject, References: references(f.head), Author: f.author,
			List: l.Address, Date: f.head.Date,
		},
	}
	if s.Cover != nil {
		p.Thread.Body = s.Cover.Body
	}
	if len(s.Prerequisites) == 0 {
		return p, nil
	}
	x := w.collector.Index()
	needs, err := x.Needs()
	if err != nil {
		return nil, err
	}
	for _, k := range needs[i][:min(len(needs[i]), mostAtHand)] {
		other, err := x.Series(k)
		if err != nil {
			return nil, err
		}
		p.AtHand = append(p.AtHand, other)
	}
	return p, nil
}

// references are those of a mail, or what it replies to if it has none.
func references(m *mbox.Message) []string {
	if len(m.References) > 0 {
		return m.References
	}
	return m.InReplyTo
}

// mayReplace says that a newer version may take the place of an older one: anybody
// can write a v2 under somebody's name, but that must not end the work on what is
// known to be that author's.
func (w *Watcher) mayReplace(ctx context.Context, cfg *service.Config, newer standing, older int) (bool, error) {
	if newer == trusted {
		return true, nil
	}
	than, err := w.standing(ctx, cfg, older)
	return newer >= than, err
}

// standing tells how a series' senders stand.
func (w *Watcher) standing(ctx context.Context, cfg *service.Config, i int) (standing, error) {
	f, err := w.gather(ctx, cfg, w.collector.Index().Messages(i))
	if err != nil {
		return claimed, err
	}
	return f.standing(cfg), nil
}

// newer says that a later version of a series is there; "" if not.
func (w *Watcher) newer(ctx context.Context, cfg *service.Config, replaces []int, i int, of standing) (string, error) {
	x := w.collector.Index()
	for _, k := range series.Versions(replaces, i) {
		if !descends(replaces, k, i) || !x.Complete(k) {
			continue
		}
		than := claimed
		if of > claimed {
			var err error
			if than, err = w.standing(ctx, cfg, k); err != nil {
				return "", err
			}
		}
		if than >= of {
			return "by " + taskKey(x.Messages(k)[0]), nil
		}
	}
	return "", nil
}

// older gives the key of the last version's task that tells most (an evaluation, if
// one has), and the keys of those that end now.
func (w *Watcher) older(ctx context.Context, cfg *service.Config, replaces []int, i int, of standing) (previous string, end []string, err error) {
	x := w.collector.Index()
	evaluated := false
	for k, n := replaces[i], 0; k >= 0 && n < len(replaces); k, n = replaces[k], n+1 {
		may, err := w.mayReplace(ctx, cfg, of, k)
		if err != nil {
			return "", nil, err
		}
		tasks, err := w.tasks(ctx, x.Messages(k))
		if err != nil {
			return "", nil, err
		}
		for _, t := range tasks {
			if previous == "" || !evaluated && t.Evaluation != "" {
				previous, evaluated = t.Key, t.Evaluation != ""
			}
			if may && active(t.State) {
				end = append(end, t.Key)
			}
		}
	}
	return previous, end, nil
}

// descends says that k is a later version of i.
func descends(replaces []int, k, i int) bool {
	for n := 0; k > i && n < len(replaces); n++ {
		k = replaces[k]
		if k == i {
			return true
		}
	}
	return false
}

func active(s store.State) bool {
	return s == store.Held || s == store.Queued || s == store.Running
}

// ran are the states of tasks that are or were worked at.
var ran = []store.State{store.Queued, store.Running, store.Done, store.Failed, store.Stopped, store.Superseded}

// tasks gives all tasks of a series, those of commands too, the newest first.
func (w *Watcher) tasks(ctx context.Context, keys []string) ([]store.Task, error) {
	first, err := w.task(ctx, keys)
	if err != nil || first == nil {
		return nil, err
	}
	return w.st.Tasks(ctx, store.TaskFilter{Kind: store.KindMail, Ref: first.Ref})
}

// limit holds or drops a task when enough was done for its author or in its
// thread, when somebody said that the thread is to be left alone, or when it is
// answered already.
func (w *Watcher) limit(ctx context.Context, cfg *service.Config, t *store.Task, replaces []int, i int, f *facts, of standing, now time.Time) error {
	ignored, answers, err := w.thread(ctx, replaces, i, references(f.head))
	switch {
	case err != nil:
		return err
	case ignored != "":
		t.State, t.Reason = store.Ignored, ignored
		return nil
	case cfg.Policy.ThreadCap > 0 && answers >= cfg.Policy.ThreadCap:
		t.State, t.Reason = store.Ignored, fmt.Sprintf("%d answers in this thread already", answers)
		return nil
	}
	by, err := w.st.Answered(ctx, f.head.ID)
	if err != nil {
		return err
	}
	if by != "" {
		// Anybody may have written that: it is not dropped.
		t.State, t.Reason = store.Held, "answered already under the bot's address, by "+quoted(by)
		return nil
	}
	if n := cfg.Policy.PerAuthorDay; n > 0 && t.State == store.Queued {
		list, err := w.st.Tasks(ctx, store.TaskFilter{Kind: store.KindMail, Author: t.Author.Email, States: ran, Since: now.Add(-24 * time.Hour), Limit: n})
		if err != nil {
			return err
		}
		if len(list) >= n {
			t.State, t.Reason = store.Held, fmt.Sprintf("%d series of %s in 24 hours already", len(list), quoted(t.Author.Email))
		}
	}
	if n := cfg.Policy.StrangersDay; n > 0 && t.State == store.Queued && of != trusted {
		times, err := w.strangers(ctx, now)
		if err != nil {
			return err
		}
		if len(times) >= n {
			t.State, t.Reason = store.Held, fmt.Sprintf("%d series of strangers in 24 hours already", len(times))
		}
	}
	return nil
}

// strangersName is under which name the store keeps when series of strangers were
// queued.
const strangersName = "watch:strangers"

// strangers gives when series of strangers were queued in the last 24 hours, in Unix
// seconds. They are counted together: a name is easily made up.
func (w *Watcher) strangers(ctx context.Context, now time.Time) ([]int64, error) {
	text, err := w.st.Value(ctx, strangersName)
	if err != nil || text == "" {
		return nil, err
	}
	var times []int64
	if err := json.Unmarshal([]byte(text), &times); err != nil {
		return nil, fmt.Errorf("read when strangers were served (%s in the store): %w", strangersName, err)
	}
	return slices.DeleteFunc(times, func(at int64) bool {
		// A clock that was set back must not hold everything.
		age := now.Sub(time.Unix(at, 0))
		return age >= 24*time.Hour || age < -time.Minute
	}), nil
}

// served keeps that a series of a stranger was queued.
func (w *Watcher) served(ctx context.Context, now time.Time) error {
	times, err := w.strangers(ctx, now)
	if err != nil {
		return err
	}
	text, err := json.Marshal(append(times, now.Unix()))
	if err != nil {
		return err
	}
	return w.st.SetValue(ctx, strangersName, string(text))
}

// ignoreName is under which name the store keeps that a thread is to be left alone.
func ignoreName(id string) string { return "watch:ignore:" + id }

// thread tells of the thread that a series is in: who wants it left alone, if
// anybody does, and how many evaluations and letters about commands there were. It
// is made of the series' versions and of what their head refers to.
func (w *Watcher) thread(ctx context.Context, replaces []int, i int, refs []string) (ignored string, answers int, err error) {
	x := w.collector.Index()
	if n := len(refs); n > 40 { // the first and the last, as in an answer
		refs = append(slices.Clone(refs[:20]), refs[n-20:]...)
	}
	in := series.Versions(replaces, i)
	for _, k := range x.Holding(refs) {
		if k >= 0 && !slices.Contains(in, k) {
			in = append(in, k)
		}
	}
	ids := appendNew(nil, refs)
	for _, k := range in {
		keys := x.Messages(k)
		ids = appendNew(ids, keys[:1])
		tasks, err := w.tasks(ctx, keys)
		if err != nil {
			return "", 0, err
		}
		for _, t := range tasks {
			if t.State == store.Queued || t.State == store.Running || t.State == store.Done {
				answers++
			}
		}
	}
	for _, id := range ids {
		if ignored, err = w.st.Value(ctx, ignoreName(id)); ignored != "" || err != nil {
			return ignored, 0, err
		}
		told, err := w.st.Value(ctx, toldName(id))
		if err != nil {
			return "", 0, err
		}
		answers += len(strings.Fields(told))
	}
	return "", answers, nil
}

// contentOf is a hash of what is in a series.
func contentOf(s *mbox.Series) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d of %d, lists %q\n", s.Received, s.Total, s.Lists)
	for _, p := range s.Patches {
		fmt.Fprintf(h, "%d %q %s %x\n", p.N, p.MessageID, p.DiffSHA256, sha256.Sum256([]byte(p.Message)))
	}
	return hex.EncodeToString(h.Sum(nil))
}
