package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The digest hangs on bubblewrap's file and on the box, and on nothing else.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	bwrap := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	digest := func(s *Sandbox) string {
		t.Helper()
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := digest(&Sandbox{bwrap: bwrap("one", "bubblewrap 1")})
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(first) {
		t.Errorf("digest %q", first)
	}
	for name, c := range map[string]struct {
		s    *Sandbox
		same bool
	}{
		"again":           {&Sandbox{bwrap: bwrap("one", "bubblewrap 1")}, true},
		"another place":   {&Sandbox{bwrap: bwrap("two", "bubblewrap 1")}, true},
		"another program": {&Sandbox{bwrap: bwrap("three", "bubblewrap 2")}, false},
		"other bounds":    {&Sandbox{bwrap: bwrap("one", "bubblewrap 1"), facts: Facts{Bounds: "rlimits"}}, false},
		"another tool":    {&Sandbox{bwrap: bwrap("one", "bubblewrap 1"), tools: []string{"/srv/go"}}, false},
	} {
		if same := digest(c.s) == first; same != c.same {
			t.Errorf("%s: the same digest: %v, want %v", name, same, c.same)
		}
	}
	if d := digest(&Sandbox{}); d != "" {
		t.Errorf("no sandbox has the digest %q", d)
	}
	if _, err := (&Sandbox{bwrap: filepath.Join(dir, "gone")}).Digest(); err == nil {
		t.Error("a bubblewrap that is gone has a digest")
	}
}
