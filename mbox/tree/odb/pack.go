package odb

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"
)

// pack is a pack file and its index, version 2 (gitformat-pack(5)): a header of
// 8 bytes, 256 counts by first byte, the sorted ids, their CRCs, their offsets
// of 4 bytes, and those of 8 bytes that the offsets with the top bit set point to.
type pack struct {
	name  string // path without .pack and .idx
	file  *os.File
	idx   []byte // mapped
	count int
}

const idxHeader = 8 + 256*4

func openPack(name string) (*pack, error) {
	f, err := os.Open(name + ".idx")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() < idxHeader+40 || fi.Size() > math.MaxInt {
		return nil, fmt.Errorf("%s.idx is too short for a pack index; run git fsck", name)
	}
	idx, err := unix.Mmap(int(f.Fd()), 0, int(fi.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s.idx: %w", name, err)
	}
	p := &pack{name: name, idx: idx}
	p.count = int(binary.BigEndian.Uint32(idx[8+255*4:]))
	switch {
	case !bytes.HasPrefix(idx, []byte("\377tOc\000\000\000\002")):
		err = fmt.Errorf("%s.idx is not a pack index of version 2; run git repack -a -d", name)
	case int64(idxHeader)+int64(p.count)*28+40 > fi.Size():
		err = fmt.Errorf("%s.idx is cut short; run git fsck", name)
	}
	if err == nil {
		p.file, err = os.Open(name + ".pack")
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(idx))
	}
	return p, nil
}

func (p *pack) close() error {
	return errors.Join(p.file.Close(), unix.Munmap(p.idx))
}

func (p *pack) fanout(i int) int { return int(binary.BigEndian.Uint32(p.idx[8+4*i:])) }

func (p *pack) rawID(i int) []byte { return p.idx[idxHeader+20*i : idxHeader+20*i+20] }

func (p *pack) id(i int) (h plumbing.Hash) {
	copy(h[:], p.rawID(i))
	return h
}

// search gives the first entry whose id is not below id.
func (p *pack) search(id []byte) int {
	lo, hi := 0, min(p.fanout(int(id[0])), p.count)
	if id[0] > 0 {
		lo = min(p.fanout(int(id[0])-1), hi)
	}
	return lo + sort.Search(hi-lo, func(i int) bool { return bytes.Compare(p.rawID(lo+i), id) >= 0 })
}

// offset finds an object's place in the pack.
func (p *pack) offset(id plumbing.Hash) (int64, bool) {
	i := p.search(id[:])
	if i >= p.count || !bytes.Equal(p.rawID(i), id[:]) {
		return 0, false
	}
	at := idxHeader + 24*p.count
	off := binary.BigEndian.Uint32(p.idx[at+4*i:])
	if off&(1<<31) == 0 {
		return int64(off), true
	}
	at += 4*p.count + 8*int(off&^(1<<31))
	if at+8 > len(p.idx) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p.idx[at:])), true
}

// Types of pack entries that are no objects by themselves.
const (
	ofsDelta = 6
	refDelta = 7
)

// header is the start of one entry of a pack.
type header struct {
	kind int
	size int64
	data int64 // offset of the zlib stream
	base int64 // offset of the base, for ofsDelta
	ref  plumbing.Hash
}

func (p *pack) header(off int64) (h header, err error) {
	var buf [64]byte
	n, err := p.file.ReadAt(buf[:], off)
	if err != nil && !errors.Is(err, io.EOF) {
		return h, err
	}
	b := buf[:n]
	i := 0
	next := func() (c byte) {
		if i < len(b) {
			c = b[i]
		}
		i++
		return c
	}
	c := next()
	h.kind, h.size = int(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0 && shift < 60; shift += 7 {
		c = next()
		h.size |= int64(c&0x7f) << shift
	}
	switch h.kind {
	case ofsDelta:
		c = next()
		back := int64(c & 0x7f)
		for c&0x80 != 0 && back < 1<<48 {
			c = next()
			back = (back+1)<<7 | int64(c&0x7f)
		}
		h.base = off - back
		if back <= 0 || h.base <= 0 {
			return h, fmt.Errorf("delta's base lies outside the pack")
		}
	case refDelta:
		for j := range h.ref {
			h.ref[j] = next()
		}
	}
	if i > len(b) {
		return h, io.ErrUnexpectedEOF
	}
	h.data = off + int64(i)
	return h, nil
}

func (p *pack) inflate(h header) ([]byte, error) {
	return inflate(io.NewSectionReader(p.file, h.data, math.MaxInt64-h.data), h.size)
}

// unpack reads the object at an offset: down the chain of deltas to an object
// that is whole or in the cache, then up again.
func (s *Store) unpack(p *pack, off int64) (plumbing.ObjectType, []byte, error) {
	type link struct {
		off   int64
		delta []byte
	}
	var chain []link
	var e entry
	seen := map[int64]bool{}
	for {
		var ok bool
		if e, ok = s.cache.get(cacheKey{p, off}); ok {
			break
		}
		h, err := p.header(off)
		if err != nil {
			return 0, nil, err
		}
		data, err := p.inflate(h)
		if err != nil {
			return 0, nil, err
		}
		if h.kind >= 1 && h.kind <= 4 {
			e = entry{plumbing.ObjectType(h.kind), data}
			s.cache.add(cacheKey{p, off}, e)
			break
		}
		if h.kind != ofsDelta && h.kind != refDelta {
			return 0, nil, fmt.Errorf("unknown entry type %d", h.kind)
		}
		if seen[off] {
			return 0, nil, fmt.Errorf("deltas form a loop")
		}
		seen[off] = true
		chain = append(chain, link{off, data})
		off = h.base
		if h.kind == refDelta {
			// A pack on disk holds its own bases, so this never leaves it.
			if off, ok = p.offset(h.ref); !ok {
				return 0, nil, fmt.Errorf("base %s of a delta is not in the pack", h.ref)
			}
		}
	}
	for i := len(chain) - 1; i >= 0; i-- {
		data, err := patch(e.data, chain[i].delta)
		if err != nil {
			return 0, nil, err
		}
		e.data = data
		// The object itself goes in too: the next version of a file is often a
		// delta against it.
		s.cache.add(cacheKey{p, chain[i].off}, e)
	}
	return e.typ, e.data, nil
}

// sizeOf is the length of the object at an offset, without unpacking it: that of
// a delta's result stands at its start.
func (p *pack) sizeOf(off int64) (int64, error) {
	h, err := p.header(off)
	if err != nil {
		return 0, err
	}
	if h.kind != ofsDelta && h.kind != refDelta {
		return h.size, nil
	}
	z, err := zlib.NewReader(bufio.NewReaderSize(io.NewSectionReader(p.file, h.data, math.MaxInt64-h.data), 64))
	if err != nil {
		return 0, err
	}
	defer z.Close()
	// Two numbers of at most ten bytes.
	head := make([]byte, min(20, max(h.size, 0)))
	if _, err := io.ReadFull(z, head); err != nil {
		return 0, err
	}
	if _, rest, ok := deltaSize(head); ok {
		if n, _, ok := deltaSize(rest); ok {
			return n, nil
		}
	}
	return 0, errDelta
}
