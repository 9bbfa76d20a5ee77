package reply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/source/feed"
	"patchbench/store"
	"patchbench/store/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childStore) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

const (
	author = "one@example.org"
	list   = "kit@lists.example.org"
)

// clock is what the tests' senders go by.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func letter(n int, created time.Time, to ...string) store.Letter {
	l := store.Letter{Key: fmt.Sprint("letter ", n), Channel: list, MessageID: fmt.Sprintf("patchbench.%d@example.org", n), From: "bench@example.org",
		Subject: "Re: [PATCH] x", Created: created, Next: created}
	for _, a := range to {
		l.To = append(l.To, store.Recipient{Address: a})
	}
	l.Body = []byte("From: bench@example.org\r\nMessage-ID: <" + l.MessageID + ">\r\n\r\n.a line with a dot\r\nText\r\n")
	return l
}

func put(t *testing.T, st *store.Store, l store.Letter) int64 {
	t.Helper()
	if added, err := st.Put(t.Context(), l); err != nil || !added {
		t.Fatalf("put: %v, %v", added, err)
	}
	got, err := st.LetterByMessageID(t.Context(), l.MessageID)
	if err != nil {
		t.Fatal(err)
	}
	return got.ID
}

// empty is a store's file without any letter: to copy it is quicker than to make one.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "bot.db")
	st, err := store.Open(context.Background(), "sqlite:"+file)
	if err != nil {
		return nil, err
	}
	if err := st.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// newFile gives the file of an empty store.
func newFile(t *testing.T) string {
	t.Helper()
	b, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bot.db")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	return storetest.OpenURL(t, "sqlite:"+newFile(t))
}

// serving is a service for the list that sends its mail this way.
func serving(c service.SMTP) *service.Config {
	c.From = mbox.Address{Email: "bench@example.org"}
	return &service.Config{SMTP: &c, Lists: []service.List{{Address: list, Mode: service.ToList}}}
}

func plainServer(s *server) *service.Config {
	return serving(service.SMTP{Address: s.addr, TLS: service.NoTLS, PerHour: 1000})
}

func TestFaults(t *testing.T) {
	type want struct {
		state        store.LetterState
		reason       string // in it
		author, list int    // copies
		sessions     int    // at least
	}
	again := errors.New("the mailbox is gone")
	for name, c := range map[string]struct {
		script  []faults
		to      []string      // nil: author and list
		blind   bool          // there is no mailbox to look into
		broken  error         // what the mailbox says
		first   bool          // no letter has come back through the list yet
		hours   int           // that pass at most; 0 means 6
		created time.Duration // before now
		want    want
	}{
		"well":                        {want: want{store.LetterSent, "", 1, 1, 1}},
		"well, without a mailbox":     {blind: true, want: want{store.LetterSent, "", 1, 1, 1}},
		"greeting 421":                {script: []faults{{greeting: "421 busy\r\n"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"greeting 554":                {script: []faults{{greeting: "554 no service\r\n"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"greeting of nonsense":        {script: []faults{{greeting: "\x00\xff\r\n"}, {greeting: "HTTP/1.1 400 Bad\r\n"}, {}}, want: want{store.LetterSent, "", 1, 1, 3}},
		"no greeting":                 {script: []faults{{greeting: "2"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"EHLO refused":                {script: []faults{{ehlo: answer(554, "go away")}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"MAIL 451":                    {script: []faults{{mail: answer(451, "later")}, {mail: answer(451, "later")}, {}}, want: want{store.LetterSent, "", 1, 1, 3}},
		"MAIL 550":                    {script: []faults{{mail: answer(550, "you are blocked\x1b[2J")}}, want: want{store.LetterFailed, `you are blocked\x1b[2J`, 0, 0, 1}},
		"cut at MAIL":                 {script: []faults{{cut: "mail"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"author 550":                  {script: []faults{{rcpt: map[string]error{author: answer(550, "no such user")}}}, want: want{store.LetterSent, "refused for one@example.org", 0, 1, 1}},
		"list 550":                    {script: []faults{{rcpt: map[string]error{list: answer(550, "members only")}}}, want: want{store.LetterSent, "members only", 1, 0, 1}},
		"both 550":                    {script: []faults{{rcpt: map[string]error{author: answer(550, "no"), list: answer(550, "no")}}}, want: want{store.LetterFailed, "every recipient", 0, 0, 1}},
		"author 451":                  {script: []faults{{rcpt: map[string]error{author: answer(451, "greylisted")}}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"both 451":                    {script: []faults{{rcpt: map[string]error{author: answer(451, "x"), list: answer(451, "x")}}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"author 451, list 550":        {script: []faults{{rcpt: map[string]error{author: answer(451, "x"), list: answer(550, "no")}}, {}}, want: want{store.LetterSent, "refused for " + list, 1, 0, 2}},
		"author 451 for ever":         {script: []faults{{rcpt: map[string]error{author: answer(451, "greylisted")}}}, hours: 60, want: want{store.LetterSent, "given up after 20 attempts", 0, 1, 20}},
		"451 for ever":                {script: []faults{{mail: answer(451, "later")}}, hours: 60, want: want{store.LetterFailed, "given up after 20 attempts", 0, 0, 20}},
		"text 451":                    {script: []faults{{text: answer(451, "later")}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"text 554":                    {script: []faults{{text: answer(554, "spam")}}, want: want{store.LetterFailed, "spam", 0, 0, 1}},
		"text 554, author 451":        {script: []faults{{rcpt: map[string]error{author: answer(451, "x")}, text: answer(554, "spam")}, {}}, want: want{store.LetterSent, "spam", 1, 0, 2}},
		"cut behind 354":              {script: []faults{{cut: "go-ahead"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"taken, no answer":            {script: []faults{{cut: "taken"}, {}}, want: want{store.LetterSent, "was found in the mailbox", 1, 1, 1}},
		"not taken, no answer":        {script: []faults{{cut: "text"}, {}}, want: want{store.LetterSent, "", 1, 1, 2}},
		"taken, the first letter":     {script: []faults{{cut: "taken"}, {}}, first: true, want: want{store.LetterSent, "was found in the mailbox", 1, 1, 1}},
		"not taken, the first letter": {script: []faults{{cut: "text"}, {}}, first: true, want: want{store.LetterHeld, "no mailbox that can tell", 0, 0, 1}},
		"never taken, no answer":      {script: []faults{{cut: "text"}}, hours: 60, want: want{store.LetterHeld, "resend it, or drop it", 0, 0, 2}},
		"taken, blind":                {script: []faults{{cut: "taken"}, {}}, blind: true, want: want{store.LetterHeld, "no mailbox that can tell", 1, 1, 1}},
		"not taken, blind":            {script: []faults{{cut: "text"}, {}}, blind: true, want: want{store.LetterHeld, "no mailbox that can tell", 0, 0, 1}},
		"taken, mailbox gone":         {script: []faults{{cut: "taken"}, {}}, broken: again, hours: 30, want: want{store.LetterHeld, "could not be asked for a day", 1, 1, 1}},
		"not taken, not to the list":  {script: []faults{{cut: "text"}, {}}, to: []string{author}, want: want{store.LetterHeld, "no mailbox that can tell", 0, 0, 1}},
		"taken, not to the list":      {script: []faults{{cut: "taken"}, {}}, to: []string{author}, want: want{store.LetterHeld, "no mailbox that can tell", 1, 0, 1}},
		"second half taken":           {script: []faults{{rcpt: map[string]error{author: answer(451, "x")}}, {cut: "taken"}, {}}, want: want{store.LetterHeld, "it may have been sent", 1, 1, 2}},
		"second half not taken":       {script: []faults{{rcpt: map[string]error{author: answer(451, "x")}}, {cut: "text"}, {}}, want: want{store.LetterHeld, "it may have been sent", 0, 1, 2}},
		"first half not taken":        {script: []faults{{rcpt: map[string]error{author: answer(550, "no")}, cut: "text"}, {}}, want: want{store.LetterSent, "refused for one@example.org", 0, 1, 2}},
		"old, mailbox gone":           {broken: again, created: 2 * time.Hour, want: want{store.LetterQueued, "waits until the mailbox can be asked", 0, 0, 0}},
		"just written, mailbox gone":  {broken: again, want: want{store.LetterSent, "", 1, 1, 1}},
		"old, and not in the mailbox": {created: 100 * time.Hour, want: want{store.LetterSent, "", 1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			st, at := newStore(t), newClock()
			srv := serve(t, nil, c.script...)
			cfg := plainServer(srv)
			box := &mailbox{s: srv, address: list, err: c.broken}
			o := Options{Now: at.now, Find: []feed.Finder{box}}
			if c.blind {
				o.Find = nil
			}
			if c.to == nil {
				c.to = []string{author, list}
			}
			if !c.first {
				comesBack(t, st)
			}
			id := put(t, st, letter(1, at.now().Add(-c.created), c.to...))
			s := New(st, func() *service.Config { return cfg }, o)
			l := drive(t, s, at, id, c.hours)
			if l.State != c.want.state || !strings.Contains(l.Reason, c.want.reason) || (l.Reason != "" && c.want.reason == "") {
				// A reason may also stand with a recipient.
				if l.State != c.want.state || !strings.Contains(fmt.Sprint(l.To), c.want.reason) {
					t.Errorf("state %s, reason %q, recipients %v", l.State, l.Reason, l.To)
				}
			}
			if d := cmp.Diff([]int{c.want.author, c.want.list}, []int{srv.got(author), srv.got(list)}); d != "" {
				t.Errorf("copies to author and list, -want +got:\n%s", d)
			}
			copies, sessions := srv.all()
			if sessions < c.want.sessions {
				t.Errorf("%d connections, want %d", sessions, c.want.sessions)
			}
			if l.State == store.LetterSent {
				for _, r := range l.To {
					if r.State == "" {
						t.Errorf("recipient %s has no state", r.Address)
					}
				}
				for _, c := range copies {
					if d := cmp.Diff(string(letter(1, at.now()).Body), string(c.body)); d != "" {
						t.Errorf("the bytes that came, -want +got:\n%s", d)
					}
				}
			}
		})
	}
}

// comesBack has the list known as one that gives us our own mail.
func comesBack(t *testing.T, st *store.Store) {
	t.Helper()
	if err := st.SetValue(t.Context(), seen(list), "2026-11-01T00:00:00Z"); err != nil {
		t.Fatal(err)
	}
}

// TestEcho: once a letter has come back through its list, the mailbox can tell.
func TestEcho(t *testing.T) {
	for name, c := range map[string]struct {
		mailbox string // whose mail is looked into
		want    store.LetterState
	}{
		"own mail comes back": {list, store.LetterSent},
		"own mail is kept":    {"nobody@example.org", store.LetterHeld},
	} {
		t.Run(name, func(t *testing.T) {
			st, at := newStore(t), newClock()
			srv := serve(t, nil, faults{}, faults{cut: "text"}, faults{})
			cfg := plainServer(srv)
			s := New(st, func() *service.Config { return cfg }, Options{Now: at.now, Find: []feed.Finder{&mailbox{s: srv, address: c.mailbox}}})
			if l := drive(t, s, at, put(t, st, letter(1, at.now(), author, list)), 1); l.State != store.LetterSent {
				t.Fatalf("the first letter is %s: %s", l.State, l.Reason)
			}
			for range 90 {
				at.pass(time.Minute)
				if err := s.letters(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if len(s.echoes.waiting) != 0 {
				t.Errorf("still waits for %v", s.echoes.waiting)
			}
			if l := drive(t, s, at, put(t, st, letter(2, at.now(), author, list)), 2); l.State != c.want {
				t.Errorf("the second letter is %s: %s", l.State, l.Reason)
			}
		})
	}
}

// TestNotRecorded: the store fails between the server's answer and the record of it.
func TestNotRecorded(t *testing.T) {
	file := newFile(t)
	reopen := func() *store.Store {
		st, err := store.Open(t.Context(), "sqlite:"+file)
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	at := newClock()
	srv := serve(t, nil)
	st := reopen()
	id := put(t, st, letter(1, at.now(), author, list))
	srv.on(func(step string) {
		if step == "text" {
			st.Close()
		}
	})
	cfg := plainServer(srv)
	o := Options{Now: at.now, Find: []feed.Finder{&mailbox{s: srv, address: list}}}
	if err := New(st, func() *service.Config { return cfg }, o).Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	again := reopen()
	defer again.Close()
	l := drive(t, New(again, func() *service.Config { return cfg }, o), at, id, 2)
	if l.State != store.LetterSent || srv.got(author) != 1 || srv.got(list) != 1 {
		t.Errorf("state %s: %s; copies %d and %d", l.State, l.Reason, srv.got(author), srv.got(list))
	}
}

// TestAlone: who is alone on a store need not wait until another sender would
// have ended, at his start.
func TestAlone(t *testing.T) {
	for _, alone := range []bool{false, true} {
		st, at := newStore(t), newClock()
		id := put(t, st, letter(1, at.now(), author, list))
		if l, err := st.NextLetter(t.Context(), at.now()); err != nil || l == nil { // and dies
			t.Fatal(l, err)
		}
		srv := serve(t, nil)
		cfg := plainServer(srv)
		s := New(st, func() *service.Config { return cfg }, Options{Now: at.now, Alone: alone})
		for range 2 {
			if err := s.letters(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := store.LetterSending
			if alone {
				want = store.LetterHeld
			}
			if l, err := st.Letter(t.Context(), id); err != nil || l.State != want {
				t.Errorf("alone %v: %v, state %s", alone, err, l.State)
			}
			at.pass(time.Minute)
		}
		if alone { // a second letter that another sender has after all is left to it
			put(t, st, letter(2, at.now(), author, list))
			l, err := st.NextLetter(t.Context(), at.now())
			if err != nil || l == nil {
				t.Fatal(l, err)
			}
			if err := s.letters(t.Context()); err != nil {
				t.Fatal(err)
			}
			if l, err := st.Letter(t.Context(), l.ID); err != nil || l.State != store.LetterSending {
				t.Errorf("%v, state %s", err, l.State)
			}
		}
	}
}

// drive lets a sender work until nothing more will happen to a letter, or so many
// hours have passed.
func drive(t *testing.T, s *Sender, at *clock, id int64, hours int) *store.Letter {
	t.Helper()
	if hours == 0 {
		hours = 6
	}
	end := at.now().Add(time.Duration(hours) * time.Hour)
	for {
		if err := s.letters(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := s.st.Letter(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if l.State == store.LetterSent || l.State == store.LetterFailed || l.State == store.LetterHeld || at.now().After(end) {
			return l
		}
		step := time.Minute
		if l.State != store.LetterSending && l.Next.After(at.now()) {
			step = l.Next.Sub(at.now())
		}
		at.pass(step)
	}
}

// TestNobodyListens has no server at all.
func TestNobodyListens(t *testing.T) {
	st, at := newStore(t), newClock()
	srv := serve(t, nil)
	cfg := plainServer(srv)
	cfg.SMTP.Address = "127.0.0.1:1"
	id := put(t, st, letter(1, at.now(), author, list))
	s := New(st, func() *service.Config { return cfg }, Options{Now: at.now})
	if err := s.letters(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := st.Letter(t.Context(), id)
	if err != nil || l.State != store.LetterQueued || !strings.Contains(l.Reason, "connect to 127.0.0.1:1") || !l.Next.After(at.now()) {
		t.Fatalf("%v, %+v", err, l)
	}
	cfg.SMTP.Address = srv.addr
	if l := drive(t, s, at, id, 0); l.State != store.LetterSent || srv.got(list) != 1 {
		t.Errorf("%+v", l)
	}
}

func TestEncryptionAndPassword(t *testing.T) {
	conf, ca := certificate(t)
	for name, c := range map[string]struct {
		server *tlsServer
		smtp   service.SMTP
		reason string // "" : it is sent
	}{
		"STARTTLS":                  {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS, CAFile: ca}, ""},
		"STARTTLS and PLAIN":        {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS, CAFile: ca, User: "bench", Password: "right"}, ""},
		"STARTTLS and LOGIN":        {&tlsServer{starttls: true, login: true}, service.SMTP{TLS: service.StartTLS, CAFile: ca, User: "bench", Password: "right"}, ""},
		"STARTTLS is not offered":   {&tlsServer{}, service.SMTP{TLS: service.StartTLS, CAFile: ca, User: "bench", Password: "right"}, "STARTTLS"},
		"certificate of a stranger": {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS}, "certificate"},
		"TLS":                       {&tlsServer{implicit: true}, service.SMTP{TLS: service.TLS, CAFile: ca, User: "bench", Password: "right"}, ""},
		"TLS, stranger":             {&tlsServer{implicit: true}, service.SMTP{TLS: service.TLS}, "certificate"},
		"TLS to a plain server":     {&tlsServer{}, service.SMTP{TLS: service.TLS, CAFile: ca}, "tls"},
		"wrong password":            {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS, CAFile: ca, User: "bench", Password: "wrong-word"}, "authenticate"},
		"loopback in the clear":     {&tlsServer{}, service.SMTP{TLS: service.NoTLS, User: "bench", Password: "right"}, ""},
		"a CA file that is none":    {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS, CAFile: os.Args[0]}, "holds no certificate"},
		"no CA file":                {&tlsServer{starttls: true}, service.SMTP{TLS: service.StartTLS, CAFile: filepath.Join(t.TempDir(), "x")}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			st, at := newStore(t), newClock()
			srv := c.server.start(t, conf)
			c.smtp.Address, c.smtp.PerHour = srv.addr, 10
			id := put(t, st, letter(1, at.now(), author))
			s := New(st, func() *service.Config { return serving(c.smtp) }, Options{Now: at.now})
			if err := s.letters(t.Context()); err != nil {
				t.Fatal(err)
			}
			l, err := st.Letter(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if c.reason == "" {
				if l.State != store.LetterSent || srv.got(author) != 1 {
					t.Fatalf("state %s: %s", l.State, l.Reason)
				}
				return
			}
			if l.State != store.LetterQueued || !strings.Contains(l.Reason, c.reason) || srv.got(author) != 0 {
				t.Errorf("state %s, reason %q", l.State, l.Reason)
			}
			if strings.Contains(l.Reason, "wrong-word") {
				t.Errorf("the reason holds the password: %s", l.Reason)
			}
		})
	}
}

// TestInTheClear: neither mail nor password leaves the machine unencrypted.
func TestInTheClear(t *testing.T) {
	for name, c := range map[string]struct {
		smtp   service.SMTP
		dialed bool
		reason string
	}{
		"mail":     {service.SMTP{TLS: service.NoTLS}, false, "in the clear"},
		"password": {service.SMTP{TLS: service.NoTLS, AllowPlaintext: true, User: "bench", Password: "right"}, true, "inside TLS only"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := serve(t, nil)
			c.smtp.Address = "mx.example.org:25"
			s := New(nil, nil, Options{})
			dialed, dial := false, s.dial
			s.dial = connTo(&dialed, dial, srv.addr)
			l := letter(1, time.Time{}, author)
			if v, reason := s.transfer(t.Context(), &c.smtp, &l); v != later || !strings.Contains(reason, c.reason) || dialed != c.dialed {
				t.Errorf("verdict %d, reason %q, dialed %v", v, reason, dialed)
			}
			if srv.got(author) != 0 {
				t.Error("it was sent")
			}
		})
	}
}

// TestInTheMailboxAlready: what another bot or a restored backup has sent is
// not sent again.
func TestInTheMailboxAlready(t *testing.T) {
	at := newClock()
	srv := serve(t, nil)
	cfg := plainServer(srv)
	for i, state := range []string{"the first bot", "the second bot", "a restored backup"} {
		st := newStore(t)
		id := put(t, st, letter(1, at.now(), author, list))
		s := New(st, func() *service.Config { return cfg }, Options{Now: at.now, Find: []feed.Finder{&mailbox{s: srv, address: list}}})
		l := drive(t, s, at, id, 0)
		if l.State != store.LetterSent || srv.got(author) != 1 || srv.got(list) != 1 || (l.Reason == "") != (i == 0) {
			t.Errorf("%s: state %s, reason %q, copies %d and %d", state, l.State, l.Reason, srv.got(author), srv.got(list))
		}
	}
}

// TestTwoSenders has two senders on one store at once.
func TestTwoSenders(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		at := newClock()
		srv := serve(t, nil)
		cfg := plainServer(srv)
		const n = 20
		for i := range n {
			put(t, st, letter(i, at.now(), author, list))
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := New(st, func() *service.Config { return cfg }, Options{Now: at.now}).letters(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		seen := map[string]int{}
		copies, _ := srv.all()
		for _, c := range copies {
			seen[string(c.body)]++
		}
		if len(seen) != n || len(copies) != n {
			t.Errorf("%d letters in %d copies, want %d", len(seen), len(copies), n)
		}
	})
}

func TestRate(t *testing.T) {
	st, at := newStore(t), newClock()
	srv := serve(t, nil)
	cfg := plainServer(srv)
	cfg.SMTP.PerHour = 0 // the default
	for i := range 70 {
		put(t, st, letter(i, at.now(), author, list))
	}
	for hour, want := range []int{30, 60, 70} {
		for range 60 {
			// A new sender each minute: a restart is no way around it.
			if err := New(st, func() *service.Config { return cfg }, Options{Now: at.now}).letters(t.Context()); err != nil {
				t.Fatal(err)
			}
			at.pass(time.Minute)
		}
		if got := srv.got(list); got != want {
			t.Errorf("after hour %d there are %d copies, want %d", hour+1, got, want)
		}
	}
	// A clock that was set back a year stops nothing.
	at.pass(-365 * 24 * time.Hour)
	put(t, st, letter(70, at.now(), author, list))
	if err := New(st, func() *service.Config { return cfg }, Options{Now: at.now}).letters(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := srv.got(list); got != 71 {
		t.Errorf("with the clock set back there are %d copies", got)
	}
}

// TestByHand goes on with what was held.
func TestByHand(t *testing.T) {
	st, at := newStore(t), newClock()
	srv := serve(t, nil, faults{text: answer(554, "spam")}, faults{})
	cfg := plainServer(srv)
	s := New(st, func() *service.Config { return cfg }, Options{Now: at.now})
	held := letter(1, at.now(), author, list)
	held.State = store.LetterHeld
	id := put(t, st, held)
	l := drive(t, s, at, id, 1)
	if _, sessions := srv.all(); l.State != store.LetterHeld || sessions != 0 {
		t.Fatalf("state %s, %d connections", l.State, sessions)
	}
	for _, c := range []struct {
		from, want store.LetterState
	}{{store.LetterHeld, store.LetterFailed}, {store.LetterFailed, store.LetterSent}} {
		if err := st.MoveLetter(t.Context(), id, []store.LetterState{c.from}, store.LetterQueued, "by hand"); err != nil {
			t.Fatal(err)
		}
		if l := drive(t, s, at, id, 1); l.State != c.want {
			t.Fatalf("from %s: state %s, %s %v", c.from, l.State, l.Reason, l.To)
		}
	}
	if srv.got(author) != 1 || srv.got(list) != 1 {
		t.Errorf("%d and %d copies", srv.got(author), srv.got(list))
	}
}

// TestRunEnds: what is being sent when the program is to end is finished.
func TestRunEnds(t *testing.T) {
	st := newStore(t)
	srv := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	srv.on(func(step string) {
		if step == "data" {
			cancel()
		}
	})
	cfg := plainServer(srv)
	first := put(t, st, letter(1, time.Now(), author, list))
	second := put(t, st, letter(2, time.Now(), author, list))
	if err := New(st, func() *service.Config { return cfg }, Options{}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]store.LetterState{first: store.LetterSent, second: store.LetterQueued} {
		if l, err := st.Letter(t.Context(), id); err != nil || l.State != want {
			t.Errorf("letter %d: %v, state %s: %s", id, err, l.State, l.Reason)
		}
	}
}

// notices counts deliveries, and fails the first.
type notices struct {
	st *store.Store
	n  int
}

func (d *notices) Deliver(_ context.Context, n *store.Notice) error {
	if d.n++; d.n == 1 {
		n.Attempts, n.Reason, n.Next = n.Attempts+1, "not now", n.Next.Add(time.Nanosecond)
		return errors.New("not now")
	}
	n.Sent, n.CommentID = n.Seq, 7
	return nil
}

func TestNotices(t *testing.T) {
	st, at := newStore(t), newClock()
	d := &notices{st: st}
	s := New(st, func() *service.Config { return &service.Config{} }, Options{Now: at.now, GitHub: d})
	if err := st.PutNotice(t.Context(), store.Notice{Repo: "o/r", Number: 3, Comment: "text"}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.notices(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.letters(t.Context()); err != nil { // without [smtp] nothing happens
			t.Fatal(err)
		}
		at.pass(time.Hour)
	}
	if n, err := st.NextNotice(t.Context(), at.now()); err != nil || n != nil || d.n != 2 {
		t.Errorf("%d deliveries, still due: %v, %v", d.n, n, err)
	}
}
