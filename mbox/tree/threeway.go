package tree

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
	"patchbench/mbox/tree/merge"
	"patchbench/mbox/tree/overlay"
)

// threeWay does what git am -3 does after a patch did not apply: it makes a tree
// of the files that the index lines name, applies the patch to that, and merges
// the change into the tree. The refusals say why that was of no use; one without
// a reason says that the patch gives no blob ids at all.
func (r *Repo) threeWay(ctx context.Context, tree plumbing.Hash, files []diff.File) (*outcome, []refusal, error) {
	ours, fake := r.objects.Edit(tree), r.objects.Edit(plumbing.ZeroHash)
	for i := range files {
		f := &files[i]
		if f.Create == diff.Yes || f.Create == diff.Unknown && f.OldID == "" {
			continue
		}
		mode, id := f.OldMode, moduleBefore(f)
		if mode&diff.TypeMask != diff.TypeModule {
			id = r.objects.BlobByPrefix(f.OldID)
		}
		if id.IsZero() && f.Added == 0 && f.Deleted == 0 && !f.IsBinary {
			// Only a mode or a name changes: the file holds what it holds now. Its
			// mode is not taken, which makes a link without one a file, as in git.
			e, ok, err := ours.Get(f.Old)
			if err != nil {
				return nil, nil, err
			}
			if ok {
				id = e.ID
			}
		}
		if id.IsZero() {
			reason := ""
			if f.OldID != "" {
				reason = fmt.Sprintf("the blob %s that the patch was made against is not in the repository", f.OldID)
			}
			return nil, []refusal{{path: f.Name(), reason: reason, unknown: true}}, nil
		}
		if mode == 0 {
			mode = 0o100644
		}
		if reason, err := fake.Set(f.Old, overlay.Canonical(mode), id); err != nil {
			return nil, nil, err
		} else if reason != "" {
			return nil, []refusal{{path: f.Name(), reason: reason}}, nil
		}
	}
	base := fake.Write()
	theirs, bad, err := r.applyFiles(ctx, base, files, 0)
	if err != nil {
		return nil, nil, err
	}
	if bad != nil {
		for i := range bad {
			bad[i].reason = "the patch does not apply to the blobs of its own index lines: " + bad[i].reason
		}
		return nil, bad, nil
	}
	return r.merge(ctx, tree, base, theirs)
}

// merge brings the change from a base to what a patch made of it into a tree.
func (r *Repo) merge(ctx context.Context, tree, base plumbing.Hash, theirs *outcome) (*outcome, []refusal, error) {
	var sides [2]map[string]merge.Entry
	for i, id := range []plumbing.Hash{base, theirs.tree} {
		sides[i] = map[string]merge.Entry{}
		err := r.objects.Walk(id, func(path string, e overlay.Entry) error {
			sides[i][path] = merge.Entry{Mode: overlay.Canonical(e.Mode), ID: e.ID}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	ours := ourTree{r.objects, r.objects.Edit(tree), tree}
	m, err := merge.Trees(ctx, sides[0], sides[1], ours, blobs{r.objects})
	if err != nil {
		return nil, nil, err
	}
	var bad []refusal
	for _, c := range m.Conflicts {
		bad = append(bad, refusal{path: c.Path, line: c.Line, reason: c.Reason})
	}
	for _, p := range m.Remove {
		if err := ours.ed.Remove(p); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(m.Put)) {
		reason, err := ours.ed.Set(p, m.Put[p].Mode, m.Put[p].ID)
		if err != nil {
			return nil, nil, err
		}
		if reason != "" {
			bad = append(bad, refusal{path: p, reason: reason})
		}
	}
	if len(bad) > 0 {
		return nil, bad, nil
	}
	return &outcome{tree: ours.ed.Write(), how: HowThreeWay, notes: m.Notes, module: theirs.module}, nil, nil
}

// ourTree is a tree as the package merge sees it.
type ourTree struct {
	r  *overlay.Repo
	ed *overlay.Editor
	id plumbing.Hash
}

func (t ourTree) File(path string) (merge.Entry, bool, error) {
	e, ok, err := t.ed.Get(path)
	if !ok || err != nil || e.IsDir() {
		return merge.Entry{}, false, err
	}
	return merge.Entry{Mode: overlay.Canonical(e.Mode), ID: e.ID}, true, nil
}

func (t ourTree) Walk(f func(string, merge.Entry) error) error {
	return t.r.Walk(t.id, func(path string, e overlay.Entry) error {
		return f(path, merge.Entry{Mode: overlay.Canonical(e.Mode), ID: e.ID})
	})
}

// blobs is a repository as the package merge sees it.
type blobs struct{ r *overlay.Repo }

func (b blobs) Blob(id plumbing.Hash) ([]byte, error) { return b.r.Blob(id) }
func (b blobs) Size(id plumbing.Hash) (int64, error)  { return b.r.Size(id) }
func (b blobs) WriteBlob(data []byte) plumbing.Hash   { return b.r.Write(plumbing.BlobObject, data) }

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
