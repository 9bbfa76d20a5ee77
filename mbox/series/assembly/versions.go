package assembly

import (
	"fmt"
	"slices"

	"patchbench/mbox/series/keep"
)

// earlier is a posting that a later one may have something in common with, and
// the one before it in the list of those that have the same.
type earlier struct{ posting, before uint32 }

// versions finds for each posting the one that it replaces, numbers those that
// repeat an earlier one without saying so, and completes a reroll of single
// patches from the version before.
func (a *assembler) versions() {
	var nodes keep.List[earlier]
	seen := make(map[uint64]uint32, len(a.all)) // the newest node with a trait
	var keys []uint64
	var list []*posting
	tried := make(map[uint32]bool)
	for _, at := range a.all {
		p := a.posting(at)
		keys = a.traits(keys[:0], p)
		clear(tried)
		list = list[:0]
		for _, k := range keys {
			from := len(list)
			// Titles such as "fix typo" recur for years; the newest matter.
			for i, n := 0, seen[k]; n > 0 && i <= 50; i++ {
				e := nodes.At(n)
				if !tried[e.posting] {
					tried[e.posting] = true
					list = append(list, a.posting(e.posting))
				}
				n = e.before
			}
			slices.Reverse(list[from:])
		}
		if q := a.predecessor(p, list); q != nil {
			p.before = q.self
			if !p.hasVersion {
				p.version = q.version
				if !p.resend && !a.sameNodes(p, q) {
					p.version++
				}
			}
			if a.sentAgain(p, q) {
				continue
			}
			a.fill(p, q)
		}
		for _, k := range keys {
			seen[k] = nodes.Add(earlier{at, seen[k]})
		}
	}
}

// traits are what versions of one series share: sender and title or thread.
func (a *assembler) traits(keys []uint64, p *posting) []uint64 {
	const thread, cover, title = 1, 2, 3
	add := func(kind int, what uint64) {
		keys = append(keys, keep.Mix(uint64(p.submitter), uint64(kind), what))
	}
	add(thread, uint64(a.root(a.head(p).key)))
	if p.cover > 0 {
		add(cover, a.title(p.cover))
	}
	for _, s := range p.slots {
		add(title, a.found.At(s.found).title)
	}
	if id := a.supersedes(p); id > 0 {
		if at := a.byID[id]; at > 0 {
			if q := a.postingOf(a.record(at)); q != nil && q != p {
				add(thread, uint64(a.root(id)))
			}
		}
	}
	return keys
}

// predecessor is the newest earlier posting of the same sender that p is a new
// version of: named by Supersedes, or with the same title or half of the patch
// titles, or, when p states its version, in the same thread.
func (a *assembler) predecessor(p *posting, candidates []*posting) *posting {
	var best *posting
	bestRank := 0
	named := a.supersedes(p)
	for _, q := range candidates {
		if p.hasVersion && q.version > p.version {
			continue
		}
		rank := 0
		sameThread := a.root(a.head(p).key) == a.root(a.head(q).key)
		switch {
		case named > 0 && a.hasID(q, named):
			rank = 4
		case a.sameTitle(p, q) && (sameThread || p.hasVersion || p.resend || a.sharesFile(p, q)):
			rank = 3
		case p.hasVersion && sameThread && q.version != p.version:
			rank = 2
		}
		if rank == 0 || rank < bestRank {
			continue
		}
		// A version between the two is nearer than one before it, and of two
		// postings of one version the later.
		if rank > bestRank || q.version > best.version || q.version == best.version && a.byTime(a.head(q), a.head(best)) > 0 {
			best, bestRank = q, rank
		}
	}
	return best
}

// sameNodes says that all patches are the same Mercurial changes: a resend.
func (a *assembler) sameNodes(p, q *posting) bool {
	for _, s := range p.slots {
		node, old := a.found.At(s.found).node, q.slot(s.n)
		if node == 0 || old == 0 || a.found.At(old).node != node {
			return false
		}
	}
	return len(p.slots) > 0
}

// supersedes is the id that a mail of the posting says it replaces, 0 if none does.
func (p *Pool) supersedes(q *posting) uint32 {
	if len(p.replace) == 0 {
		return 0
	}
	for r := range p.recordsOf(q) {
		if id := p.replace[r.seq]; id > 0 {
			return id
		}
	}
	return 0
}

func (p *Pool) hasID(q *posting, id uint32) bool {
	for r := range p.recordsOf(q) {
		if r.hasID && r.key == id {
			return true
		}
	}
	return false
}

// sameTitle compares covers' titles, or else patches'.
func (a *assembler) sameTitle(p, q *posting) bool {
	if p.cover > 0 && q.cover > 0 && a.title(p.cover) == a.title(q.cover) {
		return true
	}
	same := 0
	for _, s := range p.slots {
		t := a.found.At(s.found).title
		if t == 0 {
			continue
		}
		for _, o := range q.slots {
			if a.found.At(o.found).title == t {
				same++
				break
			}
		}
	}
	return same > 0 && 2*same >= min(len(p.slots), len(q.slots))
}

// sharesFile says that the patches of both touch a file.
func (a *assembler) sharesFile(p, q *posting) bool {
	have := make(map[uint32]bool)
	for _, s := range q.slots {
		for f := range a.linked(a.found.At(s.found).files) {
			have[f] = true
		}
	}
	for _, s := range p.slots {
		for f := range a.linked(a.found.At(s.found).files) {
			if have[f] {
				return true
			}
		}
	}
	return false
}

// sentAgain drops a part of a series that was sent once more, unchanged.
func (a *assembler) sentAgain(p, q *posting) bool {
	if p.version != q.version || p.total != q.total || p.cover > 0 || len(p.slots) >= int(p.total) || len(p.slots) == 0 {
		return false
	}
	for _, s := range p.slots {
		if old := q.slot(s.n); old == 0 || a.found.At(old).digest != a.found.At(s.found).digest {
			return false
		}
	}
	for r := range a.recordsOf(p) {
		a.because(r, "sent again, unchanged; the first copy is used")
		r.posting = q.self
	}
	p.gone = true
	return true
}

// nearest is the nearest mail of a posting that r answers, directly or through
// what others said of it; nil if it answers none.
func (a *assembler) nearest(r *record, q *posting) *record {
	for id := range a.linked(r.parents) {
		for _, s := range q.slots { // some may be of an older version
			if from := a.source(s.found); from.hasID && from.key == id {
				return from
			}
		}
		for o := range a.recordsOf(q) {
			if o.hasID && o.key == id {
				return o
			}
		}
	}
	return nil
}

// fill completes [PATCH v2 3/7] in reply to 3/7, or to a review of that: the other
// patches are those of the version before.
func (a *assembler) fill(p, q *posting) {
	if p.cover > 0 || p.lone || p.total != q.total || p.version <= q.version || len(p.slots) >= int(p.total) {
		return
	}
	for _, s := range p.slots {
		old := q.slot(s.n)
		if old == 0 || !a.source(old).hasID || a.nearest(a.source(s.found), q) != a.source(old) {
			return
		}
	}
	p.lead = a.head(p).seq
	p.filled = true
	for n := uint32(1); n <= p.total; n++ {
		if old := q.slot(n); p.slot(n) == 0 && old > 0 {
			p.put(n, old)
			a.notes[p.self] = append(a.notes[p.self], fmt.Sprintf("patch %d is that of version %d", n, q.version))
		}
	}
}
