package overlay

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Editor changes a tree path by path; what is not touched is not read.
type Editor struct {
	r    *Repo
	root *folder
}

type folder struct {
	id      plumbing.Hash
	loaded  bool
	own     bool // entries is a copy that may be changed
	changed bool
	entries []Entry
	below   map[string]*folder // the folders that were entered
}

// Edit begins to change a tree; the zero id is the empty one.
func (r *Repo) Edit(tree plumbing.Hash) *Editor {
	return &Editor{r, &folder{id: tree}}
}

func (e *Editor) load(f *folder) error {
	if f.loaded {
		return nil
	}
	list, err := e.r.Entries(f.id)
	if err != nil {
		return err
	}
	f.entries, f.loaded, f.below = list, true, map[string]*folder{}
	return nil
}

func (f *folder) index(name string) int {
	return slices.IndexFunc(f.entries, func(e Entry) bool { return e.Name == name })
}

// enter gives the folder of that name below f, nil if there is none.
func (e *Editor) enter(f *folder, name string) (*folder, error) {
	if err := e.load(f); err != nil {
		return nil, err
	}
	if sub, ok := f.below[name]; ok {
		return sub, nil
	}
	i := f.index(name)
	if i < 0 || !f.entries[i].IsDir() {
		return nil, nil
	}
	sub := &folder{id: f.entries[i].ID}
	f.below[name] = sub
	return sub, e.load(sub)
}

// Get looks a path up. A path below a file or symbolic link is not there.
func (e *Editor) Get(path string) (Entry, bool, error) {
	f := e.root
	for {
		dir, rest, more := strings.Cut(path, "/")
		if !more {
			break
		}
		sub, err := e.enter(f, dir)
		if err != nil || sub == nil {
			return Entry{}, false, err
		}
		f, path = sub, rest
	}
	if err := e.load(f); err != nil {
		return Entry{}, false, err
	}
	i := f.index(path)
	if i < 0 {
		return Entry{}, false, nil
	}
	return f.entries[i], true, nil
}

func (f *folder) touch() {
	if !f.own {
		f.entries, f.own = slices.Clone(f.entries), true
	}
	f.changed = true
}

// Set puts a file at a path, with the folders above it. It gives a reason if a
// folder stands at the path or something else than a folder above it.
func (e *Editor) Set(path string, mode uint32, id plumbing.Hash) (reason string, err error) {
	f, seen := e.root, ""
	for name := path; ; {
		if err := e.load(f); err != nil {
			return "", err
		}
		f.touch()
		dir, rest, more := strings.Cut(name, "/")
		if !more {
			path = name
			break
		}
		seen += dir
		sub, err := e.enter(f, dir)
		if err != nil {
			return "", err
		}
		if sub == nil {
			if i := f.index(dir); i >= 0 {
				if f.entries[i].IsLink() {
					return fmt.Sprintf("%q is a symbolic link", seen), nil
				}
				return fmt.Sprintf("%s is both a file and a directory", seen), nil
			}
			sub = &folder{loaded: true, own: true, below: map[string]*folder{}}
			f.entries = append(f.entries, Entry{Name: dir, Mode: modeDir})
			f.below[dir] = sub
		}
		f, name = sub, rest
		seen += "/"
	}
	made := Entry{path, mode, id}
	i := f.index(path)
	switch {
	case i < 0:
		f.entries = append(f.entries, made)
	case f.entries[i].IsDir():
		if sub := f.below[path]; sub == nil || !sub.empty() {
			return fmt.Sprintf("%s is both a file and a directory", seen+path), nil
		}
		delete(f.below, path)
		f.entries[i] = made
	default:
		f.entries[i] = made
	}
	return "", nil
}

// empty says that nothing is left in a folder, or only empty ones.
func (f *folder) empty() bool {
	if !f.loaded {
		return false
	}
	for _, e := range f.entries {
		if sub := f.below[e.Name]; !e.IsDir() || sub == nil || !sub.empty() {
			return false
		}
	}
	return true
}

// Remove takes a path away if it is there.
func (e *Editor) Remove(path string) error {
	if _, ok, err := e.Get(path); !ok || err != nil {
		return err
	}
	f := e.root
	for {
		f.touch()
		dir, rest, more := strings.Cut(path, "/")
		if !more {
			break
		}
		f, path = f.below[dir], rest
	}
	i := f.index(path)
	f.entries = slices.Delete(f.entries, i, i+1)
	return nil
}

// Write makes tree objects of all that changed and gives the root's id. Folders
// that became empty are gone, as git keeps none.
func (e *Editor) Write() plumbing.Hash {
	return e.writeFolder(e.root)
}

func (e *Editor) writeFolder(f *folder) plumbing.Hash {
	if !f.changed {
		return f.id
	}
	list := make([]Entry, 0, len(f.entries))
	for _, en := range f.entries {
		if sub := f.below[en.Name]; en.IsDir() && sub != nil && sub.changed {
			if sub.empty() {
				continue
			}
			en.ID = e.writeFolder(sub)
		}
		// What git writes comes from its index, which knows only these modes.
		if !en.IsDir() {
			en.Mode = Canonical(en.Mode)
		}
		list = append(list, en)
	}
	slices.SortFunc(list, treeOrder)
	var b bytes.Buffer
	for _, en := range list {
		b.WriteString(strconv.FormatUint(uint64(en.Mode), 8))
		b.WriteByte(' ')
		b.WriteString(en.Name)
		b.WriteByte(0)
		b.Write(en.ID[:])
	}
	f.id = e.r.Write(plumbing.TreeObject, b.Bytes())
	f.entries, f.changed = list, false
	return f.id
}
