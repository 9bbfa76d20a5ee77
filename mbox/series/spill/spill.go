// Package spill holds bytes in memory while they are few and in a temporary file
// when they are many: where bot lets mbox/series keep the mails of an archive that
// is larger than memory.
//
// The file has no name from the start, so that nothing is left behind however the
// program ends.
package spill

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// memoryBytes is how much is held in memory.
const memoryBytes = 4 << 20

// File is written at its end and read anywhere. It is not safe for use by several
// goroutines.
type File struct {
	dir    string
	memory []byte
	file   *os.File // nil while all is in memory
	size   int64
}

// New makes an empty File that will spill into a folder, dir, if it has to.
func New(dir string) *File { return &File{dir: dir} }

// Write puts bytes behind the others. What it says of a full disk names the folder
// and what to do.
func (f *File) Write(b []byte) (int, error) {
	if f.file == nil && f.size+int64(len(b)) <= memoryBytes {
		f.memory = append(f.memory, b...)
		f.size += int64(len(b))
		return len(b), nil
	}
	if f.file == nil {
		if err := f.spill(); err != nil {
			return 0, err
		}
	}
	n, err := f.file.Write(b)
	f.size += int64(n)
	return n, f.explain(err)
}

func (f *File) spill() (err error) {
	if f.file, err = open(f.dir); err != nil {
		return fmt.Errorf("open a temporary file in %s: %w; set TMPDIR to another folder", f.dir, err)
	}
	if _, err := f.file.Write(f.memory); err != nil {
		return f.explain(err)
	}
	f.memory = nil
	return nil
}

func (f *File) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		return fmt.Errorf("no space left in %s for the mail that does not fit into memory (%d MiB so far); set TMPDIR to a folder with more room: %w", f.dir, f.size>>20, err)
	}
	return fmt.Errorf("temporary file in %s: %w", f.dir, err)
}

// open makes a file that has no name, or has it removed where the file system
// knows no such files.
func open(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	f, err := os.CreateTemp(dir, "patchbench-mail-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadAt reads what was written there.
func (f *File) ReadAt(b []byte, at int64) (int, error) {
	if f.file != nil {
		return f.file.ReadAt(b, at)
	}
	if at >= f.size {
		return 0, io.EOF
	}
	n := copy(b, f.memory[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close gives the memory and the file back.
func (f *File) Close() error {
	f.memory = nil
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}
