package tree_test

import (
	"strings"
	"testing"

	"patchbench/mbox/tree/diff"
)

// TestPatchID holds the ids of patches against those of git patch-id --stable.
func TestPatchID(t *testing.T) {
	needGit(t)
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": lines(30), "d/b.c": lines(9), "bin": "\x00\x01", "gone": "x\n", "end": "no newline"})
	first := commit(t, dir, "first")
	put(t, dir, map[string]string{"a.c": strings.Replace(strings.Replace(lines(30), "line b\n", "line  B\tb\n", 1), "line x\n", "", 1),
		"d/b.c": lines(10), "bin": "\x00\x02", "gone": "", "end": "a newline\n", "new": lines(3)})
	git(t, dir, "mv", "d/b.c", "d/c.c")
	commit(t, dir, "second")
	texts := append([]string{"", "no diff\n"}, patches...)
	for _, args := range [][]string{{}, {"-M"}, {"--no-renames", "--binary", "--full-index"}, {"-U1"}, {"-w"}} {
		texts = append(texts, git(t, dir, append(append([]string{"diff"}, args...), first, "HEAD")...)+"\n",
			git(t, dir, append(append([]string{"format-patch", "--stdout", "-1"}, args...), "HEAD")...)+"\n")
	}
	some := 0
	for _, text := range texts {
		// Git reads several patches from one text; each of these is one.
		if strings.HasPrefix(text, "From ") {
			_, text, _ = strings.Cut(text, "\n")
		}
		out, err := tryGit(dir, []byte(text), "patch-id", "--stable")
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(out, " ")
		if got := diff.PatchID([]byte(text)); got != want {
			t.Errorf("got %q, git patch-id %q for\n%s", got, want, text)
		}
		if want != "" {
			some++
		}
	}
	if some < 10 {
		t.Errorf("only %d patches have an id", some)
	}
}
