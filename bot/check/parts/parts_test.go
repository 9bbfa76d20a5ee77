package parts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench/sandbox"
	"patchbench/config/service"
	"patchbench/mbox"
)

const suiteText = "[suite]\nname = \"kit\"\n[[benchmark]]\nname = \"true\"\nrun = \"true\"\n"

// least is a service that is well, below a folder.
func least(t *testing.T) *service.Config {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(filepath.Dir(dir), 0o711)); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	return &service.Config{
		File: filepath.Join(dir, "bot.toml"), State: state,
		Store:    service.Store{URL: service.Secret("sqlite:" + filepath.Join(state, "bot.db"))},
		Projects: []service.Project{{Name: "kit", Repo: filepath.Join(dir, "project.git"), Branch: "main", Class: "default"}},
		Policy:   service.Policy{Strangers: service.Hold},
		Worker:   service.Worker{Class: "default", Slots: 1, WorkDir: filepath.Join(state, "work"), Timeout: time.Hour},
	}
}

// filled is the same with its repository.
func filled(t *testing.T) *service.Config {
	cfg := least(t)
	repository(t, filepath.Dir(cfg.File), map[string]string{"suite.toml": suiteText})
	return cfg
}

func list(address, id string) service.List {
	return service.List{Address: address, ID: id, Project: "kit", Mode: service.DryRun}
}

// told tries some parts of a service and gives what was told, with what differs
// from run to run taken out.
func told(t *testing.T, cfg *service.Config, o Options, names string) []string {
	t.Helper()
	o.Now = now
	if o.Sandbox == nil {
		o.Sandbox = func(context.Context) (string, error) { return "a box", nil }
	}
	var out []string
	c := newChecker(cfg, o, func(p Part) {
		var text strings.Builder
		if err := p.Write(&text); err != nil {
			t.Error(err)
		}
		if strings.Contains(text.String()+fmt.Sprintf("%+v", p), password) {
			t.Errorf("the password is shown: %s", &text)
		}
		s := strings.ReplaceAll(text.String(), filepath.Dir(cfg.File), "DIR")
		for from, to := range map[string]string{`127\.0\.0\.1:\d+`: "HOST:PORT", `[\d.]+ GiB`: "N GiB", `(at|and|of) [0-9a-f]{12}\b`: "$1 COMMIT", ` +`: " "} {
			s = regexp.MustCompile(from).ReplaceAllString(s, to)
		}
		for l := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
			out = append(out, strings.TrimSpace(l))
		}
	})
	parts := map[string]func(context.Context){
		"state": c.state, "work": c.work, "store": c.store, "sandbox": c.sandbox, "project": c.projects, "remote": c.remotes, "imap": c.imap,
		"maildir": c.maildir, "inbox": c.inboxes, "smtp": c.smtp, "list": c.lists, "policy": c.policy, "github": c.github, "web": c.web, "clock": c.clock,
	}
	for name := range strings.FieldsSeq(names) {
		if err := c.try(t.Context(), parts[name]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is told (-want +got):\n%s", diff)
	}
}

func TestLocal(t *testing.T) {
	t.Run("well", func(t *testing.T) {
		cfg := filled(t)
		for range 2 { // at the second time everything is there
			expect(t, told(t, cfg, Options{}, "state work store sandbox project"),
				"ok state DIR/state, N GiB free",
				"ok work DIR/state/work, N GiB free, class default, 1 at a time",
				"ok store sqlite:DIR/state/bot.db: opened, written, read",
				"ok sandbox a box: the self-test could not break out",
				"ok project kit: DIR/project.git at COMMIT, suite kit (suite.toml) with 1 benchmarks",
			)
		}
		left, err := filepath.Glob(filepath.Join(cfg.State, ".check*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	t.Run("state is a file", func(t *testing.T) {
		cfg := least(t)
		if err := os.WriteFile(cfg.State, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got := told(t, cfg, Options{}, "state work store")
		for i, want := range []string{"wrong state mkdir DIR/state: not a directory", "as root: install -d", "wrong work mkdir DIR/state: not a directory", "as root: install -d", "wrong store "} {
			if i >= len(got) || !strings.HasPrefix(got[i], want) {
				t.Errorf("line %d of %q does not begin with %s", i, got, want)
			}
		}
	})
	t.Run("state is open", func(t *testing.T) {
		cfg := least(t)
		if err := errors.Join(os.Mkdir(cfg.State, 0o755), os.Chmod(cfg.State, 0o777)); err != nil {
			t.Fatal(err)
		}
		expect(t, told(t, cfg, Options{}, "state"), "note state DIR/state can be listed or changed by others (mode 0777)", "chmod 711 DIR/state")
	})
	t.Run("state is another user's", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		cfg := least(t)
		if err := errors.Join(os.Mkdir(cfg.State, 0o711), os.Chown(cfg.State, 64123, 64123)); err != nil {
			t.Fatal(err)
		}
		expect(t, told(t, cfg, Options{}, "state store"),
			"wrong state DIR/state belongs to #64123, and root tries it: what is made there now could not be changed by the bot",
			"run this as that user: runuser -u #64123 -- bot check --config DIR/bot.toml",
			"wrong store DIR/state/bot.db was not opened: its folder is another user's",
			"run this as the bot's user")
		if _, err := os.Stat(filepath.Join(cfg.State, "bot.db")); err == nil {
			t.Error("the store was made all the same")
		}
	})
	t.Run("state is to be made in another user's folder", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		cfg := least(t)
		if err := os.Chown(filepath.Dir(cfg.State), 64123, 64123); err != nil {
			t.Fatal(err)
		}
		got := told(t, cfg, Options{}, "state work store")
		if len(got) != 6 || !strings.HasPrefix(got[0], "wrong state DIR/state belongs to #64123") || !strings.HasPrefix(got[4], "wrong store DIR/state/bot.db was not opened") {
			t.Errorf("told %q", got)
		}
		if _, err := os.Stat(cfg.State); err == nil {
			t.Error("the folder was made all the same")
		}
	})
	t.Run("work cannot be reached", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("needs root")
		}
		cfg := least(t)
		closed := filepath.Join(filepath.Dir(cfg.State), "closed")
		if err := os.Mkdir(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		cfg.Worker.WorkDir = filepath.Join(closed, "work")
		// What lies above belongs to the test, and may be closed as well.
		got := told(t, cfg, Options{}, "work")
		if len(got) != 2 || !strings.HasPrefix(got[0], "wrong work DIR/closed/work: the code under test runs under uid 64000, which cannot pass through ") || !strings.HasPrefix(got[1], "chmod o+x ") {
			t.Errorf("told %q", got)
		}
	})
	t.Run("store is something else", func(t *testing.T) {
		cfg := least(t)
		if err := errors.Join(os.Mkdir(cfg.State, 0o711), os.WriteFile(filepath.Join(cfg.State, "bot.db"), []byte(strings.Repeat("no database\n", 100)), 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := told(t, cfg, Options{}, "store"); len(got) != 1 || !strings.HasPrefix(got[0], "wrong store ") {
			t.Errorf("told %q", got)
		}
	})
	t.Run("no database answers", func(t *testing.T) {
		cfg := least(t)
		cfg.Store.URL = service.Secret("postgres://bench:" + password + "@" + refuser(t) + "/bench?sslmode=disable")
		got := told(t, cfg, Options{}, "store")
		if len(got) == 0 || !strings.HasPrefix(got[0], "away store ") {
			t.Errorf("told %q", got)
		}
	})
	t.Run("no sandbox", func(t *testing.T) {
		o := Options{Sandbox: func(context.Context) (string, error) { return "", fmt.Errorf("%w: no bwrap", sandbox.ErrNone) }}
		expect(t, told(t, least(t), o, "sandbox"), "unsafe sandbox "+sandbox.ErrNone.Error()+": no bwrap", "nothing is evaluated without a sandbox")
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		parts := 0
		err := Check(ctx, least(t), Options{Sandbox: func(context.Context) (string, error) { return "a box", nil }}, func(Part) { parts++; cancel() })
		if !errors.Is(err, context.Canceled) || parts != 1 {
			t.Errorf("the error is %v after %d parts", err, parts)
		}
	})
}

func TestProject(t *testing.T) {
	t.Run("no repository", func(t *testing.T) {
		cfg := filled(t)
		cfg.Projects[0].Repo += ".old"
		got := told(t, cfg, Options{}, "project")
		if len(got) != 2 || !strings.HasPrefix(got[0], "wrong project kit: no repository at DIR/project.git.old") || got[1] != "make a mirror there: git clone --mirror URL DIR/project.git.old" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("no branch", func(t *testing.T) {
		cfg := filled(t)
		cfg.Projects[0].Branch = "trunk"
		l := list("a@example.org", "a.example.org")
		l.Tags = map[string]string{"next": "next", "stable": "maint"}
		cfg.Lists = []service.List{l}
		got := told(t, cfg, Options{}, "project")
		if len(got) != 4 || !strings.HasPrefix(got[0], "wrong project kit: DIR/project.git has no branch trunk") || !strings.HasPrefix(got[2], "wrong project kit: DIR/project.git has no branch maint") {
			t.Errorf("told %q", got)
		}
	})
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no suite":  {map[string]string{"README": "x"}, "wrong project kit: there is no suite: none is configured, and COMMIT has none of .patchbench.toml, bench.toml, suite.toml"},
		"bad suite": {map[string]string{"bench.toml": "[suite]\n"}, "wrong project kit: the suite bench.toml of COMMIT: bench.toml:1: the suite has no benchmark"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := filled(t)
			cfg.Projects[0].Repo = repository(t, filepath.Join(filepath.Dir(cfg.File), "other"), c.files)
			got := told(t, cfg, Options{}, "project")
			if len(got) != 2 || !strings.HasPrefix(strings.Replace(got[0], "and ", "and ", 1), c.want) {
				t.Errorf("told %q, want %s", got, c.want)
			}
		})
	}
	t.Run("a suite of its own, and another class", func(t *testing.T) {
		cfg := filled(t)
		p := &cfg.Projects[0]
		p.Suite, p.SuiteText, p.Class, p.Branch = "/etc/suite.toml", []byte(suiteText), "arm", ""
		expect(t, told(t, cfg, Options{}, "project"),
			"note project kit: DIR/project.git at COMMIT, suite kit (/etc/suite.toml): machines of class arm evaluate it, this one is default",
			`start bot worker on one with [worker] class = "arm"`)
	})
	t.Run("remotes", func(t *testing.T) {
		cfg := filled(t)
		p := &cfg.Projects[0]
		p.Remote = filepath.Join(filepath.Dir(cfg.File), "work-tree")
		got := told(t, cfg, Options{}, "remote")
		if len(got) != 1 || !regexp.MustCompile(`^ok remote kit: DIR/work-tree, [23] branches$`).MatchString(got[0]) {
			t.Errorf("told %q", got)
		}
		p.Branch = "trunk"
		expect(t, told(t, cfg, Options{}, "remote"), "wrong remote kit: DIR/work-tree has no branch trunk", "name a branch that is there")
		p.Branch, p.Remote = "main", "http://"+refuser(t)+"/kit.git"
		if got := told(t, cfg, Options{}, "remote"); len(got) != 2 || !strings.HasPrefix(got[0], "away remote kit: http://HOST:PORT/kit.git: ") {
			t.Errorf("told %q", got)
		}
		p.Repo = filepath.Join(filepath.Dir(cfg.File), "work-tree")
		if got := told(t, cfg, Options{}, "remote"); len(got) != 2 || !strings.HasPrefix(got[0], "wrong remote kit: DIR/work-tree has files checked out") {
			t.Errorf("told %q", got)
		}
	})
}

func TestMail(t *testing.T) {
	mail := func(n int, fields string) string {
		return fmt.Sprintf("From: a@example.org\nMessage-ID: <%d@example.org>\n%s\n\ntext\n", n, fields)
	}
	address := mailbox(t,
		mail(1, "List-Id: kit <kit.example.org>\nAuthentication-Results: mx.example.org; dkim=pass"),
		mail(2, "To: Plain <plain@example.org>"),
	)
	in := func(t *testing.T, ls ...service.List) *service.Config {
		cfg := least(t)
		cfg.IMAP = &service.IMAP{Address: address, TLS: service.NoTLS, User: "bench", Password: password, Folder: "lists"}
		cfg.Lists = ls
		return cfg
	}
	kit, plain, silent := list("kit@example.org", "kit.example.org"), list("plain@example.org", ""), list("silent@example.org", "silent.example.org")
	t.Run("well", func(t *testing.T) {
		cfg := in(t, kit, plain)
		cfg.Policy.AuthservID = "mx.example.org"
		expect(t, told(t, cfg, Options{}, "imap"), "ok imap imap:bench@HOST:PORT/lists: 2 mails, tells of new mail itself (IDLE)")
	})
	t.Run("nothing of a list", func(t *testing.T) {
		expect(t, told(t, in(t, kit, silent), Options{}, "imap"),
			"ok imap imap:bench@HOST:PORT/lists: 2 mails, tells of new mail itself (IDLE)",
			"note imap no mail of silent@example.org from the last 30 days is in the folder",
			"subscribe bench to the list, or check id, address and imap.folder")
	})
	t.Run("another server's results", func(t *testing.T) {
		cfg := in(t, kit)
		cfg.Policy.AuthservID = "mail.example.org"
		expect(t, told(t, cfg, Options{}, "imap"),
			"ok imap imap:bench@HOST:PORT/lists: 2 mails, tells of new mail itself (IDLE)",
			"wrong imap no mail in the folder has results by policy.authserv_id = mail.example.org: nobody could be recognised",
			"look at the Authentication-Results fields that your server writes")
	})
	for name, c := range map[string]struct {
		change func(*service.IMAP)
		want   []string
	}{
		"password": {func(m *service.IMAP) { m.Password = "wrong" }, []string{"wrong imap imap:bench@", "check user, password_file, folder and tls"}},
		"folder":   {func(m *service.IMAP) { m.Folder = "nowhere" }, []string{"wrong imap imap:bench@", "check user, password_file, folder and tls"}},
		"nobody":   {func(m *service.IMAP) { m.Address = refuser(t) }, []string{"away imap imap:bench@", "check that it runs, its address and the network"}},
		"no TLS":   {func(m *service.IMAP) { m.TLS = service.StartTLS }, []string{"wrong imap imap:bench@", "check user, password_file, folder and tls"}},
		"unwritten": {func(m *service.IMAP) { m.Password = service.Placeholder }, []string{
			"wrong imap the password is still to be written", "write it into the file that imap.password_file names"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := in(t, kit)
			c.change(cfg.IMAP)
			got := told(t, cfg, Options{}, "imap")
			if len(got) != 2 || !strings.HasPrefix(got[0], c.want[0]) || got[1] != c.want[1] {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		cfg := in(t, kit)
		cfg.IMAP.Address = listen(t).Addr().String()
		got := told(t, cfg, Options{Patience: 50 * time.Millisecond}, "imap")
		if len(got) != 2 || !strings.HasPrefix(got[0], "away imap imap:bench@") {
			t.Errorf("told %q", got)
		}
	})
	t.Run("folders", func(t *testing.T) {
		cfg := filled(t)
		dir := filepath.Dir(cfg.File)
		for _, d := range []string{"mail/cur", "mail/new", "empty"} {
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "mail/new/1"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg.Maildir = &service.Maildir{Path: filepath.Join(dir, "mail")}
		cfg.Inboxes = []service.Inbox{{Path: filepath.Join(dir, "empty")}, {Path: cfg.Projects[0].Repo}}
		got := told(t, cfg, Options{}, "maildir inbox")
		if len(got) != 4 || got[0] != "ok maildir DIR/mail: 1 mails" || got[1] != "wrong inbox DIR/empty holds none" || !strings.HasPrefix(got[3], "ok inbox DIR/project.git: newest epoch ") {
			t.Errorf("told %q", got)
		}
		cfg.Maildir.Path = filepath.Join(dir, "empty")
		if got := told(t, cfg, Options{}, "maildir"); len(got) != 2 || !strings.HasPrefix(got[0], "wrong maildir open DIR/empty/cur: no such file") {
			t.Errorf("told %q", got)
		}
	})
}

func TestSMTP(t *testing.T) {
	tests := []struct {
		name    string
		answers map[string]string
		user    string
		want    []string
	}{
		{"well", nil, "bench", []string{"ok smtp HOST:PORT takes mail from bench@example.org, logged in as bench; nothing was sent"}},
		{"nobody logs in", nil, "", []string{"ok smtp HOST:PORT takes mail from bench@example.org, without a login; nothing was sent"}},
		{"password", map[string]string{"AUTH": "535 5.7.8 who?"}, "bench", []string{"wrong smtp connect to HOST:PORT: authenticate: SMTP error 535: who?", "check user, password_file and from"}},
		{"sender", map[string]string{"MAIL": "553 5.7.1 not\x1b[2J yours"}, "bench", []string{`wrong smtp sender bench@example.org: SMTP error 553: not\x1b[2J yours`, "check user, password_file and from"}},
		{"no login offered", map[string]string{"EHLO": "250 mx.example.org"}, "bench", []string{
			"wrong smtp connect to HOST:PORT: authenticate: the server offers neither PLAIN nor LOGIN: take user out of the configuration if it needs no password", "check address and tls"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := least(t)
			cfg.SMTP = &service.SMTP{Address: mailer(t, test.answers), TLS: service.NoTLS, User: test.user, Password: password, From: mbox.Address{Email: "bench@example.org"}}
			expect(t, told(t, cfg, Options{}, "smtp"), test.want...)
		})
	}
	for name, answer := range map[string]string{"busy": "421 4.3.2 full", "later": "451 4.3.0 not now"} {
		t.Run(name, func(t *testing.T) {
			cfg := least(t)
			answers := map[string]string{"": answer}
			if name == "later" {
				answers = map[string]string{"MAIL": answer}
			}
			cfg.SMTP = &service.SMTP{Address: mailer(t, answers), TLS: service.NoTLS, From: mbox.Address{Email: "bench@example.org"}}
			if got := told(t, cfg, Options{}, "smtp"); len(got) != 2 || !strings.HasPrefix(got[0], "away smtp ") {
				t.Errorf("told %q", got)
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		cfg := least(t)
		cfg.SMTP = &service.SMTP{Address: refuser(t), TLS: service.StartTLS, From: mbox.Address{Email: "bench@example.org"}}
		if got := told(t, cfg, Options{}, "smtp"); len(got) != 2 || !strings.HasPrefix(got[0], "away smtp connect to HOST:PORT: ") {
			t.Errorf("told %q", got)
		}
	})
}

func TestLists(t *testing.T) {
	cfg := least(t)
	agreed, shy := list("a@example.org", "a.example.org"), list("b@example.org", "")
	agreed.Mode, agreed.Consent = service.ToList, "the maintainer"
	shy.Mode = service.AuthorOnly
	cfg.Lists = []service.List{agreed, shy, list("c@example.org", "c.example.org")}
	cfg.Policy = service.Policy{Strangers: service.Ignore}
	expect(t, told(t, cfg, Options{}, "list policy"),
		"ok list a@example.org: replies go to authors with a copy to the list, by consent of: the maintainer",
		"ok list b@example.org: replies go to authors alone",
		"note list b@example.org: without id a mail is the list's only by To and Cc, which a Bcc has not",
		`add id = "b.example.org", if that is what its mail has`,
		"note list c@example.org: dry-run: replies are kept, nobody gets one",
		`read them with bot outbox; mode "author-only" or "list" sends them`,
		"wrong policy nobody is trusted and strangers are ignored: no series will be evaluated",
		`name people with policy.trusted, or set strangers = "hold"`,
	)
	for _, c := range []struct {
		policy service.Policy
		want   string
	}{
		{service.Policy{Strangers: service.Hold}, "note policy nobody is trusted: each series waits for you"},
		{service.Policy{Strangers: service.Run, PerAuthorDay: 5}, "note policy whoever writes to a list gets his code run, 5 series a day"},
		{service.Policy{Strangers: service.Hold, Trusted: []string{"a@example.org"}}, "ok policy 1 trusted; strangers: hold; 0 may command"},
	} {
		cfg.Policy = c.policy
		if got := told(t, cfg, Options{}, "policy"); got[0] != c.want {
			t.Errorf("told %q, want %s", got, c.want)
		}
	}
}

func TestWeb(t *testing.T) {
	bot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer bot.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	at := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	cfg := least(t)
	cfg.Web = &service.Web{Listen: at(bot), WebhookListen: at(other)}
	got := told(t, cfg, Options{}, "web")
	if len(got) != 3 || got[0] != "ok web HOST:PORT: a bot answers there already" || !strings.HasPrefix(got[1], "wrong webhook listen tcp HOST:PORT: bind: address already in use") || got[2] != "give another port, or end what listens there" {
		t.Errorf("told %q", got)
	}
	cfg.Web = &service.Web{Listen: refuser(t), WebhookListen: "192.0.2.1:80"}
	got = told(t, cfg, Options{}, "web")
	if len(got) != 3 || got[0] != "ok web HOST:PORT is free" || !strings.HasPrefix(got[1], "wrong webhook listen tcp 192.0.2.1:80: ") {
		t.Errorf("told %q", got)
	}
	_, port, err := net.SplitHostPort(refuser(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Web = &service.Web{Listen: ":" + port}
	if got = told(t, cfg, Options{}, "web"); len(got) != 2 || got[0] != "note web :"+port+" is free, and reached from other machines as plain HTTP" {
		t.Errorf("told %q", got)
	}
}

func TestClock(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"220 mx.example.org ESMTP Sendmail 8.17; Mon, 30 Nov 2026 12:00:40 GMT": 40 * time.Second,
		"220 mx ESMTP Exim 4.96 Mon, 30 Nov 2026 14:00:00 +0100":                time.Hour,
	} {
		if at, ok := date(text + "\r\n"); !ok || at.Sub(today) != want {
			t.Errorf("%s: the date is %v, %v", text, at, ok)
		}
	}
	for _, text := range []string{"220 mx.example.org ESMTP", "* OK ready", "", "220 99 Foo 2026 12:00:00 GMT", "220 31 Feb 2026 12:00:00 GMT", "220 30 Nov 2026 25:00:00 GMT"} {
		if at, ok := date(text); ok {
			t.Errorf("%s: the date is %v", text, at)
		}
	}
	cfg := least(t)
	cfg.SMTP = &service.SMTP{Address: mailer(t, map[string]string{"": "220 mx ESMTP; Mon, 30 Nov 2026 14:00:00 +0100"}), TLS: service.NoTLS, From: mbox.Address{Email: "bench@example.org"}}
	expect(t, told(t, cfg, Options{}, "smtp clock"), "ok smtp HOST:PORT takes mail from bench@example.org, without a login; nothing was sent", "wrong clock this machine's clock differs from that of the SMTP server by 1h0m0s", "set the clock, by systemd-timesyncd or chrony")
	if got := told(t, least(t), Options{}, "clock"); len(got) == 0 || !strings.HasPrefix(got[0], "ok clock kept right") && !strings.HasPrefix(got[0], "note clock nothing keeps") {
		t.Errorf("without anybody to ask told %q", got)
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		states []State
		want   State
	}{
		{nil, OK},
		{[]State{OK, Note, OK}, Note},
		{[]State{Away, Note}, Away},
		{[]State{Wrong, Away}, Wrong},
		{[]State{Wrong, Unsafe, Away}, Unsafe},
	} {
		var all []Part
		for _, s := range c.states {
			all = append(all, Part{State: s})
		}
		if got := Worst(all); got != c.want {
			t.Errorf("the worst of %v is %s, want %s", c.states, got, c.want)
		}
	}
}
