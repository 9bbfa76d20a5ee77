package hint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"patchbench/store"
)

// MaxHints bounds what waits: past it GitHub is told to come again later.
const MaxHints = 2000

// maxOfOne bounds how many commands of one login wait: what else he says is not
// taken, so that nobody fills the queue while GitHub has us wait.
const maxOfOne = 50

// errFull says that too many hints wait.
var errFull = errors.New("too many events wait to be worked off")

// hintsValue is the name of the hints in the store.
const hintsValue = "github:hints"

// Queue holds the hints that are to be worked off, in the store and here. One
// process at a time has it: the one that the state folder is locked for.
type Queue struct {
	st *store.Store

	mu     sync.Mutex
	loaded bool
	list   []Hint
	last   int64
}

// NewQueue gives the queue of a store; nothing is read.
func NewQueue(st *store.Store) *Queue { return &Queue{st: st} }

// Load reads what a process before this one has left.
func (q *Queue) Load(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.loadLocked(ctx)
}

func (q *Queue) loadLocked(ctx context.Context) error {
	if q.loaded {
		return nil
	}
	text, err := q.st.Value(ctx, hintsValue)
	if err != nil {
		return err
	}
	var list []Hint
	if text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return fmt.Errorf("read the events of GitHub that wait: %w", err)
		}
	}
	for i := range list {
		q.last++
		list[i].seq = q.last
	}
	q.list, q.loaded = list, true
	return nil
}

// keep writes the list; what could not be written is not kept here either.
func (q *Queue) keep(ctx context.Context, list []Hint) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := q.st.SetValue(ctx, hintsValue, string(text)); err != nil {
		return err
	}
	q.list = list
	return nil
}

// Add keeps hints, but for those of somebody of whom many wait. With a delivery id that was seen before, nothing is added:
// an id is remembered after its hints are kept, so that none is lost between.
func (q *Queue) Add(ctx context.Context, delivery string, hints ...Hint) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.loadLocked(ctx); err != nil {
		return err
	}
	before := q.list
	list := slices.Clone(before)
	for _, h := range hints {
		if slices.ContainsFunc(list, func(o Hint) bool { return o.same(&h) && !o.begun }) {
			continue
		}
		if h.Login != "" && commandsOf(list, &h) >= maxOfOne {
			continue
		}
		q.last++
		h.seq = q.last
		list = append(list, h)
	}
	if len(list) > MaxHints {
		return errFull
	}
	if len(list) > len(before) {
		if err := q.keep(ctx, list); err != nil {
			return err
		}
	}
	if delivery == "" {
		return nil
	}
	fresh, err := q.st.Delivery(ctx, delivery)
	if err == nil && !fresh && len(list) > len(before) {
		err = q.keep(ctx, before)
	}
	return err
}

// commandsOf counts what waits of who gave h.
func commandsOf(list []Hint, h *Hint) (n int) {
	for i := range list {
		if list[i].Login == h.Login && list[i].Repo == h.Repo {
			n++
		}
	}
	return n
}

// Begin says that a hint is being worked off.
func (q *Queue) Begin(h Hint) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.list {
		if q.list[i].seq == h.seq {
			q.list[i].begun = true
		}
	}
}

// Waiting is a copy of the list.
func (q *Queue) Waiting() []Hint {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// Settle removes a hint, or puts the changed one in its place.
func (q *Queue) Settle(ctx context.Context, h Hint, again bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := slices.Clone(q.list)
	i := slices.IndexFunc(list, func(o Hint) bool { return o.seq == h.seq })
	switch {
	case i < 0:
		return nil
	case again:
		list[i] = h
	default:
		list = slices.Delete(list, i, i+1)
	}
	return q.keep(ctx, list)
}
