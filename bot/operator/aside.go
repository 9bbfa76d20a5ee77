package operator

import (
	"context"
	"fmt"
	"io"
	"time"

	"patchbench/bot/report/plain"
	"patchbench/mbox/source/imap"
	"patchbench/store"
)

// Aside tells of the mails that a server has and does not give: series may lack
// them.
func Aside(ctx context.Context, w io.Writer, st *store.Store) error {
	o, err := st.Overview(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, s := range o.Sources {
		aside, err := imap.SetAside(s.Cursor)
		if err != nil {
			continue // it is none of an IMAP folder
		}
		for _, a := range aside {
			fmt.Fprintf(w, "set aside: mail UID %d of %s, which the server has not given since %s; asked for again at %s\n", a.UID, plain.Clean(s.Name),
				a.Since.UTC().Format("2006-01-02 15:04"), a.Again.UTC().Format("2006-01-02 15:04"))
		}
	}
	return nil
}
