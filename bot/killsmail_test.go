package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-smtp"

	"patchbench/bot/watch/traffic"
)

// daySession is a session with the day's mail server, for one mail.
type daySession struct {
	d    *day
	conn *smtp.Conn
	to   []string
	ill  string // the step at which the server is not well, "" for none
}

func (d *day) serve() (address string) {
	d.t.Helper()
	v := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		s := &daySession{d: d, conn: c}
		d.mu.Lock()
		if d.transfers++; d.rough {
			// At first one after the other: a letter that is put off waits a minute.
			s.ill = map[int]string{2: "text", 3: "later", 4: "connect"}[d.transfers]
			if d.transfers%12 == 11 {
				s.ill = []string{"data", "text", "later"}[d.transfers/12%3]
			}
		}
		d.mu.Unlock()
		return s, s.step("connect")
	}))
	v.Domain, v.ErrorLog = "mx.test", log.New(io.Discard, "", 0)
	l := (&mailWorld{t: d.t}).listen()
	go v.Serve(l)
	d.t.Cleanup(func() { v.Close() })
	return l.Addr().String()
}

// step is where the server may fail, or the bot be killed; the server goes on when
// it is dead.
func (s *daySession) step(name string) error {
	s.d.mu.Lock()
	life := s.d.life
	s.d.armed--
	hit := s.d.armed == 0
	s.d.mu.Unlock()
	if hit {
		life.kill()
	}
	if name == s.ill {
		s.conn.Conn().Close()
		return errors.New("cut")
	}
	return nil
}

func (s *daySession) Mail(string, *smtp.MailOptions) error { return s.step("mail") }
func (s *daySession) Reset()                               { s.to = nil }
func (s *daySession) Logout() error                        { return s.step("logout") }

// Rcpt takes a recipient; a server that is not well asks the second to wait.
func (s *daySession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.ill == "later" && len(s.to) > 0 {
		return &smtp.SMTPError{Code: 451, Message: "later"}
	}
	s.to = append(s.to, to)
	return s.step("rcpt")
}

// Data takes a mail; the list gives it to its members, the bot among them.
func (s *daySession) Data(r io.Reader) error {
	if err := s.step("data"); err != nil {
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		s.d.t.Error(err)
		return err
	}
	id := m.Header.Get("Message-Id")
	s.d.mu.Lock()
	s.d.replies[id] = fmt.Sprintf("To: %s, Cc: %s, In-Reply-To: %s, Subject: %s", m.Header.Get("To"), m.Header.Get("Cc"), m.Header.Get("In-Reply-To"), m.Header.Get("Subject"))
	for _, to := range s.to {
		s.d.copies[id+" "+to]++
	}
	s.d.mu.Unlock()
	if slices.Contains(s.to, dayList) {
		s.d.deliver([]byte("List-Id: <dev.lists.test>\r\n" + string(raw)))
	}
	return s.step("text")
}

// deliver puts a mail into the mailbox.
func (d *day) deliver(raw []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mails++
	name := fmt.Sprintf("%d.M%06dP%d.host", time.Now().Unix(), d.mails, os.Getpid())
	tmp := filepath.Join(d.dir, "mail/tmp", name)
	if err := os.WriteFile(tmp, raw, 0o644); err != nil {
		d.t.Error(err)
	}
	if err := os.Rename(tmp, filepath.Join(d.dir, "mail/new", name)); err != nil {
		d.t.Error(err)
	}
}

// post puts a lone patch into the mailbox.
func (d *day) post(id, tag, topic, to string) {
	d.deliver(traffic.Note{ID: id, From: "Slow <slow@trusted.test>", Subject: "[" + tag + "] " + topic,
		Body: "Why.\n---\n\n" + traffic.Diff("part0/file1.c", to)}.Raw(time.Now()))
}
