package series

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
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
	filled bool     // they did
	notes  []string
	series mbox.Series
}

// slot is one patch in its place.
type slot struct {
	from  *record
	patch *patch.Found
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
	return cmp.Or(a.when.Compare(b.when), strings.Compare(a.key, b.key), a.bytes-b.bytes, cmp.Compare(a.sum, b.sum), strings.Compare(a.raw, b.raw))
}

// dropDoubles keeps one of each message that came more than once: the smallest,
// to which lists have added least.
func (a *assembler) dropDoubles() {
	kept := make(map[string]*record)
	for _, r := range a.records {
		keys := []string{"id:" + r.key}
		if len(r.patches) > 0 && !r.date.IsZero() {
			keys = append(keys, "sent:"+r.submitter+"|"+r.date.UTC().Format(time.RFC3339)+"|"+r.subject.Identity()+"|"+r.digest())
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
	return ok && p.subject.Identity() == r.subject.Identity() && p.submitter != r.submitter
}

func (a *assembler) add(r *record, f *patch.Found) *posting {
	s := r.subject
	p := &posting{records: []*record{r}, slots: make(map[int]*slot), submitter: r.submitter, first: r.when, last: r.when}
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
