package tree_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox/tree"
)

// listing describes a folder: each file's mode and text.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		fi, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out[name] = "-> " + to
			return err
		default:
			data, err := os.ReadFile(path)
			out[name] = fi.Mode().String() + " " + string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCheckout holds what Checkout and Update write against git's work tree.
func TestCheckout(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": "a\n", "run.sh": "#!/bin/sh\n", "d/e/f": "f\n", "d/g": "g\n", "x/y": "y\n", "same": "same\n"})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Symlink("../d/g", filepath.Join(dir, "x/link"))); err != nil {
		t.Fatal(err)
	}
	first := commit(t, dir, "first")
	want1 := listing(t, dir)
	// A folder becomes a file, a file a folder, a link a file.
	put(t, dir, map[string]string{"d": "", "a": ""})
	put(t, dir, map[string]string{"d": "now a file\n", "a/b/c": "c\n", "x/link": "", "run.sh": "#!/bin/sh\ntrue\n"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	put(t, dir, map[string]string{"x/link": "no link\n"})
	second := commit(t, dir, "second")
	want2 := listing(t, dir)

	r := open(t, dir)
	out := filepath.Join(t.TempDir(), "made")
	if err := r.Checkout(t.Context(), first, out); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want1, listing(t, out)); d != "" {
		t.Fatalf("first (-git +ours):\n%s", d)
	}
	if err := r.Checkout(t.Context(), first, out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("checkout into a full folder: %v", err)
	}
	before, err := os.Stat(filepath.Join(out, "same"))
	if err != nil {
		t.Fatal(err)
	}
	// What a build leaves, in places where it is in the way and where not.
	put(t, out, map[string]string{"a.o": "object", "x/y.o": "object"})
	if err := r.Update(t.Context(), first, second, out); err != nil {
		t.Fatal(err)
	}
	got := listing(t, out)
	delete(got, "a.o")
	delete(got, "x/y.o")
	if d := cmp.Diff(want2, got); d != "" {
		t.Errorf("second (-git +ours):\n%s", d)
	}
	after, err := os.Stat(filepath.Join(out, "same"))
	if err != nil {
		t.Fatal(err)
	}
	if !before.ModTime().Equal(after.ModTime()) {
		t.Error("a file that did not change was written")
	}
	if err := r.Update(t.Context(), second, first, out); err != nil {
		t.Fatal(err)
	}
	got = listing(t, out)
	delete(got, "a.o")
	delete(got, "x/y.o")
	if d := cmp.Diff(want1, got); d != "" {
		t.Errorf("first again (-git +ours):\n%s", d)
	}
}

// TestUpdateIsNewer lets what changed be newer than what a build has made of it, be
// it within the same tick of the clock, and what did not change stay older: make
// then does again what it must and no more.
func TestUpdateIsNewer(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a.c": "1\n", "b.c": "1\n", "c1.c": "1\n", "c2.c": "2\n", "deep/d.c": "1\n"})
	link := func(target string) {
		os.Remove(filepath.Join(dir, "c.c"))
		if err := os.Symlink(target, filepath.Join(dir, "c.c")); err != nil {
			t.Fatal(err)
		}
	}
	link("c1.c")
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	first := commit(t, dir, "first")
	put(t, dir, map[string]string{"a.c": "2\n", "deep/d.c": "2\n", "dangling": ""})
	link("c2.c")
	if err := errors.Join(os.Chmod(filepath.Join(dir, "b.c"), 0o755), os.Symlink("no/where", filepath.Join(dir, "dangling"))); err != nil {
		t.Fatal(err)
	}
	second := commit(t, dir, "second")
	r := open(t, dir)
	out := t.TempDir()
	if err := r.Checkout(t.Context(), first, out); err != nil {
		t.Fatal(err)
	}
	put(t, out, map[string]string{"all.o": "object\n"})
	if err := r.Update(t.Context(), first, second, out); err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(filepath.Join(out, "all.o"))
	if err != nil {
		t.Fatal(err)
	}
	for name, newer := range map[string]bool{"a.c": true, "b.c": true, "c.c": true, "deep/d.c": true, "c1.c": false} {
		fi, err := os.Stat(filepath.Join(out, name)) // as make: what a link leads to
		if err != nil {
			t.Fatal(err)
		}
		if fi.ModTime().After(made.ModTime()) != newer {
			t.Errorf("%s is of %v, the object of %v", name, fi.ModTime(), made.ModTime())
		}
	}
}

// TestUpdateStaysInside has a build put links in place of folders and files that
// the next version writes.
func TestUpdateStaysInside(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"src/a.c": "1\n", "src/deep/b.c": "1\n", "c.c": "1\n", "gone/d.c": "1\n"})
	first := commit(t, dir, "first")
	put(t, dir, map[string]string{"src/a.c": "2\n", "src/deep/b.c": "2\n", "c.c": "2\n", "gone": ""})
	second := commit(t, dir, "second")
	r := open(t, dir)
	out, outside := t.TempDir(), t.TempDir()
	if err := r.Checkout(t.Context(), first, out); err != nil {
		t.Fatal(err)
	}
	put(t, outside, map[string]string{"a.c": "mine\n", "c.c": "mine\n", "d.c": "mine\n"})
	for name, target := range map[string]string{"src": outside, "c.c": filepath.Join(outside, "c.c"), "gone": outside} {
		if err := os.RemoveAll(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := r.Update(t.Context(), first, second, out)
	want := map[string]string{"a.c": "-rw-r--r-- mine\n", "c.c": "-rw-r--r-- mine\n", "d.c": "-rw-r--r-- mine\n"}
	if d := cmp.Diff(want, listing(t, outside)); d != "" {
		t.Errorf("the folder outside (-want +got):\n%s", d)
	}
	if err != nil {
		return // refused: just as good
	}
	if d := cmp.Diff(map[string]string{"src/a.c": "-rw-r--r-- 2\n", "src/deep/b.c": "-rw-r--r-- 2\n", "c.c": "-rw-r--r-- 2\n"}, listing(t, out)); d != "" {
		t.Errorf("the folder (-want +got):\n%s", d)
	}
}

// TestLinksThatLeave refuses links that lead out of the tree before anything is
// written.
func TestLinksThatLeave(t *testing.T) {
	for name, c := range map[string]struct {
		link, target string
		refused      bool
	}{
		"inside":               {"d/link", "../a", false},
		"to the top":           {"d/link", "..", false},
		"absolute":             {"link", "/etc/passwd", true},
		"above":                {"link", "../x", true},
		"above from below":     {"d/link", "../../x", true},
		"climbs behind a name": {"link", "d/../../x", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newRepo(t)
			put(t, dir, map[string]string{"a": "a\n", "d/b": "b\n"})
			if err := os.Symlink(c.target, filepath.Join(dir, c.link)); err != nil {
				t.Fatal(err)
			}
			id := commit(t, dir, "link")
			out := t.TempDir()
			err := open(t, dir).Checkout(t.Context(), id, out)
			var leaves *tree.LinkError
			if errors.As(err, &leaves) != c.refused || err != nil && !c.refused {
				t.Errorf("checkout: %v", err)
			}
			if names, _ := os.ReadDir(out); c.refused && len(names) > 0 {
				t.Errorf("written: %v", names)
			}
		})
	}
}

// TestBadTrees refuses to write names that a patch could not bring, but a
// repository may hold.
func TestBadTrees(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": "a\n"})
	commit(t, dir, "base")
	blob := git(t, dir, "rev-parse", "HEAD:a")
	for _, name := range []string{"..", ".git", ".GIT", "."} {
		made, err := tryGit(dir, []byte("100644 blob "+blob+"\tx\n"), "mktree")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := tryGit(dir, nil, "cat-file", "tree", strings.TrimSpace(made))
		if err != nil {
			t.Fatal(err)
		}
		raw = strings.Replace(raw, " x\x00", " "+name+"\x00", 1)
		made, err = tryGit(dir, []byte(raw), "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
		if err != nil {
			t.Fatal(err)
		}
		id := git(t, dir, "commit-tree", "-m", "bad", strings.TrimSpace(made))
		out := t.TempDir()
		err = open(t, dir).Checkout(t.Context(), id, out)
		var bad *tree.PathError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
		if names, _ := os.ReadDir(out); len(names) > 0 {
			t.Errorf("%s: written: %v", name, names)
		}
	}
}
