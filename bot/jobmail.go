package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"patchbench/mbox"
	"patchbench/store"
)

// writeMail writes the mails of a job's series as an mbox: for whoever is to
// approve it, or evaluates it by hand.
func writeMail(ctx context.Context, w io.Writer, st *store.Store, k *store.Task) error {
	if k.Kind != store.KindMail {
		return usage(fmt.Errorf("job %d is the pull request %s: there is no mail", k.ID, k.Ref))
	}
	if len(k.Payload) == 0 {
		return usage(fmt.Errorf("job %d names no mails", k.ID))
	}
	var p store.MailPayload
	if err := store.DecodePayload(k.Payload, &p); err != nil {
		return fmt.Errorf("job %d: %w", k.ID, err)
	}
	var ids []string
	if p.Series.Cover != nil {
		ids = append(ids, p.Series.Cover.MessageID)
	}
	for i := range p.Series.Patches {
		ids = append(ids, p.Series.Patches[i].MessageID)
	}
	var msgs []*mbox.Message
	var errs []error
	for i, id := range ids {
		if i > 0 && id == ids[i-1] { // several patches in one mail
			continue
		}
		mails, err := st.MailsByKey(ctx, id)
		if err != nil {
			return err
		}
		if len(mails) == 0 {
			errs = append(errs, fmt.Errorf("mail <%s> is not kept any more: see the list's archive", printable(id)))
			continue
		}
		// Of several copies the first one came first.
		msgs = append(msgs, &mbox.Message{Raw: mails[0].Raw})
	}
	if err := mbox.Write(w, msgs...); err != nil {
		return err
	}
	if len(errs) > 0 {
		return usage(errors.Join(errs...))
	}
	return nil
}
