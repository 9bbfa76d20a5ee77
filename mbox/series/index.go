package series

import (
	"iter"
	"slices"

	"patchbench/mbox"
	"patchbench/mbox/series/keep"
)

// Index is what a Collector's messages make up: series, which have numbers from 0
// in order of time, and messages that are in none. It holds neither; they are read
// back when asked for, as they were or, with DropDiffs and DropMessages, what was
// left of them.
type Index struct {
	*pool
	made     *keep.List[posting]
	postings []uint32
	order    []uint32 // all records by time
	reasons  []string
	notes    map[uint32][]string
	problems *keep.List[int64]
}

// Len is how many series there are.
func (x *Index) Len() int { return len(x.postings) }

func (x *Index) posting(at uint32) *posting { return x.made.At(at) }

func (x *Index) series(i int) *posting { return x.posting(x.postings[i]) }

// Series reads a series back. The error is the Keeper's.
func (x *Index) Series(i int) (mbox.Series, error) {
	b := builder{Index: x, p: x.series(i)}
	return b.build()
}

// Replaces says for each series which earlier one it replaces, by its
// Series.Supersedes; -1 for one that replaces none of the index.
func (x *Index) Replaces() []int {
	out := make([]int, len(x.postings))
	by := make(map[uint32]int, len(out))
	for i, at := range x.postings {
		p := x.posting(at)
		out[i] = -1
		if n, ok := by[x.superseded(p)]; ok {
			out[i] = n
		}
		if h := x.head(p); h.hasID {
			by[h.key] = i
		}
	}
	return out
}

// superseded is the id that the posting replaces, 0 if none.
func (x *Index) superseded(p *posting) uint32 {
	if p.before > 0 {
		if h := x.head(x.posting(p.before)); h.hasID {
			return h.key
		}
	}
	return x.supersedes(p)
}

// highest is the highest number in a series; an extra patch may have one beyond the
// total.
func (p *posting) highest() uint32 {
	n := p.total
	if k := len(p.slots); k > 0 {
		n = max(n, p.slots[k-1].n)
	}
	return n
}

// length is the total of a series, up to the last patch if no subject says it.
func (p *posting) length() uint32 {
	if p.total == 0 {
		return p.highest()
	}
	return p.total
}

// complete says that no patch of 1 to total is missing.
func (x *Index) complete(p *posting) bool {
	n := uint32(0)
	for _, s := range p.slots {
		if s.n <= p.length() {
			n++
		}
	}
	return n == p.length()
}

// content is a hash of what is in a series.
func (x *Index) content(p *posting) uint64 {
	sum := keep.Mix(uint64(p.version), uint64(p.length()))
	for _, s := range p.slots {
		sum = keep.Mix(sum, uint64(s.n), uint64(x.source(s.found).key), x.found.At(s.found).digest)
	}
	return sum
}

// Skipped goes through the messages that are in no series: by time or, grouped, by
// the reason why, as it first comes up, and then by time. An error, the Keeper's,
// is the last.
func (x *Index) Skipped(grouped bool) iter.Seq2[mbox.Skipped, error] {
	var list []*record
	rank := make(map[uint64]int) // of each reason
	for _, at := range x.order {
		if r := x.record(at); r.skip > 0 {
			list = append(list, r)
			if k := x.reasonKey(r); grouped && rank[k] == 0 {
				rank[k] = len(rank) + 1
			}
		}
	}
	if grouped {
		slices.SortStableFunc(list, func(a, b *record) int { return rank[x.reasonKey(a)] - rank[x.reasonKey(b)] })
	}
	return func(yield func(mbox.Skipped, error) bool) {
		for _, r := range list {
			s, err := x.skipped(r)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// SkippedLen is how many messages Skipped goes through.
func (x *Index) SkippedLen() int {
	n := 0
	for _, at := range x.order {
		if x.record(at).skip > 0 {
			n++
		}
	}
	return n
}

// reasonKey is the same for records with the same reason.
func (x *Index) reasonKey(r *record) uint64 {
	if r.skip < firstReason {
		return uint64(r.posting)<<32 | uint64(r.skip)
	}
	return uint64(r.skip)
}

func (x *Index) skipped(r *record) (mbox.Skipped, error) {
	m, err := x.store.Get(r.at)
	if err != nil {
		return mbox.Skipped{}, err
	}
	s := mbox.Skipped{MessageID: x.id(r), Subject: m.Raw, Reason: x.reasons[r.skip]}
	if r.skip >= firstReason {
		return s, nil
	}
	other, err := x.store.Get(x.record(r.posting).at)
	if err != nil {
		return s, err
	}
	s.Reason = "a double of " + other.Position
	if r.skip == skipOtherContent {
		s.Reason = "its Message-ID belongs to another mail with other content (" + other.Position + ")"
	}
	return s, nil
}

// Problems goes through the messages that could not be read, as they came. An
// error, the Keeper's, is the last.
func (x *Index) Problems() iter.Seq2[mbox.Problem, error] {
	return func(yield func(mbox.Problem, error) bool) {
		for i := range x.problems.Len() {
			p, err := x.store.Problem(*x.problems.At(i + 1))
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// ProblemsLen is how many messages Problems goes through.
func (x *Index) ProblemsLen() int { return int(x.problems.Len()) }

// Listing reads all back. It fails only if the Keeper does.
func (x *Index) Listing() (mbox.Listing, error) {
	out := mbox.Listing{Series: []mbox.Series{}, Skipped: []mbox.Skipped{}, Problems: []mbox.Problem{}}
	for i := range x.Len() {
		s, err := x.Series(i)
		if err != nil {
			return out, err
		}
		out.Series = append(out.Series, s)
	}
	for s, err := range x.Skipped(false) {
		if err != nil {
			return out, err
		}
		out.Skipped = append(out.Skipped, s)
	}
	for p, err := range x.Problems() {
		if err != nil {
			return out, err
		}
		out.Problems = append(out.Problems, p)
	}
	return out, nil
}

// builder makes a series out of a posting.
type builder struct {
	*Index
	p     *posting
	mails map[uint32]*keep.Mail // of records, as read back
	err   error
}

// mail reads back what was put away of a record; an empty one after an error.
func (b *builder) mail(r *record) *keep.Mail {
	if m := b.mails[r.seq]; m != nil {
		return m
	}
	m, err := b.store.Get(r.at)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		m = &keep.Mail{}
	}
	if b.mails == nil {
		b.mails = make(map[uint32]*keep.Mail)
	}
	b.mails[r.seq] = m
	return m
}

func (b *builder) build() (mbox.Series, error) {
	p := b.p
	head := b.head(p)
	top := b.mail(head)
	s := mbox.Series{
		MessageID: b.id(head), Version: int(p.version), Total: int(p.length()), Subject: top.Subject.Text,
		Tags: []string{}, Missing: []int{}, Lists: []string{}, Patches: make([]mbox.Patch, 0, len(p.slots)), Notes: slices.Clone(b.notes[p.self]),
		Author: top.Author, Date: top.Date,
	}
	tags := top.Subject.Tags
	if p.cover > 0 {
		s.Cover = &mbox.Cover{MessageID: s.MessageID, Subject: top.Subject.Text, Body: top.Text}
	}
	for _, slot := range p.slots {
		r := b.source(slot.found)
		m := b.mail(r)
		if b.err != nil {
			return s, b.err
		}
		f := m.Patches[slot.found-r.patches]
		one := f.Patch
		one.N, one.MessageID = int(slot.n), b.id(r)
		if len(s.Patches) == 0 && p.cover == 0 {
			s.Author, s.Subject, tags = one.Author, one.Subject, f.Subject.Tags
			if s.Date.IsZero() {
				s.Date = one.Date
			}
		}
		s.Patches = append(s.Patches, one)
	}
	s.Tags = append(s.Tags, tags...)
	for n := uint32(1); n <= p.length(); n++ {
		if p.slot(n) > 0 {
			s.Received++
		} else {
			s.Missing = append(s.Missing, int(n))
		}
	}
	s.Complete = len(s.Missing) == 0
	if id := b.superseded(p); id > 0 {
		text := b.names.Text(id)
		s.Supersedes = &text
	}
	b.addHints(&s)
	if len(s.Patches) > 0 && s.Patches[0].N == 1 && s.Base == nil && s.Patches[0].Parent != "" {
		s.Base = &mbox.Base{Commit: s.Patches[0].Parent, How: mbox.HowParentNode, Reason: "Mercurial's parent of the first patch"}
	}
	return s, b.err
}

// addHints takes in what the mails say of the base; the cover speaks first, then
// the patches in order.
func (b *builder) addHints(s *mbox.Series) {
	var order []*record
	if b.p.cover > 0 {
		order = append(order, b.record(b.p.cover))
	}
	for _, slot := range b.p.slots {
		if r := b.source(slot.found); !slices.Contains(order, r) {
			order = append(order, r)
		}
	}
	for _, r := range order {
		b.addLists(s, r)
		hints := b.mail(r).Hints
		if s.Base == nil && hints.BaseCommit != "" {
			s.Base = &mbox.Base{Commit: hints.BaseCommit, How: mbox.HowBaseCommit, Reason: "the mail says base-commit"}
		}
		for _, pre := range hints.Prerequisites {
			if !slices.Contains(s.Prerequisites, pre) {
				s.Prerequisites = append(s.Prerequisites, pre)
			}
		}
	}
	slices.Sort(s.Lists)
}

// addLists takes in the lists that a mail came through, and those of its doubles.
func (b *builder) addLists(s *mbox.Series, r *record) {
	for _, l := range b.mail(r).Lists {
		if !slices.Contains(s.Lists, l) {
			s.Lists = append(s.Lists, l)
		}
	}
	for at := r.doubles; at > 0; at = b.record(at).next {
		b.addLists(s, b.record(at))
	}
}
