package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"patchbench/store"
)

// An interrupt while measuring leaves no process, keeps what was measured, says
// so in the report, and ends with status 130.
func TestInterrupt(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot, dir := buildBot(t), reachableDir(t)
	marker := "0.0731" // a sleep that nothing else on the machine asks for
	repo := napRepo(t, dir, marker)

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

// napRepo makes a repository in dir whose one benchmark sleeps for marker, and
// whose last commit can be measured.
func napRepo(t *testing.T, dir, marker string) string {
	t.Helper()
	repo := filepath.Join(dir, "repo")
	suite := "[[benchmark]]\nname = \"nap\"\nrun = \"sh work.sh\"\n"
	script := "sleep " + marker + "\n"
	runGit(t, dir, "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), suite)
	write(t, filepath.Join(repo, "work.sh"), script)
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")
	write(t, filepath.Join(repo, "work.sh"), script+":\n")
	runGit(t, repo, "commit", "-q", "-a", "-m", "work: one more line")
	return repo
}

// A terminal that is closed while measuring ends the evaluation as Ctrl-C does:
// by its controlling terminal's SIGHUP, with no one left to read the output.
// Under nohup it goes on.
func TestHangUp(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot := buildBot(t)
	for _, c := range []struct {
		name    string
		pipes   bool // standard output and error are read by a program
		ignored bool
	}{
		{"terminal", false, false},
		{"programs that read the output are gone too", true, false},
		{"nohup", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := reachableDir(t)
			marker := "0.0737"
			repo, work := napRepo(t, dir, marker), filepath.Join(dir, "work")
			args := []string{bot, "eval", "HEAD~1..HEAD", "--repo", repo, "--store", filepath.Join(dir, "bot.db"),
				"--out", filepath.Join(dir, "out"), "--rounds", "5000", "--work-dir", work}
			if c.ignored {
				args = append([]string{"sh", "-c", `trap '' HUP; exec "$0" "$@" 2>/dev/null`}, args...)
				args[slices.Index(args, "5000")] = "12"
			}
			cmd := exec.Command(args[0], args[1:]...)
			master, slave := openTerminal(t)
			defer master.Close()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			var reader, writer *os.File
			if c.pipes {
				var err error
				if reader, writer, err = os.Pipe(); err != nil {
					t.Fatal(err)
				}
				defer reader.Close()
				cmd.Stdout, cmd.Stderr = writer, writer
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			slave.Close()
			if c.pipes {
				writer.Close()
			}
			go io.Copy(io.Discard, master) // ends when it is closed
			waitFor(t, "the first run", func() bool { return len(processesWith(t, marker)) > 0 })
			if c.pipes && !c.ignored {
				reader.Close()
			}
			master.Close()
			err := cmd.Wait()
			if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signaled() {
				t.Errorf("ended by a signal: %v", err)
			}
			var e store.Evaluation
			data, err := os.ReadFile(filepath.Join(dir, "out", "report.json"))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			if interrupted := e.Stopped == store.StoppedInterrupted; interrupted == c.ignored {
				t.Errorf("stopped = %q after %d rounds", e.Stopped, e.Rounds)
			}
			if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
				t.Errorf("the work folder still holds %v (%v)", left, err)
			}
			if pids := processesWith(t, marker); len(pids) > 0 {
				t.Errorf("processes are left: %v", pids)
			}
		})
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

// openTerminal makes a terminal; who holds the master is the one in front of it.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		missing(t, "a terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // Fd has made it blocking
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}
