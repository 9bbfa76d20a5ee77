package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var buildKnown = sync.OnceValues(func() (string, error) {
	known := filepath.Join(filepath.Dir(runnerBinary), "known")
	out, err := exec.Command("gcc", "-O1", "-static", "-pthread", "-o", known, "testdata/known.c").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("compile testdata/known.c: %w\n%s", err, out)
	}
	return known, nil
})

// knownBox is a runner in a box that shows testdata/known.c, compiled, and the
// path under which programs see it.
func knownBox(t testing.TB, s *Sandbox, l Limits) (*Runner, string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		lacking(t, "gcc is not there to compile testdata/known.c")
	}
	known, err := buildKnown()
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: filepath.Dir(known), Inside: "/build/out"}}, Limits: l})
	return r, r.Path("/build/out/known")
}

// near says that got is within 1 % or 256 KiB of want.
func near(got, want int64) bool {
	diff := max(got-want, want-got)
	return diff <= max(want/100, 256<<10)
}

// TestPeaks compares what is read with what the programs are known to touch, and
// with what they say of themselves, under a parent that is larger than all.
func TestPeaks(t *testing.T) {
	const mib = 1 << 20
	ballast := make([]byte, 400*mib)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	defer runtime.KeepAlive(ballast)
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		// What a static program weighs that does nothing.
		bare := do(t, r, Command{Args: []string{known, "resident", "0"}, Peaks: true}).RSSBytes
		if bare < 100<<10 || bare > mib {
			t.Fatalf("a program that does nothing holds %d bytes", bare)
		}
		for _, tt := range []struct {
			name      string
			args      []string
			rss, size int64 // size 0: not looked at
			sum       int64
			processes int
			signal    string
			says      bool // each process prints its own VmHWM; rss 0: that is all that is known
		}{
			{"2 MB", []string{"resident", strconv.Itoa(int(2*mib - bare))}, 2 * mib, 0, 2 * mib, 1, "", true},
			{"300 MB", []string{"resident", strconv.Itoa(300 * mib)}, 300*mib + bare, 300 * mib, 300*mib + bare, 1, "", true},
			{"reserved, not touched", []string{"reserve", strconv.Itoa(1 << 30)}, bare, 1 << 30, bare, 1, "", false},
			{"in a thread, after the first has ended", []string{"late", strconv.Itoa(50 * mib)}, 50*mib + bare, 0, 50*mib + bare, 1, "", false},
			{"crash", []string{"crash", strconv.Itoa(30 * mib)}, 30*mib + bare, 0, 30*mib + bare, 1, "SIGSEGV", false},
			{"killed", []string{"kill", strconv.Itoa(30 * mib)}, 30*mib + bare, 0, 30*mib + bare, 1, "SIGKILL", false},
			{"three children", []string{"family", "3", strconv.Itoa(20 * mib)}, 0, 0, 0, 4, "", true},
			{"replaced by exec in a thread", []string{"thread-exec", strconv.Itoa(40 * mib)}, bare, 0, bare, 1, "", true},
			{"replaced by exec", []string{"exec", strconv.Itoa(40 * mib)}, bare, 0, bare, 1, "", true},
		} {
			t.Run(tt.name, func(t *testing.T) {
				res := do(t, r, Command{Args: append([]string{known}, tt.args...), Peaks: true, KeepStdout: 100})
				if res.Signal != tt.signal || res.Limit != "" || res.NotStarted != "" {
					t.Fatalf("ended otherwise: %+v", res)
				}
				if tt.says {
					var largest, sum int64
					for _, f := range strings.Fields(string(res.Stdout)) {
						own, err := strconv.ParseInt(f, 10, 64)
						if err != nil {
							t.Fatal(err)
						}
						largest, sum = max(largest, own), sum+own
					}
					// To end touches some pages more, in each process.
					if !near(res.RSSBytes, largest) || !near(res.RSSSumBytes/int64(tt.processes), sum/int64(tt.processes)) {
						t.Errorf("rss %d, sum %d; they say %d, %d", res.RSSBytes, res.RSSSumBytes, largest, sum)
					}
				}
				if tt.rss > 0 && !near(res.RSSBytes, tt.rss) {
					t.Errorf("rss %d, want %d", res.RSSBytes, tt.rss)
				}
				if tt.size > 0 && !near(res.SizeBytes, tt.size+mib) {
					t.Errorf("size %d, want %d", res.SizeBytes, tt.size+mib)
				}
				if tt.sum > 0 && !near(res.RSSSumBytes, tt.sum) {
					t.Errorf("sum %d, want %d", res.RSSSumBytes, tt.sum)
				}
				if res.Processes != tt.processes || res.Stops < 2*tt.processes {
					t.Errorf("%d processes with %d stops, want %d", res.Processes, res.Stops, tt.processes)
				}
			})
		}
		t.Run("one after the other", func(t *testing.T) {
			// A shell stays for all of them; each is gone before the next.
			line := "for i in 1 2 3; do " + known + " resident 30000000; done"
			res := do(t, r, Command{Args: []string{"sh", "-c", line}, Peaks: true})
			if res.Processes != 4 || !near(res.RSSBytes, 30000000+bare) || res.RSSSumBytes < res.RSSBytes+bare || res.RSSSumBytes > res.RSSBytes+4*mib {
				t.Errorf("%d processes, largest %d, sum %d", res.Processes, res.RSSBytes, res.RSSSumBytes)
			}
		})
		t.Run("not asked for", func(t *testing.T) {
			res := do(t, r, Command{Args: []string{known, "resident", "1000000"}})
			got := []int64{res.RSSBytes, res.SizeBytes, res.RSSSumBytes, int64(res.Processes), int64(res.Stops)}
			if diff := cmp.Diff(make([]int64, 5), got); diff != "" {
				t.Errorf("traced all the same: %s", diff)
			}
			if res.Faults < 1000000/4096 {
				t.Errorf("%d page faults", res.Faults)
			}
		})
	})
}

// TestTimes compares times with what the programs are known to spend. Wall has
// no upper bound: other work on the machine may take any.
func TestTimes(t *testing.T) {
	const ms = time.Millisecond
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		for _, peaks := range []bool{false, true} {
			for _, tt := range []struct {
				name      string
				args      []string
				cpu, wall time.Duration
			}{
				{"sleep", []string{"sleep", "0.3"}, 0, 300 * ms},
				{"four threads", []string{known, "threads", "4", "100"}, 400 * ms, 400 * ms / time.Duration(runtime.NumCPU())},
				{"a daemon, whose parents are gone", []string{known, "orphan", "1000"}, 1000 * ms, 1000 * ms},
			} {
				t.Run(fmt.Sprintf("%s, peaks %t", tt.name, peaks), func(t *testing.T) {
					res := do(t, r, Command{Args: tt.args, Peaks: peaks})
					if !res.OK() {
						t.Fatalf("%+v", res)
					}
					cpu := res.User + res.Sys
					// The start of a process takes a millisecond or two itself.
					if cpu < tt.cpu-tt.cpu/100 || cpu > tt.cpu+tt.cpu/100+8*ms {
						t.Errorf("cpu %s, want %s", cpu, tt.cpu)
					}
					if res.Wall < tt.wall-tt.wall/100 {
						t.Errorf("wall %s, want at least %s", res.Wall, tt.wall)
					}
				})
			}
		}
	})
}

func TestEndings(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{OutputBytes: 1 << 20})
		sh := func(line string) []string { return []string{"sh", "-eu", "-c", line} }
		for _, tt := range []struct {
			name string
			c    Command
			want Result // Status, Signal, Limit, NotStarted, Left
		}{
			{"ok", Command{Args: []string{"true"}}, Result{}},
			{"status", Command{Args: sh("exit 3")}, Result{Status: 3}},
			{"crash", Command{Args: []string{known, "crash"}}, Result{Status: -1, Signal: "SIGSEGV"}},
			{"crash below a shell", Command{Args: sh(known + " crash; true")}, Result{Status: 139, Signal: "SIGSEGV"}},
			{"crash in place of the shell", Command{Args: sh("exec " + known + " crash")}, Result{Status: -1, Signal: "SIGSEGV"}},
			{"139 of no shell", Command{Args: []string{"env", "sh", "-c", "exit 139"}}, Result{Status: 139}},
			{"status that is no signal", Command{Args: sh("exit 255")}, Result{Status: 255}},
			{"timeout", Command{Args: sh("trap '' TERM; sleep 1000 & sleep 1000"), Timeout: 200 * time.Millisecond},
				Result{Status: -1, Limit: "timed out after 0.2 s"}},
			{"endless output", Command{Args: []string{"yes"}}, Result{Status: -1, Limit: "printed more than 1 MiB"}},
			{"too much, then the end", Command{Args: sh("head -c 1100000 /dev/zero")}, Result{Status: -1, Limit: "printed more than 1 MiB"}},
			{"as much as allowed", Command{Args: sh("head -c 1048576 /dev/zero")}, Result{}},
			{"left behind", Command{Args: []string{known, "daemon"}}, Result{Left: 1}},
			{"left behind by a shell, holding the output", Command{Args: sh("sleep 1000 & sleep 1001 & echo")}, Result{Left: 2}},
			{"stopped and continued", Command{Args: []string{known, "stop"}}, Result{Status: 7}},
			{"stopped and continued, with threads", Command{Args: []string{known, "stop", "3"}}, Result{Status: 7}},
			{"kills its group", Command{Args: sh("kill -9 0")}, Result{Status: -1, Signal: "SIGKILL"}},
			{"not there", Command{Args: []string{"no-such-program"}},
				Result{Status: -1, NotStarted: "no-such-program: not found on PATH (" + s.Facts().Path + ")"}},
			{"path not there", Command{Args: []string{"./none"}}, Result{Status: -1, NotStarted: "./none: it or its interpreter is not there"}},
			{"a folder", Command{Args: []string{"/usr"}}, Result{Status: -1, NotStarted: "/usr: permission denied"}},
			{"folder not there", Command{Args: []string{"true"}, Dir: "/nowhere"}, Result{Status: -1, NotStarted: "folder /nowhere: not there"}},
			{"input not there", Command{Args: []string{"true"}, Stdin: "/nowhere"},
				Result{Status: -1, NotStarted: "standard input: open /nowhere: no such file or directory"}},
			{"input no plain file", Command{Args: []string{"true"}, Stdin: "/dev/zero"},
				Result{Status: -1, NotStarted: "standard input: /dev/zero is not a plain file"}},
			{"input of the runner's own", Command{Args: []string{"true"}, Stdin: "/proc/self/status"},
				Result{Status: -1, NotStarted: "standard input: /proc/self/status is not a plain file"}},
		} {
			for _, peaks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, peaks %t", tt.name, peaks), func(t *testing.T) {
					tt.c.Peaks = peaks
					res := do(t, r, tt.c)
					got := Result{Status: res.Status, Signal: res.Signal, Limit: res.Limit, NotStarted: res.NotStarted, Left: res.Left}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Error(diff)
					}
				})
			}
		}
		if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
			t.Errorf("the runner is not itself any more: %+v", res)
		}
	})
}
