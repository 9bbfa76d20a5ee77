package tree

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
)

// threeWay does what git am -3 does after a patch did not apply: it makes a tree
// of the files that the index lines name, applies the patch to that, and merges
// the change into the tree. The refusals say why that was of no use; one without
// a reason says that the patch gives no blob ids at all.
func (r *Repo) threeWay(ctx context.Context, tree plumbing.Hash, files []diff.File) (*outcome, []refusal, error) {
	ours, fake := r.edit(tree), r.edit(plumbing.ZeroHash)
	for i := range files {
		f := &files[i]
		if f.Create == diff.Yes || f.Create == diff.Unknown && f.OldID == "" {
			continue
		}
		mode, id := f.OldMode, moduleBefore(f)
		if mode&diff.TypeMask != diff.TypeModule {
			id = r.blobByPrefix(f.OldID)
		}
		if id.IsZero() && f.Added == 0 && f.Deleted == 0 && !f.IsBinary {
			// Only a mode or a name changes: the file is what it is now.
			e, ok, err := ours.get(f.Old)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				id, mode = e.id, e.mode
			}
		}
		if id.IsZero() {
			reason := ""
			if f.OldID != "" {
				reason = fmt.Sprintf("the blob %s that the patch was made against is not in the repository", f.OldID)
			}
			return nil, []refusal{{path: f.Name(), reason: reason}}, nil
		}
		if mode == 0 {
			mode = 0o100644
		}
		if reason, err := fake.set(f.Old, canonical(mode), id); err != nil {
			return nil, nil, err
		} else if reason != "" {
			return nil, []refusal{{path: f.Name(), reason: reason}}, nil
		}
	}
	base := fake.write()
	theirs, bad, err := r.applyFiles(ctx, base, files)
	if err != nil {
		return nil, nil, err
	}
	if bad != nil {
		for i := range bad {
			bad[i].reason = "the patch does not apply to the blobs of its own index lines: " + bad[i].reason
		}
		return nil, bad, nil
	}
	m := &merger{r: r, base: r.edit(base), ours: ours, theirs: r.edit(theirs.tree), to: r.edit(tree)}
	if err := m.all(ctx, theirs.changes); err != nil {
		return nil, nil, err
	}
	if len(m.bad) > 0 {
		return nil, m.bad, nil
	}
	return &outcome{tree: m.to.write(), how: HowThreeWay, notes: m.notes, module: theirs.module}, nil, nil
}

// moduleBefore is the commit that a submodule's hunk removes.
func moduleBefore(f *diff.File) plumbing.Hash {
	for _, h := range f.Hunks {
		for line := range strings.Lines(string(h.Body)) {
			if id, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "-"+modulePrefix); ok && plumbing.IsHash(id) {
				return plumbing.NewHash(id)
			}
		}
	}
	return plumbing.ZeroHash
}

// blobByPrefix finds the one blob whose id starts so; zero for none or several.
func (r *Repo) blobByPrefix(prefix string) plumbing.Hash {
	if strings.Trim(prefix, "0") == "" {
		return plumbing.ZeroHash
	}
	ids := r.odb.Prefix(prefix)
	r.mu.RLock()
	for id, o := range r.over {
		if o.typ == plumbing.BlobObject && strings.HasPrefix(id.String(), strings.ToLower(prefix)) {
			ids = append(ids, id)
		}
	}
	r.mu.RUnlock()
	var found plumbing.Hash
	for _, id := range ids {
		if typ, _, err := r.read(id); err != nil || typ != plumbing.BlobObject || id == found {
			continue
		}
		if !found.IsZero() {
			return plumbing.ZeroHash
		}
		found = id
	}
	return found
}

// merger brings the change from base to theirs into ours, path by path.
type merger struct {
	r                  *Repo
	base, ours, theirs *editor
	to                 *editor // starts as ours
	bad                []refusal
	notes              []string
}

// all goes through the paths that the patch touches. First comes what goes away,
// so that a file can take the place of a folder.
func (m *merger) all(ctx context.Context, changes []change) error {
	type put struct {
		path string
		e    entry
	}
	var puts []put
	done3 := map[string]bool{}
	for _, c := range changes {
		if err := done(ctx, "merge patch"); err != nil {
			return err
		}
		from, to := c.file.Old, c.file.New
		if from == "" {
			from = to
		}
		if to == "" || c.file.Copy {
			// A copy leaves the old file as it is and adds another.
			to = from
			if c.file.Copy {
				from, to = c.file.New, c.file.New
			}
		}
		if done3[to] {
			continue
		}
		done3[to] = true
		b, t, err := m.pair(from, to)
		if err != nil {
			return err
		}
		o, at, err := m.our(from, to, b)
		if err != nil {
			return err
		}
		if at != "" && at != from && at != to {
			switch {
			case t == nil:
				m.bad = append(m.bad, refusal{path: from, reason: fmt.Sprintf("the file is %s in the base and is deleted by the patch", at)})
				continue
			case from != to:
				m.bad = append(m.bad, refusal{path: from, reason: fmt.Sprintf("the file is %s in the base and is renamed to %s by the patch", at, to)})
				continue
			}
		}
		e, keep, reason, line, err := m.merge(b, o, t)
		if err != nil {
			return err
		}
		if reason != "" {
			m.bad = append(m.bad, refusal{path: to, line: line, reason: reason})
			continue
		}
		if at != "" && (!keep || at != to && from != to) {
			if err := m.to.remove(at); err != nil {
				return err
			}
		}
		if keep {
			if from == to && at != "" {
				to = at // we have the file under another name
			}
			puts = append(puts, put{to, e})
		}
	}
	for _, p := range puts {
		reason, err := m.to.set(p.path, canonical(p.e.mode), p.e.id)
		if err != nil {
			return err
		}
		if reason != "" {
			m.bad = append(m.bad, refusal{path: p.path, reason: reason})
		}
	}
	return nil
}

// pair gives the file before and after the patch; nil where there is none.
func (m *merger) pair(from, to string) (b, t *entry, err error) {
	if b, err = lookup(m.base, from); err != nil {
		return nil, nil, err
	}
	t, err = lookup(m.theirs, to)
	return b, t, err
}

func lookup(ed *editor, path string) (*entry, error) {
	e, ok, err := ed.get(path)
	if !ok || err != nil || e.isDir() {
		return nil, err
	}
	return &e, nil
}

// our gives our side of a file and where it is. A file that is gone from where
// the patch has it may have been renamed on our side.
func (m *merger) our(from, to string, b *entry) (*entry, string, error) {
	o, err := lookup(m.ours, from)
	if err != nil {
		return nil, "", err
	}
	if o != nil {
		if from != to {
			if there, err := lookup(m.ours, to); err != nil {
				return nil, "", err
			} else if there != nil {
				m.bad = append(m.bad, refusal{path: to, reason: "the patch renames to it, and it exists already"})
			}
		}
		return o, from, nil
	}
	if b == nil {
		return nil, "", nil
	}
	if from != to {
		if o, err = lookup(m.ours, to); o != nil || err != nil {
			return o, to, err
		}
	}
	path, o, err := m.renamed(from, b)
	if err != nil || o == nil {
		return nil, "", err
	}
	m.notes = append(m.notes, fmt.Sprintf("%s is %s in the base", from, path))
	return o, path, nil
}

// merge gives the merged entry, whether there is one, and else why not.
func (m *merger) merge(b, o, t *entry) (e entry, keep bool, reason string, line int, err error) {
	same := func(x, y *entry) bool {
		return x == nil && y == nil || x != nil && y != nil && x.id == y.id && canonical(x.mode) == canonical(y.mode)
	}
	pick := func(x *entry) (entry, bool, string, int, error) {
		if x == nil {
			return entry{}, false, "", 0, nil
		}
		return *x, true, "", 0, nil
	}
	switch {
	case same(b, t), same(o, t):
		return pick(o)
	case same(b, o):
		return pick(t)
	case o == nil:
		return e, false, "the file was deleted in the base and is changed by the patch", 0, nil
	case t == nil:
		return e, false, "the file was changed in the base and is deleted by the patch", 0, nil
	case b == nil:
		return e, false, "the base and the patch both add the file, with different contents", 0, nil
	}
	e = *o
	switch {
	case canonical(o.mode) == canonical(b.mode):
		e.mode = t.mode
	case canonical(t.mode) != canonical(b.mode) && canonical(t.mode) != canonical(o.mode):
		return e, false, "the base and the patch both change the file's mode", 0, nil
	}
	switch {
	case t.id == b.id || o.id == t.id:
		return e, true, "", 0, nil
	case o.id == b.id:
		e.id = t.id
		return e, true, "", 0, nil
	case !b.isFile() || !o.isFile() || !t.isFile():
		return e, false, "the base and the patch both change " + kindOf(o.mode), 0, nil
	}
	var data [3][]byte
	for i, x := range []*entry{b, o, t} {
		if data[i], err = m.r.blob(x.id); err != nil {
			return e, false, "", 0, err
		}
	}
	out, line, ok := diff.Merge(data[0], data[1], data[2])
	if !ok {
		if line == 0 {
			return e, false, "the base and the patch both change a binary file", 0, nil
		}
		return e, false, fmt.Sprintf("the base and the patch both change the lines at %d", line), line, nil
	}
	e.id = m.r.write(plumbing.BlobObject, out)
	return e, true, "", 0, nil
}
