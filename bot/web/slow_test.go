package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections inside this process, whose deadlines are
// those of a test's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Who sends a byte now and then holds a connection for half a minute, also within
// a body, and a connection's beginning for five seconds.
func TestServeSlowly(t *testing.T) {
	for _, c := range []struct {
		name, text string
		within     time.Duration
	}{
		{"beginning", "", 5 * time.Second},
		{"headers", "POST / HTTP/1.1\r\nHost: x\r\nX-Long: ", 5 * time.Second},
		{"body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := &pipes{make(chan net.Conn), make(chan struct{})}
				ended := make(chan error, 1)
				go func() {
					ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
						if _, err := io.ReadAll(req.Body); err == nil {
							t.Error("a body that did not end was read to its end")
						}
					}))
				}()
				ours, theirs := net.Pipe()
				l.conns <- theirs
				begin := time.Now()
				go io.Copy(io.Discard, bufio.NewReader(ours))
				_, err := io.WriteString(ours, c.text)
				for err == nil && time.Since(begin) < time.Hour {
					time.Sleep(time.Second)
					_, err = ours.Write([]byte("x"))
				}
				if took := time.Since(begin); !errors.Is(err, io.ErrClosedPipe) || took > c.within+2*time.Second {
					t.Errorf("%v after %v, want that it is closed within %v", err, took, c.within)
				}
				ours.Close()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
