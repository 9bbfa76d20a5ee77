// Package checkout writes the files of commits into folders, one after the other.
// In go an overlay.Repo, commits and folders; out come files, executable or not,
// symbolic links that stay inside, and an empty folder for each submodule. There
// is no .git.
//
// It is the end of mbox/tree's path, before the builds, and knows neither patches
// nor builds. Names and links come from strangers: all are checked before
// anything is written, and nothing outside of the folders is ever touched.
//
// Two thirds of the time that a checkout takes goes into finding contents in packs.
// A Pristine therefore keeps the files of the last commit in a folder of its own,
// in which nothing is built. The next commit replaces what differs there, which is
// little in a series, and the rest is copying files.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/overlay"
)

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

// Pristine writes commits into folders. It is for one goroutine at a time.
type Pristine struct {
	r    *overlay.Repo
	dir  string
	made bool          // dir is there
	tree plumbing.Hash // whose files are in dir; zero: not known
}

// New makes a Pristine that keeps its files in dir, which must not be there yet
// and is made with the first commit. It has to be on one file system with the
// folders that are written if they shall share the contents of files.
func New(r *overlay.Repo, dir string) *Pristine {
	return &Pristine{r: r, dir: dir}
}

// Close removes the folder of the last commit, if there was one. Another commit
// would be written in full again.
func (p *Pristine) Close() error {
	p.tree = plumbing.ZeroHash
	if !p.made {
		return nil
	}
	if err := os.RemoveAll(p.dir); err != nil {
		return err
	}
	p.made = false
	return nil
}

// Checkout writes all files of a commit into dir, which is made if it is missing
// and must be empty: regular files, executable or not, and symbolic links. A
// submodule becomes an empty folder. There is no .git in it. All files are as old
// as the call; their contents are shared with those of other commits where the
// file system can do that (XFS, btrfs), until one is written to. Names and links that
// lead out of the tree give a *PathError or *LinkError, and nothing is written.
func (p *Pristine) Checkout(ctx context.Context, commit, dir string) error {
	if err := p.checkout(ctx, commit, dir); err != nil {
		return fmt.Errorf("check out %.12s into %s: %w", commit, dir, err)
	}
	return nil
}

func (p *Pristine) checkout(ctx context.Context, commit, dir string) error {
	if names, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if len(names) > 0 {
		return errors.New("the folder is not empty")
	}
	if err := p.update(ctx, commit); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	from, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer from.Close()
	all, err := compare(p.r, plumbing.ZeroHash, p.tree)
	if err != nil {
		return err
	}
	return all.write(ctx, p.r, from, dir)
}

// Update brings the folder of the last commit to another one, which Checkout does
// first. Only what differs is written. After an error other than *PathError and
// *LinkError the next commit is written in full.
func (p *Pristine) Update(ctx context.Context, commit string) error {
	if err := p.update(ctx, commit); err != nil {
		return fmt.Errorf("update %s to %.12s: %w", p.dir, commit, err)
	}
	return nil
}

func (p *Pristine) update(ctx context.Context, commit string) error {
	c, err := p.r.Commit(plumbing.NewHash(commit))
	if err != nil {
		return err
	}
	// What was refused is never in the folder, so that it is part of what differs
	// each time.
	d, err := compare(p.r, p.tree, c.Tree)
	if err != nil {
		return err
	}
	if p.tree.IsZero() {
		if err := p.Close(); err != nil {
			return err
		}
		if err := os.Mkdir(p.dir, 0o700); err != nil {
			return err
		}
		p.made = true
	}
	p.tree = plumbing.ZeroHash
	if err := d.write(ctx, p.r, nil, p.dir); err != nil {
		return err
	}
	p.tree = c.Tree
	return nil
}

// file is one entry to write.
type file struct {
	path string
	e    overlay.Entry
}

// difference is what makes the files of one tree those of another.
type difference struct {
	fresh bool     // from nothing
	gone  []string // files, links and submodules
	come  []file   // new ones, and those in another's place
}

// compare tells how two trees differ, and refuses what must not be written.
func compare(r *overlay.Repo, from, to plumbing.Hash) (difference, error) {
	d := difference{fresh: from.IsZero()}
	err := r.Differences(from, to, func(p string, b, a *overlay.Entry) error {
		if a == nil {
			d.gone = append(d.gone, p)
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
		d.come = append(d.come, file{p, *a})
		return nil
	})
	return d, err
}

// write makes the difference in dir. The contents of files are copied from the
// same files below from; nil: they come out of the repository.
func (d difference) write(ctx context.Context, r *overlay.Repo, from *os.Root, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range d.gone {
		if err := root.Remove(p); err != nil {
			return err
		}
		for up := path.Dir(p); up != "."; up = path.Dir(up) {
			if root.Remove(up) != nil {
				break // not empty: another file is in it
			}
		}
	}
	w := &writer{r: r, root: root, from: from, fresh: d.fresh, made: map[string]bool{".": true}}
	var files []file
	for _, f := range d.come {
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
	return w.files(ctx, files)
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
