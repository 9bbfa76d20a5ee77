package runner

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// terminals are files of a box that programs own and nothing empties.
var terminals = []string{"/dev/pts", "/dev/pts/ptmx"}

// box is what of a box programs can change beside files and processes, and
// nothing sets back. Where it looks otherwise than at the start the box is worn.
type box struct {
	owned   []string // files whose modes and attributes programs may set
	session *os.File // how nice it is, for kernels that schedule by sessions; nil for none
	sockets *os.File // nil for no network
	fresh   string
}

func newBox(empty []string) *box {
	b := &box{owned: slices.Concat(empty, terminals)}
	// Kernels are built without either.
	b.session, _ = os.Open("/proc/self/autogroup")
	b.sockets, _ = os.Open("/proc/self/net/sockstat")
	b.fresh = b.look()
	return b
}

// worn says that the next program would not find the box as the first one did.
func (b *box) worn() bool { return b.look() != b.fresh }

// look tells all that may be worn. It costs no more than a few system calls, since
// it is done after each run.
func (b *box) look() string {
	var s strings.Builder
	for _, name := range b.owned {
		var st unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, name, 0, unix.STATX_MODE|unix.STATX_UID|unix.STATX_GID, &st)
		// Attributes of any kind: lists of permissions are among them.
		size, _ := unix.Listxattr(name, nil) // not every file system has them
		fmt.Fprintf(&s, "%s %o %d %d %x %d %v\n", name, st.Mode, st.Uid, st.Gid, st.Attributes, max(0, size), err)
	}
	s.Write(again(b.session))
	if fields := bytes.Fields(again(b.sockets)); len(fields) > 0 {
		// A closed connection keeps its port for a minute.
		fmt.Fprintf(&s, "%s %s\n", after(fields, "TCP:", "inuse"), after(fields, "TCP:", "tw"))
	}
	return s.String()
}

// again reads a small file of /proc from its beginning; nil if there is none.
func again(f *os.File) []byte {
	if f == nil {
		return nil
	}
	var buf [1024]byte
	n, _ := f.ReadAt(buf[:], 0) // io.EOF behind what it says
	return buf[:n]
}

// after gives the field behind the first one called name that follows another.
func after(fields [][]byte, line, name string) []byte {
	for i, found := 0, false; i+1 < len(fields); i++ {
		found = found || string(fields[i]) == line
		if found && string(fields[i]) == name {
			return fields[i+1]
		}
	}
	return nil
}

// touch sets the times of the files that programs own, in which one could leave
// a word for the next.
func (b *box) touch() {
	for _, name := range b.owned {
		// Some kernels own those of terminals themselves.
		_ = unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0)
	}
}
