package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"patchbench/bot/github/api"
	"patchbench/store"
)

// hint says that something happened at a pull request.
type hint struct {
	Kind   kind      `json:"kind"`
	Repo   string    `json:"repo"`
	Number int       `json:"number"`
	ID     string    `json:"id,omitempty"`    // of the comment or delivery
	Login  string    `json:"login,omitempty"` // who did it
	At     time.Time `json:"at,omitzero"`     // when, by GitHub's clock
	Head   string    `json:"head,omitempty"`  // of a check run

	Command command `json:"command,omitzero"`

	Attempts int       `json:"attempts,omitempty"`
	Next     time.Time `json:"next,omitzero"`

	seq   int64 // tells hints apart in this process
	begun bool  // being worked off: what happened since needs a hint of its own
}

type kind string

const (
	changed   kind = "changed" // the pull request is another than before
	commanded kind = "command" // somebody wrote a command
	rerun     kind = "rerun"   // somebody asked for the check run once more
)

// same says whether h and o ask for the same thing.
func (h *hint) same(o *hint) bool {
	return h.Kind == o.Kind && h.Repo == o.Repo && h.Number == o.Number && h.ID == o.ID
}

// maxHints bounds what waits: past it GitHub is told to come again later.
const maxHints = 2000

// errFull says that too many hints wait.
var errFull = errors.New("too many events wait to be worked off")

// hintsValue is the name of the hints in the store.
const hintsValue = "github:hints"

// queue holds the hints that are to be worked off, in the store and here. One
// process at a time has it: the one that the state folder is locked for.
type queue struct {
	st *store.Store

	mu     sync.Mutex
	loaded bool
	list   []hint
	last   int64
}

// load reads what a process before this one has left.
func (q *queue) load(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.loadLocked(ctx)
}

func (q *queue) loadLocked(ctx context.Context) error {
	if q.loaded {
		return nil
	}
	text, err := q.st.Value(ctx, hintsValue)
	if err != nil {
		return err
	}
	var list []hint
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
func (q *queue) keep(ctx context.Context, list []hint) error {
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

// add keeps hints. With a delivery id that was seen before, nothing is added:
// an id is remembered after its hints are kept, so that none is lost between.
func (q *queue) add(ctx context.Context, delivery string, hints ...hint) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.loadLocked(ctx); err != nil {
		return err
	}
	before := q.list
	list := slices.Clone(before)
	for _, h := range hints {
		if slices.ContainsFunc(list, func(o hint) bool { return o.same(&h) && !o.begun }) {
			continue
		}
		q.last++
		h.seq = q.last
		list = append(list, h)
	}
	if len(list) > maxHints {
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

// begin says that a hint is being worked off.
func (q *queue) begin(h hint) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.list {
		if q.list[i].seq == h.seq {
			q.list[i].begun = true
		}
	}
}

// waiting is a copy of the list.
func (q *queue) waiting() []hint {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.list)
}

// settle removes a hint, or puts the changed one in its place.
func (q *queue) settle(ctx context.Context, h hint, again bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := slices.Clone(q.list)
	i := slices.IndexFunc(list, func(o hint) bool { return o.seq == h.seq })
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

// How often a hint is tried when GitHub cannot tell, and when it refuses to or
// does not show us what it is about; and the pause before that.
const (
	maxAttempts     = 40
	maxMissing      = 3
	firstPause      = 5 * time.Second
	longestPause    = 30 * time.Minute
	longestDelivery = time.Hour
)

// pause is what to wait after n attempts in vain.
func pause(n int, longest time.Duration) time.Duration {
	return min(firstPause<<min(max(n-1, 0), 20), longest)
}

// WorkOff does what the waiting hints ask for, in their order for each pull
// request. What GitHub refuses is tried again later; an error is one of the store.
func (c *Client) WorkOff(ctx context.Context) error {
	if err := c.queue.load(ctx); err != nil {
		return err
	}
	blocked := map[string]bool{} // an earlier hint for it waits
	for _, h := range c.queue.waiting() {
		at := ref(h.Repo, h.Number)
		if blocked[at] {
			continue
		}
		if h.Next.After(c.o.Now()) {
			blocked[at] = true
			continue
		}
		c.queue.begin(h)
		err := c.handle(ctx, h)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log := c.o.Log.With("pull", at, "hint", string(h.Kind))
		fault, until := api.FaultOf(err)
		h.Attempts++
		give := maxAttempts
		switch fault {
		case api.None:
			give = 0
		case api.Limited:
			h.Attempts--
			h.Next = until
		case api.Missing, api.Refused:
			give = maxMissing
		}
		c.forget(h.Repo, fault)
		if fault != api.None && fault != api.Limited {
			h.Next = c.o.Now().Add(pause(h.Attempts, longestPause))
		}
		again := err != nil && h.Attempts < give
		if err != nil {
			log.Warn("github: event not worked off", "error", err, "attempt", h.Attempts, "again", again)
		}
		if err := c.queue.settle(ctx, h, again); err != nil {
			return err
		}
		if again {
			blocked[at] = true
		}
		if fault == api.Limited {
			return nil // for every other as well
		}
	}
	return nil
}
