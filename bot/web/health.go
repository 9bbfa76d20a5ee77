package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"patchbench/bot/part"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// What is too long. A worker renews its lease every few seconds; a letter waits
// for its hour's turn, and for a server that asks for another try later.
const (
	lapsed    = 2 * time.Minute
	undelived = 6 * time.Hour
	stuck     = 15 * time.Minute
)

// health tells whether all is well, and in any case how things stand.
//
//	ok    store: 120 evaluations
//	ok    imap:bench@imap.example.org/INBOX: last mail 2026-11-30T18:58:40Z, 4m0s ago
//	bad   sender: connect to mail.example.org:587: connection refused (since 2026-11-30T18:00:00Z)
//
// A source that has had no mail for long is not ill by that: a list may be
// silent. What a list's silence means is for whoever watches the metrics.
func (h *handler) health(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	now := h.now()
	c := checks{now: now}
	o, err := h.store.Overview(ctx, now)
	if err != nil {
		h.log.Error("health", "error", err)
		c.add(true, "store", "cannot be read; the log says why")
	} else {
		c.store(o)
	}
	c.parts(h.parts())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if c.bad {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write(c.text.Bytes())
	return nil
}

// checks gathers the lines of a health page.
type checks struct {
	now  time.Time
	text bytes.Buffer
	bad  bool
}

func (c *checks) add(bad bool, name, format string, args ...any) {
	word := "ok"
	if bad {
		word, c.bad = "bad", true
	}
	fmt.Fprintf(&c.text, "%-5s %s: %s\n", word, plain.Clean(name), plain.Clean(fmt.Sprintf(format, args...)))
}

// ago tells a time and how long ago that was.
func (c *checks) ago(t time.Time) string {
	return fmt.Sprintf("%s, %s ago", t.UTC().Format(time.RFC3339), max(c.now.Sub(t), 0).Round(time.Second))
}

func (c *checks) store(o *store.Overview) {
	n := 0
	for _, k := range o.Evaluations {
		n += k
	}
	word := "evaluations"
	if n == 1 {
		word = "evaluation"
	}
	c.add(false, "store", "%d %s", n, word)
	for _, s := range o.Sources {
		switch {
		case s.Last.IsZero():
			c.add(false, s.Name, "no mail yet")
		default:
			c.add(false, s.Name, "last mail %s", c.ago(s.Last))
		}
	}
	for _, t := range o.Lapsed {
		if c.now.Sub(t.Lease) > lapsed {
			c.add(true, "worker", "%s was last heard of before %s; its job %d will be taken up by another", cmp.Or(t.Worker, "(unnamed)"), c.ago(t.Lease), t.ID)
		}
	}
	running, queued := o.Tasks[store.Running], o.Tasks[store.Queued]
	waits := ""
	if queued > 0 && !o.Queued.IsZero() {
		waits = ", the oldest since " + c.ago(o.Queued)
	}
	c.add(false, "queue", "%d running, %d waiting%s, %d held", running, queued, waits, o.Tasks[store.Held])
	due, sending := o.Letters[store.LetterQueued], o.Letters[store.LetterSending]
	switch {
	case due > 0 && c.now.Sub(o.Due) > undelived:
		c.add(true, "outbox", "%d letters wait, the oldest since %s", due, c.ago(o.Due))
	case sending > 0 && c.now.Sub(o.Sending) > stuck:
		c.add(true, "outbox", "a letter is being sent since %s", c.ago(o.Sending))
	default:
		c.add(false, "outbox", "%d waiting, %d held, %d unknown", due, o.Letters[store.LetterHeld], o.Letters[store.LetterUnknown])
	}
}

func (c *checks) parts(all []part.Status) {
	all = slices.SortedFunc(slices.Values(all), func(a, b part.Status) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range all {
		if p.Err != nil {
			c.add(true, p.Name, "%v (since %s)", p.Err, p.Since.UTC().Format(time.RFC3339))
		} else {
			c.add(false, p.Name, "runs since %s", p.Since.UTC().Format(time.RFC3339))
		}
	}
}
