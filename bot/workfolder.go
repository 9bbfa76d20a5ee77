package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"patchbench/bot/eval"
)

// workFolder holds one evaluation's checkouts and builds. Its lock is held while
// the bot lives, so that a later bot can tell a folder in use from one that a
// killed bot has left.
type workFolder struct {
	dir  string // with the lock in it
	work string // empty at first
	lock *os.File
}

const workPrefix = "patchbench-"

// newWorkFolder makes a folder below parent, "" for /var/tmp, and removes those
// that killed bots of this user have left there.
func newWorkFolder(parent string) (*workFolder, error) {
	if parent == "" {
		parent = "/var/tmp"
		if _, err := os.Stat(parent); err != nil {
			parent = os.TempDir()
		}
	} else if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, usage(fmt.Errorf("--work-dir: %w", err))
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	sweep(parent)
	dir, err := os.MkdirTemp(parent, workPrefix)
	if err != nil {
		return nil, usage(fmt.Errorf("no folder for checkouts and builds: %w; name one with --work-dir", err))
	}
	w := &workFolder{dir: dir, work: filepath.Join(dir, "work")}
	if err := w.prepare(); err != nil {
		w.remove()
		return nil, usage(fmt.Errorf("no folder for checkouts and builds: %w; name one with --work-dir", err))
	}
	return w, nil
}

func (w *workFolder) prepare() (err error) {
	// The uid that programs run under passes through, but cannot list.
	if err := os.Chmod(w.dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(w.work, 0o711); err != nil {
		return err
	}
	// Locked under another name first: a lock that is there is held, or left.
	fresh := filepath.Join(w.dir, "lock.new")
	if w.lock, err = os.OpenFile(fresh, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", fresh, err)
	}
	return os.Rename(fresh, filepath.Join(w.dir, "lock"))
}

func (w *workFolder) remove() {
	eval.RemoveAll(w.dir)
	if w.lock != nil {
		w.lock.Close()
	}
}

// sweep removes the folders whose bot is gone. What cannot be removed is
// another user's, or will be tried again.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, workPrefix+"*", "lock"))
	if err != nil {
		return
	}
	for _, path := range locks {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			eval.RemoveAll(filepath.Dir(path))
		}
		f.Close()
	}
}
