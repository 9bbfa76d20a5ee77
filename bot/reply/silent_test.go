package reply

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"patchbench/config/service"
)

// tlsServer says how a server is encrypted.
type tlsServer struct{ starttls, implicit, login bool }

func (c *tlsServer) start(t *testing.T, conf *tls.Config) *server {
	t.Helper()
	offered := conf
	if !c.starttls {
		offered = nil
	}
	s := serve(t, offered)
	s.mu.Lock()
	s.login = c.login
	s.mu.Unlock()
	if c.implicit {
		s.addr = tunnel(t, conf, s.addr)
	}
	return s
}

// tunnel puts TLS before a plain server.
func tunnel(t *testing.T, conf *tls.Config, to string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go io.Copy(out, in)
				io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String()
}

// connTo dials another address than it is told, and says that it was asked.
func connTo(asked *bool, dial func(context.Context, string, string) (net.Conn, error), address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		*asked = true
		return dial(ctx, network, address)
	}
}

// TestSilence has a server that says nothing more from some step on: the transfer
// ends all the same, soon after the program is to end, and is in doubt only once the
// whole text was given.
func TestSilence(t *testing.T) {
	steps := []struct {
		name, begins, says string
		want               verdict
	}{
		{"connect", "", "220 mx.example.org ready", later},
		{"EHLO", "EHLO ", "250 mx.example.org", later},
		{"MAIL", "MAIL ", "250 ok", later},
		{"RCPT", "RCPT ", "250 ok", later},
		{"DATA", "DATA", "354 go on", later},
		{"text", ".", "250 taken", unknown},
	}
	for i, silent := range steps {
		for _, ends := range []bool{false, true} {
			name := silent.name
			if ends {
				name += ", at the end of the program"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ours, theirs := net.Pipe()
					go func() {
						defer theirs.Close()
						lines := bufio.NewReader(theirs)
						for _, step := range steps[:i] {
							for step.begins != "" {
								line, err := lines.ReadString('\n')
								if err != nil {
									return
								}
								if strings.HasPrefix(line, step.begins) && (step.name != "text" || line == ".\r\n") {
									break
								}
							}
							io.WriteString(theirs, step.says+"\r\n")
						}
						io.Copy(io.Discard, lines) // until the other side gives up
					}()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if ends {
						time.AfterFunc(time.Second, cancel)
					}
					s := New(nil, nil, Options{})
					s.dial = func(context.Context, string, string) (net.Conn, error) { return ours, nil }
					l := letter(1, time.Time{}, author)
					start := time.Now()
					v, reason := s.transfer(ctx, &service.SMTP{Address: "127.0.0.1:25", TLS: service.NoTLS}, &l)
					if v != silent.want || !strings.Contains(reason, "timeout") {
						t.Errorf("verdict %d, %s", v, reason)
					}
					// Time is the bubble's own here, and exact.
					if took := time.Since(start); ends && took != time.Second+grace || took > transferLimit {
						t.Errorf("it ended after %v", took)
					}
				})
			})
		}
	}
}
