package suite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"

	"patchbench/bench"
	"patchbench/bench/suite"
	"patchbench/config"
)

var update = flag.Bool("update", false, "write what Parse says of the faulty suites into testdata/faults.txtar")

// example is the suite file of the package comment.
func example(t *testing.T) string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "suite.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(f.Doc.Text()) {
		if code, ok := strings.CutPrefix(line, "\t"); ok || line == "\n" && text.Len() > 0 {
			text.WriteString(code)
		}
	}
	return text.String()
}

func TestExample(t *testing.T) {
	text := example(t)
	got, err := suite.Parse("suite.toml", []byte(text))
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, text)
	}
	sum := sha256.Sum256([]byte(text))
	hash := bench.Benchmark{
		Name:        "hash",
		Prepare:     bench.Program{Line: "cat data/hash.in > /tmp/in"},
		Cleanup:     bench.Program{Line: "rm -f /tmp/in"},
		Timeout:     30 * time.Second,
		CheckStdout: true,
		Metrics:     []string{"sys"},
	}
	few, many := hash, hash
	few.Params, many.Params = map[string]string{"rounds": "100"}, map[string]string{"rounds": "1000"}
	few.Run, many.Run = bench.Program{Line: "./kit hash 100"}, bench.Program{Line: "./kit hash 1000"}
	few.Env, many.Env = map[string]string{"KIT_ROUNDS": "100"}, map[string]string{"KIT_ROUNDS": "1000"}
	line := func(s string) bench.Program { return bench.Program{Line: s} }
	start := bench.Benchmark{Name: "start", Run: line("./kit --version")}
	want := &bench.Suite{
		Name:        "kit",
		Description: "the four loops of kit", Apply: []string{"accounting.mbox"},
		Digest: hex.EncodeToString(sum[:]),
		Build: bench.Recipe{
			Run: bench.Program{Line: "make -j2 ALLOC=pool kit"}, Params: map[string]string{"alloc": "pool"},
			Check:   bench.Program{Args: []string{"make", "check"}},
			Env:     map[string]string{"CFLAGS": "-O2 -g"},
			Timeout: 15 * time.Minute,
			Keep:    []string{"kit", "data/**"},
			Cache:   []string{"GOCACHE"}, Incremental: true,
		},
		Limits: bench.Limits{MemoryBytes: 2 << 30, Processes: 256, DiskBytes: 512 << 20, OutputBytes: 16 << 20, Timeout: 2 * time.Minute},
		Fixtures: []bench.Fixture{
			{Name: "corpus", Run: line("seq 1 1000000 > numbers"), Copy: true},
			{Name: "modules", Run: line("curl -sSfO https://example.org/modules.tar"), Network: true},
		},
		Benchmarks: []bench.Benchmark{few, many, {
			Name:  "sort",
			Run:   bench.Program{Args: []string{"./kit", "sort"}},
			Stdin: "data/sort.in",
			Parse: "gobench",
		}, start, {
			Name: "parse", Run: line("./kit parse data/large"), Baseline: &start, Check: line("sort | cmp - data/parsed"), Weight: 3,
		}, {
			Name: "readers", Run: line("./kit read $COPY"), Parallel: 4,
		}, {
			Name: "net", Prepare: line("./kit init /tmp/db"), Chain: []bench.Link{
				{Name: "add", Run: line("./kit add /tmp/db data/large")},
				{Name: "serve", Run: line("./kit serve /tmp/db /tmp/socket"), Background: true, Ready: line("test -S /tmp/socket")},
				{Name: "pull", Run: line("./kit pull /tmp/socket"), Parallel: 2},
			},
		}, {
			Name: "beside", Params: map[string]string{"rounds": "1000"}, Together: []bench.Benchmark{many, start},
		}},
	}
	want.Variants = []bench.Recipe{want.Build, want.Build}
	want.Variants[1].Run.Line, want.Variants[1].Params = "make -j2 ALLOC=none kit", map[string]string{"alloc": "none"}
	want.Benchmarks = onEach(want.Variants, want.Benchmarks)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the example (-want +got):\n%s", diff)
	}
}

// onEach has the rows of each benchmark on each variant of the build.
func onEach(variants []bench.Recipe, list []bench.Benchmark) []bench.Benchmark {
	var with func(b bench.Benchmark, params map[string]string) bench.Benchmark
	with = func(b bench.Benchmark, params map[string]string) bench.Benchmark {
		b.Params = maps.Clone(b.Params)
		if b.Params == nil {
			b.Params = map[string]string{}
		}
		maps.Copy(b.Params, params)
		b.Together = slices.Clone(b.Together)
		for i := range b.Together {
			b.Together[i] = with(b.Together[i], params)
		}
		if b.Baseline != nil {
			line := with(*b.Baseline, params)
			b.Baseline = &line
		}
		return b
	}
	var all []bench.Benchmark
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Name == list[0].Name {
			n++
		}
		for k, v := range variants {
			for _, b := range list[:n] {
				b = with(b, v.Params)
				b.Variant = k
				all = append(all, b)
			}
		}
		list = list[n:]
	}
	return all
}

func TestParams(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // Key: Run
	}{
		{"none", `run = "x ${HOME} {a,b} { y; } {1..3} '{}'"`, []string{"b: x ${HOME} {a,b} { y; } {1..3} '{}'"}},
		{"every combination, in order", `run = "x {n}-{k}"` + "\n" + `params = { n = [2, 10], k = ["b", "a"] }`, []string{
			"b{k=b,n=2}: x 2-b", "b{k=b,n=10}: x 10-b", "b{k=a,n=2}: x 2-a", "b{k=a,n=10}: x 10-a",
		}},
		{"numbers as written", `run = "x {v}"` + "\n" + `params = { v = [1, 0.5, true, ""] }`, []string{"b{v=1}: x 1", "b{v=0.5}: x 0.5", "b{v=true}: x true", "b{v=}: x "}},
		{"escape", `run = "awk '{{print}}' {v} ${v} {{{v}}} {{v}} {{v} {v}}"` + "\n" + `params = { v = ["1"] }`, []string{"b{v=1}: awk '{print}' 1 ${v} {{v}} {v} {1 1}"}},
		{"values are not expanded again", `run = "x {v} {w}"` + "\n" + `params = { v = ["{w}"], w = ["1"] }`, []string{"b{v={w},w=1}: x {w} 1"}},
		{"argument lists", `run = ["x y", "{v}"]` + "\n" + `params = { v = ["1 2"] }`, []string{"b{v=1 2}: x y 1 2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, err := suite.Parse("s.toml", []byte("[[benchmark]]\nname = \"b\"\n"+test.text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range s.Benchmarks {
				got = append(got, b.Key()+": "+b.Run.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("benchmarks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestName(t *testing.T) {
	s, err := suite.Parse("some/dir/kit.toml", []byte("[[benchmark]]\nname = \"b\"\nrun = \"true\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "kit" {
		t.Errorf("a suite without a name is called %q, want kit, after its file", s.Name)
	}
	if !s.Build.Run.IsZero() {
		t.Errorf("without [build] there is a recipe: %v", s.Build.Run)
	}
}

// TestFaults reads each suite in testdata/faults.txtar and compares what is said
// of it with the file NAME.want behind it.
func TestFaults(t *testing.T) {
	name := filepath.Join("testdata", "faults.txtar")
	ar, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range ar.Files {
		if in, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[in] = string(f.Data)
		}
	}
	written := &txtar.Archive{Comment: ar.Comment}
	for _, f := range ar.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			_, err := suite.Parse(f.Name, f.Data)
			var faults config.Errors
			if !errors.As(err, &faults) {
				t.Fatalf("Parse gives %v, want config.Errors", err)
			}
			written.Files = append(written.Files, f, txtar.File{Name: f.Name + ".want", Data: []byte(err.Error() + "\n")})
			if diff := cmp.Diff(want[f.Name], err.Error()+"\n"); diff != "" && !*update {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(written), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	ar, err := txtar.ParseFile(filepath.Join("testdata", "faults.txtar"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range ar.Files {
		f.Add(string(file.Data))
	}
	f.Add("[[benchmark]]\nname=\"b\"\nrun=\"{a}{{a}}${a}\"\nparams={a=[1,2]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := suite.Parse("s.toml", []byte(text))
		if err != nil {
			var faults config.Errors
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error is a %T: %v", err, err)
			}
			return
		}
		if len(s.Benchmarks) == 0 {
			t.Error("a suite without a benchmark has no fault")
		}
		seen := map[string]bool{}
		for _, b := range s.Benchmarks {
			if b.Name == "" || len(b.Programs()) == 0 || seen[b.Key()] {
				t.Errorf("benchmark %q has no name or no run, or is there twice", b.Key())
			}
			seen[b.Key()] = true
		}
	})
}
