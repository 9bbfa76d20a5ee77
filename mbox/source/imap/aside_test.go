package imap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/google/go-cmp/cmp"
)

// poisoned is a server that ends the connection when it comes to some mails, or when
// it is asked for their sizes.
type poisoned struct {
	script
	bad   func() []int
	sizes bool
	asked int // for a bad one
}

func newPoisoned(bad ...int) *poisoned {
	p := &poisoned{script: script{validity: 7, next: 31}, bad: func() []int { return bad }}
	for uid := 9; uid < 31; uid++ {
		p.mails = append(p.mails, uid)
	}
	p.answer = p.poison
	return p
}

func (p *poisoned) poison(_ int, command string) string {
	body := strings.Contains(command, "BODY.PEEK")
	if !strings.HasPrefix(command, "UID FETCH") || !body && !p.sizes {
		return ""
	}
	out := ""
	for _, uid := range p.script.asked(command) {
		if slices.Contains(p.bad(), uid) {
			p.mu.Lock()
			p.asked++
			p.mu.Unlock()
			return out + hangup
		}
		out += fetched(uid, body, testMail(uid))
	}
	return ""
}

// follow follows the server for a time, from the cursor that k has or UID 10 on.
func (p *poisoned) follow(t *testing.T, k *taker, d time.Duration) {
	if k.cursor == "" {
		k.cursor = cursor{Validity: 7, Next: 10}.String()
	}
	stop := k.start(newSource(t, Options{Address: "mail.example.org:143", TLS: "none", User: testUser, Password: testPassword, Folder: testFolder, Dial: p.dial}))
	time.Sleep(d)
	stop()
}

// but are the mails from UID 10 on without some.
func (p *poisoned) but(bad ...int) []int {
	return slices.DeleteFunc(slices.Clone(p.mails), func(uid int) bool { return uid < 10 || slices.Contains(bad, uid) })
}

// Mails over which the server ends the connection do not hold up those behind them,
// and are given when it gives them.
func TestSetAside(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes bool
		bad   []int
		want  []int // that are set aside; nil: the bad ones
	}{
		{name: "one", bad: []int{15}},
		{name: "the first", bad: []int{10}},
		{name: "several in a row, and one apart", bad: []int{12, 13, 14, 20}},
		{name: "whose sizes cannot be asked for", bad: []int{15, 16}, sizes: true},
		{name: "the last: nothing is held up by it", bad: []int{30}, want: []int{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPoisoned(c.bad...)
				p.sizes = c.sizes
				k := newTaker(t)
				p.follow(t, k, 40*time.Minute)
				if got := k.numbers; !slices.Equal(got, p.but(c.bad...)) {
					t.Fatalf("mails given %v; events %q", got, k.events)
				}
				want := c.bad
				if c.want != nil {
					want = c.want
				}
				list, err := SetAside(k.cursor)
				uids := []int{}
				for _, a := range list {
					uids = append(uids, int(a.UID))
				}
				if err != nil || !slices.Equal(uids, want) {
					t.Errorf("set aside: %v, %v, want %v; cursor %s", uids, err, want, k.cursor)
				}
				for _, uid := range want {
					if !k.told(fmt.Sprintf("mail UID %d is set aside", uid))() {
						t.Errorf("it is not told of %d: %q", uid, k.events)
					}
				}
				// Another process, and a server that was mended.
				p.bad = func() []int { return nil }
				k.numbers = nil
				p.follow(t, k, 3*time.Hour)
				if got := slices.Sorted(slices.Values(k.numbers)); !slices.Equal(got, c.bad) {
					t.Errorf("given later: %v, want %v; events %q", got, c.bad, k.events)
				}
				if list, err := SetAside(k.cursor); err != nil || len(list) > 0 {
					t.Errorf("still set aside: %v, %v", list, err)
				}
			})
		})
	}
}

// A server that gives no mail at all is waited for: nothing is set aside, until it
// gives others again.
func TestBadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoisoned()
		p.bad = func() []int { return p.mails }
		k := newTaker(t)
		p.follow(t, k, 24*time.Hour)
		if list, err := SetAside(k.cursor); err != nil || len(list) > 0 || len(k.numbers) > 0 {
			t.Errorf("set aside: %v, %v; given %v", list, err, k.numbers)
		}
		p.bad = func() []int { return nil }
		p.follow(t, k, 2*time.Hour)
		if missing := k.missing(10, 31); missing != nil {
			t.Errorf("missing: %v", missing)
		}
	})
}

// What the server never gives is asked for at growing distances, and then left out;
// what is no longer there is forgotten.
func TestAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoisoned(15, 20)
		k := newTaker(t)
		p.follow(t, k, time.Hour)
		before := p.asked
		p.mails = slices.DeleteFunc(p.mails, func(uid int) bool { return uid == 20 })
		p.follow(t, k, 8*24*time.Hour)
		if list, err := SetAside(k.cursor); err != nil || len(list) > 0 {
			t.Errorf("still set aside: %v, %v", list, err)
		}
		if n := p.asked - before; n < len(pauses)-2 || n > len(pauses) {
			t.Errorf("asked %d times in eight days", n)
		}
		for _, part := range []string{"mail UID 15, set aside on ", "mail UID 20, which was set aside, is no longer there"} {
			if !k.told(part)() {
				t.Errorf("it is not told that %q: %q", part, k.events)
			}
		}
		// Mail comes all the time.
		p.mails, p.next = append(p.mails, 31), 32
		p.follow(t, k, 2*time.Minute)
		if want := p.but(15); !slices.Equal(k.numbers, want) {
			t.Errorf("given %v, want %v", k.numbers, want)
		}
	})
}

func TestCursorWithAside(t *testing.T) {
	c := cursor{Validity: 3, Next: 9, Newest: day0}
	c.setAside([]goimap.UID{4, 7}, day0)
	got, err := parseCursor(c.String())
	if d := cmp.Diff(c, got); d != "" || err != nil {
		t.Errorf("%s read back, %v, -want +got:\n%s", c, err, d)
	}
	c.renumbered(4, 12)
	if len(c.Aside) > 0 {
		t.Errorf("UIDs of before in a folder that was numbered anew: %v", c.Aside)
	}
}
