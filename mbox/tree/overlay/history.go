package overlay

import (
	"container/heap"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
)

// History is the ancestors of a commit, walked only as far back as it is asked
// for, newest first.
type History struct {
	r     *Repo
	seen  map[plumbing.Hash]bool
	queue byDate
}

// Next gives the newest ancestor that it has not given yet, the tip first; nil
// when there is none left.
func (h *History) Next() (*Commit, error) {
	if h.queue.err != nil || len(h.queue.list) == 0 {
		return nil, h.queue.err
	}
	c := heap.Pop(&h.queue).(*Commit)
	for _, p := range c.Parents {
		h.push(p)
	}
	return c, nil
}

// slop is by how many seconds a commit's date may lie after its child's, as
// clocks are not all right.
const slop = 7 * 24 * 3600

// History begins at a commit, which counts as its own ancestor.
func (r *Repo) History(tip plumbing.Hash) *History {
	h := &History{r: r, seen: map[plumbing.Hash]bool{}}
	h.push(tip)
	return h
}

func (h *History) push(id plumbing.Hash) {
	if h.seen[id] {
		return
	}
	h.seen[id] = true
	// A commit that a shallow clone lacks is known, but leads nowhere.
	if c, err := h.r.Commit(id); err == nil {
		heap.Push(&h.queue, c)
	} else if !errors.Is(err, plumbing.ErrObjectNotFound) {
		h.queue.err = err
	}
}

// Holds says whether a commit is one of the ancestors.
func (h *History) Holds(c *Commit) (bool, error) {
	for !h.seen[c.ID] && h.queue.err == nil && len(h.queue.list) > 0 && h.queue.list[0].Date >= c.Date-slop {
		if _, err := h.Next(); err != nil {
			return false, err
		}
	}
	return h.seen[c.ID], h.queue.err
}

// byDate is a heap of commits, the newest first.
type byDate struct {
	list []*Commit
	err  error
}

func (q *byDate) Len() int           { return len(q.list) }
func (q *byDate) Less(i, j int) bool { return q.list[i].Date > q.list[j].Date }
func (q *byDate) Swap(i, j int)      { q.list[i], q.list[j] = q.list[j], q.list[i] }
func (q *byDate) Push(x any)         { q.list = append(q.list, x.(*Commit)) }
func (q *byDate) Pop() any {
	n := len(q.list) - 1
	c := q.list[n]
	q.list = q.list[:n]
	return c
}
