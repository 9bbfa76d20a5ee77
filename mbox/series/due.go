package series

import (
	"slices"
	"time"
)

// Due gives the numbers in Index of the series that are ready at this time (see
// Ready) and that Told has not been called for since they were last changed, in
// order of time. It reads nothing back, so that a taker of many needs no more memory
// than one series takes.
func (c *Collector) Due(now time.Time) []int {
	c.pool.Arrived(now)
	var out []int
	x := c.Index()
	for i := range x.Len() {
		first, last := x.made.Received(i)
		waited := now.Sub(last) >= c.options.Wait || now.Sub(first) >= c.options.GiveUp
		if (!x.made.Complete(i) || x.made.Filled(i)) && !waited {
			continue
		}
		if c.reported[x.made.Key(x.made.Head(i))] != x.made.Content(i) {
			out = append(out, i)
		}
	}
	return out
}

// Told says that a series as it is now need not be given again.
func (c *Collector) Told(i int) {
	made := c.Index().made
	c.reported[made.Key(made.Head(i))] = made.Content(i)
}

// Messages are the Message-IDs of the series' own mails, without doubles and
// without patches that it has from another version: the cover letter or first patch
// first. A mail without one has its Message.Key.
func (x *Index) Messages(i int) []string {
	head := x.made.Head(i)
	list := []string{x.made.Text(x.made.Key(head))}
	for _, m := range x.made.Messages(i) {
		if m != head {
			list = append(list, x.made.Text(x.made.Key(m)))
		}
	}
	return list
}

// Named says that the mail that stands for the series has a Message-ID.
func (x *Index) Named(i int) bool { return x.made.ID(x.made.Head(i)) > 0 }

// Holding gives, for each of some Message-IDs, the series of which that mail is a
// part, -1 for none.
func (x *Index) Holding(ids []string) []int {
	out := make([]int, len(ids))
	names := make([]uint32, len(ids))
	for k, id := range ids {
		out[k], names[k] = -1, x.made.Name(id)
	}
	for i := range x.Len() {
		for _, m := range x.made.Messages(i) {
			key := x.made.Key(m)
			for k, name := range names {
				if name == key && name > 0 {
					out[k] = i
				}
			}
		}
	}
	return out
}

// Waiting tells when the first and the last of the series' mails came in.
func (x *Index) Waiting(i int) (first, last time.Time) { return x.made.Received(i) }

// Versions gives the numbers of all versions of a series, itself among them, in
// order of time, by what Replaces gave.
func Versions(replaces []int, i int) []int {
	for n := 0; replaces[i] >= 0 && n < len(replaces); n++ {
		i = replaces[i]
	}
	list := []int{i}
	for k, before := range replaces {
		// A series replaces only earlier ones.
		if k != i && slices.Contains(list, before) {
			list = append(list, k)
		}
	}
	return list
}

// Complete says that none of the series' patches is missing.
func (x *Index) Complete(i int) bool { return x.made.Complete(i) }

// Filled says that the series has patches of another version, in place of those that
// may be on their way.
func (x *Index) Filled(i int) bool { return x.made.Filled(i) }
