package odb

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

func git(t testing.TB, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// repository makes blobs that are much alike, so that a pack has chains of deltas.
func repository(t testing.TB) (dir string, blobs map[plumbing.Hash][]byte) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("git, which makes the packs, is not installed")
	}
	dir = t.TempDir()
	git(t, dir, nil, "init", "-q")
	rng := rand.New(rand.NewPCG(1, 2))
	blobs = map[plumbing.Hash][]byte{}
	text := make([]byte, 20000)
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	for range 40 {
		text[rng.IntN(len(text))] = '\n'
		if err := os.WriteFile(filepath.Join(dir, "f"), text, 0o666); err != nil {
			t.Fatal(err)
		}
		git(t, dir, nil, "add", "f")
		git(t, dir, nil, "commit", "-q", "-m", "next")
		blobs[plumbing.NewHash(git(t, dir, nil, "rev-parse", "HEAD:f"))] = slices.Clone(text)
	}
	return dir, blobs
}

// TestRead reads objects from every place that git keeps them in.
func TestRead(t *testing.T) {
	dir, blobs := repository(t)
	objects := filepath.Join(dir, ".git", "objects")
	check := func(t *testing.T, objects string) {
		s, err := Open(objects)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for id, want := range blobs {
					typ, got, err := s.Read(id)
					if err != nil || typ != plumbing.BlobObject || !bytes.Equal(got, want) {
						t.Errorf("%s: type %v, %d bytes, %v", id, typ, len(got), err)
					}
				}
			})
		}
		wg.Wait()
		for id := range blobs {
			if !s.Has(id) || !slices.Contains(s.Prefix(id.String()[:7]), id) || !slices.Contains(s.Prefix(strings.ToUpper(id.String())), id) {
				t.Errorf("%s is not found", id)
			}
		}
		none := plumbing.NewHash(strings.Repeat("12", 20))
		if _, _, err := s.Read(none); !errors.Is(err, ErrNotFound) || s.Has(none) || len(s.Prefix(none.String())) > 0 {
			t.Errorf("a missing object: %v", err)
		}
		if s.Prefix("12") != nil || s.Prefix("xyzw") != nil {
			t.Error("a prefix that is none")
		}
	}
	t.Run("loose", func(t *testing.T) { check(t, objects) })
	// A store that was open before sees what is packed later.
	s, err := Open(objects)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	git(t, dir, nil, "repack", "-q", "-a", "-d", "-f", "--depth=30")
	for id, want := range blobs {
		if _, got, err := s.Read(id); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after a repack: %v", err)
		}
	}
	t.Run("packed", func(t *testing.T) { check(t, objects) })
	t.Run("base by id", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "o", "pack")
		if err := os.MkdirAll(out, 0o777); err != nil {
			t.Fatal(err)
		}
		list := git(t, dir, nil, "rev-list", "--objects", "--all")
		git(t, dir, []byte(list+"\n"), "pack-objects", "-q", "--no-reuse-delta", "--delta-base-offset", filepath.Join(out, "a"))
		git(t, dir, []byte(list+"\n"), "pack-objects", "-q", "--no-reuse-delta", filepath.Join(out, "b"))
		if left, _ := filepath.Glob(filepath.Join(out, "a-*")); len(left) > 0 {
			for _, f := range left {
				os.Remove(f)
			}
		}
		check(t, filepath.Dir(out))
	})
	t.Run("alternates", func(t *testing.T) {
		out := t.TempDir()
		if err := os.MkdirAll(filepath.Join(out, "info"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, "info", "alternates"), []byte("# words\n"+objects+"\n"+out+"\n/nowhere/at/all\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		check(t, out)
	})
}

// TestBroken gives errors, not panics, for packs that were damaged anywhere.
func TestBroken(t *testing.T) {
	dir, blobs := repository(t)
	git(t, dir, nil, "repack", "-q", "-a", "-d", "-f", "--depth=30")
	packs := filepath.Join(dir, ".git", "objects", "pack")
	rng := rand.New(rand.NewPCG(3, 4))
	for _, ext := range []string{".pack", ".idx"} {
		names, _ := filepath.Glob(filepath.Join(packs, "*"+ext))
		whole, err := os.ReadFile(names[0])
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			broken := slices.Clone(whole)
			for range 5 {
				broken[rng.IntN(len(broken))] ^= byte(1 + rng.IntN(255))
			}
			if rng.IntN(4) == 0 {
				broken = broken[:rng.IntN(len(broken))]
			}
			os.Remove(names[0])
			if err := os.WriteFile(names[0], broken, 0o666); err != nil {
				t.Fatal(err)
			}
			s, err := Open(filepath.Dir(packs))
			if err != nil {
				continue
			}
			for id := range blobs {
				_, _, _ = s.Read(id)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		os.Remove(names[0])
		if err := os.WriteFile(names[0], whole, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
