package tree

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/merge"
	"patchbench/mbox/tree/overlay"
)

// maxRange bounds the commits of a range.
const maxRange = 1000

// Range makes a stack of the commits from..to along the first parent. Its base
// is from, or, where from is not in to's history, the commit that both have in
// common. Either may be any revision; "" is HEAD.
func (r *Repo) Range(ctx context.Context, from, to string) (*Stack, error) {
	ends := [2]plumbing.Hash{}
	for i, rev := range []string{from, to} {
		if rev == "" {
			rev = "HEAD"
		}
		id, err := r.objects.Resolve(rev)
		if err != nil {
			return nil, err
		}
		ends[i] = id
	}
	from, to = brief(from), brief(to)
	name := fmt.Sprintf("%s..%s", from, to)
	past := r.objects.History(ends[0])
	var chain []*overlay.Commit
	for id := ends[1]; ; {
		if err := done(ctx, "list "+name); err != nil {
			return nil, err
		}
		c, err := r.objects.Commit(id)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		known, err := past.Holds(c)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		chain = append(chain, c)
		if known {
			break
		}
		if len(c.Parents) == 0 {
			return nil, overlay.InputErrorf("%s and %s have no commit in common in %s", from, to, r.objects.Dir())
		}
		if len(chain) > maxRange {
			return nil, overlay.InputErrorf("%s holds more than %d commits; name a nearer base", name, maxRange)
		}
		id = c.Parents[0]
	}
	base := mbox.Base{Commit: chain[len(chain)-1].ID.String(), How: mbox.HowRange, Reason: fmt.Sprintf("the start of %s", name)}
	if chain[len(chain)-1].ID != ends[0] {
		base.How = mbox.HowMergeBase
		base.Reason = fmt.Sprintf("%s is not on the first-parent line of %s; this is where the two parted", from, to)
	}
	st := newStack(base)
	for i := len(chain) - 2; i >= 0; i-- {
		c := chain[i]
		if err := done(ctx, "list "+name); err != nil {
			return nil, err
		}
		step := Step{N: len(chain) - 1 - i, Subject: c.Subject, Message: c.Message, Author: c.Author, Commit: c.ID.String(),
			Tree: c.Tree.String(), How: HowCommit, Notes: []string{}}
		if len(c.Parents) > 1 {
			step.Notes = append(step.Notes, fmt.Sprintf("a merge: stands for all of %.12s", c.Parents[1].String()))
		}
		module, err := r.count(chain[i+1].Tree, c.Tree, &step)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		if module {
			st.Submodules = append(st.Submodules, step.N)
		}
		st.Steps = append(st.Steps, step)
	}
	return st, nil
}

// countLimit is the size of a file, in bytes, above which its lines are not
// compared just to count them.
const countLimit = 4 << 20

// count fills in a step's numbers of lines and says whether it changes a submodule.
func (r *Repo) count(before, after plumbing.Hash, step *Step) (module bool, err error) {
	err = r.objects.Differences(before, after, func(path string, b, a *overlay.Entry) error {
		var data [2][]byte
		for i, e := range []*overlay.Entry{b, a} {
			switch {
			case e == nil:
			case e.IsModule():
				module = true
			case e.IsFile():
				if data[i], err = r.objects.Blob(e.ID); err != nil {
					return err
				}
			}
		}
		if len(data[0])+len(data[1]) <= countLimit {
			added, deleted := merge.Count(data[0], data[1])
			step.Added += added
			step.Deleted += deleted
		}
		return nil
	})
	return module, err
}

// brief shortens a commit that is given in full, for texts that people read.
func brief(rev string) string {
	if plumbing.IsHash(rev) {
		return rev[:12]
	}
	return rev
}
