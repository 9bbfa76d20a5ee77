package edits

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func TestNamed(t *testing.T) {
	line := func(s string) bench.Program { return bench.Program{Line: s} }
	all := []string{"bench/run.sh", "bench/data/x", "kit/main.c", "kit.c", "run.sh", "t/perf/p1.sh", "Documentation/x"}
	for _, tt := range []struct {
		name    string
		program bench.Program
		around  bool
		want    []string
	}{
		{"nothing", bench.Program{}, true, nil},
		{"a script", line("sh run.sh"), true, []string{"run.sh"}},
		{"in a folder", bench.Program{Args: []string{"sh", "./bench/run.sh", "x"}}, true, []string{"bench/run.sh"}},
		{"by its variable", line(`cd /tmp; sh "$SRC/run.sh" ${SRC}/bench/run.sh`), true, []string{"bench/run.sh", "run.sh"}},
		{"by its place", line("sh /build/src/run.sh"), true, []string{"run.sh"}},
		{"a folder", line("pytest bench/"), true, []string{"bench/run.sh", "bench/data/x"}},
		{"all below a folder", line("go test -bench . ./bench/..."), true, []string{"bench/run.sh", "bench/data/x"}},
		{"a folder in a folder", line("ls bench/data"), true, []string{"bench/data/x"}},
		{"a folder, by name alone", line("make kit"), true, nil},
		{"a folder, of a recipe", line("make -C bench/ && sh run.sh"), false, []string{"run.sh"}},
		{"an option", line("./prog --script=run.sh"), true, []string{"run.sh"}},
		{"another file of that name", line("sh scripts/run.sh"), true, nil},
	} {
		var got []string
		is := named(tt.around, tt.program)
		for _, f := range all {
			if is(f) {
				got = append(got, f)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}
