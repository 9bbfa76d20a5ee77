// Package series makes series of patches out of messages. In go the messages of
// a mailbox or a list, in any order; out come mbox.Series.
//
//  1. mbox/series/patch takes each mail apart: subject, message, author, diff.
//  2. A Collector puts the patches of one posting together, by thread first and
//     then by sender, total, version and time, and orders versions.
//  3. Choose picks the series and the patches that a user asks for.
//
// Nothing here reads a clock, a file or a repository: the same messages give the
// same series in whatever order they come.
package series

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// Options of a Collector. The zero value works.
type Options struct {
	// Scissors heeds scissors lines in every mail, as git mailinfo --scissors; they
	// are always heeded in a reply that holds a diff.
	Scissors bool
	// Wait is how long an incomplete series waits after its last mail, GiveUp how
	// long after its first; 0 means 30 minutes and 24 hours.
	Wait, GiveUp time.Duration
	// MaxPatches bounds a series; 0 means 100.
	MaxPatches int
	// DropDiffs keeps only the hash of each diff, for reading large archives;
	// DropMessages only the subject of each commit message.
	DropDiffs, DropMessages bool
}

// Collector gathers messages and says which series they make up. It is not safe
// for use by several goroutines.
type Collector struct {
	options  Options
	records  []*record
	problems []mbox.Problem
	reported map[string]string // what Ready gave, by the series' first key
	names    map[string]string // one copy of each name and address
	state    *state            // nil when a message came since
}

// NewCollector makes an empty Collector.
func NewCollector(o Options) *Collector {
	if o.Wait == 0 {
		o.Wait = 30 * time.Minute
	}
	if o.GiveUp == 0 {
		o.GiveUp = 24 * time.Hour
	}
	if o.MaxPatches == 0 {
		o.MaxPatches = 100
	}
	return &Collector{options: o, reported: make(map[string]string), names: make(map[string]string)}
}

// AddProblem keeps a message that could not be read for the listing.
func (c *Collector) AddProblem(p mbox.Problem) { c.problems = append(c.problems, p) }

// record is what the collector keeps of one message.
type record struct {
	seq       int
	id        string // "" if it has none
	key       string
	position  string
	raw       string // subject as sent
	subject   patch.Subject
	author    mbox.Address // of the mail
	submitter string
	date      time.Time
	when      time.Time // what it is ordered by: date, unless that cannot be
	received  time.Time // zero until known
	parents   []string  // ids, nearest first
	lists     []string
	patches   []patch.Found
	text      string
	hints     patch.Hints
	bytes     int    // of the raw mail
	sum       uint32 // of the raw mail; orders mails that are alike in all else
	bare      bool   // a patch of hg export, no mail

	skip string // why it is no part of a series, "" if it is
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add takes one message in.
func (c *Collector) Add(m *mbox.Message) {
	content := patch.Find(m, patch.Options{Scissors: c.options.Scissors})
	r := &record{
		seq: len(c.records), id: m.ID, key: m.Key(), position: m.Position, raw: m.Subject,
		subject: patch.ParseSubject(m.Subject), author: patch.Author(m), date: m.Date, received: m.Received,
		patches: content.Patches, hints: content.Hints, bytes: len(m.Raw), sum: crc32.Checksum(m.Raw, castagnoli), lists: m.Lists,
	}
	r.when = sent(m)
	r.author = c.person(r.author)
	r.submitter = strings.ToLower(r.author.Email)
	if strings.Contains(strings.ToLower(m.From.Name), " via ") {
		// A gateway's address stands for many people.
		r.submitter += "|" + strings.ToLower(r.author.Name)
	}
	r.submitter = c.name(r.submitter)
	r.bare = m.From == (mbox.Address{}) && m.Subject == "" && m.ID == "" && len(r.patches) > 0
	if content.First != "" {
		r.parents = append(r.parents, content.First)
	}
	for i := range r.patches {
		f := &r.patches[i]
		if f.Patch.Author == (mbox.Address{}) {
			c.AddProblem(mbox.Problem{MessageID: m.ID, Position: m.Position, Error: "no author: From has no address"})
			return
		}
		f.Patch.Author = c.person(f.Patch.Author)
		if c.options.DropDiffs {
			f.Patch.Diff, f.Patch.Notes = nil, ""
		}
		if c.options.DropMessages {
			// A copy, since the subject is a part of the message.
			f.Patch.Message, f.Patch.Subject = "", strings.Clone(f.Patch.Subject)
		}
	}
	for i := len(m.InReplyTo) - 1; i >= 0; i-- {
		r.parents = append(r.parents, m.InReplyTo[i])
	}
	for i := len(m.References) - 1; i >= 0 && len(r.parents) < 100; i-- {
		r.parents = append(r.parents, m.References[i])
	}
	if len(r.patches) == 0 {
		r.text = content.Text
		if c.options.DropDiffs && !(r.subject.Numbered && r.subject.N == 0) {
			r.text = ""
		}
	}
	c.records = append(c.records, r)
	c.state = nil
}

// person and name give the one copy that is kept of a name: an archive repeats
// those of its authors.
func (c *Collector) person(a mbox.Address) mbox.Address {
	return mbox.Address{Name: c.name(a.Name), Email: c.name(a.Email)}
}

func (c *Collector) name(s string) string {
	if known, ok := c.names[s]; ok {
		return known
	}
	s = strings.Clone(s)
	c.names[s] = s
	return s
}

// sent is when a mail was sent, for putting mails in order: its Date, or when it
// was received if there is none or the two are a week apart. Clocks of senders are
// wrong, and some dates are those of a commit.
func sent(m *mbox.Message) time.Time {
	received := m.Received
	if received.IsZero() && m.Date.IsZero() {
		line := m.Header("Received")
		received = mbox.ParseDate(strings.TrimSpace(line[strings.LastIndexByte(line, ';')+1:]))
	}
	apart := m.Date.Sub(received).Abs()
	if !received.IsZero() && (m.Date.IsZero() || apart > 7*24*time.Hour) {
		return received
	}
	return m.Date
}

// Listing tells what all messages so far are, each in exactly one list. Series
// are in order of time.
func (c *Collector) Listing() mbox.Listing {
	s := c.assembled()
	out := mbox.Listing{Series: []mbox.Series{}, Skipped: []mbox.Skipped{}, Problems: []mbox.Problem{}}
	for _, p := range s.postings {
		out.Series = append(out.Series, p.series)
	}
	out.Skipped = append(out.Skipped, s.skipped...)
	out.Problems = append(out.Problems, c.problems...)
	return out
}

// Ready gives the series that are complete or have waited long enough at this
// time, each once, and again when more of it came. One with patches of the version
// before waits as an incomplete one does, for those that may be on their way. A message whose time of
// arrival is unknown counts as arrived when Ready first saw it; dates that
// senders wrote are never used for waiting.
func (c *Collector) Ready(now time.Time) []mbox.Series {
	for _, r := range c.records {
		if r.received.IsZero() {
			r.received = now
		}
	}
	var out []mbox.Series
	for _, p := range c.assembled().postings {
		var first, last time.Time
		for _, r := range p.records {
			if first.IsZero() || r.received.Before(first) {
				first = r.received
			}
			if r.received.After(last) {
				last = r.received
			}
		}
		if (!p.series.Complete || p.filled) && now.Sub(last) < c.options.Wait && now.Sub(first) < c.options.GiveUp {
			continue
		}
		content := fmt.Sprint(p.series.Version, p.series.Total, p.series.Missing)
		for _, one := range p.series.Patches {
			content += one.MessageID + strconv.Itoa(one.N) + one.DiffSHA256
		}
		if key := p.head().key; c.reported[key] != content {
			c.reported[key] = content
			out = append(out, p.series)
		}
	}
	return out
}

func (c *Collector) assembled() *state {
	if c.state == nil {
		c.state = assemble(c.records, c.options)
	}
	return c.state
}
