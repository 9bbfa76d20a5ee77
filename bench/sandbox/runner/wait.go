package runner

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/mark"
)

// errNoChild says that there is nothing to wait for.
var errNoChild = errors.New("no child")

// siginfo is what waitid fills in, on 64-bit machines.
type siginfo struct {
	signo, errno, code int32
	_                  int32
	pid                int32
	uid                uint32
	status             int32
	_                  [128 - 28]byte
}

// ended says that the process has ended, and not only stopped.
func (s *siginfo) ended() bool {
	const exited, killed, dumped = 1, 2, 3
	return s.code == exited || s.code == killed || s.code == dumped
}

func waitid(kind, id int, info *siginfo, options int) syscall.Errno {
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, uintptr(kind), uintptr(id), uintptr(unsafe.Pointer(info)), uintptr(options), 0, 0)
	return errno
}

// takeStop consumes the stop of a traced process; it fails if a SIGKILL has taken
// the process away meanwhile. What has ended stays as it is.
func takeStop(pid int, info *siginfo) bool {
	*info = siginfo{}
	return waitid(unix.P_PID, pid, info, unix.WSTOPPED|unix.WNOHANG|unix.WALL) == 0 && info.pid != 0
}

// next waits for one thing that happens to a process and books it; with poll it
// does not wait, and says whether something had happened.
func (b *batch) next(poll bool) (bool, error) {
	for {
		// A zombie is looked at before it is gone.
		options := unix.WEXITED | unix.WNOWAIT | unix.WALL
		if poll || b.unsettled {
			options |= unix.WNOHANG
		}
		var info siginfo
		errno := waitid(unix.P_ALL, 0, &info, options)
		now := time.Now()
		pid := int(info.pid)
		switch {
		case errno == syscall.EINTR:
		case b.unsettled && (errno == syscall.ECHILD || errno == 0 && pid == 0):
			return true, b.settleAll()
		case errno == syscall.ECHILD:
			return false, errNoChild
		case errno != 0:
			return false, fmt.Errorf("wait for the program: %w", errno)
		case pid == 0:
			return false, nil
		case info.ended():
			return true, b.reap(pid, now)
		case takeStop(pid, &info):
			b.trace.stopped(pid, int(info.status), b.jobOf)
			return true, nil
		}
	}
}

// jobOf tells whose process or thread pid is; nil if nobody's.
func (b *batch) jobOf(pid int) *job {
	if j := b.mains[pid]; j != nil {
		return j
	}
	if len(b.live) == 1 {
		return b.live[0]
	}
	own := mark.Of(pid)
	for _, j := range b.live {
		if j.mark == own {
			return j
		}
	}
	return nil
}

// transferred tells how many bytes a process that has ended and the children it
// had waited for have read and written: 0 for what is not ours to count, -1 if
// the kernel does not say.
func (b *batch) transferred(pid int) (read, written int64) {
	p, traced := b.trace.ended(pid)
	switch {
	case b.trace.used && b.mains[pid] == nil && !isChild(pid):
		return 0, 0
	case traced:
		return p.read, p.written
	}
	return transferred(pid) // of a zombie only root may know
}

// reap takes the end of a process into the books.
func (b *batch) reap(pid int, now time.Time) error {
	j := b.jobOf(pid)
	read, written := b.transferred(pid)
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, unix.WALL, nil); err == nil {
			break
		} else if err != syscall.EINTR {
			return fmt.Errorf("wait for the program: %w", err)
		}
	}
	var all syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &all); err != nil {
		return fmt.Errorf("read resource usage: %w", err)
	}
	last := b.spent
	b.spent = all
	b.trace.gone(pid)
	if j == nil {
		return nil
	}
	// What was added is nothing for a thread, or a process that has another
	// parent: this adds it to its own when it waits for it.
	u := &j.usage
	u.user += time.Duration(all.Utime.Nano() - last.Utime.Nano())
	u.sys += time.Duration(all.Stime.Nano() - last.Stime.Nano())
	u.faults += all.Minflt - last.Minflt
	u.majorFaults += all.Majflt - last.Majflt
	u.voluntary += all.Nvcsw - last.Nvcsw
	u.unasked += all.Nivcsw - last.Nivcsw
	u.readBlocks += all.Inblock - last.Inblock
	u.outBlocks += all.Oublock - last.Oublock
	u.read += max(0, read)
	u.written += max(0, written)
	u.noBytes = u.noBytes || read < 0

	b.mu.Lock()
	defer b.mu.Unlock()
	if pid == j.pid && !j.ended {
		j.ended = true
		delete(b.mains, pid)
		if j.timer != nil && !j.stopping {
			j.timer.Stop()
		}
		j.res.Wall = j.before + now.Sub(j.begin)
		if j.limit == "" {
			j.res.Status, j.res.Signal = ending(j.Args, ws)
			if j.stopping && told(j.res) {
				j.res.Status, j.res.Signal = 0, ""
			}
		}
	} else if j.ended && j.Background {
		j.res.Wall = j.before + now.Sub(j.begin) // a server that detached itself
	}
	b.unsettled = b.unsettled || j.ended
	return nil
}

// told says that a result is that of a program which ended because it was told to.
func told(r Result) bool {
	return r.Signal == "SIGTERM" || r.Signal == "SIGKILL" || r.Status == 128+int(syscall.SIGTERM)
}

// settleAll settles the jobs whose program has ended, when nothing else is to be
// booked.
func (b *batch) settleAll() error {
	b.unsettled = false
	for _, j := range slices.Clone(b.live) {
		if !j.ended {
			continue
		}
		b.mu.Lock()
		over := b.settle(j)
		b.mu.Unlock()
		if over {
			b.fill(j)
		}
	}
	return nil
}

// settle sees to what is left of a job whose program has ended, and says whether
// that is nothing. It is called again when something more of it has ended.
func (b *batch) settle(j *job) bool {
	if b.isThere(j) {
		switch {
		case j.stopping && j.patient:
		case j.Background && !j.stopping && j.limit == "" && j.res.Status == 0:
			// It is a daemon, and runs on.
		case len(b.live) == 1:
			if !j.swept && j.limit == "" && !j.stopping {
				j.res.Left = len(b.others())
			}
			b.killAll()
			j.swept = true
		default:
			live, _ := mark.List(j.mark, 0)
			if !j.swept && j.limit == "" && !j.stopping {
				j.res.Left = len(live)
			}
			mark.Signal(live, syscall.SIGKILL)
			j.swept = true
		}
		return false
	}
	j.over = true
	if j.timer != nil {
		j.timer.Stop()
	}
	b.live = slices.DeleteFunc(b.live, func(other *job) bool { return other == j })
	return true
}

// isThere says that there is a process of a job whose program has ended.
func (b *batch) isThere(j *job) bool {
	if len(b.live) > 1 {
		live, zombies := mark.List(j.mark, 0)
		return len(live)+zombies > 0
	}
	// Everything there is must be this job's, and a child of ours by now or a
	// descendant of one.
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return err != syscall.ECHILD
}
