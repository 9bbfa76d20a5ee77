package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"patchbench/store"
)

// TestOutbox runs the session of testdata/outbox on a record with letters in
// every state.
func TestOutbox(t *testing.T) {
	bin := filepath.Dir(buildBot(t))
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/outbox",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			return fillOutbox(t, filepath.Join(e.WorkDir, "bot.db"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
	})
}

func fillOutbox(t *testing.T, file string) error {
	ctx := t.Context()
	st, err := store.Open(ctx, "sqlite:"+file)
	if err != nil {
		return err
	}
	defer st.Close()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for n, subject := range []string{"held", "queued", "sent", "failed", "unknown"} {
		id := fmt.Sprintf("patchbench.%d@example.org", n+1)
		l := store.Letter{Key: fmt.Sprint("k", n+1), Task: 7, Channel: "kit@lists.example.org", MessageID: id, From: "bench@example.org",
			To:      []store.Recipient{{Address: "one@example.org"}, {Address: "kit@lists.example.org"}},
			Subject: "Re: [PATCH] " + subject, Created: now, Next: now.Add(time.Duration(n) * time.Second),
			Body: []byte("From: bench@example.org\r\nTo: one@example.org\r\nCc: kit@lists.example.org\r\nSubject: Re: [PATCH] " + subject +
				"\r\nMessage-ID: <" + id + ">\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n" +
				"\r\nworse: 1/1 of Zo=C3=AB =1B[31m\r\n"),
		}
		if subject == "held" {
			l.State, l.Reason = store.LetterHeld, "dry run\x1b[2J"
		}
		if _, err := st.Put(ctx, l); err != nil {
			return err
		}
	}
	for _, end := range []struct {
		n      int
		state  store.LetterState
		reason string
	}{{2, store.LetterQueued, ""}, {3, store.LetterSent, ""}, {4, store.LetterFailed, "spam"}, {5, store.LetterUnknown, "no answer"}} {
		l, err := st.NextLetter(ctx, now.Add(time.Duration(end.n-1)*time.Second))
		if err != nil {
			return err
		}
		if l == nil || l.ID != int64(end.n) {
			return fmt.Errorf("the next letter is %v", l)
		}
		l.State, l.Reason, l.Next = end.state, end.reason, now.Add(time.Hour)
		for i := range l.To {
			switch end.state {
			case store.LetterSent:
				l.To[i].State = "sent"
			case store.LetterFailed:
				l.To[i].State, l.To[i].Reply = "failed", "spam"
			}
		}
		if err := st.Settle(ctx, l); err != nil {
			return err
		}
	}
	return nil
}
