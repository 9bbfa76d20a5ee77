package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/store"
)

type outboxCommand struct {
	List    outboxList    `cmd:"" default:"withargs" help:"List letters, the newest first."`
	Show    outboxShow    `cmd:"" help:"Show one letter: what became of it, and its text."`
	Approve outboxApprove `cmd:"" help:"Send letters that are held."`
	Hold    outboxHold    `cmd:"" help:"Keep letters that are to be sent until they are approved."`
	Resend  outboxResend  `cmd:"" help:"Send letters again that were refused, dropped, or of which nobody knows whether they were sent."`
	Drop    outboxDrop    `cmd:"" help:"Never send letters that are not sent yet."`
}

// letterStates are all states, in the order in which a letter passes them.
var letterStates = []store.LetterState{store.LetterHeld, store.LetterQueued, store.LetterSending, store.LetterSent,
	store.LetterFailed, store.LetterUnknown, store.LetterDropped}

type outboxList struct {
	recordFlags
	State []string `placeholder:"STATES" help:"Only those: held, queued, sending, sent, failed, unknown, dropped."`
	Limit int      `default:"50" placeholder:"N" help:"At most this many. Default: 50."`
	JSON  bool     `help:"Print JSON."`
}

func (c *outboxList) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 {
		return usage(fmt.Errorf("--limit %d: must be above 0", c.Limit))
	}
	var states []store.LetterState
	for _, s := range c.State {
		if !slices.Contains(letterStates, store.LetterState(s)) {
			return usage(fmt.Errorf("--state %s: no such state; there are held, queued, sending, sent, failed, unknown, dropped", s))
		}
		states = append(states, store.LetterState(s))
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	list, err := st.Letters(ctx, states...)
	if err != nil {
		return err
	}
	list = list[:min(len(list), c.Limit)]
	if c.JSON {
		all := []letterJSON{}
		for i := range list {
			all = append(all, letterOf(&list[i]))
		}
		return writeJSON(t.stdout, all)
	}
	if len(list) == 0 {
		fmt.Fprintln(t.stderr, "no letters")
	}
	for _, l := range list {
		line := fmt.Sprintf("%d  %s  %s  %s  %s", l.ID, l.State, l.Created.UTC().Format("2006-01-02 15:04"), addressees(&l), l.Subject)
		if l.Reason != "" {
			line += ": " + l.Reason
		}
		fmt.Fprintln(t.stdout, printable(line))
	}
	return nil
}

func addressees(l *store.Letter) string {
	var all []string
	for _, r := range l.To {
		all = append(all, r.Address)
	}
	return strings.Join(all, ",")
}

// letterJSON is a letter as scripts read it.
type letterJSON struct {
	ID        int64             `json:"id"`
	Key       string            `json:"key"`
	Job       int64             `json:"job,omitempty"`
	List      string            `json:"list,omitempty"`
	MessageID string            `json:"message_id"`
	From      string            `json:"from"`
	To        []store.Recipient `json:"to"`
	Subject   string            `json:"subject"`
	State     string            `json:"state"`
	Reason    string            `json:"reason,omitempty"`
	Attempts  int               `json:"attempts"`
	Next      *time.Time        `json:"next,omitempty"`
	Created   time.Time         `json:"created"`
	Started   *time.Time        `json:"started,omitempty"`
	Ended     *time.Time        `json:"ended,omitempty"`
	// Body is the whole mail, header and text; not in lists.
	Body string `json:"body,omitempty"`
}

func letterOf(l *store.Letter) letterJSON {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	j := letterJSON{ID: l.ID, Key: l.Key, Job: l.Task, List: l.Channel, MessageID: l.MessageID, From: l.From, To: orEmpty(l.To),
		Subject: l.Subject, State: string(l.State), Reason: l.Reason, Attempts: l.Attempts, Created: l.Created.UTC(),
		Started: at(l.Started), Ended: at(l.Ended), Body: string(l.Body)}
	if l.State == store.LetterQueued {
		j.Next = at(l.Next)
	}
	return j
}

type outboxShow struct {
	ID int64 `arg:"" help:"The letter's number, as bot outbox lists it."`
	recordFlags
	JSON bool `help:"Print JSON."`
	Raw  bool `help:"Print the mail as it is sent, byte for byte, and nothing else."`
}

func (c *outboxShow) Run(ctx context.Context, t *terminal) error {
	if c.JSON && c.Raw {
		return usage(errors.New("--json and --raw are two forms: choose one"))
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	l, err := st.Letter(ctx, c.ID)
	switch {
	case err != nil:
		return letterError(c.ID, err)
	case c.JSON:
		return writeJSON(t.stdout, letterOf(l))
	case c.Raw:
		_, err := t.stdout.Write(l.Body)
		return err
	}
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, printable(value))
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			line(name, t.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	}
	line("letter", fmt.Sprint(l.ID))
	line("state", string(l.State))
	line("reason", l.Reason)
	if l.Task != 0 {
		line("job", fmt.Sprint(l.Task))
	}
	at("created", l.Created)
	if l.Attempts > 0 {
		line("attempts", fmt.Sprint(l.Attempts))
	}
	at("last", l.Started)
	if l.State == store.LetterQueued {
		at("next", l.Next)
	}
	at("ended", l.Ended)
	for _, r := range l.To {
		what := r.Address
		if r.State != "" {
			what += ": " + r.State
		}
		if r.Reply != "" {
			what += ": " + r.Reply
		}
		line("recipient", what)
	}
	b.WriteByte('\n')
	m, err := mbox.ParseMessage(l.Body, "")
	if err != nil {
		return fmt.Errorf("letter %d: read what is to be sent: %w", l.ID, err)
	}
	for _, name := range []string{"From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To"} {
		if v := m.Header(name); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, printable(v))
		}
	}
	b.WriteByte('\n')
	for text := range strings.Lines(m.Text()) {
		b.WriteString(printable(strings.TrimRight(text, "\r\n")) + "\n")
	}
	_, err = t.stdout.Write([]byte(b.String()))
	return err
}

// letterArgs name letters, and say why something is done with them.
type letterArgs struct {
	IDs []int64 `arg:"" name:"id" help:"The letters' numbers, as bot outbox lists them."`
	Why string  `placeholder:"TEXT" help:"Kept with the letter as the reason."`
	recordFlags
}

// move moves letters; of those that cannot be moved it says why, and moves the rest.
func (c *letterArgs) move(ctx context.Context, t *terminal, done string, to store.LetterState, from ...store.LetterState) error {
	st, cfg, err := c.record(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	why := done + " by hand"
	if c.Why != "" {
		why += ": " + c.Why
	}
	var errs []error
	for _, id := range c.IDs {
		l, err := st.Letter(ctx, id)
		if err == nil && to == store.LetterQueued && cfg != nil {
			switch {
			case cfg.SMTP == nil:
				err = usage(fmt.Errorf("letter %d cannot be sent: %s has no [smtp]", id, cfg.File))
			case !strings.EqualFold(l.From, cfg.SMTP.From.Email):
				err = usage(fmt.Errorf("letter %d was written as %s, and smtp.from is %s: it cannot be sent; drop it", id, l.From, cfg.SMTP.From.Email))
			}
		}
		if err == nil {
			err = st.MoveLetter(ctx, id, from, to, why)
		}
		if err != nil {
			errs = append(errs, letterError(id, err))
			continue
		}
		note := ""
		if to == store.LetterQueued {
			note = ", to " + printable(addressees(l))
		}
		fmt.Fprintf(t.stdout, "letter %d: %s%s\n", id, done, note)
	}
	for _, err := range errs {
		if f := (*failure)(nil); !errors.As(err, &f) {
			return errors.Join(errs...)
		}
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	return nil
}

// letterError tells what is wrong with a letter's number or state.
func letterError(id int64, err error) error {
	switch {
	case errors.Is(err, store.ErrNoLetter):
		return usage(fmt.Errorf("no letter %d; bot outbox lists them", id))
	case errors.Is(err, store.ErrState):
		return usage(fmt.Errorf("letter %d: %w; see bot outbox show %d", id, err, id))
	}
	return err
}

type outboxApprove struct{ letterArgs }

func (c *outboxApprove) Run(ctx context.Context, t *terminal) error {
	return c.move(ctx, t, "approved", store.LetterQueued, store.LetterHeld)
}

type outboxHold struct{ letterArgs }

func (c *outboxHold) Run(ctx context.Context, t *terminal) error {
	return c.move(ctx, t, "held", store.LetterHeld, store.LetterQueued, store.LetterUnknown, store.LetterFailed)
}

type outboxResend struct{ letterArgs }

func (c *outboxResend) Run(ctx context.Context, t *terminal) error {
	return c.move(ctx, t, "queued again", store.LetterQueued, store.LetterFailed, store.LetterUnknown, store.LetterHeld, store.LetterDropped)
}

type outboxDrop struct{ letterArgs }

func (c *outboxDrop) Run(ctx context.Context, t *terminal) error {
	return c.move(ctx, t, "dropped", store.LetterDropped, store.LetterHeld, store.LetterQueued, store.LetterUnknown, store.LetterFailed)
}
