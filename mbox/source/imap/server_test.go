package imap

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
)

const (
	testUser     = "bench"
	testPassword = "open-sesame"
	testFolder   = "lists"
)

// server is a real server with a folder that a test fills.
type server struct {
	plain, secure string // addresses; secure is empty if there is none
	caFile        string
	dial          func() (net.Conn, error)
	user          *imapmemserver.User // nil for Dovecot
}

// testServers are the implementations that the suite runs against.
var testServers = map[string]func(testing.TB) *server{
	"memory":  memoryServer,
	"dovecot": dovecotServer,
}

func eachServer(t *testing.T, test func(t *testing.T, s *server)) {
	for name, start := range testServers {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

func memoryBackend(t testing.TB, o imapserver.Options) (*imapserver.Server, *imapmemserver.User) {
	t.Helper()
	backend := imapmemserver.New()
	u := imapmemserver.NewUser(testUser, testPassword)
	if err := u.Create(testFolder, nil); err != nil {
		t.Fatal(err)
	}
	backend.AddUser(u)
	o.NewSession = func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		return backend.NewSession(), nil, nil
	}
	o.InsecureAuth = true
	o.Logger = log.New(io.Discard, "", 0)
	if o.Caps == nil {
		o.Caps = goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapIdle: {}}
	}
	s := imapserver.New(&o)
	t.Cleanup(func() { s.Close() })
	return s, u
}

func memoryServer(t testing.TB) *server {
	cert, caFile := certificate(t)
	config := &tls.Config{Certificates: []tls.Certificate{cert}}
	s, u := memoryBackend(t, imapserver.Options{TLSConfig: config})
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(plain)
	go s.Serve(secure)
	return &server{plain: plain.Addr().String(), secure: secure.Addr().String(), caFile: caFile, user: u}
}

// certificate makes one for 127.0.0.1 and writes it, with its key, beside the test.
func certificate(t testing.TB) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	k, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: k})
	file := filepath.Join(t.TempDir(), "cert.pem")
	for name, b := range map[string][]byte{file: certPEM, file + ".key": keyPEM} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return cert, file
}

// dovecotServer starts Dovecot 2.3 on free ports of the loopback interface.
func dovecotServer(t testing.TB) *server {
	t.Helper()
	binary, err := exec.LookPath("dovecot")
	if err != nil {
		binary = "/usr/sbin/dovecot"
		if _, err := os.Stat(binary); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal("dovecot is not installed (Debian: dovecot-imapd)")
			}
			t.Skip("dovecot is not installed (Debian: dovecot-imapd)")
		}
	}
	// Paths of its sockets must be short.
	dir, err := os.MkdirTemp("", "imap")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	group, err := user.LookupGroupId(me.Gid)
	if err != nil {
		t.Fatal(err)
	}
	internal, login := me.Username, me.Username
	mailUser, mailGroup := me.Uid, me.Gid
	if me.Uid == "0" {
		// Dovecot refuses to work as root; its package makes these users.
		internal, login = "dovecot", "dovenull"
		v, err := user.Lookup("dovecot")
		if err != nil {
			t.Fatal(err)
		}
		mailUser, mailGroup = v.Uid, v.Gid
		group.Name = "dovecot"
	}
	mails := filepath.Join(dir, "mail")
	if err := os.Mkdir(mails, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mails, 0o777); err != nil {
		t.Fatal(err)
	}
	_, cert := certificate(t)
	plain, secure := freePort(t), freePort(t)
	config := strings.NewReplacer(
		"DIR", dir, "INTERNALGROUP", group.Name, "INTERNAL", internal, "LOGIN", login, "UID", mailUser, "GID", mailGroup,
		"CERT", cert, "PLAINPORT", plain, "SECUREPORT", secure, "PASSWORD", testPassword,
	).Replace(`protocols = imap
listen = 127.0.0.1
base_dir = DIR/run
state_dir = DIR/run
log_path = DIR/log
default_internal_user = INTERNAL
default_internal_group = INTERNALGROUP
default_login_user = LOGIN
default_vsz_limit = 0
ssl = yes
ssl_cert = <CERT
ssl_key = <CERT.key
disable_plaintext_auth = no
mail_location = maildir:DIR/mail/%n
mail_uid = UID
mail_gid = GID
first_valid_uid = 1
mail_max_userip_connections = 100
passdb {
  driver = static
  args = password=PASSWORD
}
userdb {
  driver = static
  args = uid=UID gid=GID home=DIR/mail/%n
}
service imap-login {
  chroot =
  inet_listener imap {
    port = PLAINPORT
  }
  inet_listener imaps {
    port = SECUREPORT
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
`)
	file := filepath.Join(dir, "dovecot.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(binary, "-F", "-c", file)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		<-ended
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("dovecot: %s%s", said.String(), b)
		}
	})
	s := &server{plain: "127.0.0.1:" + plain, secure: "127.0.0.1:" + secure, caFile: cert}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if c, err := net.Dial("tcp", s.plain); err == nil {
			c.Close()
			break
		}
		select {
		case <-ended:
			t.Fatalf("dovecot ended: %s", said.String())
		default:
		}
	}
	s.do(t, func(c *imapclient.Client) error { return c.Create(testFolder, nil).Wait() })
	return s
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// do logs in and does something to the folder.
func (s *server) do(t testing.TB, what func(c *imapclient.Client) error) {
	t.Helper()
	dial := s.dial
	if dial == nil {
		dial = func() (net.Conn, error) { return net.Dial("tcp", s.plain) }
	}
	raw, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	c := imapclient.New(raw, nil)
	defer c.Close()
	if err := c.Login(testUser, testPassword).Wait(); err != nil {
		t.Fatal(err)
	}
	if err := what(c); err != nil {
		t.Fatal(err)
	}
}

// testMail is mail number n of a test.
func testMail(n int) string {
	return fmt.Sprintf("From: A U Thor <author@example.com>\r\nMessage-ID: <%d@example.org>\r\nSubject: mail %d\r\n\r\n%s", n, n, strings.Repeat(fmt.Sprintf("line of %d\r\n", n), n%50))
}

// day0 is when the first mail of a test came; each mail comes a minute later.
var day0 = time.Date(2024, 5, 6, 10, 0, 0, 0, time.UTC)

// deliver puts mails from..to-1 into the folder.
func (s *server) deliver(t testing.TB, from, to int) {
	t.Helper()
	if s.user != nil {
		for n := from; n < to; n++ {
			o := &goimap.AppendOptions{Time: day0.Add(time.Duration(n) * time.Minute)}
			if _, err := s.user.Append(testFolder, strings.NewReader(testMail(n)), o); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	s.do(t, func(c *imapclient.Client) error {
		for n := from; n < to; n++ {
			if err := put(c, testMail(n), day0.Add(time.Duration(n)*time.Minute)); err != nil {
				return err
			}
		}
		return nil
	})
}

func put(c *imapclient.Client, text string, when time.Time) error {
	cmd := c.Append(testFolder, int64(len(text)), &goimap.AppendOptions{Time: when})
	if _, err := io.WriteString(cmd, text); err != nil {
		return err
	}
	if err := cmd.Close(); err != nil {
		return err
	}
	_, err := cmd.Wait()
	return err
}

// expunge deletes the mails with these Message-ID numbers.
func (s *server) expunge(t testing.TB, numbers ...int) {
	t.Helper()
	s.do(t, func(c *imapclient.Client) error {
		if _, err := c.Select(testFolder, nil).Wait(); err != nil {
			return err
		}
		var set goimap.UIDSet
		for _, n := range numbers {
			d, err := c.UIDSearch(&goimap.SearchCriteria{Header: []goimap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: fmt.Sprintf("<%d@example.org>", n)}}}, nil).Wait()
			if err != nil {
				return err
			}
			set.AddSet(d.All.(goimap.UIDSet))
		}
		if err := c.Store(set, &goimap.StoreFlags{Op: goimap.StoreFlagsAdd, Flags: []goimap.Flag{goimap.FlagDeleted}, Silent: true}, nil).Close(); err != nil {
			return err
		}
		return c.Expunge().Close()
	})
}

// renumber makes the folder anew, with another UIDVALIDITY and no mail.
func (s *server) renumber(t testing.TB) {
	t.Helper()
	s.do(t, func(c *imapclient.Client) error {
		if err := c.Delete(testFolder).Wait(); err != nil {
			return err
		}
		return c.Create(testFolder, nil).Wait()
	})
}
