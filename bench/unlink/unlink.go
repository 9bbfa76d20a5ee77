// Package unlink removes folders in which programs of strangers have written.
//
// In goes the name of a folder; it and all in it are gone afterwards. Whoever owns
// a part of the tree may be changing it meanwhile, so that a folder can become
// a link to somewhere else between two system calls. Nothing is therefore reached
// by a path: every folder is held as an open descriptor and every name is looked
// up in one, without following links. What lies on another file system is left
// alone, as it was mounted there.
//
// Which folders may go is not decided here.
package unlink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// passes bounds how often a folder is listed again because something appeared in
// it while it was emptied.
const passes = 100

// All removes a file, or a folder with all in it. The way to path, its last name
// excepted, is trusted and may hold links; a link at its end is removed itself.
// That there is no such path is no error. Folders that their owner, the bot's
// user, cannot enter or write are opened up; other owners' modes are not touched.
func All(path string) error {
	parent, name, err := around(path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer parent.Close()
	return At(parent, name)
}

// Empty removes all that is in a folder as All does, but not the folder itself,
// which may be mounted elsewhere. It must be there.
func Empty(path string) error {
	parent, name, err := around(path)
	if err != nil {
		return err
	}
	defer parent.Close()
	dir, dev, err := open(int(parent.Fd()), name, path, nil)
	if err != nil {
		return fmt.Errorf("empty %s: %w", path, err)
	}
	defer dir.Close()
	if err := (&remover{top: dir, dev: dev}).empty(); err != nil {
		return fmt.Errorf("empty %s: %w", path, err)
	}
	return nil
}

// around opens the folder that a path's last name is in.
func around(path string) (parent *os.File, name string, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, "", fmt.Errorf("remove: %w", err)
	}
	fd, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, "", fmt.Errorf("remove %s: open the folder it is in: %w", path, err)
	}
	return os.NewFile(uintptr(fd), filepath.Dir(path)), filepath.Base(path), nil
}

// At removes name in the folder parent as All does. The error names the first
// file that stays.
func At(parent *os.File, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsRune(name, '/') {
		return fmt.Errorf("remove %q in %s: not the name of a file in it", name, parent.Name())
	}
	at := int(parent.Fd())
	path := filepath.Join(parent.Name(), name)
	if gone(at, name) == nil {
		return nil
	}
	dir, dev, err := open(at, name, path, nil)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer dir.Close()
	r := &remover{top: dir, dev: dev}
	for range passes {
		if err := r.empty(); err != nil {
			return fmt.Errorf("remove %s: %w", path, err)
		}
		if err = gone(at, name); err == nil {
			return nil
		}
		if !filled(err) {
			break
		}
	}
	return fmt.Errorf("remove %s: %w", path, err)
}

// remover empties one folder. A folder in a folder of it is moved up into it
// first, so that no depth takes more than two descriptors.
type remover struct {
	top   *os.File
	dev   uint64
	moved []string // names in top that are to be removed next
	next  int
}

// empty removes what is in top, as far as it can be; the error is that of the
// first thing that stays.
func (r *remover) empty() error {
	var stays error
	err := each(r.top, func(name string) {
		r.moved = append(r.moved, name)
		for len(r.moved) > 0 {
			last := len(r.moved) - 1
			name := r.moved[last]
			r.moved = r.moved[:last]
			if err := r.remove(name); err != nil && stays == nil {
				stays = err
			}
		}
	})
	return errors.Join(err, stays)
}

// remove removes one thing in top; its folders that are not empty are moved to
// top and noted in moved.
func (r *remover) remove(name string) error {
	at := int(r.top.Fd())
	if gone(at, name) == nil {
		return nil
	}
	path := filepath.Join(r.top.Name(), name)
	dir, _, err := open(at, name, path, &r.dev)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for range passes {
		var stays error
		err := each(dir, func(child string) {
			if err := r.up(dir, child); err != nil && stays == nil {
				stays = err
			}
		})
		if err := errors.Join(err, stays); err != nil {
			return err
		}
		if err = gone(at, name); err == nil {
			return nil
		}
		if !filled(err) {
			return &os.PathError{Op: "unlinkat", Path: path, Err: err}
		}
	}
	return &os.PathError{Op: "unlinkat", Path: path, Err: unix.ENOTEMPTY}
}

// up removes a file or empty folder in dir, and moves any other folder to top.
func (r *remover) up(dir *os.File, child string) error {
	from := int(dir.Fd())
	if gone(from, child) == nil {
		return nil
	}
	// To move a folder changes its .. entry, for which it must be writable.
	path := filepath.Join(dir.Name(), child)
	sub, _, err := open(from, child, path, &r.dev)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	sub.Close()
	for {
		r.next++
		name := ".unlink-" + strconv.Itoa(r.next)
		err := unix.Renameat(from, child, int(r.top.Fd()), name)
		switch {
		case err == nil:
			r.moved = append(r.moved, name)
			return nil
		case errors.Is(err, unix.ENOENT):
			return nil
		case filled(err), errors.Is(err, unix.ENOTDIR):
			// The name is taken.
		default:
			return &os.PathError{Op: "renameat", Path: path, Err: err}
		}
	}
}

// gone removes a file or an empty folder. A link is a file.
func gone(at int, name string) (err error) {
	for range passes {
		err = unix.Unlinkat(at, name, 0)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		err2 := unix.Unlinkat(at, name, unix.AT_REMOVEDIR)
		if err2 == nil || errors.Is(err2, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err2, unix.ENOTDIR) {
			return err2
		}
		if !errors.Is(err, unix.EISDIR) {
			return err
		}
		// It was a folder before it was none.
	}
	return err
}

// open opens the folder name for reading, after its owner, if that is us, was let
// in. It gives the device, which must be dev unless that is nil.
func open(at int, name, path string, dev *uint64) (*os.File, uint64, error) {
	fail := func(op string, err error) (*os.File, uint64, error) {
		return nil, 0, &os.PathError{Op: op, Path: path, Err: err}
	}
	var which int
	var err error
	for range passes {
		// The mode may forbid to read it: this descriptor only says which it is.
		which, err = unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			break
		}
		// It is no folder, or no longer.
		if err = gone(at, name); err == nil {
			err = unix.ENOENT
		}
		if !filled(err) {
			break
		}
	}
	if err != nil {
		return fail("open", err)
	}
	defer unix.Close(which)
	var st unix.Stat_t
	if err := unix.Fstat(which, &st); err != nil {
		return fail("fstat", err)
	}
	if dev != nil && uint64(st.Dev) != *dev {
		return fail("open", errors.New("another file system is mounted there; unmount it"))
	}
	if st.Mode&0o700 != 0o700 && int(st.Uid) == os.Geteuid() {
		// fchmod refuses such a descriptor; this link of /proc is no path to
		// be resolved but the folder itself.
		if err := unix.Chmod("/proc/self/fd/"+strconv.Itoa(which), 0o700); err != nil {
			return fail("chmod", err)
		}
	}
	fd, err := unix.Openat(which, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open", err)
	}
	return os.NewFile(uintptr(fd), path), uint64(st.Dev), nil
}

// filled says that a folder could not be removed because something is in it.
func filled(err error) bool { return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) }

// each calls f for every name in dir from the start.
func each(dir *os.File, f func(name string)) error {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, err := dir.Readdirnames(1024)
		for _, name := range names {
			f(name)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
