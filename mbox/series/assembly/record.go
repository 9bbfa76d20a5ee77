// Package assembly puts mails together: which form one posting of a series, and
// which posting is a new version of which. In go messages, of which it has at hand
// only numbers, hashes and ids, some 250 bytes each; out comes a Result that names
// series, messages and texts by numbers.
//
//	r := pool.Assemble(100)
//	for i := range r.Len() {
//		r.Version(i), r.Total(i), r.Cover(i), r.Patches(i) // of series i
//	}
//
// It is the part of mbox/series that decides; what a message says, and reading it
// back, is the business of others. It depends on the messages alone and not on
// their order.
package assembly

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/keep"
	"patchbench/mbox/series/patch"
)

// record is what the collector has at hand of one message; all else is put away.
// It holds no pointers, as there are hundreds of thousands in an archive: texts are
// numbers in Pool.names, records and patches those in their lists. 0 is none.
type record struct {
	when      int64  // what it is ordered by, in Unix seconds: its date, unless that cannot be
	hash      uint64 // of the subject's text or, with a patch, what sent gives
	at        int64  // where the rest was put
	seq       uint32 // its own number; the order of arrival
	key       uint32 // its Message-ID, or the hash of its bytes
	submitter uint32
	received  uint32 // in Unix seconds; 0 until known
	bytes     uint32 // of the raw mail
	sum       uint32 // of the raw mail; orders mails that are alike in all else
	parents   uint32 // in Pool.links: ids, nearest first
	patches   uint32 // the first of them
	count     uint32 // of patches
	subject   subject
	hasID     bool
	bare      bool // a patch of hg export, no mail

	// What assembling finds out.
	role    role
	skip    uint32 // why it is no part of a series: a reason's number
	posting uint32 // that it is in, or was before another took its place
	next    uint32 // of the posting's records, or of the doubles of one
	doubles uint32 // the first of those that are dropped in favour of this
}

// role is what a record can be in a posting.
type role uint8

const (
	bystander role = iota
	coverLetter
	onePatch // or several
)

// found is what the collector has at hand of one patch.
type found struct {
	digest  uint64 // of the diff
	title   uint64 // of the commit message's first line, folded; 0 if that is empty
	from    uint32 // the record
	node    uint32 // Mercurial's
	files   uint32 // in Pool.links: hashes of the names
	subject subject
	marked  bool // the text of its mail calls it a patch
	cut     bool // by scissors
}

// subject is a patch.Subject without its texts.
type subject struct {
	version, minor, n, total                  uint16
	hasVersion, numbered, pull, resend, reply bool
}

func subjectOf(s patch.Subject) subject {
	return subject{
		version: uint16(s.Version), minor: uint16(s.Minor), n: uint16(s.N), total: uint16(s.Total), // below 10,000
		hasVersion: s.HasVersion, numbered: s.Numbered, pull: s.Pull, resend: s.Resend, reply: s.Reply,
	}
}

// Pool holds the records of all messages.
type Pool struct {
	// ByArrival puts mails in order by when they were received, where that is
	// known, whatever dates their senders wrote.
	ByArrival bool

	records keep.List[record]
	found   keep.List[found]
	links   keep.List[uint32] // lists of numbers, each behind its length
	names   keep.Names
	replace map[uint32]uint32 // the id that a record says it replaces
	covers  map[uint32]uint64 // titles of covers that hold a diff
}

// NewPool makes an empty Pool.
func NewPool() *Pool {
	return &Pool{replace: make(map[uint32]uint32), covers: make(map[uint32]uint64)}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Add takes one message in and gives its number, from 1 in order of arrival. rest
// is what is kept of it elsewhere, at a place that At gives back; first is the id
// of the series' first mail, if the mail says it.
func (p *Pool) Add(m *mbox.Message, rest *keep.Mail, first string, at int64) uint32 {
	submitter := strings.ToLower(rest.Author.Email)
	if strings.Contains(strings.ToLower(m.From.Name), " via ") {
		// A gateway's address stands for many people.
		submitter += "|" + strings.ToLower(rest.Author.Name)
	}
	r := record{
		when: p.when(m).Unix(), at: at, seq: p.records.Len() + 1, key: p.names.Add(m.Key()), hasID: m.ID != "",
		submitter: p.names.Add(submitter), received: seconds(m.Received),
		bytes: uint32(len(m.Raw)), sum: crc32.Checksum(m.Raw, castagnoli), subject: subjectOf(rest.Subject),
		bare: m.From == (mbox.Address{}) && m.Subject == "" && m.ID == "" && len(rest.Patches) > 0,
	}
	p.take(&r, rest.Patches)
	switch {
	case r.count == 0:
		r.hash = keep.Hash(fold(rest.Subject.Text))
	case !m.Date.IsZero():
		r.hash = keep.Mix(keep.Hash(submitter), uint64(m.Date.Unix()), keep.Hash(rest.Subject.Identity()), p.digest(&r))
	}
	if r.count > 0 && r.subject.numbered && r.subject.n == 0 {
		p.covers[r.seq] = keep.Hash(fold(rest.Subject.Text))
	}
	if id := rest.Hints.Supersedes; id != "" {
		p.replace[r.seq] = p.names.Add(id)
	}
	r.parents = p.link(p.parents(m, first))
	return p.records.Add(r)
}

// Arrived has the messages of which that is unknown come in at this time.
func (p *Pool) Arrived(now time.Time) {
	for i := range p.records.Len() {
		if r := p.record(i + 1); r.received == 0 {
			r.received = seconds(now)
		}
	}
}

// parents are the ids that a message refers to, nearest first.
func (p *Pool) parents(m *mbox.Message, first string) []uint32 {
	list := make([]uint32, 0, 16)
	add := func(id string) {
		if n := p.names.Add(id); n > 0 {
			list = append(list, n)
		}
	}
	add(first)
	for i := len(m.InReplyTo) - 1; i >= 0; i-- {
		add(m.InReplyTo[i])
	}
	for i := len(m.References) - 1; i >= 0 && len(list) < 100; i-- {
		add(m.References[i])
	}
	return list
}

// sent is when a mail was sent, for putting mails in order: its Date, or when it
// was received if there is none or the two are a week apart. Clocks of senders are
// wrong, and some dates are those of a commit.
func sent(m *mbox.Message) time.Time {
	received := m.Received
	if received.IsZero() && m.Date.IsZero() {
		line := m.Header("Received")
		received = mbox.ParseDate(strings.TrimSpace(line[strings.LastIndexByte(line, ';')+1:]))
	}
	apart := m.Date.Sub(received).Abs()
	if !received.IsZero() && (m.Date.IsZero() || apart > 7*24*time.Hour) {
		return received
	}
	return m.Date
}

// when is what a mail is put in order by.
func (p *Pool) when(m *mbox.Message) time.Time {
	if p.ByArrival && !m.Received.IsZero() {
		return m.Received
	}
	return sent(m)
}

// link keeps a list of numbers.
func (p *Pool) link(list []uint32) uint32 {
	if len(list) == 0 {
		return 0
	}
	at := p.links.Add(uint32(len(list)))
	for _, n := range list {
		p.links.Add(n)
	}
	return at
}

// linked goes through a list of numbers.
func (p *Pool) linked(at uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		if at == 0 {
			return
		}
		for i := range *p.links.At(at) {
			if !yield(*p.links.At(at + 1 + i)) {
				return
			}
		}
	}
}

func (p *Pool) record(at uint32) *record { return p.records.At(at) }

// patch is the i-th patch of a record.
func (p *Pool) patch(r *record, i uint32) *found { return p.found.At(r.patches + i) }

// digest tells whether two mails hold the same change or, without one, subject.
func (p *Pool) digest(r *record) uint64 {
	if r.count == 0 {
		return r.hash
	}
	var sum uint64
	for i := range r.count {
		sum = keep.Mix(sum, p.patch(r, i).digest)
	}
	return sum
}

// title is a hash of a cover's title; 0 if that is empty.
func (p *Pool) title(cover uint32) uint64 {
	if r := p.record(cover); r.count == 0 {
		return r.hash
	}
	return p.covers[cover]
}

// sent is a hash of sender, date, subject and changes; 0 without a date or a change.
func (r *record) sent() uint64 {
	if r.count == 0 {
		return 0
	}
	return r.hash
}

// id is the record's Message-ID, "" if it has none.
func (p *Pool) id(r *record) string {
	if !r.hasID {
		return ""
	}
	return p.names.Text(r.key)
}

// threaded says that the record refers to another.
func (r *record) threaded() bool { return r.parents > 0 }

// byTime orders records by date, then by what does not depend on arrival, unless
// that is what counts.
func (p *Pool) byTime(a, b *record) int {
	switch {
	case a == b:
		return 0
	case !a.hasID && !b.hasID:
		return order(a.seq, b.seq)
	case a.when != b.when:
		return order(a.when, b.when)
	case p.ByArrival:
		return order(a.seq, b.seq)
	case a.key != b.key:
		return p.names.Compare(a.key, b.key)
	case a.bytes != b.bytes:
		return order(a.bytes, b.bytes)
	}
	return order(a.sum, b.sum)
}

func order[T int64 | uint32](a, b T) int {
	if a < b {
		return -1
	} else if a > b {
		return 1
	}
	return 0
}

// take keeps what is at hand of a mail's patches.
func (p *Pool) take(r *record, patches []patch.Found) {
	r.count = uint32(len(patches))
	for i := range patches {
		f := &patches[i]
		one := found{
			digest: hashOf(f.Patch.DiffSHA256), title: keep.Hash(fold(f.Patch.Subject)), from: r.seq, node: p.names.Add(f.Patch.Node),
			subject: subjectOf(f.Subject), cut: f.Scissors,
			marked: f.Scissors || f.InBody || len(patches) > 1 || f.Patch.Style == mbox.StyleHg,
		}
		files := make([]uint32, 0, 8)
		for _, name := range f.Patch.Files {
			files = append(files, uint32(keep.Hash(name)))
		}
		one.files = p.link(files)
		if at := p.found.Add(one); i == 0 {
			r.patches = at
		}
	}
}

// hashOf is the beginning of a hash that is written in hex.
func hashOf(s string) uint64 {
	var b [8]byte
	if len(s) < 16 {
		return keep.Hash(s)
	}
	if _, err := hex.Decode(b[:], []byte(s[:16])); err != nil {
		return keep.Hash(s)
	}
	return binary.LittleEndian.Uint64(b[:])
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// seconds is a time in Unix seconds; 0 if it is zero or nothing so small holds it.
func seconds(t time.Time) uint32 {
	if s := t.Unix(); s > 0 && s < 1<<32 {
		return uint32(s)
	}
	return 0
}
