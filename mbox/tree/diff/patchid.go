package diff

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"hash"
)

// PatchID gives the id that git patch-id --stable gives to a patch: it does not
// change with line numbers, white space, or the order of the files. It is "" for
// a text without a diff.
func PatchID(text []byte) string {
	id := patchID{Hash: sha1.New()}
	for line := range bytes.Lines(text) {
		if !id.line(line) {
			break
		}
	}
	if !id.begun {
		return ""
	}
	id.flush()
	return hex.EncodeToString(id.sum[:])
}

// patchID is the state between two lines of a patch.
type patchID struct {
	hash.Hash
	sum           [sha1.Size]byte
	begun         bool
	header        bool // between `diff` and the first hunk
	binary        bool // until the next `diff`
	before, after int  // lines that the hunk still has
	index         [2][]byte
}

// flush adds what was hashed, so that the order of the files does not matter.
func (id *patchID) flush() {
	carry := 0
	for i, b := range id.Hash.Sum(nil) {
		carry += int(id.sum[i]) + int(b)
		id.sum[i] = byte(carry)
		carry >>= 8
	}
	id.Reset()
}

// line takes a line; false means that the patch has ended before it.
func (id *patchID) line(line []byte) bool {
	has := func(prefix string) bool { return bytes.HasPrefix(line, []byte(prefix)) }
	switch {
	case has(`\ `) && len(line) > 12:
		return true
	case !id.begun && !has("diff "):
		return true
	case !id.begun:
		id.begun, id.header = true, true
	}
	if id.header {
		switch {
		case has("GIT binary patch"), has("Binary files"):
			id.header, id.binary = false, true
			id.Write(id.index[0])
			id.Write(id.index[1])
			id.flush()
			return true
		case has("index "):
			a, b, _ := bytes.Cut(bytes.TrimSpace(line[len("index "):]), []byte(".."))
			b, _, _ = bytes.Cut(b, []byte(" "))
			id.index = [2][]byte{a, b}
			return true
		case has("--- "):
			id.header, id.before, id.after = false, 1, 1
		case line[0]|0x20 < 'a' || line[0]|0x20 > 'z':
			return false
		}
	} else if id.binary {
		if !has("diff ") {
			return true
		}
		id.binary, id.header = false, true
		return true
	} else if id.before == 0 && id.after == 0 {
		if has("@@ -") {
			h, ok := hunkHeader(line)
			id.before, id.after = h.OldLines, h.NewLines
			return ok
		}
		if !has("diff ") {
			return false
		}
		id.flush()
		id.header = true
	}
	switch line[0] {
	case ' ':
		id.before, id.after = id.before-1, id.after-1
	case '-':
		id.before--
	case '+':
		id.after--
	}
	// White space as in C: the six characters of ASCII.
	id.Write(bytes.Join(bytes.FieldsFunc(line, func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }), nil))
	return true
}
