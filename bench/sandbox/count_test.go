package sandbox

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/perf"
)

// counts skips a test where the kernel counts nothing for the programs of a box.
func counts(t *testing.T, r *Runner) {
	t.Helper()
	if res := do(t, r, Command{Args: []string{"true"}, Count: &perf.PageFaults}); res.Uncounted != "" {
		lacking(t, res.Uncounted)
	}
}

// TestCount counts the pages that programs are known to touch, of all their threads
// and processes, and nothing of the runner's.
func TestCount(t *testing.T) {
	const pages = 3000
	bytes := func(pages int) string { return fmt.Sprint(4096 * pages) }
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		counts(t, r)
		sh := func(line string) func(int) []string {
			return func(n int) []string {
				return []string{"sh", "-eu", "-c", strings.NewReplacer("KNOWN", known, "BYTES", bytes(n)).Replace(line)}
			}
		}
		for _, tt := range []struct {
			name  string
			args  func(pages int) []string
			times int // that the pages are touched
		}{
			{"one process", func(n int) []string { return []string{known, "resident", bytes(n)} }, 1},
			{"a thread, after the first has ended", func(n int) []string { return []string{known, "late", bytes(n)} }, 1},
			{"replaced by exec", func(n int) []string { return []string{known, "exec", bytes(n)} }, 1},
			{"replaced by exec in a thread", func(n int) []string { return []string{known, "thread-exec", bytes(n)} }, 1},
			{"three children", func(n int) []string { return []string{known, "family", "3", bytes(n)} }, 3},
			{"below a shell", sh("KNOWN resident BYTES; KNOWN exec BYTES"), 2},
			{"an orphan", sh("{ ( KNOWN resident BYTES & ); } | cat"), 1},
			{"ended by a signal", sh("KNOWN kill BYTES || true"), 1},
		} {
			for _, peaks := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, peaks %t", tt.name, peaks), func(t *testing.T) {
					count := func(n int) int64 {
						res := do(t, r, Command{Args: tt.args(n), Peaks: peaks, Count: &perf.PageFaults})
						if !res.OK() || res.Uncounted != "" {
							t.Fatalf("%+v", res)
						}
						if res.Counted < 1 || res.Counted > res.Faults+res.MajorFaults {
							t.Errorf("%d counted, the program and its start had %d", res.Counted, res.Faults)
						}
						return res.Counted
					}
					got, want := count(pages)-count(0), int64(tt.times*pages)
					// The copies that a fork leaves to be made vary by some pages.
					if off := want/100 + 20; got < want-off || got > want+off {
						t.Errorf("%d pages, want %d", got, want)
					}
				})
			}
		}
	})
}

// Of several jobs each has its own count, also of one that runs beside others.
func TestCountJobs(t *testing.T) {
	const pages = 3000
	modes(t, func(t *testing.T, s *Sandbox) {
		r, known := knownBox(t, s, Limits{})
		counts(t, r)
		touch := func(times int, then string) Job {
			j := shell(fmt.Sprintf("%s resident %d; %s", known, times*pages*4096, then))
			j.Count = &perf.PageFaults
			return j
		}
		server := touch(1, `: >"$TMPDIR/up"; sleep 1000`)
		server.Background, server.Ready = true, []string{"sh", "-c", `test -e "$TMPDIR/up"`}
		beside := touch(3, "true")
		beside.Together = true
		plain := touch(9, "true")
		plain.Count = nil
		var got []int64
		for i, res := range doAll(t, r, server, touch(2, "true"), beside, plain, touch(5, "true")) {
			if res.Uncounted != "" {
				t.Errorf("job %d: %s", i+1, res.Uncounted)
			}
			got = append(got, (res.Counted+pages/2)/pages)
		}
		if diff := cmp.Diff([]int64{1, 2, 3, 0, 5}, got); diff != "" {
			t.Errorf("thousands of pages: %s", diff)
		}
	})
}

// What cannot be counted says why, and all else of it is known.
func TestUncounted(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		r := start(t, s, Box{})
		res := do(t, r, Command{Args: []string{"true"}, Count: &perf.Event{Type: 1 << 30}})
		if !res.OK() || res.Counted != 0 || !strings.Contains(res.Uncounted, "no hardware counter") {
			t.Errorf("an event that no kernel has: %+v", res)
		}
		res = do(t, r, Command{Args: []string{"sh", "-c", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done"}, Count: &perf.Instructions})
		switch {
		case !res.OK():
			t.Errorf("%+v", res)
		case res.Uncounted == "" && res.Counted < 100_000:
			t.Errorf("%d instructions of a shell", res.Counted)
		case res.Uncounted != "":
			t.Logf("instructions: %s", res.Uncounted)
		}
		res = do(t, r, Command{Args: []string{"no-such-program"}, Count: &perf.PageFaults})
		if res.NotStarted == "" || res.Counted != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// A program that is counted sees no descriptor more, and cannot make a counter.
func TestCounterOutOfReach(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		lacking(t, "perl is not there to call perf_event_open")
	}
	s := openBoxed(t)
	r := start(t, s, Box{})
	counts(t, r)
	line := `echo /proc/self/fd/*; ls /proc/1/fd 2>&1; perl -e 'my $attr = pack("LLQx112", 1, 128, 2); print syscall($ARGV[0], $attr, 0, -1, -1, 0), " $!\n"' ` + fmt.Sprint(unix.SYS_PERF_EVENT_OPEN)
	var said []string
	for _, c := range []*perf.Event{nil, &perf.PageFaults} {
		res := do(t, r, Command{Args: []string{"sh", "-c", line}, Count: c, KeepStdout: 1000})
		said = append(said, string(res.Stdout))
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		t.Errorf("(-not counted +counted):\n%s", diff)
	}
	if !strings.Contains(said[1], "Permission denied") || !strings.Contains(said[1], "-1 Operation not permitted") {
		t.Errorf("the program says %q", said[1])
	}
}

// BenchmarkCount is what counting costs a run of `true`, and a shell that starts 200
// programs, both with Peaks: the median of neighbouring runs' ratios. The event is one
// that the kernel counts.
func BenchmarkCount(b *testing.B) {
	r := start(b, openBoxed(b), Box{})
	for _, c := range []struct {
		name string
		args []string
	}{
		{"true", []string{"true"}},
		{"forks", []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var wall, cpu []float64
			for b.Loop() {
				plain := do(b, r, Command{Args: c.args, Peaks: true})
				counted := do(b, r, Command{Args: c.args, Peaks: true, Count: &perf.PageFaults})
				if counted.Uncounted != "" {
					b.Skip(counted.Uncounted)
				}
				wall = append(wall, float64(counted.Wall)/float64(plain.Wall))
				cpu = append(cpu, float64(counted.User+counted.Sys)/float64(plain.User+plain.Sys))
			}
			slices.Sort(wall)
			slices.Sort(cpu)
			b.ReportMetric(wall[len(wall)/2], "counted/plain-wall")
			b.ReportMetric(cpu[len(cpu)/2], "counted/plain-cpu")
		})
	}
}
