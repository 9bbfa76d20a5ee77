package parse

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"patchbench/bench"
)

var update = flag.Bool("update", false, "write the golden parts of testdata anew")

// print shows results one figure to a line.
func print(list []Result, err error) string {
	var s strings.Builder
	if err != nil {
		fmt.Fprintf(&s, "error: %v\n", err)
	}
	for _, r := range list {
		for _, v := range r.Values {
			fmt.Fprintf(&s, "%d\t%s\t%s\t%s %s\t%s\n", r.Line, r.Name, v.Metric, strconv.FormatFloat(v.Value, 'g', 10, 64), v.Unit,
				bench.MetricFor(v.Metric, v.Unit).Better)
		}
	}
	return s.String()
}

// files are the outputs of tools in testdata.
func files(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, format := range []string{"catch2", "criterion", "gobench", "google-benchmark", "hyperfine", "jmh", "json", "pytest-benchmark", "regex"} {
		found, err := filepath.Glob(filepath.Join("testdata", format, "*.txtar"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no test data for %s: %v", format, err)
		}
		names = append(names, found...)
	}
	return names
}

func load(t testing.TB, name string) (a *txtar.Archive, spec string, out []byte) {
	t.Helper()
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	spec, ok := strings.CutPrefix(strings.TrimSpace(string(a.Comment)), "parse: ")
	if !ok || a.Files[0].Name != "output" {
		t.Fatalf("%s does not begin with `parse: FORMAT` and an output", name)
	}
	return a, spec, a.Files[0].Data
}

func TestTools(t *testing.T) {
	for _, name := range files(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(name, "testdata/"), ".txtar"), func(t *testing.T) {
			a, spec, out := load(t, name)
			p, err := New(spec)
			if err != nil {
				t.Fatal(err)
			}
			got := print(p.Parse(out))
			want := ""
			if len(a.Files) > 1 {
				want = string(a.Files[1].Data)
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}
