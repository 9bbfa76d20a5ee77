package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func doAll(t testing.TB, r *Runner, jobs ...Job) []Result {
	t.Helper()
	all, err := r.DoAll(context.Background(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(jobs) {
		t.Fatalf("%d results of %d jobs", len(all), len(jobs))
	}
	return all
}

// shell is a job that is a shell line.
func shell(line string) Job {
	return Job{Command: Command{Args: []string{"sh", "-eu", "-c", line}, KeepStdout: 4096}}
}

func background(line string, ready ...string) Job {
	j := shell(line)
	j.Background, j.Ready = true, ready
	return j
}

func together(line string) Job {
	j := shell(line)
	j.Together = true
	return j
}

func within(timeout time.Duration, j Job) Job {
	j.Timeout = timeout
	return j
}

// ends are how jobs ended, in short.
func ends(all []Result) []string {
	var list []string
	for _, r := range all {
		s := "ok"
		switch {
		case r.NotStarted != "":
			s = r.NotStarted
		case r.Limit != "":
			s = r.Limit
		case r.Signal != "":
			s = r.Signal
		case r.Status != 0:
			s = fmt.Sprintf("status %d", r.Status)
		}
		if r.Left > 0 {
			s += fmt.Sprintf(", left %d", r.Left)
		}
		list = append(list, s)
	}
	return list
}

// TestJobs runs several programs on one state.
func TestJobs(t *testing.T) {
	isUp := []string{"test", "-s", "up"}
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		for _, tt := range []struct {
			name string
			jobs []Job
			want []string
			out  string // of the last job
		}{
			{"one state", []Job{shell("echo a >a"), shell("cat a; echo b >b"), shell("cat a b")}, []string{"ok", "ok", "ok"}, "a\nb\n"},
			{"after a failure", []Job{shell("exit 3"), shell("true"), together("true")},
				[]string{"status 3", "job 1 (sh) failed before", "job 1 (sh) failed before"}, ""},
			{"after one not there", []Job{{Command: Command{Args: []string{"./none"}}}, shell("true")},
				[]string{"./none: it or its interpreter is not there", "job 1 (./none) failed before"}, ""},
			{"all or none together", []Job{shell("echo >started"), {Command: Command{Args: []string{"./none"}}, Together: true}, shell("true")},
				[]string{"job 2 (./none) failed before", "./none: it or its interpreter is not there", "job 2 (./none) failed before"}, ""},
			{"one of two together fails", []Job{shell("exit 2"), together("cat <fifo || sleep 0.1; echo on"), shell("true")},
				[]string{"status 2", "ok", "job 1 (sh) failed before"}, ""},
			{"a server", []Job{background("echo >up; exec sleep 1000", isUp...), shell("cat up; echo pulled")}, []string{"ok", "ok"}, "\npulled\n"},
			{"a server is gone after the group", []Job{background("exec sleep 1000"), shell("true"), together("true"), shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '^sleep 1000\\|sleep 1000 $' || true")},
				[]string{"ok", "ok", "ok", "ok"}, "-"},
			{"a server below a shell", []Job{background("sleep 1000; true"), shell("true")}, []string{"ok", "ok"}, ""},
			{"a server that says goodbye", []Job{background("trap 'echo bye >bye; exit 143' TERM; echo >up; while :; do sleep 0.01; done", isUp...), shell("true"), shell("cat bye")},
				[]string{"ok", "ok", "ok"}, "bye\n"},
			{"a server that complains when told to end", []Job{background("trap 'exit 5' TERM; echo >up; while :; do sleep 0.01; done", isUp...), shell("true"), shell("true")},
				[]string{"status 5", "ok", "job 1 (sh) failed before"}, ""},
			{"a server deaf to SIGTERM", []Job{background("trap '' TERM; echo >up; sleep 1000 & wait", isUp...), shell("true")}, []string{"ok, left 2", "ok"}, ""},
			{"a server that detaches itself", []Job{background(known + " daemon; echo >up"), shell("while ! [ -s up ]; do sleep 0.01; done; echo served")}, []string{"ok", "ok"}, "served\n"},
			{"two servers", []Job{background("echo >one; exec sleep 1000", "test", "-s", "one"), background("cat one >two; exec sleep 1000", "test", "-s", "two"), shell("cat one two")},
				[]string{"ok", "ok", "ok"}, "\n\n"},
			{"a server alone", []Job{background("echo >up; exec sleep 1000", isUp...)}, []string{"ok"}, ""},
			{"a server and a client together", []Job{background("exec sleep 1000"), func() Job { j := together("echo on"); return j }()}, []string{"ok", "ok"}, "on\n"},
			{"never ready", []Job{within(100*time.Millisecond, background("exec sleep 1000", "sh", "-c", "echo nobody there; exit 1")), shell("true")},
				[]string{"not ready after 0.1 s", "job 1 (sh) failed before"}, ""},
			{"a ready command that hangs", []Job{within(100*time.Millisecond, background("exec sleep 1000", "sleep", "1000")), shell("true")},
				[]string{"not ready after 0.1 s", "job 1 (sh) failed before"}, ""},
			{"no such ready command", []Job{background("exec sleep 1000", "./none"), shell("true")},
				[]string{"its ready command could not be started: ./none: it or its interpreter is not there", "job 1 (sh) failed before"}, ""},
			{"fails before it is ready", []Job{background("exit 4", "false"), shell("true")}, []string{"status 4", "job 1 (sh) failed before"}, ""},
			{"ends before it is ready", []Job{background("exit 0", "false"), shell("true")}, []string{"ended before it was ready", "job 1 (sh) failed before"}, ""},
			{"crashes while it serves", []Job{background("while ! [ -e go ]; do sleep 0.01; done; exec " + known + " crash"), shell("echo >go; sleep 0.1"), shell("true")},
				[]string{"SIGSEGV", "ok", "job 1 (sh) failed before"}, ""},
			{"a client that takes too long", []Job{background("exec sleep 1000"), within(100*time.Millisecond, shell("sleep 1001 & sleep 1000"))},
				[]string{"ok", "timed out after 0.1 s"}, ""},
			{"left behind beside a server", []Job{background("exec sleep 1000"), shell(known + " daemon; sleep 1000 & sleep 1001 & true"), shell("echo next")},
				[]string{"ok", "ok, left 3", "ok"}, "next\n"},
			{"kills all that it can", []Job{background("exec sleep 1000"), shell("trap '' TERM; kill -9 0")}, []string{"ok", "SIGKILL"}, ""},
		} {
			for _, peaks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, peaks %t", tt.name, peaks), func(t *testing.T) {
					jobs := append([]Job{}, tt.jobs...)
					for i := range jobs {
						jobs[i].Peaks = peaks
					}
					all := doAll(t, r, jobs...)
					if diff := cmp.Diff(tt.want, ends(all)); diff != "" {
						t.Errorf("%s%+v", diff, all)
					}
					last := all[len(all)-1]
					if tt.out != "-" && string(last.Stdout) != tt.out {
						t.Errorf("printed %q, want %q", last.Stdout, tt.out)
					}
					if peaks {
						for i, res := range all {
							if res.NotStarted == "" && (res.Processes < 1 || res.RSSBytes == 0) && !strings.Contains(res.Limit, "ready") {
								t.Errorf("job %d: %d processes, %d bytes", i+1, res.Processes, res.RSSBytes)
							}
						}
					}
					if got := do(t, r, Command{Args: []string{"sh", "-c", "ls | grep -v home"}, KeepStdout: 100}); len(got.Stdout) > 0 {
						t.Errorf("the state is not gone: %s", got.Stdout)
					}
				})
			}
		}
	})
}

// TestJobsSayWhy looks at what is told of a server that does not get ready.
func TestJobsSayWhy(t *testing.T) {
	r := start(t, openUnsafe(t), Box{})
	all := doAll(t, r, within(100*time.Millisecond, background("echo starting; exec sleep 1000", "sh", "-c", "echo nobody there; exit 1")))
	if diff := cmp.Diff("starting\n\nready command: nobody there\n", all[0].LogTail); diff != "" {
		t.Error(diff)
	}
}

// TestWhoseTimeIsIt runs programs at once whose descendants leave their families,
// and looks at whom their time, memory and bytes are counted with.
func TestWhoseTimeIsIt(t *testing.T) {
	const ms = time.Millisecond
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		for _, peaks := range []bool{false, true} {
			t.Run(fmt.Sprintf("peaks %t", peaks), func(t *testing.T) {
				jobs := []Job{
					background(known+" orphan 200; head -c 3000000 /dev/zero >zeros; echo >up; exec sleep 1000", "test", "-s", "up"),
					shell(known + " orphan 100"),
					together(known + " orphan 300; " + known + " resident 20000000"),
					together("head -c 1000000 /dev/zero | cat >more"),
				}
				for i := range jobs {
					jobs[i].Peaks = peaks
				}
				all := doAll(t, r, jobs...)
				for i := range all {
					// An orphan's pipe is closed a moment before it is gone: one may be left.
					all[i].Left = 0
				}
				if diff := cmp.Diff([]string{"ok", "ok", "ok", "ok"}, ends(all)); diff != "" {
					t.Fatal(diff)
				}
				for i, want := range []time.Duration{200 * ms, 100 * ms, 300 * ms, 0} {
					// The shells and the other programs take some too, on a busy machine
					// more. What is another job's would be 100 ms at least.
					if cpu := all[i].User + all[i].Sys; cpu < want || cpu > want+90*ms {
						t.Errorf("job %d: cpu %s, want %s", i+1, cpu, want)
					}
				}
				for i, want := range []int64{3000000, 0, 0, 2000000} {
					if got := all[i].WrittenBytes; (peaks || got >= 0) && (got < want || got > want+4096) {
						t.Errorf("job %d: %d bytes written, want %d", i+1, got, want)
					}
				}
				if !peaks {
					return
				}
				for i, want := range []int{8, 4, 5, 3} {
					if got := all[i].Processes; got > want || got < 3 {
						t.Errorf("job %d: %d processes, want 3 to %d", i+1, got, want)
					}
				}
				if got := all[2].RSSBytes; got < 20000000 || all[1].RSSBytes > 10000000 || all[0].RSSBytes > 10000000 {
					t.Errorf("rss %d, %d, %d", all[0].RSSBytes, all[1].RSSBytes, got)
				}
			})
		}
	})
}

// TestCancelJobs cancels while a server and its clients run.
func TestCancelJobs(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		dir := workDir(t)
		up := pipeFile(t, dir, "up")
		if err := s.Own(dir); err != nil {
			t.Fatal(err)
		}
		r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/out", Write: true}}})
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(chan error)
		go func() {
			_, err := r.DoAll(ctx, []Job{background("trap '' TERM; setsid sleep 1000 & wait"), shell("setsid sleep 1000 & sleep 1000 & echo up >" + r.Path("/build/out/up") + "; wait"), together("sleep 1000")})
			errs <- err
		}()
		waitFor(t, up)
		gone := watch(t, r.cmd.Process.Pid, 4)
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
			t.Errorf("the runner is of no use any more: %+v", res)
		}
		r.Close()
		gone()
	})
}

// TestNoneSurvivesItsRunner kills the runner of an unsafe mode, whose programs
// have left its family, cleared their environment and taken other parents.
func TestNoneSurvivesItsRunner(t *testing.T) {
	s := openUnsafe(t)
	dir := workDir(t)
	up := pipeFile(t, dir, "up")
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/out", Write: true}}})
	errs := make(chan error)
	go func() {
		_, err := r.Do(context.Background(), Command{
			Args: []string{"sh", "-c", "trap '' TERM; setsid env -i sleep 1000 & (setsid sleep 1000 &); sleep 1000 & echo up >up; wait"}, Dir: "/build/out"})
		errs <- err
	}()
	waitFor(t, up)
	gone := watch(t, r.cmd.Process.Pid, 4)
	if err := syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-errs; err == nil || !strings.Contains(err.Error(), "the runner ended") {
		t.Error(err)
	}
	gone()
}
