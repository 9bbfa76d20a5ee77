package runner

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A process tells by its mark which job it belongs to. The mark is the soft limit
// of file locks, which Linux has ignored since 2.4.25 and which every process
// inherits, however it forks, daemonises, changes its name, session or
// environment. It can be read of a zombie too.
//
// The lower markBits are the job's number, the rest is the runner's.
const (
	rlimitLocks = 10
	markBits    = 16
)

// MaxJobs is how many jobs an order may have. A mark has room for their numbers
// and that of a ready command.
const MaxJobs = 1<<markBits - 2

// NewMark makes a mark for a runner.
func NewMark() uint64 { return rand.Uint64()>>2>>markBits<<markBits | 1<<61 }

// setMark marks what this process forks from now on.
func setMark(mark uint64) error {
	var l unix.Rlimit
	if err := unix.Prlimit(0, rlimitLocks, nil, &l); err != nil {
		return fmt.Errorf("mark the program: %w", err)
	}
	if l.Max < mark {
		return fmt.Errorf("mark the program: the hard limit of file locks is %d; start the bot with it unlimited (ulimit -Hx)", l.Max)
	}
	l.Cur = mark
	if err := unix.Prlimit(0, rlimitLocks, &l, nil); err != nil {
		return fmt.Errorf("mark the program: %w", err)
	}
	return nil
}

// markOf reads the mark of a process or thread, 0 if it is gone or another's.
func markOf(pid int) uint64 {
	var l unix.Rlimit
	if unix.Prlimit(pid, rlimitLocks, nil, &l) != nil {
		return 0
	}
	return l.Cur
}

// marked lists the processes whose mark, without its lower bits, is the one
// given. Zombies are only counted.
func marked(mark uint64, bits int) (live []int, zombies int) {
	for pid, p := range processes(func(pid int) bool { return pid != os.Getpid() && markOf(pid)>>bits == mark>>bits }) {
		if p.dead {
			zombies++
		} else {
			live = append(live, pid)
		}
	}
	return live, zombies
}

// KillMarked kills everything that a runner with this mark has started, also when
// the runner itself is dead and its programs have other parents.
func KillMarked(mark uint64) {
	// What was forked while the processes were listed is found by the next look.
	for range 1000 {
		live, _ := marked(mark, markBits)
		if len(live) == 0 {
			return
		}
		kill(live)
	}
}

func kill(pids []int) { signalAll(pids, syscall.SIGKILL) }

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s) // gone meanwhile
	}
}

// process is what is read of one in /proc.
type process struct {
	parent int
	dead   bool // not waited for yet
}

// processes lists those that want accepts; nil accepts all.
func processes(want func(pid int) bool) map[int]process {
	names, err := readNames("/proc", -1)
	if err != nil {
		return nil
	}
	procs := map[int]process{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || want != nil && !want(pid) {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // ended meanwhile
		}
		if p, ok := parseStat(stat); ok {
			procs[pid] = p
		}
	}
	return procs
}

// parseStat reads /proc/PID/stat: PID (NAME) STATE PARENT ..., where NAME is of
// the program's choice.
func parseStat(stat []byte) (process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	f := bytes.Fields(stat[end+1:])
	if len(f) < 2 {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	return process{parent, f[0][0] == 'Z' || f[0][0] == 'X'}, err == nil
}

// Descendants lists the live processes that stem from a process of this machine.
func Descendants(from int) []int {
	procs := processes(nil)
	var found []int
	for pid, p := range procs {
		if !p.dead && descends(procs, pid, from) {
			found = append(found, pid)
		}
	}
	return found
}

func descends(procs map[int]process, pid, from int) bool {
	for range procs { // no chain is longer, were it read while it changed
		p, ok := procs[pid]
		if !ok {
			return false
		}
		if p.parent == from {
			return true
		}
		pid = p.parent
	}
	return false
}

// others lists the live processes that stem from the runner: in a box all but
// itself, else its descendants.
func (h *host) others() []int {
	if !h.Boxed {
		return Descendants(os.Getpid())
	}
	var found []int
	for pid, p := range processes(nil) {
		if pid != os.Getpid() && !p.dead {
			found = append(found, pid)
		}
	}
	return found
}

// killAll kills every process of every job.
func (h *host) killAll() {
	if h.Boxed {
		// From the first process of a PID name space this reaches all others in
		// it and nothing else; also those that are being forked now.
		_ = syscall.Kill(-1, syscall.SIGKILL) // ESRCH: there is none
		return
	}
	kill(h.others())
}

// killDescendants ends everything that stems from the runner, which is about to
// end itself, in unsafe mode.
func (h *host) killDescendants() {
	for range 1000 {
		pids := h.others()
		if len(pids) == 0 {
			return
		}
		kill(pids)
	}
}
