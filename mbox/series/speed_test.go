package series

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
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
