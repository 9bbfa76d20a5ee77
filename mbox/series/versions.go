package series

import (
	"fmt"
	"slices"
	"strings"

	"patchbench/mbox"
)

// versions finds for each posting the one that it replaces, numbers those that
// repeat an earlier one without saying so, and completes a reroll of single
// patches from the version before.
func (a *assembler) versions() {
	// Earlier postings by what a later one may have in common with them.
	seen := make(map[string][]*posting)
	for _, p := range a.all {
		keys := a.traits(p)
		var earlier []*posting
		for _, k := range keys {
			earlier = append(earlier, seen[k]...)
		}
		if p.before = a.predecessor(p, earlier); p.before != nil {
			if q := p.before; !p.hasVersion {
				p.version = q.version
				if !p.resend && !p.sameNodes(q) {
					p.version++
				}
			}
			if a.sentAgain(p) {
				continue
			}
			a.fill(p)
		}
		for _, k := range keys {
			// Titles such as "fix typo" recur for years; the newest matter.
			list := seen[k]
			seen[k] = append(list[max(0, len(list)-50):], p)
		}
	}
}

// traits are what versions of one series share: sender and title or thread.
func (a *assembler) traits(p *posting) []string {
	keys := []string{p.submitter + "|thread|" + a.root(p.head().key)}
	if p.cover != nil {
		keys = append(keys, p.submitter+"|cover|"+fold(p.cover.subject.Text))
	}
	for _, n := range sortedKeys(p.slots) {
		keys = append(keys, p.submitter+"|title|"+fold(p.slots[n].patch.Patch.Subject))
	}
	if id := p.supersedes(); id != "" {
		if q := a.of[a.byID[id]]; q != nil && q.live() != p {
			keys = append(keys, p.submitter+"|thread|"+a.root(id))
		}
	}
	return keys
}

// predecessor is the newest earlier posting of the same sender that p is a new
// version of: named by Supersedes, or with the same title or half of the patch
// titles, or, when p states its version, in the same thread.
func (a *assembler) predecessor(p *posting, earlier []*posting) *posting {
	var best *posting
	bestRank := 0
	tried := make(map[*posting]bool, len(earlier))
	for _, q := range earlier {
		if tried[q] || p.hasVersion && q.version > p.version {
			continue
		}
		tried[q] = true
		rank := 0
		sameThread := a.root(p.head().key) == a.root(q.head().key)
		switch {
		case p.supersedes() != "" && q.hasID(p.supersedes()):
			rank = 4
		case p.sameTitle(q) && (sameThread || p.hasVersion || p.resend || p.sharesFile(q)):
			rank = 3
		case p.hasVersion && sameThread && q.version != p.version:
			rank = 2
		}
		if rank == 0 || rank < bestRank {
			continue
		}
		// A version between the two is nearer than one before it, and of two
		// postings of one version the later.
		if rank > bestRank || q.version > best.version || q.version == best.version && byTime(q.head(), best.head()) > 0 {
			best, bestRank = q, rank
		}
	}
	return best
}

// sameNodes says that all patches are the same Mercurial changes: a resend.
func (p *posting) sameNodes(q *posting) bool {
	for n, s := range p.slots {
		node := s.patch.Patch.Node
		if node == "" || q.slots[n] == nil || q.slots[n].patch.Patch.Node != node {
			return false
		}
	}
	return len(p.slots) > 0
}

func (p *posting) supersedes() string {
	for _, r := range p.records {
		if r.hints.Supersedes != "" {
			return r.hints.Supersedes
		}
	}
	return ""
}

func (p *posting) hasID(id string) bool {
	return slices.ContainsFunc(p.records, func(r *record) bool { return r.id == id })
}

// sameTitle compares covers' titles, or else patches'.
func (p *posting) sameTitle(q *posting) bool {
	if p.cover != nil && q.cover != nil && fold(p.cover.subject.Text) == fold(q.cover.subject.Text) {
		return true
	}
	have := make(map[string]bool, len(q.slots))
	for _, s := range q.slots {
		have[fold(s.patch.Patch.Subject)] = true
	}
	same := 0
	for _, s := range p.slots {
		if t := fold(s.patch.Patch.Subject); t != "" && have[t] {
			same++
		}
	}
	return same > 0 && 2*same >= min(len(p.slots), len(q.slots))
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

func (p *posting) sharesFile(q *posting) bool {
	have := make(map[string]bool)
	for _, s := range q.slots {
		for _, f := range s.patch.Patch.Files {
			have[f] = true
		}
	}
	for _, s := range p.slots {
		if slices.ContainsFunc(s.patch.Patch.Files, func(f string) bool { return have[f] }) {
			return true
		}
	}
	return false
}

// sentAgain drops a part of a series that was sent once more, unchanged.
func (a *assembler) sentAgain(p *posting) bool {
	q := p.before
	if p.version != q.version || p.total != q.total || p.cover != nil || len(p.slots) >= p.total || len(p.slots) == 0 {
		return false
	}
	for n, s := range p.slots {
		if q.slots[n] == nil || q.slots[n].patch.Patch.DiffSHA256 != s.patch.Patch.DiffSHA256 {
			return false
		}
	}
	for _, r := range p.records {
		r.skip = "sent again, unchanged; the first copy is used"
	}
	p.merged = q
	return true
}

// nearest is the nearest mail of a posting that r answers, directly or through
// what others said of it; nil if it answers none.
func (r *record) nearest(q *posting) *record {
	for _, id := range r.parents {
		for _, s := range q.slots { // some may be of an older version
			if s.from.id == id {
				return s.from
			}
		}
		if i := slices.IndexFunc(q.records, func(o *record) bool { return o.id == id }); i >= 0 {
			return q.records[i]
		}
	}
	return nil
}

// fill completes [PATCH v2 3/7] in reply to 3/7, or to a review of that: the other
// patches are those of the version before.
func (a *assembler) fill(p *posting) {
	q := p.before
	if p.cover != nil || p.lone || p.total != q.total || p.version <= q.version || len(p.slots) >= p.total {
		return
	}
	for n, s := range p.slots {
		old := q.slots[n]
		if old == nil || old.from.id == "" || s.from.nearest(q) != old.from {
			return
		}
	}
	p.lead = p.head()
	p.filled = true
	for n := 1; n <= p.total; n++ {
		if p.slots[n] == nil && q.slots[n] != nil {
			p.slots[n] = q.slots[n]
			p.notes = append(p.notes, fmt.Sprintf("patch %d is that of version %d", n, q.version))
		}
	}
}

// build makes the series out of the posting.
func (p *posting) build() {
	head := p.head()
	s := mbox.Series{
		MessageID: head.id, Version: p.version, Total: p.total,
		Tags: []string{}, Missing: []int{}, Lists: []string{}, Patches: make([]mbox.Patch, 0, len(p.slots)), Notes: p.notes,
		Author: head.author, Date: head.date,
	}
	tags := head.subject.Tags
	s.Subject = head.subject.Text
	if p.cover != nil {
		s.Cover = &mbox.Cover{MessageID: p.cover.id, Subject: p.cover.subject.Text, Body: p.cover.text}
	}
	for _, n := range sortedKeys(p.slots) {
		slot := p.slots[n]
		one := slot.patch.Patch
		one.N = n
		if len(s.Patches) == 0 && p.cover == nil {
			s.Author, s.Subject, tags = one.Author, one.Subject, slot.patch.Subject.Tags
			if s.Date.IsZero() {
				s.Date = one.Date
			}
		}
		s.Patches = append(s.Patches, one)
		if p.total == 0 { // [PATCH 3/n]
			s.Total = n
		}
	}
	s.Tags = append(s.Tags, tags...)
	for n := 1; n <= s.Total; n++ {
		if p.slots[n] != nil {
			s.Received++
		} else {
			s.Missing = append(s.Missing, n)
		}
	}
	s.Complete = len(s.Missing) == 0
	if p.before != nil && p.before.head().id != "" {
		id := p.before.head().id
		s.Supersedes = &id
	} else if id := p.supersedes(); id != "" {
		s.Supersedes = &id
	}
	p.addHints(&s)
	if first := p.slots[1]; s.Base == nil && first != nil && first.patch.Patch.Parent != "" {
		s.Base = &mbox.Base{Commit: first.patch.Patch.Parent, How: mbox.HowParentNode, Reason: "Mercurial's parent of the first patch"}
	}
	p.series = s
}

// addHints takes in what the mails say of the base; the cover speaks first, then
// the patches in order.
func (p *posting) addHints(s *mbox.Series) {
	var order []*record
	if p.cover != nil {
		order = append(order, p.cover)
	}
	for _, n := range sortedKeys(p.slots) {
		if r := p.slots[n].from; !slices.Contains(order, r) {
			order = append(order, r)
		}
	}
	for _, r := range order {
		s.Lists = union(s.Lists, r.lists)
		if s.Base == nil && r.hints.BaseCommit != "" {
			s.Base = &mbox.Base{Commit: r.hints.BaseCommit, How: mbox.HowBaseCommit, Reason: "the mail says base-commit"}
		}
		for _, pre := range r.hints.Prerequisites {
			if !slices.Contains(s.Prerequisites, pre) {
				s.Prerequisites = append(s.Prerequisites, pre)
			}
		}
	}
}
