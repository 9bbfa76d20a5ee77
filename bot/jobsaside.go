package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"patchbench/mbox/source/imap"
	"patchbench/store"
)

// tellAside tells of the mails that a server has and does not give: series may lack
// them.
func tellAside(ctx context.Context, w io.Writer, st *store.Store) error {
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
			fmt.Fprintf(w, "set aside: mail UID %d of %s, which the server has not given since %s; asked for again at %s\n", a.UID, printable(s.Name),
				a.Since.UTC().Format("2006-01-02 15:04"), a.Again.UTC().Format("2006-01-02 15:04"))
		}
	}
	return nil
}
