package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/mark"
	"patchbench/bench/sandbox/runner"
)

// pipeFile makes a named pipe in dir that programs can use too.
func pipeFile(t *testing.T, dir, name string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := syscall.Mkfifo(p, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, 0o666); err != nil {
		t.Fatal(err)
	}
	return p
}

// waitFor reads a named pipe, which lasts until a program has written to it.
func waitFor(t *testing.T, pipe string) {
	t.Helper()
	got, err := os.ReadFile(pipe)
	if err != nil || string(got) != "up\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

// watch opens all descendants of a process; gone waits until they are no more.
func watch(t *testing.T, pid, least int) (gone func()) {
	t.Helper()
	var fds []unix.PollFd
	var programs []string
	for _, other := range mark.Descendants(pid) {
		fd, err := unix.PidfdOpen(other, 0)
		if err != nil {
			continue // ended meanwhile
		}
		cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(other), "cmdline"))
		programs = append(programs, string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	if len(fds) < least {
		t.Fatalf("only %d processes below %d: %q", len(fds), pid, programs)
	}
	return func() {
		t.Helper()
		for i := range fds {
			n, err := unix.Poll(fds[i:i+1], 20000)
			for err == unix.EINTR {
				n, err = unix.Poll(fds[i:i+1], 20000)
			}
			if err != nil || n != 1 {
				t.Errorf("still there: %s (%v)", programs[i], err)
			}
			unix.Close(int(fds[i].Fd))
		}
	}
}

func TestCancel(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		dir := workDir(t)
		up := pipeFile(t, dir, "up")
		if err := s.Own(dir); err != nil {
			t.Fatal(err)
		}
		r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/out", Write: true}}})
		for _, peaks := range []bool{false, true} {
			ctx, cancel := context.WithCancel(context.Background())
			errs := make(chan error)
			go func() {
				_, err := r.Do(ctx, Command{
					Args: []string{"sh", "-c", "trap '' TERM INT; setsid sleep 1000 & sleep 1000 & echo up >up; wait"}, Dir: "/build/out", Peaks: peaks,
				})
				errs <- err
			}()
			waitFor(t, up)
			gone := watch(t, r.cmd.Process.Pid, 3)
			cancel()
			if err := <-errs; !errors.Is(err, context.Canceled) {
				t.Errorf("peaks %t: %v", peaks, err)
			}
			if _, err := r.Do(ctx, Command{Args: []string{"true"}}); !errors.Is(err, context.Canceled) {
				t.Errorf("peaks %t: cancelled before: %v", peaks, err)
			}
			if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
				t.Errorf("peaks %t: the runner is of no use any more: %+v", peaks, res)
			}
			// The runner itself stays until Close.
			if err := syscall.Kill(r.cmd.Process.Pid, 0); err != nil {
				t.Error(err)
			}
			if peaks {
				r.Close()
				gone()
			}
		}
	})
}

// TestClose closes a box while a program runs in it.
func TestClose(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		dir := workDir(t)
		up := pipeFile(t, dir, "up")
		if err := s.Own(dir); err != nil {
			t.Fatal(err)
		}
		r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/out", Write: true}}})
		errs := make(chan error)
		go func() {
			_, err := r.Do(context.Background(), Command{
				Args: []string{"sh", "-c", "setsid sleep 1000 & sleep 1000 & touch $TMPDIR/x; echo up >up; wait"}, Dir: "/build/out",
			})
			errs <- err
		}()
		waitFor(t, up)
		gone := watch(t, os.Getpid(), 4)
		tmp := r.tmp
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		gone()
		if err := <-errs; !errors.Is(err, errClosed) {
			t.Errorf("the run under way: %v", err)
		}
		if _, err := r.Do(context.Background(), Command{Args: []string{"true"}}); !errors.Is(err, errClosed) {
			t.Errorf("a run in a closed box: %v", err)
		}
		if tmp != nil {
			if _, err := os.Lstat(tmp.Name()); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", tmp.Name(), err)
			}
		}
	})
}

// TestCloseBeforeLastAnswer has a runner tell of the killed program after its
// orders have ended and before it ends itself.
func TestCloseBeforeLastAnswer(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := &Runner{orders: out, encode: json.NewEncoder(out), answers: make(chan runner.Answer, 1), exited: make(chan struct{})}
	asked := make(chan struct{})
	go func() {
		defer close(r.exited)
		dec := json.NewDecoder(in)
		var o runner.Order
		if err := dec.Decode(&o); err != nil || o.Run == nil {
			t.Errorf("%+v, %v", o, err)
		}
		close(asked)
		if err := dec.Decode(&o); err != io.EOF {
			t.Errorf("more than one order: %v", err)
		}
		r.answers <- runner.Answer{Results: []Result{{Status: -1, Signal: "SIGKILL"}}}
		close(r.answers)
	}()
	errs := make(chan error)
	go func() {
		res, err := r.Do(context.Background(), Command{Args: []string{"sleep", "1000"}})
		if err == nil {
			t.Errorf("a result: %+v", res)
		}
		errs <- err
	}()
	<-asked
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// hold starts a bot that runs a shell line.
func hold(t *testing.T, mode, dir, line string) (cmd *exec.Cmd, stdout *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(runnerBinary, "hold", mode, dir, line)
	stdout = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // ended already, if all went well
	return cmd, stdout
}

// TestKilledBot kills the bot in the midst of a run.
func TestKilledBot(t *testing.T) {
	for _, mode := range []string{"boxed", "unsafe"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "boxed" {
				openBoxed(t)
			}
			dir := workDir(t)
			up := pipeFile(t, dir, "up")
			cmd, _ := hold(t, mode, dir, "trap '' TERM INT HUP; setsid sleep 1000 & (setsid sleep 1000 &) ; sleep 1000 & echo up >up; wait")
			waitFor(t, up)
			gone := watch(t, cmd.Process.Pid, 5)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			gone()
			_ = cmd.Wait() // killed
		})
	}
}

// TestInterruptedBot sends what Ctrl-C sends: the bot decides, not its boxes.
func TestInterruptedBot(t *testing.T) {
	for _, mode := range []string{"boxed", "unsafe"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "boxed" {
				openBoxed(t)
			}
			dir := workDir(t)
			up, on := pipeFile(t, dir, "up"), pipeFile(t, dir, "on")
			cmd, stdout := hold(t, mode, dir, "echo up >up; read line <on; exit 7")
			waitFor(t, up)
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(on, []byte("on\n"), 0); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var res Result
			if err := json.Unmarshal(stdout.Bytes(), &res); err != nil || res.Status != 7 {
				t.Errorf("%v %s", err, stdout)
			}
		})
	}
}

// TestDeadRunner kills the runner, which is our failure and said so.
func TestDeadRunner(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		r := start(t, s, Box{})
		if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		// Nothing but the runner's end makes this return before the test's own.
		_, err := r.Do(context.Background(), Command{Args: []string{"sleep", "100000"}, Timeout: 24 * time.Hour})
		if err == nil || !strings.Contains(err.Error(), "the runner ended") {
			t.Error(err)
		}
	})
}

func TestMainByHand(t *testing.T) {
	out, err := exec.Command(runnerBinary, runner.Arg).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "never by hand") {
		t.Errorf("%v: %s", err, out)
	}
}
