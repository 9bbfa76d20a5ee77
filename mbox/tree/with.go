package tree

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
)

// Extra is a series that is put on every version and is not judged: an
// instrumented allocator, a fix without which nothing builds.
type Extra struct {
	Name   string // of its file, for messages
	Series *mbox.Series
}

// With puts patches on the base of a stack and on each of its versions, each by
// itself: the commits of the stack stay what they are, and Built of the stack and
// of its steps becomes what is to be built. The first version on which a patch
// does not apply ends the stack: its Conflict is then N = that version, 0 for the
// base, with all from there on not tried.
func (r *Repo) With(ctx context.Context, st *Stack, extra []Extra, o Options) error {
	if len(extra) == 0 {
		return nil
	}
	total := len(st.Steps) + len(st.NotTried)
	if st.Conflict != nil && st.Conflict.N > 0 {
		total++
	}
	for n := -1; n < len(st.Steps); n++ {
		commit, number, name := st.Commit(0), 0, "the base"
		if n >= 0 {
			step := &st.Steps[n]
			commit, number, name = step.Commit, step.N, fmt.Sprintf("version %d/%d", step.N, total)
		}
		at, no, err := r.with(ctx, plumbing.NewHash(commit), name, extra, o)
		if err != nil {
			return err
		}
		switch {
		case no != nil:
			no.N = number
			st.cut(max(n, 0), number, no)
			return nil
		case n < 0:
			st.Built = at
		default:
			st.Steps[n].Built = at
		}
	}
	return nil
}

// with puts the patches on one commit.
func (r *Repo) with(ctx context.Context, commit plumbing.Hash, name string, extra []Extra, o Options) (*Built, *mbox.Conflict, error) {
	c, err := r.objects.Commit(commit)
	if err != nil {
		return nil, nil, fmt.Errorf("put patches on %s: %w", name, err)
	}
	at := version{c.ID, c.Tree}
	for _, e := range extra {
		for i := range e.Series.Patches {
			patch := &e.Series.Patches[i]
			_, bad, err := r.add(ctx, &at, patch, o)
			if err != nil {
				return nil, nil, fmt.Errorf("put %s on %s: %w", e.Name, name, err)
			}
			if bad == nil {
				continue
			}
			no := conflict(patch, bad)
			for k := range no.Files {
				no.Files[k].Reason = fmt.Sprintf("%s, which every version gets, does not apply to %s: %s", e.Name, name, no.Files[k].Reason)
			}
			return nil, no, nil
		}
	}
	// Always named, even where the patches are there already: nothing changes
	// in how a version is built then.
	return &Built{Commit: at.commit.String(), Tree: at.tree.String()}, nil, nil
}

// cut ends a stack before its step of index i, whose number is n.
func (s *Stack) cut(i, n int, no *mbox.Conflict) {
	later := s.NotTried
	if s.Conflict != nil {
		later = append([]int{s.Conflict.N}, later...)
	}
	s.NotTried = []int{}
	for _, step := range s.Steps[i:] {
		if step.N != n {
			s.NotTried = append(s.NotTried, step.N)
		}
	}
	s.NotTried = append(s.NotTried, later...)
	s.Steps, s.Conflict = s.Steps[:i], no
	s.Submodules = slices.DeleteFunc(s.Submodules, func(k int) bool { return k >= n })
}
