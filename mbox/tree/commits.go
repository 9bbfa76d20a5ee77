package tree

import (
	"container/heap"
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/merge"
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
		id, err := r.resolve(rev)
		if err != nil {
			return nil, err
		}
		ends[i] = id
	}
	name := fmt.Sprintf("%s..%s", from, to)
	past := r.history(ends[0])
	var chain []*commit
	for id := ends[1]; ; {
		if err := done(ctx, "list "+name); err != nil {
			return nil, err
		}
		c, err := r.commit(id)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		known, err := past.holds(c)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		chain = append(chain, c)
		if known {
			break
		}
		if len(c.parents) == 0 {
			return nil, inputErrorf("%s and %s have no commit in common in %s", from, to, r.dir)
		}
		if len(chain) > maxRange {
			return nil, inputErrorf("%s holds more than %d commits; name a nearer base", name, maxRange)
		}
		id = c.parents[0]
	}
	base := mbox.Base{Commit: chain[len(chain)-1].id.String(), How: mbox.HowRange, Reason: fmt.Sprintf("the start of %s", name)}
	if chain[len(chain)-1].id != ends[0] {
		base.How = mbox.HowMergeBase
		base.Reason = fmt.Sprintf("%s is not on the first-parent line of %s; this is where the two parted", from, to)
	}
	st := newStack(base)
	for i := len(chain) - 2; i >= 0; i-- {
		c := chain[i]
		if err := done(ctx, "list "+name); err != nil {
			return nil, err
		}
		step := Step{N: len(chain) - 1 - i, Subject: c.subject, Author: c.author, Commit: c.id.String(),
			Tree: c.tree.String(), How: HowCommit, Notes: []string{}}
		if len(c.parents) > 1 {
			step.Notes = append(step.Notes, fmt.Sprintf("a merge: stands for all of %.12s", c.parents[1].String()))
		}
		module, err := r.count(chain[i+1].tree, c.tree, &step)
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
	err = r.differences(before, after, "", func(path string, b, a *entry) error {
		var data [2][]byte
		for i, e := range []*entry{b, a} {
			switch {
			case e == nil:
			case e.isModule():
				module = true
			case e.isFile():
				if data[i], err = r.blob(e.id); err != nil {
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

// differences calls f for each path that is not the same in two trees; b or a is
// nil where it is missing. A folder against a file is told as what each holds.
func (r *Repo) differences(before, after plumbing.Hash, prefix string, f func(path string, b, a *entry) error) error {
	if before == after {
		return nil
	}
	old, err := r.tree(before)
	if err != nil {
		return err
	}
	now, err := r.tree(after)
	if err != nil {
		return err
	}
	was := make(map[string]entry, len(old))
	for _, e := range old {
		was[e.name] = e
	}
	one := func(b, a *entry) error {
		switch {
		case b != nil && a != nil && b.id == a.id && b.mode == a.mode:
			return nil
		case b != nil && a != nil && b.isDir() && a.isDir():
			return r.differences(b.id, a.id, prefix+a.name+"/", f)
		}
		if b != nil && b.isDir() {
			if err := r.differences(b.id, plumbing.ZeroHash, prefix+b.name+"/", f); err != nil {
				return err
			}
			b = nil
		}
		if a != nil && a.isDir() {
			if b != nil {
				if err := f(prefix+b.name, b, nil); err != nil {
					return err
				}
			}
			return r.differences(plumbing.ZeroHash, a.id, prefix+a.name+"/", f)
		}
		if a == nil && b == nil {
			return nil
		}
		if a == nil {
			return f(prefix+b.name, b, nil)
		}
		return f(prefix+a.name, b, a)
	}
	// What goes comes first, so that a file can take the place of a folder.
	is := make(map[string]bool, len(now))
	for _, e := range now {
		is[e.name] = true
	}
	for _, e := range old {
		if !is[e.name] {
			if err := one(&e, nil); err != nil {
				return err
			}
		}
	}
	for _, e := range now {
		if b, ok := was[e.name]; ok {
			err = one(&b, &e)
		} else {
			err = one(nil, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// history is the ancestors of a commit, walked only as far back as it is asked
// for, newest first.
type history struct {
	r     *Repo
	seen  map[plumbing.Hash]bool
	queue byDate
}

// slop is by how many seconds a commit's date may lie after its child's, as
// clocks are not all right.
const slop = 7 * 24 * 3600

func (r *Repo) history(tip plumbing.Hash) *history {
	h := &history{r: r, seen: map[plumbing.Hash]bool{}}
	h.push(tip)
	return h
}

func (h *history) push(id plumbing.Hash) {
	if h.seen[id] {
		return
	}
	h.seen[id] = true
	// A commit that a shallow clone lacks is known, but leads nowhere.
	if c, err := h.r.commit(id); err == nil {
		heap.Push(&h.queue, c)
	} else if !errors.Is(err, plumbing.ErrObjectNotFound) {
		h.queue.err = err
	}
}

// holds says whether a commit is one of the ancestors.
func (h *history) holds(c *commit) (bool, error) {
	for !h.seen[c.id] && h.queue.err == nil && len(h.queue.list) > 0 && h.queue.list[0].date >= c.date-slop {
		for _, p := range heap.Pop(&h.queue).(*commit).parents {
			h.push(p)
		}
	}
	return h.seen[c.id], h.queue.err
}

// byDate is a heap of commits, the newest first.
type byDate struct {
	list []*commit
	err  error
}

func (q *byDate) Len() int           { return len(q.list) }
func (q *byDate) Less(i, j int) bool { return q.list[i].date > q.list[j].date }
func (q *byDate) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *byDate) Push(x any)         { q.list = append(q.list, x.(*commit)) }
func (q *byDate) Pop() any {
	n := len(q.list) - 1
	c := q.list[n]
	q.list = q.list[:n]
	return c
}
