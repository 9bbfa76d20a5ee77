package build

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// tree writes the files of a version into dir/src; a text that begins with -> is
// a link.
func tree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, "src", name)
		if target, ok := strings.CutPrefix(text, "->"); ok {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, path, text, 0o644)
	}
}

// listing is what lies below dir/src, folders with a slash.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := fs.WalkDir(os.DirFS(filepath.Join(dir, "src")), ".", func(rel string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			rel += "/"
		}
		if rel != "./" {
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

const makefile = `kit: main.o lib/a.o
	cat main.o lib/a.o > kit; echo kit >> log
%.o: %.c
	cp $< $@; echo $@ >> log
`

// Each version's build goes on from the one before: only what changed is built
// again, and the kept file is the one that a build from scratch makes.
func TestIncremental(t *testing.T) {
	need(t, "make")
	base := map[string]string{"Makefile": makefile, "main.c": "main\n", "lib/a.c": "a\n", "notes": "x\n", "old/gone.c": "gone\n", "link": "->notes"}
	change := func(changes ...string) map[string]string {
		m := map[string]string{}
		for k, v := range base {
			m[k] = v
		}
		for i := 0; i < len(changes); i += 2 {
			if changes[i+1] == "" {
				delete(m, changes[i])
			} else {
				m[changes[i]] = changes[i+1]
			}
		}
		return m
	}
	recipe := bench.Recipe{Run: sh("[ -e log ] && > log; make kit; cp kit $OUT"), Keep: []string{"kit"}}
	scratch := New(open(t, false), &bench.Suite{Build: recipe, Benchmarks: line("./kit")}, Options{})
	recipe.Incremental = true
	going := New(open(t, false), &bench.Suite{Build: recipe, Benchmarks: line("./kit")}, Options{})
	made := func(b *Builder, n int, files map[string]string) bench.Build {
		t.Helper()
		dir := folder(t)
		tree(t, dir, files)
		got, err := b.Build(t.Context(), n, dir)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := []string{"Makefile", "kit", "lib/", "lib/a.c", "lib/a.o", "link", "log", "main.c", "main.o", "notes", "old/", "old/gone.c"}
	without := func(list []string, names ...string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(names, s) })
	}
	for n, tt := range []struct {
		name  string
		files map[string]string
		built string // what make did
		there []string
		fails bool
		drop  bool // the folder is taken away after the build
	}{
		{"base", base, "main.o lib/a.o kit", all, false, false},
		{"one file", change("lib/a.c", "b\n"), "lib/a.o kit", all, false, false},
		{"back", base, "lib/a.o kit", all, false, false},
		{"nothing that is built", change("notes", "y\n"), "", all, false, true},
		{"after one that is taken away", change("main.c", "more\n"), "main.o kit", all, false, false},
		{"does not build", change("Makefile", "kit: force\n\tfalse\nforce:\n"), "", nil, true, false},
		{"after one that does not build", change("main.c", "more\n", "lib/a.c", "c\n"), "lib/a.o kit", all, false, false},
		{"a folder goes, a link turns", change("main.c", "more\n", "lib/a.c", "c\n", "old/gone.c", "", "link", "->Makefile"), "", without(all, "old/", "old/gone.c"), false, false},
		{"a file becomes a folder, a folder a file", change("main.c", "more\n", "lib/a.c", "c\n", "notes", "", "notes/x", "x\n", "old/gone.c", "", "old", "o\n"), "",
			append(without(all, "old/", "old/gone.c", "notes"), "notes/", "notes/x", "old"), false, false},
	} {
		got := made(going, n, tt.files)
		if (got.State == bench.BuildFailed) != tt.fails {
			t.Fatalf("%s: %s:\n%s", tt.name, got.State, got.LogTail)
		}
		if tt.fails {
			continue
		}
		if d := cmp.Diff(tt.built, strings.Join(strings.Fields(string(read(t, filepath.Join(got.Dir, "src", "log")))), " ")); d != "" {
			t.Errorf("%s: make built (-want +got):\n%s", tt.name, d)
		}
		slices.Sort(tt.there)
		if d := cmp.Diff(tt.there, listing(t, got.Dir)); d != "" {
			t.Errorf("%s: files (-want +got):\n%s", tt.name, d)
		}
		if clean := made(scratch, 0, tt.files); clean.Digest != got.Digest {
			t.Errorf("%s: the build differs from one from scratch", tt.name)
		}
		if link, err := os.Readlink(filepath.Join(got.Dir, "src", "link")); err != nil || link != strings.TrimPrefix(tt.files["link"], "->") {
			t.Errorf("%s: link to %q, %v", tt.name, link, err)
		}
		for name, text := range tt.files {
			if !strings.HasPrefix(text, "->") && string(read(t, filepath.Join(got.Dir, "src", name))) != text {
				t.Errorf("%s: %s is not the version's", tt.name, name)
			}
		}
		if tt.drop {
			if err := os.RemoveAll(got.Dir); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What counts in a digest is the same as for a build from scratch: the program is
// made by the build, also when this version's build did not touch it.
func TestIncrementalDigest(t *testing.T) {
	need(t, "make", "gcc")
	suite := bench.Suite{Build: bench.Recipe{Run: sh("make kit"), Incremental: true}, Benchmarks: line("./kit 1 2 3")}
	b := New(open(t, false), &suite, Options{})
	first := build(t, b, 0, "c")
	again := build(t, b, 1, "c", "Makefile", "CFLAGS = -O2 -g=># as before\nCFLAGS = -O2 -g")
	_ = again
	comment := build(t, b, 2, "c")
	if first.Digest != comment.Digest {
		t.Error("the same files are another build")
	}
}

// A former build that is full of traps is no way out of the folder.
func TestIncrementalTraps(t *testing.T) {
	need(t, "make")
	outside := folder(t)
	write(t, filepath.Join(outside, "a.c"), "mine\n", 0o644)
	suite := bench.Suite{Build: bench.Recipe{
		Run:  sh("if [ -e lib/evil ]; then rm -r lib old; ln -s " + outside + " lib; ln -s ../../.. old; mkfifo pipe; rm main.c; mkfifo main.c; fi; echo x > kit"),
		Keep: []string{"kit"}, Incremental: true,
	}, Benchmarks: line("./kit")}
	b := New(open(t, false), &suite, Options{})
	for n, files := range []map[string]string{
		{"lib/a.c": "a\n", "lib/evil": "x\n", "old/x": "x\n", "main.c": "main\n"},
		{"lib/a.c": "changed\n", "main.c": "main\n"},
	} {
		dir := folder(t)
		tree(t, dir, files)
		got, err := b.Build(t.Context(), n, dir)
		if err != nil || got.State != bench.Built {
			t.Fatalf("version %d: %+v, %v", n, got, err)
		}
		if n == 1 {
			if text := string(read(t, filepath.Join(dir, "src", "lib", "a.c"))); text != "changed\n" {
				t.Errorf("lib/a.c is %q", text)
			}
			if info, err := os.Lstat(filepath.Join(dir, "src", "lib")); err != nil || !info.IsDir() {
				t.Errorf("lib is %v, %v", info, err)
			}
		}
	}
	if text := string(read(t, filepath.Join(outside, "a.c"))); text != "mine\n" {
		t.Errorf("a file outside was written: %q", text)
	}
}
