package assembly

import (
	"iter"
	"slices"
	"time"

	"patchbench/mbox/series/keep"
)

// Result is what messages make up. Series have numbers from 0 in order of time;
// messages those that Add gave, 0 for none; and texts those of Name, 0 for none.
type Result struct {
	pool     *Pool
	made     *keep.List[posting]
	postings []uint32
	order    []uint32 // all records by time
	reasons  []string
	notes    map[uint32][]string
}

// Place is a patch in a series: its number there, the message that it is from, and
// which of that message's patches it is, from 0.
type Place struct {
	N       int
	Message uint32
	Of      int
}

// Len is how many series there are.
func (r *Result) Len() int { return len(r.postings) }

func (r *Result) series(i int) *posting { return r.made.At(r.postings[i]) }

// Version is the series' version.
func (r *Result) Version(i int) int { return int(r.series(i).version) }

// Total is how many patches the series has, up to the last one if no subject says.
func (r *Result) Total(i int) int { return int(r.series(i).length()) }

// Cover is the series' cover letter.
func (r *Result) Cover(i int) uint32 { return r.series(i).cover }

// Head is the message that stands for the series: its cover letter, else its first
// patch.
func (r *Result) Head(i int) uint32 { return r.pool.head(r.series(i)).seq }

// Notes say what was decided about the series beyond its mails.
func (r *Result) Notes(i int) []string { return r.notes[r.series(i).self] }

// Messages gives the messages that the series is made of, without patches of
// another version.
func (r *Result) Messages(i int) []uint32 {
	var list []uint32
	for m := range r.pool.recordsOf(r.series(i)) {
		list = append(list, m.seq)
	}
	return list
}

// Filled says that patches of another version complete the series.
func (r *Result) Filled(i int) bool { return r.series(i).filled }

// Patches gives the series' patches by their numbers.
func (r *Result) Patches(i int) []Place {
	p := r.series(i)
	list := make([]Place, len(p.slots))
	for k, s := range p.slots {
		from := r.pool.source(s.found)
		list[k] = Place{int(s.n), from.seq, int(s.found - from.patches)}
	}
	return list
}

// length is the total of a posting, up to the last patch if no subject says it.
func (p *posting) length() uint32 {
	if k := len(p.slots); p.total == 0 && k > 0 {
		return p.slots[k-1].n
	}
	return p.total
}

// Complete says that no patch of 1 to Total is missing.
func (r *Result) Complete(i int) bool {
	p := r.series(i)
	n := uint32(0)
	for _, s := range p.slots {
		if s.n <= p.length() {
			n++
		}
	}
	return n == p.length()
}

// Supersedes is the Message-ID that the series replaces, of this result or not.
func (r *Result) Supersedes(i int) uint32 {
	p := r.series(i)
	if p.before > 0 {
		if h := r.pool.head(r.made.At(p.before)); h.hasID {
			return h.key
		}
	}
	return r.pool.supersedes(p)
}

// Content is a hash of what is in the series.
func (r *Result) Content(i int) uint64 {
	p := r.series(i)
	sum := keep.Mix(uint64(p.version), uint64(p.length()))
	for _, s := range p.slots {
		sum = keep.Mix(sum, uint64(s.n), uint64(r.pool.source(s.found).key), r.pool.found.At(s.found).digest)
	}
	return sum
}

// Titles gives a hash of the series' subject and one of the title of each patch,
// without regard to case and blanks.
func (r *Result) Titles(i int) (subject uint64, patches []uint64) {
	p := r.series(i)
	for _, s := range p.slots {
		patches = append(patches, r.pool.found.At(s.found).title)
	}
	if p.cover > 0 {
		return r.pool.title(p.cover), patches
	}
	return patches[0], patches
}

// Received tells when the first and the last of the series' messages came in.
func (r *Result) Received(i int) (first, last time.Time) {
	for m := range r.pool.recordsOf(r.series(i)) {
		at := time.Unix(int64(m.received), 0)
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return first, last
}

// Skipped gives the messages that are in no series, by time.
func (r *Result) Skipped() []uint32 {
	var list []uint32
	for _, at := range r.order {
		if r.pool.record(at).skip > 0 {
			list = append(list, at)
		}
	}
	return list
}

// Grouped gives the messages that are in no series by the reason, as it first comes
// up, and then by time.
func (r *Result) Grouped() []uint32 {
	list := r.Skipped()
	rank := make(map[uint64]int) // of each reason
	key := func(at uint32) uint64 {
		m := r.pool.record(at)
		if m.skip < firstReason {
			return uint64(m.posting)<<32 | uint64(m.skip)
		}
		return uint64(m.skip)
	}
	for _, at := range list {
		if k := key(at); rank[k] == 0 {
			rank[k] = len(rank) + 1
		}
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return rank[key(a)] - rank[key(b)] })
	return list
}

// Why says why a message is in no series, in full or, when of is not 0, before the
// place of that message is put between before and after.
func (r *Result) Why(message uint32) (before string, of uint32, after string) {
	switch m := r.pool.record(message); m.skip {
	case skipDouble:
		return "a double of ", m.posting, ""
	case skipOtherContent:
		return "its Message-ID belongs to another mail with other content (", m.posting, ")"
	default:
		return r.reasons[m.skip], 0, ""
	}
}

// At is the place that Add was told.
func (r *Result) At(message uint32) int64 { return r.pool.record(message).at }

// ID is the message's Message-ID.
func (r *Result) ID(message uint32) uint32 {
	if m := r.pool.record(message); m.hasID {
		return m.key
	}
	return 0
}

// Key names the message even if it has no Message-ID.
func (r *Result) Key(message uint32) uint32 { return r.pool.record(message).key }

// Doubles goes through the messages that were dropped as doubles of one.
func (r *Result) Doubles(message uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for at := r.pool.record(message).doubles; at > 0; at = r.pool.record(at).next {
			if !yield(at) {
				return
			}
			for below := range r.Doubles(at) {
				if !yield(below) {
					return
				}
			}
		}
	}
}

// Name is the number of a text, 0 if no message has it.
func (r *Result) Name(text string) uint32 { return r.pool.names.Find(text) }

// Text is the text with a number.
func (r *Result) Text(name uint32) string { return r.pool.names.Text(name) }
