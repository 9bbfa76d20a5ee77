package gobench

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the golden parts of testdata anew")

// Each testdata/compare/*.txtar holds files to compare and, in the part "want",
// the versions and samples that they give, or the error.
func TestReadFiles(t *testing.T) {
	names, err := filepath.Glob("testdata/compare/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no test data: ", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			var files []string
			var want string
			inputs := a.Files[:0:0]
			for _, f := range a.Files {
				if f.Name == "want" {
					want = string(f.Data)
					continue
				}
				inputs = append(inputs, f)
				files = append(files, f.Name)
				if err := os.WriteFile(f.Name, f.Data, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			samples, versions, err := ReadFiles(files...)
			var got bytes.Buffer
			if err != nil {
				fmt.Fprintf(&got, "error: %v\n", err)
			} else {
				fmt.Fprintf(&got, "versions: %s\n", strings.Join(versions, " "))
				enc := json.NewEncoder(&got)
				enc.SetEscapeHTML(false)
				for _, s := range samples {
					if err := enc.Encode(s); err != nil {
						t.Fatal(err)
					}
				}
			}
			if strings.HasPrefix(filepath.Base(name), "error-") != (err != nil) {
				t.Errorf("error = %v", err)
			}
			if *update {
				a.Files = append(inputs, txtar.File{Name: "want", Data: got.Bytes()})
				if err := os.WriteFile(filepath.Join(testdata, filepath.Base(name)), txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got.String()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// testdata is where the golden files lie, also after a test has changed folders.
var testdata = func() string {
	dir, err := filepath.Abs("testdata/compare")
	if err != nil {
		panic(err)
	}
	return dir
}()

func TestReadGoBenchFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(name, []byte("BenchmarkA 1 1 ns/op\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{"none", nil, "no file"},
		{"absent", []string{name, "absent.txt"}, "absent.txt: no such file"},
		{"twice", []string{name, name}, "given twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, _, err := ReadFiles(tt.files...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
		})
	}
}
