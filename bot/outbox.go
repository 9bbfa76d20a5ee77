package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"patchbench/bot/operator"
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
	chosen, err := states(c.State, letterStates)
	if err != nil {
		return err
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	list, err := st.Letters(ctx, chosen...)
	if err != nil {
		return err
	}
	list = list[:min(len(list), c.Limit)]
	if c.JSON {
		all := []operator.Letter{}
		for i := range list {
			all = append(all, operator.LetterOf(&list[i]))
		}
		return writeJSON(t.stdout, all)
	}
	if len(list) == 0 {
		fmt.Fprintln(t.stderr, "no letters")
	}
	for i := range list {
		fmt.Fprintln(t.stdout, operator.LetterLine(&list[i]))
	}
	return nil
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
		return writeJSON(t.stdout, operator.LetterOf(l))
	case c.Raw:
		_, err := t.stdout.Write(l.Body)
		return err
	}
	return operator.LetterText(t.stdout, l)
}

// letterArgs name letters, and say why something is done with them.
type letterArgs struct {
	IDs []int64 `arg:"" name:"id" help:"The letters' numbers, as bot outbox lists them."`
	Why string  `placeholder:"TEXT" help:"Kept with the letter as the reason."`
	recordFlags
}

// move moves the letters that are named.
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
	return each(c.IDs, func(id int64) error {
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
			return letterError(id, err)
		}
		note := ""
		if to == store.LetterQueued {
			note = ", to " + printable(operator.Addressees(l))
		}
		fmt.Fprintf(t.stdout, "letter %d: %s%s\n", id, done, note)
		return nil
	})
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
