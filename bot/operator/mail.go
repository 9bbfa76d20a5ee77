package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

// Error says that a job has not what is asked for.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Mail writes the mails of a job's series as an mbox: for whoever is to
// approve it, or evaluates it by hand.
func Mail(ctx context.Context, w io.Writer, st *store.Store, k *store.Task) error {
	if k.Kind != store.KindMail {
		return &Error{fmt.Errorf("job %d is the pull request %s: there is no mail", k.ID, k.Ref)}
	}
	if len(k.Payload) == 0 {
		return &Error{fmt.Errorf("job %d names no mails", k.ID)}
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
			errs = append(errs, fmt.Errorf("mail <%s> is not kept any more: see the list's archive", plain.Clean(id)))
			continue
		}
		// Of several copies the first one came first.
		msgs = append(msgs, &mbox.Message{Raw: mails[0].Raw})
	}
	if err := mbox.Write(w, msgs...); err != nil {
		return err
	}
	if len(errs) > 0 {
		return &Error{errors.Join(errs...)}
	}
	return nil
}
