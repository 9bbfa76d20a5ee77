package cgroup

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Events counts how often bounds were hit.
type Events struct {
	Memory    int64 // processes killed for want of memory
	Processes int64 // forks refused
}

// events are the files in which the kernel counts. They stay open: to open them
// for each run took a tenth of the time of a run of true.
type events struct {
	memory, pids int // descriptors
}

// noEvents has no file yet.
var noEvents = events{-1, -1}

// open opens the files of a group's folders; memoryFile is the one that
// counts kills.
func (e *events) open(memory, memoryFile, pids string) error {
	for _, f := range []struct {
		fd   *int
		name string
	}{{&e.memory, filepath.Join(memory, memoryFile)}, {&e.pids, filepath.Join(pids, "pids.events")}} {
		fd, err := unix.Open(f.name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		*f.fd = fd
	}
	return nil
}

func (e events) read() (Events, error) {
	memory, err := text(e.memory)
	if err != nil {
		return Events{}, err
	}
	pids, err := text(e.pids)
	return Events{counter(memory, "oom_kill"), counter(pids, "max")}, err
}

// underOOM says that the kernel is about to kill for want of memory; version 1
// tells.
func (e events) underOOM() bool {
	memory, err := text(e.memory)
	return err == nil && counter(memory, "under_oom") > 0
}

func (e *events) close() {
	for _, fd := range []int{e.memory, e.pids} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	*e = noEvents
}

// text reads what one of the files says now.
func text(fd int) (string, error) {
	var buf [1024]byte // the largest of them has some 100 bytes
	n, err := unix.Pread(fd, buf[:], 0)
	if err != nil {
		return "", fmt.Errorf("read what the cgroup counted: %w", err)
	}
	return string(buf[:n]), nil
}

// counter finds one line of NAME VALUE; 0 if it is not there.
func counter(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64) // the kernel's own number
			return n
		}
	}
	return 0
}
