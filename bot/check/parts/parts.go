// Package parts tries every part of a service for real, before it is started: in
// go the configuration, out come lines such as
//
//	ok     state       /var/lib/patchbench, 41.2 GiB free
//	note   list        git@vger.kernel.org: dry-run: replies are kept, nobody gets one
//	wrong  imap        log in as bench at imap.example.org:993: no such user
//	                   check user and password_file
//
// Each part is tried as the service itself uses it, with its own code where there
// is some. Nothing is changed that the service would not change at its start: its
// folders and its store are made. No mail is sent, nothing is written to GitHub.
// What the configuration alone tells is config/service's business.
package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"patchbench/bench/sandbox"
	"patchbench/bot/report/plain"
	"patchbench/config/service"
)

// State is how a part is.
type State string

// The states, from good to bad.
const (
	OK     State = "ok"
	Note   State = "note"   // works, and there is something to know
	Away   State = "away"   // does not answer: later it may
	Wrong  State = "wrong"  // the configuration is, or what it names
	Unsafe State = "unsafe" // no sandbox: nothing will be evaluated
)

// Part is what was found of one part.
type Part struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Do    string `json:"do,omitempty"` // what to do about it; "" if nothing is
}

// Worst is the worst state of all, OK without any.
func Worst(all []Part) State {
	worst, rank := OK, map[State]int{OK: 0, Note: 1, Away: 2, Wrong: 3, Unsafe: 4}
	for _, p := range all {
		if rank[p.State] > rank[worst] {
			worst = p.State
		}
	}
	return worst
}

// Write writes a part as lines of text. Whatever a server said is made harmless.
func (p Part) Write(w io.Writer) error {
	lines := fmt.Sprintf("%-6s %-11s %s\n", p.State, p.Name, line(p.Text))
	if p.Do != "" {
		lines += strings.Repeat(" ", 19) + line(p.Do) + "\n"
	}
	_, err := io.WriteString(w, lines)
	return err
}

func line(s string) string {
	return plain.Cut(plain.Clean(strings.Join(strings.Fields(s), " ")), 600)
}

// Options of Check. The zero value tries everything.
type Options struct {
	Now func() time.Time // nil means time.Now
	// Sandbox tries the sandbox and names it; nil means that of bench/sandbox.
	Sandbox func(context.Context) (string, error)
	// Transport is the way to GitHub; nil means the usual one.
	Transport http.RoundTripper
	// Patience is how long one part may take; 0 means a minute.
	Patience time.Duration
}

// checker tries the parts of one configuration.
type checker struct {
	cfg  *service.Config
	o    Options
	tell func(Part)

	mu    sync.Mutex // connections are read elsewhere
	skews []skew
}

// Check tries all parts and tells of each when it is known. It ends early only
// with ctx.
func Check(ctx context.Context, cfg *service.Config, o Options, tell func(Part)) error {
	return newChecker(cfg, o, tell).all(ctx)
}

func newChecker(cfg *service.Config, o Options, tell func(Part)) *checker {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	if o.Sandbox == nil {
		o.Sandbox = func(ctx context.Context) (string, error) {
			s, err := sandbox.Open(ctx, sandbox.Options{UID: cfg.Worker.SandboxUID})
			if err != nil {
				return "", err
			}
			defer s.Close()
			return s.Facts().Name, nil
		}
	}
	return &checker{cfg: cfg, o: o, tell: tell}
}

func (c *checker) all(ctx context.Context) error {
	return c.try(ctx, c.state, c.work, c.store, c.sandbox, c.projects, c.remotes, c.imap, c.maildir, c.inboxes, c.smtp, c.lists, c.policy, c.github, c.web, c.clock)
}

func (c *checker) try(ctx context.Context, parts ...func(context.Context)) error {
	for _, part := range parts {
		part(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *checker) say(name string, state State, do, format string, args ...any) {
	c.tell(Part{Name: name, State: state, Do: do, Text: fmt.Sprintf(format, args...)})
}

// within gives a part its time.
func (c *checker) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.o.Patience)
}

// failed tells of an error: somebody who does not answer may do so later, all else
// is wrong.
func (c *checker) failed(name, do string, err error) {
	state := Wrong
	if silent(err) {
		state, do = Away, "check that it runs, its address and the network"
	}
	c.say(name, state, do, "%v", err)
}

// silent says that an error is the network's, or that nobody answered in time.
func silent(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return !dns.IsNotFound
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return true
	}
	for _, e := range []error{context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
