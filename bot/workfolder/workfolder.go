// Package workfolder makes the folder that one evaluation's checkouts and builds go
// to, and removes those that killed bots have left. In go a parent folder and the uid
// that programs run under; out comes an empty folder that this uid can reach and nobody
// else. What is put there is not known here.
package workfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"patchbench/bench/unlink"
)

// Folder holds one evaluation's checkouts and builds. Its lock is held while
// the bot lives, so that a later bot can tell a folder in use from one that a
// killed bot has left.
type Folder struct {
	Dir    string   // with the lock and Work in it
	Work   string   // empty at first
	parent *os.File // of Dir; good for looking up names only
	self   *os.File // Dir
	lock   *os.File
}

// Not hidden by a dot: some build tools pass over what lies below such a folder.
const prefix = "patchbench-work-"

// lockText is what a lock holds, so that no folder of another program's is taken
// for one of ours.
const lockText = "patchbench work folder: removed by the next bot if this one is gone\n"

// New makes a folder below parent, "" for /var/tmp, and removes those that killed
// bots of this user have left there. Parent is made if it is not there.
func New(parent string) (*Folder, error) {
	if parent == "" {
		parent = "/var/tmp"
		if _, err := os.Stat(parent); err != nil {
			parent = os.TempDir()
		}
	} else if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, err
	}
	Sweep(parent)
	f, err := create(parent)
	if err != nil {
		return nil, fmt.Errorf("no folder for checkouts and builds: %w", err)
	}
	return f, nil
}

func create(parent string) (*Folder, error) {
	at, err := openFolder(unix.AT_FDCWD, parent, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		at.Close()
		return nil, err
	}
	w := &Folder{Dir: dir, Work: filepath.Join(dir, "work"), parent: at}
	if err := w.prepare(); err != nil {
		w.Remove()
		return nil, err
	}
	return w, nil
}

func (w *Folder) prepare() (err error) {
	if w.self, err = openOurs(w.parent, filepath.Base(w.Dir)); err != nil {
		return err
	}
	// Whatever the umask lets others do: what is checked out may be nobody's but
	// this user's.
	if err := w.self.Chmod(0o700); err != nil {
		return err
	}
	// Locked under another name first: a lock that is there is held, or left.
	at := int(w.self.Fd())
	fd, err := unix.Openat(at, "lock.new", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(w.Dir, "lock"), Err: err}
	}
	w.lock = os.NewFile(uintptr(fd), filepath.Join(w.Dir, "lock"))
	if _, err := w.lock.WriteString(lockText); err != nil {
		return err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &os.PathError{Op: "lock", Path: w.lock.Name(), Err: err}
	}
	if err := unix.Renameat(at, "lock.new", at, "lock"); err != nil {
		return &os.PathError{Op: "rename", Path: w.lock.Name(), Err: err}
	}
	if err := unix.Mkdirat(at, "work", 0o711); err != nil {
		return &os.PathError{Op: "mkdir", Path: w.Work, Err: err}
	}
	// Whatever the umask takes away.
	return os.Chmod(w.Work, 0o711)
}

// Admit lets the uid that programs run under pass through, if it is not this
// user's: by its group, since all others stay out. It cannot list what is there.
func (w *Folder) Admit(uid int) error {
	if uid == os.Geteuid() {
		return nil
	}
	if err := w.self.Chown(-1, uid); err != nil {
		return err
	}
	return w.self.Chmod(0o710)
}

// Remove removes the folder and lets go of it. The lock goes last: a folder that
// could not be removed to its end is found by a later bot.
func (w *Folder) Remove() {
	if w.self != nil {
		removeWork(w.parent, w.self, filepath.Base(w.Dir))
		w.self.Close()
	}
	w.parent.Close()
	if w.lock != nil {
		w.lock.Close()
	}
}

// removeWork removes the work folder dir, called name in parent, whose lock the
// caller holds.
func removeWork(parent, dir *os.File, name string) {
	if unlink.At(dir, "work") != nil {
		return
	}
	for _, lock := range []string{"lock.new", "lock"} {
		if unlink.At(dir, lock) != nil {
			return
		}
	}
	_ = unix.Unlinkat(int(parent.Fd()), name, unix.AT_REMOVEDIR) // all that was large is gone
}

// Sweep removes the folders whose bot is gone. What cannot be removed will be
// tried again. Everyone may make folders beside ours, with whatever in them:
// only a folder that this user owns and nobody else can write to, with nothing
// in it but work and a lock with our text, is one of ours.
func Sweep(parent string) {
	at, err := openFolder(unix.AT_FDCWD, parent, unix.O_RDONLY)
	if err != nil {
		return
	}
	defer at.Close()
	names, err := at.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			sweepOne(at, name)
		}
	}
}

func sweepOne(parent *os.File, name string) {
	dir, err := openOurs(parent, name)
	if err != nil {
		return
	}
	defer dir.Close()
	lock, err := openLock(dir)
	if err != nil {
		return
	}
	defer lock.Close()
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // in use
	}
	entries, err := dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e != "lock" && e != "work" {
			return
		}
	}
	removeWork(parent, dir, name)
}

// openLock opens the lock of a folder, if it is one of ours.
func openLock(dir *os.File) (*os.File, error) {
	path := filepath.Join(dir.Name(), "lock")
	// No waiting for a pipe's other end.
	fd, err := unix.Openat(int(dir.Fd()), "lock", unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	err = ours(f, unix.S_IFREG)
	text := make([]byte, len(lockText)+1)
	if err == nil {
		n, _ := unix.Pread(fd, text, 0)
		if n != len(lockText) || string(text[:n]) != lockText {
			err = fmt.Errorf("%s is not one of ours", path)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openOurs opens a folder in parent that this user owns and nobody else may
// write to.
func openOurs(parent *os.File, name string) (*os.File, error) {
	f, err := openFolder(int(parent.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	if err := ours(f, unix.S_IFDIR); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func openFolder(at int, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(at, name, flags|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// ours checks the kind, owner and mode of an open file.
func ours(f *os.File, kind uint32) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &os.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	if st.Mode&unix.S_IFMT != kind || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 {
		return fmt.Errorf("%s is not one of ours", f.Name())
	}
	return nil
}
