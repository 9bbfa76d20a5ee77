package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/diff"
	"patchbench/mbox/tree/merge"
	"patchbench/mbox/tree/overlay"
)

// Where a prerequisite is looked for in the base: among the newest commits,
// whatever they touch, and further down among those that touch files of the
// series, as long as they are not older than the base that the series names.
const (
	recent = 500
	deep   = 10_000
)

// prerequisites applies the patches that a series names as its prerequisites, as
// far as they are at hand, and finds out which of the others are in the base. One
// that does not apply is left out as a whole and is missing.
func (r *Repo) prerequisites(ctx context.Context, at *version, s *mbox.Series, o Options) ([]Prerequisite, error) {
	list := []Prerequisite{}
	applied := map[*mbox.Patch]bool{} // and whether it changed something
	base, unknown := *at, false
	for _, p := range s.Prerequisites {
		pre := Prerequisite{PatchID: p.PatchID, MessageID: p.MessageID, State: Missing}
		patches := atHand(o.AtHand, s, p)
		before, fits := *at, len(patches) > 0
		if fits {
			pre.State = InBase
		} else {
			unknown = true
		}
		for _, patch := range patches {
			changed, seen := applied[patch]
			if !seen {
				out, bad, err := r.add(ctx, at, patch, o)
				if err != nil {
					return nil, fmt.Errorf("apply prerequisite %s%s: %w", p.PatchID, p.MessageID, err)
				}
				if bad != nil {
					pre.State, *at = Missing, before
					pre.Note = fmt.Sprintf("%q is at hand and does not apply: %s", patch.Subject, conflict(patch, bad).Files[0])
					break
				}
				changed = !out.nothing
				applied[patch] = changed
			}
			if changed {
				pre.State = Applied
			}
		}
		list = append(list, pre)
	}
	if !unknown {
		return list, nil
	}
	return list, r.findInBase(ctx, base.commit, s, list)
}

// atHand gives the patches that a prerequisite means: the one with the patch id,
// a whole series by its cover's Message-ID, or a series up to one patch by that
// patch's.
func atHand(all []mbox.Series, not *mbox.Series, p mbox.Prerequisite) (list []*mbox.Patch) {
	for i := range all {
		s := &all[i]
		if s == not || sameSeries(s, not) {
			continue
		}
		whole := p.MessageID != "" && s.Cover != nil && s.Cover.MessageID == p.MessageID
		for k := range s.Patches {
			patch := &s.Patches[k]
			switch {
			case p.MessageID != "" && patch.MessageID == p.MessageID:
				for j := range s.Patches[:k+1] {
					list = append(list, &s.Patches[j])
				}
				return list
			case p.PatchID != "" && diff.PatchID(patch.Diff) == strings.ToLower(p.PatchID):
				return []*mbox.Patch{patch}
			case whole:
				list = append(list, patch)
			}
		}
		if whole {
			return list
		}
	}
	return nil
}

// sameSeries knows a series again that was copied. Files of git format-patch have
// no Message-ID.
func sameSeries(a, b *mbox.Series) bool {
	if a.MessageID != "" || b.MessageID != "" || len(a.Patches) == 0 || len(b.Patches) == 0 {
		return a.MessageID == b.MessageID
	}
	return a.Patches[0].DiffSHA256 == b.Patches[0].DiffSHA256
}

// Tops leaves out of the series at hand those that another one names as its
// prerequisite: they are there for its sake. If nothing would be left, all are.
func Tops(all []mbox.Series) []mbox.Series {
	below := map[*mbox.Patch]bool{}
	for i := range all {
		for _, p := range all[i].Prerequisites {
			for _, patch := range atHand(all, &all[i], p) {
				below[patch] = true
			}
		}
	}
	var tops []mbox.Series
	for _, s := range all {
		if len(s.Patches) == 0 || !below[&s.Patches[0]] {
			tops = append(tops, s)
		}
	}
	if len(tops) == 0 {
		return all
	}
	return tops
}

// add applies one patch of another series on top of a version.
func (r *Repo) add(ctx context.Context, at *version, patch *mbox.Patch, o Options) (*applied, []refusal, error) {
	p, err := r.parse(at.tree, patch)
	if err != nil {
		return nil, nil, err
	}
	if bad := overLimit([]*parsed{p}); bad != nil {
		return nil, bad.bad, nil
	}
	return r.step(ctx, at, p, o)
}

// findInBase looks for the missing ones in the history of the base: by the patch id
// of what a commit changes, and by a Message-ID in its message, as maintainers'
// tools leave it there. Of those that are not found, the note says how far the
// search went.
func (r *Repo) findInBase(ctx context.Context, base plumbing.Hash, s *mbox.Series, list []Prerequisite) error {
	var open []*Prerequisite
	for i := range list {
		if list[i].State == Missing && list[i].Note == "" {
			open = append(open, &list[i])
		}
	}
	paths, oldest := pathsOf(s), r.ageOfBase(s)
	h, n := r.objects.History(base), 0
	for ; n < deep && len(open) > 0; n++ {
		if err := done(ctx, "look for prerequisites"); err != nil {
			return err
		}
		c, err := h.Next()
		if err != nil {
			return fmt.Errorf("look for prerequisites: %w", err)
		}
		if c == nil || n >= recent && c.Date < oldest {
			break
		}
		near := paths
		if n < recent {
			near = nil
		}
		if open, err = r.without(open, c, near); err != nil {
			return fmt.Errorf("look for prerequisites: %w", err)
		}
	}
	for _, p := range open {
		p.Note = fmt.Sprintf("neither at hand nor among the newest %d commits of the base", min(n, recent))
		if n > recent {
			p.Note += fmt.Sprintf(", nor among those of its newest %d that touch the same files", n)
		}
	}
	return nil
}

// without gives the prerequisites that a commit is not, and marks the others. A
// change is compared only if it touches one of the paths; nil means any.
func (r *Repo) without(open []*Prerequisite, c *overlay.Commit, paths []string) ([]*Prerequisite, error) {
	id, err := "", error(nil)
	if slices.ContainsFunc(open, func(p *Prerequisite) bool { return p.PatchID != "" }) && len(c.Parents) < 2 {
		if id, err = r.patchID(c, paths); err != nil {
			return nil, err
		}
	}
	_, data, err := r.objects.Read(c.ID)
	if err != nil {
		return nil, err
	}
	left := open[:0]
	for _, p := range open {
		if p.PatchID != "" && strings.EqualFold(p.PatchID, id) || p.MessageID != "" && bytes.Contains(data, []byte(p.MessageID)) {
			p.State, p.Note = InBase, fmt.Sprintf("it is commit %.12s", c.ID)
			continue
		}
		left = append(left, p)
	}
	return left, nil
}

// ageOfBase is the date, less some slack, of the base that a series names: what the
// series needs beside it is in no older commit. 0 if it is not known.
func (r *Repo) ageOfBase(s *mbox.Series) int64 {
	if s.Base == nil {
		return 0
	}
	id, ok := r.objects.CommitByPrefix(s.Base.Commit)
	if !ok {
		return 0
	}
	c, err := r.objects.Commit(id)
	if err != nil {
		return 0
	}
	return c.Date - slack
}

// slack is by how many seconds the date of a commit may lie before that of one that
// it builds on, as clocks are not all right.
const slack = 7 * 24 * 3600

// pathsOf lists all files that a series touches.
func pathsOf(s *mbox.Series) (paths []string) {
	for i := range s.Patches {
		files, err := diff.Parse(s.Patches[i].Diff, diff.Guess)
		if err != nil {
			continue // its conflict says so
		}
		for _, f := range files {
			paths = append(paths, f.Old, f.New)
		}
	}
	slices.Sort(paths)
	return slices.DeleteFunc(slices.Compact(paths), func(p string) bool { return p == "" })
}

// patchID is the id of what a commit changes against its parent; "" for one whose
// parent a shallow clone lacks, and, with paths, for one that touches none of them.
func (r *Repo) patchID(c *overlay.Commit, paths []string) (string, error) {
	var before plumbing.Hash
	if len(c.Parents) > 0 {
		p, err := r.objects.Commit(c.Parents[0])
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		before = p.Tree
	}
	if paths != nil {
		if touched, err := r.objects.Touches(before, c.Tree, paths); !touched || err != nil {
			return "", err
		}
	}
	var text bytes.Buffer
	files := 0
	err := r.objects.Differences(before, c.Tree, func(path string, b, a *overlay.Entry) error {
		if files++; files > maxFiles {
			return nil
		}
		var data [2][]byte
		var err error
		for i, e := range []*overlay.Entry{b, a} {
			if e != nil {
				if data[i], err = r.content(*e); err != nil {
					return err
				}
			}
		}
		old, now := "a/"+path, "b/"+path
		fmt.Fprintf(&text, "diff --git %s %s\n", old, now)
		switch {
		case b == nil:
			old = "/dev/null"
			fmt.Fprintf(&text, "new file mode %06o\n", overlay.Canonical(a.Mode))
		case a == nil:
			now = "/dev/null"
			fmt.Fprintf(&text, "deleted file mode %06o\n", overlay.Canonical(b.Mode))
		case overlay.Canonical(a.Mode) != overlay.Canonical(b.Mode):
			fmt.Fprintf(&text, "old mode %06o\nnew mode %06o\n", overlay.Canonical(b.Mode), overlay.Canonical(a.Mode))
		}
		if len(data[0])+len(data[1]) > countLimit {
			return nil
		}
		if hunks := merge.Unified(data[0], data[1], 3); len(hunks) > 0 {
			fmt.Fprintf(&text, "--- %s\n+++ %s\n%s", old, now, hunks)
		}
		return nil
	})
	return diff.PatchID(text.Bytes()), err
}
