// Package cgroup bounds all processes of a box together: their memory, what
// they keep in files in memory included, and their number.
//
//	Find() -> Host     where this process may make groups: version 2, else 1
//	Host.New -> Group  one for each box, with its bounds
//	Group.Inside       what the runner in the box needs to start programs in it
//	Group.Begin, End   which bounds were hit in between
//
// The runner itself stays outside the bounds, so that no program can have it
// killed. Under version 2 it starts programs by CLONE_INTO_CGROUP in a group
// beside its own; under version 1 the one thread that starts programs is alone
// in the group, where threads of one process may be apart.
//
// When memory runs out everything in the group is killed, not just what the
// kernel thinks the largest: half a program gives no figures.
//
// Groups lie below that of this process, or above where that bounds nothing, so
// that its own bounds hold for boxes too; or beside it where version 2 allows no
// groups below a process. They are removed
// by Remove and Close. Those of a process that was killed are removed by the next
// Find in the same place: each process holds a lock on the folder of its groups.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/claim"
)

// prefix begins the names of all folders made here.
const prefix = "patchbench-"

// Bounds of a group. Both must be positive.
type Bounds struct {
	MemoryBytes int64
	Processes   int // and threads
}

// Host is where groups are made. It may be used by several goroutines at once.
type Host struct {
	version int
	// folders are where this process makes groups, one of each hierarchy:
	// memory and pids of version 1, or the only one of version 2.
	folders []*os.File

	mu     sync.Mutex
	next   int
	groups int // that there are
	closed bool
}

// Group is the bounds of one box.
type Group struct {
	host   *Host
	memory string // the folder that has the bound of memory
	pids   string // that of processes; the same under version 2
	outer  string // version 2: the folder around it
	limit  int    // what pids.max is
	runner *os.File
	inside []*os.File
	events events
	stop   func() // version 1: ends the watch for want of memory

	mu     sync.Mutex
	begun  Events // the counters at Begin
	bytes  int64  // version 1: the bound of memory
	raised bool   // and whether there is more for the time being
}

// Find looks for a place where this process may make groups, and clears away
// those of processes that have ended. The error says what is missing and what
// to do.
func Find() (*Host, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	at := ownFolders(string(mounts), string(own))
	h, err2 := find2(at["unified"])
	if err2 == nil {
		return h, nil
	}
	h, err1 := find1(at["memory"], at["pids"])
	if err1 == nil {
		return h, nil
	}
	if at["memory"] != "" {
		return nil, err1
	}
	return nil, err2
}

// ownFolders reads which folders of the cgroup file systems are this process's
// groups, by the name of the controller; "unified" is version 2.
func ownFolders(mountinfo, cgroup string) map[string]string {
	type mount struct{ root, point string }
	mounts := map[string]mount{}
	for line := range strings.Lines(mountinfo) {
		// 36 35 0:33 ROOT POINT rw,... optional fields - TYPE SOURCE OPTIONS
		f := strings.Fields(line)
		before, after, ok := strings.Cut(line, " - ")
		g := strings.Fields(after)
		if !ok || len(g) < 3 || len(strings.Fields(before)) < 6 {
			continue
		}
		m := mount{unescape(f[3]), unescape(f[4])}
		switch g[0] {
		case "cgroup2":
			mounts["unified"] = m
		case "cgroup":
			for _, c := range strings.Split(g[2], ",") {
				mounts[c] = m
			}
		}
	}
	at := map[string]string{}
	for line := range strings.Lines(cgroup) {
		// 4:memory:/user.slice or 0::/user.slice
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		names := strings.Split(f[1], ",")
		if f[0] == "0" {
			names = []string{"unified"}
		}
		for _, c := range names {
			m, ok := mounts[c]
			if !ok {
				continue
			}
			// Of a mount that shows a part only, the path is from the whole.
			below, within := strings.CutPrefix(f[2], strings.TrimSuffix(m.root, "/"))
			if !within || strings.Contains(below, "..") {
				continue
			}
			at[c] = filepath.Join(m.point, below)
		}
	}
	return at
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	for _, c := range []string{" ", "\t", "\n", "\\"} {
		s = strings.ReplaceAll(s, fmt.Sprintf("\\%03o", c[0]), c)
	}
	return s
}

// Name is "cgroup v2" or "cgroup v1".
func (h *Host) Name() string { return "cgroup v" + strconv.Itoa(h.version) }

// New makes a group. The runner's process is to be started in Group.Runner, if
// that is not nil, under uid.
func (h *Host) New(uid int, b Bounds) (*Group, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, errors.New("bound the box: the sandbox is closed")
	}
	h.next++
	name := strconv.Itoa(h.next)
	h.groups++
	h.mu.Unlock()
	g := &Group{host: h, limit: b.Processes, events: noEvents}
	var err error
	if h.version == 2 {
		err = g.make2(filepath.Join(h.folders[0].Name(), name), uid, b)
	} else {
		err = g.make1(filepath.Join(h.folders[0].Name(), name), filepath.Join(h.folders[1].Name(), name), b)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bound the box: %w", err), g.Remove())
	}
	return g, nil
}

// Close removes this process's folders, at once or with the last of the groups.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.clear()
}

// clear is called with mu held.
func (h *Host) clear() error {
	if !h.closed || h.groups > 0 {
		return nil
	}
	var errs []error
	for _, f := range h.folders {
		errs = append(errs, remove(f.Name()), f.Close())
	}
	h.folders = nil
	return errors.Join(errs...)
}

// Runner is the folder of the group in which the runner is to be started; nil
// when it may stay where this process is.
func (g *Group) Runner() *os.File { return g.runner }

// Inside are open files for the runner. Under version 1 (Enter is true) the
// thread that starts programs writes 0 to each of them; under version 2 there is
// one, the folder in which programs are started.
func (g *Group) Inside() (files []*os.File, enter bool) { return g.inside, g.host.version == 1 }

// Begin is to be called before a run.
func (g *Group) Begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.lower(); err != nil {
		return fmt.Errorf("bound the box: %w", err)
	}
	var err error
	g.begun, err = g.events.read()
	return err
}

// End tells which bounds were hit since Begin.
func (g *Group) End() (Events, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, err := g.events.read()
	return Events{now.Memory - g.begun.Memory, now.Processes - g.begun.Processes}, err
}

// Remove kills what is left in the group and removes it. It is to be called once.
func (g *Group) Remove() error {
	if g.stop != nil {
		g.stop()
	}
	for _, f := range append(g.inside, g.runner) {
		if f != nil {
			f.Close()
		}
	}
	// A run may just be ending: its number of a closed file could be another's.
	g.mu.Lock()
	g.events.close()
	g.mu.Unlock()
	var errs []error
	for _, dir := range []string{g.outer, g.memory, g.pids} {
		if dir != "" {
			errs = append(errs, remove(dir))
		}
	}
	g.host.mu.Lock()
	defer g.host.mu.Unlock()
	g.host.groups--
	return errors.Join(append(errs, g.host.clear())...)
}

// remove kills what is in a group and the groups below it, and removes them all.
func remove(dir string) error {
	// A process that was killed leaves its group when it has let go of its
	// memory, which may take a while if it held much.
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := removeOnce(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", dir, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func removeOnce(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeOnce(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	err = unix.Rmdir(dir)
	if err == unix.EBUSY {
		kill(dir)
	}
	return err
}

// kill kills all processes of one group. It may be called when some are being
// forked: whoever calls it again kills those.
func kill(dir string) {
	// A number may belong to another process by the time of the signal. One that
	// is opened, and then seen in the group, is one of the group's.
	open := map[int]int{}
	for _, pid := range members(dir) {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			open[pid] = fd
		}
	}
	for _, pid := range members(dir) {
		if fd, ok := open[pid]; ok {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // gone meanwhile
		}
	}
	for _, fd := range open {
		unix.Close(fd)
	}
}

// members lists the processes of a group; under version 1 its threads, and
// those that are no process's first cannot be opened as one.
func members(dir string) []int {
	text, err := os.ReadFile(filepath.Join(dir, "tasks"))
	if errors.Is(err, os.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	}
	if err != nil {
		return nil // removed meanwhile
	}
	var pids []int
	for _, f := range strings.Fields(string(text)) {
		// 0 is a process of another PID name space, which we could not kill.
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// folder removes what processes that have ended left below parent, and makes a folder
// for this process's groups.
func folder(parent string) (*os.File, error) {
	claim.Sweep(parent, prefix, remove)
	return claim.New(parent, prefix)
}

// write sets a file of a group.
func write(value string, path ...string) error {
	name := filepath.Join(path...)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %s to %s: %w", value, name, errors.Unwrap(err))
	}
	return nil
}
