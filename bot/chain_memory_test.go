package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// submit sends a mail to the list by SMTP. cert is a certificate to trust; without
// one the connection stays plain.
func submit(t *testing.T, address, cert, from string, login bool, raw string) {
	t.Helper()
	var client *smtp.Client
	var err error
	if login && cert != "" {
		pool := x509.NewCertPool()
		text, err := os.ReadFile(cert)
		if err != nil || !pool.AppendCertsFromPEM(text) {
			t.Fatalf("certificate %s: %v", cert, err)
		}
		client, err = smtp.DialStartTLS(address, &tls.Config{RootCAs: pool, ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
	} else if client, err = smtp.Dial(address); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if login {
		user, _, _ := strings.Cut(from, "@")
		if err := client.Auth(sasl.NewPlainClient("", user, "secret")); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.SendMail(from, []string{listAddress}, strings.NewReader(strings.ReplaceAll(raw, "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
	if err := client.Quit(); err != nil {
		t.Error(err)
	}
}

// memoryChain is go-imap's server in memory, and go-smtp's with a list behind it.
func memoryChain(t *testing.T, _ string) *chain {
	user := imapmemserver.NewUser("bot", "secret")
	if err := user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	backend := imapmemserver.New()
	backend.AddUser(user)
	quiet := log.New(io.Discard, "", 0)
	imap := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return backend.NewSession(), nil, nil
		},
		Caps: goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapIdle: {}}, InsecureAuth: true, Logger: quiet,
	})
	mailer := &mailer{bot: user}
	out := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &submission{mailer: mailer}, nil }))
	out.Domain, out.AllowInsecureAuth, out.ErrorLog = "mail.test", true, quiet
	address := map[string]string{}
	for name, serve := range map[string]func(net.Listener) error{"imap": imap.Serve, "smtp": out.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address[name] = l.Addr().String()
		go serve(l)
	}
	t.Cleanup(func() { imap.Close(); out.Close() })
	host, port, err := net.SplitHostPort(address["smtp"])
	if err != nil {
		t.Fatal(err)
	}
	return &chain{
		tables: fmt.Sprintf(`
[imap]
address = %q
tls = "none"
user = "bot"
password_file = "password"

[smtp]
address = %q
tls = "none"
user = "bot"
password_file = "password"
from = "Patchbench <bot@users.test>"
`, address["imap"], address["smtp"]),
		gitFlags: []string{"--smtp-server=" + host, "--smtp-server-port=" + port, "--smtp-auth=PLAIN", "--smtp-user=dev", "--smtp-pass=secret"},
		hgConfig: []string{"smtp.host=" + host, "smtp.port=" + port, "smtp.username=dev", "smtp.password=secret"},
		post: func(t *testing.T, from string, login bool, raw string) {
			submit(t, address["smtp"], "", from, login, raw)
		},
		mailbox: func(*testing.T) [][]byte { return mailer.got() },
	}
}

// mailer is a mail server with one list and two mailboxes.
type mailer struct {
	bot *imapmemserver.User

	mu  sync.Mutex
	dev [][]byte
}

func (m *mailer) got() [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][]byte(nil), m.dev...)
}

// deliver gives a mail to one recipient, the list to its members.
func (m *mailer) deliver(to string, raw []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch to {
	case devAddress:
		m.dev = append(m.dev, raw)
	case chief:
	case listAddress:
		raw = append([]byte("List-Id: <devlist.lists.test>\r\n"), raw...)
		m.dev = append(m.dev, raw)
		_, err := m.bot.Append("INBOX", literal{bytes.NewReader(raw), int64(len(raw))}, &goimap.AppendOptions{Time: time.Now()})
		return err
	default:
		return &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
	}
	return nil
}

type literal struct {
	io.Reader
	size int64
}

func (l literal) Size() int64 { return l.size }

// submission is a session of SMTP with the mailer.
type submission struct {
	mailer *mailer
	user   string // who has logged in
	from   string
	to     []string
}

func (*submission) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *submission) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "secret" {
			return errors.New("wrong password")
		}
		s.user = user
		return nil
	}), nil
}

func (s *submission) Mail(from string, _ *smtp.MailOptions) error {
	if s.user != "" && from != s.user+"@users.test" {
		return &smtp.SMTPError{Code: 553, Message: "not your address"}
	}
	s.from = from
	return nil
}

func (s *submission) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

// Data removes results in our name, and adds them if the sender has logged in.
func (s *submission) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	var kept bytes.Buffer
	if s.user != "" {
		kept.WriteString("Authentication-Results: mail.test; dkim=pass header.d=users.test; dmarc=pass header.from=users.test\r\n")
	}
	header, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	for line := range bytes.SplitSeq(header, []byte("\r\n")) {
		if !bytes.HasPrefix(line, []byte("Authentication-Results:")) {
			kept.Write(line)
			kept.WriteString("\r\n")
		}
	}
	kept.WriteString("\r\n")
	kept.Write(body)
	for _, to := range s.to {
		if err := s.mailer.deliver(to, kept.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (s *submission) Reset()        { s.from, s.to = "", nil }
func (s *submission) Logout() error { return nil }
