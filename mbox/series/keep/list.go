package keep

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// List is an array that grows without being copied: where At points stays good.
// The first entry, at 0, is no entry, so that 0 can stand for none. The zero value
// is empty.
type List[T any] struct {
	chunks [][]T
	size   uint32
}

const chunkEntries = 128

// Add puts a value behind the others and gives its place.
func (l *List[T]) Add(v T) uint32 {
	if l.size == 0 {
		l.size = 1
	}
	at := l.size
	if int(at/chunkEntries) == len(l.chunks) {
		l.chunks = append(l.chunks, make([]T, chunkEntries))
	}
	l.chunks[at/chunkEntries][at%chunkEntries] = v
	l.size++
	return at
}

// At points to the entry at a place.
func (l *List[T]) At(at uint32) *T { return &l.chunks[at/chunkEntries][at%chunkEntries] }

// Len is how many entries there are; they stand at 1 to Len.
func (l *List[T]) Len() uint32 { return max(l.size, 1) - 1 }

// Names gives each text a number from 1, one for equal texts. The zero value is
// empty; "" is 0.
type Names struct {
	chunks [][]byte     // texts behind their length
	places List[uint32] // chunk and offset of each
	table  []uint32     // numbers by hash, 0 is free
}

// chunkBits is of the bytes of a chunk, which has room for the longest header.
const (
	chunkBits  = 17
	chunkBytes = 1 << chunkBits
)

var seed = maphash.MakeSeed()

// Hash is a number that two different texts hardly share. It is another in each
// process, and 0 for "" alone.
func Hash(s string) uint64 {
	if s == "" {
		return 0
	}
	return max(maphash.String(seed, s), 1)
}

// Mix makes one hash of several.
func Mix(list ...uint64) uint64 {
	var b [64]byte
	out := b[:0]
	for _, n := range list {
		out = binary.LittleEndian.AppendUint64(out, n)
	}
	return max(maphash.Bytes(seed, out), 1)
}

// Add gives the text's number, a new one if it has none yet.
func (n *Names) Add(s string) uint32 {
	at, slot := n.find(s)
	if at > 0 || s == "" {
		return at
	}
	if 4*(n.places.Len()+1) > 3*uint32(len(n.table)) {
		n.grow()
		_, slot = n.find(s)
	}
	need := len(s) + binary.MaxVarintLen32
	last := len(n.chunks) - 1
	if last < 0 || len(n.chunks[last])+need > chunkBytes {
		n.chunks = append(n.chunks, nil)
		last++
	}
	c := n.chunks[last]
	at = n.places.Add(uint32(last<<chunkBits | len(c)))
	n.chunks[last] = append(binary.AppendUvarint(c, uint64(len(s))), s...)
	n.table[slot] = at
	return at
}

// Find gives the text's number, 0 if it has none.
func (n *Names) Find(s string) uint32 {
	at, _ := n.find(s)
	return at
}

// find gives the number of a text, and where in the table it is or belongs.
func (n *Names) find(s string) (at uint32, slot int) {
	if len(n.table) == 0 || s == "" {
		return 0, 0
	}
	mask := len(n.table) - 1
	for slot = int(Hash(s)) & mask; n.table[slot] != 0; slot = (slot + 1) & mask {
		if string(n.bytes(n.table[slot])) == s {
			return n.table[slot], slot
		}
	}
	return 0, slot
}

func (n *Names) grow() {
	n.table = make([]uint32, max(64, 2*len(n.table)))
	mask := len(n.table) - 1
	for at := uint32(1); at <= n.places.Len(); at++ {
		slot := int(max(maphash.Bytes(seed, n.bytes(at)), 1)) & mask
		for n.table[slot] != 0 {
			slot = (slot + 1) & mask
		}
		n.table[slot] = at
	}
}

func (n *Names) bytes(at uint32) []byte {
	place := *n.places.At(at)
	b := n.chunks[place>>chunkBits][place%chunkBytes:]
	size, k := binary.Uvarint(b)
	return b[k : k+int(size)]
}

// Text is the text with that number.
func (n *Names) Text(at uint32) string {
	if at == 0 {
		return ""
	}
	return string(n.bytes(at))
}

// Compare orders two texts by their bytes.
func (n *Names) Compare(a, b uint32) int {
	switch {
	case a == b:
		return 0
	case a == 0:
		return -1
	case b == 0:
		return 1
	}
	return bytes.Compare(n.bytes(a), n.bytes(b))
}

// Len is how many texts there are.
func (n *Names) Len() uint32 { return n.places.Len() }
