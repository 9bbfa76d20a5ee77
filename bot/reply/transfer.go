package reply

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"patchbench/bot/report/plain"
	"patchbench/config/service"
	"patchbench/store"
)

const (
	// transferLimit bounds a whole transfer: RFC 5321 (4.5.3.2.6) asks for ten
	// minutes of patience behind the text alone.
	transferLimit  = 12 * time.Minute
	commandTimeout = 2 * time.Minute
	// grace is what a transfer still gets when the program is to end.
	grace = 20 * time.Second
)

// verdict is what came of a transfer.
type verdict int

const (
	done    verdict = iota // no recipient is left without an answer
	later                  // some recipient was refused for now, or nobody was asked
	unknown                // the text was given to the server, which did not answer
)

// transfer gives a letter to the server, for those of its recipients who have
// no answer yet, and writes their answers into it.
func (s *Sender) transfer(ctx context.Context, c *service.SMTP, l *store.Letter) (verdict, string) {
	client, err := s.connect(ctx, c)
	if err != nil {
		return later, clean(fmt.Errorf("connect to %s: %w", c.Address, err))
	}
	defer client.Close()

	if err := client.Mail(l.From, &smtp.MailOptions{Size: int64(len(l.Body))}); err != nil {
		if permanent(err) {
			return refuse(l, clean(fmt.Errorf("sender %s: %w", l.From, err)))
		}
		return later, clean(fmt.Errorf("sender %s: %w", l.From, err))
	}
	var accepted []*store.Recipient
	waits := ""
	for i := range l.To {
		r := &l.To[i]
		if r.State != "" {
			continue
		}
		var answer *smtp.SMTPError
		switch err := client.Rcpt(r.Address, nil); {
		case err == nil:
			accepted = append(accepted, r)
		case permanent(err):
			r.State, r.Reply = recipientFailed, clean(err)
		case errors.As(err, &answer):
			waits = clean(fmt.Errorf("recipient %s: %w", r.Address, err))
		default:
			return later, clean(fmt.Errorf("recipient %s: %w", r.Address, err))
		}
	}
	switch {
	case len(accepted) == 0 && waits != "":
		return later, waits
	case len(accepted) == 0:
		return done, "every recipient was refused"
	}
	w, err := client.Data()
	if err == nil {
		// Until its last line is written the server has no whole text, and
		// must not deliver it.
		_, err = w.Write(l.Body)
	}
	if err != nil {
		if permanent(err) {
			return refuseSome(accepted, waits, clean(fmt.Errorf("text: %w", err)))
		}
		return later, clean(fmt.Errorf("text: %w", err))
	}
	response, err := w.CloseWithResponse()
	var answer *smtp.SMTPError
	switch {
	case permanent(err):
		return refuseSome(accepted, waits, clean(fmt.Errorf("text: %w", err)))
	case errors.As(err, &answer) && answer.Code >= 400:
		return later, clean(fmt.Errorf("text: %w", err))
	case err != nil:
		return unknown, clean(fmt.Errorf("the server did not answer whether it took the text: %w", err))
	}
	for _, r := range accepted {
		r.State, r.Reply = recipientSent, clean(errors.New(response.StatusText))
	}
	client.Quit() // whatever it says, the mail is taken
	if waits != "" {
		return later, waits
	}
	return done, ""
}

// refuse is for an answer that holds for all recipients.
func refuse(l *store.Letter, why string) (verdict, string) {
	for i := range l.To {
		if l.To[i].State == "" {
			l.To[i].State, l.To[i].Reply = recipientFailed, why
		}
	}
	return done, why
}

// refuseSome is for one that holds for those who had been accepted.
func refuseSome(accepted []*store.Recipient, waits, why string) (verdict, string) {
	for _, r := range accepted {
		r.State, r.Reply = recipientFailed, why
	}
	if waits != "" {
		return later, waits
	}
	return done, why
}

// permanent says that the server refused for good.
func permanent(err error) bool {
	var answer *smtp.SMTPError
	return errors.As(err, &answer) && answer.Code >= 500 && answer.Code < 600
}

// clean is an error as it is kept: what a server said is foreign text.
func clean(err error) string {
	return plain.Cut(plain.Clean(strings.Join(strings.Fields(err.Error()), " ")), 300)
}

// connect opens a connection that may be used for a letter: encrypted as the
// configuration says, and authenticated.
func (s *Sender) connect(ctx context.Context, c *service.SMTP) (*smtp.Client, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, err
	}
	if c.TLS == service.NoTLS && !loopback(host) && !c.AllowPlaintext {
		return nil, errors.New("mail would leave this machine in the clear: set tls, or allow_plaintext = true")
	}
	conf := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool()
		}
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, err
		}
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", c.CAFile)
		}
	}
	raw, err := s.dial(ctx, "tcp", c.Address)
	if err != nil {
		return nil, err
	}
	conn := &limited{Conn: raw, limit: time.Now().Add(transferLimit)}
	conn.stop = context.AfterFunc(ctx, func() { conn.cut(time.Now().Add(grace)) })
	client, err := open(conn, c, conf)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if c.User != "" {
		if err := authenticate(client, c, host); err != nil {
			client.Close()
			return nil, fmt.Errorf("authenticate: %w", c.Password.Kept(err, c.User))
		}
	}
	return client, nil
}

// open greets the server, inside TLS unless the configuration says otherwise.
func open(conn net.Conn, c *service.SMTP, conf *tls.Config) (*smtp.Client, error) {
	var client *smtp.Client
	switch c.TLS {
	case service.TLS:
		client = smtp.NewClient(tls.Client(conn, conf))
	case service.NoTLS:
		client = smtp.NewClient(conn)
	default:
		// A server that does not offer it is refused: somebody in between may
		// have taken the offer out.
		var err error
		if client, err = smtp.NewClientStartTLS(conn, conf); err != nil {
			return nil, err
		}
	}
	client.CommandTimeout, client.SubmissionTimeout = commandTimeout, transferLimit
	return client, client.Hello(ownName(conn))
}

// authenticate proves who we are, never in the clear to another machine.
func authenticate(client *smtp.Client, c *service.SMTP, host string) error {
	if _, encrypted := client.TLSConnectionState(); !encrypted && !loopback(host) {
		return errors.New("a password is sent inside TLS only: set tls")
	}
	switch {
	case client.SupportsAuth(sasl.Plain):
		return client.Auth(sasl.NewPlainClient("", c.User, string(c.Password)))
	case client.SupportsAuth(sasl.Login):
		return client.Auth(sasl.NewLoginClient(c.User, string(c.Password)))
	}
	return errors.New("the server offers neither PLAIN nor LOGIN: take user out of the configuration if it needs no password")
}

// ownName is how we greet (RFC 5321, 4.1.3): the host's full name, or its address.
func ownName(conn net.Conn) string {
	if name, err := os.Hostname(); err == nil && strings.Contains(name, ".") && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.") == "" {
		return name
	}
	if a, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		if four := a.IP.To4(); four != nil {
			return "[" + four.String() + "]"
		}
		return "[IPv6:" + a.IP.String() + "]"
	}
	return "localhost"
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// limited is a connection whose deadlines never lie behind a limit.
type limited struct {
	net.Conn
	stop func() bool

	mu    sync.Mutex
	limit time.Time
	asked time.Time
}

// SetDeadline sets a deadline; the zero time is the limit.
func (c *limited) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = t
	return c.set()
}

// cut brings the limit forward.
func (c *limited) cut(limit time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if limit.Before(c.limit) {
		c.limit = limit
		c.set()
	}
}

func (c *limited) set() error {
	t := c.asked
	if t.IsZero() || t.After(c.limit) {
		t = c.limit
	}
	return c.Conn.SetDeadline(t)
}

// Close closes the connection.
func (c *limited) Close() error {
	c.stop()
	return c.Conn.Close()
}
