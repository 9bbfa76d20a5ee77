package tree

import "patchbench/mbox"

// How a step's tree was reached.
const (
	HowClean    = "clean"     // every hunk where the patch says
	HowOffset   = "offset"    // some hunk some lines away
	HowThreeWay = "three-way" // merged by the blob ids of the index lines
	HowFuzz     = "fuzz"      // some hunk by the looser rules of patch(1)
	HowCommit   = "commit"    // a commit of the repository
)

// States of a prerequisite patch.
const (
	Applied = "applied"
	InBase  = "in-base"
	Missing = "missing"
)

// Stack is a series as commits on a base. Its JSON form is `bot apply --json`.
type Stack struct {
	Base mbox.Base `json:"base"`
	// Built is version 0 as it is built, where that is not the base alone: with
	// prerequisites and with the patches of With. Nil otherwise.
	Built *Built `json:"built,omitempty"`
	// Prerequisites are the patches that the series says it builds on.
	Prerequisites []Prerequisite `json:"prerequisites"`
	// Steps ascend by N; each builds on the one before.
	Steps []Step `json:"steps"`
	// Conflict is the patch that ended the stack, nil if all applied.
	Conflict *mbox.Conflict `json:"conflict"`
	// NotTried are the numbers of the patches that were left out because one
	// before them conflicts or is missing, or because the series was refused.
	NotTried []int `json:"not_tried"`
	// Submodules are the numbers of the steps that change the commit of a
	// submodule. Their trees are right, but what a build would see is not.
	Submodules []int `json:"submodules,omitempty"`
}

// Prerequisite is a patch that has to be in the base. One of PatchID and
// MessageID is set.
type Prerequisite struct {
	PatchID   string `json:"patch_id,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	State     string `json:"state"`
	// Note says where it was found, or why it could not be applied.
	Note string `json:"note,omitempty"`
}

// Built is a version with patches in it that are no part of the series.
type Built struct {
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
}

// Step is one patch or commit, applied.
type Step struct {
	N       int          `json:"n"`
	Subject string       `json:"subject"`
	Author  mbox.Address `json:"author"`
	// Commit and Tree are full hex object ids. A patch that changes nothing has
	// the commit of the step before.
	Commit string `json:"commit"`
	Tree   string `json:"tree"`
	How    string `json:"how"`
	// Built is this version as it is built, where With has put patches on it;
	// nil otherwise.
	Built *Built   `json:"built,omitempty"`
	Notes []string `json:"notes"`
	// Message is that of a commit of a range, "" for a patch, which has its own.
	Message string `json:"-"`
	// Added and Deleted count the lines of text; binary files count nothing.
	Added   int `json:"-"`
	Deleted int `json:"-"`
}

func newStack(base mbox.Base) *Stack {
	return &Stack{Base: base, Prerequisites: []Prerequisite{}, Steps: []Step{}, NotTried: []int{}}
}

// Commit is what is checked out for a version, 0 for the base; "" if the stack
// does not reach it.
func (s *Stack) Commit(n int) string {
	if n == 0 {
		if s.Built != nil {
			return s.Built.Commit
		}
		return s.Base.Commit
	}
	for i := range s.Steps {
		if st := &s.Steps[i]; st.N == n {
			if st.Built != nil {
				return st.Built.Commit
			}
			return st.Commit
		}
	}
	return ""
}
