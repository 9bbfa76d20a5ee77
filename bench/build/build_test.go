package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// scratch holds the runner and all versions; programs of another uid can enter it.
var scratch string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "build-test-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(scratch)
		if err := os.Chmod(scratch, 0o711); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(scratch, "runner"), "patchbench/bench/sandbox/testdata/runner")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build the runner: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// lacking skips a test for want of something, or fails it in CI.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI must have it: %s", what)
	}
	t.Skip(what)
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			lacking(t, p+" is not installed")
		}
	}
}

func open(t *testing.T, unsafe bool) *sandbox.Sandbox {
	t.Helper()
	sb, err := sandbox.Open(t.Context(), sandbox.Options{Executable: filepath.Join(scratch, "runner"), Unsafe: unsafe})
	if errors.Is(err, sandbox.ErrNone) {
		lacking(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close() })
	return sb
}

// folder makes a new empty folder for a version; it goes with scratch, as later
// versions need base's.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(scratch, "v")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkout writes one program of testdata/kit.txtar into dir/src, each file with
// the changes made: pairs of file name and text to replace with the text behind
// "=>". A file of the name that is not there is made.
func checkout(t *testing.T, dir, program string, changes ...string) {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", "kit.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range ar.Files {
		if name, ok := strings.CutPrefix(f.Name, program+"/"); ok {
			files[name] = string(f.Data)
		}
	}
	for i := 0; i < len(changes); i += 2 {
		from, to, _ := strings.Cut(changes[i+1], "=>")
		text := files[changes[i]]
		if !strings.Contains(text, from) {
			t.Fatalf("%s has no %q", changes[i], from)
		}
		files[changes[i]] = strings.Replace(text, from, to, 1)
	}
	for name, text := range files {
		write(t, filepath.Join(dir, "src", name), text, 0o644)
	}
	if len(files) == 0 {
		if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func sh(text string) bench.Program { return bench.Program{Line: text} }

// build checks a program out and builds it; it must succeed.
func build(t *testing.T, b *Builder, version int, program string, changes ...string) bench.Build {
	t.Helper()
	dir := folder(t)
	checkout(t, dir, program, changes...)
	made, err := b.Build(t.Context(), version, dir)
	if err != nil {
		t.Fatal(err)
	}
	if made.State != bench.Built {
		t.Fatalf("version %d: %s:\n%s", version, made.State, made.LogTail)
	}
	if made.Version != version || made.Dir != dir || len(made.Digest) != 64 || made.Elapsed <= 0 {
		t.Fatalf("version %d is %+v", version, made)
	}
	return made
}

// TestSameBuild builds programs with real compilers and small changes.
func TestSameBuild(t *testing.T) {
	const comment = "/* adds the numbers of a text */=>/*\n * Adds all decimal numbers\n * that stand in a text.\n */"
	kit := bench.Suite{Build: bench.Recipe{Run: sh("make kit")}, Benchmarks: line("./kit 1 2 3")}
	kept := kit
	kept.Build.Keep = []string{"kit"}
	objects := kit
	objects.Benchmarks = line("make kit && ./kit 1 2 3")
	archived := kit
	archived.Build = bench.Recipe{Run: sh("make parse.o && ar rc libkit.a parse.o"), Keep: []string{"libkit.a", "parse.o"}}
	golang := bench.Suite{Build: bench.Recipe{Run: sh("go build -trimpath -o $OUT/kit ."), Env: map[string]string{"GOFLAGS": "-buildvcs=false"}, Cache: []string{"GOCACHE"}},
		Benchmarks: line("$OUT/kit x")}

	tests := []struct {
		name    string
		suite   bench.Suite
		program string
		tools   string
		changes []string
		same    bool
	}{
		{"nothing", kit, "c", "gcc make", nil, true},
		{"comment of other length", kit, "c", "gcc make", []string{"parse.c", comment}, true},
		{"comment of other length, keep", kept, "c", "gcc make", []string{"parse.c", comment}, true},
		{"comment of other length, objects and an archive", archived, "c", "gcc make", []string{"parse.c", comment}, true},
		{"comment, but a benchmark compiles", objects, "c", "gcc make", []string{"parse.c", comment}, false},
		{"documentation", kit, "c", "gcc make", []string{"README", "Adds=>Sums", "NEWS.md", "=>new"}, true},
		{"code", kit, "c", "gcc make", []string{"parse.c", "return sum + n=>return sum - n"}, false},
		{"code, keep", kept, "c", "gcc make", []string{"parse.c", "return sum + n=>return sum - n"}, false},
		{"code, objects and an archive", archived, "c", "gcc make", []string{"parse.c", "return sum + n=>return sum - n"}, false},
		{"constant text", kit, "c", "gcc make", []string{"main.c", "%ld=>%lx"}, false},
		{"other flags", kit, "c", "gcc make", []string{"Makefile", "-O2=>-O0"}, false},
		{"data", kit, "c", "gcc make", []string{"words", "one=>eno"}, false},
		{"data, but keep", kept, "c", "gcc make", []string{"words", "one=>eno"}, true},
		{"a new data file", kit, "c", "gcc make", []string{"more", "=>x"}, false},
		{"Go comment", golang, "go", "go", []string{"main.go", "adds the sizes=>sums up all lengths"}, true},
		{"Go documentation", golang, "go", "go", []string{"README.md", "=>x"}, true},
		{"Go code", golang, "go", "go", []string{"main.go", "n += len=>n -= len"}, false},
	}
	sb := open(t, false)
	type based struct {
		b    *Builder
		base bench.Build
	}
	bases := map[string]based{} // by recipe and benchmark
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			need(t, strings.Fields(test.tools)...)
			if test.tools == "go" && testing.Short() {
				t.Skip("compiles Go's own packages into an empty cache")
			}
			recipe := fmt.Sprint(test.suite)
			if _, ok := bases[recipe]; !ok {
				b := New(sb, &test.suite, Options{})
				bases[recipe] = based{b, build(t, b, 0, test.program)}
			}
			b, base := bases[recipe].b, bases[recipe].base
			patched := build(t, b, 1, test.program, test.changes...)
			if same := base.Digest == patched.Digest; same != test.same {
				t.Errorf("same build: %v, want %v", same, test.same)
			}
		})
	}
}

// TestFolderName checks that without a box, where programs see the folder's own
// name, builds do not differ by it.
func TestFolderName(t *testing.T) {
	suite := bench.Suite{Build: bench.Recipe{Run: sh(`pwd > $OUT/where; echo $SRC >> $OUT/where; ln -s $SRC/words link`)}, Benchmarks: line("cat x")}
	b := New(open(t, true), &suite, Options{})
	base, patched := build(t, b, 0, "c"), build(t, b, 1, "c")
	if base.Digest != patched.Digest {
		t.Error("the same text in two folders gives two digests")
	}
}

func TestRecipe(t *testing.T) {
	tests := []struct {
		name   string
		recipe bench.Recipe
		// fails is the end of the log of a build that failed; "" for success.
		fails string
		made  map[string]string // files below the version's folder
	}{
		{"nothing to build", bench.Recipe{}, "", map[string]string{"src/words": "one two\n"}},
		{
			"where and with what", bench.Recipe{Run: sh(`echo "$PWD $SRC $OUT $A" > "$OUT/env"; echo x > in-src`), Env: map[string]string{"A": "b c"}}, "",
			map[string]string{"out/env": "/build/src /build/src /build/out b c\n", "src/in-src": "x\n"},
		},
		{"argument list", bench.Recipe{Run: bench.Program{Args: []string{"cp", "words", "/build/out/a b"}}}, "", map[string]string{"out/a b": "one two\n"}},
		{"check passes", bench.Recipe{Run: sh("echo 1 > $OUT/x"), Check: sh("test -e $OUT/x")}, "", nil},
		{"fails", bench.Recipe{Run: sh("echo one; echo two >&2; exit 3")}, "one\ntwo\necho one; echo two >&2; exit 3: exit status 3\n", nil},
		{"errors in their order", bench.Recipe{Run: sh("for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo -$i >&2; done; false")}, "1\n-1\n2\n-2\n3\n-3\n4\n-4\n5\n-5\n6\n-6\n7\n-7\n8\n-8\n9\n-9\nfor i", nil},
		{"fails in the middle", bench.Recipe{Run: sh("false; echo on")}, "false; echo on: exit status 1\n", nil},
		{"unset variable", bench.Recipe{Run: sh("echo $NOTHING")}, "exit status 2\n", nil},
		{"check fails", bench.Recipe{Run: sh("echo built"), Check: sh("echo checked; false")}, "checked\necho checked; false: exit status 1\n", nil},
		{"crash", bench.Recipe{Run: sh("kill -SEGV $$")}, "kill -SEGV $$: SIGSEGV\n", nil},
		{"no such program", bench.Recipe{Run: bench.Program{Args: []string{"/no/such/tool"}}}, "/no/such/tool: it or its interpreter is not there\n", nil},
		{"timeout", bench.Recipe{Run: sh("echo begun; while :; do :; done"), Timeout: 300 * time.Millisecond}, "timed out", nil},
		{"long log", bench.Recipe{Run: sh("seq 1000; false")}, "\n1000\nseq 1000; false: exit status 1\n", nil},
		{"keep without a match", bench.Recipe{Run: sh("echo x"), Keep: []string{"words", "kit", "lib/**"}}, "x\nthe build made no file that keep names: \"kit\", \"lib/**\"\n", nil},
		{"odd files", bench.Recipe{Run: sh("mkfifo pipe; ln -s /etc/passwd link; ln -s nowhere dangling; ln -s . loop; echo x > locked; chmod 0 locked")}, "", nil},
	}
	sb := open(t, false)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			suite := bench.Suite{Build: test.recipe, Benchmarks: line("cat x")}
			dir := folder(t)
			checkout(t, dir, "c")
			made, err := New(sb, &suite, Options{}).Build(t.Context(), 2, dir)
			if err != nil {
				t.Fatal(err)
			}
			if test.fails == "" {
				if made.State != bench.Built || made.Digest == "" {
					t.Errorf("the build is %+v, want a success", made)
				}
			} else if made.State != bench.BuildFailed || made.Digest != "" || !strings.Contains(made.LogTail, test.fails) {
				t.Errorf("the build is %+v, want a failure with %q", made, test.fails)
			}
			if lines := strings.Count(made.LogTail, "\n"); lines > tailLines+1 {
				t.Errorf("%d lines of log are kept", lines)
			}
			for name, want := range test.made {
				if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
					t.Errorf("%s is %q (%v), want %q", name, got, err, want)
				}
			}
		})
	}
}

// TestOurFailures are those that must not be taken for the recipe's.
func TestOurFailures(t *testing.T) {
	suite := bench.Suite{Build: bench.Recipe{Run: sh("true")}}
	t.Run("no source", func(t *testing.T) {
		if made, err := New(nil, &suite, Options{}).Build(t.Context(), 0, folder(t)); err == nil {
			t.Errorf("the build is %+v", made)
		}
	})
	t.Run("no sandbox", func(t *testing.T) {
		dir := folder(t)
		checkout(t, dir, "c")
		if made, err := New(nil, &suite, Options{}).Build(t.Context(), 0, dir); err == nil {
			t.Errorf("the build is %+v", made)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		endless := bench.Suite{Build: bench.Recipe{Run: sh("while :; do :; done")}}
		b := New(open(t, false), &endless, Options{Progress: func(int, string) { cancel() }})
		dir := folder(t)
		checkout(t, dir, "c")
		if made, err := b.Build(ctx, 0, dir); !errors.Is(err, context.Canceled) {
			t.Errorf("the build is %+v with %v, want context.Canceled", made, err)
		}
	})
}

// TestCache checks that every version finds the cache as base left it.
func TestCache(t *testing.T) {
	suite := bench.Suite{Build: bench.Recipe{
		Run:   sh(`mkdir -p $XCACHE/sub; cat $XCACHE/sub/* > $OUT/found 2>/dev/null || :; cat words >> $XCACHE/sub/all; ls -a $XCACHE/link > /dev/null 2>&1 || ln -s / $XCACHE/link`),
		Cache: []string{"XCACHE"},
	}, Benchmarks: line("true")}
	b := New(open(t, false), &suite, Options{})
	base := build(t, b, 0, "c")
	for version, word := range []string{"", "two", "three"} {
		if version == 0 {
			continue
		}
		made := build(t, b, version, "c", "words", "one=>"+word)
		got, err := os.ReadFile(filepath.Join(made.Dir, "out/found"))
		if err != nil || string(got) != "one two\n" {
			t.Errorf("version %d finds %q in the cache (%v), want what base put there", version, got, err)
		}
		if _, err := os.Lstat(filepath.Join(made.Dir, "cache")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("version %d keeps its cache: %v", version, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(base.Dir, "cache/XCACHE/sub/all")); err != nil || string(got) != "one two\n" {
		t.Errorf("base's cache holds %q (%v) at the end", got, err)
	}
	again := build(t, b, 0, "c")
	if got, err := os.ReadFile(filepath.Join(again.Dir, "out/found")); err != nil || len(got) != 0 {
		t.Errorf("base, built again, finds %q in the cache (%v), want nothing", got, err)
	}
}

func TestCopy(t *testing.T) {
	need(t, "gcc", "make")
	suite := bench.Suite{Build: bench.Recipe{Run: sh(
		`make kit; ln -s kit link; ln kit hard; mkdir -p $OUT/ro/x; cp words $OUT/ro/x/w; chmod 555 $OUT/ro; mkfifo $OUT/pipe; truncate -s 64M hole; echo end >> hole; chmod u+s kit`,
	)}, Benchmarks: line("cat x")}
	b := New(open(t, false), &suite, Options{})
	base := build(t, b, 0, "c")
	dir := folder(t)
	twin, err := b.Copy(base, dir)
	if err != nil {
		t.Fatal(err)
	}
	if twin.Dir != dir || twin.Digest != base.Digest || twin.State != bench.Built {
		t.Errorf("the copy is %+v of %+v", twin, base)
	}
	stat := func(dir, name string) os.FileInfo {
		t.Helper()
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	for _, name := range []string{"src/kit", "src/parse.o", "src/parse.c", "src/hole", "out/ro/x/w", "out/ro/x", "out/ro", "src"} {
		a, c := stat(base.Dir, name), stat(dir, name)
		if os.SameFile(a, c) {
			t.Errorf("%s is the same file in both", name)
		}
		if !a.ModTime().Equal(c.ModTime()) || a.Mode().Perm() != c.Mode().Perm() || a.Mode().IsRegular() && a.Size() != c.Size() {
			t.Errorf("%s is %v %v %d, copied %v %v %d", name, a.Mode(), a.ModTime(), a.Size(), c.Mode(), c.ModTime(), c.Size())
		}
	}
	if m := stat(dir, "src/kit").Mode(); m&os.ModeSetuid != 0 {
		t.Errorf("the copy of kit is %v", m)
	}
	if !os.SameFile(stat(dir, "src/kit"), stat(dir, "src/hard")) {
		t.Error("hard links of one file are two files in the copy")
	}
	if target, err := os.Readlink(filepath.Join(dir, "src/link")); err != nil || target != "kit" {
		t.Errorf("the link goes to %q (%v)", target, err)
	}
	if n := blocks(stat(dir, "src/hole")) * 512; n > 1<<20 {
		t.Errorf("a hole takes %d bytes in the copy", n)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out/ro/x/w"))
	if err != nil || string(text) != "one two\n" {
		t.Errorf("a copied file holds %q (%v)", text, err)
	}
	if _, err := b.Copy(bench.Build{State: bench.BuildFailed}, folder(t)); err == nil {
		t.Error("a build that failed is copied")
	}
}
