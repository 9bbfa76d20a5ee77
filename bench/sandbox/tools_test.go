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

func TestTail(t *testing.T) {
	long := strings.Repeat("x", 3*tailBytes)
	for _, tt := range []struct {
		name  string
		texts []string // a leading ! marks a complaint
		want  string
	}{
		{"nothing", nil, ""},
		{"in order", []string{"a", "!b", "c"}, "abc"},
		{"output gives way", []string{"!why\n", long, "end"}, "why\n" + long[:tailBytes-7] + "end"},
		{"complaints give way above their half", []string{"out", "!" + long}, "out" + long[:tailBytes-3]},
		{"both too long", []string{long, "!" + long, long}, long[:tailBytes]},
		{"cut in a character", []string{"é" + long[:tailBytes-1]}, "\uFFFD" + long[:tailBytes-1]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l tail
			for _, text := range tt.texts {
				text, complaint := strings.CutPrefix(text, "!")
				l.add([]byte(text), complaint)
			}
			if diff := cmp.Diff(tt.want, l.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzParseStat gives names to processes that look like the fields behind them.
func FuzzParseStat(f *testing.F) {
	for _, name := range []string{"sh", "x) S 1 (y", ")", "", "a b\n) Z 7 ", "((((", "\x00\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		want := process{parent: 42, dead: true}
		got, ok := parseStat([]byte("17 (" + name + ") Z 42 17 17 0 -1"))
		if !ok || got != want {
			t.Errorf("%q: %+v, %t", name, got, ok)
		}
		parseStat([]byte(name)) // does not panic
	})
}
