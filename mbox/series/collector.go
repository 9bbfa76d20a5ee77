// Package series makes series of patches out of messages. In go the messages of
// a mailbox or a list, in any order; out come mbox.Series.
//
//  1. mbox/series/patch takes each mail apart: subject, message, author, diff.
//  2. A Collector puts the patches of one posting together, by thread first and
//     then by sender, total, version and time, and orders versions. It has at hand
//     what that needs, some 300 bytes a mail; mbox/series/keep puts the rest away.
//  3. An Index says which series there are, and reads them back one at a time.
//  4. Index.Choose picks the series and the patches that a user asks for.
//
// Nothing here reads a clock, a file or a repository: the same messages give the
// same series in whatever order they come.
package series

import (
	"hash/crc32"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/keep"
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
	// DropDiffs keeps only the hash of each diff, for listing large archives;
	// DropMessages only the subject of each commit message.
	DropDiffs, DropMessages bool
	// Keeper holds the texts and diffs of messages, and is empty at first; nil
	// means memory.
	Keeper keep.Medium
}

// Collector gathers messages and says which series they make up. It is not safe
// for use by several goroutines.
type Collector struct {
	pool
	options  Options
	problems keep.List[int64]  // where they were put
	reported map[uint32]uint64 // what Ready gave, by the key of the series' first mail
	index    *Index            // nil when a message came since
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
	return &Collector{options: o, reported: make(map[uint32]uint64), pool: pool{
		store: keep.NewStore(o.Keeper), replace: make(map[uint32]uint32), covers: make(map[uint32]uint64), needs: make(map[uint32]bool),
	}}
}

// AddProblem keeps a message that could not be read for the listing. It fails only
// if the Keeper does.
func (c *Collector) AddProblem(p mbox.Problem) error {
	at, err := c.store.PutProblem(p)
	c.problems.Add(at)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add takes one message in, and keeps nothing of it in memory but what the Keeper
// keeps there. It fails only if the Keeper does.
func (c *Collector) Add(m *mbox.Message) error {
	content := patch.Find(m, patch.Options{Scissors: c.options.Scissors})
	rest := &keep.Mail{
		Position: m.Position, Raw: m.Subject, Subject: patch.ParseSubject(m.Subject), Author: patch.Author(m), Date: m.Date, Lists: m.Lists,
		Patches: content.Patches, Hints: content.Hints,
	}
	for i := range rest.Patches {
		p := &rest.Patches[i].Patch
		if p.Author == (mbox.Address{}) {
			return c.AddProblem(mbox.Problem{MessageID: m.ID, Position: m.Position, Error: "no author: From has no address"})
		}
		if c.options.DropDiffs {
			p.Diff, p.Notes = nil, ""
		}
		if c.options.DropMessages {
			p.Message = ""
		}
	}
	if cover := rest.Subject.Numbered && rest.Subject.N == 0; len(rest.Patches) == 0 && (cover || !c.options.DropDiffs) {
		rest.Text = content.Text
	}
	at, err := c.store.Put(rest)
	if err != nil {
		return err
	}
	submitter := strings.ToLower(rest.Author.Email)
	if strings.Contains(strings.ToLower(m.From.Name), " via ") {
		// A gateway's address stands for many people.
		submitter += "|" + strings.ToLower(rest.Author.Name)
	}
	r := record{
		when: sent(m).Unix(), at: at, seq: c.records.Len() + 1, key: c.names.Add(m.Key()), hasID: m.ID != "",
		submitter: c.names.Add(submitter), received: seconds(m.Received),
		bytes: uint32(len(m.Raw)), sum: crc32.Checksum(m.Raw, castagnoli), subject: subjectOf(rest.Subject),
		bare: m.From == (mbox.Address{}) && m.Subject == "" && m.ID == "" && len(rest.Patches) > 0,
	}
	c.take(&r, rest.Patches)
	switch {
	case r.count == 0:
		r.hash = keep.Hash(fold(rest.Subject.Text))
	case !m.Date.IsZero():
		r.hash = keep.Mix(keep.Hash(submitter), uint64(m.Date.Unix()), keep.Hash(rest.Subject.Identity()), c.digest(&r))
	}
	if r.count > 0 && r.subject.numbered && r.subject.n == 0 {
		c.covers[r.seq] = keep.Hash(fold(rest.Subject.Text))
	}
	if id := content.Hints.Supersedes; id != "" {
		c.replace[r.seq] = c.names.Add(id)
	}
	if len(content.Hints.Prerequisites) > 0 {
		c.needs[r.seq] = true
	}
	r.parents = c.link(c.parents(m, content.First))
	c.records.Add(r)
	c.index = nil
	return nil
}

// parents are the ids that a message refers to, nearest first.
func (c *Collector) parents(m *mbox.Message, first string) []uint32 {
	list := make([]uint32, 0, 16)
	add := func(id string) {
		if n := c.names.Add(id); n > 0 {
			list = append(list, n)
		}
	}
	add(first)
	for i := len(m.InReplyTo) - 1; i >= 0; i-- {
		add(m.InReplyTo[i])
	}
	for i := len(m.References) - 1; i >= 0 && len(list) < 100; i-- {
		add(m.References[i])
	}
	return list
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

// Index tells what all messages so far are. It is good until the next Add.
func (c *Collector) Index() *Index {
	if c.index == nil {
		c.index = assemble(&c.pool, c.options)
		c.index.problems = &c.problems
	}
	return c.index
}

// Listing tells what all messages so far are, each in exactly one list, with all
// that is in them. Series are in order of time. It fails only if the Keeper does.
func (c *Collector) Listing() (mbox.Listing, error) { return c.Index().Listing() }

// Ready gives the series that are complete or have waited long enough at this
// time, each once, and again when more of it came. One with patches of the version
// before waits as an incomplete one does, for those that may be on their way. A message whose time of
// arrival is unknown counts as arrived when Ready first saw it; dates that
// senders wrote are never used for waiting. It fails only if the Keeper does; the
// series that are ready then are given by the next call.
func (c *Collector) Ready(now time.Time) ([]mbox.Series, error) {
	for i := range c.records.Len() {
		if r := c.record(i + 1); r.received == 0 {
			r.received = seconds(now)
		}
	}
	var out []mbox.Series
	reported := make(map[uint32]uint64)
	x := c.Index()
	for i, at := range x.postings {
		p := x.posting(at)
		first, last := uint32(0), uint32(0)
		for r := range x.recordsOf(p) {
			if first == 0 || r.received < first {
				first = r.received
			}
			last = max(last, r.received)
		}
		waited := now.Sub(time.Unix(int64(last), 0)) >= c.options.Wait || now.Sub(time.Unix(int64(first), 0)) >= c.options.GiveUp
		if (!x.complete(p) || p.filled) && !waited {
			continue
		}
		key, content := x.head(p).key, x.content(p)
		if c.reported[key] == content {
			continue
		}
		s, err := x.Series(i)
		if err != nil {
			return nil, err
		}
		reported[key] = content
		out = append(out, s)
	}
	for key, content := range reported {
		c.reported[key] = content
	}
	return out, nil
}
