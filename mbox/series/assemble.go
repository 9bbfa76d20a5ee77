package series

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/mbox"
)

// state is what a set of records makes up.
type state struct {
	postings []*posting
	skipped  []mbox.Skipped
}

// posting is one sending of a series: a version, with or without its cover.
type posting struct {
	records    []*record
	cover      *record
	slots      map[int]*slot // by number, from 1
	version    int
	minor      int
	hasVersion bool
	total      int // as the subjects say; 0 if they do not
	lone       bool
	resend     bool
	submitter  string
	first      time.Time // date of the earliest mail
	last       time.Time
	merged     *posting // this one went into that one

	before *posting // the version that this one replaces
	lead   *record  // head before patches of another version came in
	notes  []string
	series mbox.Series
}

// slot is one patch in its place.
type slot struct {
	from  *record
	patch *Found
}

// assembler holds the tables of one run of assemble.
type assembler struct {
	options Options
	records []*record
	byID    map[string]*record
	of      map[*record]*posting
	threads map[string]string // union-find over ids
	all     []*posting
}

// assemble makes postings of records. It depends on the records alone and not on
// their order, except for files without a Message-ID, which count in theirs.
func assemble(records []*record, o Options) *state {
	a := &assembler{options: o, byID: make(map[string]*record, len(records)), of: make(map[*record]*posting), threads: make(map[string]string, len(records))}
	a.records = slices.Clone(records)
	slices.SortFunc(a.records, byTime)
	for _, r := range a.records {
		r.skip = ""
	}
	a.dropDoubles()
	for _, r := range a.records {
		if r.skip == "" && r.id != "" {
			a.byID[r.id] = r
		}
		a.thread(r)
	}
	a.classify()
	a.joinByThread(true)
	a.joinByThread(false)
	a.joinFiles()
	a.joinByTime()
	a.coversOfLone()
	a.replacements()
	live := slices.DeleteFunc(a.all, func(p *posting) bool { return p.merged != nil })
	slices.SortFunc(live, func(p, q *posting) int { return byTime(p.head(), q.head()) })
	a.all = live
	a.versions()
	a.all = slices.DeleteFunc(a.all, func(p *posting) bool { return p.merged != nil })
	out := &state{postings: a.all}
	for _, p := range a.all {
		p.build()
	}
	for _, r := range a.records {
		if r.skip != "" {
			out.skipped = append(out.skipped, mbox.Skipped{MessageID: r.id, Subject: r.raw, Reason: r.skip})
		}
	}
	return out
}

// byTime orders records by date, then by what does not depend on arrival.
func byTime(a, b *record) int {
	if a.id == "" && b.id == "" {
		return a.seq - b.seq
	}
	return cmp.Or(a.date.Compare(b.date), strings.Compare(a.key, b.key), a.bytes-b.bytes, strings.Compare(a.raw, b.raw))
}

// dropDoubles keeps one of each message that came more than once: the smallest,
// to which lists have added least.
func (a *assembler) dropDoubles() {
	kept := make(map[string]*record)
	for _, r := range a.records {
		keys := []string{"id:" + r.key}
		if len(r.patches) > 0 && !r.date.IsZero() {
			keys = append(keys, "sent:"+r.submitter+"|"+r.date.UTC().Format(time.RFC3339)+"|"+r.subject.identity()+"|"+r.digest())
		}
		for _, key := range keys {
			old := kept[key]
			switch {
			case old == nil || old == r:
				kept[key] = r
				continue
			case r.digest() != old.digest():
				// Which of them the others mean cannot be known.
				r.skip = "its Message-ID belongs to another mail with other content (" + old.position + ")"
			default:
				if r.bytes < old.bytes {
					r, old = old, r
				}
				r.skip = "a double of " + old.position
				old.lists = union(old.lists, r.lists)
				for _, k := range keys {
					kept[k] = old
				}
			}
			break
		}
	}
}

// digest tells whether two mails hold the same change or, without one, text.
func (r *record) digest() string {
	if len(r.patches) == 0 {
		return strings.Join(strings.Fields(r.subject.Text), " ")
	}
	var s strings.Builder
	for _, f := range r.patches {
		s.WriteString(f.Patch.DiffSHA256)
	}
	return s.String()
}

// identity is the subject without what lists add.
func (s Subject) identity() string {
	return fmt.Sprintf("%d.%d %d/%d %t %s", s.Version, s.Minor, s.N, s.Total, s.Resend, s.Text)
}

// thread joins a record with the ids it refers to.
func (a *assembler) thread(r *record) {
	for _, p := range r.parents {
		if x, y := a.root(r.key), a.root(p); x != y {
			a.threads[max(x, y)] = min(x, y)
		}
	}
}

func (a *assembler) root(id string) string {
	for {
		up, ok := a.threads[id]
		if !ok || up == id {
			return id
		}
		if next, ok := a.threads[up]; ok {
			a.threads[id] = next
		}
		id = up
	}
}

// classify makes a posting of each record that is a patch or a cover, and gives
// every other its reason.
func (a *assembler) classify() {
	for _, r := range a.records {
		if r.skip != "" {
			continue
		}
		s := r.subject
		_, parentKnown := a.parent(r)
		switch {
		case s.Pull && !s.Numbered:
			r.skip = "a pull request"
		case len(r.patches) == 0 && s.Numbered && s.N == 0 && !s.Reply && !(parentKnown && a.repliesToOwn(r)):
			a.add(r, nil)
		case len(r.patches) == 0 && (s.Reply || len(r.parents) > 0):
			r.skip = "a reply without a patch"
		case len(r.patches) == 0:
			r.skip = "no diff in it"
		case s.Reply && parentKnown && !r.isMarked():
			r.skip = "a reply with a diff that is a comment: no scissors, From, Subject or [PATCH] line before it"
		case s.Numbered && s.N == 0 && len(r.patches) == 1 && !r.patches[0].Scissors && r.patches[0].Patch.N == 0:
			// A cover that shows a diff against the version before.
			a.add(r, nil)
		default:
			a.addPatches(r)
		}
	}
}

// isMarked says that a reply calls its diff a patch.
func (r *record) isMarked() bool {
	f := r.patches[0]
	return f.Scissors || f.InBody || len(r.patches) > 1 || f.Patch.Style == mbox.StyleHg
}

// parent gives the nearest known mail that r refers to.
func (a *assembler) parent(r *record) (*record, bool) {
	for _, id := range r.parents {
		if p := a.byID[id]; p != nil && p != r {
			return p, true
		}
	}
	return nil, false
}

// repliesToOwn says that a mail without Re: answers a cover with the same subject:
// a follow-up, no second cover.
func (a *assembler) repliesToOwn(r *record) bool {
	p, ok := a.parent(r)
	return ok && p.subject.identity() == r.subject.identity() && p.submitter != r.submitter
}

func (a *assembler) add(r *record, f *Found) *posting {
	s := r.subject
	p := &posting{records: []*record{r}, slots: make(map[int]*slot), submitter: r.submitter, first: r.date, last: r.date}
	if f == nil {
		p.cover = r
	} else {
		s = f.Subject
		n := 1
		if s.Numbered && s.N > 0 {
			n = s.N
		}
		p.lone = !s.Numbered
		p.slots[n] = &slot{r, f}
	}
	p.version, p.minor, p.hasVersion, p.resend = s.Version, s.Minor, s.HasVersion, s.Resend
	p.total = 1
	if s.Numbered {
		p.total = s.Total
	}
	if p.total > a.options.MaxPatches {
		r.skip = fmt.Sprintf("series of %d patches, limit %d", p.total, a.options.MaxPatches)
		return nil
	}
	a.all = append(a.all, p)
	a.of[r] = p
	return p
}

// addPatches makes the posting of a mail with one patch or several.
func (a *assembler) addPatches(r *record) {
	if n := len(r.patches); n > a.options.MaxPatches {
		r.skip = fmt.Sprintf("mail with %d patches, limit %d", n, a.options.MaxPatches)
		return
	}
	p := a.add(r, &r.patches[0])
	if p == nil || len(r.patches) == 1 {
		return
	}
	// Attached patches count by their own numbers if they have some, else in
	// their order.
	p.slots, p.lone = make(map[int]*slot), false
	numbered := true
	for _, f := range r.patches {
		numbered = numbered && f.Subject.Numbered && f.Subject.N > 0 && f.Subject.N <= f.Subject.Total
	}
	for i := range r.patches {
		f := &r.patches[i]
		n := i + 1
		if numbered {
			n = f.Subject.N
			p.total = max(p.total, f.Subject.Total)
		}
		if p.slots[n] == nil {
			p.slots[n] = &slot{r, f}
		}
	}
	if !numbered {
		p.total = len(r.patches)
	}
}

// head is the mail that stands for the posting: the cover, else its first patch.
func (p *posting) head() *record {
	if p.cover != nil {
		return p.cover
	}
	if p.lead != nil {
		return p.lead
	}
	n := 0
	for i := range p.slots {
		if n == 0 || i < n {
			n = i
		}
	}
	return p.slots[n].from
}

func (p *posting) live() *posting {
	for p.merged != nil {
		p = p.merged
	}
	return p
}

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
		for i, p := range group {
			for j := i - 1; j >= 0; j-- {
				q := group[j]
				if q.merged != nil || !q.fits(p) || p.first.Sub(q.last) > 24*time.Hour {
					continue
				}
				if a.threaded(p) && a.threaded(q) && a.root(p.records[0].key) != a.root(q.records[0].key) {
					continue
				}
				q.absorb(p)
				break
			}
		}
	}
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
			q.records = append(q.records, p.records...)
			p.merged = q
			break
		}
	}
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}
