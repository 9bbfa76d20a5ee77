package assembly

import (
	"fmt"
	"slices"

	"patchbench/mbox/series/keep"
)

// posting is one sending of a series: a version, with or without its cover. Like
// a record it names others by their numbers.
type posting struct {
	self       uint32
	records    uint32 // the first of its records, which began it
	tail       uint32 // the last
	cover      uint32
	lead       uint32 // head before patches of another version came in
	before     uint32 // the version that this one replaces
	submitter  uint32
	total      uint32 // as the subjects say; 0 if they do not
	version    uint32
	minor      uint32
	hasVersion bool
	lone       bool
	resend     bool
	filled     bool   // patches of another version came in
	gone       bool   // into another posting
	first      int64  // date of the earliest mail, in Unix seconds
	last       int64  // of the latest
	slots      []slot // by number
}

// slot is a patch in its place, from 1.
type slot struct{ n, found uint32 }

// slot gives the patch with that number, 0 if there is none.
func (p *posting) slot(n uint32) uint32 {
	for _, s := range p.slots {
		if s.n == n {
			return s.found
		}
	}
	return 0
}

// put puts a patch in a place, in which there may be another.
func (p *posting) put(n, found uint32) {
	i, taken := slices.BinarySearchFunc(p.slots, n, func(s slot, n uint32) int { return order(s.n, n) })
	if taken {
		p.slots[i].found = found
		return
	}
	p.slots = slices.Insert(p.slots, i, slot{n, found})
}

// assembler holds the tables of one run of assemble.
type assembler struct {
	*Pool
	limit    int      // of the patches of a series
	order    []uint32 // all records by time
	byID     []uint32 // the record with a name as its id
	threads  []uint32 // union-find over names
	made     keep.List[posting]
	free     []uint32 // postings that can be used again
	all      []uint32 // postings, in order of time
	reasons  []string
	reasonOf map[string]uint32
	notes    map[uint32][]string // of postings
}

// Reasons that speak of another record.
const (
	skipDouble = iota + 1
	skipOtherContent
	firstReason
)

// Assemble makes series of all messages so far; limit is of the patches of one. The
// result depends on the messages alone and not on their order, except for files
// without a Message-ID, which count in theirs. It is good until the next Add or
// Assemble.
func (p *Pool) Assemble(limit int) *Result {
	names := p.names.Len() + 1
	a := &assembler{
		Pool: p, limit: limit, order: make([]uint32, p.records.Len()), byID: make([]uint32, names), threads: make([]uint32, names),
		reasons: make([]string, firstReason), reasonOf: make(map[string]uint32), notes: make(map[uint32][]string),
	}
	for i := range a.order {
		a.order[i] = uint32(i) + 1
		r := a.record(a.order[i])
		r.role, r.skip, r.posting, r.next, r.doubles = bystander, 0, 0, 0, 0
	}
	slices.SortFunc(a.order, func(x, y uint32) int { return a.byTime(a.record(x), a.record(y)) })
	a.dropDoubles()
	clear(a.byID)
	for r := range a.eachRecord() {
		if r.skip == 0 && r.hasID {
			a.byID[r.key] = r.seq
		}
		a.thread(r)
	}
	a.classify()
	a.joinByThread(true)
	a.joinByThread(false)
	for r := range a.eachRecord() {
		if p := a.postingOf(r); p != nil && p.records == r.seq {
			a.all = append(a.all, p.self)
		}
	}
	a.joinFiles()
	a.joinByTime()
	a.coversOfLone()
	a.replacements()
	a.dropGone()
	slices.SortFunc(a.all, func(p, q uint32) int { return a.byTime(a.head(a.posting(p)), a.head(a.posting(q))) })
	a.versions()
	a.dropGone()
	return &Result{pool: p, made: &a.made, postings: a.all, order: a.order, reasons: a.reasons, notes: a.notes}
}

func (a *assembler) posting(at uint32) *posting { return a.made.At(at) }

func (a *assembler) dropGone() {
	a.all = slices.DeleteFunc(a.all, func(p uint32) bool { return a.posting(p).gone })
}

// eachRecord goes through all records by time.
func (a *assembler) eachRecord() func(yield func(*record) bool) {
	return func(yield func(*record) bool) {
		for _, at := range a.order {
			if !yield(a.record(at)) {
				return
			}
		}
	}
}

// recordsOf goes through the records of a posting.
func (p *Pool) recordsOf(q *posting) func(yield func(*record) bool) {
	return func(yield func(*record) bool) {
		for at := q.records; at > 0; {
			r := p.record(at)
			at = r.next
			if !yield(r) {
				return
			}
		}
	}
}

// add puts a record behind the others of a posting.
func (a *assembler) add(p *posting, r *record) {
	r.next = 0
	if p.records == 0 {
		p.records = r.seq
	} else {
		a.record(p.tail).next = r.seq
	}
	p.tail = r.seq
}

// remove takes a record out of a posting.
func (a *assembler) remove(p *posting, r *record) {
	before := uint32(0)
	for o := range a.recordsOf(p) {
		if o != r {
			before = o.seq
			continue
		}
		if before == 0 {
			p.records = r.next
		} else {
			a.record(before).next = r.next
		}
		if p.tail == r.seq {
			p.tail = before
		}
		r.next = 0
		return
	}
}

// because says why a record is no part of a series.
func (a *assembler) because(r *record, reason string) {
	n, ok := a.reasonOf[reason]
	if !ok {
		n = uint32(len(a.reasons))
		a.reasons = append(a.reasons, reason)
		a.reasonOf[reason] = n
	}
	r.skip = n
}

// dropDoubles keeps one of each message that came more than once: the smallest,
// to which lists have added least.
func (a *assembler) dropDoubles() {
	byKey := a.byID
	bySent := make(map[uint64]uint32)
	for r := range a.eachRecord() {
		sent := r.sent()
		find := func(i int) uint32 {
			if i == 0 {
				return byKey[r.key]
			}
			return bySent[sent]
		}
		set := func(i int, to *record) {
			if i == 0 {
				byKey[r.key] = to.seq
			} else if sent != 0 {
				bySent[sent] = to.seq
			}
		}
		for i := range 2 {
			if i == 1 && sent == 0 {
				break
			}
			at := find(i)
			if at == 0 || at == r.seq {
				set(i, r)
				continue
			}
			double, old := r, a.record(at)
			if a.digest(r) != a.digest(old) {
				// Which of them the others mean cannot be known.
				r.skip, r.posting = skipOtherContent, old.seq
				break
			}
			if double.bytes < old.bytes {
				double, old = old, double
			}
			double.skip, double.posting = skipDouble, old.seq
			double.next, old.doubles = old.doubles, double.seq
			set(0, old)
			set(1, old)
			break
		}
	}
}

// thread joins a record with the ids it refers to.
func (a *assembler) thread(r *record) {
	for p := range a.linked(r.parents) {
		if x, y := a.root(r.key), a.root(p); x != y {
			a.threads[max(x, y)] = min(x, y)
		}
	}
}

// root is the same for all names of a thread.
func (a *assembler) root(name uint32) uint32 {
	for {
		up := a.threads[name]
		if up == 0 {
			return name
		}
		if next := a.threads[up]; next > 0 {
			a.threads[name] = next
		}
		name = up
	}
}

// classify finds the records that are patches or covers, and gives every other its
// reason.
func (a *assembler) classify() {
	for r := range a.eachRecord() {
		if r.skip != 0 {
			continue
		}
		s := r.subject
		parent := a.parent(r)
		switch {
		case s.pull && !s.numbered:
			a.because(r, "a pull request")
		case r.count == 0 && s.numbered && s.n == 0 && !s.reply && !a.repliesToOwn(r, parent):
			r.role = coverLetter
		case r.count == 0 && (s.reply || r.threaded()):
			a.because(r, "a reply without a patch")
		case r.count == 0:
			a.because(r, noDiff)
		case s.reply && parent != nil && !a.patch(r, 0).marked:
			a.because(r, "a reply with a diff that is a comment: no scissors, From, Subject or [PATCH] line before it")
		case s.numbered && s.n == 0 && r.count == 1 && !a.patch(r, 0).cut && a.patch(r, 0).number() == 0:
			// A cover that shows a diff against the version before.
			r.role = coverLetter
		case int(r.count) > a.limit:
			a.because(r, fmt.Sprintf("mail with %d patches, limit %d", r.count, a.limit))
		default:
			r.role = onePatch
		}
		if r.role == bystander {
			continue
		}
		if r.role == onePatch {
			s = a.patch(r, 0).subject
		}
		if s.numbered && int(s.total) > a.limit {
			r.role = bystander
			a.because(r, fmt.Sprintf("series of %d patches, limit %d", s.total, a.limit))
		}
	}
}

const noDiff = "no diff in it"

// number is the patch's as its subject says, 0 if it says none.
func (f *found) number() uint32 {
	if !f.subject.numbered {
		return 0
	}
	return uint32(f.subject.n)
}

// parent gives the nearest known mail that r refers to, nil if there is none.
func (a *assembler) parent(r *record) *record {
	for id := range a.linked(r.parents) {
		if at := a.byID[id]; at > 0 && at != r.seq {
			return a.record(at)
		}
	}
	return nil
}

// repliesToOwn says that a mail without Re: answers a cover with the same subject:
// a follow-up, no second cover.
func (a *assembler) repliesToOwn(r, parent *record) bool {
	return parent != nil && parent.submitter != r.submitter && parent.count == 0 && parent.subject.alike(r.subject) && parent.hash == r.hash
}

// alike says that two subjects are the same but for their texts.
func (s subject) alike(o subject) bool {
	return s.version == o.version && s.minor == o.minor && s.n == o.n && s.total == o.total && s.resend == o.resend
}

// postingOf gives the posting that a record is in, nil if it is in none. It is
// made when it is first asked for: joined at once, most of them soon are free
// again.
func (a *assembler) postingOf(r *record) *posting {
	if r.role == bystander {
		return nil
	}
	if r.posting == 0 {
		a.begin(r)
	}
	return a.posting(r.posting)
}

// begin makes the posting of a record alone.
func (a *assembler) begin(r *record) {
	if n := len(a.free); n > 0 {
		r.posting = a.free[n-1]
		a.free = a.free[:n-1]
	} else {
		r.posting = a.made.Add(posting{})
	}
	p := a.posting(r.posting)
	*p = posting{self: r.posting, submitter: r.submitter, first: r.when, last: r.when, slots: p.slots[:0]}
	a.add(p, r)
	s := r.subject
	if r.role == coverLetter {
		p.cover = r.seq
	} else {
		s = a.patch(r, 0).subject
		p.lone = !s.numbered
		p.slots = append(p.slots, slot{max(a.patch(r, 0).number(), 1), r.patches})
	}
	p.version, p.minor, p.hasVersion, p.resend = uint32(s.version), uint32(s.minor), s.hasVersion, s.resend
	p.total = 1
	if s.numbered {
		p.total = uint32(s.total)
	}
	if r.role == onePatch && r.count > 1 {
		a.several(p, r)
	}
}

// several puts the patches of one mail into its posting: attached ones count by
// their own numbers if they have some, else in their order.
func (a *assembler) several(p *posting, r *record) {
	p.slots, p.lone = p.slots[:0], false
	numbered := true
	for i := range r.count {
		s := a.patch(r, i).subject
		numbered = numbered && s.numbered && s.n > 0 && s.n <= s.total
	}
	for i := range r.count {
		s := a.patch(r, i).subject
		n := i + 1
		if numbered {
			n = uint32(s.n)
			p.total = max(p.total, uint32(s.total))
		}
		if p.slot(n) == 0 {
			p.put(n, r.patches+i)
		}
	}
	if !numbered {
		p.total = r.count
	}
}

// head is the mail that stands for the posting: the cover, else its first patch.
func (p *Pool) head(q *posting) *record {
	switch {
	case q.cover > 0:
		return p.record(q.cover)
	case q.lead > 0:
		return p.record(q.lead)
	}
	return p.source(q.slots[0].found)
}

// source is the record that a patch is from.
func (p *Pool) source(at uint32) *record { return p.record(p.found.At(at).from) }
