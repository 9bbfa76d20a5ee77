// Package mark tells which job a process belongs to.
//
// Each process that a runner starts bears a mark, which is the soft limit of file
// locks: Linux has ignored it since 2.4.25, and every process inherits it, however
// it forks, daemonises, or changes its name, session or environment. It can be
// read of a zombie too. The lower Bits of a mark are the job's number, the rest is
// the runner's.
package mark

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

const rlimitLocks = 10

// Bits is how many of a mark's bits are the job's number.
const Bits = 16

// MaxJobs is how many jobs may be numbered beside one more, a ready command.
const MaxJobs = 1<<Bits - 2

// New makes a runner's part of marks.
func New() uint64 { return rand.Uint64()>>2>>Bits<<Bits | 1<<61 }

// Set marks what this process forks from now on.
func Set(mark uint64) error {
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

// Of reads the mark of a process or thread, 0 if it is gone or another's.
func Of(pid int) uint64 {
	var l unix.Rlimit
	if unix.Prlimit(pid, rlimitLocks, nil, &l) != nil {
		return 0
	}
	return l.Cur
}

// List finds the processes whose mark, without its lower bits, is the one given.
// Those that have ended and were not waited for are only counted.
func List(mark uint64, bits int) (live []int, zombies int) {
	for pid, p := range processes(func(pid int) bool { return pid != os.Getpid() && Of(pid)>>bits == mark>>bits }) {
		if p.dead {
			zombies++
		} else {
			live = append(live, pid)
		}
	}
	return live, zombies
}

// Kill kills everything that a runner with this mark has started, also when the
// runner itself is dead and its programs have other parents.
func Kill(mark uint64) {
	// What was forked while the processes were listed is found by the next look.
	for range 1000 {
		live, _ := List(mark, Bits)
		if len(live) == 0 {
			return
		}
		Signal(live, syscall.SIGKILL)
	}
}

// Signal sends a signal to each process that is still there.
func Signal(pids []int, s syscall.Signal) {
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
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what there is before an error counts
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

// All lists the live processes but this one: in a box that is what programs left.
func All() []int {
	var found []int
	for pid, p := range processes(nil) {
		if pid != os.Getpid() && !p.dead {
			found = append(found, pid)
		}
	}
	return found
}
