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
	if err := os.Chmod(dir, mode); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
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
	for _, kind := range []struct {
		file string
		call uintptr
	}{
		{"/proc/sysvipc/shm", unix.SYS_SHMCTL}, {"/proc/sysvipc/msg", unix.SYS_MSGCTL}, {"/proc/sysvipc/sem", unix.SYS_SEMCTL},
	} {
		text, err := read(kind.file)
		if errors.Is(err, os.ErrNotExist) {
			continue // this kernel has none of the kind
		}
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

// read reads a list of /proc with as few system calls as can be: nearly always
// there is nothing but its heading.
func read(name string) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	if err != nil || bytes.Count(buf[:n], []byte("\n")) <= 1 {
		return nil, err
	}
	return os.ReadFile(name)
}
