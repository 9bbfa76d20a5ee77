package diff

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
)

// needTools skips a test where a program is missing. In CI it fails.
func needTools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
}

// scramble changes, inserts and deletes some lines.
func scramble(rng *rand.Rand, lines []string, n int, mark string) []string {
	lines = slices.Clone(lines)
	for k := range n {
		at := rng.IntN(len(lines))
		made := fmt.Sprintf("%s %d\n", mark, k)
		switch rng.IntN(3) {
		case 0:
			lines[at] = made
		case 1:
			lines = slices.Insert(lines, at, made)
		default:
			if len(lines) > 1 {
				lines = slices.Delete(lines, at, at+1)
			}
		}
	}
	return lines
}

// TestFuzzAgainstPatch drifts files away from the one that a diff was made from,
// and holds what becomes of it against GNU patch with the same -F: the same bytes,
// or both refuse.
func TestFuzzAgainstPatch(t *testing.T) {
	needTools(t, "diff", "patch")
	rounds := 100
	if testing.Short() {
		rounds = 30
	}
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	join := func(lines []string) []byte { return []byte(strings.Join(lines, "")) }
	loose, refused := 0, 0
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		var lines []string
		for i := range 6 + rng.IntN(30) {
			if rng.IntN(2) == 0 {
				i = rng.IntN(6) // so that a hunk may fit in several places
			}
			lines = append(lines, fmt.Sprintf("line %d\n", i))
		}
		before, after := file("before", join(lines)), file("after", join(scramble(rng, lines, 1+rng.IntN(3), "new")))
		out, err := exec.Command("diff", "-u", "--label", "a/f", "--label", "b/f", before, after).Output()
		var exit *exec.ExitError
		if err == nil {
			continue // the changes took each other back
		} else if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Fatal(err)
		}
		files, err := Parse(out, Guess)
		if err != nil || len(files) != 1 {
			t.Fatalf("%v, %d files\n%s", err, len(files), out)
		}
		drifted := join(scramble(rng, lines, 1+rng.IntN(4), "drift"))
		path, patch := file("drifted", drifted), file("patch", out)
		for fuzz := 1; fuzz <= 4; fuzz++ {
			theirs := filepath.Join(dir, "out")
			says, err := exec.Command("patch", "-f", "-F", fmt.Sprint(fuzz), "-r", "-", "-o", theirs, "-i", patch, path).CombinedOutput()
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				t.Fatalf("%v\n%s", err, says)
			}
			got, places, no := files[0].Text(t.Context(), drifted, fuzz)
			if (err == nil) != (no == nil) {
				t.Fatalf("seed %d, fuzz %d: patch %v, ours %v\n%s%s\nin\n%s", seed, fuzz, err, no, says, out, drifted)
			}
			if err != nil {
				refused++
				continue
			}
			want, err := os.ReadFile(theirs)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got) {
				t.Fatalf("seed %d, fuzz %d: patch makes\n%s\nwe\n%s\n%+v\n%s%s\nin\n%s", seed, fuzz, want, got, places, says, out, drifted)
			}
			if slices.ContainsFunc(places, func(p Place) bool { return p.Loose }) {
				loose++
			}
		}
	}
	t.Logf("%d applied with fuzz, %d refused", loose, refused)
	if loose == 0 || refused == 0 {
		t.Error("the cases hold only one kind")
	}
}
