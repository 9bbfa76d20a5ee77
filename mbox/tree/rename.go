package tree

import (
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
)

// Shares of bytes that two files must have in common to be taken for one that
// was renamed. A file of the same base name needs more to be taken without a
// look at all others, as in git's diffcore-rename.
const (
	similar     = 0.50
	similarName = 0.75
)

// maxCandidates bounds the files that are compared to find a renamed one, as
// git's merge.renameLimit does.
const maxCandidates = 7000

// renamed looks in our tree for a file that the base knows under another path:
// one with the same contents, else one with the same base name that is much like
// it, else the one that is most like it. It gives nil if there is none.
func (m *merger) renamed(from string, b *entry) (string, *entry, error) {
	if !b.isFile() {
		return "", nil, nil
	}
	old, err := m.r.blob(b.id)
	if err != nil || len(old) == 0 {
		return "", nil, err
	}
	type candidate struct {
		path string
		e    entry
	}
	var list []candidate
	exact := -1
	err = m.r.walk(m.ours.root.id, "", func(p string, e entry) error {
		if !e.isFile() {
			return nil
		}
		if known, err := lookup(m.base, p); known != nil || err != nil {
			return err
		}
		if e.id == b.id && (exact < 0 || path.Base(p) == path.Base(from)) {
			exact = len(list)
		}
		list = append(list, candidate{p, e})
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	if exact >= 0 {
		return list[exact].path, &list[exact].e, nil
	}
	best, most := -1, 0.0
	score := func(i int) error {
		data, err := m.r.blob(list[i].e.id)
		if err != nil {
			return err
		}
		if s := diff.Similarity(old, data); s > most {
			best, most = i, s
		}
		return nil
	}
	for i := range list {
		if path.Base(list[i].path) == path.Base(from) {
			if err := score(i); err != nil {
				return "", nil, err
			}
		}
	}
	if most < similarName && len(list) <= maxCandidates {
		for i := range list {
			if err := score(i); err != nil {
				return "", nil, err
			}
		}
	}
	if most < similar {
		return "", nil, nil
	}
	return list[best].path, &list[best].e, nil
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
