// Package reply delivers what lies in the outbox: letters by SMTP, and what
// should stand at pull requests by GitHub. It decides nothing but when and whether
// to send; every byte was written before.
//
// In go letters that are due; out comes what became of them, in the store. A
// letter goes
//
//	queued -> sending -> sent | failed
//	                  -> held, when by now its list is in another mode
//	                  -> queued, after an answer that says "not now"
//	                  -> unknown, when the server took the text and never answered
//	unknown -> sent, when the mail is found in the mailbox or archive
//	        -> queued, when after some minutes it is not there
//	        -> held, when nobody can tell: somebody decides by `bot outbox`
//
// No mail is sent twice: a letter that was in `sending` when the program died is
// treated as unknown; a recipient who has it is never tried again; and before a
// letter is sent it is looked for, since a restored backup or another bot may
// have sent it. Another bot under the same address, with a record of its own, is
// found out by its letter in the thread, and this one's is held. That a mail is not in the mailbox counts only when an earlier one
// came back through the same list: some lists give nobody his own mail. What
// cannot be known is held.
package reply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"patchbench/config/service"
	"patchbench/mbox/source/feed"
	"patchbench/store"
)

// Notices delivers what should stand at a pull request. It sets in the notice what
// became of it.
type Notices interface {
	Deliver(ctx context.Context, n *store.Notice) error
}

// Options of a Sender. The zero value sends letters, and holds those of which it
// is not known whether they were sent.
type Options struct {
	// Find are the places in which a mail that went through the list turns up.
	Find []feed.Finder
	Now  func() time.Time // nil is time.Now
	Log  *slog.Logger     // nil logs nothing
	// GitHub delivers notices; nil: nobody does.
	GitHub Notices
	// Alone says that no other sender is on this store: a letter that is being
	// sent when this one starts is in doubt at once, and not only when any
	// sender would have ended.
	Alone bool
	// LookFor is how long a mail of which it is not known whether it was sent is
	// looked for before it is sent again; 0 is twenty minutes.
	LookFor time.Duration
}

const (
	pause = time.Second // between looks at the store

	// perHour letters leave in an hour at most, unless the configuration says
	// otherwise: a fault must not flood a list.
	perHour = 30
	// maxTries with the pauses of backOff are two days.
	maxTries   = 20
	maxBackOff = 4 * time.Hour

	// stale is when a letter in `sending` has no living sender any more: longer
	// than any transfer may take.
	stale   = transferLimit + 3*time.Minute
	lookFor = 20 * time.Minute
	// giveUpLooking is when a letter is held because nobody could be asked.
	giveUpLooking = 24 * time.Hour
	// fresh letters are sent also when the mailbox cannot be asked.
	fresh = time.Hour
)

// sentTimes is the name under which the store keeps when the last letters left.
const sentTimes = "reply.sent"

// Sender delivers. There may be several on one store.
type Sender struct {
	st   *store.Store
	cfg  func() *service.Config
	o    Options
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	begun   bool // the letters that an earlier sender left are in doubt
	limited bool // by the rate, and said so
	echoes  echoes
}

// New makes a Sender, which asks cfg anew for each letter.
func New(st *store.Store, cfg func() *service.Config, o Options) *Sender {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.LookFor <= 0 {
		o.LookFor = lookFor
	}
	return &Sender{st: st, cfg: cfg, o: o, dial: (&net.Dialer{Timeout: 30 * time.Second}).DialContext}
}

// Run delivers until ctx ends; what is being sent then is finished, for twenty
// seconds at most. It fails when the store does.
func (s *Sender) Run(ctx context.Context) error {
	s.begun = false
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var both sync.WaitGroup
	for i, once := range []func(context.Context) error{s.letters, s.notices} {
		both.Go(func() {
			for ctx.Err() == nil {
				if errs[i] = once(ctx); errs[i] != nil {
					break
				}
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
			if errs[i] != nil {
				cancel()
			}
		})
	}
	both.Wait()
	for i, err := range errs {
		if errors.Is(err, context.Canceled) {
			errs[i] = nil
		}
	}
	return errors.Join(errs[:]...)
}

// notices delivers the notices that are due.
func (s *Sender) notices(ctx context.Context) error {
	if s.o.GitHub == nil {
		return nil
	}
	for ctx.Err() == nil {
		n, err := s.st.NextNotice(ctx, s.o.Now())
		if err != nil || n == nil {
			return err
		}
		if err := s.o.GitHub.Deliver(ctx, n); err != nil {
			s.o.Log.Error("notice", "pull", fmt.Sprintf("%s#%d", n.Repo, n.Number), "error", err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := s.st.SettleNotice(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// letters clears up what is unknown and sends what is due.
func (s *Sender) letters(ctx context.Context) error {
	if err := s.doubtful(ctx); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		more, err := s.next(ctx)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// next sends a letter that is due, and says whether there was one.
func (s *Sender) next(ctx context.Context) (bool, error) {
	cfg := s.cfg()
	c := cfg.SMTP
	if c == nil {
		return false, nil
	}
	if ok, err := s.mayLeave(ctx, c); err != nil || !ok {
		return false, err
	}
	l, err := s.st.NextLetter(ctx, s.o.Now())
	if err != nil || l == nil {
		return false, err
	}
	log := s.o.Log.With("letter", l.ID, "message_id", l.MessageID)
	if len(s.o.Find) > 0 && !slices.ContainsFunc(l.To, gotIt) {
		found, sure := s.look(ctx, l.MessageID)
		now := s.o.Now()
		switch {
		case found:
			markSent(l, "was found in the mailbox")
			l.Reason = "it was in the mailbox already and was not sent again"
			log.Warn("letter", "state", l.State, "reason", l.Reason)
			return true, s.settle(ctx, l)
		case !sure && now.Sub(l.Created) > fresh:
			l.State, l.Next, l.Reason = store.LetterQueued, now.Add(min(backOff(l.Attempts), 15*time.Minute)), "waits until the mailbox can be asked whether it was sent already"
			return true, s.settle(ctx, l)
		}
	}
	if done, err := s.answered(ctx, l); err != nil {
		return false, err
	} else if done {
		log.Warn("letter", "state", l.State, "reason", l.Reason)
		return true, s.settle(ctx, l)
	}
	if why := withheld(cfg, l); why != "" {
		l.State, l.Reason = store.LetterHeld, why
		log.Warn("letter", "state", l.State, "reason", l.Reason)
		return true, s.settle(ctx, l)
	}
	if ctx.Err() != nil { // nothing has begun
		l.State, l.Next = store.LetterQueued, s.o.Now()
		return false, s.settle(ctx, l)
	}
	before := slices.Clone(l.To)
	v, reason := s.transfer(ctx, c, l)
	s.judge(l, v, reason)
	log.Info("letter", "state", l.State, "reason", l.Reason, "attempt", l.Attempts)
	if v == unknown || slices.ContainsFunc(l.To, gotIt) && !slices.Equal(before, l.To) {
		if err := s.left(ctx); err != nil {
			log.Error("letter", "error", err)
		}
	}
	s.expect(l)
	return true, s.settle(ctx, l)
}

// judge turns what came of a transfer into the letter's state.
func (s *Sender) judge(l *store.Letter, v verdict, reason string) {
	now := s.o.Now()
	l.Reason = reason
	switch v {
	case unknown:
		l.State, l.Next = store.LetterUnknown, now.Add(s.glance())
		return
	case later:
		if l.Attempts < maxTries {
			l.State, l.Next = store.LetterQueued, now.Add(backOff(l.Attempts))
			return
		}
		l.Reason = fmt.Sprintf("given up after %d attempts: %s", l.Attempts, reason)
	}
	// All that can be done has been done.
	l.State = store.LetterFailed
	for i := range l.To {
		switch l.To[i].State {
		case recipientSent:
			l.State = store.LetterSent
		case "":
			l.To[i].State, l.To[i].Reply = recipientFailed, l.Reason
		}
	}
	if l.State == store.LetterSent {
		l.Reason = ""
		for _, r := range l.To {
			if r.State == recipientFailed {
				l.Reason = "refused for " + r.Address + ": " + r.Reply
			}
		}
	}
}

// doubtful looks for the letters of which it is not known whether they were sent.
func (s *Sender) doubtful(ctx context.Context) error {
	all, err := s.st.Letters(ctx, store.LetterUnknown, store.LetterSending)
	if err != nil {
		return err
	}
	for i := range all {
		l := &all[i]
		now := s.o.Now()
		if l.State == store.LetterSending {
			if now.Sub(l.Started) < stale && (s.begun || !s.o.Alone) {
				continue
			}
			const why = "the program ended while it was being sent"
			if err := s.st.MoveLetter(ctx, l.ID, []store.LetterState{store.LetterSending}, store.LetterUnknown, why); err != nil {
				return err
			}
			l.State, l.Reason, l.Next = store.LetterUnknown, why, now
		}
		if l.Next.After(now) {
			continue
		}
		if err := s.clearUp(ctx, l); err != nil {
			return err
		}
	}
	s.begun = true
	return nil
}

// clearUp decides about an unknown letter by what is in the mailbox. That a mail
// is not there says something only if this attempt was to bring it there: when
// it went to the list, no earlier one did, and the list gives us our own mail.
func (s *Sender) clearUp(ctx context.Context, l *store.Letter) error {
	tells := len(s.o.Find) > 0 && !slices.ContainsFunc(l.To, gotIt) &&
		slices.ContainsFunc(l.To, func(r store.Recipient) bool { return r.State == "" && strings.EqualFold(r.Address, l.Channel) })
	if tells {
		var err error
		if tells, err = s.comesBack(ctx, l.Channel); err != nil {
			return err
		}
	}
	var found, sure bool
	if !slices.ContainsFunc(l.To, gotIt) {
		found, sure = s.look(ctx, l.MessageID)
	}
	now := s.o.Now()
	since := now.Sub(l.Started)
	switch {
	case found:
		markSent(l, "was found in the mailbox")
		l.Reason = "the server did not answer, but the mail was found in the mailbox"
	case !tells && since < s.o.LookFor && len(s.o.Find) > 0:
		l.Next = now.Add(s.glance())
	case !tells:
		l.State = store.LetterHeld
		l.Reason = "it may have been sent, and there is no mailbox that can tell: resend it, or drop it (" + l.Reason + ")"
	case since < s.o.LookFor, !sure && since < giveUpLooking:
		l.Next = now.Add(max(s.glance(), since/10))
	case !sure:
		l.State, l.Reason = store.LetterHeld, "it may have been sent, and the mailbox could not be asked for a day: resend it, or drop it"
	case l.Attempts >= maxTries:
		l.State, l.Reason = store.LetterHeld, fmt.Sprintf("sent %d times, and not in the mailbox: resend it, or drop it", l.Attempts)
	default:
		l.State, l.Next = store.LetterQueued, now
		l.Reason = fmt.Sprintf("not in the mailbox after %d min: is sent again", int(since.Minutes()))
	}
	if l.State != store.LetterUnknown {
		s.o.Log.Warn("letter", "letter", l.ID, "message_id", l.MessageID, "state", l.State, "reason", l.Reason)
	}
	return s.settle(ctx, l)
}

// glance is the pause between the first looks for a letter.
func (s *Sender) glance() time.Duration { return min(time.Minute, s.o.LookFor/4) }

// look asks whether a mail is in a mailbox or archive, and whether a no is certain.
func (s *Sender) look(ctx context.Context, id string) (found, sure bool) {
	sure = len(s.o.Find) > 0
	for _, f := range s.o.Find {
		one, cancel := context.WithTimeout(ctx, time.Minute)
		ok, err := f.Find(one, id)
		cancel()
		if ok && err == nil {
			return true, true
		}
		if err != nil {
			sure = false
			s.o.Log.Warn("look for a letter in the mailbox", "message_id", id, "error", err)
		}
	}
	return false, sure
}

// settle keeps what became of a letter, also when the program is to end: what is
// not kept would be in doubt.
func (s *Sender) settle(ctx context.Context, l *store.Letter) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := s.st.Settle(ctx, l)
	if errors.Is(err, store.ErrState) {
		// Somebody has decided about it by hand meanwhile.
		s.o.Log.Warn("letter", "letter", l.ID, "error", err)
		return nil
	}
	return err
}

// mayLeave says whether another letter may leave in this hour.
func (s *Sender) mayLeave(ctx context.Context, c *service.SMTP) (bool, error) {
	times, err := s.lately(ctx)
	limit := c.PerHour
	if limit <= 0 {
		limit = perHour
	}
	if full := len(times) >= limit; full != s.limited {
		s.limited = full
		if full {
			s.o.Log.Warn("letters wait: as many as smtp.per_hour allows have left in the last hour", "per_hour", limit)
		}
	}
	return !s.limited, err
}

// lately gives the times at which letters left in the last hour.
func (s *Sender) lately(ctx context.Context) ([]string, error) {
	text, err := s.st.Value(ctx, sentTimes)
	if err != nil {
		return nil, err
	}
	now := s.o.Now()
	return slices.DeleteFunc(strings.Fields(text), func(w string) bool {
		n, err := strconv.ParseInt(w, 10, 64)
		at := time.Unix(n, 0)
		// A clock that was set back must not stop all mail.
		return err != nil || now.Sub(at) >= time.Hour || at.After(now.Add(time.Minute))
	}), nil
}

// left keeps that a letter has left now.
func (s *Sender) left(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	times, err := s.lately(ctx)
	if err != nil {
		return err
	}
	return s.st.SetValue(ctx, sentTimes, strings.Join(append(times, strconv.FormatInt(s.o.Now().Unix(), 10)), " "))
}

// backOff is the pause behind the nth attempt.
func backOff(n int) time.Duration {
	if n < 1 {
		n = 1
	}
	if n > 9 {
		return maxBackOff
	}
	return min(time.Minute<<(n-1), maxBackOff)
}

// What became of a recipient, as store.Recipient has it.
const (
	recipientSent   = "sent"
	recipientFailed = "failed"
)

func gotIt(r store.Recipient) bool { return r.State == recipientSent }

// markSent says of all recipients that are not settled that they have the mail.
func markSent(l *store.Letter, how string) {
	l.State = store.LetterSent
	for i := range l.To {
		if l.To[i].State == "" {
			l.To[i].State, l.To[i].Reply = recipientSent, how
		}
	}
}
