package runner

import (
	"fmt"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traceOptions: new processes and threads are followed from their first
// instruction, every one stops once more before its memory goes, and none
// outlives the runner.
const traceOptions = unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

// trace follows programs and their descendants to read their peaks.
//
// At the exit stop of a thread the address space is still there, and its
// VmHWM and VmPeak with it. The last thread's is the peak of the process, so all
// are read and the largest counts. ru_maxrss is of no use: it is inherited over
// fork and exec, so that the runner's own memory would show.
type trace struct {
	used  bool
	seen  map[int]*tracee // by process and thread
	peaks map[int]peak    // by process
	// waited holds the peaks of those that have ended for us, but not yet for
	// their parent. When that ends first, they end for us once more.
	waited map[int]peak
	clock  int // goes on at each birth and end of a process
	buf    [8 << 10]byte
}

// peak is what a process has reached at its end, in bytes; read and written are
// -1 if not known.
type peak struct{ rss, size, read, written int64 }

// tracee is a process or thread that stopped at least once.
type tracee struct {
	job  *job // nil if nobody's
	born int  // by the trace's clock
}

// life is a process that has ended.
type life struct {
	born, died int // by the trace's clock
	peak       peak
}

func newTrace() *trace {
	return &trace{seen: map[int]*tracee{}, peaks: map[int]peak{}, waited: map[int]peak{}}
}

// halt waits for the stop that a program which was started with PTRACE_TRACEME
// makes at its first instruction, and begins to trace it if its job asks for
// peaks. It must run on the thread that started it.
//
// The program may also have ended before its first instruction: its memory was
// not to be had, or it was killed. The next wait tells.
func (b *batch) halt(j *job) error {
	stopped, err := b.waitStop(j)
	if j.halted = stopped; !stopped || err != nil {
		return err
	}
	if j.Count != nil {
		j.startCounting()
	}
	if !j.Peaks {
		return nil
	}
	if err := ptrace(unix.PTRACE_SETOPTIONS, j.pid, traceOptions); err != nil && err != syscall.ESRCH {
		j.res.Untraced = cannotTrace(err)
		return nil
	}
	b.trace.used, j.traced = true, true
	b.trace.clock++
	b.trace.seen[j.pid] = &tracee{job: j, born: b.trace.clock}
	return nil
}

func cannotTrace(err error) string {
	return fmt.Sprintf("ptrace: %v; allow it on this machine (kernel.yama.ptrace_scope at most 1)", err)
}

// waitStop waits until a program has stopped, or ended.
func (b *batch) waitStop(j *job) (bool, error) {
	for {
		var info siginfo
		switch errno := waitid(unix.P_PID, j.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL); {
		case errno == syscall.EINTR:
		case errno != 0:
			return false, fmt.Errorf("follow the program: %w", errno)
		case info.ended():
			return false, nil
		case takeStop(j.pid, &info):
			if j.Peaks {
				j.res.Stops++
			}
			return true, nil
		}
	}
}

// stopped handles one stop, whose signal and event are in status. Errors are not
// looked at: a process that a SIGKILL took away in between is reported as gone
// by the next wait.
func (t *trace) stopped(pid, status int, jobOf func(int) *job) {
	signal := syscall.Signal(status & 0xff)
	event := status >> 8
	e := t.seen[pid]
	if e == nil {
		t.clock++
		e = &tracee{job: jobOf(pid), born: t.clock}
		t.seen[pid] = e
		delete(t.waited, pid) // another process of that number
		if event == 0 && signal == syscall.SIGSTOP {
			signal = 0 // the kernel's own, with which it begins
		}
	}
	if e.job != nil {
		e.job.res.Stops++
	}
	switch event {
	case 0:
		if isStop(signal) && hasStopped(pid) {
			// Only a tracer that came by PTRACE_SEIZE can leave it stopped until
			// a SIGCONT. So we leave and come again.
			if ptrace(unix.PTRACE_DETACH, pid, 0) == nil {
				_ = ptrace(unix.PTRACE_SEIZE, pid, traceOptions)
			}
			return
		}
		_ = ptrace(unix.PTRACE_CONT, pid, uintptr(signal))
	case unix.PTRACE_EVENT_STOP:
		if isStop(signal) {
			// Stopped by the program's own doing: it stays so until a SIGCONT.
			_ = ptrace(unix.PTRACE_LISTEN, pid, 0)
		} else {
			_ = ptrace(unix.PTRACE_CONT, pid, 0)
		}
	case unix.PTRACE_EVENT_EXIT:
		t.read(pid)
		_ = ptrace(unix.PTRACE_CONT, pid, 0)
	case unix.PTRACE_EVENT_EXEC:
		// A thread that executes a program takes its process's number, and its own
		// may soon be another's.
		var own uint
		if ptrace(unix.PTRACE_GETEVENTMSG, pid, uintptr(unsafe.Pointer(&own))) == nil && int(own) != pid {
			delete(t.seen, int(own))
		}
		delete(t.peaks, pid) // of the last program's threads
		_ = ptrace(unix.PTRACE_CONT, pid, 0)
	default: // a fork or clone: the new process or thread reports by itself
		_ = ptrace(unix.PTRACE_CONT, pid, 0)
	}
}

func isStop(s syscall.Signal) bool {
	return s == syscall.SIGSTOP || s == syscall.SIGTSTP || s == syscall.SIGTTIN || s == syscall.SIGTTOU
}

// hasStopped tells the stop of a process by a signal from the delivery of that
// signal, which comes before.
func hasStopped(pid int) bool {
	var info siginfo
	return ptrace(unix.PTRACE_GETSIGINFO, pid, uintptr(unsafe.Pointer(&info))) == syscall.EINVAL
}

// read notes the peaks of the process that the thread tid belongs to.
func (t *trace) read(tid int) {
	text, err := readSmall("/proc/"+strconv.Itoa(tid)+"/status", t.buf[:])
	if err != nil {
		return
	}
	process, ok := field(text, "\nTgid:")
	if !ok {
		return
	}
	rss, _ := field(text, "\nVmHWM:")
	size, _ := field(text, "\nVmPeak:")
	read, written := transferred(int(process))
	p := t.peaks[int(process)]
	t.peaks[int(process)] = peak{max(p.rss, rss<<10), max(p.size, size<<10), max(p.read, read), max(p.written, written)}
}

// gone counts a process when it has ended. Threads that are not a process's
// first have no peaks of their own.
func (t *trace) gone(pid int) {
	e := t.seen[pid]
	p, process := t.peaks[pid]
	delete(t.seen, pid)
	delete(t.peaks, pid)
	if process {
		t.waited[pid] = p
	}
	if e != nil && e.job != nil && process {
		t.clock++
		e.job.lives = append(e.job.lives, life{e.born, t.clock, p})
	}
}

// ended gives the peaks of a process whose end is being told.
func (t *trace) ended(pid int) (peak, bool) {
	if p, ok := t.peaks[pid]; ok {
		return p, true
	}
	p, ok := t.waited[pid]
	return p, ok
}

// fill gives what a job's processes held. The sum is the largest of all moments
// that counts every process alive at it with its peak, so it is no less than
// what they ever held together, and the same whenever their lives overlap alike.
// A sum sampled from time to time would miss short peaks and disturb the program.
func (t *trace) fill(j *job) {
	type change struct {
		at  int
		rss int64
	}
	var changes []change
	res := &j.res
	for _, l := range j.lives {
		res.RSSBytes = max(res.RSSBytes, l.peak.rss)
		res.SizeBytes = max(res.SizeBytes, l.peak.size)
		changes = append(changes, change{l.born, l.peak.rss}, change{l.died, -l.peak.rss})
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at - b.at })
	sum := int64(0)
	for _, c := range changes {
		sum += c.rss
		res.RSSSumBytes = max(res.RSSSumBytes, sum)
	}
	res.Processes = len(j.lives)
}

func ptrace(request, pid int, data uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
