package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"patchbench/store"
)

// maildirWorld is a mailWorld with an empty Maildir and a server that takes mail.
func maildirWorld(t *testing.T) *mailWorld {
	t.Helper()
	w := &mailWorld{t: t, dir: reachableDir(t)}
	w.serveSMTP()
	for _, sub := range []string{"mail/cur", "mail/new", "mail/tmp"} {
		if err := os.MkdirAll(filepath.Join(w.dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// realWorld is a mailWorld with a Maildir, and a repository whose one benchmark
// really runs.
func realWorld(t *testing.T) *mailWorld {
	t.Helper()
	w := maildirWorld(t)
	repo := filepath.Join(w.dir, "repo")
	runGit(t, w.dir, "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), "[[benchmark]]\nname = \"count\"\nrun = \"sh work.sh\"\n")
	write(t, filepath.Join(repo, "work.sh"), "i=0\nwhile [ $i -lt 3000 ]; do i=$((i + 1)); done\n")
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")
	w.configure("\n[maildir]\npath = \"mail\"\n", "repo", "budget = \"10s\"\n")
	return w
}

// realPatches are the patches of a series that makes the benchmark slower.
func (w *mailWorld) realPatches() []string {
	w.t.Helper()
	repo := filepath.Join(w.dir, "repo")
	base := strings.TrimSpace(runGit(w.t, repo, "rev-parse", "HEAD"))
	var patches []string
	for _, n := range []int{3001, 9000} {
		write(w.t, filepath.Join(repo, "work.sh"), fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do i=$((i + 1)); done\n", n))
		runGit(w.t, repo, "commit", "-q", "-a", "-m", fmt.Sprintf("count to %d", n))
		patches = append(patches, "Another bound.\n---\n work.sh | 2 +-\n\n"+runGit(w.t, repo, "diff", "HEAD~1", "HEAD"))
	}
	runGit(w.t, repo, "reset", "-q", "--hard", base)
	return patches
}

// process is a bot watch of its own.
type process struct {
	cmd   *exec.Cmd
	log   *logBook
	ended sync.WaitGroup
}

// launch starts bot watch and waits until it follows the Maildir. Of its log each
// line is also given to seen.
func (w *mailWorld) launch(bot string, seen func(p *process, line string)) *process {
	w.t.Helper()
	p := &process{cmd: exec.Command(bot, "watch", "--config", w.config), log: &logBook{t: w.t}}
	r, err := p.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	p.ended.Go(func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			io.WriteString(p.log, lines.Text()+"\n")
			if seen != nil {
				seen(p, lines.Text())
			}
		}
		p.cmd.Wait()
	})
	w.t.Cleanup(func() { p.cmd.Process.Kill(); p.ended.Wait() })
	w.followed("maildir:" + filepath.Join(w.dir, "mail"))
	return p
}

// A bot that is killed outright at any step comes to the same end when it is started
// again: the series evaluated, one mail sent. (Those while a mail is sent are in
// bot/reply.)
func TestKilledService(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot := buildBot(t)
	for name, line := range map[string]string{
		"when mail was stored":        `mail came in`,
		"when the series was decided": `series was decided`,
		"when a worker has it":        `evaluation begins`,
		"while it is measured":        "",
		"when it was evaluated":       `evaluation ended`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := realWorld(t)
			patches := w.realPatches()
			re := regexp.MustCompile(line)
			first := w.launch(bot, func(p *process, text string) {
				if line != "" && re.MatchString(text) {
					p.cmd.Process.Kill()
				}
			})
			w.post("one", "work: count", 1, patches...)
			if line == "" {
				waitLong(t, "the first samples", func() bool { return w.samples() > 20 }, first.log.String)
				first.cmd.Process.Kill()
			}
			first.ended.Wait()
			second := w.launch(bot, nil)
			w.settled("work: count v1 done")
			waitLong(t, "the answer", func() bool { return w.letterStates() == "sent" }, func() string {
				return w.letterStates() + "\n" + first.log.String() + "\n" + second.log.String()
			})
			if err := second.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			second.ended.Wait()
			if status := second.cmd.ProcessState.ExitCode(); status != 0 {
				t.Errorf("ended with status %d\n%s", status, second.log)
			}
			sent := w.sent()
			if len(sent) != 1 {
				t.Fatalf("%d mails were sent, want one", len(sent))
			}
			if h := sent[0].header(t); h.Get("In-Reply-To") != "<one@example.org>" {
				t.Errorf("the answer is not in the thread:\n%s", sent[0].text)
			}
			// Which verdict it tells hangs on how quiet the machine is.
			if text := sent[0].text; !strings.Contains(text, "work: count") || !strings.Contains(text, "Machine ") || !strings.Contains(text, "Rounds ") {
				t.Errorf("the answer is no report of what was measured:\n%s", text)
			}
		})
	}
}

// samples counts what was measured.
func (w *mailWorld) samples() (n int) {
	st := w.record()
	defer st.Close()
	ctx := context.Background()
	list, err := st.List(ctx)
	if err != nil || len(list) == 0 {
		return 0
	}
	for _, err := range st.Samples(ctx, list[0].ID) {
		if err != nil {
			return 0
		}
		n++
	}
	return n
}

// letterStates are the states of all letters, joined.
func (w *mailWorld) letterStates() string {
	st := w.record()
	defer st.Close()
	list, err := st.Letters(context.Background())
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, l := range list {
		all = append(all, string(l.State))
	}
	return strings.Join(all, ", ")
}

// One real evaluation, whose bot is told to end in the middle by SIGTERM: what was
// measured is kept and continued.
func TestTerminatedService(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot := buildBot(t)
	w := realWorld(t)
	patches := w.realPatches()
	first := w.launch(bot, nil)
	w.post("one", "work: count", 1, patches...)
	waitLong(t, "the first samples", func() bool { return w.samples() > 20 }, first.log.String)
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.ended.Wait()
	if status := first.cmd.ProcessState.ExitCode(); status != 0 {
		t.Fatalf("ended with status %d\n%s", status, first.log)
	}
	before := w.samples()
	st := w.record()
	k, err := st.TaskByKey(t.Context(), "mail:one@example.org")
	st.Close()
	if err != nil || k.State != store.Queued && k.State != store.Done {
		t.Fatalf("%+v, %v: want the task queued again", k, err)
	}
	second := w.launch(bot, nil)
	w.settled("work: count v1 done")
	waitLong(t, "the answer", func() bool { return w.letterStates() == "sent" }, second.log.String)
	if after := w.samples(); after < before {
		t.Errorf("%d samples before, %d after", before, after)
	}
	if n := len(w.sent()); n != 1 {
		t.Errorf("%d mails were sent, want one", n)
	}
	st = w.record()
	defer st.Close()
	if list, err := st.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d evaluations in the record (%v), want the one that was continued", len(list), err)
	}
}
