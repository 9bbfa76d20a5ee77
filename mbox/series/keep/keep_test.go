package keep

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// some makes mails with and without each of what a mail may have.
func some(rnd *rand.Rand, n int) []*Mail {
	text := func() string {
		return strings.Repeat("text\x00\xff ", rnd.IntN(4)*rnd.IntN(60))
	}
	texts := func() []string {
		var list []string
		for range rnd.IntN(3) {
			list = append(list, text())
		}
		return list
	}
	flag := func() bool { return rnd.IntN(2) == 0 }
	subject := func() patch.Subject {
		return patch.Subject{Text: text(), Tags: texts(), Version: rnd.IntN(9999), Minor: rnd.IntN(3), N: rnd.IntN(99), Total: rnd.IntN(99),
			HasVersion: flag(), Numbered: flag(), Patch: flag(), Pull: flag(), Resend: flag(), Reply: flag()}
	}
	date := func() time.Time {
		switch rnd.IntN(3) {
		case 0:
			return time.Time{}
		case 1:
			return time.Unix(rnd.Int64N(1<<33), 0).UTC()
		}
		return time.Unix(-rnd.Int64N(1<<33), 0).In(time.FixedZone("", rnd.IntN(86400)-43200))
	}
	address := func() mbox.Address { return mbox.Address{Name: text(), Email: text()} }
	var list []*Mail
	for range n {
		m := &Mail{Position: text(), Raw: text(), Subject: subject(), Author: address(), Date: date(), Lists: texts(), Text: text(),
			Hints: patch.Hints{BaseCommit: text(), Supersedes: text()}}
		for range rnd.IntN(3) {
			m.Hints.Prerequisites = append(m.Hints.Prerequisites, mbox.Prerequisite{PatchID: text(), MessageID: text()})
		}
		for range rnd.IntN(4) {
			f := patch.Found{Subject: subject(), Scissors: flag(), InBody: flag(), Patch: mbox.Patch{
				N: rnd.IntN(99), Author: address(), Date: date(), Subject: text(), Message: text(), Files: texts(), Style: "git",
				DiffSHA256: text(), Node: text(), Parent: text(), Notes: text()}}
			if flag() {
				f.Patch.Files = []string{}
			}
			if flag() {
				f.Patch.Diff = []byte(text())
			}
			m.Patches = append(m.Patches, f)
		}
		list = append(list, m)
	}
	return list
}

// TestStore puts mails and problems away and gets them back in any order, some
// while others are still to come.
func TestStore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	s := NewStore(nil)
	mails := some(rnd, 120)
	problems := make([]mbox.Problem, len(mails))
	at, atProblem := make([]int64, len(mails)), make([]int64, len(mails))
	for i, m := range mails {
		var err error
		if at[i], err = s.Put(m); err != nil {
			t.Fatal(err)
		}
		problems[i] = mbox.Problem{MessageID: m.Raw, Position: m.Position, Error: m.Text}
		if atProblem[i], err = s.PutProblem(problems[i]); err != nil {
			t.Fatal(err)
		}
		k := rnd.IntN(i + 1)
		if got, err := s.Get(at[k]); err != nil || !cmp.Equal(mails[k], got) {
			t.Fatalf("mail %d of %d: %v (-put +got):\n%s", k, i, err, cmp.Diff(mails[k], got))
		}
		if got, err := s.Problem(atProblem[k]); err != nil || got != problems[k] {
			t.Fatalf("problem %d of %d: %v, %+v", k, i, err, got)
		}
	}
	if s.written == 0 {
		t.Fatal("nothing was written to the medium")
	}
	for _, k := range rnd.Perm(len(mails)) {
		got, err := s.Get(at[k])
		if d := cmp.Diff(mails[k], got); d != "" || err != nil {
			t.Fatalf("mail %d: %v (-put +got):\n%s", k, err, d)
		}
	}
}

// failing is a medium that fails, or has lost what was put into it.
type failing struct {
	write error
	left  []byte
}

func (f *failing) Write(b []byte) (int, error) { return len(b), f.write }

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, f.left)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func TestStoreFails(t *testing.T) {
	large := &Mail{Text: strings.Repeat("x", bufferBytes)}
	full := errors.New("full")
	if _, err := NewStore(&failing{write: full}).Put(large); !errors.Is(err, full) {
		t.Errorf("error %v, want that of the medium", err)
	}
	for name, left := range map[string]string{
		"lost":      "",
		"too long":  "\xff\xff\xff\x7f" + strings.Repeat("x", firstRead),
		"cut off":   "\x00\x10\x00\x00" + strings.Repeat("x", firstRead-headBytes),
		"not ours":  "\x10\x00\x00\x00" + strings.Repeat("\xff", firstRead),
		"too short": "\x01\x00\x00\x00" + strings.Repeat("\x00", firstRead),
	} {
		s := NewStore(&failing{left: []byte(left)})
		at, err := s.Put(large)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := s.Get(at); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
		if p, err := s.Problem(at); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestNames(t *testing.T) {
	var n Names
	texts := []string{strings.Repeat("long", 16<<10)}
	for i := range 5000 {
		texts = append(texts, strings.Repeat("a", i%97)+string(rune('0'+i%10))+time.Unix(int64(i), 0).UTC().String())
	}
	numbers := make(map[string]uint32)
	for _, s := range append(texts, texts...) {
		at := n.Add(s)
		if old, ok := numbers[s]; ok && old != at {
			t.Fatalf("%.40q has the numbers %d and %d", s, old, at)
		}
		numbers[s] = at
	}
	if int(n.Len()) != len(texts) {
		t.Errorf("%d numbers for %d texts", n.Len(), len(texts))
	}
	for _, s := range texts {
		if at := n.Find(s); at != numbers[s] || n.Text(at) != s {
			t.Fatalf("%.40q has number %d, then %d of text %.40q", s, numbers[s], at, n.Text(at))
		}
		if want, got := strings.Compare(s, texts[1]), n.Compare(n.Find(s), n.Find(texts[1])); want != got {
			t.Fatalf("%.40q compares as %d, want %d", s, got, want)
		}
	}
	if n.Add("") != 0 || n.Find("absent") != 0 || n.Text(0) != "" || n.Compare(0, 1) != -1 || n.Compare(1, 0) != 1 {
		t.Error("no text or an absent one has a number")
	}
}

func TestListStays(t *testing.T) {
	var l List[int]
	first := l.Add(7)
	p := l.At(first)
	for i := range 10 * chunkEntries {
		if at := l.Add(i); int(at) != i+2 {
			t.Fatalf("entry %d at %d", i, at)
		}
	}
	*p = 8
	if *l.At(1) != 8 || *l.At(2) != 0 || l.Len() != 10*chunkEntries+1 {
		t.Errorf("%d, %d of %d entries", *l.At(1), *l.At(2), l.Len())
	}
}

// TestMemory reads across the pieces that were written.
func TestMemory(t *testing.T) {
	var m memory
	all := bytes.Repeat([]byte("0123456789"), 50)
	for from, n := 0, 1; from < len(all); from, n = from+n, n+1 {
		if _, err := m.Write(all[from:min(from+n, len(all))]); err != nil {
			t.Fatal(err)
		}
	}
	for from := range len(all) {
		for _, size := range []int{1, 9, 100} {
			b := make([]byte, size)
			n, err := m.ReadAt(b, int64(from))
			if want := all[from:min(from+size, len(all))]; !bytes.Equal(b[:n], want) || (err == io.EOF) != (n < size) {
				t.Fatalf("%d bytes from %d: %q, %v; want %q", size, from, b[:n], err, want)
			}
		}
	}
}
