// Package hint holds what tells bot/github that something happened at a pull
// request, until it is worked off.
//
// In go hints, as the webhook and polling make them, and the text of comments;
// out come the hints that wait, in the order in which they came, and commands:
//
//	/bench             the whole suite
//	/bench hash table  these benchmarks
//	/bench stop        no more
//
// Hints are kept in the store and may come twice, late, or in any order. It asks
// nobody and decides nothing.
package hint

import (
	"time"
)

// Hint says that something happened at a pull request.
type Hint struct {
	Kind   Kind      `json:"kind"`
	Repo   string    `json:"repo"`
	Number int       `json:"number"`
	ID     string    `json:"id,omitempty"`    // of the comment, or the hash of the event
	Login  string    `json:"login,omitempty"` // who did it
	At     time.Time `json:"at,omitzero"`     // when, by GitHub's clock
	Head   string    `json:"head,omitempty"`  // of a check run

	Command Command `json:"command,omitzero"`

	Attempts int       `json:"attempts,omitempty"`
	Next     time.Time `json:"next,omitzero"`

	seq   int64 // tells hints apart in this process
	begun bool  // being worked off: what happened since needs a hint of its own
}

// Kind is what happened.
type Kind string

// The kinds.
const (
	Changed   Kind = "changed" // the pull request is another than before
	Commanded Kind = "command" // somebody wrote a command
	Rerun     Kind = "rerun"   // somebody asked for the check run once more
)

// same says whether h and o ask for the same thing.
func (h *Hint) same(o *Hint) bool {
	return h.Kind == o.Kind && h.Repo == o.Repo && h.Number == o.Number && h.ID == o.ID
}
