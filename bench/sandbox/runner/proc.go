package runner

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// isChild says that pid is a process and ours, not one or a thread that is only
// traced: its parent has not been told of its end yet.
func isChild(pid int) bool {
	var buf [4096]byte
	text, err := readSmall("/proc/"+strconv.Itoa(pid)+"/status", buf[:])
	if err != nil {
		return false
	}
	process, _ := field(text, "\nTgid:")
	parent, _ := field(text, "\nPPid:")
	return int(process) == pid && int(parent) == os.Getpid()
}

// transferred reads the bytes that a process has read and written; -1 if they are
// not told.
func transferred(pid int) (read, written int64) {
	var buf [512]byte
	text, err := readSmall("/proc/"+strconv.Itoa(pid)+"/io", buf[:])
	if err != nil {
		return -1, -1
	}
	read, ok := field(text, "rchar:")
	written, also := field(text, "\nwchar:")
	if !ok || !also {
		return -1, -1
	}
	return read, written
}

// field reads the number behind a name in /proc/PID/status.
func field(text []byte, name string) (int64, bool) {
	_, rest, ok := bytes.Cut(text, []byte(name))
	if !ok {
		return 0, false
	}
	rest = bytes.TrimLeft(rest, " \t")
	var n int64
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + int64(rest[digits]-'0')
		digits++
	}
	return n, digits > 0
}

// pressure reads for how long, in ns, some task waited for a CPU since the
// machine started; -1 if the kernel does not count.
func pressure() int64 {
	var buf [512]byte
	text, err := readSmall("/proc/pressure/cpu", buf[:])
	total, ok := field(text, " total=") // the first line's: some
	if err != nil || !ok {
		return -1
	}
	return total * 1000 // the kernel counts us
}

// readSmall reads what fits into buf of a file in /proc, with as few system calls
// as can be.
func readSmall(name string, buf []byte) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}
