package runner

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// traceOptions: new processes and threads are followed from their first
// instruction, every one stops once more before its memory goes, and none
// outlives the runner.
const traceOptions = unix.PTRACE_O_TRACEEXIT | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL

// trace follows a program and its descendants to read their peaks.
//
// At the exit stop of a thread the address space is still there, and its
// VmHWM and VmPeak with it. The last thread's is the peak of the process, so all
// are read and the largest counts. ru_maxrss is of no use: it is inherited over
// fork and exec, so that the runner's own memory would show.
type trace struct {
	pid      int
	starting bool         // the SIGCONT of follow is still to come
	open     map[int]peak // by process
	largest  peak
	sum      int64
	count    int
	stops    int
	buf      [8 << 10]byte
}

type peak struct{ rss, size int64 } // bytes

// follow begins to trace a child that was started with PTRACE_TRACEME. It must
// run on the thread that started it.
//
// Only a tracer that came by PTRACE_SEIZE can leave a program stopped by SIGSTOP
// in peace, and PTRACE_SEIZE needs a process that runs already. So the child
// stops itself at its first instruction as traced by TRACEME, is let go with a
// SIGSTOP, and is seized while it cannot run.
//
// died is set when the child ended before its first instruction: its memory was
// not to be had, or it was killed.
func follow(pid int) (t *trace, died *syscall.WaitStatus, err error) {
	t = &trace{pid: pid, starting: true, open: map[int]peak{}}
	if died, err = t.waitStop(); died != nil || err != nil {
		return t, died, err
	}
	if err := ptrace(unix.PTRACE_DETACH, pid, uintptr(syscall.SIGSTOP)); err != nil && err != syscall.ESRCH {
		return nil, nil, fmt.Errorf("follow the program: let go: %w", err)
	}
	if err := ptrace(unix.PTRACE_SEIZE, pid, traceOptions); err != nil && err != syscall.ESRCH {
		return nil, nil, fmt.Errorf("follow the program: %w; allow ptrace on this machine (kernel.yama.ptrace_scope at most 1)", err)
	}
	if died, err = t.waitStop(); died != nil || err != nil {
		return t, died, err
	}
	// These fail only if it was killed, which the next wait tells.
	_ = syscall.Kill(pid, syscall.SIGCONT)
	_ = ptrace(unix.PTRACE_CONT, pid, 0)
	return t, nil, nil
}

func (t *trace) waitStop() (died *syscall.WaitStatus, err error) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(t.pid, &ws, unix.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, fmt.Errorf("follow the program: %w", err)
		case ws.Stopped():
			t.stops++
			return nil, nil
		default:
			return &ws, nil
		}
	}
}

// stopped handles one stop. Errors are not looked at: a process that a SIGKILL
// took away in between is reported as gone by the next wait.
func (t *trace) stopped(pid int, ws syscall.WaitStatus) {
	t.stops++
	signal := ws.StopSignal()
	switch event := int(ws) >> 16; event {
	case 0:
		if t.starting && pid == t.pid && signal == syscall.SIGCONT {
			t.starting = false
			signal = 0 // it was ours
		}
		_ = ptrace(unix.PTRACE_CONT, pid, uintptr(signal))
	case unix.PTRACE_EVENT_STOP:
		switch signal {
		case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
			// Stopped by the program's own doing: it stays so until a SIGCONT.
			_ = ptrace(unix.PTRACE_LISTEN, pid, 0)
		default:
			_ = ptrace(unix.PTRACE_CONT, pid, 0)
		}
	case unix.PTRACE_EVENT_EXIT:
		t.read(pid)
		_ = ptrace(unix.PTRACE_CONT, pid, 0)
	default: // a fork or clone: the new one reports by itself
		_ = ptrace(unix.PTRACE_CONT, pid, 0)
	}
}

// read notes the peaks of the process that the thread tid belongs to.
func (t *trace) read(tid int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/status", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	n, err := unix.Read(fd, t.buf[:])
	unix.Close(fd)
	if err != nil {
		return
	}
	text := t.buf[:n]
	process, ok := field(text, "\nTgid:")
	if !ok {
		return
	}
	var now peak
	now.rss, _ = field(text, "\nVmHWM:")
	now.size, _ = field(text, "\nVmPeak:")
	p := t.open[int(process)]
	t.open[int(process)] = peak{max(p.rss, now.rss<<10), max(p.size, now.size<<10)}
}

// field reads the number behind a name in /proc/PID/status.
func field(text []byte, name string) (int64, bool) {
	_, rest, ok := bytes.Cut(text, []byte(name))
	if !ok {
		return 0, false
	}
	rest = bytes.TrimLeft(rest, " \t")
	var n int64
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + int64(rest[digits]-'0')
		digits++
	}
	return n, digits > 0
}

// gone counts a process when it has ended. Threads that are not a process's
// first are in no map.
func (t *trace) gone(pid int) {
	p, ok := t.open[pid]
	if !ok {
		return
	}
	delete(t.open, pid)
	t.count++
	t.sum += p.rss
	t.largest.rss = max(t.largest.rss, p.rss)
	t.largest.size = max(t.largest.size, p.size)
}

func (t *trace) fill(res *Result) {
	for pid := range t.open {
		t.gone(pid)
	}
	res.RSSBytes, res.SizeBytes, res.RSSSumBytes = t.largest.rss, t.largest.size, t.sum
	res.Processes, res.Stops = t.count, t.stops
}

func ptrace(request, pid int, data uintptr) error {
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
