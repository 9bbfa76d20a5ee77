// Package sweep takes away what programs leave outside their processes: files in
// folders, and System V objects. It empties, and decides nothing.
package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Empty removes everything in dir and sets its mode. A program may have left what
// os.RemoveAll fails on: folders without permissions, or nested deeper than a path
// can say. So a folder's own folders are moved up before it is removed.
//
// It stays within dir's file system: what is mounted below is not the run's.
func Empty(dir string, mode os.FileMode) error {
	var top unix.Stat_t
	if err := unix.Lstat(dir, &top); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	// Programs own dir itself. Of a file system like mqueue the kernel does.
	if top.Mode&0o7777 != bits(mode) {
		if err := os.Chmod(dir, mode); err != nil && !errors.Is(err, os.ErrPermission) {
			return err
		}
	}
	if alone(dir) {
		return nil
	}
	moved := 0
	for {
		names, err := readNames(dir, 4096)
		if err != nil {
			return err
		}
		before := moved
		for _, name := range names {
			if err := remove(dir, top.Dev, filepath.Join(dir, name), &moved); err != nil {
				return err
			}
		}
		if len(names) < 4096 && moved == before {
			return nil
		}
	}
}

// bits is a mode as the kernel writes it.
func bits(mode os.FileMode) uint32 {
	b := uint32(mode.Perm())
	if mode&os.ModeSticky != 0 {
		b |= unix.S_ISVTX
	}
	return b
}

// alone says that dir is the only file of its file system, as one of a box nearly
// always is after a run.
func alone(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Type == unix.TMPFS_MAGIC && st.Files > 0 && st.Files-st.Ffree == 1
}

// remove removes one file, or one folder after moving its folders up to top.
func remove(top string, dev uint64, path string, next *int) error {
	if gone(path) {
		return nil
	}
	if err := open(path, dev); err != nil {
		return err
	}
	for {
		names, err := readNames(path, 4096)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return syscall.Rmdir(path)
		}
		for _, name := range names {
			child := filepath.Join(path, name)
			if gone(child) {
				continue
			}
			// Moving a folder changes its .. entry, which takes permission.
			if err := open(child, dev); err != nil {
				return err
			}
			if err := moveUp(top, child, next); err != nil {
				return err
			}
		}
	}
}

// open lets us into a folder of the file system dev.
func open(path string, dev uint64) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	if uint64(st.Dev) != dev {
		return fmt.Errorf("%s is another file system", path)
	}
	return os.Chmod(path, 0o700)
}

// gone removes a file or an empty folder.
func gone(path string) bool {
	return syscall.Unlink(path) == nil || syscall.Rmdir(path) == nil
}

func moveUp(top, child string, next *int) error {
	for {
		*next++
		err := syscall.Rename(child, filepath.Join(top, ".patchbench-"+strconv.Itoa(*next)))
		if err != syscall.ENOTEMPTY && err != syscall.EEXIST && err != syscall.ENOTDIR {
			return err
		}
	}
}

// readNames lists at least n names of a folder if it has that many, all for n < 0.
func readNames(dir string, n int) ([]string, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var names []string
	var buf [8192]byte
	for n < 0 || len(names) < n {
		got, err := unix.ReadDirent(fd, buf[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "readdir", Path: dir, Err: err}
		}
		if got <= 0 {
			break
		}
		_, _, names = unix.ParseDirent(buf[:got], -1, names)
	}
	return names, nil
}

// IPC removes the System V shared memory, semaphores and queues of the
// box, which outlive their processes. POSIX ones are files in folders that are
// emptied.
func IPC() error {
	for _, kind := range kinds {
		if !kind.any() {
			continue
		}
		text, err := os.ReadFile(kind.file)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.file, err)
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			f := bytes.Fields(line)
			if i == 0 || len(f) < 2 {
				continue // the heading
			}
			id, err := strconv.Atoi(string(f[1]))
			if err != nil {
				return fmt.Errorf("%s: %w", kind.file, err)
			}
			var errno syscall.Errno
			if kind.call == unix.SYS_SEMCTL {
				_, _, errno = syscall.Syscall6(kind.call, uintptr(id), 0, unix.IPC_RMID, 0, 0, 0)
			} else {
				_, _, errno = syscall.Syscall(kind.call, uintptr(id), unix.IPC_RMID, 0)
			}
			if errno != 0 {
				return fmt.Errorf("remove entry %d of %s: %w", id, kind.file, errno)
			}
		}
	}
	return nil
}

// kind is one of the three kinds of System V objects.
type kind struct {
	file string  // their list
	call uintptr // the system call that tells of them and removes them
	info uintptr // its command that fills in numbers
	at   int     // which of these is how many objects there are
}

// The commands SHM_INFO, MSG_INFO and SEM_INFO of <sys/shm.h> and so on; see
// shmctl(2), msgctl(2) and semctl(2).
var kinds = []kind{
	{"/proc/sysvipc/shm", unix.SYS_SHMCTL, 14, 0}, // shm_info.used_ids
	{"/proc/sysvipc/msg", unix.SYS_MSGCTL, 12, 0}, // msginfo.msgpool
	{"/proc/sysvipc/sem", unix.SYS_SEMCTL, 19, 7}, // seminfo.semusz
}

// any says that there are objects of a kind. A kernel without the kind has none.
// One call is cheaper than to read the list, and nearly always there are none.
func (k kind) any() bool {
	var numbers [32]int32 // no structure is larger
	var errno syscall.Errno
	if k.call == unix.SYS_SEMCTL {
		_, _, errno = syscall.Syscall6(k.call, 0, 0, k.info, uintptr(unsafe.Pointer(&numbers)), 0, 0)
	} else {
		_, _, errno = syscall.Syscall(k.call, 0, k.info, uintptr(unsafe.Pointer(&numbers)))
	}
	return errno != syscall.ENOSYS && (errno != 0 || numbers[k.at] != 0)
}
