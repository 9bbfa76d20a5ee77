package imap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"

	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// What answers may have, in bytes. A search of a million scattered UIDs has 8 MB.
const (
	smallAnswer  = 256 << 10
	searchAnswer = 64 << 20
	fetchAnswer  = feed.MaxBytes + 2*mbox.MaxMail + 1<<20
)

// errLost says that the connection ended or that what came is not IMAP.
var errLost = errors.New("connection lost")

// conn is a connection, logged in.
type conn struct {
	*imapclient.Client
	source *Source
	link   *link
	caps   goimap.CapSet
	unhook func() bool
}

// connect dials, secures the connection and logs in. The connection is closed
// when ctx ends. news is called when the folder's number of mails changes.
func (s *Source) connect(ctx context.Context, news func()) (*conn, error) {
	raw, err := s.o.Dial(ctx, s.o.Address)
	if err != nil {
		return nil, fmt.Errorf("%w: connect: %w", errLost, err)
	}
	c := &conn{source: s, link: &link{Conn: raw, stall: s.o.Stall}}
	c.unhook = context.AfterFunc(ctx, func() { raw.Close() })
	if err := c.open(ctx, news); err != nil {
		c.close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("%w (no answer for %v)", err, s.o.Stall)
		}
		return nil, err
	}
	return c, nil
}

func (c *conn) open(ctx context.Context, news func()) error {
	o := &c.source.o
	secure := &tls.Config{ServerName: c.source.host, RootCAs: c.source.pool, MinVersion: tls.VersionTLS12, NextProtos: []string{"imap"}}
	options := &imapclient.Options{TLSConfig: secure, UnilateralDataHandler: &imapclient.UnilateralDataHandler{
		Mailbox: func(d *imapclient.UnilateralDataMailbox) {
			if d.NumMessages != nil && news != nil {
				news()
			}
		},
	}}
	c.link.expect(smallAnswer)
	switch o.TLS {
	case "tls":
		t := tls.Client(c.link, secure)
		if err := t.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("TLS with %s: %w", o.Address, err)
		}
		c.Client = imapclient.New(t, options)
	case "starttls":
		client, err := imapclient.NewStartTLS(c.link, options)
		if err != nil {
			return fmt.Errorf("STARTTLS with %s: %w", o.Address, err)
		}
		c.Client = client
	default:
		if !o.AllowPlaintext && !loopback(c.link.RemoteAddr()) {
			return fmt.Errorf("%s is not this machine: use tls or starttls, or allow plain text", c.link.RemoteAddr())
		}
		c.Client = imapclient.New(c.link, options)
	}
	if err := c.WaitGreeting(); err != nil {
		return fmt.Errorf("%w: greeting of %s: %w", errLost, o.Address, err)
	}
	var err error
	if c.caps, err = c.capabilities(); err != nil {
		return err
	}
	// A server may know who we are without asking (PREAUTH).
	if c.State() != goimap.ConnStateAuthenticated {
		if err := c.login(); err != nil {
			return fmt.Errorf("log in as %s at %s: %w", o.User, o.Address, service.Secret(o.Password).Kept(err, o.User))
		}
		c.caps, err = c.capabilities()
	}
	return err
}

// loopback says that what is sent does not leave this machine.
func loopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	default:
		return a != nil && (a.Network() == "unix" || a.Network() == "pipe")
	}
}

func (c *conn) login() error {
	c.link.expect(smallAnswer)
	o := &c.source.o
	if !c.caps.Has(goimap.CapLoginDisabled) {
		return c.Login(o.User, o.Password).Wait()
	}
	if !c.caps.Has(goimap.AuthCap(sasl.Plain)) {
		return errors.New("the server takes no password here (LOGINDISABLED): use tls or starttls")
	}
	return c.Authenticate(sasl.NewPlainClient("", o.User, o.Password))
}

// capabilities gives what the server can do. The client asks for it by itself, now
// and after the login, when it comes to it: an answer to NOOP says that it did.
// Asked later, it would wait for the end of IDLE.
func (c *conn) capabilities() (goimap.CapSet, error) {
	c.link.expect(smallAnswer)
	if err := c.Noop().Wait(); err != nil {
		return nil, c.lost("NOOP", err)
	}
	caps := c.Caps()
	if caps == nil {
		return nil, fmt.Errorf("%w: the server does not tell its capabilities", errLost)
	}
	return caps, nil
}

// lost tells an answer of the server (NO, BAD) from a connection that ended.
func (c *conn) lost(what string, err error) error {
	var said *goimap.Error
	if errors.As(err, &said) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %s: %w", errLost, what, err)
}

// examine opens the folder for reading.
func (c *conn) examine() (*goimap.SelectData, error) {
	c.link.expect(smallAnswer)
	d, err := c.Select(c.source.o.Folder, &goimap.SelectOptions{ReadOnly: true}).Wait()
	if err != nil {
		return nil, c.lost("open folder "+c.source.o.Folder, err)
	}
	if d.UIDValidity == 0 {
		return nil, fmt.Errorf("open folder %s: the server gives no UIDVALIDITY: its mails cannot be followed", c.source.o.Folder)
	}
	return d, nil
}

// next is the UID that the folder's next mail gets. Old servers do not tell.
func (c *conn) next(folder *goimap.SelectData) (goimap.UID, error) {
	if folder.UIDNext > 0 {
		return folder.UIDNext, nil
	}
	all, err := c.search(&goimap.SearchCriteria{})
	next := goimap.UID(1)
	for _, r := range all {
		next = max(next, r.Stop+1)
	}
	return next, err
}

// search gives the UIDs that meet the criteria.
func (c *conn) search(criteria *goimap.SearchCriteria) (goimap.UIDSet, error) {
	c.link.expect(searchAnswer)
	d, err := c.UIDSearch(criteria, nil).Wait()
	if err != nil {
		return nil, c.lost("search", err)
	}
	set, ok := d.All.(goimap.UIDSet)
	if d.All != nil && !ok {
		return nil, fmt.Errorf("%w: search: the server answers a search for UIDs with other numbers", errLost)
	}
	return set, nil
}

// idle waits until there is news, which it tells, until the server is to be asked
// again, or the connection or ctx ends. One IDLE lasts for d at most; a server
// without it is asked whether it is still there.
func (c *conn) idle(ctx context.Context, news <-chan struct{}, d time.Duration) (bool, error) {
	if c.caps.Has(goimap.CapIdle) || c.caps.Has(goimap.CapIMAP4rev2) {
		c.link.expect(smallAnswer)
		cmd, err := c.Idle()
		if err == nil {
			c.link.rest(smallAnswer)
			some, err := c.wait(ctx, news, d)
			c.link.expect(smallAnswer)
			if e := cmd.Close(); err == nil {
				err = e
			}
			if err == nil {
				err = cmd.Wait()
			}
			if err != nil {
				return false, c.lost("idle", err)
			}
			return some, nil
		}
		var said *goimap.Error
		if !errors.As(err, &said) {
			return false, c.lost("idle", err)
		}
		c.caps = goimap.CapSet{} // it does not after all
	}
	c.link.rest(smallAnswer)
	some, err := c.wait(ctx, news, c.source.o.Poll)
	if err != nil {
		return false, c.lost("wait", err)
	}
	c.link.expect(smallAnswer)
	if err := c.Noop().Wait(); err != nil {
		return false, c.lost("NOOP", err)
	}
	return some, nil
}

// wait says whether there is news within d.
func (c *conn) wait(ctx context.Context, news <-chan struct{}, d time.Duration) (bool, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-news:
		return true, nil
	case <-t.C:
		return false, nil
	case <-c.Closed():
		return false, errors.New("the server closed it")
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// close ends the connection without a word: a LOGOUT would have to be waited for.
func (c *conn) close() {
	c.unhook()
	c.link.Conn.Close()
	if c.Client != nil {
		c.Client.Close()
	}
}
