package unlink

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// victim is a folder that no removal may change.
type victim struct {
	dir    string
	before map[string]string
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir()}
	mkdir(t, filepath.Join(v.dir, "below"))
	write(t, filepath.Join(v.dir, "below", "file"))
	// A mode that an owner's access would be added to.
	for _, dir := range []string{filepath.Join(v.dir, "below"), v.dir} {
		chmod(t, dir, 0o555)
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
	}
	v.before = v.state(t)
	return v
}

func (v *victim) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		state[path] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func (v *victim) check(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(v.before, v.state(t)); diff != "" {
		t.Errorf("a folder outside was changed (-before +after):\n%s", diff)
	}
}

func TestAll(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string, v *victim)
	}{
		{"nothing", func(t *testing.T, dir string, v *victim) {}},
		{"a file", func(t *testing.T, dir string, v *victim) { write(t, dir) }},
		{"a link to a folder", func(t *testing.T, dir string, v *victim) { link(t, v.dir, dir) }},
		{"an empty folder", func(t *testing.T, dir string, v *victim) { mkdir(t, dir) }},
		{"links at each depth", func(t *testing.T, dir string, v *victim) {
			mkdir(t, filepath.Join(dir, "a", "b"))
			for _, at := range []string{".", "a", "a/b"} {
				link(t, v.dir, filepath.Join(dir, at, "folder"))
				link(t, filepath.Join(v.dir, "below", "file"), filepath.Join(dir, at, "file"))
				link(t, "..", filepath.Join(dir, at, "up"))
				link(t, "nowhere", filepath.Join(dir, at, "dangling"))
			}
		}},
		{"names of our own in the way", func(t *testing.T, dir string, v *victim) {
			mkdir(t, filepath.Join(dir, "a", "b", "c", "d"))
			write(t, filepath.Join(dir, ".unlink-1"))
			mkdir(t, filepath.Join(dir, ".unlink-2", "b", "c"))
			link(t, v.dir, filepath.Join(dir, ".unlink-3"))
		}},
		{"more than one listing holds", func(t *testing.T, dir string, v *victim) {
			for _, sub := range []string{"", "sub"} {
				mkdir(t, filepath.Join(dir, sub))
				for i := range 1100 {
					link(t, v.dir, filepath.Join(dir, sub, "link"+strconv.Itoa(i)))
				}
			}
		}},
		{"folders without permissions", func(t *testing.T, dir string, v *victim) {
			mkdir(t, filepath.Join(dir, "a", "b", "c"))
			write(t, filepath.Join(dir, "a", "b", "c", "file"))
			for _, at := range []string{"a/b/c", "a/b", "a", "."} {
				chmod(t, filepath.Join(dir, at), 0)
			}
		}},
		{"deeper than a path can say", func(t *testing.T, dir string, v *victim) {
			mkdir(t, dir)
			fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
			for range 1000 {
				if err == nil {
					err = unix.Mkdirat(fd, "deep", 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
				next, err2 := unix.Openat(fd, "deep", unix.O_PATH|unix.O_DIRECTORY, 0)
				unix.Close(fd)
				fd, err = next, err2
			}
			unix.Close(fd)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asUser(t)
			parent, v := t.TempDir(), newVictim(t)
			dir := filepath.Join(parent, "dir")
			write(t, filepath.Join(parent, "sibling"))
			c.make(t, dir, v)
			if err := All(dir); err != nil {
				t.Error(err)
			}
			left, err := filepath.Glob(filepath.Join(parent, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{filepath.Join(parent, "sibling")}, left); diff != "" {
				t.Errorf("left in the parent (-want +got):\n%s", diff)
			}
			v.check(t)
		})
	}
}

// What was a folder when it was listed is a link when it is opened: each place
// at which that can happen is put before the link.
func TestSwapped(t *testing.T) {
	v, dir := newVictim(t), t.TempDir()
	link(t, v.dir, filepath.Join(dir, "a"))
	mkdir(t, filepath.Join(dir, "sub"))
	link(t, v.dir, filepath.Join(dir, "sub", "b"))
	top, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	at := int(top.Fd())
	// The link cannot be removed here, as if it had come after that was tried.
	if f, _, err := open(at, "../"+filepath.Base(dir)+"/a", "a", nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("open of a link: %v, %v", f, err)
	}
	v.check(t)
	link(t, v.dir, filepath.Join(dir, "a"))
	r := &remover{top: top}
	if err := r.remove("a"); err != nil {
		t.Error(err)
	}
	sub, err := os.Open(filepath.Join(dir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if err := r.up(sub, "b"); err != nil {
		t.Error(err)
	}
	v.check(t)
}

// A process that keeps exchanging folders for links while they are removed
// reaches nothing outside.
func TestSwapRace(t *testing.T) {
	v, parent := newVictim(t), t.TempDir()
	for range 100 {
		dir := filepath.Join(parent, "dir")
		mkdir(t, filepath.Join(dir, "a", "b", "c"))
		chmod(t, filepath.Join(dir, "a", "b"), 0o500)
		links := filepath.Join(parent, "links")
		mkdir(t, links)
		link(t, v.dir, filepath.Join(links, "0"))
		link(t, v.dir, filepath.Join(links, "1"))
		stop, stopped := make(chan bool), make(chan bool)
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					exchange(filepath.Join(dir, "a"), filepath.Join(links, "0"))
					exchange(filepath.Join(dir, "a", "b"), filepath.Join(links, "1"))
				}
			}
		}()
		_ = All(dir) // may give up: what counts is the folder outside
		close(stop)
		<-stopped
		if err := errors.Join(All(dir), All(links)); err != nil {
			t.Fatal(err)
		}
		if v.check(t); t.Failed() {
			return
		}
	}
}

func exchange(a, b string) {
	_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) // gone already
}

func TestMountStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := filepath.Join(t.TempDir(), "dir")
	at := filepath.Join(dir, "a", "mnt")
	mkdir(t, at)
	write(t, filepath.Join(dir, "a", "file"))
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Skip("mount: ", err)
	}
	defer unix.Unmount(at, unix.MNT_DETACH)
	write(t, filepath.Join(at, "kept"))
	err := All(dir)
	if err == nil || !strings.Contains(err.Error(), "mnt") || !strings.Contains(err.Error(), "unmount") {
		t.Errorf("error = %v, want one that names the mount", err)
	}
	if _, err := os.Stat(filepath.Join(at, "kept")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a", "file")); err == nil {
		t.Error("what lies beside the mount was not removed")
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
	if err := All(dir); err != nil {
		t.Error(err)
	}
}

// What cannot be removed ends in an error, not in an endless loop.
func TestStays(t *testing.T) {
	asUser(t)
	parent := t.TempDir()
	mkdir(t, filepath.Join(parent, "dir"))
	chmod(t, parent, 0o555)
	defer os.Chmod(parent, 0o755)
	err := All(filepath.Join(parent, "dir"))
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), filepath.Join(parent, "dir")) {
		t.Errorf("error = %v, want one that names the folder", err)
	}
}

func TestNotAName(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"))
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"", ".", "..", "a/b", "/"} {
		if err := At(f, name); err == nil {
			t.Errorf("At(%q) gives no error", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
}

// asUser goes on as an ordinary user where the tests run as root, whom no mode
// would keep out. Folders of t.TempDir are that user's until the test ends.
func asUser(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	base := t.TempDir()
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(base), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setreuid(-1, 64000); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setreuid(-1, 0); err != nil {
			t.Fatal(err)
		}
	})
	// Else /proc/self is root's from here on.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// Empty leaves the folder, and makes room in one that its owner cannot enter.
func TestEmpty(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	mkdir(t, filepath.Join(dir, "a", "b"))
	write(t, filepath.Join(dir, "a", "b", "file"))
	if err := os.Symlink("a", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, filepath.Join(dir, "a", "b"), 0)
	chmod(t, dir, 0)
	if err := Empty(dir); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(dir)
	if err != nil || !os.SameFile(before, after) {
		t.Fatalf("the folder itself: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := Empty(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}
