package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/sweep"
)

// Main is the runner's life: it answers orders until there are no more, and
// ends the process. restrict is called in a box, on the thread that will start
// all programs, to refuse them system calls.
func Main(restrict func() error) {
	if err := apart(func() error { return serve(restrict) }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// apart runs f on a thread of its own that is not the process's first. A cgroup
// of version 1 takes a process for its first thread: for whose memory counts, and
// for whom to kill when there is none left.
func apart(f func() error) error {
	done := make(chan error)
	go func() {
		// Programs are forked from this thread: a parent's death signal and a
		// trace belong to a thread, and this one lasts.
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done <- apart(f) // while the first thread is held here
			return
		}
		done <- f()
	}()
	return <-done
}

// host is the runner: it lives inside the box beside the programs, as pid 1, or
// in unsafe mode outside, as the one that orphans are given to.
type host struct {
	Setup
	mu      sync.Mutex // guards what says so in batch and job
	buffers [][]byte   // that no output uses
	box     *box       // nil in unsafe mode
}

// serve answers orders until there are no more.
func serve(restrict func() error) error {
	var st unix.Stat_t
	if unix.Fstat(OrderFD, &st) != nil || unix.Fstat(AnswerFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return errors.New(Arg + " is started by the bot itself, never by hand")
	}
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("runner: close descriptors on exec: %w", err)
	}
	// Programs have the runner's uid: they must not trace it, nor open its
	// descriptors through /proc, nor end it by a signal.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("runner: hide from programs: %w", err)
	}
	catchSignals()
	// No collection may run beside a program, unless output fills the memory.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(128 << 20)
	syscall.Umask(0o022)

	in, err := newInbox(OrderFD)
	if err != nil {
		return err
	}
	answers := json.NewEncoder(os.NewFile(AnswerFD, "answers"))
	first, err := in.next()
	if err != nil || first.Setup == nil {
		return fmt.Errorf("runner: no setup order (%v)", err)
	}
	h := &host{Setup: *first.Setup}
	if err := answers.Encode(Answer{Error: errorText(h.begin(restrict))}); err != nil {
		return fmt.Errorf("runner: answer: %w", err)
	}
	in.ended = h.leave
	go in.watch()
	garbage := 0
	for {
		o, err := in.next()
		if err != nil {
			if err != io.EOF {
				fmt.Fprintf(os.Stderr, "runner: read order: %v\n", err)
			}
			h.leave()
		}
		if o.Run == nil {
			continue // to cancel what is over
		}
		b := newBatch(h, o.Run)
		in.busy(b)
		results, err := h.run(b)
		in.busy(nil)
		a := Answer{Results: results, Worn: h.box != nil && h.box.worn()}
		if err != nil {
			a = Answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return nil // the bot is gone
		}
		// Nothing is being measured now. A job leaves some 16 KiB.
		for _, res := range results {
			garbage += 16<<10 + 4*len(res.Stdout)
		}
		if garbage > 16<<20 {
			runtime.GC()
			garbage = 0
		}
	}
}

// leave ends the runner when its orders have ended: the bot has ended or closed
// the box, and everything in it dies at once.
func (h *host) leave() {
	// As pid 1 to exit is to kill every process of the box.
	if !h.Boxed {
		h.killDescendants()
		if sweep.Empty(h.Tmp, h.mode()) == nil {
			os.Remove(h.Tmp)
		}
	}
	os.Exit(0)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// catchSignals keeps programs from ending the runner. The signals are caught and
// not ignored: what is ignored would be ignored in programs too. Of children the
// runner learns by waiting; a signal at each stop of a trace would only cost time.
func catchSignals() {
	var all []os.Signal
	for s := syscall.Signal(1); s < 32; s++ {
		if s != syscall.SIGCHLD && s != syscall.SIGURG {
			all = append(all, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), all...)
	var dfl [4]uintptr // struct sigaction: SIG_DFL, no flags, no mask
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), uintptr(unsafe.Pointer(&dfl)), 0, 8, 0, 0)
}

// closeOnExec marks every descriptor but the standard streams.
func closeOnExec() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Kernels before 5.11 cannot.
	for fd := 3; fd < 1024; fd++ {
		syscall.CloseOnExec(fd)
	}
	return nil
}

// begin sets the bounds that programs inherit.
func (h *host) begin(restrict func() error) error {
	if h.Boxed && os.Getpid() != 1 {
		return errors.New("runner: not the first process of a box")
	}
	if !h.Boxed {
		// Orphans come to the runner as they do to a box's first process.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("runner: become the parent of orphans: %w", err)
		}
	}
	// Before the runner's threads are known by their numbers, and none is in a group.
	spareThreads(8)
	for _, fd := range h.Enter {
		if _, err := unix.Write(fd, []byte("0")); err != nil {
			return fmt.Errorf("runner: enter the cgroup: %w", err)
		}
		unix.Close(fd)
	}
	if h.Boxed {
		if err := restrict(); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		name       string
		which      int
		soft, hard uint64
		set        bool
	}{
		{"core", unix.RLIMIT_CORE, 0, 0, true},
		{"stack", unix.RLIMIT_STACK, 8 << 20, unix.RLIM_INFINITY, true},
		{"open files", unix.RLIMIT_NOFILE, 4096, 65536, true},
		{"memory", unix.RLIMIT_DATA, uint64(h.Limits.MemoryBytes), uint64(h.Limits.MemoryBytes), !h.bounded()},
		// Outside a box the bound is over all that the user runs.
		{"processes", unix.RLIMIT_NPROC, uint64(h.Limits.Processes), uint64(h.Limits.Processes), h.Boxed && !h.bounded()},
	} {
		if !l.set {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.which, &now); err != nil {
			return fmt.Errorf("runner: limit of %s: %w", l.name, err)
		}
		next := syscall.Rlimit{Max: min(l.hard, now.Max)}
		next.Cur = min(l.soft, next.Max)
		if err := syscall.Setrlimit(l.which, &next); err != nil {
			return fmt.Errorf("runner: limit of %s: %w", l.name, err)
		}
	}
	if h.Boxed {
		h.box = newBox(h.Empty)
	}
	return nil
}

// spareThreads makes the Go runtime own n threads that wait for work, so that it
// need not start one when a program has used up the box's processes.
func spareThreads(n int) {
	var started, ended sync.WaitGroup
	release := make(chan struct{})
	for range n {
		started.Add(1)
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-release
		})
	}
	started.Wait()
	close(release)
	ended.Wait()
}
