package overlay

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
)

// Entry is one line of a tree, with the mode as it stands there.
type Entry struct {
	Name string
	Mode uint32
	ID   plumbing.Hash
}

const modeDir = 0o040000

// IsDir says that it is a folder.
func (e Entry) IsDir() bool { return e.Mode&diff.TypeMask == modeDir }

// IsFile says that it is a regular file, executable or not.
func (e Entry) IsFile() bool { return e.Mode&diff.TypeMask == diff.TypeRegular }

// IsLink says that it is a symbolic link.
func (e Entry) IsLink() bool { return e.Mode&diff.TypeMask == diff.TypeLink }

// IsModule says that it is the commit of a submodule.
func (e Entry) IsModule() bool { return e.Mode&diff.TypeMask == diff.TypeModule }

// Canonical is the mode that git's index has for a tree's mode.
func Canonical(mode uint32) uint32 {
	switch mode & diff.TypeMask {
	case diff.TypeRegular:
		if mode&0o100 != 0 {
			return 0o100755
		}
		return 0o100644
	default:
		return mode & diff.TypeMask
	}
}

// maxTrees bounds how many parsed trees are kept.
const maxTrees = 4096

// Entries reads a tree; the zero id is the empty one. The slice must not be changed.
func (r *Repo) Entries(id plumbing.Hash) ([]Entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	r.mu.RLock()
	list, ok := r.trees[id]
	r.mu.RUnlock()
	if ok {
		return list, nil
	}
	data, err := r.Want(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	broken := fmt.Errorf("tree %s in %s is broken; run git fsck there", id, r.dir)
	list = make([]Entry, 0, len(data)/32)
	for rest := data; len(rest) > 0; {
		head, after, ok := bytes.Cut(rest, []byte{0})
		if !ok || len(after) < 20 {
			return nil, broken
		}
		mode, name, _ := bytes.Cut(head, []byte(" "))
		m, err := strconv.ParseUint(string(mode), 8, 32)
		if err != nil || len(name) == 0 || bytes.IndexByte(name, '/') >= 0 {
			return nil, broken
		}
		e := Entry{Name: string(name), Mode: uint32(m)}
		copy(e.ID[:], after)
		list = append(list, e)
		rest = after[20:]
	}
	r.mu.Lock()
	if len(r.trees) >= maxTrees {
		clear(r.trees)
	}
	r.trees[id] = list
	r.mu.Unlock()
	return list, nil
}

// Walk calls f for everything in a tree that is no folder, in git's order.
func (r *Repo) Walk(tree plumbing.Hash, f func(path string, e Entry) error) error {
	return r.walk(tree, "", f)
}

func (r *Repo) walk(tree plumbing.Hash, prefix string, f func(string, Entry) error) error {
	list, err := r.Entries(tree)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			err = r.walk(e.ID, prefix+e.Name+"/", f)
		} else {
			err = f(prefix+e.Name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Touches says whether any of the paths, files or folders, is not the same in two
// trees. Folders that hold none of them are not read.
func (r *Repo) Touches(before, after plumbing.Hash, paths []string) (bool, error) {
	if before == after || len(paths) == 0 {
		return false, nil
	}
	old, err := r.Entries(before)
	if err != nil {
		return false, err
	}
	now, err := r.Entries(after)
	if err != nil {
		return false, err
	}
	// By the first part of the path; whole are those that end there.
	below, whole := map[string][]string{}, map[string]bool{}
	for _, p := range paths {
		name, rest, more := strings.Cut(p, "/")
		below[name] = append(below[name], rest)
		whole[name] = whole[name] || !more
	}
	named := func(list []Entry, name string) Entry {
		if i := slices.IndexFunc(list, func(e Entry) bool { return e.Name == name }); i >= 0 {
			return list[i]
		}
		return Entry{}
	}
	for name, rest := range below {
		b, a := named(old, name), named(now, name)
		if b == a {
			continue
		}
		if whole[name] {
			return true, nil
		}
		sides := [2]plumbing.Hash{} // zero for what is no folder: nothing is below it
		for i, e := range []Entry{b, a} {
			if e.IsDir() {
				sides[i] = e.ID
			}
		}
		if touched, err := r.Touches(sides[0], sides[1], rest); touched || err != nil {
			return touched, err
		}
	}
	return false, nil
}

// treeOrder is git's: a folder sorts as if a slash stood behind its name.
func treeOrder(a, b Entry) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 && !strings.HasPrefix(a.Name, b.Name) && !strings.HasPrefix(b.Name, a.Name) {
		return c
	}
	key := func(e Entry) string {
		if e.IsDir() {
			return e.Name + "/"
		}
		return e.Name
	}
	return strings.Compare(key(a), key(b))
}

// Differences calls f for each path that is not the same in two trees; b or a is
// nil where it is missing. A folder against a file is told as what each holds.
func (r *Repo) Differences(before, after plumbing.Hash, f func(path string, b, a *Entry) error) error {
	return r.differences(before, after, "", f)
}

func (r *Repo) differences(before, after plumbing.Hash, prefix string, f func(path string, b, a *Entry) error) error {
	if before == after {
		return nil
	}
	old, err := r.Entries(before)
	if err != nil {
		return err
	}
	now, err := r.Entries(after)
	if err != nil {
		return err
	}
	was := make(map[string]Entry, len(old))
	for _, e := range old {
		was[e.Name] = e
	}
	one := func(b, a *Entry) error {
		switch {
		case b != nil && a != nil && b.ID == a.ID && b.Mode == a.Mode:
			return nil
		case b != nil && a != nil && b.IsDir() && a.IsDir():
			return r.differences(b.ID, a.ID, prefix+a.Name+"/", f)
		}
		if b != nil && b.IsDir() {
			if err := r.differences(b.ID, plumbing.ZeroHash, prefix+b.Name+"/", f); err != nil {
				return err
			}
			b = nil
		}
		if a != nil && a.IsDir() {
			if b != nil {
				if err := f(prefix+b.Name, b, nil); err != nil {
					return err
				}
			}
			return r.differences(plumbing.ZeroHash, a.ID, prefix+a.Name+"/", f)
		}
		if a == nil && b == nil {
			return nil
		}
		if a == nil {
			return f(prefix+b.Name, b, nil)
		}
		return f(prefix+a.Name, b, a)
	}
	// What goes comes first, so that a file can take the place of a folder.
	is := make(map[string]bool, len(now))
	for _, e := range now {
		is[e.Name] = true
	}
	for _, e := range old {
		if !is[e.Name] {
			if err := one(&e, nil); err != nil {
				return err
			}
		}
	}
	for _, e := range now {
		if b, ok := was[e.Name]; ok {
			err = one(&b, &e)
		} else {
			err = one(nil, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
