package series

import (
	"iter"
	"slices"
	"strings"

	"patchbench/mbox"
	"patchbench/mbox/series/assembly"
	"patchbench/mbox/series/keep"
)

// Index is what a Collector's messages make up: series, which have numbers from 0
// in order of time, and messages that are in none. It holds neither; they are read
// back when asked for, as they were or, with DropDiffs and DropMessages, what was
// left of them.
type Index struct {
	made     *assembly.Result
	store    *keep.Store
	problems *keep.List[int64]
	needs    map[uint32]bool
}

// Len is how many series there are.
func (x *Index) Len() int { return x.made.Len() }

// Series reads a series back. The error is the Keeper's.
func (x *Index) Series(i int) (mbox.Series, error) {
	b := builder{x: x, i: i}
	return b.build()
}

// Replaces says for each series which earlier one it replaces, by its
// Series.Supersedes; -1 for one that replaces none of the index.
func (x *Index) Replaces() []int {
	out := make([]int, x.Len())
	by := make(map[uint32]int, len(out))
	for i := range out {
		out[i] = -1
		if n, ok := by[x.made.Supersedes(i)]; ok {
			out[i] = n
		}
		if id := x.made.ID(x.made.Head(i)); id > 0 {
			by[id] = i
		}
	}
	return out
}

// Skipped goes through the messages that are in no series: by time or, grouped, by
// the reason why, as it first comes up, and then by time. An error, the Keeper's,
// is the last.
func (x *Index) Skipped(grouped bool) iter.Seq2[mbox.Skipped, error] {
	list := x.made.Skipped()
	if grouped {
		list = x.made.Grouped()
	}
	return func(yield func(mbox.Skipped, error) bool) {
		for _, m := range list {
			s, err := x.skipped(m)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// SkippedLen is how many messages Skipped goes through.
func (x *Index) SkippedLen() int { return len(x.made.Skipped()) }

func (x *Index) skipped(message uint32) (mbox.Skipped, error) {
	m, err := x.store.Get(x.made.At(message))
	if err != nil {
		return mbox.Skipped{}, err
	}
	before, of, after := x.made.Why(message)
	s := mbox.Skipped{MessageID: x.made.Text(x.made.ID(message)), Subject: m.Raw, Reason: before, Position: m.Position}
	if of > 0 {
		other, err := x.store.Get(x.made.At(of))
		if err != nil {
			return s, err
		}
		s.Reason = before + other.Position + after
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

// builder makes the series with a number.
type builder struct {
	x     *Index
	i     int
	mails map[uint32]*keep.Mail // of messages, as read back
	err   error
}

// mail reads back what was put away of a message; an empty one after an error.
func (b *builder) mail(message uint32) *keep.Mail {
	if m := b.mails[message]; m != nil {
		return m
	}
	m, err := b.x.store.Get(b.x.made.At(message))
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		m = &keep.Mail{}
	}
	if b.mails == nil {
		b.mails = make(map[uint32]*keep.Mail)
	}
	b.mails[message] = m
	return m
}

func (b *builder) id(message uint32) string { return b.x.made.Text(b.x.made.ID(message)) }

func (b *builder) build() (mbox.Series, error) {
	made, i := b.x.made, b.i
	head, places := made.Head(i), made.Patches(i)
	top := b.mail(head)
	s := mbox.Series{
		MessageID: b.id(head), Version: made.Version(i), Total: made.Total(i), Subject: top.Subject.Text,
		Tags: []string{}, Missing: []int{}, Lists: []string{}, Patches: make([]mbox.Patch, 0, len(places)), Notes: slices.Clone(made.Notes(i)),
		Author: top.Author, Date: top.Date,
	}
	tags := top.Subject.Tags
	if made.Cover(i) > 0 {
		s.Cover = &mbox.Cover{MessageID: s.MessageID, Subject: top.Subject.Text, Body: top.Text}
	}
	have := make(map[int]bool)
	for _, place := range places {
		m := b.mail(place.Message)
		if b.err != nil {
			return s, b.err
		}
		f := m.Patches[place.Of]
		one := f.Patch
		one.N, one.MessageID = place.N, b.id(place.Message)
		if len(s.Patches) == 0 && s.Cover == nil {
			s.Author, s.Subject, tags = one.Author, one.Subject, f.Subject.Tags
			if s.Date.IsZero() {
				s.Date = one.Date
			}
		}
		s.Patches = append(s.Patches, one)
		have[place.N] = true
	}
	s.Tags = append(s.Tags, tags...)
	for n := 1; n <= s.Total; n++ {
		if have[n] {
			s.Received++
		} else {
			s.Missing = append(s.Missing, n)
		}
	}
	s.Complete = len(s.Missing) == 0
	if id := made.Supersedes(i); id > 0 {
		text := made.Text(id)
		s.Supersedes = &text
	}
	b.addHints(&s, places)
	if len(s.Patches) > 0 && s.Patches[0].N == 1 && s.Base == nil && strings.Trim(s.Patches[0].Parent, "0") != "" {
		s.Base = &mbox.Base{Commit: s.Patches[0].Parent, How: mbox.HowParentNode, Reason: "Mercurial's parent of the first patch"}
	}
	return s, b.err
}

// addHints takes in what the mails say of the base, and their lists; the cover
// speaks first, then the patches in order.
func (b *builder) addHints(s *mbox.Series, places []assembly.Place) {
	var order []uint32
	if cover := b.x.made.Cover(b.i); cover > 0 {
		order = append(order, cover)
	}
	for _, place := range places {
		if !slices.Contains(order, place.Message) {
			order = append(order, place.Message)
		}
	}
	for _, message := range order {
		b.addLists(s, message)
		for double := range b.x.made.Doubles(message) {
			b.addLists(s, double)
		}
		hints := b.mail(message).Hints
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

func (b *builder) addLists(s *mbox.Series, message uint32) {
	for _, l := range b.mail(message).Lists {
		if !slices.Contains(s.Lists, l) {
			s.Lists = append(s.Lists, l)
		}
	}
}
