package checkout

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"patchbench/mbox/tree/overlay"
)

// writer writes files below a root that it never leaves.
type writer struct {
	r     *overlay.Repo
	root  *os.Root
	from  *os.Root        // where the same files are; nil: nowhere
	fresh bool            // there was nothing in the root
	made  map[string]bool // folders that are known to be there
}

// folder makes a folder and those above it. A file in place of a submodule is
// removed.
func (w *writer) folder(dir string) error {
	if w.made[dir] {
		return nil
	}
	if err := w.folder(path.Dir(dir)); err != nil {
		return err
	}
	err := w.root.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		fi, err := w.root.Lstat(dir)
		if err != nil {
			return err
		}
		if !fi.IsDir() {
			if err := w.root.Remove(dir); err != nil {
				return err
			}
			if err := w.root.Mkdir(dir, 0o755); err != nil {
				return err
			}
		}
	} else if err != nil {
		return err
	}
	w.made[dir] = true
	return nil
}

// writers is how many files are written at the same time.
const writers = 4

// most is how many files of a folder one goroutine writes at a time.
const most = 64

// files writes all files with a few goroutines and gives the first error. Each
// folder is entered once for its files.
func (w *writer) files(ctx context.Context, list []file) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var groups [][]file
	at := map[string]int{} // by folder: its last group
	for _, f := range list {
		dir := path.Dir(f.path)
		i, ok := at[dir]
		if !ok || len(groups[i]) == most {
			i = len(groups)
			at[dir], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	work := make(chan []file)
	var wg sync.WaitGroup
	for range min(writers, len(groups)) {
		wg.Go(func() {
			buffer := make([]byte, 64<<10)
			for g := range work {
				if err := w.group(g, buffer); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, g := range groups {
		select {
		case work <- g:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

// group writes files of one folder.
func (w *writer) group(list []file, buffer []byte) error {
	name := path.Dir(list[0].path)
	to, err := w.root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer to.Close()
	var from *os.Root
	if w.from != nil {
		if from, err = w.from.OpenRoot(name); err != nil {
			return err
		}
		defer from.Close()
	}
	for _, f := range list {
		if err := w.file(from, to, path.Base(f.path), f.e, buffer); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) file(from, to *os.Root, name string, e overlay.Entry, buffer []byte) error {
	if !w.fresh {
		// Never written over, but replaced: others may share its contents.
		if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if e.IsLink() {
		target, err := w.r.Blob(e.ID)
		if err != nil {
			return err
		}
		return to.Symlink(string(target), name)
	}
	perm := fs.FileMode(0o644)
	if e.Mode&0o100 != 0 {
		perm = 0o755
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if from == nil {
		err = w.blob(out, e)
	} else {
		err = duplicate(out, from, name, buffer)
	}
	return errors.Join(err, out.Close())
}

func (w *writer) blob(out *os.File, e overlay.Entry) error {
	data, err := w.r.Blob(e.ID)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// duplicate fills out with a file of another folder.
func duplicate(out *os.File, from *os.Root, name string, buffer []byte) error {
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	// Without the files' own methods, so that the buffer is used: most files need one
	// read and one write.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buffer)
	return err
}
