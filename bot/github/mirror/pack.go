package mirror

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// ErrTooLarge says that a pull request brings more than the request allows.
var ErrTooLarge = errors.New("it is too large")

const (
	// maxObject is the most that a file may have when it is unpacked, if Most is
	// not less; GitHub takes no file of more than 100 MB.
	maxObject = 128 << 20
	// unpacked is how much more than packed all objects together may be. They are
	// unpacked once to know their names, some of them again for those made of them.
	unpacked = 16
	// maxObjects bounds what an index in memory takes.
	maxObjects = 2 << 20
)

// partial matches what is being written in a folder of packs: by go-git under
// this name too.
const partial = "tmp_pack_*"

// sweep removes what a killed process, or a pack that was refused, left.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", partial))
	for _, file := range left {
		os.Remove(file)
	}
}

// take takes a pack into the repository at dir: as it comes, or, with most above
// 0, when it is whole and known to be no larger. Nothing of one that is refused
// is left.
func take(dir string, into storer.Storer, pack io.Reader, most int64) error {
	defer sweep(dir)
	if most > 0 {
		f, err := os.CreateTemp(filepath.Join(dir, "objects", "pack"), partial)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := spool(f, pack, most); err != nil {
			return err
		}
		if err := measure(f, most); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		pack = f
	}
	return packfile.UpdateObjectStorage(into, pack)
}

// spool copies a pack of at most so many bytes.
func spool(w io.WriteSeeker, pack io.Reader, most int64) error {
	n, err := io.Copy(w, io.LimitReader(pack, most+1))
	switch {
	case err != nil:
		return err
	case n > most:
		return tooLarge("it has more than %s that its base branch has not", most)
	}
	_, err = w.Seek(0, io.SeekStart)
	return err
}

// measure reads a pack for what it says of its objects' sizes, which go-git holds
// it to later: some hundred bytes can stand for any number of them.
func measure(pack io.ReadSeeker, most int64) error {
	s := packfile.NewScanner(pack)
	_, count, err := s.Header()
	if err != nil {
		return err
	}
	if count > maxObjects {
		return tooLarge("it has %d objects that its base branch has not; %d at most are taken", count, maxObjects)
	}
	all, one := most*unpacked, min(most, maxObject)
	for range count {
		h, err := s.NextObjectHeader()
		if err != nil {
			return err
		}
		if h.Length > one {
			return tooLarge("it has a file of more than %s", one)
		}
		var start prefix
		if _, _, err := s.NextObject(&start); err != nil {
			return err
		}
		all -= h.Length
		if h.Type.IsDelta() {
			made, err := start.makes()
			if err != nil {
				return err
			}
			if made > uint64(one) {
				return tooLarge("it has a file of more than %s", one)
			}
			all -= int64(made)
		}
		if all < 0 {
			return tooLarge("it has more than %s of files that its base branch has not", most*unpacked)
		}
	}
	return nil
}

// prefix keeps the first bytes written to it.
type prefix struct {
	b [2 * binary.MaxVarintLen64]byte
	n int
}

func (p *prefix) Write(b []byte) (int, error) {
	p.n += copy(p.b[p.n:], b)
	return len(b), nil
}

// makes is the size of what a delta makes: it begins with the sizes of what it is
// applied to and of that (gitformat-pack).
func (p *prefix) makes() (uint64, error) {
	_, n := binary.Uvarint(p.b[:p.n])
	if n > 0 {
		if size, m := binary.Uvarint(p.b[n:p.n]); m > 0 {
			return size, nil
		}
	}
	return 0, errors.New("a delta does not say what it makes")
}

// tooLarge is an ErrTooLarge that says more. An int64 among the arguments is a
// number of bytes.
func tooLarge(format string, args ...any) error {
	for i, a := range args {
		if n, ok := a.(int64); ok {
			args[i] = size(n)
		}
	}
	return fmt.Errorf("%w: "+format, append([]any{ErrTooLarge}, args...)...)
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
