package mirror

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// object is one of a pack, as it stands there.
type object struct {
	kind plumbing.ObjectType
	size uint64 // that it says it has
	text []byte
}

// packed is a pack that says it has count objects.
func packed(count uint32, objects ...object) []byte {
	b := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	for _, o := range objects {
		first, rest := byte(o.kind)<<4|byte(o.size&15), o.size>>4
		for rest > 0 {
			b, first, rest = append(b, first|0x80), byte(rest&0x7f), rest>>7
		}
		b = append(b, first)
		if o.kind == plumbing.REFDeltaObject {
			b = append(b, make([]byte, 20)...)
		}
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		w.Write(o.text)
		w.Close()
		b = append(b, z.Bytes()...)
	}
	return append(b, make([]byte, 20)...)
}

func blob(text []byte) object {
	return object{plumbing.BlobObject, uint64(len(text)), text}
}

// delta is one that makes so many bytes.
func delta(makes uint64) object {
	text := binary.AppendUvarint(binary.AppendUvarint(nil, 10), makes)
	return object{plumbing.REFDeltaObject, uint64(len(text)), text}
}

func TestMeasure(t *testing.T) {
	const most = 64 << 10
	zeros := make([]byte, most)
	many := func(n int, o object) (list []object) {
		for range n {
			list = append(list, o)
		}
		return list
	}
	for _, c := range []struct {
		name  string
		pack  []byte
		large string // a part of an ErrTooLarge, "" for none
		fault string // a part of another error, "" for none
	}{
		{name: "nothing", pack: packed(0)},
		{name: "small", pack: packed(2, blob([]byte("text")), delta(most))},
		{name: "as large as may be", pack: packed(16, many(16, blob(zeros))...)},
		{name: "all too large", pack: packed(17, many(17, blob(zeros))...), large: "more than 1 MiB of files"},
		{name: "one too large", pack: packed(1, blob(make([]byte, most+1))), large: "a file of more than 65536 bytes"},
		{name: "one that says so", pack: packed(1, object{plumbing.BlobObject, 1 << 50, []byte("x")}), large: "a file of more than 65536 bytes"},
		{name: "larger than it says", pack: packed(1, object{plumbing.BlobObject, 10, zeros}), fault: "inflated"},
		{name: "a delta that makes much", pack: packed(1, delta(most+1)), large: "a file of more than 65536 bytes"},
		{name: "a delta that makes more than there is", pack: packed(1, delta(math.MaxUint64)), large: "a file of more than 65536 bytes"},
		{name: "deltas that make much", pack: packed(17, many(17, delta(most))...), large: "more than 1 MiB of files"},
		{name: "a delta of nothing", pack: packed(1, object{kind: plumbing.REFDeltaObject}), fault: "does not say what it makes"},
		{name: "objects without number", pack: packed(math.MaxUint32), large: "it has 4294967295 objects"},
		{name: "fewer than it says", pack: packed(2, blob(nil)), fault: "zlib"},
		{name: "no pack", pack: []byte("<html>"), fault: "malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := measure(bytes.NewReader(c.pack), most)
			switch {
			case c.large == "" && c.fault == "":
				if err != nil {
					t.Error(err)
				}
			case err == nil || errors.Is(err, ErrTooLarge) != (c.large != "") || !strings.Contains(err.Error(), c.large+c.fault):
				t.Errorf("%v, want %q (too large: %v)", err, c.large+c.fault, c.large != "")
			}
		})
	}
}

// FuzzMeasure: what a server sends is read to its end or refused.
func FuzzMeasure(f *testing.F) {
	f.Add(packed(2, blob([]byte("text")), delta(100)))
	f.Add(packed(1, object{plumbing.BlobObject, 1 << 62, []byte("x")}))
	f.Add(packed(1, delta(math.MaxUint64)))
	f.Add([]byte("PACK"))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if err := measure(bytes.NewReader(pack), 1<<10); err == nil && (len(pack) < 12 || string(pack[:4]) != "PACK") {
			t.Errorf("%q is taken for a pack", pack)
		}
	})
}

func TestFull(t *testing.T) {
	const most = 1000
	for _, c := range []struct {
		name  string
		most  int64
		packs []int64
		full  bool
	}{
		{"nothing", most, nil, false},
		{"history alone", most, []int64{1 << 20}, false},
		{"much, just allowed", most, []int64{8 * most, 1 << 20, 8 * most}, false},
		{"too much", most, []int64{8 * most, 1 << 20, 8*most + 1}, true},
		{"no bound", 0, []int64{1 << 20, 1 << 20}, false},
		{"many", 0, make([]int64, manyPacks+1), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "objects", "pack")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for i, n := range c.packs {
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i, ".pack")), make([]byte, n), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := full(dir, c.most); got != c.full {
				t.Errorf("full is %v, want %v", got, c.full)
			}
		})
	}
}

// zeros yields zeros for ever, and counts them.
type zeros struct{ n int64 }

func (z *zeros) Read(b []byte) (int, error) {
	clear(b)
	z.n += int64(len(b))
	return len(b), nil
}

// A pack without an end is read no further than it may be, and nothing of it is
// left on the disk.
func TestTakeEndless(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 20
	endless := &zeros{}
	err := take(dir, nil, io.MultiReader(strings.NewReader("PACK"), endless), most)
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "more than 1 MiB that its base branch has not") {
		t.Errorf("%v, want an ErrTooLarge", err)
	}
	if endless.n > most+1<<20 {
		t.Errorf("%d bytes were read, %d are allowed", endless.n, most)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "objects", "pack")); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}
