package sample

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// countedVersion makes a version that holds counted.c, also linked statically, and
// a Go program.
func countedVersion(t *testing.T, programs string, own func(string) error, v Version) Version {
	t.Helper()
	dir, err := os.MkdirTemp("", "sample-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "src"), os.DirFS(programs)); err != nil {
		t.Fatal(err)
	}
	if err := own(dir); err != nil {
		t.Fatal(err)
	}
	v.Dir = dir
	return v
}

// buildCounted builds the programs of countedVersion.
func buildCounted(t *testing.T) (dir string) {
	t.Helper()
	for _, tool := range []string{"gcc", "valgrind"} {
		if _, err := exec.LookPath(tool); err != nil {
			lacking(t, tool+" is not installed")
		}
	}
	dir = t.TempDir()
	source, err := filepath.Abs("testdata/counted/counted.c")
	if err != nil {
		t.Fatal(err)
	}
	hello := filepath.Join(t.TempDir(), "hello.go")
	if err := os.WriteFile(hello, []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"gcc", "-O1", "-o", "counted", source},
		{"gcc", "-O1", "-static", "-o", "static", source},
		{"go", "build", "-o", filepath.Join(dir, "hello"), hello},
	} {
		c := exec.Command(args[0], args[1:]...)
		if args[0] == "gcc" {
			c.Dir = dir
		}
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir
}

const mebibyte = 1 << 20

// What known programs are counted to do.
func TestExact(t *testing.T) {
	sb := openSandbox(t, false)
	dir := buildCounted(t)
	versions := []Version{countedVersion(t, dir, sb.Own, Version{}), countedVersion(t, dir, sb.Own, Version{Twin: true})}
	args := func(a ...string) bench.Program { return bench.Program{Args: append([]string{"./counted"}, a...)} }
	heap := []string{"malloc", "allocs", "heap"}
	tests := []struct {
		bench.Benchmark
		// want are the figures of each row and counter, or why there are none. A
		// figure that begins with ~ may be larger by what the start of a program takes.
		want []string
	}{
		{bench.Benchmark{Name: "malloc", Run: args("malloc"), Metrics: heap}, []string{
			"malloc malloc 10485760 B", "malloc allocs 1000 1", "malloc heap 5242880 B",
		}},
		{bench.Benchmark{Name: "copy", Run: args("copy"), Metrics: []string{"copied"}}, []string{"copy copied ~10485760 B"}},
		{bench.Benchmark{Name: "fork", Run: args("fork"), Metrics: heap}, []string{
			fmt.Sprintf("fork malloc %d B", (5+3+2)*mebibyte), "fork allocs 5 1", fmt.Sprintf("fork heap %d B", 7*mebibyte),
		}},
		{bench.Benchmark{Name: "shell", Run: bench.Program{Line: "./counted copy; ./counted copy"}, Metrics: []string{"malloc"}}, []string{
			fmt.Sprintf("shell malloc ~%d B", 4*mebibyte),
		}},
		{bench.Benchmark{Name: "parallel", Run: args("malloc"), Parallel: 2, Metrics: heap}, []string{
			"parallel malloc 20971520 B", "parallel allocs 2000 1", "parallel heap 10485760 B",
		}},
		{bench.Benchmark{Name: "chain", Metrics: []string{"allocs"}, Prepare: bench.Program{Line: `: >"$TMPDIR/ready"`}, Chain: []bench.Link{
			{Name: "one", Run: bench.Program{Line: `test -e "$TMPDIR/ready"; exec ./counted malloc`}},
			{Name: "two", Run: args("copy")},
		}}, []string{"chain/one allocs 1000 1", "chain/two allocs 2 1"}},
		{bench.Benchmark{Name: "less", Run: bench.Program{Line: "./counted malloc; ./counted copy"}, Metrics: []string{"allocs"},
			Baseline: &bench.Benchmark{Name: "copy", Run: bench.Program{Line: "./counted copy; ./counted copy"}}}, []string{"less allocs 998 1"}},
		{bench.Benchmark{Name: "go", Run: bench.Program{Args: []string{"./hello"}}, Metrics: []string{"heap", "copied"}}, []string{
			"go heap: hello is a Go program: valgrind does not see its memory", "go copied: hello is a Go program: valgrind does not see its memory",
		}},
		{bench.Benchmark{Name: "static", Run: bench.Program{Line: "./static malloc; true"}, Metrics: []string{"malloc"}}, []string{
			"static malloc: static is statically linked: valgrind does not see its memory",
		}},
		{bench.Benchmark{Name: "crash", Run: args("shy"), Metrics: []string{"allocs"}}, []string{"crash allocs: under valgrind: SIGSEGV"}},
		{bench.Benchmark{Name: "kill", Run: args("kill"), Metrics: []string{"allocs"}}, []string{
			"kill allocs: counted ended before valgrind had counted it: it was killed",
		}},
		{bench.Benchmark{Name: "none", Run: args("loop", "1"), Metrics: []string{"heap"}}, []string{
			"none heap: valgrind saw no allocation in counted: it does that by other means than the C library's, or not at all",
		}},
		{bench.Benchmark{Name: "nothing asked", Run: args("malloc"), Metrics: []string{"sys"}}, nil},
	}
	suite := &bench.Suite{Name: "counted"}
	for _, tt := range tests {
		suite.Benchmarks = append(suite.Benchmarks, tt.Benchmark)
	}
	s, err := Open(t.Context(), sb, suite, versions, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for b, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			w, err := s.WarmUp(t.Context(), b)
			if err != nil || len(w.Failures) > 0 {
				t.Fatal(err, w.Failures)
			}
			e, err := s.Exact(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			got := map[bool][]string{}
			for _, l := range e.Samples {
				text := fmt.Sprintf("%s %s %.0f %s", l.Benchmark, l.Metric, l.Value, l.Unit)
				for _, w := range tt.want {
					var least float64
					if n, _ := fmt.Sscanf(w, l.Benchmark+" "+l.Metric+" ~%f", &least); n == 1 && l.Value >= least && l.Value < least+64<<10 {
						text = w
					}
				}
				if l.Failed != nil {
					text = fmt.Sprintf("%s %s: %s", l.Benchmark, l.Metric, l.Failed)
				}
				got[l.Twin] = append(got[l.Twin], text)
			}
			want := map[bool][]string{false: tt.want, true: tt.want}
			if tt.want == nil {
				want = map[bool][]string{}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("by twin (-want +got):\n%s", d)
			}
		})
	}
}

// Instructions are counted, the same each time, and those before a fork once.
func TestExactInstructions(t *testing.T) {
	sb := openSandbox(t, false)
	dir := buildCounted(t)
	suite := &bench.Suite{Name: "counted"}
	for _, n := range []string{"1000000", "2000000", "3000000"} {
		suite.Benchmarks = append(suite.Benchmarks, bench.Benchmark{
			Name: "loop", Params: map[string]string{"n": n}, Run: bench.Program{Args: []string{"./counted", "loop", n}}, Metrics: []string{"instructions"},
		})
	}
	suite.Benchmarks = append(suite.Benchmarks, bench.Benchmark{
		Name: "fork", Run: bench.Program{Args: []string{"./counted", "fork"}}, Metrics: []string{"instructions"},
	})
	// Without a twin the base is counted twice.
	s, err := Open(t.Context(), sb, suite, []Version{countedVersion(t, dir, sb.Own, Version{})}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var counts []float64
	for b, bm := range suite.Benchmarks {
		if _, err := s.WarmUp(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		e, err := s.Exact(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Samples) != 2 || e.Samples[0].Round != 1 || e.Samples[1].Round != 2 {
			t.Fatalf("%s: samples %v, want one in each of two rounds", bm.Key(), e.Samples)
		}
		if a, b := e.Samples[0].Value, e.Samples[1].Value; a != b {
			t.Errorf("%s: %.0f instructions, then %.0f", bm.Key(), a, b)
		}
		counts = append(counts, e.Samples[0].Value)
	}
	if one, two := counts[1]-counts[0], counts[2]-counts[1]; one != two || one < 2e6 || one > 20e6 {
		t.Errorf("a million turns of a loop take %.0f, and then %.0f instructions", one, two)
	}
	if extra := counts[3] - counts[0]; extra < 0 || extra > 1e6 {
		t.Errorf("what is done before the fork and after it: %.0f instructions more than the same without", extra)
	}
}

// Without a sandbox the same is counted.
func TestExactUnsafe(t *testing.T) {
	sb := openSandbox(t, true)
	dir := buildCounted(t)
	suite := &bench.Suite{Name: "counted", Benchmarks: []bench.Benchmark{
		{Name: "fork", Run: bench.Program{Args: []string{"./counted", "fork"}}, Metrics: []string{"allocs", "instructions"}},
		{Name: "go", Run: bench.Program{Line: "./hello; true"}, Metrics: []string{"copied"}},
	}}
	s, err := Open(t.Context(), sb, suite, []Version{countedVersion(t, dir, sb.Own, Version{}), countedVersion(t, dir, sb.Own, Version{Twin: true})}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var got []string
	for b := range suite.Benchmarks {
		if _, err := s.WarmUp(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		e, err := s.Exact(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range e.Samples {
			text := fmt.Sprintf("%s %s %.0f", l.Benchmark, l.Metric, l.Value)
			if l.Failed != nil {
				text = fmt.Sprintf("%s %s: %s", l.Benchmark, l.Metric, l.Failed)
			} else if l.Metric == "instructions" && l.Value > 2e6 && l.Value < 20e6 {
				text = "fork instructions some"
			}
			got = append(got, text)
		}
	}
	unseen := "go copied: hello is a Go program: valgrind does not see its memory"
	want := []string{"fork allocs 5", "fork allocs 5", "fork instructions some", "fork instructions some", unseen, unseen}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
