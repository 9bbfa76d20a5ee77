package claim

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSweep leaves folders of all kinds and looks at which are taken for left over.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	held, err := New(parent, "mine-")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	left, err := New(parent, "mine-")
	if err != nil {
		t.Fatal(err)
	}
	left.Close()
	for _, d := range []struct {
		name string
		mode os.FileMode
	}{{"mine-open", 0o777}, {"other-1", 0o700}} {
		dir := filepath.Join(parent, d.name)
		if err := os.Mkdir(dir, d.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, d.mode); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(parent, "mine-link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "mine-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		dir := filepath.Join(parent, "mine-another's")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 65432, 65432); err != nil {
			t.Fatal(err)
		}
	}
	var swept []string
	Sweep(parent, "mine-", func(dir string) error {
		swept = append(swept, dir)
		return os.Remove(dir)
	})
	if d := cmp.Diff([]string{left.Name()}, swept); d != "" {
		t.Error(d)
	}
	Sweep(filepath.Join(parent, "not there"), "mine-", func(dir string) error {
		t.Errorf("swept %s", dir)
		return nil
	})
}

// TestLock tells a folder that was removed, and made again, from the one opened.
func TestLock(t *testing.T) {
	f, err := New(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := hold(f); err != nil {
		t.Errorf("the holder again: %v", err)
	}
	if _, err := lock(f.Name()); err == nil {
		t.Error("locked what is held")
	}
	moved := f.Name() + ".moved"
	if err := os.Rename(f.Name(), moved); err != nil {
		t.Fatal(err)
	}
	if err := hold(f); err == nil {
		t.Error("held what is not there")
	}
	if err := os.Mkdir(f.Name(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := hold(f); err == nil {
		t.Error("took another folder for it")
	}
}
