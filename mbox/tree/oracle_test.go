package tree_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// history changes a work tree at random, n commits long: edits, files made,
// deleted, renamed and copied, modes, links, binary data, missing newlines.
func history(t *testing.T, dir string, rng *rand.Rand, n int) {
	t.Helper()
	names := func() []string {
		return strings.Fields(git(t, dir, "ls-files"))
	}
	text := func(lines int) string {
		var b strings.Builder
		for range lines {
			// Few different lines, so that hunks match in several places, and
			// files are so alike that git sees renames in them.
			fmt.Fprintf(&b, "line %d\n", rng.IntN(40))
		}
		return b.String()
	}
	path := func() string { return fmt.Sprintf("d%d/f%d.txt", rng.IntN(3), rng.IntN(1000)) }
	for i := range n {
		for range 1 + rng.IntN(3) {
			list := names()
			old := "d0/first.txt"
			if len(list) > 0 {
				old = list[rng.IntN(len(list))]
			}
			full := filepath.Join(dir, old)
			fi, err := os.Lstat(full)
			switch k := rng.IntN(12); {
			case err != nil || k == 0:
				put(t, dir, map[string]string{path(): text(30 + rng.IntN(90))})
			case k == 1:
				os.Remove(full)
			case k == 2:
				to := filepath.Join(dir, path())
				os.MkdirAll(filepath.Dir(to), 0o777)
				os.Rename(full, to)
			case k == 3 && fi.Mode().IsRegular():
				os.Chmod(full, 0o777^fi.Mode().Perm()&0o111|0o644)
			case k == 4:
				to := filepath.Join(dir, path())
				os.MkdirAll(filepath.Dir(to), 0o777)
				os.Remove(to)
				os.Symlink(fmt.Sprintf("../target%d", rng.IntN(9)), to)
			case k == 5:
				data := make([]byte, rng.IntN(3000))
				for j := range data {
					data[j] = byte(rng.IntN(256))
				}
				put(t, dir, map[string]string{fmt.Sprintf("d1/blob%d", rng.IntN(3)): "\x00" + string(data)})
			case k == 6 && fi.Mode().IsRegular():
				data, _ := os.ReadFile(full)
				os.WriteFile(full, []byte(strings.TrimSuffix(string(data), "\n")), 0o666)
			case k == 7:
				os.WriteFile(filepath.Join(dir, "d2", fmt.Sprintf("empty %d", i)), nil, 0o666)
			case fi.Mode().IsRegular():
				data, _ := os.ReadFile(full)
				lines := strings.SplitAfter(string(data), "\n")
				for range 1 + rng.IntN(3) {
					at := rng.IntN(len(lines))
					switch rng.IntN(3) {
					case 0:
						lines = slices.Insert(lines, at, text(1+rng.IntN(4)))
					case 1:
						lines = slices.Delete(lines, at, min(at+1+rng.IntN(4), len(lines)))
					default:
						lines[at] = text(1)
					}
					if len(lines) == 0 {
						break
					}
				}
				os.WriteFile(full, []byte(strings.Join(lines, "")), 0o666)
			}
			os.MkdirAll(filepath.Join(dir, "d2"), 0o777)
			git(t, dir, "add", "-A")
		}
		if git(t, dir, "diff", "--cached", "--name-only") == "" {
			put(t, dir, map[string]string{path(): text(5)})
			git(t, dir, "add", "-A")
		}
		git(t, dir, "commit", "-q", "-m", fmt.Sprintf("change %d\n\nWhy it was made.", i))
	}
}

// am applies a mailbox with git am -3 onto a commit and gives the trees that it
// reached.
func am(t testing.TB, dir, onto string, box []byte, strip string) (trees []string, ok bool) {
	t.Helper()
	tryGit(dir, nil, "am", "--abort")
	git(t, dir, "checkout", "-q", "-f", "--detach", onto)
	git(t, dir, "clean", "-qfdx")
	_, err := tryGit(dir, box, "am", "-q", "-3", strip)
	if err != nil {
		t.Logf("onto %s: %v", onto, err)
	}
	out := git(t, dir, "log", "--reverse", "--format=%T", onto+"..HEAD")
	tryGit(dir, nil, "am", "--abort")
	return strings.Fields(out), err == nil
}

func stackTrees(st *tree.Stack) []string {
	trees := []string{}
	last := st.Base.Commit
	for _, s := range st.Steps {
		if s.Commit != last {
			trees = append(trees, s.Tree)
		}
		last = s.Commit
	}
	return trees
}

// TestAgainstGitAm applies random series to their own base and to commits that
// have drifted away from it. PATCHBENCH_APPLY_HISTORIES says how many histories.
func TestAgainstGitAm(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	if n, err := strconv.Atoi(os.Getenv("PATCHBENCH_APPLY_HISTORIES")); err == nil {
		rounds = n
	}
	counts := map[string]int{}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			dir := newRepo(t)
			put(t, dir, map[string]string{"d0/first.txt": strings.Repeat("a\nb\nc\nd\ne\nf\n", 9), "d1/x": "x\n", "d2/y": "y\n"})
			start := commit(t, dir, "start")
			history(t, dir, rng, 12)
			tip := git(t, dir, "rev-parse", "HEAD")
			all := strings.Fields(git(t, dir, "rev-list", "--reverse", start+".."+tip))
			from, options := all[3], [][]string{{}, {"-M", "-C", "--find-copies-harder"}, {"--no-renames", "--full-index"}, {"-U1"}, {"--no-prefix"}}[seed%5]
			args := append([]string{"format-patch", "--stdout", "--binary", "--always"}, options...)
			box := git(t, dir, append(args, from+".."+tip)...) + "\n"
			strip := "-p1"
			if len(options) == 1 && options[0] == "--no-prefix" {
				strip = "-p0" // which we find out ourselves
			}
			s := series(t, []byte(box))
			r, err := tree.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			git(t, dir, "checkout", "-q", "--detach", from)
			history(t, dir, rng, 1)
			// More lines above make hunks move, and changed ones near by make
			// them need a merge.
			for i, name := range strings.Fields(git(t, dir, "ls-files", "*.txt")) {
				full := filepath.Join(dir, name)
				data, _ := os.ReadFile(full)
				if fi, err := os.Lstat(full); err != nil || !fi.Mode().IsRegular() || i%2 == seed%2 || len(data) == 0 {
					continue
				}
				lines := strings.SplitAfter(string(data), "\n")
				lines[rng.IntN(len(lines))] = "another\n"
				put(t, dir, map[string]string{name: "top\nof the\nfile\n" + strings.Join(lines, "")})
			}
			commit(t, dir, "side")
			side := git(t, dir, "rev-parse", "HEAD")
			for _, onto := range []string{from, all[1], side + "^", side} {
				if strings.HasSuffix(onto, "^") {
					onto = git(t, dir, "rev-parse", onto)
				}
				want, ok := am(t, dir, onto, []byte(box), strip)
				st, err := r.Apply(t.Context(), mbox.Base{Commit: onto}, s, tree.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got := stackTrees(st)
				if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || ok != (st.Conflict == nil) {

					text := ""
					if st.Conflict == nil && len(want) < len(s.Patches) {
						text = string(s.Patches[len(want)].Diff) + fmt.Sprint(st.Steps[len(want)])
					}
					if st.Conflict != nil {
						text = string(s.Patches[st.Conflict.N-1].Diff)
					}
					t.Errorf("onto %s: git am ok=%v (-), ours %+v (+):\n%s%s", onto, ok, st.Conflict, d, text)
				}
				counts["all"]++
				if ok {
					counts["applied"]++
				}
				for _, step := range st.Steps {
					counts[step.How]++
				}
			}
		})
	}
	t.Logf("series and steps: %v", counts)
}
