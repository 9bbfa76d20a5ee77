package sample

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

	"patchbench/bench"
	"patchbench/bench/fixture"
	"patchbench/bench/sandbox"
)

// lacking skips a test for want of something, or fails it in CI.
func lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI must have it: %s", what)
	}
	t.Skip(what)
}

// openSandbox opens a sandbox whose runner is a program of its own: figures that
// the test binary took part in would not be the program's.
func openSandbox(t testing.TB, unsafe bool) *sandbox.Sandbox {
	t.Helper()
	dir := t.TempDir()
	main := filepath.Join(dir, "main.go")
	if err := os.WriteFile(main, []byte("package main\n\nimport \"patchbench/bench/sandbox\"\n\nfunc main() { sandbox.Main() }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	runner := filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-o", runner, main)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the runner: %v\n%s", err, out)
	}
	sb, err := sandbox.Open(t.Context(), sandbox.Options{Executable: runner, Unsafe: unsafe})
	if errors.Is(err, sandbox.ErrNone) {
		lacking(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// shellVersion makes a version whose program is a shell script.
func shellVersion(t testing.TB, sb *sandbox.Sandbox, v Version, script string) Version {
	t.Helper()
	// Not t.TempDir: the uid that programs run under must reach it.
	dir, err := os.MkdirTemp("", "sample-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{"src", "out"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"kit": "#!/bin/sh\n" + script, "words": "one two\n"} {
		if err := os.WriteFile(filepath.Join(dir, "src", name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := sb.Own(dir); err != nil {
		t.Fatal(err)
	}
	v.Dir = dir
	return v
}

// fixtures are a folder to read and one to write to.
func fixtures(t *testing.T) fixture.Set {
	t.Helper()
	dir, err := os.MkdirTemp("", "sample-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	var set fixture.Set
	for _, f := range []struct {
		name, file, text string
		copy             bool
	}{{"words", "list", "one two\n", false}, {"tree", "state", "fresh\n", true}} {
		m := fixture.Made{Fixture: bench.Fixture{Name: f.name, Copy: f.copy}, Dir: filepath.Join(dir, f.name)}
		if err := os.Mkdir(m.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(m.Dir, f.file), []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
		set = append(set, m)
	}
	return set
}

// Real programs in real boxes, from the warm-up to the record.
func TestBoxes(t *testing.T) {
	for _, unsafe := range []bool{false, true} {
		t.Run(fmt.Sprintf("unsafe=%v", unsafe), func(t *testing.T) { testBoxes(t, openSandbox(t, unsafe)) })
	}
}

func testBoxes(t *testing.T, sb *sandbox.Sandbox) {
	const work = "case $1 in\n" +
		"work) i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done;;\n" +
		"cat) cat;;\n" +
		"prepared) cat $TMPDIR/state && echo more > $TMPDIR/left;;\n" +
		"slow) while :; do :; done;;\n" +
		"go) echo \"BenchmarkLoop-2 10 $2 ns/op\";;\n" +
		"esac\n"
	crashing := "if [ $1 = cat ]; then kill -SEGV $$; fi\n" + work
	versions := []Version{
		shellVersion(t, sb, Version{}, work),
		shellVersion(t, sb, Version{Twin: true}, work),
		shellVersion(t, sb, Version{N: 1}, work+"# the same\n"),
		shellVersion(t, sb, Version{N: 2}, crashing),
	}
	suite := &bench.Suite{Name: "shell", Benchmarks: []bench.Benchmark{
		{Name: "work", Run: bench.Program{Line: "./kit work"}},
		{Name: "cat", Run: bench.Program{Args: []string{"./kit", "cat"}}, Stdin: "words", CheckStdout: true},
		{
			Name: "prepared", Run: bench.Program{Args: []string{"./kit", "prepared"}},
			Prepare: bench.Program{Line: `test ! -e "$TMPDIR/left"; test ! -e "$TMPDIR/state"; echo ready > "$TMPDIR/state"`},
			Cleanup: bench.Program{Line: `test -e "$TMPDIR/left"`},
		},
		{Name: "go", Run: bench.Program{Line: `./kit go "$NS"`}, Env: map[string]string{"NS": "250"}, Parse: "gobench"},
		{Name: "slow", Run: bench.Program{Args: []string{"./kit", "slow"}}, Timeout: 200 * time.Millisecond},
		{Name: "chain", Prepare: bench.Program{Line: `echo ready > "$TMPDIR/state"`}, Chain: []bench.Link{
			{Name: "add", Run: bench.Program{Line: `./kit work; cat "$TMPDIR/state" > "$TMPDIR/more"`}},
			{
				Name: "serve", Run: bench.Program{Line: `cat "$TMPDIR/more" > "$TMPDIR/up"; exec sleep 1000`}, Background: true,
				Ready: bench.Program{Line: `test -s "$TMPDIR/up"`},
			},
			{Name: "pull", Run: bench.Program{Line: `grep ready "$TMPDIR/up"; ./kit cat < words >"$TMPDIR/copy$COPY"`}, Parallel: 3},
			{Name: "look", Run: bench.Program{Line: `cmp "$TMPDIR/copy1" "$TMPDIR/copy3"`}},
		}},
		{
			Name: "checked", Run: bench.Program{Line: "echo out; ./kit work; exec cat words"}, Baseline: &bench.Benchmark{Name: "echo", Run: bench.Program{Line: "echo"}},
			Check:   bench.Program{Line: `read a; read b; test "$a,$b" = "out,one two"; test ! -e "$TMPDIR/left"; echo > "$TMPDIR/left"`},
			Cleanup: bench.Program{Line: `test -e "$TMPDIR/left"`},
		},
		{Name: "wrong", Run: bench.Program{Line: "echo out"}, Check: bench.Program{Line: "grep in"}},
		{Name: "together", Together: []bench.Benchmark{
			{Name: "x", Run: bench.Program{Line: "./kit work"}},
			{Name: "y", Prepare: bench.Program{Line: `: > "$TMPDIR/y"`}, Run: bench.Program{Line: `./kit work; test -e "$TMPDIR/y"`}},
		}},
		{
			Name: "fixture", Run: bench.Program{Line: `grep fresh "$FIXTURES/tree/state"; echo spoilt > "$FIXTURES/tree/state"; cmp words "$FIXTURES/words/list"`},
			Prepare: bench.Program{Line: `grep fresh "$FIXTURES/tree/state"`},
		},
		{Name: "readonly", Run: bench.Program{Line: `if touch written 2>/dev/null; then exit 9; fi; test "$PWD" = /build/src`}},
	}}
	s, err := Open(t.Context(), sb, suite, versions, Options{Seed: 7, Fixtures: fixtures(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	const rounds = 3
	tests := []struct {
		name     string
		failures []string // of the warm-up
		rows     map[string]int
	}{
		{"work", nil, map[string]int{"work wall": 4, "work cpu": 4, "work rss": 4, "work size": 4, "work user": 4, "work sys": 4, "work faults": 4, "work switches": 4, "work reads": 4, "work writes": 4}},
		{"cat", []string{"2 SIGSEGV (5 of 5 runs)"}, map[string]int{"cat wall": 3, "cat rss": 3}},
		{"prepared", nil, map[string]int{"prepared wall": 4}},
		{"go", nil, map[string]int{"go/Loop sec/op": 4, "go rss": 4, "go wall": 0, "go cpu": 0}},
		{"slow", []string{"0 timed out after 0.2 s (2 of 2 runs)"}, map[string]int{"slow wall": 0}},
		{"chain", []string{"2 SIGSEGV (5 of 5 runs)"}, map[string]int{"chain/add cpu": 4, "chain/serve rss": 3, "chain/serve wall": 3, "chain/pull wall": 3, "chain/look wall": 3, "chain wall": 0}},
		{"checked", nil, map[string]int{"checked wall": 4, "checked baseline-wall": 4, "checked baseline-rss": 4, "checked size": 4, "checked baseline-size": 0}},
		{"wrong", []string{"0 check: exit status 1 (2 of 2 runs)"}, nil},
		{"together", nil, map[string]int{"together/x wall": 4, "together/x slowdown": 4, "together/y slowdown": 4, "together wall": 0}},
		{"fixture", nil, map[string]int{"fixture wall": 4}},
		{"readonly", nil, map[string]int{"readonly wall": 4}},
	}
	for b, tt := range tests {
		if tt.name == "readonly" && sb.Facts().Unsafe {
			continue // without a sandbox nothing is read-only
		}
		t.Run(tt.name, func(t *testing.T) {
			w, err := s.WarmUp(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			var failures []string
			for _, f := range w.Failures {
				failures = append(failures, fmt.Sprintf("%d %s", f.N, f.Reason))
			}
			if got, want := strings.Join(failures, "\n"), strings.Join(tt.failures, "\n"); got != want {
				t.Fatalf("failures %q, want %q; %+v", got, want, w)
			}
			t.Logf("round %v, peaks apart %v (%.2f %%), a stop costs %v", w.Round, w.PeaksApart, 100*w.TraceShare, s.stopCost)
			var list []bench.Sample
			for round := 1; round <= rounds; round++ {
				r, err := s.Round(t.Context(), b, round)
				if err != nil {
					t.Fatal(err)
				}
				if len(r.Failures) > 0 {
					t.Fatalf("failures %+v", r.Failures)
				}
				list = append(list, r.Samples...)
			}
			count := map[string]int{}
			for _, l := range list {
				count[l.Benchmark+" "+l.Metric]++
				switch l.Metric {
				case "slowdown", "baseline-wall", "baseline-rss":
					if l.Value <= 0 {
						t.Errorf("%s of version %d = %v %s", l.Metric, l.Version, l.Value, l.Unit)
					}
				case "wall", "sec/op", "rss", "size", "faults":
					if l.Value <= 0 && tt.name != "checked" { // which is less its baseline
						t.Errorf("%s of version %d = %v %s", l.Metric, l.Version, l.Value, l.Unit)
					}
				}
				switch {
				case l.Metric == "cpu" && l.Benchmark == "work" && l.Value <= 0:
					t.Errorf("cpu of version %d = %v %s", l.Version, l.Value, l.Unit)
				case l.Metric == "rss" && tt.name != "checked" && (l.Value < 100<<10 || l.Value > 8<<20):
					t.Errorf("a shell's rss = %.0f B", l.Value)
				case l.Metric == "sec/op" && l.Value != 250e-9:
					t.Errorf("sec/op = %v", l.Value)
				case l.Metric == "wall" && l.Covariates["psi_ns"] < 0:
					t.Errorf("covariates %v", l.Covariates)
				}
			}
			for row, n := range tt.rows {
				if count[row] != n*rounds {
					t.Errorf("%d samples of %s, want %d", count[row], row, n*rounds)
				}
			}
		})
	}
	t.Run("compiler", func(t *testing.T) {
		c, err := s.Compiler(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := exec.LookPath("cc"); err != nil {
			lacking(t, "no cc")
		}
		if c == "" || strings.Contains(c, "\n") {
			t.Errorf("compiler = %q", c)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		s.suite.Benchmarks[4].Timeout = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := s.WarmUp(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v", err)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("ended after %v", d)
		}
	})
}

// Without a sandbox a program can kill its runner: that is its own failure.
func TestKillsItsRunner(t *testing.T) {
	sb := openSandbox(t, true)
	versions := []Version{
		shellVersion(t, sb, Version{}, ":\n"),
		shellVersion(t, sb, Version{Twin: true}, ":\n"),
		shellVersion(t, sb, Version{N: 1}, "kill -9 $PPID\n"),
		shellVersion(t, sb, Version{N: 2}, ": works\n"),
	}
	suite := &bench.Suite{Name: "shell", Benchmarks: []bench.Benchmark{{Name: "kill", Run: bench.Program{Args: []string{"./kit"}}}}}
	s, err := Open(t.Context(), sb, suite, versions, Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	w := warmUp(t, s)
	if len(w.Failures) != 1 || w.Failures[0].N != 1 || w.Failures[0].Reason != "it ended the runner that started it (5 of 5 runs)" || w.Working != 2 {
		t.Errorf("warm-up = %+v", w)
	}
	r, err := s.Round(t.Context(), 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := kept(r.Samples); len(got) != 3 {
		t.Errorf("samples of %q count", got)
	}
}
