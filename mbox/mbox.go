// Package mbox holds the nouns of patch mail: a Message as it was received, a
// Patch that one message carries, the Series that the patches of one posting
// make up, and the Base that a series is applied to. It also reads and writes
// mailboxes and decodes single messages: go-message reads header fields, media
// types, transfer encodings and charsets, behind filters that keep one bad line
// from costing the whole mail. MIME parts are found in one pass of our own, since
// go-message reads each as often as it is nested. Addresses and dates follow git
// mailinfo's loose rules, since net/mail, which go-message has for them, refuses
// many.
//
// In go the bytes of a mailbox or of one mail; out come messages. Which
// messages form a series is decided in mbox/series, and what a series does to a
// tree in mbox/tree. Nothing here touches the network or a repository.
package mbox

import (
	"fmt"
	"time"
)

// Address is a person's name and mail address as they stood in a header. Either
// may be empty.
type Address struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// String gives the address as git prints an identity: Name <email>.
func (a Address) String() string {
	if a.Name == "" {
		return "<" + a.Email + ">"
	}
	return a.Name + " <" + a.Email + ">"
}

// Series is the patches 1..Total of one posting, with its version and cover
// letter. Its JSON form is an entry of "series" in `bot show --json`.
type Series struct {
	// MessageID is that of the cover letter, else of the first patch, without <>.
	MessageID string `json:"message_id"`
	// Subject is the cover letter's without tags, else the first patch's.
	Subject string `json:"subject"`
	// Tags are the words of the subject's brackets other than PATCH, the
	// version and the number: RFC, a list's or a subsystem's name.
	Tags []string `json:"tags"`
	// Version is 1 for a first posting, 2 for `[PATCH v2]`.
	Version int `json:"version"`
	// Total is the m of n/m, 1 for a lone patch.
	Total int `json:"total"`
	// Received counts the patches of 1..Total that are there.
	Received int `json:"received"`
	// Complete says that none of 1..Total is missing.
	Complete bool `json:"complete"`
	// Missing lists the numbers of 1..Total that are not there, ascending.
	Missing []int   `json:"missing"`
	Author  Address `json:"author"`
	// Date is the cover letter's, else the first patch's. Zero if unreadable.
	Date  time.Time `json:"date"`
	Lists []string  `json:"lists"`
	Cover *Cover    `json:"cover"`
	// Base is what the mails say of the base (base-commit), nil if nothing.
	Base *Base `json:"base"`
	// Prerequisites are what the mails say must be applied before.
	Prerequisites []Prerequisite `json:"prerequisites,omitempty"`
	// Notes tell a reader what was decided about the series beyond its mails: a
	// patch taken from the version before.
	Notes []string `json:"notes,omitempty"`
	// Supersedes is the Message-ID of the series that this one replaces.
	Supersedes *string `json:"supersedes"`
	// Patches ascend by N and hold each number at most once.
	Patches []Patch `json:"patches"`
}

// Cover is a cover letter. Body is its text without the diffstat's signature.
type Cover struct {
	MessageID string `json:"message_id"`
	Subject   string `json:"subject"`
	Body      string `json:"body"`
}

// Styles of a diff.
const (
	StyleGit   = "git"   // `diff --git` with git's extended headers
	StyleHg    = "hg"    // `diff -r NODE` or an `# HG changeset patch`
	StylePlain = "plain" // `diff -u`, `Index:` or bare --- and +++ lines
)

// Patch is one message's change.
type Patch struct {
	// N is the patch's number in its series, from 1.
	N         int       `json:"n"`
	MessageID string    `json:"message_id"`
	Author    Address   `json:"author"`
	Date      time.Time `json:"date"`
	// Subject is the first line of Message.
	Subject string `json:"subject"`
	// Message is the commit message as `git am` would record it, UTF-8, with
	// one newline at its end.
	Message string `json:"message"`
	// Files are the names in the diff, without a/ and b/, in order, each once.
	Files []string `json:"files"`
	Style string   `json:"style"`
	// DiffSHA256 is the hex SHA-256 of Diff from its first header line to the
	// end of the last hunk or binary part.
	DiffSHA256 string `json:"diff_sha256"`
	// Node and Parent are Mercurial's ids of the change and of what it was made
	// on, hex; "" for other patches.
	Node   string `json:"node,omitempty"`
	Parent string `json:"parent,omitempty"`
	// Diff is the change as bytes, never converted between charsets.
	Diff []byte `json:"-"`
	// Notes is the text between `---` and the diff: changelog and diffstat.
	Notes string `json:"-"`
}

// How a base was chosen.
const (
	HowFlag       = "flag"
	HowBaseCommit = "base-commit"
	HowParentNode = "parent-node"
	HowBlobs      = "blobs"
	HowBranch     = "branch"
	HowRange      = "range"
	HowMergeBase  = "merge-base"
)

// Base is the commit that a series is applied to, version 0 of the code.
type Base struct {
	// Commit is the full hex object id, or what the mail or the user said
	// before the repository was asked.
	Commit string `json:"commit"`
	How    string `json:"how"`
	// Reason tells a reader why this commit: one sentence without a full stop.
	Reason string `json:"reason,omitempty"`
}

// Prerequisite is a change that a series needs beneath it, named by one of its
// patch id (git patch-id --stable) and Message-ID.
type Prerequisite struct {
	PatchID   string `json:"patch_id,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// Skipped is a message that is no part of a series, and why.
type Skipped struct {
	MessageID string `json:"message_id"`
	Subject   string `json:"subject"`
	Reason    string `json:"reason"`
	// Position says where it was read: the file, and the place in it.
	Position string `json:"-"`
}

// Problem is a message that could not be read. Position says where: the file,
// and the message's number and first byte in it.
type Problem struct {
	MessageID string `json:"message_id"`
	Position  string `json:"position"`
	Error     string `json:"error"`
}

// Listing is all that was understood of some mail: every message is in exactly
// one of a series, Skipped and Problems. Its JSON form is that of
// `bot show --json`.
type Listing struct {
	Series   []Series  `json:"series"`
	Skipped  []Skipped `json:"skipped"`
	Problems []Problem `json:"problems"`
}

// Conflict is the patch that did not apply and where. It has the shape of
// "conflict" in `bot apply --json`.
type Conflict struct {
	N       int            `json:"n"`
	Subject string         `json:"subject"`
	Files   []ConflictFile `json:"files"`
}

// ConflictFile is one file of a conflict. Hunk counts from 1, 0 if the file as a
// whole is meant; Line is the line in the file, 0 if unknown.
type ConflictFile struct {
	Path   string `json:"path"`
	Hunk   int    `json:"hunk"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// String tells where and why in one line: `a.c: hunk 2: line 120: context differs`.
func (f ConflictFile) String() string {
	s := f.Path
	if f.Hunk > 0 {
		s += fmt.Sprintf(": hunk %d", f.Hunk)
	}
	if f.Line > 0 {
		s += fmt.Sprintf(": line %d", f.Line)
	}
	if s == "" { // of a patch that names no file
		return f.Reason
	}
	return s + ": " + f.Reason
}
