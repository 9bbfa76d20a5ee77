package diff

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// Binary is the forward part of a binary patch: the new file itself or a git
// delta against the old one, still deflated.
type Binary struct {
	Delta bool
	Size  int64  // of the data once inflated, in bytes
	Data  []byte // zlib
}

// binary reads what follows "GIT binary patch": a forward part and perhaps one
// for the way back, which must be sound although it is not used.
func (p *parser) binary() (*Binary, error) {
	b, err := p.binaryPart()
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, p.errorf("binary patch is neither literal nor delta")
	}
	if _, err := p.binaryPart(); err != nil {
		return nil, err
	}
	return b, nil
}

func (p *parser) binaryPart() (*Binary, error) {
	line := p.text[:lineLen(p.text)]
	b := &Binary{}
	digits, ok := bytes.CutPrefix(line, []byte("literal "))
	if !ok {
		if digits, ok = bytes.CutPrefix(line, []byte("delta ")); !ok {
			return nil, nil
		}
		b.Delta = true
	}
	size, err := strconv.ParseInt(string(bytes.TrimRight(digits, "\r\n")), 10, 64)
	if err != nil || size < 0 {
		return nil, p.errorf("size of the binary patch is not a number")
	}
	if size > MaxBinary {
		return nil, p.errorf("binary patch inflates to %s, limit 16 MiB", mib(size))
	}
	b.Size = size
	p.next()
	for {
		line := p.text[:lineLen(p.text)]
		if len(line) == 0 {
			return nil, p.errorf("binary patch is cut short")
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			// Here and not when it is used, so that the error names the line.
			if _, err := b.inflate(); err != nil {
				return nil, p.errorf("corrupt binary patch: %v", err)
			}
			p.next()
			return b, nil
		}
		text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		var n int
		switch c := text[0]; {
		case c >= 'A' && c <= 'Z':
			n = int(c-'A') + 1
		case c >= 'a' && c <= 'z':
			n = int(c-'a') + 27
		}
		most := (len(text) - 1) / 5 * 4
		if n == 0 || len(text) < 6 || (len(text)-1)%5 != 0 || n > most || n <= most-4 {
			return nil, p.errorf("corrupt binary patch")
		}
		if b.Data, ok = appendBase85(b.Data, text[1:], n); !ok {
			return nil, p.errorf("corrupt binary patch: not base 85")
		}
		p.next()
	}
}

func mib(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
}

const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

var from85 = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i, c := range []byte(base85) {
		t[c] = int8(i)
	}
	return t
}()

// appendBase85 decodes groups of five digits to four bytes each, of which n
// bytes count.
func appendBase85(out, text []byte, n int) ([]byte, bool) {
	for ; len(text) >= 5; text = text[5:] {
		var v uint64
		for _, c := range text[:5] {
			d := from85[c]
			if d < 0 {
				return nil, false
			}
			v = v*85 + uint64(d)
		}
		if v > 0xffffffff {
			return nil, false
		}
		four := binary.BigEndian.AppendUint32(nil, uint32(v))
		out = append(out, four[:min(n, 4)]...)
		n -= min(n, 4)
	}
	return out, true
}

// inflate gives the data. The size was checked when the patch was read; a stream
// that holds more than it declares is refused.
func (b *Binary) inflate() ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(b.Data))
	if err != nil {
		return nil, fmt.Errorf("binary data cannot be inflated: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(z, b.Size+1))
	switch {
	case int64(len(data)) > b.Size:
		return nil, errors.New("binary data longer than declared")
	case err != nil:
		return nil, fmt.Errorf("binary data cannot be inflated: %w", err)
	case int64(len(data)) < b.Size:
		return nil, errors.New("binary data shorter than declared")
	}
	return data, nil
}

// Apply gives the new file. A stream or delta that holds more than it declares is
// refused.
func (b *Binary) Apply(old []byte) ([]byte, error) {
	data, err := b.inflate()
	if err != nil || !b.Delta {
		return data, err
	}
	_, n := binary.Uvarint(data)
	if n <= 0 {
		return nil, errors.New("binary delta is broken")
	}
	size, n := binary.Uvarint(data[n:])
	if n <= 0 {
		return nil, errors.New("binary delta is broken")
	}
	if size > MaxBinary {
		return nil, fmt.Errorf("binary patch inflates to %s, limit 16 MiB", mib(int64(min(size, 1<<62))))
	}
	out, err := packfile.PatchDelta(old, data)
	if err != nil {
		return nil, fmt.Errorf("binary delta does not fit the file: %w", err)
	}
	return out, nil
}
