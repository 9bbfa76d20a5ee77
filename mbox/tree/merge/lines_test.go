package merge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLines(t *testing.T) {
	base := "a\nb\nc\nd\ne\nf\n"
	for _, c := range []struct {
		name, ours, theirs, want string
		line                     int
	}{
		{"apart", "A\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\ne\nF\n", "A\nb\nc\nd\ne\nF\n", 0},
		{"one line between", "a\nB\nc\nd\ne\nf\n", "a\nb\nc\nD\ne\nf\n", "a\nB\nc\nD\ne\nf\n", 0},
		{"touching", "a\nB\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\n", "", 2},
		{"same on both sides", "a\nX\nc\nd\ne\nf\n", "a\nX\nc\nd\nE\nf\n", "a\nX\nc\nd\nE\nf\n", 0},
		{"both add at one place", "a\nb\nx\nc\nd\ne\nf\n", "a\nb\ny\nc\nd\ne\nf\n", "", 3},
		{"deleted and kept", "a\nb\ne\nf\n", "0\na\nb\nc\nd\ne\nf\n", "0\na\nb\ne\nf\n", 0},
		{"newline at the end", "a\nb\nc\nd\ne\nf", "A\nb\nc\nd\ne\nf\n", "A\nb\nc\nd\ne\nf", 0},
		{"binary", "a\x00", "b\x00", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, line, ok := Lines([]byte(base), []byte(c.ours), []byte(c.theirs))
			if string(out) != c.want || ok != (c.want != "") || line != c.line {
				t.Errorf("%q, line %d, %v; want %q, line %d", out, line, ok, c.want, c.line)
			}
		})
	}
}

// TestLinesAgainstGit merges random texts of few different lines, with us and
// with git merge-file: the same text, or both see a conflict.
func TestLinesAgainstGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed")
		}
		t.Skip("git, the oracle, is not installed")
	}
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	merged, disputed := 0, 0
	dir := t.TempDir()
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		word := func() string { return fmt.Sprintf("%d\n", rng.IntN(4+seed%20)) }
		base := make([]string, 5+rng.IntN(60))
		for i := range base {
			base[i] = word()
		}
		side := func() string {
			lines := slices.Clone(base)
			for range 1 + rng.IntN(4) {
				at := rng.IntN(len(lines) + 1)
				switch rng.IntN(3) {
				case 0:
					lines = slices.Insert(lines, at, word(), word())
				case 1:
					lines = slices.Delete(lines, at, min(at+1+rng.IntN(3), len(lines)))
				default:
					lines = slices.Replace(lines, at, min(at+1, len(lines)), word())
				}
			}
			return strings.Join(lines, "")
		}
		text := [3]string{strings.Join(base, ""), side(), side()}
		var names []string
		for i, name := range []string{"base", "ours", "theirs"} {
			names = append(names, filepath.Join(dir, name))
			if err := os.WriteFile(names[i], []byte(text[i]), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := exec.Command("git", "merge-file", "-p", "-q", names[1], names[0], names[2]).Output()
		out, line, ok := Lines([]byte(text[0]), []byte(text[1]), []byte(text[2]))
		switch {
		case ok != (err == nil):
			t.Errorf("seed %d: merged %v, line %d; git: %v\nbase %q\nours %q\ntheirs %q", seed, ok, line, err, text[0], text[1], text[2])
		case ok && string(out) != string(want):
			t.Errorf("seed %d: %q, git %q\nbase %q\nours %q\ntheirs %q", seed, out, want, text[0], text[1], text[2])
		case ok:
			merged++
		default:
			disputed++
		}
	}
	if merged < rounds/10 || disputed < rounds/10 {
		t.Errorf("only %d merged and %d in conflict", merged, disputed)
	}
}
