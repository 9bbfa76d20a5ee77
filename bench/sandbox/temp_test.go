package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTempDir(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir string }{
		{"not there", file + ".no"},
		{"a file", file},
		{"takes no files", "/proc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.dir)
			dir, err := tempDir()
			if !errors.Is(err, ErrTemp) {
				t.Fatalf("%v, %v, want ErrTemp", dir, err)
			}
			if text := err.Error(); !strings.Contains(text, "TMPDIR") || !strings.Contains(text, c.dir+": ") || strings.Contains(text, tempPrefix) {
				t.Errorf("error %q: want the variable and the folder, and no other name", text)
			}
		})
	}
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if filepath.Dir(dir.Name()) != os.Getenv("TMPDIR") {
		t.Errorf("made %s", dir.Name())
	}
}

// TestSweepTemp leaves a folder as a bot does that was killed, with what a program
// of the unsafe mode may have put there: the next bot removes it, and no other.
func TestSweepTemp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	kept, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	left, err := tempDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(left.Name(), "closed", "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(left.Name(), "closed"), 0); err != nil {
		t.Fatal(err)
	}
	left.Close()
	openUnsafe(t)
	names, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{kept.Name()}, names); diff != "" {
		t.Error(diff)
	}
}
