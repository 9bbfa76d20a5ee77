package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"patchbench/mbox"
	"patchbench/store"
)

// The parts of a conversation on a list. Everybody's password is secret.
const (
	listAddress = "devlist@lists.test"
	botAddress  = "bot@users.test"
	devAddress  = "dev@users.test"
	chief       = "maintainer@users.test"
)

// chain is a mail system with a list: its members are the bot and dev. What dev
// and the maintainer submit after a login gets Authentication-Results of
// mail.test, what a stranger sends does not.
type chain struct {
	tables   string   // [imap] and [smtp] of the service file
	gitFlags []string // of git send-email, for dev
	hgConfig []string // settings of hg email, for dev
	// post sends a mail to the list: as a user who logs in, or as anybody.
	post func(t *testing.T, from string, login bool, raw string)
	// mailbox is what dev has got so far, as the raw bytes of the mails.
	mailbox func(t *testing.T) [][]byte
}

// TestChain holds a conversation on a list with the built bot watch: series by
// git send-email and hg email, a version that replaces one that is being
// measured, commands by a maintainer and by a stranger.
func TestChain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute; the bot that it builds has no race detector")
	}
	for _, tool := range []string{"git", "sh", "bwrap", "hg", "tr"} {
		needTool(t, tool)
	}
	if _, err := os.Stat(filepath.Join(strings.TrimSpace(runGit(t, ".", "--exec-path")), "git-send-email")); err != nil {
		missing(t, "git send-email (Debian: git-email): %v", err)
	}
	for name, start := range map[string]func(*testing.T, string) *chain{"memory": memoryChain, "postfix": realChain} {
		t.Run(name, func(t *testing.T) {
			dir := reachableDir(t)
			converse(t, dir, start(t, dir))
		})
	}
}

// realChain is Postfix, mlmmj and Dovecot.
func realChain(t *testing.T, dir string) *chain {
	if os.Geteuid() != 0 {
		missing(t, "root, to start Postfix and Dovecot")
	}
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	for _, tool := range []string{"postfix", "dovecot", "mlmmj-receive", "openssl"} {
		needTool(t, tool)
	}
	below := filepath.Join(dir, "chain")
	base := freePorts(t, 6)
	t.Cleanup(func() {
		if out, err := exec.Command("sh", "../deploy/chain/down.sh", below).CombinedOutput(); err != nil {
			t.Errorf("stop the chain: %v\n%s", err, out)
		}
	})
	if out, err := exec.Command("sh", "../deploy/chain/up.sh", below, fmt.Sprint(base)).CombinedOutput(); err != nil {
		t.Fatalf("start the chain: %v\n%s", err, out)
	}
	cert := filepath.Join(below, "cert.pem")
	anybody, submission, imaps := base, base+1, base+4
	return &chain{
		tables: fmt.Sprintf(`
[imap]
address = "127.0.0.1:%d"
tls = "tls"
user = "bot"
password_file = "password"
ca_file = %q

[smtp]
address = "127.0.0.1:%d"
tls = "starttls"
user = "bot"
password_file = "password"
ca_file = %q
from = "Patchbench <bot@users.test>"
`, imaps, cert, submission, cert),
		gitFlags: []string{"--smtp-server=localhost", fmt.Sprintf("--smtp-server-port=%d", submission), "--smtp-encryption=tls",
			"--smtp-user=dev", "--smtp-pass=secret", "--smtp-ssl-cert-path=" + cert},
		hgConfig: []string{"smtp.host=localhost", fmt.Sprintf("smtp.port=%d", submission), "smtp.tls=starttls",
			"smtp.username=dev", "smtp.password=secret", "web.cacerts=" + cert},
		post: func(t *testing.T, from string, login bool, raw string) {
			port := anybody
			if login {
				port = submission
			}
			submit(t, fmt.Sprintf("localhost:%d", port), cert, from, login, raw)
		},
		mailbox: func(t *testing.T) [][]byte {
			var all [][]byte
			files, err := filepath.Glob(filepath.Join(below, "mail/dev/new/*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				raw, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, raw)
			}
			return all
		},
	}
}

// freePorts finds n ports of the loopback interface that are free, one after the other.
func freePorts(t *testing.T, n int) int {
	t.Helper()
	for base := 20_000 + os.Getpid()%2_000; base < 32_000; base += n {
		free := true
		for p := base; free && p < base+n; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if free = err == nil; free {
				l.Close()
			}
		}
		if free {
			return base
		}
	}
	t.Fatalf("no %d free ports in a row", n)
	return 0
}

// tinyFiles are the project that is evaluated: what it holds in memory is known.
var tinyFiles = map[string]string{
	"fill.sh": "# hold some bytes\nx=$(head -c 3000000 /dev/zero | tr '\\0' x)\necho ${#x}\n",
	"README":  "tiny\n",
}

const tinySuite = `
[suite]
name = "tiny"

[build]
keep = ["fill.sh"]

[[benchmark]]
name = "fill"
run = "sh fill.sh"
`

// tiny makes the project and a topic of five patches on it, of which the third
// changes what a run does.
func tiny(t *testing.T, dir string, third string) (repo string) {
	t.Helper()
	repo = filepath.Join(dir, "tiny")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	runGit(t, repo, "init", "-q", "-b", "master")
	for name, text := range tinyFiles {
		write(t, filepath.Join(repo, name), text)
	}
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "tiny: begin")
	topic(t, repo, "v1", third)
	return repo
}

// topic makes a branch of five patches.
func topic(t *testing.T, repo, name, third string) {
	t.Helper()
	runGit(t, repo, "checkout", "-q", "-b", name, "master")
	for i, step := range []struct{ file, text, subject string }{
		{"README", "tiny\n\nIt holds some bytes.\n", "README: say what it does"},
		{"notes.txt", "none\n", "notes: begin"},
		{"fill.sh", third, "fill: hold more"},
		{"notes.txt", "none yet\n", "notes: more of them"},
		{"README", "tiny\n\nIt holds bytes.\n", "README: be brief"},
	} {
		write(t, filepath.Join(repo, step.file), step.text)
		runGit(t, repo, "add", ".")
		runGit(t, repo, "commit", "-q", "--author", "A Developer <"+devAddress+">", "-m", fmt.Sprintf("%s\n\nStep %d.", step.subject, i+1))
	}
	runGit(t, repo, "checkout", "-q", "master")
}

var (
	slowly = "# hold some bytes\nsleep 300\n"
	larger = strings.Replace(tinyFiles["fill.sh"], "3000000", "6000000", 1)
)

// sendGit posts a branch as dev does and gives the Message-ID of the cover letter.
func sendGit(t *testing.T, c *chain, repo, branch string, version int) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"format-patch", "-q", "--cover-letter", "--thread", "--base=master", "--from=A Developer <" + devAddress + ">", "-o", out}
	if version > 1 {
		args = append(args, fmt.Sprintf("-v%d", version))
	}
	runGit(t, repo, append(args, "master.."+branch)...)
	files, err := filepath.Glob(filepath.Join(out, "*.patch"))
	if err != nil || len(files) != 6 {
		t.Fatalf("%q, %v", files, err)
	}
	cover, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("*** SUBJECT HERE ***", "tiny: hold more", "*** BLURB HERE ***", "More is better.").Replace(string(cover))
	write(t, files[0], text)
	id := regexp.MustCompile(`(?im)^Message-ID: <(.*)>$`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("the cover letter has no Message-ID:\n%s", text)
	}
	args = append([]string{"send-email", "--from=A Developer <" + devAddress + ">", "--to=" + listAddress, "--suppress-cc=all", "--confirm=never", "--quiet"}, c.gitFlags...)
	runGit(t, repo, append(args, files...)...)
	return id[1]
}

// sendHg posts two patches to the same project as dev does who uses Mercurial.
func sendHg(t *testing.T, c *chain, dir string) {
	t.Helper()
	repo := filepath.Join(dir, "hg")
	if err := os.MkdirAll(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	hg := func(args ...string) {
		t.Helper()
		cmd := exec.Command("hg", append([]string{"--config", "extensions.patchbomb=", "--config", "ui.username=A Developer <" + devAddress + ">",
			"--config", "diff.git=true", "--config", "ui.interactive=false"}, args...)...)
		cmd.Dir, cmd.Env = repo, append(os.Environ(), "HGRCPATH=", "HGPLAIN=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("hg %q: %v\n%s", args, err, out)
		}
	}
	hg("init")
	for name, text := range tinyFiles {
		write(t, filepath.Join(repo, name), text)
	}
	hg("commit", "-q", "-A", "-m", "tiny: begin")
	write(t, filepath.Join(repo, "README"), "tiny, and in Mercurial\n")
	hg("commit", "-q", "-m", "README: name the tool")
	write(t, filepath.Join(repo, "fill.sh"), larger)
	hg("commit", "-q", "-m", "fill: hold twice as much")
	args := []string{"email", "--rev", "1:2", "--intro", "--subject", "tiny: from Mercurial", "--from", "A Developer <" + devAddress + ">", "--to", listAddress, "--cc", "", "--desc", os.DevNull}
	for _, s := range c.hgConfig {
		args = append(args, "--config", s)
	}
	hg(args...)
}

// watching is a running bot watch.
type watching struct {
	cmd   *exec.Cmd
	log   string // file
	web   string // address of its pages
	store *store.Store
}

// startWatch writes a service file and starts the bot.
func startWatch(t *testing.T, dir, repo string, c *chain) *watching {
	t.Helper()
	web := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1))
	write(t, filepath.Join(dir, "suite.toml"), tinySuite)
	if err := os.WriteFile(filepath.Join(dir, "password"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "bot.toml")
	write(t, file, fmt.Sprintf(`
state = "state"

[store]
url = "sqlite:bot.db"

[project]
name = "tiny"
repo = %q
branch = "master"
suite = "suite.toml"
budget = "2m"
%s
[[list]]
address = %q
id = "devlist.lists.test"
project = "tiny"
mode = "list"
consent = "its owner, for this test"

[policy]
trusted = [%q]
commands = [%q]
authserv_id = "mail.test"
strangers = "hold"

[web]
listen = %q
url = "http://%s"
`, repo, c.tables, listAddress, devAddress, chief, web, web))
	w := &watching{log: filepath.Join(dir, "log"), web: "http://" + web}
	log, err := os.Create(w.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	w.cmd = exec.Command(buildBot(t), "watch", "--config", file)
	w.cmd.Stdout, w.cmd.Stderr = log, log
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.cmd.ProcessState == nil {
			w.stop(t)
		}
		if t.Failed() {
			text, _ := os.ReadFile(w.log)
			t.Logf("the bot's log:\n%s", text)
		}
	})
	// The first start begins at the end of the mailbox: nobody may write before.
	w.await(t, "the bot to follow its mailbox", func() bool {
		status, text := w.page("/healthz")
		return status == http.StatusOK && strings.Contains(text, "no mail yet")
	})
	if w.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "state/bot.db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	return w
}

// await is waitFor with the patience that builds and rounds of a loaded machine
// need. It ends when the bot does.
func (w *watching) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited five minutes for %s", what)
		}
		if err := w.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("waiting for %s: the bot has ended: %v", what, err)
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			t.Fatalf("waiting for %s: the bot has ended", what)
		}
	}
}

// stop ends the bot as a service manager does; it must end well.
func (w *watching) stop(t *testing.T) {
	t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the bot, told to end: %v", err)
	}
}

func (w *watching) page(path string) (status int, text string) {
	r, err := http.Get(w.web + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err.Error()
	}
	return r.StatusCode, string(b)
}

// tasks are all of the store, the oldest first.
func (w *watching) tasks(t *testing.T) []store.Task {
	t.Helper()
	all, err := w.store.Tasks(t.Context(), store.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// stateOf is that of the task about a mail.
func (w *watching) stateOf(t *testing.T, id string) store.State {
	for _, task := range w.tasks(t) {
		if task.Key == "mail:"+id || task.Key == "run:"+id {
			return task.State
		}
	}
	return ""
}

// reply waits for the answer to a mail that came through the list.
func (w *watching) reply(t *testing.T, c *chain, id string) *mbox.Message {
	t.Helper()
	var found *mbox.Message
	w.await(t, "a reply to "+id, func() bool {
		for _, m := range replies(t, c) {
			if len(m.Lists) > 0 && slices.Contains(m.InReplyTo, id) {
				found = m
			}
		}
		return found != nil
	})
	return found
}

// replies are the bot's mails in dev's mailbox.
func replies(t *testing.T, c *chain) (all []*mbox.Message) {
	t.Helper()
	for i, raw := range c.mailbox(t) {
		m, err := mbox.ParseMessage(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), fmt.Sprint("mail ", i+1))
		if err != nil {
			t.Fatal(err)
		}
		if m.From.Email == botAddress {
			all = append(all, m)
		}
	}
	return all
}

// words is a text without its lines.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

// converse is what is said on the list, and what must come of it.
func converse(t *testing.T, dir string, c *chain) {
	repo := tiny(t, dir, slowly)
	topic(t, repo, "v2", larger)
	w := startWatch(t, dir, repo, c)

	// A second version takes the place of the first, which would run for long.
	v1 := sendGit(t, c, repo, "v1", 1)
	w.await(t, "version 1 to be evaluated", func() bool { return w.stateOf(t, v1) == store.Running })
	v2 := sendGit(t, c, repo, "v2", 2)
	w.await(t, "version 1 to be superseded", func() bool { return w.stateOf(t, v1) == store.Superseded })
	answer := w.reply(t, c, v2)
	text := words(answer.Text())
	for _, want := range []struct{ what, got, want string }{
		{"subject", answer.Subject, "Re: [PATCH v2 0/5] tiny: hold more"},
		{"references", strings.Join(answer.References, " "), v2},
		{"To", answer.Header("To"), devAddress},
		{"Cc", answer.Header("Cc"), listAddress},
		{"Auto-Submitted", answer.Header("Auto-Submitted"), "auto-replied"},
		{"text", text, "3/5 makes fill"},
		{"text", text, "more memory (rss)"},
		{"text", text, w.web + "/evaluations/"},
	} {
		if !strings.Contains(want.got, want.want) {
			t.Errorf("the reply's %s: %q, without %q", want.what, want.got, want.want)
		}
	}
	if page := regexp.MustCompile(regexp.QuoteMeta(w.web) + `(/evaluations/\S+)`).FindStringSubmatch(text); page == nil {
		t.Error("the reply names no page")
	} else if status, text := w.page(page[1]); status != 200 || !strings.Contains(text, "3/5") {
		t.Errorf("the page %s: status %d", page[1], status)
	}

	// Commands: one by a stranger, who claims to be authenticated, one by the maintainer.
	command := func(id string) string {
		return fmt.Sprintf("To: %s\nSubject: Re: [PATCH v2 0/5] tiny: hold more\nMessage-ID: <%s>\nIn-Reply-To: <%s>\nReferences: <%s>\nDate: %s\n\nbench: run fill\n",
			listAddress, id, v2, v2, time.Now().Format(time.RFC1123Z))
	}
	forged := "Authentication-Results: mail.test; dkim=pass header.d=users.test; dmarc=pass header.from=users.test\n"
	c.post(t, "stranger@users.test", false, "From: stranger@users.test\n"+forged+command("a@stranger.test"))
	c.post(t, chief, false, "From: "+chief+"\n"+forged+command("b@stranger.test"))
	c.post(t, chief, true, "From: "+chief+"\n"+command("c@maintainer.test"))
	w.reply(t, c, "c@maintainer.test")
	for _, id := range []string{"a@stranger.test", "b@stranger.test"} {
		if state := w.stateOf(t, id); state != "" {
			t.Errorf("the command %s by somebody unknown made a task, which is %s", id, state)
		}
	}

	// Patches from Mercurial.
	sendHg(t, c, dir)
	var hg string
	w.await(t, "the series from Mercurial", func() bool {
		for _, task := range w.tasks(t) {
			if strings.Contains(task.Title, "from Mercurial") {
				hg = task.Ref
			}
		}
		return hg != ""
	})
	if answer := w.reply(t, c, hg); !strings.Contains(answer.Text(), "2/2") {
		t.Errorf("the reply to the series from Mercurial does not name its patch 2/2:\n%s", answer.Text())
	}

	w.stop(t)
	// Each was answered once, to dev and through the list; nobody else was.
	got := map[string]int{}
	for _, m := range replies(t, c) {
		if len(m.Lists) > 0 {
			got[strings.Join(m.InReplyTo, " ")]++
		}
	}
	if want := map[string]int{v2: 1, "c@maintainer.test": 1, hg: 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("replies by what they answer: %v, want %v", got, want)
	}
	log, err := os.ReadFile(w.log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte("secret")) {
		t.Error("the password stands in the log")
	}
}
