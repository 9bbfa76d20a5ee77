package build

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench/elfhead"
)

// blanked stands in a digest for text that differs between equal builds.
const blanked = "\x00(blank)\x00"

// contentSum is the SHA-256 of what matters in a file: see the package comment.
// It never fails over the file's form, which may be hostile: what cannot be read
// as ELF or ar counts byte by byte.
func contentSum(r io.ReaderAt, size int64, blanks [][]byte) ([]byte, error) {
	return nestedSum(r, size, blanks, 0)
}

func nestedSum(r io.ReaderAt, size int64, blanks [][]byte, depth int) ([]byte, error) {
	magic := make([]byte, 8)
	n, err := r.ReadAt(magic, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	magic = magic[:n]
	var parse func(io.Writer, io.ReaderAt, int64, [][]byte) error
	switch {
	case bytes.HasPrefix(magic, []byte("\x7fELF")):
		parse = sumELF
	case string(magic) == arMagic && depth < 2:
		parse = func(w io.Writer, r io.ReaderAt, size int64, blanks [][]byte) error {
			return sumArchive(w, r, size, blanks, depth+1)
		}
	}
	if parse != nil {
		h := sha256.New()
		if err := guarded(func() error { return parse(h, r, size, blanks) }); err == nil {
			return h.Sum(nil), nil
		}
	}
	h := sha256.New()
	if err := stream(h, r, 0, size, blanks, nil); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// guarded turns a panic of a parser into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// span is the bytes from..to of a file, to not included.
type span struct{ from, to int64 }

// stream writes the n bytes from off to w: those in zero as zeros, and blanked in
// place of each of the blanks.
func stream(w io.Writer, r io.ReaderAt, off, n int64, blanks [][]byte, zero []span) error {
	if off < 0 || n < 0 || off > math.MaxInt64-n {
		return fmt.Errorf("%d bytes at %d: no such place", n, off)
	}
	b := newBlanker(w, blanks)
	buf := make([]byte, 1<<18)
	for end := off + n; off < end; {
		part := buf[:min(int64(len(buf)), end-off)]
		got, err := r.ReadAt(part, off)
		if got < len(part) {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		for _, z := range zero {
			if from, to := max(z.from, off)-off, min(z.to-off, int64(got)); from < to {
				clear(part[from:to])
			}
		}
		if _, err := b.Write(part); err != nil {
			return err
		}
		off += int64(got)
	}
	return b.flush()
}

// blanker writes what it is given with every occurrence of its needles replaced.
type blanker struct {
	w       io.Writer
	needles [][]byte // the longest first
	longest int
	buf     []byte
}

func newBlanker(w io.Writer, needles [][]byte) *blanker {
	b := &blanker{w: w, needles: slices.Clone(needles)}
	slices.SortStableFunc(b.needles, func(x, y []byte) int { return len(y) - len(x) })
	if len(b.needles) > 0 {
		b.longest = len(b.needles[0])
	}
	return b
}

func (b *blanker) Write(p []byte) (int, error) {
	if b.longest == 0 {
		return b.w.Write(p)
	}
	b.buf = append(b.buf, p...)
	// A needle may still be cut off by the end of what has come so far.
	return len(p), b.drain(len(b.buf) - b.longest + 1)
}

func (b *blanker) flush() error { return b.drain(len(b.buf)) }

// drain writes the bytes before limit and needles that start there.
func (b *blanker) drain(limit int) error {
	pos := 0
	for pos < limit {
		start, size := -1, 0
		for _, n := range b.needles {
			if i := bytes.Index(b.buf[pos:], n); i >= 0 && (start < 0 || pos+i < start) {
				start, size = pos+i, len(n)
			}
		}
		if start < 0 || start >= limit {
			break
		}
		if _, err := b.w.Write(b.buf[pos:start]); err != nil {
			return err
		}
		if _, err := io.WriteString(b.w, blanked); err != nil {
			return err
		}
		pos = start + size
	}
	if pos < limit {
		if _, err := b.w.Write(b.buf[pos:limit]); err != nil {
			return err
		}
		pos = limit
	}
	b.buf = append(b.buf[:0], b.buf[pos:]...)
	return nil
}

const arMagic = "!<arch>\n"

// sumArchive writes the members of an ar archive in order: name, mode and what
// matters of their content. The index of symbols follows from the members.
func sumArchive(w io.Writer, r io.ReaderAt, size int64, blanks [][]byte, depth int) error {
	const header = 60
	var long []byte
	for off := int64(len(arMagic)); off < size; {
		h := make([]byte, header)
		if _, err := r.ReadAt(h, off); err != nil {
			return fmt.Errorf("ar header at %d: %w", off, err)
		}
		if string(h[58:]) != "`\n" {
			return fmt.Errorf("ar header at %d: no end mark", off)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(h[48:58])), 10, 64)
		if err != nil || n < 0 || n > size-off-header {
			return fmt.Errorf("ar header at %d: size %q", off, h[48:58])
		}
		name := strings.TrimRight(string(h[:16]), " ")
		body, length := off+header, n
		off += header + n + n%2
		switch {
		case name == "/" || name == "/SYM64/" || strings.HasPrefix(name, "__.SYMDEF"):
			continue
		case name == "//":
			if n > elfhead.MaxTable {
				return fmt.Errorf("ar member //: %d bytes", n)
			}
			long = make([]byte, n)
			if _, err := r.ReadAt(long, body); err != nil {
				return err
			}
			continue
		case strings.HasPrefix(name, "/"):
			i, err := strconv.Atoi(name[1:])
			if err != nil || i < 0 || i >= len(long) {
				return fmt.Errorf("ar member name %q", name)
			}
			name, _, _ = strings.Cut(string(long[i:]), "\n")
			name = strings.TrimSuffix(name, "/")
		case strings.HasPrefix(name, "#1/"):
			i, err := strconv.ParseInt(name[3:], 10, 32)
			if err != nil || i < 0 || i > n || i > maxPath {
				return fmt.Errorf("ar member name %q", name)
			}
			b := make([]byte, i)
			if _, err := r.ReadAt(b, body); err != nil {
				return err
			}
			name, body, length = strings.TrimRight(string(b), "\x00"), body+i, n-i
			if strings.HasPrefix(name, "__.SYMDEF") {
				continue
			}
		default:
			name = strings.TrimSuffix(name, "/")
		}
		sum, err := nestedSum(io.NewSectionReader(r, body, length), length, blanks, depth)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "member %q mode %q %x\n", name, strings.TrimSpace(string(h[40:48])), sum)
	}
	return nil
}
