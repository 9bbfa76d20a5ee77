package workfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// leave makes the folder of a bot that was killed: with files, and a lock that
// nobody holds.
func leave(t *testing.T, parent string) *Folder {
	t.Helper()
	w, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(w.Work, "file"), "text\n")
	w.lock.Close()
	w.self.Close()
	w.parent.Close()
	return w
}

func TestWorkFolder(t *testing.T) {
	parent := t.TempDir()
	used, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	access := func(uid int) string {
		t.Helper()
		if err := used.Admit(uid); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(used.Dir)
		if err != nil {
			t.Fatal(err)
		}
		group := info.Sys().(*syscall.Stat_t).Gid
		return fmt.Sprintf("%v %v", info.Mode(), group == 64000)
	}
	if got := access(os.Geteuid()); got != "drwx------ false" {
		t.Errorf("%s, want a folder that this user alone may pass through", got)
	}
	if os.Geteuid() == 0 {
		if got := access(64000); got != "drwx--x--- true" {
			t.Errorf("%s, want a folder that one group may pass through", got)
		}
	}
	if info, err := os.Stat(used.Work); err != nil || info.Mode() != os.ModeDir|0o711 {
		t.Errorf("%v, %v, want a folder that all may pass through who get there", info.Mode(), err)
	}
	left := leave(t, parent)
	locked := filepath.Join(left.Work, "locked")
	if err := os.MkdirAll(filepath.Join(locked, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	// Killed again while the next bot removed it, before anything and at the end.
	begun, ended := leave(t, parent), leave(t, parent)
	if err := os.RemoveAll(ended.Work); err != nil {
		t.Fatal(err)
	}

	next, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Folder{left, begun, ended} {
		if exists(w.Dir) {
			t.Error("the folder of a bot that is gone was not removed")
		}
	}
	if !exists(used.Work) || !exists(next.Work) {
		t.Error("a folder in use was removed")
	}
	used.Remove()
	next.Remove()
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left after use: %v, %v", left, err)
	}
}

// Folders that look like those of a killed bot and are none stay as they are,
// with all in them.
func TestSweepForeign(t *testing.T) {
	for _, c := range []struct {
		name string
		root bool // only root can make it
		// make turns the folder of a killed bot into another's.
		make func(t *testing.T, w *Folder)
	}{
		{"another name", false, func(t *testing.T, w *Folder) {
			rename(t, w, filepath.Join(filepath.Dir(w.Dir), "patchbench-mine"))
		}},
		{"no lock", false, func(t *testing.T, w *Folder) { removeFile(t, filepath.Join(w.Dir, "lock")) }},
		{"an empty lock", false, func(t *testing.T, w *Folder) { write(t, filepath.Join(w.Dir, "lock"), "") }},
		{"another's lock", false, func(t *testing.T, w *Folder) { write(t, filepath.Join(w.Dir, "lock"), "4711\n") }},
		{"a longer lock", false, func(t *testing.T, w *Folder) { write(t, filepath.Join(w.Dir, "lock"), lockText+"more\n") }},
		{"a lock that is a link", false, func(t *testing.T, w *Folder) {
			lock, elsewhere := filepath.Join(w.Dir, "lock"), filepath.Join(t.TempDir(), "lock")
			if err := os.Rename(lock, elsewhere); err != nil {
				t.Fatal(err)
			}
			symlink(t, elsewhere, lock)
		}},
		{"a lock that is a pipe", false, func(t *testing.T, w *Folder) {
			lock := filepath.Join(w.Dir, "lock")
			removeFile(t, lock)
			if err := unix.Mkfifo(lock, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"something beside work", false, func(t *testing.T, w *Folder) { write(t, filepath.Join(w.Dir, "notes"), "text\n") }},
		{"a link to one", false, func(t *testing.T, w *Folder) {
			elsewhere := filepath.Join(t.TempDir(), "dir")
			link := w.Dir
			rename(t, w, elsewhere)
			symlink(t, elsewhere, link)
		}},
		{"others may write", false, func(t *testing.T, w *Folder) { chmod(t, w.Dir, 0o777) }},
		{"others may write the lock", false, func(t *testing.T, w *Folder) { chmod(t, filepath.Join(w.Dir, "lock"), 0o666) }},
		{"another owner", true, func(t *testing.T, w *Folder) { chown(t, w.Dir) }},
		{"another owner's lock", true, func(t *testing.T, w *Folder) { chown(t, filepath.Join(w.Dir, "lock")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && os.Geteuid() != 0 {
				t.Skip("giving a file away needs root")
			}
			parent := t.TempDir()
			w := leave(t, parent)
			c.make(t, w)
			mode := func() os.FileMode {
				info, err := os.Stat(w.Dir)
				if err != nil {
					t.Fatal(err)
				}
				return info.Mode()
			}
			before := mode()
			next, err := New(parent)
			if err != nil {
				t.Fatal(err)
			}
			next.Remove()
			if !exists(filepath.Join(w.Dir, "work", "file")) || mode() != before {
				t.Errorf("was taken for one of ours: mode %v, before %v", mode(), before)
			}
		})
	}
}

// A folder may be left with a link where work was: what it points to stays.
func TestSweepLink(t *testing.T) {
	parent, victim := t.TempDir(), t.TempDir()
	write(t, filepath.Join(victim, "file"), "text\n")
	chmod(t, victim, 0o555)
	defer os.Chmod(victim, 0o755)
	w := leave(t, parent)
	symlink(t, victim, filepath.Join(w.Work, "link"))
	x := leave(t, parent)
	if err := os.RemoveAll(x.Work); err != nil {
		t.Fatal(err)
	}
	symlink(t, victim, x.Work)
	next, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	next.Remove()
	if exists(w.Dir) || exists(x.Dir) {
		t.Error("the folder of a bot that is gone was not removed")
	}
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o555 || !exists(filepath.Join(victim, "file")) {
		t.Errorf("the folder linked to was changed: %v, %v", info, err)
	}
}

// Removal that does not come to its end leaves the lock, so that a later bot
// finds the folder: here something is mounted in it.
func TestRemovalCutShort(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	parent := t.TempDir()
	w, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	mount := filepath.Join(w.Work, "mount")
	if err := os.Mkdir(mount, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", mount, "tmpfs", 0, ""); err != nil {
		t.Skip("mount: ", err)
	}
	defer unix.Unmount(mount, unix.MNT_DETACH)
	w.Remove()
	if text, err := os.ReadFile(filepath.Join(w.Dir, "lock")); err != nil || string(text) != lockText {
		t.Errorf("the lock went before the rest: %q, %v", text, err)
	}
	if err := unix.Unmount(mount, 0); err != nil {
		t.Fatal(err)
	}
	Sweep(parent)
	if exists(w.Dir) {
		t.Error("was not removed later")
	}
}

func rename(t *testing.T, w *Folder, to string) {
	t.Helper()
	if err := os.Rename(w.Dir, to); err != nil {
		t.Fatal(err)
	}
	w.Dir = to
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
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

func chown(t *testing.T, path string) {
	t.Helper()
	if err := os.Lchown(path, 64000, 64000); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
