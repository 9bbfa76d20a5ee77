// Package edits tells which of the files that a series changes are no part of what
// it is measured for: those of the suite, which is base's for every version, and
// those that say how versions are built and run, of which each version has its own.
// In go the paths that the patches change and the suite; out come warnings. Files are
// judged by their names alone: nothing is read here.
package edits

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"patchbench/bench"
)

// buildFiles are the files that say how a project is built, by name; a pattern
// of path.Match.
var buildFiles = []string{
	"Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak", "Kbuild", "Kconfig", "config.mak.*",
	"configure", "configure.ac", "configure.in", "*.m4", "CMakeLists.txt", "*.cmake", "meson.build", "meson_options.txt", "meson.options",
	"SConstruct", "SConscript", "BUILD", "BUILD.bazel", "WORKSPACE", "*.bzl", "MODULE.bazel", "Cargo.toml", "Cargo.lock", "build.rs",
	"go.mod", "go.sum", "package.json", "package-lock.json", "setup.py", "setup.cfg", "pyproject.toml", "*.cabal",
	"pom.xml", "*.gradle", "*.gradle.kts", "*.gemspec", "dune", "dune-project", "*.pro", "*.vcxproj",
}

// isBuildFile says that a file tells how a project is built: a change of the flags
// looks like one of the code.
func isBuildFile(file string) bool {
	return slices.ContainsFunc(buildFiles, func(pattern string) bool {
		ok, err := path.Match(pattern, path.Base(file))
		return ok && err == nil
	})
}

// mostEdits is how many files a warning names.
const mostEdits = 5

// Warnings are those of the files that a series changes. The suite stands in the
// base tree at suiteFile, "" if it was given from outside.
func Warnings(changed []string, suite *bench.Suite, suiteFile string) []string {
	var list, ofSuite, ofBuild, ofRuns []string
	own := filesOf(suite, suiteFile)
	recipe := named(false, suite.Build.Run, suite.Build.Check)
	runs := named(true, programs(suite)...)
	for _, f := range changed {
		switch {
		case own[f]:
			ofSuite = append(ofSuite, f)
		case isBuildFile(f) || recipe(f):
			ofBuild = append(ofBuild, f)
		case runs(f):
			ofRuns = append(ofRuns, f)
		}
	}
	tell := func(before string, files []string, after string) {
		if len(files) == 0 {
			return
		}
		names := strings.Join(files[:min(len(files), mostEdits)], ", ")
		if more := len(files) - mostEdits; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, before+names+after)
	}
	files := "1 file"
	if n := len(ofSuite); n > 1 {
		files = fmt.Sprintf("%d files", n)
	}
	tell("patch edits the benchmark suite: "+files+", ", ofSuite, "; measured with the base suite")
	tell("build files changed: ", ofBuild, "")
	tell("patch edits files that the suite runs: ", ofRuns, "; each version is measured with its own")
	return list
}

// programs are what the benchmarks name files in.
func programs(suite *bench.Suite) []bench.Program {
	var list []bench.Program
	for _, b := range suite.Benchmarks {
		list = append(list, b.Programs()...)
		list = append(list, bench.Program{Args: []string{b.Stdin}})
		for _, v := range b.Env {
			list = append(list, bench.Program{Line: v})
		}
	}
	return list
}

// filesOf are the files of the base tree that the suite consists of; none if it was
// given from outside.
func filesOf(suite *bench.Suite, suiteFile string) map[string]bool {
	files := map[string]bool{}
	if suiteFile != "" {
		files[suiteFile] = true
		for _, name := range suite.Apply {
			files[path.Join(path.Dir(suiteFile), name)] = true
		}
	}
	return files
}

// words are what may be paths in a program's text.
var words = regexp.MustCompile(`[A-Za-z0-9_./@%+~-]+`)

// named says which files programs name, by their path below the source folder. With
// around, a path with a slash in it names all below it, too.
func named(around bool, programs ...bench.Program) func(file string) bool {
	files, folders := map[string]bool{}, map[string]bool{}
	for _, p := range programs {
		for _, text := range append([]string{p.Line}, p.Args...) {
			text = strings.NewReplacer("${SRC}/", "./", "$SRC/", "./", "/build/src/", "./").Replace(text)
			for _, w := range words.FindAllString(text, -1) {
				name := path.Clean(strings.TrimSuffix(w, "..."))
				files[name] = true
				if around && strings.Contains(w, "/") {
					folders[name] = true
				}
			}
		}
	}
	return func(file string) bool {
		if files[file] {
			return true
		}
		for up := path.Dir(file); up != "."; up = path.Dir(up) {
			if folders[up] {
				return true
			}
		}
		return false
	}
}
