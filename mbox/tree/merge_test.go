package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// other is a text of n lines that no other has.
func other(name string, n int) string {
	return strings.ReplaceAll(lines(n), "line", name)
}

// TestRenamesAgainstGitAm moves and changes files on both sides of a merge, and
// holds what becomes of a patch against git am -3: the trees, and whether it is a
// conflict. Each case is known to need the merge.
func TestRenamesAgainstGitAm(t *testing.T) {
	a, b := other("alpha", 30), other("beta", 30)
	head := func(s string) string { return strings.Replace(s, " b\n", " B\n", 1) }  // the second line
	tail := func(s string) string { return strings.Replace(s, " y\n", " Y\n", 1) }  // near the end
	near := func(s string) string { return strings.Replace(s, " x\n", " XX\n", 1) } // beside it
	much := func(s string) string { return s[:len(s)*2/3] + other("newer", 10) }    // less alike
	type files = map[string]string
	start := files{"lib/a.c": a, "lib/b.c": b, "lib/sub/c.c": other("gamma", 30), "top": "top\n", "keep/k": "k\n"}
	for _, c := range []struct {
		name         string
		ours, theirs files // what each side writes; "" removes
		options      []string
		ok           bool
	}{
		{"renamed by us, changed by the patch", files{"lib/a.c": "", "src/a.c": head(a)}, files{"lib/a.c": tail(a)}, nil, true},
		{"renamed by us to another name", files{"lib/a.c": "", "lib/z.c": head(a)}, files{"lib/a.c": tail(a)}, nil, true},
		{"renamed by us, too different", files{"lib/a.c": "", "lib/z.c": other("zeta", 30)}, files{"lib/a.c": tail(a)}, nil, false},
		{"same name elsewhere, little alike", files{"lib/a.c": "", "src/a.c": much(a)}, files{"lib/a.c": head(a)}, nil, true},
		{"two candidates", files{"lib/a.c": "", "x/one.c": head(a), "x/two.c": head(head(a)) + "more\n"}, files{"lib/a.c": tail(a)}, nil, true},
		{"the same contents twice", files{"lib/a.c": "", "x/one.c": a, "x/a.c": a}, files{"lib/a.c": tail(a)}, nil, true},
		{"renamed by both alike", files{"lib/a.c": "", "src/a.c": head(a)}, files{"lib/a.c": "", "src/a.c": tail(a)}, nil, true},
		{"renamed by both apart", files{"lib/a.c": "", "src/a.c": head(a)}, files{"lib/a.c": "", "x/a.c": tail(a)}, nil, false},
		{"two files to one name", files{"lib/a.c": "", "src/n.c": a}, files{"lib/b.c": "", "src/n.c": tail(b)}, nil, false},
		{"a deletion and a creation", files{"lib/a.c": head(a)}, files{"lib/a.c": "", "src/new.c": tail(a)}, []string{"--no-renames"}, true},
		{"a deletion and a creation unlike it", files{"lib/a.c": head(a)}, files{"lib/a.c": "", "src/new.c": b}, []string{"--no-renames"}, false},
		{"renamed by the patch, deleted by us", files{"lib/a.c": ""}, files{"lib/a.c": "", "src/a.c": tail(a)}, nil, false},
		{"renamed by us, deleted by the patch", files{"lib/a.c": "", "src/a.c": head(a)}, files{"lib/a.c": ""}, nil, false},
		{"renamed by the patch onto one of ours", files{"lib/a.c": head(a), "src/a.c": b}, files{"lib/a.c": "", "src/a.c": tail(a)}, nil, false},
		{"both change near by", files{"lib/a.c": "", "src/a.c": near(a)}, files{"lib/a.c": tail(a)}, nil, false},
		{"a folder renamed by us, files changed", files{"lib/a.c": "", "lib/b.c": "", "lib/sub/c.c": "", "src/a.c": head(a), "src/b.c": b, "src/sub/c.c": other("gamma", 30)},
			files{"lib/a.c": tail(a), "lib/b.c": tail(b)}, nil, true},
		{"a folder renamed by us, a file added by the patch", files{"lib/a.c": "", "lib/b.c": "", "src/a.c": head(a), "src/b.c": b},
			files{"lib/a.c": tail(a), "lib/b.c": tail(b), "lib/new.c": other("new", 9)}, nil, true},
		{"a folder renamed by the patch, a file added by us", files{"lib/a.c": head(a), "lib/new.c": other("new", 9), "lib/sub/c.c": "", "x/c.c": head(other("gamma", 30))},
			files{"lib/a.c": "", "lib/b.c": "", "lib/sub/c.c": tail(other("gamma", 30)), "src/a.c": tail(a), "src/b.c": tail(b)}, nil, true},
		{"a folder in the place of a file that we changed", files{"lib/a.c": "", "src/a.c": head(a), "top": "other\n"}, files{"lib/a.c": tail(a), "top": "", "top/f": "x\n"}, nil, false},
		{"a folder in the place of a file", files{"lib/a.c": "", "src/a.c": head(a)}, files{"lib/a.c": tail(a), "top": "", "top/f": "x\n"}, nil, true},
		{"deleted by both", files{"lib/a.c": "", "lib/b.c": "", "src/b.c": head(b)}, files{"lib/a.c": "", "lib/b.c": tail(b)}, nil, true},
		{"empty in ours, added by both", files{"lib/a.c": head(a), "n.c": " "}, files{"lib/a.c": tail(a), "n.c": "text\n"}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := newRepo(t)
			put(t, dir, start)
			base := commit(t, dir, "base")
			change := func(with files) {
				for name, text := range with {
					if text == "" {
						put(t, dir, files{name: ""})
					}
				}
				for name, text := range with {
					if text != "" {
						put(t, dir, files{name: text})
					}
				}
			}
			git(t, dir, "checkout", "-q", "-b", "topic")
			change(c.theirs)
			commit(t, dir, "topic")
			args := append([]string{"format-patch", "--stdout", "-1"}, c.options...)
			box := []byte(git(t, dir, args...) + "\n")
			git(t, dir, "checkout", "-q", "-f", "main")
			git(t, dir, "clean", "-qfdx")
			change(c.ours)
			onto := commit(t, dir, "ours")
			want, ok := am(t, dir, onto, box, "-p1")
			if ok != c.ok {
				t.Errorf("git am -3 applies it: %v, thought %v", ok, c.ok)
			}
			st, err := open(t, dir).Apply(t.Context(), mbox.Base{Commit: onto}, series(t, box), tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, stackTrees(st), cmpopts.EquateEmpty()); d != "" || ok != (st.Conflict == nil) {
				t.Errorf("git am ok=%v, ours %+v; (-git am +ours):\n%s", ok, st.Conflict, d)
			}
			if len(st.Steps) == 1 && st.Steps[0].How != tree.HowThreeWay {
				t.Errorf("applied as %s: the case says nothing of the merge", st.Steps[0].How)
			}
			if git(t, dir, "rev-parse", "main~1") != base {
				t.Error("the history is another than was meant")
			}
			if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
				t.Error(err)
			}
		})
	}
}
