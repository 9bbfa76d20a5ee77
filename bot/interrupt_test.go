package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"patchbench/store"
)

// An interrupt while measuring leaves no process, keeps what was measured, says
// so in the report, and ends with status 130.
func TestInterrupt(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot, dir := buildBot(t), reachableDir(t)
	repo := filepath.Join(dir, "repo")
	marker := "0.0731" // a sleep that nothing else on the machine asks for
	suite := "[[benchmark]]\nname = \"nap\"\nrun = \"sh work.sh\"\n"
	script := "sleep " + marker + "\n"
	runGit(t, dir, "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), suite)
	write(t, filepath.Join(repo, "work.sh"), script)
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")
	write(t, filepath.Join(repo, "work.sh"), script+":\n")
	runGit(t, repo, "commit", "-q", "-a", "-m", "work: one more line")

	work := filepath.Join(dir, "work")
	cmd := exec.Command(bot, "eval", "HEAD~1..HEAD", "--repo", repo, "--store", filepath.Join(dir, "bot.db"),
		"--out", filepath.Join(dir, "out"), "--rounds", "5000", "--work-dir", work)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Once something of the first round is in the record, stop.
	lines, log := bufio.NewScanner(stderr), ""
	for lines.Scan() {
		log += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "measure: ") && strings.Contains(lines.Text(), " of ") {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Fatalf("ended with %v, want status 130\n%s", err, log)
	}
	if !strings.Contains(stdout.String(), "interrupted after ") {
		t.Errorf("the report does not say that it was interrupted:\n%s", stdout.String())
	}
	var e store.Evaluation
	data, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	if e.Stopped != store.StoppedInterrupted || e.Rounds == 0 {
		t.Errorf("stopped = %q after %d rounds, want interrupted after some", e.Stopped, e.Rounds)
	}
	if samples, err := os.ReadFile(filepath.Join(dir, "out", "samples.jsonl")); err != nil || len(samples) == 0 {
		t.Errorf("samples were not kept: %v", err)
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("the work folder still holds %v (%v)", left, err)
	}
	if pids := processesWith(t, marker); len(pids) > 0 {
		t.Errorf("processes are left: %v", pids)
	}
}

// A bot that is killed outright takes its boxes with it.
func TestKilled(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot, dir := buildBot(t), reachableDir(t)
	repo := filepath.Join(dir, "repo")
	marker := "3607.0193"
	runGit(t, dir, "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), "[[benchmark]]\nname = \"nap\"\nrun = \"sh work.sh\"\n[build]\nrun = \"echo started >/build/out/mark; sleep "+marker+"\"\n")
	write(t, filepath.Join(repo, "work.sh"), ":\n")
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")
	runGit(t, repo, "commit", "-q", "--allow-empty", "-m", "nothing")
	cmd := exec.Command(bot, "eval", "HEAD~1..HEAD", "--repo", repo, "--store", filepath.Join(dir, "bot.db"), "--work-dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the build to start", func() bool { return len(processesWith(t, marker)) > 0 })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	waitFor(t, "the box to end", func() bool { return len(processesWith(t, marker)) == 0 })
}
