package imap

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox/source/feed"
)

// taker keeps what a source gives, as a store does.
type taker struct {
	t testing.TB

	mu      sync.Mutex
	cursor  string
	numbers []int // of the mails, in order
	sizes   []int
	events  []string
	batches int
	fail    int // how many batches are still refused
	changed chan struct{}
}

func newTaker(t testing.TB) *taker { return &taker{t: t, changed: make(chan struct{}, 1)} }

var numberOf = regexp.MustCompile(`(?i)message-id: *<(\d+)@`)

func (k *taker) take(_ context.Context, b feed.Batch) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.signal()
	if k.fail > 0 {
		k.fail--
		return errors.New("disk full")
	}
	bytes := 0
	for _, m := range b.Mails {
		match := numberOf.FindSubmatch(m.Raw)
		if match == nil {
			k.t.Errorf("a mail without number: %.100q", m.Raw)
			continue
		}
		n, _ := strconv.Atoi(string(match[1]))
		if want := day0.Add(time.Duration(n) * time.Minute); !m.Received.Equal(want) {
			k.t.Errorf("mail %d received %v, want %v", n, m.Received, want)
		}
		if len(m.Raw) < feed.CutAt && string(m.Raw) != testMail(n) {
			k.t.Errorf("mail %d is %q", n, m.Raw)
		}
		k.numbers = append(k.numbers, n)
		k.sizes = append(k.sizes, len(m.Raw))
		bytes += len(m.Raw)
		if m.Cut != (len(m.Raw) == feed.CutAt) {
			k.t.Errorf("mail %d of %d bytes: cut %v", n, len(m.Raw), m.Cut)
		}
	}
	if len(b.Mails) > feed.MaxMails || bytes > feed.MaxBytes {
		k.t.Errorf("a batch of %d mails, %d bytes", len(b.Mails), bytes)
	}
	k.batches++
	k.cursor = b.Cursor
	return nil
}

func (k *taker) notify(e feed.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.signal()
	text := e.Text
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if strings.Contains(text, testPassword) {
		k.t.Errorf("an event tells the password: %s", text)
	}
	k.events = append(k.events, text)
}

func (k *taker) signal() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// until waits for a condition on the taker.
func (k *taker) until(what string, ok func() bool) {
	k.t.Helper()
	timeout := time.NewTimer(2 * time.Minute)
	defer timeout.Stop()
	for {
		k.mu.Lock()
		done := ok()
		k.mu.Unlock()
		if done {
			return
		}
		select {
		case <-k.changed:
		case <-timeout.C:
			k.mu.Lock()
			defer k.mu.Unlock()
			k.t.Fatalf("waiting for %s; have mails %v, %d batches, cursor %s, events %q", what, k.numbers, k.batches, k.cursor, k.events)
		}
	}
}

func (k *taker) has(numbers ...int) func() bool {
	return func() bool {
		for _, n := range numbers {
			if !slices.Contains(k.numbers, n) {
				return false
			}
		}
		return true
	}
}

func (k *taker) begun() bool { return k.cursor != "" }

func (k *taker) told(part string) func() bool {
	return func() bool {
		return slices.ContainsFunc(k.events, func(e string) bool { return strings.Contains(e, part) })
	}
}

// check compares what was given, in order.
func (k *taker) check(want []int) {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if diff := cmp.Diff(want, k.numbers); diff != "" {
		k.t.Errorf("mails given (-want +got):\n%s", diff)
	}
}

// start follows a source until stop is called.
func (k *taker) start(s *Source) (stop func()) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	k.mu.Lock()
	cursor := k.cursor
	k.mu.Unlock()
	go func() { ended <- s.Follow(ctx, cursor, k.take, k.notify) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				k.t.Errorf("Follow: %v, want %v", err, context.Canceled)
			}
		})
	}
	k.t.Cleanup(stop)
	return stop
}

func numbers(from, to int) []int {
	var list []int
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}

func (s *server) options() Options {
	return Options{Address: s.plain, TLS: "none", User: testUser, Password: testPassword, Folder: testFolder}
}

func newSource(t testing.TB, o Options) *Source {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFollow(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		src := newSource(t, s.options())
		k := newTaker(t)
		s.deliver(t, 0, 10)
		stop := k.start(src)
		k.until("the beginning", k.begun)
		s.deliver(t, 10, 12)
		k.until("mails while it waits", k.has(10, 11))
		stop()
		// While nobody looks: more than a batch, and some are gone again.
		s.deliver(t, 12, 262)
		s.expunge(t, 11, 20, 261)
		stop = k.start(src)
		k.until("mails of the meantime", k.has(260))
		stop()
		// The last mail is below the cursor: Dovecot answers n:* with it.
		before := k.batches
		stop = k.start(src)
		s.deliver(t, 262, 263)
		k.until("one more", k.has(262))
		stop()
		want := slices.DeleteFunc(numbers(10, 263), func(n int) bool { return n == 20 || n == 261 })
		k.check(want)
		if k.batches > before+2 {
			t.Errorf("%d batches for one mail", k.batches-before)
		}
		if len(k.events) > 0 {
			t.Errorf("events %q", k.events)
		}
	})
}

func TestFollowEmptyFolder(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		k := newTaker(t)
		stop := k.start(newSource(t, s.options()))
		k.until("the beginning", k.begun)
		stop()
		s.deliver(t, 0, 1)
		k.start(newSource(t, s.options()))
		k.until("the first mail", k.has(0))
		k.check([]int{0})
	})
}

func TestRenumbered(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		k := newTaker(t)
		src := newSource(t, s.options())
		s.deliver(t, 0, 10) // old at the first start
		stop := k.start(src)
		k.until("the beginning", k.begun)
		s.deliver(t, 10, 15)
		k.until("mails", k.has(14))
		stop()
		s.renumber(t)
		s.deliver(t, 0, 20)
		stop = k.start(src)
		k.until("what came since", k.has(19))
		s.deliver(t, 20, 22)
		k.until("what comes", k.has(21))
		stop()
		// A second start goes on with the new numbers.
		s.deliver(t, 22, 23)
		k.start(src)
		k.until("one more", k.has(22))
		// 10 to 14 once more, as their numbers mean nothing; 0 to 9 never.
		k.check(slices.Concat(numbers(10, 15), numbers(10, 23)))
		if !k.told("numbered anew")() {
			t.Errorf("events %q say nothing of it", k.events)
		}
	})
}

func TestRenumberedLongAgo(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		const later = 5 * 24 * 60 // a mail five days after the first ones
		k := newTaker(t)
		src := newSource(t, s.options())
		stop := k.start(src)
		k.until("the beginning", k.begun)
		s.deliver(t, 0, 3)
		s.deliver(t, later, later+2)
		k.until("mails", k.has(later+1))
		stop()
		s.renumber(t)
		s.deliver(t, 0, 3)
		s.deliver(t, later, later+3)
		k.start(src)
		k.until("what came since", k.has(later+2))
		k.check(slices.Concat(numbers(0, 3), numbers(later, later+2), numbers(later, later+3)))
	})
}

func TestGoneBack(t *testing.T) {
	s := memoryServer(t)
	k := newTaker(t)
	s.deliver(t, 0, 5)
	// The store knows a folder with these UIDs and more; then a backup of the
	// server's disk came back, and UIDs are used a second time.
	k.cursor = cursor{Validity: 1, Next: 9, Newest: day0.Add(3 * time.Minute)}.String()
	k.start(newSource(t, s.options()))
	k.until("all mails", k.has(4))
	k.check(numbers(0, 5))
	if !k.told("gone back")() {
		t.Errorf("events %q say nothing of it", k.events)
	}
}

func TestTakingFails(t *testing.T) {
	s := memoryServer(t)
	k := newTaker(t)
	k.fail = 1
	k.start(newSource(t, s.options()))
	k.until("the beginning", k.begun)
	k.mu.Lock()
	k.fail = 2
	k.mu.Unlock()
	s.deliver(t, 0, 3)
	k.until("mails", k.has(2))
	k.check(numbers(0, 3))
	if !k.told("disk full")() {
		t.Errorf("events %q say nothing of it", k.events)
	}
}

func TestSecure(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		s.deliver(t, 0, 1)
		for _, c := range []struct {
			name    string
			change  func(o *Options)
			problem string // in the event, "" if it works
		}{
			{"plain", func(o *Options) {}, ""},
			{"starttls", func(o *Options) { o.TLS, o.CAFile = "starttls", s.caFile }, ""},
			{"tls", func(o *Options) { o.TLS, o.CAFile, o.Address = "tls", s.caFile, s.secure }, ""},
			{"unknown authority", func(o *Options) { o.TLS, o.Address = "tls", s.secure }, "certificate"},
			{"unknown authority, starttls", func(o *Options) { o.TLS = "starttls" }, "certificate"},
			{"wrong password", func(o *Options) { o.Password = "no" }, "log in as bench"},
			{"no such folder", func(o *Options) { o.Folder = "other" }, "open folder other"},
		} {
			t.Run(c.name, func(t *testing.T) {
				o := s.options()
				c.change(&o)
				k := newTaker(t)
				src := newSource(t, o)
				stop := k.start(src)
				if c.problem == "" {
					k.until("the beginning", k.begun)
				} else {
					k.until("an event", func() bool { return len(k.events) > 0 })
					if !k.told(c.problem)() || k.begun() {
						t.Errorf("events %q, want one with %q; cursor %q", k.events, c.problem, k.cursor)
					}
				}
				stop()
				found, err := src.Find(t.Context(), "<0@example.org>")
				if (err == nil) != (c.problem == "") || found != (c.problem == "") {
					t.Errorf("Find: %v, %v", found, err)
				}
			})
		}
	})
}

func TestFind(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		s.deliver(t, 100, 103)
		src := newSource(t, s.options())
		for id, want := range map[string]bool{
			"101@example.org": true, "<102@example.org>": true,
			"1@example.org": false, "01@example.org": false, "101@example": false, `"quoted \"@example.org`: false, "ünïcode@example.org": false,
		} {
			got, err := src.Find(t.Context(), id)
			if err != nil || got != want {
				t.Errorf("Find(%q) = %v, %v; want %v", id, got, err, want)
			}
		}
		for _, id := range []string{"", "<>", "a@b\r\nA LOGOUT"} {
			if got, err := src.Find(t.Context(), id); err == nil {
				t.Errorf("Find(%q) = %v, want an error", id, got)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := src.Find(ctx, "101@example.org"); !errors.Is(err, context.Canceled) {
			t.Errorf("Find after the end: %v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Address: "example.org", User: "u"}, "want HOST:PORT"},
		{Options{Address: ":143", User: "u"}, "want HOST:PORT"},
		{Options{Address: "h:143"}, "there must be a user"},
		{Options{Address: "h:143", User: "u\r\nx"}, "text of one line"},
		{Options{Address: "h:143", User: "u", TLS: "ssl"}, "want tls, starttls or none"},
		{Options{Address: "h:143", User: "u", CAFile: "/nonexistent"}, "certificates"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v): %v, want %q", c.o, err, c.want)
		}
	}
}

// A file of authorities adds to the system's and does not replace them.
func TestAuthorities(t *testing.T) {
	_, file := certificate(t)
	pem, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := x509.SystemCertPool()
	if err != nil {
		want = x509.NewCertPool()
	}
	system := want.Clone()
	want.AppendCertsFromPEM(pem)
	got := newSource(t, Options{Address: "h:993", User: "u", CAFile: file}).pool
	if !got.Equal(want) || got.Equal(system) {
		t.Error("the authorities are not the system's and the file's")
	}
	if p := newSource(t, Options{Address: "h:993", User: "u"}).pool; p != nil {
		t.Error("authorities of our own without a file")
	}
}

func TestName(t *testing.T) {
	for address, want := range map[string]string{
		"h.example.org:993":  "imap:u@h.example.org/INBOX",
		"h.example.org:143":  "imap:u@h.example.org/INBOX",
		"h.example.org:1143": "imap:u@h.example.org:1143/INBOX",
	} {
		if got := newSource(t, Options{Address: address, User: "u", Password: "secret"}).Name(); got != want {
			t.Errorf("Name with %s = %s, want %s", address, got, want)
		}
	}
}

func TestCursorOfAnotherSource(t *testing.T) {
	src := newSource(t, Options{Address: "h:143", User: "u"})
	for _, c := range []string{"x", "{}", `{"uidvalidity":1,"next":0}`, `{"uidvalidity":1,"next":1,"epoch":2}`, `{"uidvalidity":1,"next":1} {}`} {
		if err := src.Follow(t.Context(), c, nil, nil); err == nil || !strings.Contains(err.Error(), "none of an IMAP folder") {
			t.Errorf("Follow from %s: %v", c, err)
		}
	}
	c := cursor{Validity: 3, Next: 4, Newest: day0, Old: day0, Until: 9, Since: day0}
	if got, err := parseCursor(c.String()); err != nil || !cmp.Equal(got, c) {
		t.Errorf("%s read back: %+v, %v", c, got, err)
	}
}

func ExampleSource_Name() {
	s, err := New(Options{Address: "imap.example.org:993", User: "bench"})
	fmt.Println(s.Name(), err)
	// Output: imap:bench@imap.example.org/INBOX <nil>
}
