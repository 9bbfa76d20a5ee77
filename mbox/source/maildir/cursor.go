package maildir

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// key stands for a unique name: the first 48 bits of its SHA-256. That one of
// 100,000 names has that of a new mail happens once in 3,000 million times.
type key uint64

func keyOf(name string) key {
	sum := sha256.Sum256([]byte(name))
	return key(binary.BigEndian.Uint64(sum[:8]) >> 16)
}

// prefix marks a cursor of a Maildir. Behind it stand the keys, ascending, each
// as a varint of its distance to the one before, in base64.
const prefix = "maildir:"

func format(known map[key]bool) string {
	var b []byte
	last := key(0)
	for _, k := range slices.Sorted(maps.Keys(known)) {
		b = binary.AppendUvarint(b, uint64(k-last))
		last = k
	}
	return prefix + base64.RawStdEncoding.EncodeToString(b)
}

// parseCursor reads a cursor; an empty one is that of the first start.
func parseCursor(s string) (map[key]bool, error) {
	known := map[key]bool{}
	if s == "" {
		return known, nil
	}
	text, ok := strings.CutPrefix(s, prefix)
	b, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("cursor %.40q is none of a Maildir", s)
	}
	last := key(0)
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		if n <= 0 || d >= 1<<48 || last+key(d) >= 1<<48 {
			return nil, fmt.Errorf("cursor %.40q is none of a Maildir", s)
		}
		last += key(d)
		known[last] = true
		b = b[n:]
	}
	return known, nil
}
