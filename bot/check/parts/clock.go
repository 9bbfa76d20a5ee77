package parts

import (
	"context"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/late"
)

// skew is what another machine's clock shows beyond ours.
type skew struct {
	who string
	by  time.Duration
}

// maxSkew is how far clocks may be apart: GitHub refuses an App whose tokens are
// from another minute, and mail is judged by its age.
const maxSkew = time.Minute

func (c *checker) clock(context.Context) {
	const name = "clock"
	var told []string
	c.mu.Lock()
	skews := slices.Clone(c.skews)
	c.mu.Unlock()
	for _, s := range skews {
		if s.by.Abs() > maxSkew {
			c.say(name, Wrong, "set the clock, by systemd-timesyncd or chrony", "this machine's clock differs from that of %s by %v", s.who, s.by.Round(time.Second))
			return
		}
		told = append(told, s.who)
	}
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	switch {
	case len(told) > 0:
		c.say(name, OK, "", "agrees with %s", strings.Join(told, ", "))
	case err != nil || t.Status&unix.STA_UNSYNC != 0:
		c.say(name, Note, "run systemd-timesyncd or chrony", "nothing keeps this machine's clock right, as far as the kernel knows")
	default:
		c.say(name, OK, "", "kept right, as the kernel knows")
	}
}

// heard takes note of what another machine's clock showed just now.
func (c *checker) heard(who string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skews = append(c.skews, skew{who, at.Sub(c.o.Now())})
}

// dated finds a date in the greeting of a mail server; many have one (RFC 5321
// leaves the text to the server).
var dated = late.Regexp(`(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d (?:[+-]\d{4}|GMT)`)

// greeting is a connection whose first bytes are kept. Inside TLS they say
// nothing.
type greeting struct {
	net.Conn
	c    *checker
	who  string
	seen []byte
	done bool
}

// listening makes a dial function that hears the date in a server's greeting.
func (c *checker) listening(who string) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &greeting{Conn: conn, c: c, who: who}, nil
	}
}

// Read reads, and looks at the first line.
func (g *greeting) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.done {
		g.seen = append(g.seen, p[:n]...)
		if i := strings.IndexByte(string(g.seen), '\n'); i >= 0 || len(g.seen) > 1<<10 {
			g.done = true
			if at, ok := date(string(g.seen)); ok {
				g.c.heard(g.who, at)
			}
		}
	}
	return n, err
}

func date(text string) (time.Time, bool) {
	at, err := mail.ParseDate(dated().FindString(text))
	return at, err == nil
}

// dates hears the Date of HTTP answers.
type dates struct {
	c    *checker
	who  string
	next http.RoundTripper
	done bool
}

// RoundTrip asks, and looks at the date of the first answer.
func (d *dates) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := d.next.RoundTrip(r)
	if err == nil && !d.done {
		if at, e := http.ParseTime(res.Header.Get("Date")); e == nil {
			d.done = true
			d.c.heard(d.who, at)
		}
	}
	return res, err
}
