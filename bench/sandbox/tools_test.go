package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTools looks for toolchains on a PATH of folders made up.
func TestTools(t *testing.T) {
	dir := workDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sdk/go/bin/go", "sdk/go/VERSION", "sdk/go/src/runtime/x", "home/.cargo/bin/cargo", "half/bin/go", "closed/go/bin/go",
		"closed/go/VERSION", "closed/go/src/runtime/x"} {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sdk/go/bin", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := ""
	for _, d := range []string{"home/.cargo/bin", "link", "sdk/go/bin", "half/bin", "nowhere", "closed/go/bin"} {
		path += filepath.Join(dir, d) + ":"
	}
	s := &Sandbox{opts: Options{Path: path + "/usr/bin:relative/bin"}}
	s.findTools()
	const unknown = "not a toolchain that is known to hold nothing private"
	wantTools, wantPath := []string{"sdk/go"}, "sdk/go/bin"
	wantHidden := []string{"home/.cargo/bin: " + unknown, "half/bin: " + unknown}
	if os.Geteuid() == 0 {
		wantHidden = append(wantHidden, "closed/go/bin: uid 64000 cannot enter "+filepath.Join(dir, "closed"))
	} else {
		wantTools = append(wantTools, "closed/go")
		wantPath += ":closed/go/bin"
	}
	short := func(text string) string { return strings.ReplaceAll(text, dir+"/", "") }
	for i := range s.tools {
		s.tools[i] = short(s.tools[i])
	}
	for i := range s.facts.Hidden {
		s.facts.Hidden[i] = strings.TrimPrefix(s.facts.Hidden[i], dir+"/")
	}
	if diff := cmp.Diff(wantTools, s.tools); diff != "" {
		t.Error("shown: " + diff)
	}
	if diff := cmp.Diff(wantHidden, s.facts.Hidden); diff != "" {
		t.Error("hidden: " + diff)
	}
	if diff := cmp.Diff(wantPath+":"+systemPath, short(s.facts.Path)); diff != "" {
		t.Error("path: " + diff)
	}
}
