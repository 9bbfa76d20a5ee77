// Package keep puts away what mbox/series needs of a mail only when a series is
// printed or applied: texts, messages and diffs. In goes a Mail, out comes where it
// was put; given that, the Mail comes back as it was. Where the bytes go is the
// Medium's business: memory, or a file when an archive is larger than that.
//
// It also holds what is left of many mails in little room: List, an array that
// grows without being copied, and Names, which gives each text a number.
//
// Nothing here knows what a series is.
package keep

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// Medium holds bytes. They are written once, one behind the other, and read back
// from where they are, as with a file.
type Medium interface {
	io.Writer
	io.ReaderAt
}

// Mail is what is put away of a message: nothing by which series are found.
type Mail struct {
	Position string
	// Raw is the subject as sent, Subject what it says.
	Raw     string
	Subject patch.Subject
	Author  mbox.Address // of the mail
	Date    time.Time
	Lists   []string
	// Patches have no MessageID: that is the mail's.
	Patches []patch.Found
	Text    string
	Hints   patch.Hints
}

// Store puts mails away. It is not safe for use by several goroutines.
type Store struct {
	medium  Medium
	written int64  // in the medium
	buf     []byte // behind it
}

// NewStore makes an empty store on a medium that is empty too; nil means memory.
func NewStore(m Medium) *Store {
	if m == nil {
		m = &memory{}
	}
	return &Store{medium: m}
}

const (
	bufferBytes = 256 << 10
	headBytes   = 4 // of a piece's length
	firstRead   = 4 << 10
)

// Put puts a mail away. The error is the medium's.
func (s *Store) Put(m *Mail) (at int64, err error) {
	return s.put(func(e *encoder) { e.mail(m) })
}

// PutProblem puts a message away that could not be read.
func (s *Store) PutProblem(p mbox.Problem) (at int64, err error) {
	return s.put(func(e *encoder) {
		e.text(p.MessageID)
		e.text(p.Position)
		e.text(p.Error)
	})
}

func (s *Store) put(write func(*encoder)) (at int64, err error) {
	at = s.written + int64(len(s.buf))
	start := len(s.buf)
	e := encoder{append(s.buf, make([]byte, headBytes)...)}
	write(&e)
	s.buf = e.out
	binary.LittleEndian.PutUint32(s.buf[start:], uint32(len(s.buf)-start-headBytes))
	if len(s.buf) >= bufferBytes {
		err = s.flush()
	}
	return at, err
}

func (s *Store) flush() error {
	n, err := s.medium.Write(s.buf)
	s.written += int64(n)
	if err != nil {
		s.buf = append(s.buf[:0], s.buf[n:]...)
		return fmt.Errorf("put mail away: %w", err)
	}
	s.buf = s.buf[:0]
	if cap(s.buf) > 4*bufferBytes {
		s.buf = nil
	}
	return nil
}

// Get gives back the mail that Put put there.
func (s *Store) Get(at int64) (*Mail, error) {
	b, err := s.get(at)
	if err != nil {
		return nil, err
	}
	d := decoder{in: b}
	m := d.mail()
	if d.bad || len(d.in) > 0 {
		return nil, errBroken(at)
	}
	return m, nil
}

// Problem gives back what PutProblem put there.
func (s *Store) Problem(at int64) (mbox.Problem, error) {
	b, err := s.get(at)
	if err != nil {
		return mbox.Problem{}, err
	}
	d := decoder{in: b}
	p := mbox.Problem{MessageID: d.text(), Position: d.text(), Error: d.text()}
	if d.bad || len(d.in) > 0 {
		return mbox.Problem{}, errBroken(at)
	}
	return p, nil
}

func errBroken(at int64) error {
	return fmt.Errorf("read mail back: what was put at byte %d is broken", at)
}

func (s *Store) get(at int64) ([]byte, error) {
	if at >= s.written {
		b := s.buf[at-s.written:]
		n := binary.LittleEndian.Uint32(b)
		return b[headBytes : headBytes+n], nil
	}
	b := make([]byte, min(firstRead, s.written-at))
	if err := s.readAt(b, at); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(b)) + headBytes
	if n > s.written-at {
		return nil, errBroken(at)
	}
	if have := int64(len(b)); have < n {
		b = append(b, make([]byte, n-have)...)
		if err := s.readAt(b[have:], at+have); err != nil {
			return nil, err
		}
	}
	return b[headBytes:n], nil
}

func (s *Store) readAt(b []byte, at int64) error {
	if n, err := s.medium.ReadAt(b, at); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read mail back: %w", err)
	}
	return nil
}

// memory is a medium of pieces as they were written.
type memory struct {
	pieces [][]byte
	starts []int64
	size   int64
}

func (m *memory) Write(b []byte) (int, error) {
	m.pieces = append(m.pieces, bytes.Clone(b))
	m.starts = append(m.starts, m.size)
	m.size += int64(len(b))
	return len(b), nil
}

func (m *memory) ReadAt(b []byte, at int64) (n int, err error) {
	i, exact := slices.BinarySearch(m.starts, at)
	if !exact {
		i--
	}
	for ; n < len(b); i++ {
		if i < 0 || i >= len(m.pieces) {
			return n, io.EOF
		}
		n += copy(b[n:], m.pieces[i][at+int64(n)-m.starts[i]:])
	}
	return n, nil
}
