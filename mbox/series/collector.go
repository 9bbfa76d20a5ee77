// Package series makes series of patches out of messages. In go the messages of
// a mailbox or a list, in any order; out come mbox.Series.
//
//  1. mbox/series/patch takes each mail apart: subject, message, author, diff.
//  2. A Collector puts the patches of one posting together, by thread first and
//     then by sender, total, version and time, and orders versions. It has at hand
//     what mbox/series/assembly needs for that, some 250 bytes a mail;
//     mbox/series/keep puts the rest away.
//  3. An Index says which series there are, and reads them back one at a time.
//  4. Index.Choose picks the series and the patches that a user asks for.
//
// Nothing here reads a clock, a file or a repository: the same messages give the
// same series in whatever order they come.
package series

import (
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/assembly"
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
	// ByArrival puts mails in order by when they were received, where that is known:
	// for mail that is watched as it comes in, of which nobody can choose the order by
	// writing dates. Else their dates count, unless they cannot be.
	ByArrival bool
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
	options  Options
	pool     *assembly.Pool
	store    *keep.Store
	needs    map[uint32]bool   // messages that name prerequisites
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
	pool := assembly.NewPool()
	pool.ByArrival = o.ByArrival
	return &Collector{
		options: o, pool: pool, store: keep.NewStore(o.Keeper), needs: make(map[uint32]bool), reported: make(map[uint32]uint64),
	}
}

// AddProblem keeps a message that could not be read for the listing. It fails only
// if the Keeper does.
func (c *Collector) AddProblem(p mbox.Problem) error {
	at, err := c.store.PutProblem(p)
	c.problems.Add(at)
	return err
}

// Add takes one message in; its bytes can be used again afterwards. It fails only if
// the Keeper does.
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
	seq := c.pool.Add(m, rest, content.First, at)
	if len(content.Hints.Prerequisites) > 0 {
		c.needs[seq] = true
	}
	c.index = nil
	return nil
}

// Index tells what all messages so far are. It is good until the next Add.
func (c *Collector) Index() *Index {
	if c.index == nil {
		c.index = &Index{made: c.pool.Assemble(c.options.MaxPatches), store: c.store, problems: &c.problems, needs: c.needs}
	}
	return c.index
}

// Listing tells what all messages so far are, each in exactly one list, with all
// that is in them. Series are in order of time. It fails only if the Keeper does.
func (c *Collector) Listing() (mbox.Listing, error) { return c.Index().Listing() }

// Ready gives the series that are complete or have waited long enough at this
// time, each once, and again when more of it came. One with patches of the version
// before waits as an incomplete one does, for those that may be on their way. A
// message whose time of arrival is unknown counts as arrived when Ready first saw
// it; dates that senders wrote are never used for waiting. It fails only if the
// Keeper does; the next call gives what was ready then.
func (c *Collector) Ready(now time.Time) ([]mbox.Series, error) {
	var out []mbox.Series
	due := c.Due(now)
	for _, i := range due {
		s, err := c.Index().Series(i)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	for _, i := range due {
		c.Told(i)
	}
	return out, nil
}
