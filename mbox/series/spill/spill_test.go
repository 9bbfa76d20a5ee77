package spill

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFile writes more and more, reads it back from memory and from the file, and
// finds nothing in the folder at any time.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	f := New(dir)
	piece := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for size := int64(0); size < 3*memoryBytes; size += int64(len(piece)) {
		if n, err := f.Write(piece); n != len(piece) || err != nil {
			t.Fatalf("after %d bytes: %d, %v", size, n, err)
		}
		got := make([]byte, 100)
		for _, at := range []int64{0, size, size + int64(len(piece)) - 100} {
			if _, err := f.ReadAt(got, at); err != nil || !bytes.Equal(got, piece[at%16:][:100]) {
				t.Fatalf("at %d of %d: %v, %q", at, size+int64(len(piece)), err, got)
			}
		}
		if n, err := f.ReadAt(got, size+int64(len(piece))-50); n != 50 || err != io.EOF {
			t.Fatalf("across the end: %d, %v", n, err)
		}
		if n, err := f.ReadAt(got, size+int64(len(piece))); n != 0 || err != io.EOF {
			t.Fatalf("behind the end: %d, %v", n, err)
		}
		if spilled := f.file != nil; spilled != (size+int64(len(piece)) > memoryBytes) {
			t.Fatalf("in a file after %d bytes: %t", size+int64(len(piece)), spilled)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Fatalf("%v, %v in the folder", err, names)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestNoSpace(t *testing.T) {
	f := New("/a/folder")
	var err error
	if f.file, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	}
	defer f.Close()
	f.size = 9 << 20
	_, err = f.Write([]byte("x"))
	if !errors.Is(err, unix.ENOSPC) || !strings.HasPrefix(err.Error(), "no space left in /a/folder for the mail that does not fit into memory (9 MiB so far); set TMPDIR to a folder with more room") {
		t.Error(err)
	}
}

func TestNoFolder(t *testing.T) {
	f := New("/no/such/folder")
	_, err := f.Write(make([]byte, memoryBytes+1))
	if !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "/no/such/folder") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Error(err)
	}
}
