// Package claim makes folders that are a process's own for as long as it lives, and
// finds those whose process is gone.
//
//	New(parent, prefix) -> an open folder, locked until it is closed
//	Sweep(parent, prefix, remove)  hands the folders to remove that nobody holds
//
// The lock is flock(2)'s, of the folder itself, so that a process that is killed
// loses it. What the folders are for is not known here.
package claim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// New makes a folder whose name begins with prefix in parent. Whoever wants to keep
// it must not close the file.
func New(parent, prefix string) (*os.File, error) {
	for range 10 {
		dir, err := os.MkdirTemp(parent, prefix)
		if err != nil {
			return nil, err
		}
		f, err := lock(dir)
		if err == nil {
			return f, nil
		}
		// Another process took it for a left-over one between the two calls.
		_ = unix.Rmdir(dir)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("make a folder in %s: other processes remove it again and again", parent)
}

// Sweep calls remove for each folder made by New, whose process has ended, while it
// is locked. Folders that are another user's, or that others may write to, are left
// alone: parent may be everyone's. What remove cannot do is left to the next one.
func Sweep(parent, prefix string, remove func(dir string) error) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*")) // what cannot be listed is not ours to sweep
	for _, dir := range dirs {
		f, err := lock(dir)
		if err != nil {
			continue // in use, or swept by another
		}
		_ = remove(dir)
		f.Close()
	}
}

// lock opens a folder of this user's that nobody else has locked, and that is still
// there.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := hold(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

func hold(f *os.File) error {
	var opened, there unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &opened); err != nil {
		return err
	}
	if int(opened.Uid) != os.Geteuid() || opened.Mode&0o022 != 0 {
		return unix.EPERM
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	if err := unix.Lstat(f.Name(), &there); err != nil {
		return err
	}
	if opened.Dev != there.Dev || opened.Ino != there.Ino {
		return unix.ENOENT
	}
	return nil
}
