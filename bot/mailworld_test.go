package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-smtp"

	"patchbench/bot/eval"
	"patchbench/bot/report/cases"
	"patchbench/bot/serving"
	"patchbench/store"
)

// mailWorld is a service's surroundings: a list whose mail arrives in a mailbox, a
// server that takes replies, and the service file that names both.
type mailWorld struct {
	t      *testing.T
	dir    string
	config string              // the service file
	box    *imapmemserver.User // nil: the mailbox is a Maildir
	smtp   string              // address

	mu     sync.Mutex
	copies []sentMail
	told   []string
	serial int
	// evaluate is what the stand-in for eval.Run does, by the series' subject.
	evaluate map[string]func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error)
	budgets  map[string]time.Duration // that evaluations were given, by subject
}

// sentMail is a mail that the server took.
type sentMail struct {
	to   []string
	text string
}

const listFile = `
[[list]]
address = "kit@lists.example.org"
id = "kit.lists.example.org"
project = "kit"
mode = "list"
consent = "the maintainer, 2026-11-02, in person"
[policy]
strangers = "run"
trusted = ["maint@example.org"]
commands = ["maint@example.org"]
authserv_id = "mx.example.org"
`

// newMailWorld starts the servers; the mailbox is an IMAP server in memory.
func newMailWorld(t *testing.T) *mailWorld {
	t.Helper()
	w := &mailWorld{t: t, dir: t.TempDir(), evaluate: map[string]func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error){},
		budgets: map[string]time.Duration{}}
	w.serveSMTP()
	w.box = imapmemserver.NewUser("bench", "open-sesame")
	if err := w.box.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	backend := imapmemserver.New()
	backend.AddUser(w.box)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return backend.NewSession(), nil, nil
		},
		InsecureAuth: true, Logger: log.New(io.Discard, "", 0), Caps: imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapIdle: {}},
	})
	l := w.listen()
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	w.chatter()
	write(t, filepath.Join(w.dir, "password"), "open-sesame\n")
	if err := os.Chmod(filepath.Join(w.dir, "password"), 0o600); err != nil {
		t.Fatal(err)
	}
	runGit(t, w.dir, "init", "-q", "--bare", "-b", "main", "kit.git")
	w.configure(fmt.Sprintf(`
[imap]
address = %q
tls = "none"
user = "bench"
password_file = "password"
`, l.Addr()), "kit.git", "")
	return w
}

// chatter has people talk on the list. The server in memory, unlike real ones, tells
// nothing of mail that came just before a client began to wait: with this it does.
func (w *mailWorld) chatter() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.deliver(fmt.Sprintf("From: Somebody Else <else@example.org>\nTo: kit@lists.example.org\nList-Id: <kit.lists.example.org>\nDate: %s\nMessage-ID: <talk.%d@example.org>\nSubject: a question\n\nIs it %d?\n",
					time.Now().UTC().Format(time.RFC1123Z), n, n))
			}
		}
	})
	w.t.Cleanup(func() { cancel(); done.Wait() })
}

func (w *mailWorld) listen() net.Listener {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// configure writes the service file: source is the section of its mailbox, more is
// set for its project.
func (w *mailWorld) configure(source, repo, more string) {
	w.t.Helper()
	w.config = filepath.Join(w.dir, "bot.toml")
	write(w.t, w.config, fmt.Sprintf("state = \"state\"\n[project]\nname = \"kit\"\nrepo = %q\nbranch = \"main\"\n%s\n[smtp]\naddress = %q\ntls = \"none\"\nfrom = \"Patchbench <bench@example.org>\"\n%s%s",
		repo, more, w.smtp, source, listFile))
}

// edit replaces a text of the service file.
func (w *mailWorld) edit(old, with string) {
	w.t.Helper()
	text, err := os.ReadFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		w.t.Fatalf("the service file has no %q:\n%s", old, text)
	}
	write(w.t, w.config, strings.Replace(string(text), old, with, 1))
}

func (w *mailWorld) serveSMTP() {
	w.t.Helper()
	v := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &smtpSession{w: w}, nil }))
	v.Domain, v.ErrorLog = "mx.example.org", log.New(io.Discard, "", 0)
	l := w.listen()
	w.smtp = l.Addr().String()
	go v.Serve(l)
	w.t.Cleanup(func() { v.Close() })
}

type smtpSession struct {
	w  *mailWorld
	to []string
}

func (s *smtpSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *smtpSession) Reset()                               { s.to = nil }
func (s *smtpSession) Logout() error                        { return nil }

func (s *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = append(s.to, to)
	return nil
}

// Data takes a mail; the list sends it to its members, the bot among them.
func (s *smtpSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.w.mu.Lock()
	s.w.copies = append(s.w.copies, sentMail{slices.Clone(s.to), string(b)})
	s.w.mu.Unlock()
	if slices.Contains(s.to, "kit@lists.example.org") {
		s.w.deliver("List-Id: <kit.lists.example.org>\r\n" + string(b))
	}
	return nil
}

// deliver puts a mail into the bot's mailbox.
func (w *mailWorld) deliver(text string) {
	raw := []byte(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n"))
	if w.box != nil {
		if _, err := w.box.Append("INBOX", bytes.NewReader(raw), &imap.AppendOptions{Time: time.Now()}); err != nil {
			w.t.Error(err)
		}
		return
	}
	w.mu.Lock()
	w.serial++
	name := fmt.Sprintf("%d.M%dP%d.host", time.Now().Unix(), w.serial, os.Getpid())
	w.mu.Unlock()
	tmp := filepath.Join(w.dir, "mail", "tmp", name)
	if err := os.WriteFile(tmp, raw, 0o644); err != nil {
		w.t.Error(err)
	}
	if err := os.Rename(tmp, filepath.Join(w.dir, "mail", "new", name)); err != nil {
		w.t.Error(err)
	}
}

// post posts a series of patches with a cover letter, whose Message-ID is id.
func (w *mailWorld) post(id, subject string, version int, patches ...string) {
	tag := "PATCH"
	if version > 1 {
		tag = fmt.Sprintf("PATCH v%d", version)
	}
	now := time.Now().UTC().Format(time.RFC1123Z)
	head := func(id, parent, subject string) string {
		text := fmt.Sprintf("From: Some Author <one@example.org>\nTo: kit@lists.example.org\nList-Id: <kit.lists.example.org>\nDate: %s\nMessage-ID: <%s@example.org>\nSubject: %s\n", now, id, subject)
		if parent != "" {
			text += fmt.Sprintf("In-Reply-To: <%s@example.org>\nReferences: <%s@example.org>\n", parent, parent)
		}
		return text + "\n"
	}
	w.deliver(head(id, "", fmt.Sprintf("[%s 0/%d] %s", tag, len(patches), subject)) + "About it.\n")
	for i, p := range patches {
		w.deliver(head(fmt.Sprintf("%s.%d", id, i+1), id, fmt.Sprintf("[%s %d/%d] %s, part %d", tag, i+1, len(patches), subject, i+1)) + p)
	}
}

// somePatch changes a file that no test's repository has.
func somePatch(n int) string {
	return fmt.Sprintf("Says more.\n---\n file | 2 +-\n\ndiff --git a/file b/file\nindex 257cc56..5716ca5 100644\n--- a/file\n+++ b/file\n@@ -1 +1 @@\n-text %d\n+text %d\n-- \n2.47\n", n, n+1)
}

// reply is a mail in a thread; the bot's own server vouches for its sender, or not.
func (w *mailWorld) reply(id, parent, from, text string, authentic bool) {
	results := ""
	if authentic {
		results = fmt.Sprintf("Authentication-Results: mx.example.org; dkim=pass header.d=%s\n", from[strings.Index(from, "@")+1:])
	}
	w.deliver(results + fmt.Sprintf("From: %s\nTo: kit@lists.example.org\nList-Id: <kit.lists.example.org>\nDate: %s\nMessage-ID: <%s@example.org>\nIn-Reply-To: <%s@example.org>\nReferences: <%s@example.org>\nSubject: Re: it\n\n%s\n",
		from, time.Now().UTC().Format(time.RFC1123Z), id, parent, parent, text))
}

func (w *mailWorld) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *mailWorld) happened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

func (w *mailWorld) sent() []sentMail {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.copies)
}

// run stands in for eval.Run.
func (w *mailWorld) run(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
	subject := in.Series.Subject
	verb := "begins"
	if o.Resume != "" {
		verb = "goes on"
	}
	w.tell("%s v%d %s", subject, in.Series.Version, verb)
	w.mu.Lock()
	w.budgets[subject] = o.Budget
	f := w.evaluate[fmt.Sprintf("%s v%d", subject, in.Series.Version)]
	w.mu.Unlock()
	if f != nil {
		return f(ctx, in, o)
	}
	return w.keep(in, o, store.StoppedDecided)
}

// untilEnd measures until its context ends.
func (w *mailWorld) untilEnd(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
	<-ctx.Done()
	w.tell("%s v%d is interrupted", in.Series.Subject, in.Series.Version)
	return w.keep(in, o, store.StoppedInterrupted)
}

func (w *mailWorld) keep(in eval.Input, o eval.Options, stopped string) (*store.Evaluation, error) {
	ctx := context.Background()
	e := cases.All["regression-of-13"]().Evaluation
	e.ID, e.Created, e.Seed, e.Stopped, e.Series = cmp.Or(o.Resume, o.ID), o.Now().UTC().Truncate(time.Second), o.Seed, stopped, in.Series
	if before, err := o.Store.Evaluation(ctx, e.ID); err == nil {
		e.Created = before.Created
	}
	return e, o.Store.Save(ctx, e)
}

// will sets what an evaluation does.
func (w *mailWorld) will(series string, f func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evaluate[series] = f
}

// logBook is a log that tests wait for.
type logBook struct {
	t  *testing.T
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// await waits for a line of the log.
func (l *logBook) await(pattern string) {
	l.t.Helper()
	re := regexp.MustCompile(pattern)
	waitLong(l.t, "log line "+pattern, func() bool { return re.MatchString(l.String()) }, l.String)
}

// waitLong is waitFor on a machine that has much else to do.
func waitLong(t *testing.T, what string, ok func() bool, state func() string) {
	t.Helper()
	deadline := time.After(4 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited 4 minutes for %s\n%s", what, state())
		}
	}
}

// service is a running service of this process.
type runningService struct {
	*serving.Service
	log    *logBook
	hangUp chan os.Signal
	end    func() error // SIGTERM; gives what run returned
}

// start starts the service and waits until it follows the mailbox.
func (w *mailWorld) start() *runningService {
	w.t.Helper()
	book := &logBook{t: w.t}
	hangUp := make(chan os.Signal, 1)
	s := serving.New(serving.Options{File: w.config, Whole: true, Worker: true, Env: func(string) string { return "" }, HangUp: hangUp,
		Log: slog.New(slog.NewTextHandler(book, nil)), Evaluate: w.run})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	end := sync.OnceValue(func() error { cancel(); return <-ended })
	w.t.Cleanup(func() { end() })
	book.await("msg=started part=imap")
	for _, p := range s.Status() {
		if strings.HasPrefix(p.Name, "imap:") {
			w.followed(p.Name)
		}
	}
	return &runningService{s, book, hangUp, end}
}

// followed waits until the service has a cursor for its mailbox.
func (w *mailWorld) followed(name string) {
	w.t.Helper()
	waitLong(w.t, "the service to follow its mailbox", func() bool {
		if _, err := os.Stat(filepath.Join(w.dir, "state", "bot.db")); err != nil {
			return false
		}
		st := w.record()
		defer st.Close()
		cursor, err := st.Cursor(context.Background(), name)
		return err == nil && cursor != ""
	}, func() string { return "" })
}

// record opens the service's record beside it.
func (w *mailWorld) record() *store.Store {
	w.t.Helper()
	st, err := store.Open(context.Background(), filepath.Join(w.dir, "state", "bot.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// states gives the tasks of the record: "subject v1 done".
func (w *mailWorld) states() []string {
	w.t.Helper()
	st := w.record()
	defer st.Close()
	list, err := st.Tasks(context.Background(), store.TaskFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, k := range list {
		all = append(all, fmt.Sprintf("%s v%d %s", k.Title, k.Version, k.State))
	}
	slices.Sort(all)
	return all
}

// settled waits until the tasks stand so.
func (w *mailWorld) settled(want ...string) {
	w.t.Helper()
	waitLong(w.t, fmt.Sprintf("tasks %q", want), func() bool { return slices.Equal(w.states(), want) },
		func() string { return fmt.Sprintf("they are %q", w.states()) })
}

// header reads a sent mail.
func (m sentMail) header(t *testing.T) mail.Header {
	t.Helper()
	msg, err := mail.ReadMessage(strings.NewReader(m.text))
	if err != nil {
		t.Fatal(err)
	}
	return msg.Header
}
