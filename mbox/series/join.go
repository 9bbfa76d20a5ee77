package series

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
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
	if p.cover != nil && q.cover != nil {
		return false
	}
	for n := range q.slots {
		if p.slots[n] != nil {
			return false
		}
	}
	return true
}

// absorb puts q into p.
func (p *posting) absorb(q *posting) {
	q.merged = p
	p.records = append(p.records, q.records...)
	if q.cover != nil {
		p.cover, p.submitter = q.cover, q.submitter
	}
	for n, s := range q.slots {
		p.slots[n] = s
	}
	if q.hasVersion {
		p.version, p.hasVersion = q.version, true
	}
	p.resend = p.resend && q.resend
	if q.first.Before(p.first) {
		p.first = q.first
	}
	if q.last.After(p.last) {
		p.last = q.last
	}
	q.records, q.slots = nil, nil // an archive has many of these
}

// joinByThread puts patches to the cover or patch that they answer, and those
// that answer the same mail together. The first call joins mails of one sender,
// the second also those that one run of a tool sent for several.
func (a *assembler) joinByThread(sameSender bool) {
	siblings := make(map[string]*record)
	for _, r := range a.records {
		p := a.of[r]
		if p == nil || p.lone {
			continue
		}
		p = p.live()
		joined := false
		for _, id := range r.parents {
			up := a.byID[id]
			if up == nil || up == r || a.of[up] == nil {
				continue
			}
			q := a.of[up].live()
			if p == q {
				joined = true
				break
			}
			if !a.oneSender(r, up, sameSender) {
				continue
			}
			if q.fits(p) {
				q.absorb(p)
				joined = true
				break
			}
			if p.total == q.total && p.version == q.version {
				break // its place is taken: another posting in the same thread
			}
		}
		if joined || len(r.parents) == 0 {
			continue
		}
		key := fmt.Sprintf("%s %d %d.%d", r.parents[0], p.total, p.version, p.minor)
		if sameSender {
			key += r.submitter
		}
		if other := siblings[key]; other != nil && a.oneSender(r, other, sameSender) {
			if q, p := a.of[other].live(), p.live(); q.fits(p) {
				q.absorb(p)
				continue
			}
		}
		siblings[key] = r
	}
}

// oneSender says that two mails came from one sender, or from one run of a tool.
func (a *assembler) oneSender(x, y *record, same bool) bool {
	return x.submitter == y.submitter || !same && oneRun(x.id, y.id)
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
	domain := len(a) - max(strings.LastIndexByte(a, '@'), 0)
	return j >= domain+10
}

// joinFiles puts files without Message-ID together, which git format-patch
// writes under each patch's author and date, in the order in which they came.
func (a *assembler) joinFiles() {
	var files []*posting
	for _, r := range a.records {
		if p := a.of[r]; p != nil && r.id == "" {
			files = append(files, p.live())
		}
	}
	slices.SortStableFunc(files, func(p, q *posting) int { return p.records[0].seq - q.records[0].seq })
	open := make(map[string]*posting)
	var export *posting
	for _, p := range files {
		if p.merged != nil {
			continue
		}
		if p.records[0].bare && p.lone {
			if export == nil {
				export = p
				continue
			}
			// The patches of hg export have no numbers but their order.
			for _, n := range sortedKeys(p.slots) {
				export.total++
				export.slots[export.total] = p.slots[n]
			}
			export.records = append(export.records, p.records...)
			p.merged = export
			continue
		}
		if p.lone {
			continue
		}
		key := fmt.Sprintf("%d %d.%d", p.total, p.version, p.minor)
		if q := open[key]; q != nil && q.fits(p) {
			q.absorb(p)
			continue
		}
		open[key] = p
	}
}

func sortedKeys(m map[int]*slot) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// joinByTime puts what no thread holds together by sender, total, version and
// time; each goes to the nearest before it that has room.
func (a *assembler) joinByTime() {
	groups := make(map[string][]*posting)
	for _, r := range a.records {
		p := a.of[r]
		if p == nil || p.merged != nil || p.lone || r.id == "" || p.records[0] != r {
			continue
		}
		key := fmt.Sprintf("%s %d %d.%d", p.submitter, p.total, p.version, p.minor)
		groups[key] = append(groups[key], p)
	}
	for _, group := range groups {
		slices.SortFunc(group, func(p, q *posting) int {
			return cmp.Or(p.first.Compare(q.first), byTime(p.head(), q.head()))
		})
		// Only those with room matter; a complete series may still lack its cover.
		var open, coverless []*posting
		for _, p := range group {
			candidates := &open
			if len(p.slots) == 0 {
				candidates = &coverless
			}
			if q := a.nearestInTime(*candidates, p); q != nil {
				q.absorb(p)
			} else {
				open = append(newest(open), p)
				if p.cover == nil {
					coverless = append(newest(coverless), p)
				}
			}
			full := func(q *posting) bool { return q.total > 0 && len(q.slots) >= q.total }
			open = slices.DeleteFunc(open, full)
			if len(p.slots) == 0 {
				coverless = slices.DeleteFunc(coverless, func(q *posting) bool { return q.cover != nil })
			}
		}
	}
}

// newest keeps the last of a long list: nobody has so many open at a time.
func newest(list []*posting) []*posting { return list[max(0, len(list)-100):] }

// nearestInTime gives the nearest of some postings before p that p can be a part
// of; nil if there is none.
func (a *assembler) nearestInTime(candidates []*posting, p *posting) *posting {
	for i := len(candidates) - 1; i >= 0; i-- {
		q := candidates[i]
		if p.first.Sub(q.first) > 7*24*time.Hour {
			break
		}
		gap := p.first.Sub(q.last)
		if !q.fits(p) || gap > 24*time.Hour {
			continue
		}
		// Patches that answer those of an earlier version, each in its own thread,
		// are sent in one go.
		apart := a.threaded(p) && a.threaded(q) && a.root(p.records[0].key) != a.root(q.records[0].key)
		if apart && gap > 20*time.Minute {
			continue
		}
		return q
	}
	return nil
}

func (a *assembler) threaded(p *posting) bool {
	return slices.ContainsFunc(p.records, func(r *record) bool { return len(r.parents) > 0 })
}

// coversOfLone gives a lone patch the mail that it answers as its cover, if that
// began the thread and is by the same sender.
func (a *assembler) coversOfLone() {
	for _, r := range a.records {
		p := a.of[r]
		if p == nil || !p.lone || p.cover != nil {
			continue
		}
		up, ok := a.parent(r)
		if !ok || a.of[up] != nil || up.submitter != r.submitter || up.subject.Reply ||
			len(up.parents) > 0 || len(up.patches) > 0 || up.subject.Pull || up.skip != "no diff in it" {
			continue
		}
		up.skip = ""
		p.cover = up
		p.records = append(p.records, up)
		a.of[up] = p
	}
}

// replacements put [PATCH v5.1 10/12] into version 5 in the place of 10/12.
func (a *assembler) replacements() {
	var minors []*posting
	for _, p := range a.all {
		if p.merged == nil && p.minor > 0 {
			minors = append(minors, p)
		}
	}
	slices.SortFunc(minors, func(p, q *posting) int { return cmp.Or(p.minor-q.minor, byTime(p.head(), q.head())) })
	for _, p := range minors {
		for _, q := range a.all {
			if q.merged != nil || q.minor != 0 || q.version != p.version || q.total != p.total ||
				q.submitter != p.submitter || a.root(q.head().key) != a.root(p.head().key) {
				continue
			}
			for _, n := range sortedKeys(p.slots) {
				if old := q.slots[n]; old != nil {
					old.from.skip = fmt.Sprintf("replaced by v%d.%d %d/%d", p.version, p.minor, n, p.total)
					q.records = slices.DeleteFunc(q.records, func(r *record) bool { return r == old.from })
				}
				q.slots[n] = p.slots[n]
				q.notes = append(q.notes, fmt.Sprintf("patch %d is that of v%d.%d", n, p.version, p.minor))
			}
			if p.cover != nil {
				if old := q.cover; old != nil {
					old.skip = fmt.Sprintf("replaced by v%d.%d 0/%d", p.version, p.minor, p.total)
					q.records = slices.DeleteFunc(q.records, func(r *record) bool { return r == old })
				}
				q.cover = p.cover
			}
			q.records = append(q.records, p.records...)
			p.merged = q
			break
		}
	}
}
