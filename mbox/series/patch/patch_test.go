package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"patchbench/mbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestFind reads each mail in testdata/mail and compares what was found with
// the file `want` beside it.
func TestFind(t *testing.T) {
	files, err := filepath.Glob("testdata/mail/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var mail, want []byte
			for _, f := range ar.Files {
				switch f.Name {
				case "mail":
					mail = f.Data
				case "want":
					want = f.Data
				}
			}
			got := describe(Find(parse(t, string(mail)), Options{}))
			if *update {
				ar.Files = []txtar.File{{Name: "mail", Data: mail}, {Name: "want", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(ar), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// describe tells all of a mail's content.
func describe(c Content) string {
	var out strings.Builder
	for i, f := range c.Patches {
		p := f.Patch
		fmt.Fprintf(&out, "patch %d: number %d of %d, version %d, %s\n", i+1, f.Subject.N, f.Subject.Total, f.Subject.Version, p.Style)
		fmt.Fprintf(&out, "author: %s\ndate: %s\nfiles: %s\n", p.Author, p.Date.Format(time.RFC3339), strings.Join(p.Files, ", "))
		if p.Node != "" {
			fmt.Fprintf(&out, "node: %s, parent: %s\n", p.Node, p.Parent)
		}
		fmt.Fprintf(&out, "message:\n%snotes: %q\ndiff:\n%s", indent(p.Message), p.Notes, indent(string(p.Diff)))
	}
	if len(c.Patches) == 0 {
		out.WriteString("text:\n" + indent(c.Text))
	}
	return out.String()
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "\t" + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n\t") + "\n"
}

// TestKeepsDiffBytes has a message and a diff in different charsets.
func TestKeepsDiffBytes(t *testing.T) {
	diff := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-caf\xe9\n+th\xe9\x00\n"
	m := parse(t, "From: =?iso-8859-2?q?Jan_=C8ern=FD?= <jan@example.cz>\nSubject: [PATCH] =?utf-8?b?xI1haiDEjQ==?=\n =?utf-8?b?YWo=?=\nContent-Type: text/plain; charset=iso-8859-2\nContent-Transfer-Encoding: 8bit\n\nP\xf8\xedli\xb9.\n---\n"+diff)
	p := Find(m, Options{}).Patches[0].Patch
	if !bytes.Equal(p.Diff, []byte(diff)) {
		t.Errorf("diff %q", p.Diff)
	}
	if want := "čaj čaj\n\nPříliš.\n"; p.Message != want {
		t.Errorf("message %q, want %q", p.Message, want)
	}
	if want := (mbox.Address{Name: "Jan Černý", Email: "jan@example.cz"}); p.Author != want {
		t.Errorf("author %v, want %v", p.Author, want)
	}
	sum := sha256.Sum256([]byte(diff))
	if p.DiffSHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("hash %s", p.DiffSHA256)
	}
}

func TestCharsetFallbacks(t *testing.T) {
	for charset, body := range map[string]string{
		"none": "na\xefve", "x-evil": "na\xefve", "utf-8": "na\xefve", "us-ascii": "na\xc3\xafve", "": "na\xefve", "UTF-8": "na\xc3\xafve", "iso-8859-1": "na\xefve", "windows-1252": "na\xefve",
	} {
		head := "From: A U Thor <author@example.com>\nSubject: [PATCH] x\n"
		if charset != "" {
			head += "Content-Type: text/plain; charset=" + charset + "\n"
		}
		p := Find(parse(t, head+"\n"+body+"\n---\n"+change("f", "1")), Options{}).Patches[0].Patch
		if p.Message != "x\n\nnaïve\n" {
			t.Errorf("charset %q: message %q", charset, p.Message)
		}
	}
}

// TestDiffEnds has what follows a diff without being part of it.
func TestDiffEnds(t *testing.T) {
	one := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
	for _, tc := range []struct{ name, text, diff, files string }{
		{"signature", one + "-- \n2.39\n", one, "f"},
		{"footer that looks like a deletion", one + "- list footer\n-- \nx\n", one, "f"},
		{"last line deleted is --", "--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n-- \n-- \n2.39\n", "--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n-- \n", "f"},
		{"no newline", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n-- \n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "f"},
		{"trimmed context", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n\n\nfooter\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n\n", "f"},
		{"words between files", one + "\nand now\n\ndiff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\nbye\n", one + "\nand now\n\ndiff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", "f y"},
		{"mode", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "x"},
		{"binary", "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 3\nKcmZQzWMT#Y01f~L\n\n-- \n2.39\n", "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 3\nKcmZQzWMT#Y01f~L\n\n", "x"},
		{"binary files differ", "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\nbye\n", "diff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n", "x"},
		{"quoted name", "diff --git \"a/t\\303\\244st\" \"b/t\\303\\244st\"\nnew file mode 100644\nindex 0000000..e69de29\n", "diff --git \"a/t\\303\\244st\" \"b/t\\303\\244st\"\nnew file mode 100644\nindex 0000000..e69de29\n", "täst"},
		{"name with a blank", "diff --git a/a b b/a b\nnew file mode 100644\nindex 0000000..e69de29\n", "diff --git a/a b b/a b\nnew file mode 100644\nindex 0000000..e69de29\n", "a b"},
		{"deleted", "--- a/f\t2024-01-01\n+++ /dev/null\t1970-01-01\n@@ -1 +0,0 @@\n-a\n", "--- a/f\t2024-01-01\n+++ /dev/null\t1970-01-01\n@@ -1 +0,0 @@\n-a\n", "f"},
		{"Index", "Index: dir/f\n=====\n--- dir/f\t(revision 1)\n+++ dir/f\t(working copy)\n@@ -1 +1 @@\n-a\n+b\n", "Index: dir/f\n=====\n--- dir/f\t(revision 1)\n+++ dir/f\t(working copy)\n@@ -1 +1 @@\n-a\n+b\n", "dir/f"},
		{"hunk cut short", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-a\n+b\nwrapped\n c\n-- \n2.39\n", "--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n-a\n+b\nwrapped\n c\n", "f"},
		{"prose", "--- not a name\nbut prose\ndiff --git a/x b/x\nthat was all\n", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, ok := findDiff([]byte(tc.text))
			if ok != (tc.diff != "") {
				t.Fatalf("found: %t", ok)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff([]string{tc.diff, tc.files}, []string{tc.text[d.start:d.end], strings.Join(d.files, " ")}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{
		"From: a@b\nSubject: [PATCH] x\n\n---\n" + change("f", "1"),
		"# HG changeset patch\n# User a\n# Date 1 2\nx\n\ndiff -r 0 f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
		"From: a@b\n\n-- >8 --\nSubject: y\n\n" + change("f", "1"),
		"Subject: Re: x\n\nIndex: f\n--- f\n+++ f\n@@ -0,0 +1 @@\n+\n",
		"Subject: b\nFrom: a@b\n\ndiff --git a/x b/x\nindex 1..2\nGIT binary patch\ndelta 1\nAc\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := mbox.ParseMessage(raw, "fuzz")
		if err != nil {
			return
		}
		for _, found := range Find(m, Options{Scissors: true}).Patches {
			p := found.Patch
			if len(p.Diff) == 0 || strings.ToValidUTF8(p.Message, "") != p.Message {
				t.Errorf("diff of %d bytes, message %q", len(p.Diff), p.Message)
			}
			again, ok := findDiff(p.Diff)
			if !ok || again.start != 0 || again.end != len(p.Diff) {
				t.Errorf("a diff does not end where it ends: %d..%d of %d: %q", again.start, again.end, len(p.Diff), p.Diff)
			}
		}
	})
}

func parse(t *testing.T, mail string) *mbox.Message {
	t.Helper()
	m, err := mbox.ParseMessage([]byte(mail), "test")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// change is the diff of one line in a file.
func change(file, to string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+%[2]s\n", file, to)
}
