package series

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/keep"
	"patchbench/mbox/series/patch"
)

// record is what the collector has at hand of one message; all else is put away.
// It holds no pointers, as there are hundreds of thousands in an archive: texts are
// numbers in pool.names, records and patches those in their lists. 0 is none.
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
	parents   uint32 // in pool.links: ids, nearest first
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
	files   uint32 // in pool.links: hashes of the names
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

// pool holds the records of all messages.
type pool struct {
	records keep.List[record]
	found   keep.List[found]
	links   keep.List[uint32] // lists of numbers, each behind its length
	names   keep.Names
	replace map[uint32]uint32 // the id that a record says it replaces
	covers  map[uint32]uint64 // titles of covers that hold a diff
	needs   map[uint32]bool   // records that name prerequisites
	store   *keep.Store
}

// link keeps a list of numbers.
func (p *pool) link(list []uint32) uint32 {
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
func (p *pool) linked(at uint32) func(yield func(uint32) bool) {
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

func (p *pool) record(at uint32) *record { return p.records.At(at) }

// patch is the i-th patch of a record.
func (p *pool) patch(r *record, i uint32) *found { return p.found.At(r.patches + i) }

// digest tells whether two mails hold the same change or, without one, subject.
func (p *pool) digest(r *record) uint64 {
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
func (p *pool) title(cover uint32) uint64 {
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
func (p *pool) id(r *record) string {
	if !r.hasID {
		return ""
	}
	return p.names.Text(r.key)
}

// threaded says that the record refers to another.
func (r *record) threaded() bool { return r.parents > 0 }

// byTime orders records by date, then by what does not depend on arrival.
func (p *pool) byTime(a, b *record) int {
	switch {
	case a == b:
		return 0
	case !a.hasID && !b.hasID:
		return order(a.seq, b.seq)
	case a.when != b.when:
		return order(a.when, b.when)
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
func (p *pool) take(r *record, patches []patch.Found) {
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
