package overlay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// empty opens a repository without objects.
func empty(t *testing.T) *Repo {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"objects", "refs"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
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

// TestTouches holds what it says of random trees, in which files become folders and
// the other way round, against the list of all differences.
func TestTouches(t *testing.T) {
	r := empty(t)
	rng := rand.New(rand.NewPCG(1, 1))
	path := func() string {
		parts := make([]string, 1+rng.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + rng.IntN(3)))
		}
		return strings.Join(parts, "/")
	}
	tree := func() plumbing.Hash {
		ed := r.Edit(plumbing.ZeroHash)
		for range 6 {
			blob := r.Write(plumbing.BlobObject, fmt.Append(nil, rng.IntN(2)))
			if _, err := ed.Set(path(), 0o100644, blob); err != nil {
				t.Fatal(err)
			}
		}
		return ed.Write()
	}
	said := map[bool]int{}
	for range 500 {
		a, b, paths := tree(), tree(), []string{path(), path()}[:1+rng.IntN(2)]
		want := false
		err := r.Differences(a, b, func(path string, _, _ *Entry) error {
			for _, p := range paths {
				want = want || path == p || strings.HasPrefix(path, p+"/")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Touches(a, b, paths)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("%v of %s and %s: %v, want %v", paths, a, b, got, want)
		}
		said[got]++
	}
	if said[true] == 0 || said[false] == 0 {
		t.Errorf("one answer only: %v", said)
	}
}
