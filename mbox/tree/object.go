package tree

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/diff"
)

func (r *Repo) has(id plumbing.Hash) bool {
	r.mu.RLock()
	_, ok := r.over[id]
	r.mu.RUnlock()
	return ok || r.odb.Has(id)
}

func (r *Repo) read(id plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	r.mu.RLock()
	o, ok := r.over[id]
	r.mu.RUnlock()
	if ok {
		return o.typ, o.data, nil
	}
	return r.odb.Read(id)
}

// want reads an object that must be there and be of a type.
func (r *Repo) want(typ plumbing.ObjectType, id plumbing.Hash) ([]byte, error) {
	have, data, err := r.read(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, fmt.Errorf("%s %s is not in %s; run git fsck there: %w", typ, id, r.dir, err)
	} else if err != nil {
		return nil, err
	}
	if have != typ {
		return nil, fmt.Errorf("%s is a %s in %s, not a %s", id, have, r.dir, typ)
	}
	return data, nil
}

func (r *Repo) blob(id plumbing.Hash) ([]byte, error) { return r.want(plumbing.BlobObject, id) }

// size is the length of an object in bytes.
func (r *Repo) size(id plumbing.Hash) (int64, error) {
	r.mu.RLock()
	o, ok := r.over[id]
	r.mu.RUnlock()
	if ok {
		return int64(len(o.data)), nil
	}
	return r.odb.Size(id)
}

// idOf is the id that git gives to an object.
func idOf(typ plumbing.ObjectType, data []byte) (id plumbing.Hash) {
	h := sha1.New()
	h.Write(append(strconv.AppendInt([]byte(typ.String()+" "), int64(len(data)), 10), 0))
	h.Write(data)
	h.Sum(id[:0])
	return id
}

// write puts an object into the overlay.
func (r *Repo) write(typ plumbing.ObjectType, data []byte) plumbing.Hash {
	id := idOf(typ, data)
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.over[id]; !ok {
		r.over[id] = object{typ, data}
	}
	return id
}

// commit is what is needed of a commit object.
type commit struct {
	id      plumbing.Hash
	tree    plumbing.Hash
	parents []plumbing.Hash
	author  mbox.Address
	date    int64 // of the committer, in Unix seconds
	subject string
}

func (r *Repo) commit(id plumbing.Hash) (*commit, error) {
	data, err := r.want(plumbing.CommitObject, id)
	if err != nil {
		return nil, err
	}
	c := &commit{id: id}
	head, body, _ := bytes.Cut(data, []byte("\n\n"))
	for line := range strings.Lines(string(head) + "\n") {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.tree = plumbing.NewHash(value)
		case "parent":
			c.parents = append(c.parents, plumbing.NewHash(value))
		case "author":
			name, rest, _ := strings.Cut(value, "<")
			email, _, _ := strings.Cut(rest, ">")
			c.author = mbox.Address{Name: strings.TrimSpace(name), Email: email}
		case "committer":
			_, when, _ := strings.Cut(value, "> ")
			when, _, _ = strings.Cut(when, " ")
			c.date, _ = strconv.ParseInt(when, 10, 64)
		}
	}
	// A subject is the first paragraph as one line.
	text, _, _ := strings.Cut(strings.TrimLeft(string(body), "\n"), "\n\n")
	c.subject = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "\uFFFD")
	return c, nil
}

// writeCommit makes a commit by the patch's author. The committer is the bot at
// the author's date, so that equal input gives equal ids.
func (r *Repo) writeCommit(tree, parent plumbing.Hash, p *mbox.Patch) plumbing.Hash {
	when := "0 +0000"
	if !p.Date.IsZero() {
		when = strconv.FormatInt(max(p.Date.Unix(), 0), 10) + " " + p.Date.Format("-0700")
	}
	email := identity(p.Author.Email)
	name := identity(p.Author.Name)
	if name == "" {
		name = email
	}
	if name == "" {
		name = "unknown"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\nparent %s\nauthor %s <%s> %s\ncommitter Patchbench <patchbench@localhost> %s\n\n%s",
		tree, parent, name, email, when, when, strings.ReplaceAll(p.Message, "\x00", ""))
	return r.write(plumbing.CommitObject, b.Bytes())
}

// identity leaves out of a name or address what git leaves out of one: angle
// brackets and control characters anywhere, and crud at the ends.
func identity(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '<' || c == '>' {
			return -1
		}
		return c
	}, s)
	return strings.Trim(s, " .,:;\"\\'")
}

// entry is one line of a tree.
type entry struct {
	name string
	mode uint32
	id   plumbing.Hash
}

const modeDir = 0o040000

func (e entry) isDir() bool    { return e.mode&diff.TypeMask == modeDir }
func (e entry) isFile() bool   { return e.mode&diff.TypeMask == diff.TypeRegular }
func (e entry) isLink() bool   { return e.mode&diff.TypeMask == diff.TypeLink }
func (e entry) isModule() bool { return e.mode&diff.TypeMask == diff.TypeModule }

// canonical is the mode that git's index has for a tree's mode.
func canonical(mode uint32) uint32 {
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

// tree reads a tree; the zero id is the empty one. The slice must not be changed.
func (r *Repo) tree(id plumbing.Hash) ([]entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	r.mu.RLock()
	list, ok := r.trees[id]
	r.mu.RUnlock()
	if ok {
		return list, nil
	}
	data, err := r.want(plumbing.TreeObject, id)
	if err != nil {
		return nil, err
	}
	broken := fmt.Errorf("tree %s in %s is broken; run git fsck there", id, r.dir)
	list = make([]entry, 0, len(data)/32)
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
		e := entry{name: string(name), mode: uint32(m)}
		copy(e.id[:], after)
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

// walk calls f for everything in a tree that is no folder, in git's order.
func (r *Repo) walk(tree plumbing.Hash, prefix string, f func(string, entry) error) error {
	list, err := r.tree(tree)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.isDir() {
			err = r.walk(e.id, prefix+e.name+"/", f)
		} else {
			err = f(prefix+e.name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// treeOrder is git's: a folder sorts as if a slash stood behind its name.
func treeOrder(a, b entry) int {
	if c := strings.Compare(a.name, b.name); c != 0 && !strings.HasPrefix(a.name, b.name) && !strings.HasPrefix(b.name, a.name) {
		return c
	}
	key := func(e entry) string {
		if e.isDir() {
			return e.name + "/"
		}
		return e.name
	}
	return strings.Compare(key(a), key(b))
}

// editor changes a tree path by path; what is not touched is not read.
type editor struct {
	r    *Repo
	root *folder
}

type folder struct {
	id      plumbing.Hash
	loaded  bool
	own     bool // entries is a copy that may be changed
	changed bool
	entries []entry
	below   map[string]*folder // the folders that were entered
}

func (r *Repo) edit(tree plumbing.Hash) *editor {
	return &editor{r, &folder{id: tree}}
}

func (e *editor) load(f *folder) error {
	if f.loaded {
		return nil
	}
	list, err := e.r.tree(f.id)
	if err != nil {
		return err
	}
	f.entries, f.loaded, f.below = list, true, map[string]*folder{}
	return nil
}

func (f *folder) index(name string) int {
	return slices.IndexFunc(f.entries, func(e entry) bool { return e.name == name })
}

// enter gives the folder of that name below f, nil if there is none.
func (e *editor) enter(f *folder, name string) (*folder, error) {
	if err := e.load(f); err != nil {
		return nil, err
	}
	if sub, ok := f.below[name]; ok {
		return sub, nil
	}
	i := f.index(name)
	if i < 0 || !f.entries[i].isDir() {
		return nil, nil
	}
	sub := &folder{id: f.entries[i].id}
	f.below[name] = sub
	return sub, e.load(sub)
}

// get looks a path up. A path below a file or symbolic link is not there.
func (e *editor) get(path string) (entry, bool, error) {
	f := e.root
	for {
		dir, rest, more := strings.Cut(path, "/")
		if !more {
			break
		}
		sub, err := e.enter(f, dir)
		if err != nil || sub == nil {
			return entry{}, false, err
		}
		f, path = sub, rest
	}
	if err := e.load(f); err != nil {
		return entry{}, false, err
	}
	i := f.index(path)
	if i < 0 {
		return entry{}, false, nil
	}
	return f.entries[i], true, nil
}

func (f *folder) touch() {
	if !f.own {
		f.entries, f.own = slices.Clone(f.entries), true
	}
	f.changed = true
}

// set puts a file at a path, with the folders above it. It gives a reason if a
// folder stands at the path or something else than a folder above it.
func (e *editor) set(path string, mode uint32, id plumbing.Hash) (reason string, err error) {
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
				if f.entries[i].isLink() {
					return fmt.Sprintf("%q is a symbolic link", seen), nil
				}
				return fmt.Sprintf("%s is both a file and a directory", seen), nil
			}
			sub = &folder{loaded: true, own: true, below: map[string]*folder{}}
			f.entries = append(f.entries, entry{name: dir, mode: modeDir})
			f.below[dir] = sub
		}
		f, name = sub, rest
		seen += "/"
	}
	made := entry{path, mode, id}
	i := f.index(path)
	switch {
	case i < 0:
		f.entries = append(f.entries, made)
	case f.entries[i].isDir():
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
		if sub := f.below[e.name]; !e.isDir() || sub == nil || !sub.empty() {
			return false
		}
	}
	return true
}

// remove takes a path away if it is there.
func (e *editor) remove(path string) error {
	if _, ok, err := e.get(path); !ok || err != nil {
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

// write makes tree objects of all that changed and gives the root's id. Folders
// that became empty are gone, as git keeps none.
func (e *editor) write() plumbing.Hash {
	return e.writeFolder(e.root)
}

func (e *editor) writeFolder(f *folder) plumbing.Hash {
	if !f.changed {
		return f.id
	}
	list := make([]entry, 0, len(f.entries))
	for _, en := range f.entries {
		if sub := f.below[en.name]; en.isDir() && sub != nil && sub.changed {
			if sub.empty() {
				continue
			}
			en.id = e.writeFolder(sub)
		}
		// What git writes comes from its index, which knows only these modes.
		if !en.isDir() {
			en.mode = canonical(en.mode)
		}
		list = append(list, en)
	}
	slices.SortFunc(list, treeOrder)
	var b bytes.Buffer
	for _, en := range list {
		b.WriteString(strconv.FormatUint(uint64(en.mode), 8))
		b.WriteByte(' ')
		b.WriteString(en.name)
		b.WriteByte(0)
		b.Write(en.id[:])
	}
	f.id = e.r.write(plumbing.TreeObject, b.Bytes())
	f.entries, f.changed = list, false
	return f.id
}
