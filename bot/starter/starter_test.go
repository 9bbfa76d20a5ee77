package starter

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/tools/txtar"

	"patchbench/bench/suite"
	"patchbench/bot/report/cases"
)

// TestSuite makes suites for the projects of testdata. Each of them must be a
// suite that can be read; the golden file has it, and what was said of it.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no projects in testdata: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			project := fstest.MapFS{}
			for _, f := range a.Files {
				project[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
			}
			s, err := Suite(project, "my "+name)
			if err != nil {
				t.Fatal(err)
			}
			got := "# found: " + s.Found + "\n"
			for _, l := range s.Left {
				got += "# left: " + l + "\n"
			}
			cases.Golden(t, name+".toml", got+s.Text)
			parsed, err := suite.Parse("suite.toml", []byte(s.Text))
			if err != nil {
				t.Fatalf("the suite cannot be read: %v", err)
			}
			if s.Benchmarks > 0 && len(parsed.Benchmarks) != s.Benchmarks {
				t.Errorf("%d benchmarks said, %d in the suite", s.Benchmarks, len(parsed.Benchmarks))
			}
			if parsed.Name != "my-"+name {
				t.Errorf("the suite is called %q", parsed.Name)
			}
		})
	}
}

func TestNoFolder(t *testing.T) {
	if _, err := Suite(missing{}, "x"); err == nil {
		t.Error("a folder that is not there has a suite")
	}
}

type missing struct{}

func (missing) Open(name string) (fs.File, error) { return nil, fs.ErrNotExist }

// Whatever lies in a project, its suite can be read.
func FuzzSuite(f *testing.F) {
	for _, file := range []string{"go.mod", "Makefile", "Cargo.toml", "CMakeLists.txt", "meson.build", "pyproject.toml", "a b/x_test.go", ""} {
		f.Add(file, "bench: x\n[[bench]]\nname = \"a\"\ncriterion = 1\nadd_executable(a b) target_link_libraries(a benchmark::x)\nx = executable('y') benchmark('z', x)\n", "p")
	}
	f.Fuzz(func(t *testing.T, file, text, name string) {
		project := fstest.MapFS{
			"go.mod":         {Data: []byte("module x\n")},
			"pyproject.toml": {Data: []byte("pytest-benchmark")},
		}
		if fs.ValidPath(file) && file != "." {
			project[file] = &fstest.MapFile{Data: []byte(text)}
		}
		s, err := Suite(project, name)
		if err != nil {
			return
		}
		if _, err := suite.Parse("suite.toml", []byte(s.Text)); err != nil {
			t.Errorf("%v\n%s", err, s.Text)
		}
	})
}
