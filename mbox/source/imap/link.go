package imap

import (
	"errors"
	"net"
	"sync"
	"time"
)

// errTooMuch says that a server sent more than its answer can have.
var errTooMuch = errors.New("the server sends more than was asked for")

// link is the connection below TLS. It bounds how long the server may be silent
// while an answer is due, and how much it may send. The client's own deadlines
// for reading are not used: they know neither.
type link struct {
	net.Conn
	stall time.Duration

	mu    sync.Mutex
	due   bool      // an answer is
	until time.Time // when it must be there whole
	left  int64     // bytes that may still come
	err   error     // the first one of reading: the client asks again after it
}

// expect says that an answer of max bytes at most is due from now on.
func (l *link) expect(max int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.due, l.left, l.until = true, max, now.Add(60*l.stall)
	l.Conn.SetReadDeadline(now.Add(l.stall))
}

// rest says that none is due, though up to max bytes of news may come.
func (l *link) rest(max int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due, l.left = false, max
	l.Conn.SetReadDeadline(time.Time{})
}

func (l *link) Read(p []byte) (int, error) {
	l.mu.Lock()
	if l.err == nil && l.left <= 0 {
		l.err = errTooMuch
	}
	if l.err != nil {
		defer l.mu.Unlock()
		return 0, l.err
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	if l.due {
		d := time.Now().Add(l.stall)
		if d.After(l.until) {
			d = l.until
		}
		l.Conn.SetReadDeadline(d)
	}
	l.mu.Unlock()
	n, err := l.Conn.Read(p)
	l.mu.Lock()
	l.left -= int64(n)
	l.err = err
	l.mu.Unlock()
	return n, err
}

// SetReadDeadline and SetDeadline leave the deadline for reading to expect.
func (l *link) SetReadDeadline(time.Time) error { return nil }

func (l *link) SetDeadline(t time.Time) error { return l.Conn.SetWriteDeadline(t) }
