package diff

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// shared is the folder of recorded cases beside the project; the test is skipped
// where there is none, except in CI.
func shared(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PATCHBENCH_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "cases")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no recorded cases: %v", err)
	}
	return filepath.Join(dir, "cases")
}

// gitApply is what git apply makes of two recorded cases whose own answer is
// another; git is the oracle.
var gitApply = map[string]string{
	"go-gitdiff:text_fragment_change_middle.patch": "f8caccedfdd6a5cd2d213871cfd6d9e5aa0256f7203947c61562c6bc2aa83c96",
	"go-gitdiff:text_fragment_change_exact.patch":  "d0b764dcf3df14a4b50c0544e7afaed3af7540c8c7abf265d2132e91a6fa39a3",
}

// TestFragments applies recorded patches to recorded files.
func TestFragments(t *testing.T) {
	dir := filepath.Join(shared(t), "mail")
	text, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	type record struct {
		ID, Kind, File string
		Expect         json.RawMessage
	}
	var cases []record
	if err := json.Unmarshal(text, &cases); err != nil {
		var whole struct{ Cases []record }
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		cases = whole.Cases
	}
	ran := 0
	for _, c := range cases {
		if c.Kind != "apply-fragment" {
			continue
		}
		ran++
		t.Run(c.ID, func(t *testing.T) {
			var expect struct {
				Src    string
				Error  bool
				SHA256 string `json:"out_sha256"`
			}
			if err := json.Unmarshal(c.Expect, &expect); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, c.File))
			if err != nil {
				t.Fatal(err)
			}
			src, err := os.ReadFile(filepath.Join(dir, filepath.Dir(c.File), expect.Src))
			if err != nil {
				t.Fatal(err)
			}
			if git, ok := gitApply[c.ID]; ok {
				expect.SHA256 = git
			}
			// Git knows no header without a line behind it.
			text = bytes.Replace(text, []byte("\nGIT binary"), []byte("\nindex 1..2\nGIT binary"), 1)
			var out []byte
			files, err := Parse(text, Guess)
			switch {
			case err != nil:
			case len(files) != 1:
				t.Fatalf("%d files", len(files))
			case files[0].Binary != nil:
				out, err = files[0].Binary.Apply(src)
			default:
				out, _, err = files[0].Text(context.Background(), src, 0)
				if err == nil && files[0].Create == Yes && len(src) > 0 {
					return // refused by whoever knows that the file is there
				}
			}
			if (err != nil) != expect.Error {
				t.Fatalf("error %v, expected %v", err, expect.Error)
			}
			if sum := sha256.Sum256(out); !expect.Error && hex.EncodeToString(sum[:]) != expect.SHA256 {
				t.Errorf("other bytes:\n%s", out)
			}
		})
	}
	if ran == 0 {
		t.Error("no case of the kind apply-fragment")
	}
}

// TestParse reads headers of every kind.
func TestParse(t *testing.T) {
	hunk := "@@ -1 +1 @@\n-a\n+b\n"
	created := "@@ -0,0 +1 @@\n+b\n"
	type file struct {
		Old, New         string
		OldMode, NewMode uint32
		Create, Delete   Maybe
		Rename, Copy     bool
		Hunks            int
	}
	for _, c := range []struct {
		name, text string
		want       []file
	}{
		{"git", "diff --git a/x b/x\nindex 123..456 100644\n--- a/x\n+++ b/x\n" + hunk, []file{{Old: "x", New: "x", OldMode: 0o100644, Hunks: 1}}},
		{"blanks in a name", "diff --git a/x y b/x y\nindex 1..2\n--- a/x y\t\n+++ b/x y\t\n" + hunk, []file{{Old: "x y", New: "x y", Hunks: 1}}},
		{"quoted", "diff --git \"a/t\\303\\244\\t\" \"b/t\\303\\244\\t\"\nnew file mode 100755\nindex 0..2\n", []file{{New: "tä\t", NewMode: 0o100755, Create: Yes}}},
		{"mode only", "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", []file{{Old: "x", New: "x", OldMode: 0o100644, NewMode: 0o100755}}},
		{"rename", "diff --git a/x b/d/y\nsimilarity index 100%\nrename from x\nrename to d/y\n", []file{{Old: "x", New: "d/y", Rename: true}}},
		{"empty file deleted", "diff --git a/x b/x\ndeleted file mode 100644\nindex e69de29..0000000\n", []file{{Old: "x", OldMode: 0o100644, Delete: Yes}}},
		{"two files and text around", "words\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n" + hunk + "-- \n2.39\nmore\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n" + hunk,
			[]file{{Old: "x", New: "x", Hunks: 1}, {Old: "y", New: "y", Hunks: 1}}},
		{"plain", "--- a/d/x\t2020-01-01 00:00:00\n+++ b/d/x\t2020-01-01 00:00:00\n" + hunk, []file{{Old: "d/x", New: "d/x", Hunks: 1, Delete: No, Create: No}}},
		{"plain without folders", "--- x.orig\n+++ x\n" + hunk, []file{{Old: "x", New: "x", Hunks: 1}}},
		{"plain, made", "--- /dev/null\n+++ b/x\n" + created, []file{{New: "x", Create: Yes, Hunks: 1}}},
		{"plain, made, by date", "--- a/x\t1970-01-01 01:00:00.000000000 +0100\n+++ b/x\t2020-01-01 00:00:00.000000000 +0000\n" + created, []file{{New: "x", Create: Yes, Hunks: 1}}},
		{"hg", "diff -r 0123456789ab -r 123456789abc x\n--- a/x\tThu Jan 01 00:00:00 1970 +0000\n+++ b/x\tFri Jan 02 00:00:00 1970 +0000\n" + hunk, []file{{Old: "x", New: "x", Hunks: 1}}},
		{"svn", "Index: x\n=======\n--- x\t(revision 1)\n+++ x\t(working copy)\n" + hunk, []file{{Old: "x", New: "x", Hunks: 1}}},
		{"plain, perhaps made", "--- a/x\n+++ b/x\n" + created, []file{{Old: "x", New: "x", Create: Unknown, Delete: No, Hunks: 1}}},
		{"crlf headers", "diff --git a/x b/x\r\nindex 1..2 100644\r\n--- a/x\r\n+++ b/x\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n", []file{{Old: "x", New: "x", OldMode: 0o100644, Hunks: 1}}},
		{"no diff", "just words\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, err := Parse([]byte(c.text), Guess)
			if err != nil {
				t.Fatal(err)
			}
			var got []file
			for _, f := range files {
				got = append(got, file{f.Old, f.New, f.OldMode, f.NewMode, f.Create, f.Delete, f.Rename, f.Copy, len(f.Hunks)})
			}
			if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestBinaryLies refuses data that is not what it declares.
func TestBinaryLies(t *testing.T) {
	z := func(s string) []byte { return deflate(t, []byte(s)) }
	for _, c := range []struct {
		name string
		b    Binary
		want string
	}{
		{"longer", Binary{Size: 3, Data: z(strings.Repeat("x", 1<<20))}, "longer than declared"},
		{"shorter", Binary{Size: 30, Data: z("x")}, "shorter than declared"},
		{"no zlib", Binary{Size: 3, Data: []byte("xxxxxx")}, "cannot be inflated"},
		{"delta past the base", Binary{Delta: true, Size: 5, Data: z("\x03\x08\x91\x02\x08")}, "does not fit"},
		{"delta of another base", Binary{Delta: true, Size: 5, Data: z("\x09\x02\x02xx")}, "does not fit"},
		{"delta of a giant", Binary{Delta: true, Size: 7, Data: z("\x03\xff\xff\xff\xff\x7f\x01")}, "limit 16 MiB"},
		{"empty delta", Binary{Delta: true, Size: 0, Data: z("")}, "broken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.b.Apply([]byte("abc")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// FuzzParse reads anything; what is read must apply or be refused without a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte("diff --git a/x b/x\nindex 123..456 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n"), []byte("a\nc\n"))
	f.Add([]byte("--- \"a/\\303\\244\"\t1970-01-01 00:00:00 +0000\n+++ x\n@@ -0,0 +1 @@\n+b\n\\ No newline at end of file\n"), []byte(""))
	f.Add([]byte("diff --git a/x b/x\nGIT binary patch\ndelta 4\nLcmYdfNJ<6(0<Qrl\n\n"), []byte("a"))
	f.Fuzz(func(t *testing.T, text, src []byte) {
		files, err := Parse(text, Guess)
		SameHeaders(text)
		if err != nil {
			return
		}
		for i := range files {
			if files[i].Binary != nil {
				if _, err := files[i].Binary.Apply(src); err != nil {
					continue
				}
			}
			if _, _, err := files[i].Text(t.Context(), src, 0); err == nil && len(files[i].Hunks) > 0 {
				// What was applied can be turned round, and that must not panic.
				if back, err := files[i].Reverse(); err == nil {
					back.Text(t.Context(), src, 0)
				}
			}
		}
	})
}

func deflate(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
