// Package checkout writes the files of a commit into a folder, and brings a folder
// from one commit to the next by writing only what differs. In go an overlay.Repo,
// commits and a folder; out come files, executable or not, symbolic links that
// stay inside, and an empty folder for each submodule. There is no .git.
//
// It is the end of mbox/tree's path, before the builds, and knows neither patches
// nor builds. Names and links come from strangers: all are checked before
// anything is written, and nothing outside of the folder is ever touched, whatever
// a build has put there.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/overlay"
)

// writers is how many files are written at the same time.
const writers = 4

// LinkError is a symbolic link of a tree that is not written, because it leads
// out of the tree.
type LinkError struct {
	Path, Target string
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("symbolic link %q -> %q leaves the tree", e.Path, e.Target)
}

// PathError is a name in a tree that is not written, because it is not safe.
type PathError struct {
	Reason string
}

func (e *PathError) Error() string { return e.Reason }

// Checkout writes all files of a commit into dir, which is made if it is missing
// and must be empty: regular files, executable or not, and symbolic links. A
// submodule becomes an empty folder. There is no .git in it. Names and links
// that lead out of the tree give a *PathError or *LinkError, and what was
// written until then is left.
func Checkout(ctx context.Context, r *overlay.Repo, commit, dir string) error {
	c, err := r.Commit(plumbing.NewHash(commit))
	if err != nil {
		return fmt.Errorf("check out %.12s: %w", commit, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("check out %.12s: %w", commit, err)
	}
	if names, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("check out %.12s: %w", commit, err)
	} else if len(names) > 0 {
		return fmt.Errorf("check out %.12s: %s is not empty", commit, dir)
	}
	if err := update(ctx, r, plumbing.ZeroHash, c.Tree, dir); err != nil {
		return fmt.Errorf("check out %.12s into %s: %w", commit, dir, err)
	}
	return nil
}

// Update makes a folder that holds the files of one commit hold those of
// another. Only what differs is written, as new files that are newer than all that
// was written before, so that make sees them as changed, and so is what a changed
// link leads to; everything else, and what a build has made, is left as it is. A
// build may have changed the folder in any way: nothing outside of it is ever
// touched.
func Update(ctx context.Context, r *overlay.Repo, from, to, dir string) error {
	a, err := r.Commit(plumbing.NewHash(from))
	if err != nil {
		return fmt.Errorf("update %s from %.12s: %w", dir, from, err)
	}
	b, err := r.Commit(plumbing.NewHash(to))
	if err != nil {
		return fmt.Errorf("update %s to %.12s: %w", dir, to, err)
	}
	if err := update(ctx, r, a.Tree, b.Tree, dir); err != nil {
		return fmt.Errorf("update %s to %.12s: %w", dir, to, err)
	}
	return nil
}

// file is one entry to write.
type file struct {
	path string
	e    overlay.Entry
}

func update(ctx context.Context, r *overlay.Repo, from, to plumbing.Hash, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var gone []string
	var come []file
	// Everything is checked before anything is written.
	err = r.Differences(from, to, func(p string, b, a *overlay.Entry) error {
		if a == nil {
			gone = append(gone, p)
			return nil
		}
		if reason := badCheckout(p); reason != "" {
			return &PathError{reason}
		}
		if a.IsLink() {
			target, err := r.Blob(a.ID)
			if err != nil {
				return err
			}
			if leaves(p, string(target)) {
				return &LinkError{p, string(target)}
			}
		}
		come = append(come, file{p, *a})
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range gone {
		if err := root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			// What the build put in its place is not ours, but it is in the way.
			if err := root.RemoveAll(p); err != nil {
				return err
			}
		}
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			if root.Remove(d) != nil {
				break // not empty: another file or a build's output is in it
			}
		}
	}
	w := &writer{r: r, root: root, fresh: from.IsZero(), made: map[string]bool{".": true}}
	var files []file
	for _, f := range come {
		dir := path.Dir(f.path)
		if f.e.IsModule() {
			dir = f.path
		} else {
			files = append(files, f)
		}
		if err := w.folder(dir); err != nil {
			return err
		}
	}
	if err := w.files(ctx, files); err != nil {
		return err
	}
	return w.touch(files)
}

// badCheckout says why a path of a tree is not written. Trees of the repository
// may hold names that a patch may not bring; only what could escape from or
// disturb the folder is refused.
func badCheckout(p string) string {
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || overlay.IsDotGit(part) || strings.IndexByte(part, 0) >= 0 {
			return fmt.Sprintf("path %q cannot be written: component %q is reserved", p, part)
		}
	}
	return ""
}

// leaves says that a symbolic link's target is absolute, climbs out of the tree,
// or climbs at all behind a name, which may itself be a link. The folders above a
// link are real ones, so that climbing at the start is certain; whatever follows
// only goes down, through links that were checked too.
func leaves(link, target string) bool {
	if target == "" || strings.HasPrefix(target, "/") || strings.IndexByte(target, 0) >= 0 {
		return true
	}
	depth, down := strings.Count(link, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; down || depth < 0 {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

// writer writes files below a root that it never leaves.
type writer struct {
	r     *overlay.Repo
	root  *os.Root
	fresh bool            // there was nothing in the root
	made  map[string]bool // folders that are known to be there
}

// folder makes a folder and those above it. What a build has put in its place is
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
			for g := range work {
				if err := w.group(g); err != nil {
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
func (w *writer) group(list []file) error {
	dir, err := w.root.OpenRoot(path.Dir(list[0].path))
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, f := range list {
		if err := w.file(dir, path.Base(f.path), f.e); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) file(dir *os.Root, name string, e overlay.Entry) error {
	data, err := w.r.Blob(e.ID)
	if err != nil {
		return err
	}
	if !w.fresh {
		// A new file, never the old one written over: programs that a build has
		// linked to or mapped stay as they are.
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			if err := dir.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	if e.IsLink() {
		return dir.Symlink(string(data), name)
	}
	perm := fs.FileMode(0o644)
	if e.Mode&0o100 != 0 {
		perm = 0o755
	}
	out, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// touch makes files, and what links lead to, newer than all that was there. The
// kernel dates a file by its last tick, which may be that of an object which a
// build has made from the file before.
func (w *writer) touch(list []file) error {
	if w.fresh {
		return nil
	}
	now := time.Now()
	for _, f := range list {
		err := w.root.Chtimes(f.path, now, now)
		// A link may lead nowhere, or in a circle.
		if err != nil && !(f.e.IsLink() && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP))) {
			return err
		}
	}
	return nil
}
