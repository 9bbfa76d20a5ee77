package reply

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// faults are what a server does wrong. The zero value serves well.
type faults struct {
	greeting string           // said instead of the greeting, and the connection closed
	ehlo     error            // answers EHLO
	auth     error            // answers AUTH
	mail     error            // answers MAIL
	rcpt     map[string]error // answers RCPT
	text     error            // answers the text
	cut      string           // where the connection is closed: "mail", "go-ahead", "text", or "taken"
}

// copyOf is what a server has delivered.
type copyOf struct {
	to   []string
	body []byte
}

// server is go-smtp's server with faults, on the loopback.
type server struct {
	addr string

	mu       sync.Mutex
	at       func(step string) // called at connect, mail, rcpt, data, text and logout; nil: nothing
	login    bool              // offers LOGIN in place of PLAIN
	script   []faults          // of the connections to come; the last one stays
	copies   []copyOf
	sessions int
}

// serve starts a server whose connections have these faults, one after the other.
func serve(t *testing.T, conf *tls.Config, script ...faults) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: l.Addr().String(), script: script}
	v := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		f := s.begin()
		if f.ehlo != nil {
			return nil, f.ehlo
		}
		return &session{server: s, faults: f, conn: c.Conn()}, nil
	}))
	v.Domain, v.TLSConfig, v.AllowInsecureAuth, v.ErrorLog = "mx.example.org", conf, true, log.New(io.Discard, "", 0)
	go v.Serve(&greeter{l, s})
	t.Cleanup(func() { v.Close() })
	return s
}

// begin takes the faults of a connection.
func (s *server) begin() faults {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	f := faults{}
	if len(s.script) > 0 {
		f = s.script[0]
	}
	if len(s.script) > 1 {
		s.script = s.script[1:]
	}
	return f
}

// on has f called at each step.
func (s *server) on(f func(step string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = f
}

func (s *server) reached(step string) {
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	if at != nil {
		at(step)
	}
}

func (s *server) offersLogin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login
}

// all gives what was delivered, and how many sessions there were.
func (s *server) all() ([]copyOf, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.copies), s.sessions
}

func (s *server) deliver(to []string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copies = append(s.copies, copyOf{slices.Clone(to), body})
}

// got counts the copies that an address has.
func (s *server) got(address string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.copies {
		for _, to := range c.to {
			if to == address {
				n++
			}
		}
	}
	return n
}

// greeter is a listener that may greet wrongly.
type greeter struct {
	net.Listener
	s *server
}

func (g *greeter) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.s.reached("connect")
		g.s.mu.Lock()
		said := ""
		if len(g.s.script) > 0 {
			said = g.s.script[0].greeting
		}
		g.s.mu.Unlock()
		if said == "" {
			return c, nil
		}
		g.s.begin()
		io.WriteString(c, said)
		c.Close()
	}
}

type session struct {
	*server
	faults
	conn net.Conn
	to   []string
}

func (s *session) Reset()        { s.to = nil }
func (s *session) Logout() error { s.reached("logout"); return nil }

func (s *session) AuthMechanisms() []string {
	if s.offersLogin() {
		return []string{sasl.Login}
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(mech string) (sasl.Server, error) {
	check := func(user, password string) error {
		if s.auth != nil {
			return s.auth
		}
		if user != "bench" || password != "right" {
			return smtp.ErrAuthFailed
		}
		return nil
	}
	if s.offersLogin() {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
}

// loginServer is the server's part of AUTH LOGIN with the user name sent along.
type loginServer struct {
	check func(user, password string) error
	user  string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	if l.user == "" {
		l.user = string(response)
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.user, string(response))
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.reached("mail")
	if s.cut == "mail" {
		s.conn.Close()
	}
	return s.mail
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.reached("rcpt")
	if err := s.rcpt[to]; err != nil {
		return err
	}
	s.to = append(s.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	s.reached("data")
	if s.cut == "go-ahead" {
		s.conn.Close()
		return errors.New("cut")
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return err // the text was cut: it is not delivered
	}
	if s.text != nil {
		return s.text
	}
	if s.cut != "text" {
		s.deliver(s.to, body)
	}
	s.reached("text")
	if s.cut != "" {
		s.conn.Close()
	}
	return nil
}

// mailbox finds what a server has delivered to an address.
type mailbox struct {
	s       *server
	address string
	err     error // what it says to every question
}

func (m *mailbox) Find(_ context.Context, id string) (bool, error) {
	if m.err != nil {
		return false, m.err
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for _, c := range m.s.copies {
		if slices.Contains(c.to, m.address) && bytes.Contains(c.body, []byte("Message-ID: <"+strings.Trim(id, "<>")+">")) {
			return true, nil
		}
	}
	return false, nil
}

// certificate makes one for the loopback, and a file by which it is trusted.
func certificate(t *testing.T) (*tls.Config, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mx.example.org"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, file
}

func answer(code int, text string) error { return &smtp.SMTPError{Code: code, Message: text} }
