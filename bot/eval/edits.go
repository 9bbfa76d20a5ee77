package eval

import (
	"path"
	"slices"
	"strings"

	"patchbench/mbox"
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

// editsOfBuild lists the files of a series that say how its project is built: a
// change of the flags looks like one of the code.
func editsOfBuild(s *mbox.Series) []string {
	if s == nil {
		return nil
	}
	var list []string
	for _, p := range s.Patches {
		for _, file := range p.Files {
			known := slices.ContainsFunc(buildFiles, func(pattern string) bool {
				ok, err := path.Match(pattern, path.Base(file))
				return ok && err == nil
			})
			if known && !slices.Contains(list, file) {
				list = append(list, file)
			}
		}
	}
	return list
}

// editsOfBuildText is the warning, "" for none.
func editsOfBuildText(s *mbox.Series) string {
	list := editsOfBuild(s)
	if len(list) == 0 {
		return ""
	}
	return "build files changed: " + strings.Join(list, ", ")
}
