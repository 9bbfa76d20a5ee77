package tree_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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

// fileSystems are those that folders are written to: where contents are copied, and
// where they are shared.
func fileSystems(t *testing.T, f func(t *testing.T, dir string)) {
	t.Run("any", func(t *testing.T) { f(t, t.TempDir()) })
	t.Run("xfs", func(t *testing.T) { f(t, newXFS(t)) })
}

// newXFS mounts an empty XFS. No machine has to be able to: containers have no loop
// devices.
func newXFS(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("not root, who may mount an XFS")
	}
	mkfs, err := exec.LookPath("mkfs.xfs")
	if err != nil {
		t.Skip("no mkfs.xfs: install xfsprogs")
	}
	dir := t.TempDir()
	image, mounted := filepath.Join(dir, "image"), filepath.Join(dir, "xfs")
	if err := errors.Join(os.Mkdir(mounted, 0o755), os.WriteFile(image, nil, 0o600), os.Truncate(image, 512<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.xfs: %v\n%s", err, out)
	}
	if out, err := exec.Command("mount", "-t", "xfs", "-o", "loop", image, mounted).CombinedOutput(); err != nil {
		t.Skipf("mount an XFS: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", mounted).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return mounted
}

// checkout writes a commit into a new folder by a Pristine of its own.
func checkout(t *testing.T, r *tree.Repo, commit string) (string, error) {
	out := filepath.Join(t.TempDir(), "made")
	return out, r.Pristine(filepath.Join(t.TempDir(), "pristine")).Checkout(t.Context(), commit, out)
}

// steps makes a repository in which files, folders and links take each other's
// places, and gives its commits and what git's work tree held at each.
func steps(t *testing.T) (dir string, commits []string, want []map[string]string) {
	t.Helper()
	dir = newRepo(t)
	keep := func(name string) {
		commits, want = append(commits, commit(t, dir, name)), append(want, listing(t, dir))
	}
	put(t, dir, map[string]string{"a": "a\n", "run.sh": "#!/bin/sh\n", "d/e/f": "f\n", "d/g": "g\n", "x/y": "y\n", "same": "same\n", "large": strings.Repeat("0123456789abcde\n", 20_000)})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o755), os.Symlink("../d/g", filepath.Join(dir, "x/link"))); err != nil {
		t.Fatal(err)
	}
	keep("first")
	// A folder becomes a file, a file a folder, a link a file.
	put(t, dir, map[string]string{"d": "", "a": "", "x/link": ""})
	put(t, dir, map[string]string{"d": "now a file\n", "a/b/c": "c\n", "x/link": "no link\n", "run.sh": "#!/bin/sh\ntrue\n"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o644); err != nil {
		t.Fatal(err)
	}
	keep("second")
	// A file becomes a link, a mode alone changes, a file is emptied.
	put(t, dir, map[string]string{"d": "", "x/y": ""})
	if err := errors.Join(os.Symlink("same", filepath.Join(dir, "d")), os.Chmod(filepath.Join(dir, "same"), 0o755),
		os.WriteFile(filepath.Join(dir, "run.sh"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	keep("third")
	return dir, commits, want
}

// TestCheckout holds what is written against git's work tree, forwards and back
// and into folders in which builds change what they were given.
func TestCheckout(t *testing.T) {
	repo, commits, want := steps(t)
	r := open(t, repo)
	fileSystems(t, func(t *testing.T, dir string) {
		p := r.Pristine(filepath.Join(dir, "pristine"))
		for i, n := range []int{0, 1, 2, 2, 1, 0, 2, 0} {
			out := filepath.Join(dir, fmt.Sprint(i))
			if err := p.Checkout(t.Context(), commits[n], out); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want[n], listing(t, out)); d != "" {
				t.Errorf("folder %d, commit %d (-git +ours):\n%s", i, n, d)
			}
			if err := p.Checkout(t.Context(), commits[n], out); err == nil || !strings.Contains(err.Error(), "not empty") {
				t.Errorf("checkout into a full folder: %v", err)
			}
			for name := range want[n] {
				if err := os.WriteFile(filepath.Join(out, name), []byte("of a build"), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(out, "a.o"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "pristine")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the pristine folder after Close: %v", err)
		}
		if err := p.Checkout(t.Context(), commits[1], filepath.Join(dir, "again")); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[1], listing(t, filepath.Join(dir, "again"))); d != "" {
			t.Errorf("after Close (-git +ours):\n%s", d)
		}
	})
}

// TestUpdateWritesWhatDiffers lets the pristine folder's other files stay.
func TestUpdateWritesWhatDiffers(t *testing.T) {
	repo, commits, want := steps(t)
	dir := filepath.Join(t.TempDir(), "pristine")
	p := open(t, repo).Pristine(dir)
	inodes := func(n int) map[string]uint64 {
		if err := p.Update(t.Context(), commits[n]); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want[n], listing(t, dir)); d != "" {
			t.Fatalf("commit %d (-git +ours):\n%s", n, d)
		}
		all := map[string]uint64{}
		for name := range want[n] {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = info.Sys().(*syscall.Stat_t).Ino
		}
		return all
	}
	first := inodes(0)
	// A second name holds each, or its inode may be given to a new file.
	held := t.TempDir()
	for name, ino := range first {
		if err := os.Link(filepath.Join(dir, name), filepath.Join(held, fmt.Sprint(ino))); err != nil {
			t.Fatal(err)
		}
	}
	var stayed []string
	for name, ino := range inodes(1) {
		if first[name] == ino {
			stayed = append(stayed, name)
		}
	}
	slices.Sort(stayed)
	if d := cmp.Diff([]string{"large", "same", "x/y"}, stayed); d != "" {
		t.Errorf("files that stayed (-want +got):\n%s", d)
	}
}

// TestCheckoutIsNew dates all files by the checkout, also those that the
// pristine folder has had for long: a tool that goes by times must not find a source
// newer than what is made of it only because the series changes that.
func TestCheckoutIsNew(t *testing.T) {
	repo, commits, want := steps(t)
	r := open(t, repo)
	fileSystems(t, func(t *testing.T, dir string) {
		pristine, out, mark := filepath.Join(dir, "pristine"), filepath.Join(dir, "out"), filepath.Join(dir, "mark")
		p := r.Pristine(pristine)
		if err := p.Update(t.Context(), commits[0]); err != nil {
			t.Fatal(err)
		}
		past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
		for name := range want[0] {
			if err := os.Chtimes(filepath.Join(pristine, name), past, past); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := p.Checkout(t.Context(), commits[1], out); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(mark)
		if err != nil {
			t.Fatal(err)
		}
		for name := range want[1] {
			info, err := os.Lstat(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.ModTime().Before(before.ModTime()) {
				t.Errorf("%s is of %v, before the checkout at %v", name, info.ModTime(), before.ModTime())
			}
		}
	})
}

// TestCheckoutSharesContents writes more than fits into the file system if it were
// not shared.
func TestCheckoutSharesContents(t *testing.T) {
	repo := newRepo(t)
	noise := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	if err := os.WriteFile(filepath.Join(repo, "large"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	id := commit(t, repo, "large")
	r := open(t, repo)
	dir := newXFS(t)
	p := r.Pristine(filepath.Join(dir, "pristine"))
	for i := range 70 {
		if err := p.Checkout(t.Context(), id, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "69", "large"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(noise, got) {
		t.Error("the last copy is another file")
	}
}

// TestCheckoutAfterFailure goes on after a checkout that was interrupted, and after
// versions that are refused.
func TestCheckoutAfterFailure(t *testing.T) {
	repo, commits, want := steps(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(repo, "out")); err != nil {
		t.Fatal(err)
	}
	bad := []string{commit(t, repo, "bad")}
	put(t, repo, map[string]string{"same": "other\n"})
	bad = append(bad, commit(t, repo, "still bad"))
	p := open(t, repo)
	fileSystems(t, func(t *testing.T, dir string) {
		p := p.Pristine(filepath.Join(dir, "pristine"))
		n := 0
		write := func(ctx context.Context, commit string) (string, error) {
			n++
			out := filepath.Join(dir, fmt.Sprint(n))
			return out, p.Checkout(ctx, commit, out)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for round := range 2 {
			for _, commit := range bad {
				out, err := write(t.Context(), commit)
				var leaves *tree.LinkError
				if !errors.As(err, &leaves) || leaves.Path != "out" {
					t.Errorf("round %d: the link that leaves: %v", round, err)
				}
				if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("round %d: written although refused: %v", round, err)
				}
			}
			for i, commit := range commits {
				if _, err := write(ended, commit); !errors.Is(err, context.Canceled) {
					t.Fatalf("round %d, commit %d: interrupted: %v", round, i, err)
				}
				out, err := write(t.Context(), commit)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want[i], listing(t, out)); d != "" {
					t.Errorf("round %d, commit %d (-git +ours):\n%s", round, i, d)
				}
			}
		}
	})
	// What another has made is left alone.
	there := t.TempDir()
	put(t, there, map[string]string{"file": "mine\n"})
	q := p.Pristine(there)
	if err := q.Update(t.Context(), commits[0]); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a folder that is there already: %v", err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]string{"file": "-rw-r--r-- mine\n"}, listing(t, there)); d != "" {
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
			out, err := checkout(t, open(t, dir), id)
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
		out, err := checkout(t, open(t, dir), id)
		var bad *tree.PathError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
		if names, _ := os.ReadDir(out); len(names) > 0 {
			t.Errorf("%s: written: %v", name, names)
		}
	}
}
