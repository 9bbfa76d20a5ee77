// Package merge brings the change that a patch makes to a few files into a tree
// in which they, or their names, are others by now. In go three trees, the files
// as the patch knew them (base), as it leaves them (theirs) and the whole tree to
// change (ours); out come the paths to write and to remove, or why a person has
// to decide. It is the part of mbox/tree that stands behind git am -3.
//
//	base: a.c    theirs: a.c with a change    ours: lib/a.c, renamed and changed
//	                                       -> lib/a.c with both changes
//
// What is merged, and what is a conflict, follows git's merge-recursive as git
// am -3 calls it: renames are found on both sides by how much alike the files
// are, and those of whole folders are not followed. A conflict in one line is a
// conflict of the patch. Nothing here reads a repository or knows a patch.
package merge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// Entry is a file, symbolic link or submodule in a tree. Mode is one that git's
// index has.
type Entry struct {
	Mode uint32
	ID   plumbing.Hash
}

// Tree is the tree that is changed.
type Tree interface {
	// File gives what stands at a path; false for nothing and for a folder.
	File(path string) (Entry, bool, error)
	// Walk calls f for everything that is no folder, in the order of git's trees.
	Walk(f func(path string, e Entry) error) error
}

// Blobs reads and writes the contents of files.
type Blobs interface {
	Blob(id plumbing.Hash) ([]byte, error)
	Size(id plumbing.Hash) (int64, error)
	WriteBlob(data []byte) plumbing.Hash
}

// Conflict is why a file cannot be merged. Line is that in our file where the
// first disputed change starts, 0 for the file as a whole.
type Conflict struct {
	Path   string
	Line   int
	Reason string
}

// Result is what to change in our tree. It is of no use if there are conflicts.
type Result struct {
	// Remove lists paths to take away before those of Put are written.
	Remove []string
	Put    map[string]Entry
	// Notes tell a reader where a file was found under another name.
	Notes     []string
	Conflicts []Conflict
}

// Trees merges. Base and theirs hold the files that the patch touches by path. An
// error means that an object could not be read or that ctx has ended.
func Trees(ctx context.Context, base, theirs map[string]Entry, ours Tree, blobs Blobs) (*Result, error) {
	m := &merger{blobs: blobs, base: base, theirs: theirs, tree: ours, ours: map[string]Entry{},
		done: map[string]bool{}, out: &Result{Put: map[string]Entry{}}}
	if err := m.find(ctx); err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(m.base))
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.renamed(p); err != nil {
			return nil, err
		}
	}
	for p := range theirs {
		if _, ok := base[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.done[p] {
			continue
		}
		if err := m.put(p, p, m.get(m.base, p), m.get(m.ours, p), m.get(m.theirs, p)); err != nil {
			return nil, err
		}
	}
	return m.out, nil
}

type merger struct {
	blobs        Blobs
	base, theirs map[string]Entry
	tree         Tree
	ours         map[string]Entry // of our tree what can matter
	// Where the files of the base went on each side.
	byUs, byThem map[string]string
	done         map[string]bool
	out          *Result
}

func (m *merger) get(side map[string]Entry, path string) *Entry {
	if e, ok := side[path]; ok {
		return &e
	}
	return nil
}

// find reads our side of all paths that matter and finds the renames.
func (m *merger) find(ctx context.Context) (err error) {
	look := func(path string) error {
		e, ok, err := m.tree.File(path)
		if ok {
			m.ours[path] = e
		}
		return err
	}
	var gone, come []*file
	for _, p := range slices.Sorted(maps.Keys(m.base)) {
		if err := look(p); err != nil {
			return err
		}
		if _, ok := m.theirs[p]; !ok {
			gone = append(gone, &file{path: p, Entry: m.base[p]})
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.theirs)) {
		if _, ok := m.base[p]; !ok {
			come = append(come, &file{path: p, Entry: m.theirs[p]})
			if err := look(p); err != nil {
				return err
			}
		}
	}
	if m.byThem, err = renames(ctx, m.blobs, gone, come); err != nil {
		return err
	}
	for _, to := range m.byThem {
		if err := look(to); err != nil {
			return err
		}
	}
	gone, come = nil, nil
	for _, p := range slices.Sorted(maps.Keys(m.base)) {
		if _, ok := m.ours[p]; !ok {
			gone = append(gone, &file{path: p, Entry: m.base[p]})
		}
	}
	if len(gone) == 0 {
		return nil
	}
	// The base holds only what the patch touches, so that git takes everything
	// else in our tree for new.
	err = m.tree.Walk(func(path string, e Entry) error {
		if _, ok := m.base[path]; !ok {
			come = append(come, &file{path: path, Entry: e})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.byUs, err = renames(ctx, m.blobs, gone, come); err != nil {
		return err
	}
	for _, to := range m.byUs {
		if err := look(to); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) conflict(path string, line int, format string, args ...any) {
	m.out.Conflicts = append(m.out.Conflicts, Conflict{path, line, fmt.Sprintf(format, args...)})
}

// renamed merges a file of the base that one side or both have renamed.
func (m *merger) renamed(from string) error {
	us, byUs := m.byUs[from]
	them, byThem := m.byThem[from]
	if !byUs && !byThem {
		return nil
	}
	b := m.get(m.base, from)
	m.done[from] = true
	for _, to := range []string{us, them} {
		if to != "" {
			m.done[to] = true
		}
	}
	if byUs {
		m.out.Notes = append(m.out.Notes, fmt.Sprintf("%s is %s in the base", from, us))
	}
	switch {
	case byUs && byThem && us != them:
		m.conflict(from, 0, "the file is %s in the base and is renamed to %s by the patch", us, them)
		return nil
	case byUs && byThem:
		return m.put(from, us, b, m.get(m.ours, us), m.get(m.theirs, us))
	case byUs:
		t, added := m.get(m.theirs, from), m.get(m.theirs, us)
		if m.isTarget(m.byThem, us) {
			m.conflict(us, 0, "the base and the patch both rename a file to it")
			return nil
		}
		if t == nil {
			m.conflict(from, 0, "the file is %s in the base and is deleted by the patch", us)
			return nil
		}
		o := m.get(m.ours, us)
		if added != nil && *added == *o {
			return nil // the patch brings the renamed file as it is
		}
		if added != nil {
			m.conflict(us, 0, "%s is renamed to it in the base, and the patch adds it too", from)
			return nil
		}
		return m.put(from, us, b, o, t)
	}
	o, there := m.get(m.ours, from), m.get(m.ours, them)
	if m.isTarget(m.byUs, them) {
		m.conflict(them, 0, "the base and the patch both rename a file to it")
		return nil
	}
	if o == nil {
		m.conflict(from, 0, "the file was deleted in the base and is renamed to %s by the patch", them)
		return nil
	}
	t := m.get(m.theirs, them)
	if there != nil && *there == *t {
		m.out.Remove = append(m.out.Remove, from)
		return nil
	}
	if there != nil {
		m.conflict(them, 0, "the patch renames %s to it, and it exists already", from)
		return nil
	}
	return m.put(from, them, b, o, t)
}

func (m *merger) isTarget(pairs map[string]string, path string) bool {
	for _, to := range pairs {
		if to == path {
			return true
		}
	}
	return false
}

// put merges one file and puts it where it belongs.
func (m *merger) put(from, to string, b, o, t *Entry) error {
	how := m.merge
	if from != to {
		// A renamed file that is the same on both sides but for its type is a
		// conflict, where git would not even look at one with its old name.
		how = m.contents
	}
	e, c, err := how(b, o, t)
	if err != nil {
		return err
	}
	if c != nil {
		m.conflict(to, c.Line, "%s", c.Reason)
		return nil
	}
	if _, ok := m.ours[from]; ok && (e == nil || from != to) {
		m.out.Remove = append(m.out.Remove, from)
	}
	if e == nil {
		return nil
	}
	if have, ok := m.ours[to]; !ok || have != *e {
		m.out.Put[to] = *e
	}
	return nil
}

// merge gives the merged entry, nil for none, or why there cannot be one.
func (m *merger) merge(b, o, t *Entry) (*Entry, *Conflict, error) {
	same := func(x, y *Entry) bool { return x == nil && y == nil || x != nil && y != nil && *x == *y }
	switch {
	case same(b, t), same(o, t):
		return o, nil, nil
	case same(b, o):
		return t, nil, nil
	case o == nil:
		return no("the file was deleted in the base and is changed by the patch")
	case t == nil:
		return no("the file was changed in the base and is deleted by the patch")
	}
	return m.contents(b, o, t)
}

// contents merges a file that is on both sides; b is nil where it was not before.
func (m *merger) contents(b, o, t *Entry) (*Entry, *Conflict, error) {
	switch {
	case kind(o.Mode) != kind(t.Mode):
		return no("the file is of another type in the base than in the patch")
	}
	was := Entry{ID: emptyBlob}
	if b != nil {
		was = *b
	}
	e := *o
	switch {
	case o.Mode == t.Mode, o.Mode == was.Mode:
		e.Mode = t.Mode
	case t.Mode != was.Mode:
		return no("the base and the patch both change the file's mode")
	}
	switch {
	case t.ID == was.ID || o.ID == t.ID:
		return &e, nil, nil
	case o.ID == was.ID:
		e.ID = t.ID
		return &e, nil, nil
	case b == nil:
		return no("the base and the patch both add the file, with different contents")
	case !isFile(was.Mode) || !isFile(o.Mode):
		return no("the base and the patch both change it, and it is no regular file")
	}
	var data [3][]byte
	var err error
	for i, id := range []plumbing.Hash{was.ID, o.ID, t.ID} {
		if data[i], err = m.blobs.Blob(id); err != nil {
			return nil, nil, err
		}
	}
	out, line, ok := Lines(data[0], data[1], data[2])
	switch {
	case !ok && line == 0:
		return no("the base and the patch both change a binary file")
	case !ok:
		return nil, &Conflict{Line: line, Reason: fmt.Sprintf("the base and the patch both change the lines at %d", line)}, nil
	}
	e.ID = m.blobs.WriteBlob(out)
	return &e, nil, nil
}

// kind is the type bits of a mode.
func kind(mode uint32) uint32 { return mode & 0o170000 }

// no is a conflict of the file as a whole.
func no(format string, args ...any) (*Entry, *Conflict, error) {
	return nil, &Conflict{Reason: fmt.Sprintf(format, args...)}, nil
}

func isFile(mode uint32) bool { return kind(mode) == 0o100000 }
