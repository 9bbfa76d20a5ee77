package sandbox

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/runner"
)

const (
	// mostReserve is what programs must leave of a file system of the host, or a
	// fiftieth of a small one: enough to end a run, to keep its record and for other
	// boxes to go on.
	mostReserve = 512 << 20
	// lookInterval is how often it is looked at how much is left.
	lookInterval = 200 * time.Millisecond
)

// room is a folder of the host that programs may write to. The size of /tmp is
// the kernel's to bound; how much is written here the bot watches.
type room struct {
	Mount
	reserve int64 // bytes
	before  int64 // what was left when the run began
}

// roomsOf lists the writable mounts of a box.
func roomsOf(b Box) ([]room, error) {
	var rooms []room
	for _, m := range b.Mounts {
		if !m.Write {
			continue
		}
		var st unix.Statfs_t
		if err := unix.Statfs(m.Host, &st); err != nil {
			return nil, fmt.Errorf("mount at %s: how much room is left: %w", m.Inside, err)
		}
		rooms = append(rooms, room{Mount: m, reserve: min(mostReserve, int64(st.Blocks)*st.Bsize/50)})
	}
	return rooms, nil
}

// left is how many bytes can still be written; all there are when the folder is
// gone, which is for others to say.
func (m *room) left() int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(m.Host, &st); err != nil {
		return 1<<63 - 1
	}
	return int64(st.Bavail) * st.Bsize
}

// scarce gives the first file system with less than its reserve, nil if none has.
func (r *Runner) scarce() *room {
	for i := range r.rooms {
		if m := &r.rooms[i]; m.left() < m.reserve {
			return m
		}
	}
	return nil
}

// enterRooms is to be called before a run. That room is scarce already is no
// fault of the program.
func (r *Runner) enterRooms() error {
	for i := range r.rooms {
		m := &r.rooms[i]
		m.before = m.left()
		if m.before < m.reserve {
			return fmt.Errorf("less than %s is left on the file system of %s; make room there", runner.Size(m.reserve), m.Host)
		}
	}
	return nil
}

// nameRoom says in the result that the program has filled m, where less than the
// reserve is left. If it was not this program that did, that is our problem.
func (m *room) nameRoom(res *Result, began time.Time) error {
	// The kernel sets these times by a clock that may lag by some milliseconds.
	if writtenSince(m.Host, began.Add(-time.Second)) < (m.before-m.reserve)/2 {
		return fmt.Errorf("the file system of %s is full, and not by this program; make room there", m.Host)
	}
	res.Limit = "disk full: less than " + runner.Size(m.reserve) + " left in " + m.Inside
	res.Status, res.Signal = -1, ""
	return nil
}

// writtenSince sums up what is held by the files in dir that were changed since
// then: no program can set that time. What cannot be looked at does not count.
func writtenSince(dir string, since time.Time) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // gives no error
		if err != nil {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if st := info.Sys().(*syscall.Stat_t); !time.Unix(st.Ctim.Unix()).Before(since) {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes
}
