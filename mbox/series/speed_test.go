package series

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"patchbench/mbox"
)

// archive makes a mailbox of n series of five patches, each of about 10 KB.
func archive(n int) []byte {
	rnd := rand.New(rand.NewPCG(1, 1))
	var out bytes.Buffer
	for s := range n {
		for p := 1; p <= 5; p++ {
			re := ""
			if p > 1 {
				re = fmt.Sprintf("In-Reply-To: <s%d.1@example.com>\nReferences: <s%d.1@example.com>\n", s, s)
			}
			fmt.Fprintf(&out, "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: Author %d <a%d@example.com>\nTo: dev@lists.example.com\nSubject: [PATCH %d/5] part%d: change %d\nDate: Mon, %d Jan 2024 10:%02d:00 +0000\nMessage-Id: <s%d.%d@example.com>\n%sList-Id: <dev.lists.example.com>\n\nWhy it is done.\n\nSigned-off-by: Author <a@example.com>\n---\n f.c | 9 +++\n\n",
				s%50, s%50, p, p, s, s%28+1, p, s, p, re)
			for f := range 3 {
				fmt.Fprintf(&out, "diff --git a/dir/f%d.c b/dir/f%d.c\nindex 0123456..89abcde 100644\n--- a/dir/f%d.c\n+++ b/dir/f%d.c\n", f, f, f, f)
				for h := range 8 {
					fmt.Fprintf(&out, "@@ -%d,7 +%d,7 @@ static int fun(void)\n", h*20+1, h*20+1)
					for range 3 {
						fmt.Fprintf(&out, " \tcontext line number %d of the file;\n", rnd.IntN(1e6))
					}
					fmt.Fprintf(&out, "-\told line number %d of the file;\n+\tline number %d of the file;\n", rnd.IntN(1e6), rnd.IntN(1e6))
					out.WriteString(strings.Repeat(" \treturn the_same_thing_as_before(argument);\n", 3))
				}
			}
			out.WriteString("-- \n2.39.5\n\n")
		}
	}
	return out.Bytes()
}

// noMedium forgets what is put into it.
type noMedium struct{}

func (noMedium) Write(b []byte) (int, error)       { return len(b), nil }
func (noMedium) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

// kept gives how many bytes of memory a collector needs for each mail of an
// archive of series of five: all together while it gathers, and with the index.
func kept(t testing.TB, n int) (gathered, indexed float64) {
	t.Helper()
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what a first one finds dead may be freed by the next alone
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c := NewCollector(Options{Keeper: noMedium{}})
	before := live()
	for s := range n / 5 {
		for p := 1; p <= 5; p++ {
			m := mail{id: fmt.Sprintf("20240501100000.%d-%d-author@example.com", s, p), subject: fmt.Sprintf("[PATCH %d/5] part%d: change %d", p, s, p),
				from: fmt.Sprintf("Author %d <author%d@example.com>", s%50, s%50), body: change(fmt.Sprintf("dir/file%d.c", s), fmt.Sprint(p))}
			if p > 1 {
				m.re = fmt.Sprintf("20240501100000.%d-1-author@example.com", s)
			}
			if err := c.Add(m.message(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := live()
	if x := c.Index(); x.Len() != n/5 {
		t.Fatalf("%d series, want %d", x.Len(), n/5)
	}
	last := live()
	runtime.KeepAlive(c)
	return float64(after-before) / float64(n), float64(last-before) / float64(n)
}

// TestKeptOfAMail bounds what is at hand of a mail: an archive of a million would
// else need more memory than the machines have on which it is read.
func TestKeptOfAMail(t *testing.T) {
	const most = 560 // bytes, about twice what it is
	gathered, indexed := kept(t, 20_000)
	t.Logf("%.0f bytes a mail, %.0f with the index", gathered, indexed)
	if indexed > most || gathered > most {
		t.Errorf("%.0f bytes a mail, %.0f with the index; want %d at most", gathered, indexed, most)
	}
}

// BenchmarkKept tells how many bytes are at hand of a mail.
func BenchmarkKept(b *testing.B) {
	for b.Loop() {
		gathered, indexed := kept(b, 20_000)
		b.ReportMetric(gathered, "B/mail")
		b.ReportMetric(indexed, "B/mail-indexed")
	}
}

// BenchmarkArchive reads, decodes and assembles a mailbox.
func BenchmarkArchive(b *testing.B) {
	data := archive(400)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		c := NewCollector(Options{DropDiffs: true})
		r := mbox.NewReader(bytes.NewReader(data), "archive.mbox")
		for {
			m, p, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || p != nil {
				b.Fatal(p, err)
			}
			c.Add(m)
		}
		if l := must(c.Listing()); len(l.Series) != 400 {
			b.Fatalf("%d series", len(l.Series))
		}
	}
}
