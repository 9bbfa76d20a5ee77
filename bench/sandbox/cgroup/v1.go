package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// slack is what a group may have beyond its bound while it is being ended.
const slack = 64 << 20

// find1 makes this process's folders in two hierarchies of version 1.
func find1(memory, pids string) (*Host, error) {
	if memory == "" || pids == "" {
		return nil, errors.New("there is neither cgroup v2 nor v1 with memory and pids")
	}
	h := &Host{version: 1}
	for _, parent := range []string{climb(memory, "memory.limit_in_bytes"), climb(pids, "pids.max")} {
		f, err := folder(parent)
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("cgroup v1: %w; only root may make groups there", err)
		}
		h.folders = append(h.folders, f)
	}
	return h, nil
}

// climb goes up from a group for as long as it sets no bound: nobody is deceived
// if groups are made there instead, and processes that come and go with groups of
// their own, like those of terminals, find what others of them have left.
func climb(dir, file string) string {
	for {
		text, err := os.ReadFile(filepath.Join(dir, file))
		value := strings.TrimSpace(string(text))
		n, notANumber := strconv.ParseInt(value, 10, 64)
		unbounded := value == "max" || notANumber == nil && n >= 1<<62
		up := filepath.Dir(dir)
		if _, above := os.Lstat(filepath.Join(up, "cgroup.procs")); err != nil || !unbounded || above != nil {
			return dir
		}
		dir = up
	}
}

func (g *Group) make1(memory, pids string, b Bounds) error {
	g.memory, g.pids = memory, pids
	g.limit++ // the runner's thread
	for _, dir := range []string{memory, pids} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		g.inside = append(g.inside, f)
	}
	g.bytes = b.MemoryBytes
	if err := g.setMemory(g.bytes); err != nil {
		return err
	}
	if err := write(strconv.Itoa(g.limit), pids, "pids.max"); err != nil {
		return err
	}
	if err := g.events.open(memory, "memory.oom_control", pids); err != nil {
		return err
	}
	return g.watch()
}

// setMemory sets the bound of memory alone and of memory and swap together, which
// must never be the lower one. A kernel that counts no swap has no such file.
func (g *Group) setMemory(bytes int64) error {
	value := strconv.FormatInt(bytes, 10)
	swap := func() error {
		err := write(value, g.memory, "memory.memsw.limit_in_bytes")
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := swap(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err := write(value, g.memory, "memory.limit_in_bytes"); err != nil {
		return err
	}
	return swap()
}

// watch has all of the group killed when memory runs out: by itself the kernel
// kills one process only.
func (g *Group) watch() error {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("make an event: %w", err)
	}
	event := os.NewFile(uintptr(fd), "event")
	control, err := os.Open(filepath.Join(g.memory, "memory.oom_control"))
	if err != nil {
		event.Close()
		return err
	}
	defer control.Close()
	if err := write(fmt.Sprintf("%d %d", fd, control.Fd()), g.memory, "cgroup.event_control"); err != nil {
		event.Close()
		return err
	}
	ended := make(chan struct{})
	g.stop = func() {
		event.Close()
		<-ended
	}
	go func() {
		defer close(ended)
		count := make([]byte, 8)
		for {
			if _, err := event.Read(count); err != nil {
				return
			}
			g.outOfMemory()
		}
	}()
	return nil
}

// outOfMemory kills the run that has used up the memory. That may have been
// an earlier one, by the time that the event is read.
func (g *Group) outOfMemory() {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, err := g.events.read()
	if err != nil || e.Memory <= g.begun.Memory && !g.events.underOOM() {
		return
	}
	// Without the bound the killing would race with forks.
	_ = write("0", g.pids, "pids.max")
	kill(g.pids)
	_ = write(strconv.Itoa(g.limit), g.pids, "pids.max")
	// The runner's thread is under the bound as well, and has to look after the
	// dead. What it needs would else be free only when the kernel has waited two
	// seconds for the one that it chose.
	g.raised = g.setMemory(g.bytes+slack) == nil
}

// lower takes back the slack.
func (g *Group) lower() error {
	if !g.raised {
		return nil
	}
	err := g.setMemory(g.bytes)
	if errors.Is(err, unix.EBUSY) {
		return nil // files left in memory; they are removed before another program's run
	}
	g.raised = err != nil
	return err
}
