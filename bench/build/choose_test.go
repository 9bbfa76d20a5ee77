package build

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

func line(run string) []bench.Benchmark { return []bench.Benchmark{{Run: bench.Program{Line: run}}} }

func TestCounts(t *testing.T) {
	const kit = "./kit hash 100"
	scripts := map[string]string{
		"run.sh":        "#!/bin/sh\n./step.sh docs/in.md\n",
		"step.sh":       "#!/bin/sh\nmake -s kit\n",
		"perf/go.sh":    "#!/bin/sh\nexec ./deep.sh\n",
		"perf/deep.sh":  "#!/bin/sh\ngcc x.c\n",
		"plain.sh":      "#!/bin/sh\n./kit\n",
		"perf/plain.sh": "#!/bin/sh\n. ./lib.sh\n./kit\n",
	}
	tests := []struct {
		name string
		file string
		run  []bench.Benchmark
		// in tells whether the file counts, by itself and when the build made
		// no executable.
		in, plain bool
	}{
		{"source", "src/parse.c", line(kit), false, true},
		{"header", "kit.h", line(kit), false, true},
		{"object", "parse.o", line(kit), false, true},
		{"archive", "lib/libkit.a", line(kit), false, true},
		{"the program", "kit", line(kit), true, true},
		{"script", "run.py", line(kit), true, true},
		{"Makefile", "Makefile", line(kit), true, true},
		{"source that is data", "testdata/parse.c", line(kit), true, true},
		{"source by its name", "src/parse.c", line("./kit count parse.c"), true, true},
		{"source by a pattern", "src/parse.c", line("cat src/*.c | ./kit"), true, true},
		{"source by the folder of all", "src/parse.c", line("./grep -r foo ."), true, true},
		{"source by SRC", "src/parse.c", line(`./grep -r foo "${SRC}"`), true, true},
		{"program below SRC", "src/parse.c", line(`$SRC/kit`), false, true},
		{"source, with make", "parse.c", line("make bench"), true, true},
		{"source, with a versioned compiler", "parse.c", line("x86_64-linux-gnu-gcc-12 -c x"), true, true},
		{"source, with go by path", "sort.go", line("/usr/local/go/bin/go test -bench ."), true, true},
		{"source, with cargo as argument list", "a.rs", []bench.Benchmark{{Run: bench.Program{Args: []string{"cargo", "bench"}}}}, true, true},
		{"source, with setup.py", "a.c", line("python3 setup.py build_ext && python3 b.py"), true, true},
		{"source, with a tool in prepare", "parse.c", []bench.Benchmark{{Run: bench.Program{Line: kit}, Prepare: bench.Program{Line: "touch x; ninja"}}}, true, true},
		{"source, with a tool of a common name", "parse.c", line("cd x && just bench"), true, true},
		{"source, with that name as an argument", "parse.c", line("./kit just x"), false, true},
		{"source, with a tool in a script of a script", "parse.c", line("sh run.sh"), true, true},
		{"source, with a tool in a script elsewhere", "parse.c", line("cd perf && ./go.sh"), true, true},
		{"source, with scripts that build nothing", "parse.c", line("sh plain.sh; cd perf; sh plain.sh"), false, true},
		{"notes of a tool", "CMakeFiles/x/flags.make", line(kit), false, true},

		{"readme", "README", line(kit), false, false},
		{"readme with extension", "sub/README.rst", line(kit), false, false},
		{"markdown", "notes/intro.md", line(kit), false, false},
		{"license", "LICENSE-MIT", line(kit), false, false},
		{"text at the top", "notes.txt", line(kit), false, false},
		{"text elsewhere", "lib/words.txt", line(kit), true, true},
		{"text that configures", "requirements-dev.txt", line(kit), true, true},
		{"CMakeLists", "CMakeLists.txt", line(kit), true, true},
		{"manual page", "kit.1", line(kit), false, false},
		{"shared object's number", "libkit.so.1", line(kit), true, true},
		{"doc folder", "Documentation/technical/x.png", line(kit), false, false},
		{"program in a doc folder", "docs/gen.py", line(kit), true, true},
		{"markdown that is data", "bench/big.md", line(kit), true, true},
		{"readme of tests", "t/README", line(kit), true, true},
		{"markdown, with make", "intro.md", line("make bench"), false, false},
		{"markdown by name", "docs/intro.md", line("./render docs/intro.md"), true, true},
		{"markdown by name after cd", "docs/intro.md", line("cd docs; ../render intro.md"), true, true},
		{"markdown by folder", "docs/a/intro.md", line("./render -r docs"), true, true},
		{"markdown by an option", "docs/a/intro.md", line("./render --in=docs/a"), true, true},
		{"markdown by a letter option", "docs/a/intro.md", line("./render -Idocs"), true, true},
		{"markdown by pattern", "a/intro.md", line("./render */*.md"), true, true},
		{"markdown by stdin", "intro.md", []bench.Benchmark{{Run: bench.Program{Line: kit}, Stdin: "intro.md"}}, true, true},
		{"markdown by environment", "docs/intro.md", []bench.Benchmark{{Run: bench.Program{Line: kit}, Env: map[string]string{"IN": "docs"}}}, true, true},
		{"markdown by a script", "docs/in.md", line("./run.sh"), true, true},
		{"markdown in the folder of all", "intro.md", line("cat ./* | ./kit"), true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := mentioned(test.run, func(rel string) string { return scripts[rel] })
			f := file{rel: test.file, made: true}
			if got := (chooser{binary: true, named: m}).counts(f); got != test.in {
				t.Errorf("%s counts: %v, want %v", test.file, got, test.in)
			}
			if got := (chooser{named: m}).counts(f); got != test.plain {
				t.Errorf("%s counts without an executable: %v, want %v", test.file, got, test.plain)
			}
		})
	}
}

func TestKeep(t *testing.T) {
	files := []file{
		{rel: "kit"}, {rel: "kit.c"}, {rel: "README.md"}, {rel: "lib/a.so"}, {rel: "lib/x/b.so"}, {rel: "lib/x/b.c"}, {rel: "x/lib/c.so"}, {rel: "c.so", out: true},
	}
	tests := []struct {
		name string
		keep []string
		want []string
	}{
		{"a file", []string{"kit"}, []string{"kit", "c.so"}},
		{"a folder", []string{"lib/"}, []string{"lib/a.so", "lib/x/b.so", "lib/x/b.c", "c.so"}},
		{"one level", []string{"lib/*.so"}, []string{"lib/a.so", "c.so"}},
		{"a pattern that matches a folder", []string{"lib/*"}, []string{"lib/a.so", "lib/x/b.so", "lib/x/b.c", "c.so"}},
		{"any depth below", []string{"lib/**/*.so"}, []string{"lib/a.so", "lib/x/b.so", "c.so"}},
		{"any depth", []string{"**/*.so"}, []string{"lib/a.so", "lib/x/b.so", "x/lib/c.so", "c.so"}},
		{"everything below", []string{"lib/**"}, []string{"lib/a.so", "lib/x/b.so", "lib/x/b.c", "c.so"}},
		{"documentation if it is asked for", []string{"*.md", "nothing"}, []string{"README.md", "c.so"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range files {
				if (chooser{keep: test.keep, binary: true}).counts(f) {
					got = append(got, f.rel)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
