package runner

import (
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/mark"
)

// forbidPtrace refuses ptrace to the calling thread and all that it forks, as
// containers do.
func forbidPtrace() error {
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PTRACE, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&f)), 0, 0)
}

// TestUntraced runs programs where ptrace is not allowed: peaks are not known then
// and everything else is.
func TestUntraced(t *testing.T) {
	tmp := t.TempDir()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // for good: the thread ends with its filter
		if err := forbidPtrace(); err != nil {
			t.Error(err)
			return
		}
		h := &host{Setup: Setup{Limits: Limits{OutputBytes: 1 << 20}, Path: "/usr/bin:/bin", Tmp: tmp, Empty: []string{tmp}, Mark: mark.New()}}
		job := func(line string) Job {
			return Job{Command: Command{Args: []string{"sh", "-c", line}, Peaks: true, Timeout: time.Minute, KeepStdout: 100}}
		}
		jobs := []Job{job("echo one; exit 3"), job("echo two")}
		for i, together := range []bool{false, true} {
			jobs[1].Together = together
			all, err := h.run(newBatch(h, jobs[:1+i]))
			if err != nil {
				t.Error(err)
				return
			}
			for k, res := range all {
				want := []Result{{Status: 3, Stdout: []byte("one\n")}, {Stdout: []byte("two\n")}}[k]
				if res.Status != want.Status || string(res.Stdout) != string(want.Stdout) || res.NotStarted != "" || res.Limit != "" {
					t.Errorf("job %d: %+v", k+1, res)
				}
				if !strings.Contains(res.Untraced, "operation not permitted") || !strings.Contains(res.Untraced, "allow it") || res.RSSBytes != 0 || res.Processes != 0 {
					t.Errorf("job %d: untraced %q, rss %d", k+1, res.Untraced, res.RSSBytes)
				}
				if res.Faults == 0 || res.Wall == 0 {
					t.Errorf("job %d: %d faults, wall %s", k+1, res.Faults, res.Wall)
				}
			}
		}
	}()
	<-ended
}
