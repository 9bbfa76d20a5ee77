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
// another. Only what differs is written, as new files with the time of now, so
// that make sees them as changed; everything else, and what a build has made, is
// left as it is. A build may have changed the folder in any way: nothing outside
// of it is ever touched.
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

// file is one    overlay.Entry to write.
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
	w := &writer{r: r, root: root, made: map[string]bool{".": true}}
	for _, f := range come {
		if err := w.folder(path.Dir(f.path)); err != nil {
			return err
		}
	}
	return w.files(ctx, come)
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
	r    *overlay.Repo
	root *os.Root
	made map[string]bool // folders that are known to be there
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

// files writes all files with a few goroutines and gives the first error.
func (w *writer) files(ctx context.Context, list []file) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan file)
	var wg sync.WaitGroup
	for range min(writers, len(list)) {
		wg.Go(func() {
			for f := range work {
				if err := w.file(f); err != nil {
					cancel(err)
				}
			}
		})
	}
feed:
	for _, f := range list {
		select {
		case work <- f:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	wg.Wait()
	return context.Cause(ctx)
}

func (w *writer) file(f file) error {
	if f.e.IsModule() {
		err := w.root.Mkdir(f.path, 0o755)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return err
	}
	data, err := w.r.Blob(f.e.ID)
	if err != nil {
		return err
	}
	// A new file, never the old one written over: programs that a build has
	// linked to or mapped stay as they are.
	if err := w.root.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if err := w.root.RemoveAll(f.path); err != nil {
			return err
		}
	}
	if f.e.IsLink() {
		return w.root.Symlink(string(data), f.path)
	}
	perm := fs.FileMode(0o644)
	if f.e.Mode&0o100 != 0 {
		perm = 0o755
	}
	out, err := w.root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return errors.Join(err, out.Close())
	}
	return out.Close()
}
