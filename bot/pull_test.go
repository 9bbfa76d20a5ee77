package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"patchbench/bot/github/githubtest"
)

// snoop is what a pull request's author would run to find a secret: it looks at
// the environment, arguments and open files of all processes and at all files that
// can be seen from where a benchmark runs. The sum says that it was run, which its
// own text does not; a pattern does not match itself.
const snoop = `seen=$(
	env
	for p in /proc/[0-9]*; do
		tr '\0' '\n' <$p/environ
		tr '\0' ' ' <$p/cmdline
		ls -l $p/fd $p/cwd
	done
	find / -xdev -type f -size -200k -not -path '/usr/*' -not -path '/proc/*' -exec grep -ahoE 'ghs[_]0+|ghp[_]0[0-9]+|PRIVATE[ ]KEY|hooks[-]own-secret' {} +
) 2>/dev/null
echo "$seen" | grep -aoE 'ghs[_]0+|ghp[_]0[0-9]+|PRIVATE[ ]KEY|hooks[-]own-secret'
[ $(echo "$seen" | wc -l) -gt 10 ] && echo looked $((40 + 2))
exit 3
`

// pullHost is the bot at a pull request, in processes of its own.
type pullHost struct {
	t             *testing.T
	hub           *githubtest.Server
	repo          *githubtest.Repo
	dir, bot, url string
	log           *logBook
}

const hookSecret = "hooks-own-secret-0123456789"

func newPullHost(t *testing.T) *pullHost {
	needTool(t, "bwrap")
	githubtest.NeedGit(t)
	h := &pullHost{t: t, hub: githubtest.New(t), dir: reachableDir(t), bot: buildBot(t), log: &logBook{t: t}}
	h.repo = h.hub.Repo("kit/kit")
	h.repo.Allow("maintainer", "write")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pemText := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(filepath.Join(h.dir, "github.pem"), pemText, 0o600); err != nil {
		t.Fatal(err)
	}
	runGit(t, h.dir, "init", "-q", "--bare", "-b", "main", "kit.git")
	write(t, filepath.Join(h.dir, "suite.toml"), "[[benchmark]]\nname = \"work\"\nrun = \"sh work.sh\"\n")
	listen := fmt.Sprintf("127.0.0.1:%d", freePorts(t, 1))
	h.url = "http://" + listen + "/"
	write(t, filepath.Join(h.dir, "bot.toml"), fmt.Sprintf(`
state = "state"

[project]
name = "kit"
repo = "kit.git"
branch = "main"
suite = "suite.toml"
budget = "20s"

[github]
app_id = %d
key_file = "github.pem"
base_url = %q
repositories = { "kit/kit" = { project = "kit" } }

[web]
url = "https://bench.example.org"
webhook_listen = %q
`, h.hub.AppID, h.hub.URL, listen))
	return h
}

// start starts the bot and waits until its webhook answers.
func (h *pullHost) start() (kill func()) {
	h.t.Helper()
	cmd := exec.Command(h.bot, "watch", "--config", filepath.Join(h.dir, "bot.toml"))
	cmd.Env = append(os.Environ(), "PATCHBENCH_GITHUB_WEBHOOK_SECRET="+hookSecret)
	r, err := cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for lines := bufio.NewScanner(r); lines.Scan(); {
			io.WriteString(h.log, lines.Text()+"\n")
		}
		cmd.Wait()
	})
	kill = func() { cmd.Process.Kill(); ended.Wait() }
	h.t.Cleanup(kill)
	waitLong(h.t, "the webhook", func() bool {
		res, err := http.Get(h.url)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusMethodNotAllowed
	}, h.log.String)
	return kill
}

func (h *pullHost) tell(kind, delivery string, payload any) {
	h.t.Helper()
	req := githubtest.Event(h.url, hookSecret, kind, delivery, payload)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		h.t.Fatalf("%s: %s", kind, res.Status)
	}
}

// comment is what the bot's comment says, which must be the only one.
func (h *pullHost) comment(p *githubtest.Pull) string {
	h.t.Helper()
	list := p.Comments(h.hub.Slug + "[bot]")
	if len(list) > 1 {
		h.t.Fatalf("%d comments of the bot, want one: %+v", len(list), list)
	}
	if len(list) == 0 {
		return ""
	}
	return list[0].Body
}

func (h *pullHost) waitFor(p *githubtest.Pull, text string) {
	h.t.Helper()
	waitLong(h.t, fmt.Sprintf("a comment that says %q", text), func() bool { return strings.Contains(h.comment(p), text) },
		func() string { return h.comment(p) + "\n" + h.log.String() })
}

// noSecrets looks for secrets, those of the App's tokens by how they begin.
func noSecrets(t *testing.T, where string, text []byte) {
	t.Helper()
	for _, s := range []string{"ghs_0", "ghp_0", "PRIVATE KEY", "hooks-own-secret"} {
		if bytes.Contains(text, []byte(s)) {
			t.Errorf("%s holds a secret (%.6s...)", where, s)
		}
	}
}

// One pull request from the webhook to the report, by a bot that is killed in the
// middle: commits fetched, measured in the sandbox, one comment, one check run for
// each run. The second commit looks for secrets, and what it prints is what the
// comment shows.
func TestPullRequest(t *testing.T) {
	h := newPullHost(t)
	count := func(n int) string { return fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do i=$((i + 1)); done\n", n) }
	git := h.repo.Git
	git.Branch("main", git.Commit(map[string]string{"work.sh": count(3000)}, "work: begin", git.Tip("main")))
	one := git.Commit(map[string]string{"work.sh": count(12000)}, "work: count further @all", git.Tip("main"))
	two := git.Commit(map[string]string{"work.sh": snoop}, "work: look around, closes #1", one)
	three := git.Commit(map[string]string{"work.sh": count(12001)}, "work: back again", two)
	p := h.repo.Open("author", "a title", three)

	kill := h.start()
	p.Label("maintainer", "bench")
	h.tell("pull_request", "one", p.Changed("labeled"))
	h.waitFor(p, "**Running.**")
	kill()
	h.start()
	h.tell("pull_request", "one", p.Changed("labeled")) // once more
	h.waitFor(p, "Measured:")
	text := h.comment(p)
	// What is said of 1/3, a long way slower, hangs on how quiet the machine is.
	for _, want := range []string{three[:12], "/kit/kit/pull/1/commits/" + two, "work fails on 2/3", "looked 42", "https://bench.example.org/evaluations/"} {
		if !strings.Contains(text, want) {
			t.Errorf("the comment does not say %q:\n%s", want, text)
		}
	}
	if checks := h.repo.Checks(three); len(checks) != 1 || checks[0].Status != "completed" {
		t.Errorf("check runs %+v, want one that is completed", checks)
	}
	noSecrets(t, "the comment", []byte(text))
	noSecrets(t, "the log", []byte(h.log.String()))
	files := 0
	err := filepath.WalkDir(filepath.Join(h.dir, "state"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		noSecrets(t, path, data)
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files of the state were read (%v)", files, err)
	}
	report := exec.Command(h.bot, "report", "--store", filepath.Join(h.dir, "state", "bot.db"), "--format", "json", evaluationOf(t, text))
	out, err := report.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("looked 42")) {
		t.Errorf("the report does not hold what the benchmark printed: %v\n%s", err, out)
	}
	noSecrets(t, "the report", out)
}

// evaluationOf is the id that a comment links to.
func evaluationOf(t *testing.T, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, "https://bench.example.org/evaluations/")
	id, _, end := strings.Cut(rest, ")")
	if !ok || !end {
		t.Fatalf("no link in\n%s", text)
	}
	return id
}
