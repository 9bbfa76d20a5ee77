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
	// mostNames is the same for the number of files, of which many file systems have
	// no end.
	mostNames = 100_000
	// lookInterval is how often it is looked at how much is left.
	lookInterval = 200 * time.Millisecond
)

// room is a folder of the host that programs may write to. The size of /tmp is
// the kernel's to bound; how much is written here the bot watches.
type room struct {
	Mount
	reserve supply
	before  supply // what was left when the run began
	scant   supply // what was left when that was found to be less than the reserve
}

// supply is what a file system has to give.
type supply struct {
	bytes int64
	files int64
}

// endless is that of one that is not known to come to an end.
const endless = 1<<63 - 1

func (a supply) less(b supply) bool { return a.bytes < b.bytes || a.files < b.files }

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
		reserve := supply{min(mostReserve, int64(st.Blocks)*st.Bsize/50), min(mostNames, int64(st.Files)/50)}
		rooms = append(rooms, room{Mount: m, reserve: reserve})
	}
	return rooms, nil
}

// left is what can still be written; all there is when the folder is gone, which is
// for others to say.
func (m *room) left() supply {
	var st unix.Statfs_t
	if err := unix.Statfs(m.Host, &st); err != nil {
		return supply{endless, endless}
	}
	left := supply{int64(st.Bavail) * st.Bsize, int64(st.Ffree)}
	if st.Files == 0 {
		left.files = endless
	}
	return left
}

// scarce gives the first file system with less than its reserve, nil if none has.
func (r *Runner) scarce() *room {
	for i := range r.rooms {
		m := &r.rooms[i]
		if left := m.left(); left.less(m.reserve) {
			m.scant = left
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
		if m.before.less(m.reserve) {
			return fmt.Errorf("less than %s is left on the file system of %s; make room there", m.short(m.before), m.Host)
		}
	}
	return nil
}

// short names the reserve that what is left is less than.
func (m *room) short(left supply) string {
	if left.bytes < m.reserve.bytes {
		return runner.Size(m.reserve.bytes)
	}
	return fmt.Sprintf("room for %d files", m.reserve.files)
}

// nameRoom says in the result that the program has filled m, where less than the
// reserve is left. If it was not this program that did, that is our problem.
func (m *room) nameRoom(res *Result, began time.Time) error {
	// The kernel sets these times by a clock that may lag by some milliseconds.
	written := writtenSince(m.Host, began.Add(-time.Second))
	others := written.files < (m.before.files-m.reserve.files)/2
	if m.scant.bytes < m.reserve.bytes {
		others = written.bytes < (m.before.bytes-m.reserve.bytes)/2
	}
	if others {
		return fmt.Errorf("the file system of %s is full, and not by this program; make room there", m.Host)
	}
	res.Limit = "disk full: less than " + m.short(m.scant) + " left in " + m.Inside
	res.Status, res.Signal = -1, ""
	return nil
}

// writtenSince sums up the files in dir that were changed since then, and what they
// hold: no program can set that time. What cannot be looked at does not count.
func writtenSince(dir string, since time.Time) (written supply) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // gives no error
		if err != nil {
			return fs.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if st := info.Sys().(*syscall.Stat_t); !time.Unix(st.Ctim.Unix()).Before(since) {
			written.bytes += st.Blocks * 512
			written.files++
		}
		return nil
	})
	return written
}
