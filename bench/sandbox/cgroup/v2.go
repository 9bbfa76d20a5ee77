package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const howToDelegate = "start the bot as a service with Delegate=yes, or by systemd-run --user --scope -p Delegate=yes"

// find2 makes this process's folder in the hierarchy of version 2. A group with
// processes in it cannot have bounded groups below it. So the parent is this
// process's group if it was handed over to it alone, and this process moves one
// down; else the nearest group above that has bounded groups already and that
// this user may write to.
func find2(own string) (*Host, error) {
	if own == "" {
		return nil, errors.New("there is no cgroup v2")
	}
	// Whether it is the kernel's: a folder of that name could be anything.
	var fs unix.Statfs_t
	if err := unix.Statfs(own, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return nil, fmt.Errorf("cgroup v2: %s is no cgroup", own)
	}
	if !hasBoth(own, "cgroup.controllers") {
		return nil, fmt.Errorf("cgroup v2: %s has no controllers memory and pids; %s", own, howToDelegate)
	}
	if delegated(own) {
		if err := moveDown(own); err == nil {
			if f, err := folder2(own); err == nil {
				return &Host{version: 2, folders: []*os.File{f}}, nil
			}
		}
	}
	refused := error(unix.EACCES)
	for dir := own; hasBoth(dir, "cgroup.controllers"); dir = filepath.Dir(dir) {
		// Whoever starts a process in another group must be allowed to move it
		// between the two: to write to the nearest group above both.
		if !hasBoth(dir, "cgroup.subtree_control") || unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) != nil {
			continue
		}
		f, err := folder2(dir)
		if err == nil {
			return &Host{version: 2, folders: []*os.File{f}}, nil
		}
		refused = err
	}
	return nil, fmt.Errorf("cgroup v2: make groups at %s: %w; %s", own, refused, howToDelegate)
}

// folder2 is folder for one with bounded groups below it.
func folder2(parent string) (*os.File, error) {
	f, err := folder(parent)
	if err != nil {
		return nil, err
	}
	if err := write("+memory +pids", f.Name(), "cgroup.subtree_control"); err != nil {
		_ = unix.Rmdir(f.Name())
		f.Close()
		return nil, err
	}
	return f, nil
}

func hasBoth(dir, file string) bool {
	text, err := os.ReadFile(filepath.Join(dir, file))
	names := strings.Fields(string(text))
	return err == nil && slices.Contains(names, "memory") && slices.Contains(names, "pids")
}

// delegated says that the service manager handed the group over.
func delegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		buf := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, buf); err == nil && string(buf[:n]) == "1" {
			return true
		}
	}
	return false
}

// moveDown takes this process to a group of its own below, unless it shares its
// group with others, and lets the groups below be bounded.
func moveDown(own string) error {
	pids := members(own)
	if len(pids) != 1 || pids[0] != os.Getpid() {
		return fmt.Errorf("%s holds other processes too", own)
	}
	dir := filepath.Join(own, "bot")
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := write(strconv.Itoa(os.Getpid()), dir, "cgroup.procs"); err != nil {
		return err
	}
	return write("+memory +pids", own, "cgroup.subtree_control")
}

// make2 makes a folder with two groups: one for the runner, one for programs.
// Their folder and the latter belong to uid as far as is needed to start a
// process of the one group in the other; the bounds do not.
func (g *Group) make2(outer string, uid int, b Bounds) error {
	g.outer = outer
	g.memory = filepath.Join(outer, "programs")
	g.pids = g.memory
	runner := filepath.Join(outer, "runner")
	if err := os.Mkdir(outer, 0o755); err != nil {
		return err
	}
	if err := write("+memory +pids", outer, "cgroup.subtree_control"); err != nil {
		return err
	}
	for _, dir := range []string{runner, g.memory} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	for _, s := range []struct{ file, value string }{
		{"memory.max", strconv.FormatInt(b.MemoryBytes, 10)},
		{"memory.swap.max", "0"},
		{"memory.oom.group", "1"},
		{"pids.max", strconv.Itoa(b.Processes)},
	} {
		err := write(s.value, g.memory, s.file)
		if err != nil && !(s.file == "memory.swap.max" && errors.Is(err, os.ErrNotExist)) { // no swap
			return err
		}
	}
	for _, dir := range []string{outer, g.memory} {
		if err := os.Chown(filepath.Join(dir, "cgroup.procs"), uid, -1); err != nil {
			return err
		}
	}
	var err error
	if g.runner, err = os.Open(runner); err != nil {
		return err
	}
	programs, err := os.Open(g.memory)
	if err != nil {
		return err
	}
	g.inside = []*os.File{programs}
	return g.events.open(g.memory, "memory.events", g.pids)
}
