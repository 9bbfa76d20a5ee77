package imap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
)

// fault is what happens to a connection once so many bytes have come over it.
type fault struct {
	after int
	kind  string // "" nothing, "cut", "reset", "stall"; slow is beside it
	slow  bool   // bytes come one by one
}

// faulty is a connection with a fault.
type faulty struct {
	net.Conn
	fault

	mu sync.Mutex
}

func (f *faulty) state() (kind string, after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kind, f.after
}

func (f *faulty) Read(p []byte) (int, error) {
	kind, after := f.state()
	if kind != "" && after <= 0 {
		switch kind {
		case "cut":
			f.Conn.Close()
			return 0, io.EOF
		case "reset":
			f.Conn.Close()
			return 0, &net.OpError{Op: "read", Err: syscall.ECONNRESET}
		}
		return f.silent()
	}
	if f.slow {
		p = p[:1]
	}
	if kind != "" && len(p) > after {
		p = p[:after]
	}
	n, err := f.Conn.Read(p)
	if kind, after := f.state(); err == nil && kind == "stall" && after <= 0 {
		return f.silent() // since this began to read
	}
	f.mu.Lock()
	f.after -= n
	f.mu.Unlock()
	return n, err
}

// silent loses what comes until somebody's patience ends.
func (f *faulty) silent() (int, error) {
	lost := make([]byte, 4096)
	for {
		if _, err := f.Conn.Read(lost); err != nil {
			return 0, err
		}
	}
}

// pipes is a listener whose connections are pipes, for a bubble of synctest.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (l *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// bubbleServer is the in-memory server inside a bubble. faults gives the fault of
// each connection of the source, counted from 0.
func bubbleServer(t *testing.T, caps goimap.CapSet, faults func(n int) fault) (*server, Options, func() int) {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	backend, u := memoryBackend(t, imapserver.Options{Caps: caps})
	go backend.Serve(l)
	s := &server{dial: l.dial, user: u}
	var mu sync.Mutex
	n := 0
	o := Options{Address: "mail.example.org:143", TLS: "none", User: testUser, Password: testPassword, Folder: testFolder,
		Dial: func(context.Context, string) (net.Conn, error) {
			c, err := l.dial()
			mu.Lock()
			defer mu.Unlock()
			f := fault{}
			if faults != nil {
				f = faults(n)
			}
			n++
			if f.kind == "refuse" {
				c.Close()
				return nil, syscall.ECONNREFUSED
			}
			return &faulty{Conn: c, fault: f}, err
		}}
	return s, o, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// missing says which mails of from..to-1 were not given at all.
func (k *taker) missing(from, to int) []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []int
	for n := from; n < to; n++ {
		if !slices.Contains(k.numbers, n) {
			list = append(list, n)
		}
	}
	return list
}

// A session that is cut, reset or silenced at any byte loses no mail.
func TestCutAnywhere(t *testing.T) {
	for _, kind := range []string{"cut", "reset", "stall"} {
		t.Run(kind, func(t *testing.T) {
			for after := 0; after < 2200; after += 37 {
				synctest.Test(t, func(t *testing.T) {
					s, o, _ := bubbleServer(t, nil, func(n int) fault {
						if n == 1 {
							return fault{after: after, kind: kind}
						}
						return fault{}
					})
					k := newTaker(t)
					stop := k.start(newSource(t, o))
					time.Sleep(time.Minute)
					stop()
					s.deliver(t, 0, 6)
					stop = k.start(newSource(t, o))
					time.Sleep(time.Hour)
					stop()
					if diff := k.missing(0, 6); diff != nil || len(k.numbers) != 6 {
						t.Errorf("%s after %d bytes: %v are missing; given %v; events %q", kind, after, diff, k.numbers, k.events)
					}
				})
			}
		})
	}
}

// Twenty connections fail in all ways, while mails come and are deleted.
func TestFaultsWhileMailsCome(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				kinds := []string{"cut", "reset", "stall", "refuse"}
				s, o, _ := bubbleServer(t, nil, func(n int) fault {
					if n == 0 || n > 20 {
						return fault{slow: r.IntN(4) == 0}
					}
					return fault{kind: kinds[r.IntN(len(kinds))], after: r.IntN(4000), slow: r.IntN(4) == 0}
				})
				k := newTaker(t)
				k.start(newSource(t, o))
				time.Sleep(time.Minute)
				for n := 0; n < 150; n += 5 {
					s.deliver(t, n, n+5)
					time.Sleep(time.Duration(r.IntN(600)) * time.Second)
				}
				time.Sleep(6 * time.Hour)
				if list := k.missing(0, 150); list != nil {
					t.Errorf("missing %v; events %q", list, k.events)
				}
			})
		})
	}
}

// A connection that dies without a word is found out at the latest when IDLE is
// renewed.
func TestSilentlyDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first *faulty
		s, o, dials := bubbleServer(t, nil, nil)
		dial := o.Dial
		o.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := dial(ctx, a)
			if first == nil && err == nil {
				first = c.(*faulty)
			}
			return c, err
		}
		k := newTaker(t)
		k.start(newSource(t, o))
		time.Sleep(3 * time.Hour)
		if n := dials(); n != 1 {
			t.Errorf("%d connections in three quiet hours; events %q", n, k.events)
		}
		s.deliver(t, 0, 1)
		time.Sleep(time.Second)
		if list := k.missing(0, 1); list != nil {
			t.Errorf("IDLE does not tell of a mail after three hours; events %q", k.events)
		}
		first.mu.Lock()
		first.kind, first.after = "stall", 0
		first.mu.Unlock()
		s.deliver(t, 1, 2)
		time.Sleep(25*time.Minute + time.Minute + 2*time.Second)
		if list := k.missing(0, 2); list != nil {
			t.Errorf("a dead connection was not found out; events %q", k.events)
		}
	})
}

// Without IDLE the server is asked.
func TestPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, dials := bubbleServer(t, goimap.CapSet{goimap.CapIMAP4rev1: {}}, nil)
		k := newTaker(t)
		k.start(newSource(t, o))
		time.Sleep(3 * time.Hour)
		s.deliver(t, 0, 2)
		time.Sleep(31 * time.Second)
		if list := k.missing(0, 2); list != nil || dials() != 1 {
			t.Errorf("missing %v over %d connections; events %q", list, dials(), k.events)
		}
	})
}

// What lies in the folder at the first start is not fetched.
func TestFirstStartFetchesNothing(t *testing.T) {
	s := memoryServer(t)
	s.deliver(t, 0, 10_000)
	o := s.options()
	var mu sync.Mutex
	read := 0
	o.Dial = func(ctx context.Context, a string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", a)
		return counted{c, func(n int) { mu.Lock(); read += n; mu.Unlock() }}, err
	}
	k := newTaker(t)
	k.start(newSource(t, o))
	k.until("the beginning", k.begun)
	s.deliver(t, 10_000, 10_001)
	k.until("a new mail", k.has(10_000))
	k.check([]int{10_000})
	mu.Lock()
	defer mu.Unlock()
	if read > 64<<10 {
		t.Errorf("%d bytes were read", read)
	}
}

type counted struct {
	net.Conn
	count func(int)
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.count(n)
	return n, err
}

// Over a line that is cut again and again, real servers' mails all arrive.
func TestBadLine(t *testing.T) {
	eachServer(t, func(t *testing.T, s *server) {
		o := s.options()
		var mu sync.Mutex
		n := 0
		o.Dial = func(ctx context.Context, a string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", a)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			n++
			if n == 1 || n > 5 {
				return c, nil
			}
			return &faulty{Conn: c, fault: fault{kind: []string{"cut", "reset"}[n%2], after: 60_000}}, nil
		}
		k := newTaker(t)
		stop := k.start(newSource(t, o))
		k.until("the beginning", k.begun)
		stop()
		s.deliver(t, 0, 300)
		k.start(newSource(t, o))
		k.until("the last mail", k.has(299))
		if list := k.missing(0, 300); list != nil {
			t.Errorf("missing %v; events %q", list, k.events)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.events) == 0 {
			t.Error("no connection was cut")
		}
	})
}

func TestEndsWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		src := newSource(t, Options{Address: "mail.example.org:143", TLS: "none", User: testUser, Dial: func(context.Context, string) (net.Conn, error) {
			client, server := net.Pipe()
			go io.Copy(io.Discard, server)
			return client, nil
		}})
		if err := src.Follow(ctx, "", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow: %v", err)
		}
		if _, err := src.Find(ctx, "a@b"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Find: %v", err)
		}
	})
}
