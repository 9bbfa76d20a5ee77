package tree_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

func open(t testing.TB, dir string) *tree.Repo {
	t.Helper()
	r, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// lines gives n numbered lines.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line " + string(rune('a'+i%26)) + strings.Repeat("'", i/26) + "\n")
	}
	return b.String()
}

func patch(n int, diff string) mbox.Patch {
	return mbox.Patch{N: n, Subject: "change it", Message: "change it\n\nBecause.\n", Diff: []byte(diff),
		Author: mbox.Address{Name: "Ada", Email: "ada@example.com"},
		Date:   time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 3600))}
}

func one(diffs ...string) *mbox.Series {
	s := &mbox.Series{MessageID: "x@example.com", Version: 1, Total: len(diffs), Complete: true}
	for i, d := range diffs {
		s.Patches = append(s.Patches, patch(i+1, d))
	}
	return s
}

const addHello = `diff --git a/hello b/hello
new file mode 100644
index 0000000..ce01362
--- /dev/null
+++ b/hello
@@ -0,0 +1 @@
+hello
`

// TestFuzz leaves context out only where nothing better is to be had, and says so.
func TestFuzz(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(20), "sums": "one\ntwo\nthree\nfour\nfive\n", "gone": "x\ny\n"})
	base := mbox.Base{Commit: commit(t, dir, "base"), How: mbox.HowFlag}
	blob := git(t, dir, "rev-parse", "HEAD:sums")
	put(t, dir, map[string]string{"sums": "ONE\ntwo\nthree\nfour\nfive\n"})
	drifted := mbox.Base{Commit: commit(t, dir, "drifted"), How: mbox.HowFlag}
	r := open(t, dir)
	const (
		body    = "--- a/sums\n+++ b/sums\n@@ -1,4 +1,4 @@\n one\n-two\n+TWO\n three\n four\n"
		offset  = "--- a/a.c\n+++ b/a.c\n@@ -8,3 +8,3 @@\n line j\n-line k\n+line K\n line l\n"
		notGood = "--- a/sums\n+++ b/sums\n@@ -1,4 +1,4 @@\n one\n-zwei\n+TWO\n three\n four\n"
		there   = "--- a/sums\n+++ b/sums\n@@ -1,4 +1,4 @@\n-one\n+ONE\n two\n three\n four\n"
		deletes = "--- a/gone\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-x\n-y\n-z\n"
		// Its blob is known, so that it can be merged, but one is a neighbour.
		merge = "--- a/sums\n+++ b/sums\n@@ -1,5 +1,5 @@\n one\n two\n three\n-four\n+FOUR\n five\n"
	)
	index := "diff --git a/sums b/sums\nindex " + blob + ".." + strings.Repeat("12", 20) + " 100644\n"
	for _, c := range []struct {
		name  string
		base  mbox.Base
		diff  string
		fuzz  int
		how   string // "" for a conflict
		notes []string
	}{
		{"clean", base, body, 3, "clean", nil},
		{"offset", base, offset, 3, "offset", []string{"a.c: hunk 1 applied at an offset of +2 lines"}},
		{"merged", drifted, index + merge, 3, "three-way", nil},
		{"not asked for", drifted, body, 0, "", nil},
		{"too little", drifted, strings.Replace(merge, "two", "zwei", 1), 1, "", nil},
		{"fuzz", drifted, body, 2, "fuzz", []string{"sums: hunk 1 applied with fuzz 2 at an offset of +0 lines: not all of its context is in the file"}},
		{"not what it changes", drifted, notGood, 3, "", nil},
		{"in the base already", drifted, there, 3, "clean", []string{"the patch is in the base already"}},
		{"deletes another file than there is", base, deletes, 3, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := r.Apply(t.Context(), c.base, one(c.diff), tree.Options{Fuzz: c.fuzz})
			if err != nil {
				t.Fatal(err)
			}
			how, notes := "", []string{}
			if st.Conflict == nil {
				how, notes = st.Steps[0].How, st.Steps[0].Notes
			}
			if how != c.how || c.notes != nil && !cmp.Equal(notes, c.notes) {
				t.Errorf("%q with notes %q, want %q with %q; conflict %+v", how, notes, c.how, c.notes, st.Conflict)
			}
		})
	}
}

// TestRefused holds every kind of patch that must not apply against the reason
// that it gives. A name that is refused leaves nothing applied.
func TestRefused(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(20), "dir/b.c": lines(5), "crlf": strings.ReplaceAll(lines(6), "\n", "\r\n")})
	if err := os.Symlink("dir", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	base := mbox.Base{Commit: commit(t, dir, "base"), How: mbox.HowFlag}
	r := open(t, dir)
	create := func(name string) string {
		return "diff --git " + name + " " + strings.Replace(name, "a/", "b/", 1) + "\nnew file mode 100644\nindex 0000000..ce01362\n--- /dev/null\n+++ " +
			strings.Replace(name, "a/", "b/", 1) + "\n@@ -0,0 +1 @@\n+hello\n"
	}
	for _, c := range []struct {
		name, diff string
		path       string
		hunk, line int
		reason     string // part of it
	}{
		{"parent folder", create("a/../../etc/x"), "../../etc/x", 0, 0, `path "../../etc/x" leaves the repository`},
		{"dot git", create("a/.git/hooks/post-checkout"), ".git/hooks/post-checkout", 0, 0, `path component ".git" is reserved`},
		{"dot git in capitals", create("a/sub/.Git/config"), "sub/.Git/config", 0, 0, `".Git" is reserved`},
		{"dot git with an ignored code point", create("\"a/.g\\342\\200\\214it/config\""), ".g\u200cit/config", 0, 0, "is reserved"},
		{"dot git with a byte order mark", create("\"a/\\357\\273\\277.git/config\""), "\ufeff.git/config", 0, 0, "is reserved"},
		{"dot git as a short name", create("a/GIT~1/config"), "GIT~1/config", 0, 0, "is reserved"},
		{"dot git with dots behind", create("a/.git. ./x"), ".git. ./x", 0, 0, "is reserved"},
		{"dot git as a stream", create("a/.git::$INDEX_ALLOCATION/x"), ".git::$INDEX_ALLOCATION/x", 0, 0, "is reserved"},
		{"backslash", create(`"a/..\\..\\x"`), `..\..\x`, 0, 0, "backslash"},
		{"drive", create("a/C:/x"), "C:/x", 0, 0, "drive letter"},
		{"absolute", create("a//etc/passwd"), "/etc/passwd", 0, 0, "absolute"},
		{"control character", create(`"a/x\033[1m"`), "x\x1b[1m", 0, 0, "control character"},
		{"rename out", "diff --git a/a.c b/../../b.c\nsimilarity index 100%\nrename from a.c\nrename to ../../b.c\n", "../../b.c", 0, 0, "leaves the repository"},
		{"copy into .git", "diff --git a/a.c b/.git/x\nsimilarity index 100%\ncopy from a.c\ncopy to .git/x\n", ".git/x", 0, 0, "is reserved"},
		{"through a link of the tree", create("a/link/evil"), "link/evil", 0, 0, `"link" is a symbolic link`},
		{"through a link of the same patch", "diff --git a/s b/s\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n" + create("a/s/f"), "s/f", 0, 0, "s is both a file and a directory"},
		{"below a file", create("a/a.c/f"), "a.c/f", 0, 0, "both a file and a directory"},
		{"file for a folder", create("a/dir"), "dir", 0, 0, "both a file and a directory"},
		{"odd mode", strings.Replace(addHello, "100644", "100777", 1), "hello", 0, 0, "unsupported file mode 100777"},
		{"folder mode", strings.Replace(addHello, "100644", "040000", 1), "hello", 0, 0, "unsupported file mode 040000"},
		{"exists", create("a/a.c"), "a.c", 0, 0, "already exists"},
		{"missing", "--- a/none.c\n+++ b/none.c\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n", "none.c", 0, 0, "does not exist in the tree"},
		{"context differs", "--- a/a.c\n+++ b/a.c\n@@ -4,4 +4,4 @@\n line d\n line other\n-line f\n+line F\n line g\n", "a.c", 1, 5, "context differs at line 5"},
		{"second hunk", "--- a/a.c\n+++ b/a.c\n@@ -2,3 +2,3 @@\n line b\n-line c\n+line C\n line d\n@@ -12,3 +12,3 @@\n line l\n-line M\n+line m\n line n\n", "a.c", 2, 13, "context differs at line 13"},
		{"white space", "--- a/a.c\n+++ b/a.c\n@@ -4,3 +4,3 @@\n line d\n-line e\n+line E\n line\tf\n", "a.c", 1, 6, "only white space differs"},
		{"line ends", "--- a/crlf\n+++ b/crlf\n@@ -1,3 +1,3 @@\n line a\n-line b\n+line B\n line c\n", "crlf", 1, 1, "CRLF"},
		{"no context", "--- a/a.c\n+++ b/a.c\n@@ -5 +5 @@\n-line e\n+line E\n", "a.c", 1, 5, "diff -U0"},
		{"not at the start", "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n line d\n-line e\n+line E\n line f\n", "a.c", 1, 4, "belongs at the start of the file"},
		{"not at the end", "--- a/a.c\n+++ b/a.c\n@@ -10,3 +10,3 @@\n line j\n line k\n-line l\n+line L\n", "a.c", 1, 12, "belongs at the end of the file"},
		{"no numbers", "--- a/a.c\n+++ b/a.c\n@@ -18446744073709551616 +1 @@\n-x\n+y\n", "a.c", 0, 0, "line 3 of the patch: corrupt hunk: its @@ line cannot be read"},
		{"empty hunk", "--- a/a.c\n+++ b/a.c\n@@ -0,0 +0,0 @@\n", "a.c", 0, 0, "line 4 of the patch: corrupt hunk: it changes nothing"},
		{"hunk without a file", "x\n@@ -1 +1 @@\n-x\n+y\n", "", 0, 0, "line 2 of the patch: hunk without a file header"},
		{"cut short", "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n line a\n", "a.c", 0, 0, "the patch ends inside it"},
		{"combined", "diff --cc a.c\nindex 1,2..3\n--- a/a.c\n+++ b/a.c\n@@@ -1,1 -1,1 +1,1 @@@\n  x\n", "", 0, 0, "combined diff"},
		{"binary without data", "diff --git a/a.c b/a.c\nindex 1234567..89abcde 100644\nBinary files a/a.c and b/a.c differ\n", "a.c", 0, 0, "no full index line"},
		{"link for a file", "diff --git a/a.c b/a.c\nindex 1234567..89abcde 120000\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-x\n+y\n", "a.c", 0, 0, "the file is a regular file in the tree, the patch is for a symbolic link"},
		{"a long line", "--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n-x\n+" + strings.Repeat("x", 2<<20) + "\n", "", 0, 0, "line 5 of the patch: line longer than 1 MiB"},
		{"many hunks", "--- a/a.c\n+++ b/a.c\n" + strings.Repeat("@@ -1 +1 @@\n-x\n+y\n", 20500), "a.c", 0, 0, "patch has 20500 hunks, limit 20000"},
		{"a bomb", "diff --git a/z b/z\nnew file mode 100644\nindex 0000000..1234567\nGIT binary patch\nliteral 1073741824\nzc${NkU}\n", "z", 0, 0, "binary patch inflates to 1 GiB, limit 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := r.Apply(t.Context(), base, one(c.diff, addHello), tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if st.Conflict == nil || len(st.Steps) != 0 {
				t.Fatalf("applied: %+v", st.Steps)
			}
			got := st.Conflict.Files[0]
			if st.Conflict.N != 1 || !cmp.Equal(st.NotTried, []int{2}) {
				t.Errorf("conflict at %d, not tried %v", st.Conflict.N, st.NotTried)
			}
			if got.Path != c.path || got.Hunk != c.hunk || got.Line != c.line || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("got %q hunk %d line %d: %s\nwant %q hunk %d line %d: %s", got.Path, got.Hunk, got.Line, got.Reason, c.path, c.hunk, c.line, c.reason)
			}
		})
	}
}

// TestNamesFirst refuses the whole series for a name in its last patch.
func TestNamesFirst(t *testing.T) {
	dir := newRepo(t)
	base := mbox.Base{Commit: commit(t, dir, "base")}
	st, err := open(t, dir).Apply(t.Context(), base, one(addHello, strings.ReplaceAll(addHello, "hello", "../hello")), tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Steps) != 0 || st.Conflict == nil || st.Conflict.N != 2 || !cmp.Equal(st.NotTried, []int{1}) {
		t.Errorf("steps %v, conflict %+v, not tried %v", st.Steps, st.Conflict, st.NotTried)
	}
}

// TestApply checks the whole of a stack, and that the repository is not written.
func TestApply(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(20)})
	base := commit(t, dir, "base")
	before := git(t, dir, "count-objects", "-v")
	edit := "--- a/a.c\n+++ b/a.c\n@@ -9,3 +9,3 @@\n line b\n-line c\n+line C\n line d\n"
	s := one(addHello, edit, "", edit, strings.Replace(edit, "line d", "line z", 1), addHello)
	s.Patches[5].N, s.Total = 7, 7
	r := open(t, dir)
	st, err := r.Apply(t.Context(), mbox.Base{Commit: base, How: mbox.HowFlag, Reason: "named"}, s, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Steps) != 4 {
		t.Fatalf("%d steps, conflict %+v", len(st.Steps), st.Conflict)
	}
	var notes [][]string
	var how []string
	for _, step := range st.Steps {
		notes, how = append(notes, step.Notes), append(how, step.How)
	}
	wantNotes := [][]string{{}, {"a.c: hunk 1 applied at an offset of -7 lines"}, {"the patch is empty"}, {"the patch is in the base already"}}
	if d := cmp.Diff(wantNotes, notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"clean", "offset", "clean", "clean"}, how); d != "" {
		t.Errorf("how (-want +got):\n%s", d)
	}
	if st.Steps[1].Commit != st.Steps[3].Commit || st.Steps[0].Commit == st.Steps[1].Commit {
		t.Errorf("commits: %+v", st.Steps)
	}
	if st.Steps[1].Added != 1 || st.Steps[1].Deleted != 1 || st.Steps[3].Added != 0 {
		t.Errorf("lines: %+v", st.Steps)
	}
	if st.Conflict == nil || st.Conflict.N != 5 || !cmp.Equal(st.NotTried, []int{7}) {
		t.Errorf("conflict %+v, not tried %v", st.Conflict, st.NotTried)
	}
	for i, want := range [][]string{{"hello"}, {"a.c"}, nil, nil} {
		before := st.Base.Commit
		if i > 0 {
			before = st.Steps[i-1].Commit
		}
		if got, err := r.Changed(before, st.Steps[i].Commit); err != nil || !cmp.Equal(got, want) {
			t.Errorf("step %d changes %v, %v; want %v", i+1, got, err, want)
		}
	}
	data, err := r.Files(st.Steps[0].Commit, "hello")
	if err != nil || string(data) != "hello\n" {
		t.Errorf("hello: %q, %v", data, err)
	}
	if _, err := r.Files(base, "hello"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("hello in the base: %v", err)
	}
	if after := git(t, dir, "count-objects", "-v"); before != after {
		t.Errorf("the repository was written:\n%s\n%s", before, after)
	}
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"base", "prerequisites", "steps", "conflict", "not_tried"} {
		if keys[k] == nil {
			t.Errorf("JSON has no %s: %s", k, text)
		}
	}
}

// TestHole applies what stands before a missing patch.
func TestHole(t *testing.T) {
	dir := newRepo(t)
	base := mbox.Base{Commit: commit(t, dir, "base")}
	s := one(addHello, strings.ReplaceAll(addHello, "hello", "world"))
	s.Patches[1].N, s.Total, s.Complete, s.Missing = 3, 3, false, []int{2}
	st, err := open(t, dir).Apply(t.Context(), base, s, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Steps) != 1 || st.Conflict != nil || !cmp.Equal(st.NotTried, []int{3}) {
		t.Errorf("%+v", st)
	}
}

// TestCommitObject holds the commit that is written against what git makes of it.
func TestCommitObject(t *testing.T) {
	dir := newRepo(t)
	base := mbox.Base{Commit: commit(t, dir, "base")}
	s := one(addHello)
	s.Patches[0].Author.Name = "Eve <a@b>\nX"
	r := open(t, dir)
	st, err := r.Apply(t.Context(), base, s, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := r.Pristine(filepath.Join(t.TempDir(), "pristine")).Checkout(t.Context(), st.Steps[0].Commit, out); err != nil {
		t.Fatal(err)
	}
	// The same tree and commit, made by git, must have the ids that ours have.
	put(t, dir, map[string]string{"hello": "hello\n"})
	git(t, dir, "add", "-A")
	written := git(t, dir, "write-tree")
	text := "tree " + written + "\nparent " + base.Commit + "\nauthor Eve a@bX <ada@example.com> 1777892400 +0100\n" +
		"committer Patchbench <patchbench@localhost> 1777892400 +0100\n\nchange it\n\nBecause.\n"
	made, err := tryGit(dir, []byte(text), "hash-object", "-t", "commit", "-w", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if got := st.Steps[0]; got.Tree != written || got.Commit != strings.TrimSpace(made) {
		t.Errorf("tree %s, git %s; commit %s, git %s", got.Tree, written, got.Commit, made)
	}
	git(t, dir, "fsck", "--strict")
}

// TestSubmodule records a submodule's commit and says so.
func TestSubmodule(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": "a\n"})
	base := mbox.Base{Commit: commit(t, dir, "base")}
	id := strings.Repeat("12345678", 5)
	add := "diff --git a/sub b/sub\nnew file mode 160000\nindex 0000000..1234567\n--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit " + id + "\n" +
		"diff --git a/.gitmodules b/.gitmodules\nnew file mode 100644\n--- /dev/null\n+++ b/.gitmodules\n@@ -0,0 +1,2 @@\n+[submodule \"sub\"]\n+\turl = ext::sh -c 'exit 1'\n"
	r := open(t, dir)
	st, err := r.Apply(t.Context(), base, one(add), tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if st.Conflict != nil || !cmp.Equal(st.Submodules, []int{1}) || len(st.Steps[0].Notes) != 1 {
		t.Fatalf("%+v", st)
	}
	out := t.TempDir()
	if err := r.Pristine(filepath.Join(t.TempDir(), "pristine")).Checkout(t.Context(), st.Steps[0].Commit, out); err != nil {
		t.Fatal(err)
	}
	if names, err := os.ReadDir(filepath.Join(out, "sub")); err != nil || len(names) != 0 {
		t.Errorf("sub: %v, %v", names, err)
	}
}
