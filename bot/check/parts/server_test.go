package parts

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// password is what no test may find in what is told.
const password = "open-sesame"

// today is when the tests take place.
var today = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func now() time.Time { return today }

// mailbox starts an IMAP server with one folder of mails.
func mailbox(t *testing.T, mails ...string) (address string) {
	t.Helper()
	user := imapmemserver.NewUser("bench", password)
	if err := user.Create("lists", nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range mails {
		text := strings.ReplaceAll(m, "\n", "\r\n")
		if _, err := user.Append("lists", literal{strings.NewReader(text), int64(len(text))}, &goimap.AppendOptions{Time: today.AddDate(0, 0, -1)}); err != nil {
			t.Fatal(err)
		}
	}
	backend := imapmemserver.New()
	backend.AddUser(user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return backend.NewSession(), nil, nil
		},
		Caps:         goimap.CapSet{goimap.CapIMAP4rev1: {}, goimap.CapIdle: {}},
		InsecureAuth: true,
		Logger:       log.New(io.Discard, "", 0),
	})
	l := listen(t)
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return l.Addr().String()
}

// literal is a mail to append.
type literal struct {
	io.Reader
	size int64
}

func (l literal) Size() int64 { return l.size }

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// mailer starts an SMTP server that gives these answers in place of its own, by
// the command's first word; "" is the greeting. It takes no mail.
func mailer(t *testing.T, answers map[string]string) (address string) {
	t.Helper()
	l := listen(t)
	serve := func(conn net.Conn) {
		defer conn.Close()
		say := func(word, usual string) {
			if a, ok := answers[word]; ok {
				usual = a
			}
			fmt.Fprintf(conn, "%s\r\n", usual)
		}
		say("", "220 mx.example.org ESMTP")
		for in := bufio.NewScanner(conn); in.Scan(); {
			switch word := strings.ToUpper(strings.SplitN(in.Text(), " ", 2)[0]); word {
			case "EHLO":
				say(word, "250-mx.example.org\r\n250 AUTH PLAIN")
			case "AUTH":
				say(word, "235 welcome")
			case "*": // takes AUTH back
				say(word, "501 as you like")
			case "MAIL", "RSET":
				say(word, "250 well")
			case "QUIT":
				say(word, "221 bye")
				return
			default:
				t.Errorf("the bot says %q to the mail server", in.Text())
				return
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return l.Addr().String()
}

// refuser gives an address at which nobody answers.
func refuser(t *testing.T) string {
	t.Helper()
	l := listen(t)
	l.Close()
	return l.Addr().String()
}

// hub starts a GitHub that answers by path; what has no answer is not there.
func hub(t *testing.T, answers map[string]string) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", today.Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		a, ok := answers[strings.TrimPrefix(r.URL.Path, "/api/v3")]
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("the bot writes: %s %s", r.Method, r.URL)
		case r.Header.Get("Authorization") != "Bearer "+password:
			a = "401 {\"message\":\"Bad credentials\"}"
		case !ok:
			a = "404 {\"message\":\"Not Found\"}"
		}
		status := http.StatusOK
		if n, err := fmt.Sscanf(a, "%d ", &status); n == 1 && err == nil {
			a = a[4:]
		}
		w.WriteHeader(status)
		io.WriteString(w, a)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// repository makes a bare repository with the branches main and next that hold
// these files.
func repository(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	work, bare := filepath.Join(dir, "work-tree"), filepath.Join(dir, "project.git")
	repo, err := git.PlainInit(work, false)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Add(name); err != nil {
			t.Fatal(err)
		}
	}
	who := &object.Signature{Name: "A U Thor", Email: "author@example.com", When: today}
	id, err := tree.Commit("first", &git.CommitOptions{Author: who, Committer: who, AllowEmptyCommits: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"main", "next"} {
		if err := repo.Storer.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(branch), id)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := git.PlainClone(bare, true, &git.CloneOptions{URL: work, Mirror: true}); err != nil {
		t.Fatal(err)
	}
	return bare
}
