package tree

import (
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
)

// similar is the share of lines that two files must have in common to be taken
// for one that was renamed, git's 50 %.
const similar = 0.5

// renamed looks in our tree for a file that the base knows under another path:
// one with the same contents, else the most similar of those with the same base
// name. It gives nil if there is none.
func (m *merger) renamed(from string, b *entry) (string, *entry, error) {
	if !b.isFile() {
		return "", nil, nil
	}
	old, err := m.r.blob(b.id)
	if err != nil || len(old) == 0 {
		return "", nil, err
	}
	var bestPath string
	var best *entry
	most := similar
	err = m.r.walk(m.ours.root.id, "", func(p string, e entry) error {
		if !e.isFile() || most > 1 {
			return nil
		}
		if e.id == b.id {
			bestPath, best, most = p, &e, 2
			return nil
		}
		if path.Base(p) != path.Base(from) {
			return nil
		}
		if known, err := lookup(m.base, p); known != nil || err != nil {
			return err
		}
		data, err := m.r.blob(e.id)
		if err != nil {
			return err
		}
		if s := diff.Similarity(old, data); s >= most {
			bestPath, best, most = p, &e, s
		}
		return nil
	})
	return bestPath, best, err
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
