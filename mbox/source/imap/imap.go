// Package imap follows a folder on an IMAP server (RFC 3501, RFC 9051) and looks
// for mails in it. It only reads: EXAMINE, UID SEARCH, UID FETCH with BODY.PEEK
// and IDLE; no flag is set and nothing is deleted.
//
//	s, err := imap.New(imap.Options{Address: "imap.example.org:993", User: "bench", Password: secret})
//	err = s.Follow(ctx, cursor, take, notify)
//
// Mails are named by UID and UIDVALIDITY, which make up the cursor:
//
//	{"uidvalidity":1700000001,"next":4712,"newest":"2026-03-01T10:00:00Z","old":"2026-02-01T09:00:00Z"}
//
// The first start begins at UIDNEXT. When the server has numbered the folder
// anew (another UIDVALIDITY, or UIDs that went back because a backup was
// restored), all mails since two days before the newest known one are given
// again, but never those that were there at the first start; the taker knows by
// their bytes which it has.
//
// A mail that the server does not give, or ends each connection over, does not hold
// up the others: when it was asked for three times, alone, and another one is
// given after that, it is set aside, which the cursor says too, and asked for again
// after ten minutes and at growing distances for five days.
//
// A connection never waits for ever: while an answer is due, a minute without a
// byte ends it, IDLE is renewed every 25 minutes, and a server without IDLE is
// asked every half minute. Every answer has a size that it must not pass, and a
// mail larger than mbox.MaxMail is read to feed.CutAt bytes only.
package imap

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"patchbench/mbox/source/feed"
)

// Options of New. Only Address and User are needed.
type Options struct {
	Address string // HOST:PORT
	// TLS is "tls" (the default), "starttls" or "none". Without TLS a password is
	// sent to a loopback address only, unless AllowPlaintext is set.
	TLS            string
	AllowPlaintext bool
	CAFile         string // PEM: authorities beside the system's; "" for none
	User, Password string
	Folder         string // "" means INBOX

	// Renew is how long one IDLE lasts; 0 means 25 minutes.
	Renew time.Duration
	// Poll is how often a server without IDLE is asked; 0 means 30 seconds.
	Poll time.Duration
	// Stall is how long a server may be silent when an answer is due; 0 means a
	// minute. An answer may take sixty times as long in all.
	Stall time.Duration
	// Dial connects to the server; nil means TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// Source is a folder on a server. It is a feed.Feed and a feed.Finder, and may be
// used as both at once.
type Source struct {
	o    Options
	host string
	name string
	pool *x509.CertPool // nil: the system's
}

// New checks the options; it does not connect.
func New(o Options) (*Source, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil || host == "" {
		return nil, fmt.Errorf("imap: address %q: want HOST:PORT", o.Address)
	}
	if o.User == "" || strings.ContainsAny(o.User+o.Password+o.Folder, "\r\n\x00") {
		return nil, fmt.Errorf("imap: %s: user, password and folder must be text of one line, and there must be a user", o.Address)
	}
	if o.TLS == "" {
		o.TLS = "tls"
	}
	switch o.TLS {
	case "tls", "starttls", "none":
	default:
		return nil, fmt.Errorf("imap: %s: tls is %q: want tls, starttls or none", o.Address, o.TLS)
	}
	if o.Folder == "" {
		o.Folder = "INBOX"
	}
	if o.Renew <= 0 {
		o.Renew = 25 * time.Minute
	}
	if o.Poll <= 0 {
		o.Poll = 30 * time.Second
	}
	if o.Stall <= 0 {
		o.Stall = time.Minute
	}
	if o.Dial == nil {
		dialer := &net.Dialer{Timeout: 30 * time.Second}
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}
	}
	s := &Source{o: o, host: host}
	place := host
	if port != "143" && port != "993" {
		place = o.Address
	}
	s.name = "imap:" + o.User + "@" + place + "/" + o.Folder
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("imap: certificates: %w", err)
		}
		if s.pool, err = x509.SystemCertPool(); err != nil {
			s.pool = x509.NewCertPool()
		}
		if !s.pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("imap: certificates: %s: no certificate in it (want PEM)", o.CAFile)
		}
	}
	return s, nil
}

// Name is imap:USER@HOST/FOLDER, with the port if it is neither 143 nor 993.
func (s *Source) Name() string { return s.name }

// Follow is that of feed.Feed. Whatever the server does is mended by connecting
// again; only a cursor that is none of ours ends it.
func (s *Source) Follow(ctx context.Context, cursor string, take func(context.Context, feed.Batch) error, notify func(feed.Event)) error {
	at, err := parseCursor(cursor)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	f := &follower{source: s, at: at, take: take, notify: notify, failed: map[goimap.UID]int{}, size: feed.MaxMails}
	return feed.Retry(ctx, s.name, notify, func(ctx context.Context, well func()) (bool, error) {
		f.taken = 0
		err := f.session(ctx, well)
		if errors.Is(err, errLost) {
			// Less to read again, should the line be cut again, or a mail be what
			// the server ends it for.
			f.size = max(f.size/2, 1)
			if f.taken == 0 {
				f.size = 1
			}
		}
		return f.taken > 0, clip(err)
	})
}

// Find asks the server for a mail of this Message-ID in the folder.
func (s *Source) Find(ctx context.Context, messageID string) (bool, error) {
	id := strings.Trim(strings.TrimSpace(messageID), "<>")
	if id == "" || strings.ContainsAny(id, "\r\n\x00") {
		return false, fmt.Errorf("%s: look for a mail: %q is no Message-ID", s.name, messageID)
	}
	found, err := s.find(ctx, id)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return false, fmt.Errorf("%s: look for <%s>: %w", s.name, id, clip(err))
	}
	return found, nil
}

func (s *Source) find(ctx context.Context, id string) (bool, error) {
	c, err := s.connect(ctx, nil)
	if err != nil {
		return false, err
	}
	defer c.close()
	if _, err := c.examine(); err != nil {
		return false, err
	}
	// With its brackets: the server looks for a part of the field.
	uids, err := c.search(&goimap.SearchCriteria{
		Header: []goimap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: "<" + id + ">"}},
	})
	return len(uids) > 0, err
}

// clip bounds an error's text: servers may write what they like into theirs.
func clip(err error) error {
	if err == nil || len(err.Error()) <= 500 {
		return err
	}
	return errors.New(err.Error()[:500] + " (cut)")
}
