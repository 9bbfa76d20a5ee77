package watch

import (
	"testing"
	"time"

	"patchbench/bot/letter"
	"patchbench/mbox"
	"patchbench/store"
)

// twinLetter is what another bot under the same address writes to a mail, as the
// list sends it.
func (x *world) twinLetter(re, secret string, change func(*mbox.Address)) []byte {
	x.t.Helper()
	from := x.cfg.SMTP.From
	if change != nil {
		change(&from)
	}
	l, err := letter.Faults(nil, nil, store.Thread{MessageID: re, Subject: "[PATCH 0/2] a", Author: mbox.Address{Email: "one@trusted.test"}, List: "dev@lists.test"},
		"list", letter.Options{From: from, Secret: []byte(secret), Key: "mail:" + re, Now: x.now, AutoSubmitted: true})
	if err != nil {
		x.t.Fatal(err)
	}
	return l.Body
}

// TestTwin: a letter under the bot's address that it has not written is noted, and
// what it answers is not evaluated without asking.
func TestTwin(t *testing.T) {
	const held = "mail a.0 v1 held: answered already under the bot's address, by "
	const queued = "mail a.0 v1 queued: " + trustedDKIM
	for _, c := range []struct {
		name   string
		secret string
		from   func(*mbox.Address)
		own    bool // it is in the outbox
		noted  bool
	}{
		{name: "another secret", secret: "of another bot", noted: true},
		{name: "this secret, and no record of it", secret: secret, noted: true},
		{name: "in the outbox", secret: secret, own: true},
		{name: "of another address", secret: "of another bot", from: func(a *mbox.Address) { a.Email = "measure@bot.test" }},
		{name: "of another domain", secret: "of another bot", from: func(a *mbox.Address) { a.Email = "bench@far.test" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			raw := x.twinLetter("a.0@x.test", c.secret, c.from)
			m, err := mbox.ParseMessage(raw, "")
			if err != nil {
				t.Fatal(err)
			}
			if c.own {
				x.put(m.ID, 0)
			}
			x.get(posted("a", "PATCH")...)
			x.getRaw(raw)
			x.step()
			by, err := x.st.Answered(t.Context(), "a.0@x.test")
			if err != nil {
				t.Fatal(err)
			}
			want, noted, twins := queued, "", int64(0)
			if c.noted {
				want, noted, twins = held+quoted(m.ID), m.ID, 1
			}
			if by != noted || x.w.Counts().Twins != twins {
				t.Errorf("answered by %q, want %q; %d twins", by, noted, x.w.Counts().Twins)
			}
			x.check("then", want)
			x.restart()
			x.wait(time.Hour)
			x.check("later", want)
		})
	}
}
