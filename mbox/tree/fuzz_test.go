package tree_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"patchbench/mbox"
	"patchbench/mbox/tree"
	"patchbench/mbox/tree/diff"
)

// patches are what mutations start from.
var patches = []string{
	addHello,
	"--- a/a.c\n+++ b/a.c\n@@ -9,3 +9,3 @@\n line b\n-line c\n+line C\n line d\n",
	"diff --git a/a.c b/a.c\nindex 1234567..89abcde 100644\n--- a/a.c\n+++ b/a.c\n@@ -2,4 +2,5 @@ line a\n line b\n line c\n-line d\n+line D\n+line DD\n line e\n@@ -17,4 +18,3 @@\n line q\n line r\n line s\n-line t\n",
	"diff --git a/a.c b/d/new.c\nsimilarity index 90%\nrename from a.c\nrename to d/new.c\n--- a/a.c\n+++ b/d/new.c\n@@ -1,3 +1,3 @@\n-line a\n+line A\n line b\n line c\n",
	"diff --git a/a.c b/b.c\nsimilarity index 100%\ncopy from a.c\ncopy to b.c\ndiff --git a/a.c b/a.c\nold mode 100644\nnew mode 100755\n",
	"diff --git a/a.c b/d/x\nsimilarity index 100%\nrename from a.c\nrename to d/x\ndiff --git a/d/x b/a.c\nsimilarity index 100%\nrename from d/x\nrename to a.c\n",
	"diff --git a/d/x b/d/x\ndeleted file mode 100644\nindex 587be6b..0000000\n--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
	"diff --git a/link b/link\nindex 1..2 120000\n--- a/link\n+++ b/link\n@@ -1 +1 @@\n-d\n\\ No newline at end of file\n+e\n\\ No newline at end of file\n",
	"diff --git a/link b/link\ndeleted file mode 120000\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n\\ No newline at end of file\ndiff --git a/link b/link\nnew file mode 100644\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+now a file\n",
	"diff --git a/end b/end\n--- a/end\n+++ b/end\n@@ -1 +1,2 @@\n-no newline\n\\ No newline at end of file\n+no newline\n+more\n",
	"diff --git \"a/t\\303\\244st\" \"b/t\\303\\244st\"\nnew file mode 100755\n--- /dev/null\n+++ \"b/t\\303\\244st\"\n@@ -0,0 +1 @@\n+x\n",
	"Index: a.c\n===\n--- a.c\t2020-01-01 00:00:00.000000000 +0000\n+++ a.c\t2020-01-01 00:00:00 +0000\n@@ -1,2 +1,2 @@\n-line a\n+line A\n line b\n",
	"--- a/n.c\t1970-01-01 00:00:00.000000000 +0000\n+++ b/n.c\t2020-01-01 00:00:00 +0000\n@@ -0,0 +1,2 @@\n+a\n+b\n",
	"diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\ndiff --git a/d/x b/d/x\nindex 587be6b4c3f93f93c489c0111bba5596147a26cb..7a002a81f265a581625acf3db7b14ceb6c40b808 100644\nGIT binary patch\nliteral 2\nJcmb<m0002;0C@la\n\nliteral 2\nJcmb>60ssK~0D}Mk\n\n",
	"diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -3,3 +3,3 @@\n line c\n-line d\n+one\n line e\ndiff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -3,3 +3,3 @@\n line c\n-one\n+two\n line e\n",
	"--- a/a.c\n+++ b/a.c\n@@ -1,5 +1,5 @@\n line a\n line b\n-line c\n+line C\n line d\n line e\n@@ -4,5 +4,5 @@\n line d\n line e\n-line f\n+line F\n line g\n line h\n",
	"--- a/a.c\n+++ b/a.c\n@@ -7,3 +7,3 @@\n line b\n\n-line c\n+x\n",
}

// FuzzAgainstGitApply applies any text to a small tree, with us and with git
// apply: the same tree or both refuse.
func FuzzAgainstGitApply(f *testing.F) {
	for _, seed := range patches {
		f.Add([]byte(seed))
	}
	compare := comparison(f)
	f.Fuzz(func(t *testing.T, text []byte) { compare(t, text) })
}

// TestMutated does the same with patches of which lines were changed, left out,
// doubled and swapped.
func TestMutated(t *testing.T) {
	compare := comparison(t)
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		list := strings.SplitAfter(patches[rng.IntN(len(patches))], "\n")
		if rng.IntN(3) == 0 {
			list = append(list[:len(list)-1], strings.SplitAfter(patches[rng.IntN(len(patches))], "\n")...)
		}
		for range 1 + rng.IntN(2) {
			i, k := rng.IntN(len(list)), rng.IntN(len(list))
			switch rng.IntN(6) {
			case 0:
				list[i] = list[k]
			case 1:
				list = append(list[:i:i], list[min(i+1, len(list)-1):]...)
			case 2:
				list[i], list[k] = list[k], list[i]
			case 3:
				list = append(list[:i:i], append([]string{list[k]}, list[i:]...)...)
			default:
				if b := []byte(list[i]); len(b) > 1 {
					b[rng.IntN(len(b)-1)] = " +-@1234abx/\\."[rng.IntN(14)]
					list[i] = string(b)
				}
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			compare(t, []byte(strings.TrimSuffix(strings.Join(list, ""), "\n")+"\n"))
		})
	}
}

// comparison makes a small repository and gives what holds a patch against it. Git
// is started once for each patch: its index is a file that was made before, and
// the tree is worked out from the index that it leaves.
func comparison(f testing.TB) func(t *testing.T, text []byte) {
	f.Helper()
	needGit(f)
	dir := newRepo(f)
	put(f, dir, map[string]string{"a.c": lines(20), "d/x": "x\n", "end": "no newline"})
	if err := os.Symlink("d", filepath.Join(dir, "link")); err != nil {
		f.Fatal(err)
	}
	base := mbox.Base{Commit: commit(f, dir, "base")}
	indexFile := filepath.Join(f.TempDir(), "index")
	env := append(slices.Clone(gitEnv), "GIT_INDEX_FILE="+indexFile, "GIT_DIR="+filepath.Join(dir, ".git"))
	run := func(in []byte, args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "-c", "core.fsync=none"}, args...)...)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(in)
		out, err := cmd.Output()
		if exit, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("git %v: %w: %s", args, err, exit.Stderr)
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := run(nil, "read-tree", "HEAD"); err != nil {
		f.Fatal(err)
	}
	start, err := os.ReadFile(indexFile)
	if err != nil {
		f.Fatal(err)
	}
	return func(t *testing.T, text []byte) {
		t.Helper()
		if len(text) == 0 || len(text) > 1<<16 || text[len(text)-1] != '\n' || diff.SameHeaders(text) {
			t.Skip("git and we read these differently on purpose")
		}
		r := open(t, dir)
		st, err := r.Apply(t.Context(), base, one(string(text)), tree.Options{NoThreeWay: true})
		if err != nil {
			t.Fatal(err)
		}
		ours, why := "", ""
		if st.Conflict == nil && st.Steps[0].Commit != base.Commit {
			ours = st.Steps[0].Tree
		}
		if st.Conflict != nil && len(st.Conflict.Files) > 0 {
			why = st.Conflict.Files[0].Reason
		}
		// We refuse more than git: modes that it would change, and what stands
		// before a binary part that it cannot read.
		for _, stricter := range []string{"path ", "unsupported file mode", "is not a file mode", "limit", "symbolic link", "corrupt hunk", "binary", "names /dev/null"} {
			if strings.Contains(why, stricter) {
				return
			}
		}
		// Git crashes on some patches, and leaves its lock.
		os.Remove(indexFile + ".lock")
		if err := os.WriteFile(indexFile, start, 0o666); err != nil {
			t.Fatal(err)
		}
		theirs := ""
		_, no := run(text, "apply", "--cached", "--whitespace=nowarn", "-")
		var exit *exec.ExitError
		if no == nil {
			theirs = treeOfIndex(t, indexFile)
		} else if !errors.As(no, &exit) {
			t.Fatal(no)
		}
		if ours != "" && theirs != "" && strings.Contains(string(text), "GIT binary patch") {
			return // git passes over a file whose way back is broken
		}
		if ours == theirs {
			return
		}
		if no == nil {
			if theirs, err = run(nil, "write-tree"); err != nil {
				t.Skip("git cannot write what it applied")
			}
		}
		if ours != theirs {
			t.Errorf("tree %q, git %q: %s\n%v\n%s", ours, theirs, why, no, text)
		}
	}
}

// treeOfIndex is the id of the tree that git write-tree would make of an index.
func treeOfIndex(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var idx index.Index
	if err := index.NewDecoder(f).Decode(&idx); err != nil {
		t.Fatal(err)
	}
	return hashTree(idx.Entries, 0)
}

// hashTree gives the id of the tree of entries, sorted by path, whose paths begin
// alike up to a length.
func hashTree(list []*index.Entry, prefix int) string {
	var body []byte
	for len(list) > 0 {
		name, mode, id, n := list[0].Name[prefix:], fmt.Sprintf("%o", uint32(list[0].Mode)), list[0].Hash.String(), 1
		if dir, _, below := strings.Cut(name, "/"); below {
			whole := list[0].Name[:prefix+len(dir)+1]
			for n < len(list) && strings.HasPrefix(list[n].Name, whole) {
				n++
			}
			name, mode, id = dir, "40000", hashTree(list[:n], len(whole))
		}
		raw := plumbing.NewHash(id)
		body = append(append(append(body, mode+" "+name...), 0), raw[:]...)
		list = list[n:]
	}
	return plumbing.ComputeHash(plumbing.TreeObject, body).String()
}
