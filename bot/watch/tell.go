package watch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"patchbench/bot/letter"
	"patchbench/bot/watch/command"
	"patchbench/config/service"
	"patchbench/store"
)

// toldPrefix begins the keys of letters about commands.
const toldPrefix = "told:"

// toldName is under which name the store keeps which mails of a series' thread were
// answered by such a letter.
func toldName(id string) string { return "watch:told:" + id }

// tell puts a letter to the giver of commands into the outbox, about those that
// were not obeyed: one for each mail, none to an answer to such a letter, so that no
// two robots go on for ever, and none in threads that have had enough.
func (w *Watcher) tell(ctx context.Context, cfg *service.Config, i int, task *store.Task, g giver, faults []letter.Fault, now time.Time) error {
	log := w.o.Log.With("message_id", g.m.ID, "from", g.m.From.Email)
	list := cfg.ListOf(nil, []string{task.List})
	if cfg.SMTP == nil || list == nil || len(w.o.Secret) == 0 {
		return nil
	}
	if again, err := w.answersLetter(ctx, g.m.InReplyTo, g.m.References); err != nil || again {
		return err
	}
	x := w.collector.Index()
	ignored, answers, err := w.thread(ctx, x.Replaces(), i, references(g.m))
	if err != nil {
		return err
	}
	name := toldName(x.Messages(i)[0])
	text, err := w.st.Value(ctx, name)
	if err != nil {
		return err
	}
	if told := strings.Fields(text); !slices.Contains(told, g.m.ID) {
		if ignored != "" || cfg.Policy.ThreadCap > 0 && answers >= cfg.Policy.ThreadCap {
			log.Info("enough was said in this thread: nobody is told", "answers", answers, "ignored", ignored)
			return nil
		}
		// Before the letter is there: if the process dies in between, one too many
		// counts.
		if err := w.st.SetValue(ctx, name, strings.Join(append(told, g.m.ID), " ")); err != nil {
			return err
		}
	}
	l, err := letter.Faults(faults, command.Usage(classes(cfg)), store.Thread{
		MessageID: g.m.ID, Subject: g.m.Subject, References: references(g.m), Author: g.m.From, List: list.Address, Date: g.m.Date,
	}, list.Mode, letter.Options{From: cfg.SMTP.From, Secret: w.o.Secret, AutoSubmitted: cfg.Policy.AutoSubmitted, Key: toldPrefix + g.m.ID, Now: now})
	if errors.Is(err, letter.ErrRefused) {
		log.Info("nobody is told", "reason", err)
		return nil
	}
	if err != nil {
		return err
	}
	l.Task = task.ID
	_, err = w.st.Put(ctx, *l)
	return err
}

// answersLetter says that a mail answers a letter about commands.
func (w *Watcher) answersLetter(ctx context.Context, replied, refs []string) (bool, error) {
	ids := slices.Clone(replied)
	if len(refs) > 0 {
		ids = append(ids, refs[len(refs)-1])
	}
	for _, id := range ids[:min(len(ids), 10)] {
		l, err := w.st.LetterByMessageID(ctx, id)
		switch {
		case errors.Is(err, store.ErrNoLetter):
		case err != nil:
			return false, err
		case strings.HasPrefix(l.Key, toldPrefix):
			return true, nil
		}
	}
	return false, nil
}
