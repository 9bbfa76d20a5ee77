package reply

import (
	"strings"
	"testing"

	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
)

// TestWithheld: the service file was changed between the writing and the sending.
func TestWithheld(t *testing.T) {
	other := "other@lists.example.org"
	for name, c := range map[string]struct {
		mode, served string   // "" are ToList and list
		from         string   // of the bot by now; "" is as before
		to           []string // nil: author and list
		approve      bool
		want         store.LetterState
		reason       string
	}{
		"nothing changed":            {want: store.LetterSent},
		"dry run":                    {mode: service.DryRun, want: store.LetterHeld, reason: "dry run"},
		"dry run, to the author":     {mode: service.DryRun, to: []string{author}, want: store.LetterHeld, reason: "dry run"},
		"dry run, approved":          {mode: service.DryRun, approve: true, want: store.LetterSent},
		"author-only":                {mode: service.AuthorOnly, want: store.LetterHeld, reason: "author-only"},
		"author-only, to the author": {mode: service.AuthorOnly, to: []string{author}, want: store.LetterSent},
		"author-only, approved":      {mode: service.AuthorOnly, approve: true, want: store.LetterSent},
		"not served":                 {served: other, want: store.LetterHeld, reason: "no list " + list},
		"not served, approved":       {served: other, approve: true, want: store.LetterSent},
		"another sender":             {from: "new@example.org", want: store.LetterHeld, reason: "written as bench@example.org"},
		"another sender, approved":   {from: "new@example.org", approve: true, want: store.LetterHeld, reason: "smtp.from is new@example.org"},
		"the sender in other case":   {from: "Bench@EXAMPLE.org", want: store.LetterSent},
	} {
		t.Run(name, func(t *testing.T) {
			st, at := newStore(t), newClock()
			srv := serve(t, nil)
			cfg := plainServer(srv)
			if c.mode != "" {
				cfg.Lists[0].Mode = c.mode
			}
			if c.served != "" {
				cfg.Lists[0].Address = c.served
			}
			if c.from != "" {
				cfg.SMTP.From = mbox.Address{Email: c.from}
			}
			if c.to == nil {
				c.to = []string{author, list}
			}
			l := letter(1, at.now(), c.to...)
			if c.approve {
				l.State = store.LetterHeld
			}
			id := put(t, st, l)
			if c.approve {
				if err := st.MoveLetter(t.Context(), id, []store.LetterState{store.LetterHeld}, store.LetterQueued, "approved by hand"); err != nil {
					t.Fatal(err)
				}
			}
			got := drive(t, New(st, func() *service.Config { return cfg }, Options{Now: at.now}), at, id, 1)
			if got.State != c.want || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("state %s, reason %q", got.State, got.Reason)
			}
			copies := 0
			if c.want == store.LetterSent {
				copies = 1
			}
			for _, a := range c.to {
				if srv.got(a) != copies {
					t.Errorf("%s got %d copies, want %d", a, srv.got(a), copies)
				}
			}
		})
	}
}

// TestDryRunStops: what waits for another try is held when the list goes into dry
// run, and what was approved before still leaves.
func TestDryRunStops(t *testing.T) {
	st, at := newStore(t), newClock()
	srv := serve(t, nil, faults{mail: answer(451, "later")}, faults{mail: answer(451, "later")}, faults{})
	cfg := plainServer(srv)
	waits := put(t, st, letter(1, at.now(), author, list))
	l := letter(2, at.now(), author)
	l.State = store.LetterHeld
	approved := put(t, st, l)
	if err := st.MoveLetter(t.Context(), approved, []store.LetterState{store.LetterHeld}, store.LetterQueued, "approved by hand"); err != nil {
		t.Fatal(err)
	}
	s := New(st, func() *service.Config { return cfg }, Options{Now: at.now})
	if err := s.letters(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg.Lists[0].Mode = service.DryRun
	if l := drive(t, s, at, waits, 1); l.State != store.LetterHeld || !strings.Contains(l.Reason, "dry run") {
		t.Errorf("letter that waited: %s, %s", l.State, l.Reason)
	}
	if l := drive(t, s, at, approved, 1); l.State != store.LetterSent {
		t.Errorf("approved letter: %s, %s", l.State, l.Reason)
	}
	if srv.got(list) != 0 || srv.got(author) != 1 {
		t.Errorf("%d copies to the list, %d to the author", srv.got(list), srv.got(author))
	}
}
