package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
			dir, err := tempDir("pattern-")
			if !errors.Is(err, ErrTemp) {
				t.Fatalf("%q, %v, want ErrTemp", dir, err)
			}
			if text := err.Error(); !strings.Contains(text, "TMPDIR") || !strings.Contains(text, c.dir+": ") || strings.Contains(text, "pattern-") {
				t.Errorf("error %q: want the variable and the folder, and no other name", text)
			}
		})
	}
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := tempDir("pattern-")
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(dir) != os.Getenv("TMPDIR") {
		t.Errorf("made %s", dir)
	}
}
