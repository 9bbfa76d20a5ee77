// Package perf counts events of a process by the kernel's perf_event_open(2):
// instructions that it executes, on machines whose processor counts them.
//
//	Open(pid, Instructions)  -->  Counter.Read  -->  a number
//
// A counter counts from Open on what the process does in user mode, with all
// threads and processes that it starts from then on, whatever they execute and
// whether they outlive it. To count a program and nothing before it, open it while
// the program is stopped at its first instruction. Neither the process nor those
// that it starts can reach the counter or stop it. One that executes a file which it
// may not read is counted no further, as the kernel wants it.
//
// Counts are nearly exact: interrupts and page faults add some hundred
// instructions here and there, so that two runs differ by less than a thousandth.
//
// What the tests try is this mechanism with PageFaults, which the kernel counts
// itself and virtual machines have, too. Instructions differs by the two numbers of
// the event and has no test where the machine has no hardware counter.
package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Event is what is counted: type and config of struct perf_event_attr.
type Event struct {
	Type   uint32
	Config uint64
}

// Events.
var (
	Instructions = Event{unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_INSTRUCTIONS}
	PageFaults   = Event{unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_PAGE_FAULTS}
)

// paranoid is the kernel's setting of who may count.
const paranoid = "/proc/sys/kernel/perf_event_paranoid"

// Counter is one that counts. It is closed on exec.
type Counter struct {
	fd int
}

// Open starts to count. pid 0 is the calling thread, for a look whether the machine
// can. The error says why it cannot and what to do.
func Open(pid int, e Event) (*Counter, error) {
	attr := unix.PerfEventAttr{
		Type: e.Type, Config: e.Config,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		// Pinned: a counter that others share would only be estimated.
		Bits: unix.PerfBitInherit | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv | unix.PerfBitPinned,
	}
	attr.Size = uint32(unsafe.Sizeof(attr))
	for {
		switch fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err {
		case nil:
			return &Counter{fd}, nil
		case unix.EINTR:
		default:
			return nil, explain(err)
		}
	}
}

// explain says in words why there is no counter.
func explain(err error) error {
	switch err {
	case unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP:
		return errors.New("this machine has no hardware counter")
	case unix.EACCES, unix.EPERM:
		text, readErr := os.ReadFile(paranoid)
		if readErr != nil {
			return fmt.Errorf("this machine does not allow perf_event_open: %w", err)
		}
		return fmt.Errorf("this machine does not allow perf_event_open: %w; kernel.perf_event_paranoid is %s, allow it with 2 or less",
			err, strings.TrimSpace(string(text)))
	case unix.EBUSY:
		return fmt.Errorf("the hardware counters are in use by another program (perf_event_open: %w)", err)
	}
	return fmt.Errorf("perf_event_open: %w", err)
}

// errShared says that the processor counted something else for a while.
var errShared = errors.New("the hardware counter was in use by another program for a while")

// Read gives the count so far. Processes that have not ended yet are counted up to
// now.
func (c *Counter) Read() (int64, error) {
	var buf [24]byte
	n, err := unix.Read(c.fd, buf[:])
	for err == syscall.EINTR {
		n, err = unix.Read(c.fd, buf[:])
	}
	if err != nil {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return decode(buf[:n])
}

// decode takes apart what the kernel says of a counter: the count, how long it was
// to count and how long it did, in ns. It says nothing of one that it had to give up.
func decode(b []byte) (int64, error) {
	if len(b) < 24 {
		return 0, errShared
	}
	enabled, running := binary.NativeEndian.Uint64(b[8:]), binary.NativeEndian.Uint64(b[16:])
	if running < enabled-enabled/1000 {
		return 0, errShared
	}
	return int64(binary.NativeEndian.Uint64(b)), nil
}

// Close ends the counter.
func (c *Counter) Close() error { return unix.Close(c.fd) }
