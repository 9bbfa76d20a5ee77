package assembly

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"patchbench/mbox/series/keep"
)

// fits says that q can be a part of p: no place is taken twice, and total and
// version agree. A patch may leave out the version that its cover has.
func (p *posting) fits(q *posting) bool {
	if p == q || p.lone || q.lone || p.total != q.total || p.minor != q.minor {
		return false
	}
	if p.version != q.version && (q.hasVersion || !p.hasVersion) {
		return false
	}
	if p.cover > 0 && q.cover > 0 {
		return false
	}
	for _, s := range q.slots {
		if p.slot(s.n) > 0 {
			return false
		}
	}
	return true
}

// absorb puts q into p, and frees q.
func (a *assembler) absorb(p, q *posting) {
	a.moveRecords(p, q)
	if q.cover > 0 {
		p.cover, p.submitter = q.cover, q.submitter
	}
	for _, s := range q.slots {
		p.put(s.n, s.found)
	}
	if q.hasVersion {
		p.version, p.hasVersion = q.version, true
	}
	p.resend = p.resend && q.resend
	p.first, p.last = min(p.first, q.first), max(p.last, q.last)
	a.free = append(a.free, q.self)
}

// moveRecords puts the records of q behind those of p.
func (a *assembler) moveRecords(p, q *posting) {
	for r := range a.recordsOf(q) {
		r.posting = p.self
		a.add(p, r)
	}
	q.records, q.tail, q.gone = 0, 0, true
}

// sentKey is the key of postings that can be parts of one.
func sentKey(group uint32, p *posting, sender uint32) uint64 {
	return keep.Mix(uint64(group), uint64(p.total), uint64(p.version)<<32|uint64(p.minor), uint64(sender))
}

// joinByThread puts patches to the cover or patch that they answer, and those
// that answer the same mail together. The first call joins mails of one sender,
// the second also those that one run of a tool sent for several.
func (a *assembler) joinByThread(sameSender bool) {
	siblings := make(map[uint64]uint32)
	for r := range a.eachRecord() {
		p := a.postingOf(r)
		if p == nil || p.lone {
			continue
		}
		if a.joinParent(r, p, sameSender) || !r.threaded() {
			continue
		}
		p = a.postingOf(r)
		sender := uint32(0)
		if sameSender {
			sender = r.submitter
		}
		key := sentKey(*a.links.At(r.parents + 1), p, sender)
		if at := siblings[key]; at > 0 && a.oneSender(r, a.record(at), sameSender) {
			if q := a.postingOf(a.record(at)); q.fits(p) {
				a.absorb(q, p)
				continue
			}
		}
		siblings[key] = r.seq
	}
}

// joinParent puts the posting of r to the nearest that r answers and that has room
// for it; false if there is none.
func (a *assembler) joinParent(r *record, p *posting, sameSender bool) bool {
	for id := range a.linked(r.parents) {
		up := a.byID[id]
		if up == 0 || up == r.seq {
			continue
		}
		q := a.postingOf(a.record(up))
		switch {
		case q == nil:
			continue
		case p == q:
			return true
		case !a.oneSender(r, a.record(up), sameSender):
			continue
		case q.fits(p):
			a.absorb(q, p)
			return true
		case p.total == q.total && p.version == q.version:
			return false // its place is taken: another posting in the same thread
		}
	}
	return false
}

// oneSender says that two mails came from one sender, or from one run of a tool.
func (a *assembler) oneSender(x, y *record, same bool) bool {
	return x.submitter == y.submitter || !same && oneRun(a.id(x), a.id(y))
}

// oneRun compares what tools put into Message-IDs for a whole run: a time and a
// process number in front, or a time and the sender behind.
func oneRun(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i >= 10 {
		return true
	}
	j := 0
	for j < len(a) && j < len(b) && a[len(a)-1-j] == b[len(b)-1-j] {
		j++
	}
	domain := len(a) - max(lastAt(a), 0)
	if j >= domain+10 {
		return true
	}
	// git format-patch takes the time anew for each patch.
	x, behind := stamp(a, len(a)-j)
	y, same := stamp(b, len(b)-j)
	return behind == same && len(behind) >= domain+5 && max(x, y)-min(x, y) <= longestRun
}

// longestRun is how many seconds one run of a tool may take.
const longestRun = 10 * minute

// stamp reads the Unix time in a Message-ID that stands around or before a place,
// and gives what stands behind it; "" if there is none.
func stamp(id string, at int) (seconds int64, behind string) {
	digit := func(i int) bool { return i >= 0 && i < len(id) && '0' <= id[i] && id[i] <= '9' }
	for digit(at) {
		at++
	}
	start := at
	for digit(start - 1) {
		start--
	}
	if at-start != 10 {
		return 0, ""
	}
	seconds, err := strconv.ParseInt(id[start:at], 10, 64)
	if err != nil {
		return 0, ""
	}
	return seconds, id[at:]
}

func lastAt(id string) int {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '@' {
			return i
		}
	}
	return -1
}

// joinFiles puts files without Message-ID together, which git format-patch
// writes under each patch's author and date, in the order in which they came.
func (a *assembler) joinFiles() {
	var files []*posting
	for r := range a.eachRecord() {
		if p := a.postingOf(r); p != nil && !r.hasID {
			files = append(files, p)
		}
	}
	slices.SortFunc(files, func(p, q *posting) int { return order(p.records, q.records) })
	files = slices.Compact(files)
	open := make(map[uint64]*posting)
	var export *posting
	for _, p := range files {
		if a.record(p.records).bare && p.lone {
			if export == nil {
				export = p
				continue
			}
			// The patches of hg export have no numbers but their order.
			for _, s := range p.slots {
				export.total++
				export.put(export.total, s.found)
			}
			a.moveRecords(export, p)
			continue
		}
		if p.lone {
			continue
		}
		key := sentKey(0, p, 0)
		if q := open[key]; q != nil && q.fits(p) {
			a.absorb(q, p)
			continue
		}
		open[key] = p
	}
}

// joinByTime puts what no thread holds together by sender, total, version and
// time; each goes to the nearest before it that has room.
func (a *assembler) joinByTime() {
	var list []*posting
	for _, at := range a.all {
		if p := a.posting(at); !p.gone && !p.lone && a.record(p.records).hasID {
			list = append(list, p)
		}
	}
	group := func(p, q *posting) int {
		return cmp.Or(order(p.submitter, q.submitter), order(p.total, q.total), order(p.version, q.version), order(p.minor, q.minor))
	}
	slices.SortFunc(list, func(p, q *posting) int {
		return cmp.Or(group(p, q), order(p.first, q.first), a.byTime(a.head(p), a.head(q)))
	})
	for len(list) > 0 {
		n := 1
		for n < len(list) && group(list[0], list[n]) == 0 {
			n++
		}
		a.joinGroup(list[:n:n])
		list = list[n:]
	}
}

// joinGroup joins postings of one sender, total and version, which are in order of
// time.
func (a *assembler) joinGroup(group []*posting) {
	// Only those with room matter; a complete series may still lack its cover.
	var open, coverless []*posting
	for _, p := range group {
		candidates := &open
		if len(p.slots) == 0 {
			candidates = &coverless
		}
		if q := a.nearestInTime(*candidates, p); q != nil {
			a.absorb(q, p)
		} else {
			open = append(newest(open), p)
			if p.cover == 0 {
				coverless = append(newest(coverless), p)
			}
		}
		open = slices.DeleteFunc(open, func(q *posting) bool { return q.total > 0 && len(q.slots) >= int(q.total) })
		coverless = slices.DeleteFunc(coverless, func(q *posting) bool { return q.cover > 0 })
	}
}

// newest keeps the last of a long list: nobody has so many open at a time.
func newest(list []*posting) []*posting { return list[max(0, len(list)-100):] }

const (
	minute = 60
	day    = 24 * 60 * minute
)

// nearestInTime gives the nearest of some postings before p that p can be a part
// of; nil if there is none.
func (a *assembler) nearestInTime(candidates []*posting, p *posting) *posting {
	for i := len(candidates) - 1; i >= 0; i-- {
		q := candidates[i]
		if p.first-q.first > 7*day {
			break
		}
		gap := p.first - q.last
		if !q.fits(p) || gap > day {
			continue
		}
		// Patches that answer those of an earlier version, each in its own thread,
		// are sent in one go.
		apart := a.threaded(p) && a.threaded(q) && a.root(a.record(p.records).key) != a.root(a.record(q.records).key)
		if apart && gap > 20*minute {
			continue
		}
		return q
	}
	return nil
}

func (a *assembler) threaded(p *posting) bool {
	for r := range a.recordsOf(p) {
		if r.threaded() {
			return true
		}
	}
	return false
}

// coversOfLone gives a lone patch the mail that it answers as its cover, if that
// began the thread and is by the same sender.
func (a *assembler) coversOfLone() {
	reason := a.reasonOf[noDiff]
	for r := range a.eachRecord() {
		p := a.postingOf(r)
		if p == nil || !p.lone || p.cover > 0 {
			continue
		}
		up := a.parent(r)
		if up == nil || up.role != bystander || up.submitter != r.submitter || up.subject.reply ||
			up.threaded() || up.count > 0 || up.subject.pull || up.skip != reason {
			continue
		}
		up.skip, up.role, up.posting = 0, coverLetter, p.self
		p.cover = up.seq
		a.add(p, up)
	}
}

// replacements put [PATCH v5.1 10/12] into version 5 in the place of 10/12.
func (a *assembler) replacements() {
	var minors []*posting
	wanted := make(map[uint64][]*posting) // what they may go into, in order of time
	key := func(p *posting) uint64 {
		return keep.Mix(uint64(p.version), uint64(p.total), uint64(p.submitter), uint64(a.root(a.head(p).key)))
	}
	for _, at := range a.all {
		if p := a.posting(at); !p.gone && p.minor > 0 {
			minors = append(minors, p)
			wanted[key(p)] = nil
		}
	}
	if len(minors) == 0 {
		return
	}
	for _, at := range a.all {
		if q := a.posting(at); !q.gone && q.minor == 0 {
			if list, ok := wanted[key(q)]; ok {
				wanted[key(q)] = append(list, q)
			}
		}
	}
	slices.SortFunc(minors, func(p, q *posting) int {
		return cmp.Or(order(p.minor, q.minor), a.byTime(a.head(p), a.head(q)))
	})
	for _, p := range minors {
		if list := wanted[key(p)]; len(list) > 0 {
			a.replaceIn(list[0], p)
		}
	}
}

// replaceIn puts what is in p into q in the place of what is there.
func (a *assembler) replaceIn(q, p *posting) {
	for _, s := range p.slots {
		if old := q.slot(s.n); old > 0 {
			r := a.source(old)
			a.because(r, fmt.Sprintf("replaced by v%d.%d %d/%d", p.version, p.minor, s.n, p.total))
			a.remove(q, r)
		}
		q.put(s.n, s.found)
		a.notes[q.self] = append(a.notes[q.self], fmt.Sprintf("patch %d is that of v%d.%d", s.n, p.version, p.minor))
	}
	if p.cover > 0 {
		if q.cover > 0 {
			old := a.record(q.cover)
			a.because(old, fmt.Sprintf("replaced by v%d.%d 0/%d", p.version, p.minor, p.total))
			a.remove(q, old)
		}
		q.cover = p.cover
	}
	a.moveRecords(q, p)
}
