package build

import (
	"path"
	"slices"
	"strings"

	"patchbench/bench/late"
)

// What a file is by its name, for the choice of files that the package comment
// describes.
var (
	compiled = extensions(".c .h .cc .cpp .cxx .c++ .hh .hpp .hxx .h++ .ipp .tpp .inl .cu .cuh .go .rs .zig .s .S .asm .f .F .for .f77 .f90 .F90 .f95 .f03 .f08")
	objects  = extensions(".o .a .d .lo .la .obj .i .ii .gcno .gcda .gch .pch .rlib .rmeta .Po .Plo")
	// notes of build tools carry times and paths
	toolFiles   = words("config.log config.cache .ninja_log .ninja_deps")
	toolFolders = words("CMakeFiles .deps meson-logs meson-info meson-private autom4te.cache .fingerprint")
	// input folders hold what programs read, also when it looks like source.
	inputFolders = words("testdata data corpus fixture fixtures sample samples input inputs")

	prose       = extensions(".md .markdown .mkd .rst .adoc .asciidoc .pod .texi .texinfo")
	manual      = late.Regexp(`^[A-Za-z_][A-Za-z0-9_.+-]*\.[1-8]$`) // also libz.so.1
	proseName   = late.Regexp(`^(README|CHANGES|CHANGELOG|NEWS|HISTORY|RELNOTES|RELEASES?|LICEN[CS]E|COPYING|COPYRIGHT|AUTHORS|CONTRIBUTORS|CONTRIBUTING|MAINTAINERS|THANKS|TODO|INSTALL|HACKING|CODE_OF_CONDUCT|SECURITY)([-._].*)?$`)
	docFolders  = words("Documentation doc docs man manpages")
	notProse    = late.Regexp(`^(CMakeLists|.*requirements.*|.*constraints.*)\.txt$`)
	testFolder  = late.Regexp(`(?i)test|data|bench|perf|corpus|corpora|fixture|sample|example|input|^t$|^spec$`)
	interpreted = extensions(".sh .bash .py .pl .pm .rb .js .mjs .cjs .ts .lua .tcl .php .r .R .jl .awk .sed .m4 .mk .cmake .java .kt .scala .hs .ml .mli .ex .exs .erl .clj .lisp .el .scm .vim .css .html .xml .json .toml .yaml .yml .sql .csv .in .am .ac .bat .ps1 .cs .swift .nim .d .m .mm .v .vhdl .proto .y .l")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

func extensions(list string) map[string]bool { return words(list) }

// folders are the names of the folders that a path below src goes through.
func folders(rel string) []string {
	parts := strings.Split(rel, "/")
	return parts[:len(parts)-1]
}

func isSource(rel string) bool {
	return compiled[path.Ext(rel)] || interpreted[path.Ext(rel)]
}

// isProse says that a file is documentation.
func isProse(rel string) bool {
	name, ext, in := path.Base(rel), path.Ext(rel), folders(rel)
	if notProse().MatchString(name) || slices.ContainsFunc(in, testFolder().MatchString) {
		return false
	}
	switch {
	case prose[ext]:
		return true
	case isSource(rel) || strings.Contains(name, ".so."):
		return false
	case proseName().MatchString(name) || len(in) > 0 && docFolders[in[0]]:
		return true
	}
	// Elsewhere in the tree such a file may as well be data.
	return len(in) == 0 && (ext == ".txt" || manual().MatchString(name))
}

// isIntermediate says that a file only goes into a compiled program or is a
// note of the tool that compiles it. made says that the build made it.
func isIntermediate(rel string, made bool) bool {
	ext, in := path.Ext(rel), folders(rel)
	if slices.ContainsFunc(in, func(f string) bool { return inputFolders[strings.ToLower(f)] }) {
		return false
	}
	if compiled[ext] || objects[ext] {
		return true
	}
	return made && (toolFiles[path.Base(rel)] || slices.ContainsFunc(in, func(f string) bool { return toolFolders[f] }))
}

// file is what the choice needs to know of a file.
type file struct {
	rel  string // below src or out
	out  bool
	made bool // by the build
}

// chooser decides which files count in a digest.
type chooser struct {
	keep []string // patterns; empty: by kind
	// binary says that the build made an executable or shared object.
	binary bool
	named  mentions
}

// counts says that a file is part of the digest.
func (c chooser) counts(f file) bool {
	if len(c.keep) > 0 {
		return f.out || slices.ContainsFunc(c.keep, func(p string) bool { return matchBelow(p, f.rel) })
	}
	switch {
	case c.named.all:
		return true
	case isProse(f.rel):
		return c.named.file(f.rel) || c.named.folder(f.rel)
	case c.binary && !c.named.tool && isIntermediate(f.rel, f.made):
		return c.named.file(f.rel)
	}
	return true
}

// matchBelow says that a pattern matches a path or a folder that it lies in. As
// in a shell, * stays within one name; ** stands for any number of folders.
func matchBelow(pattern, rel string) bool {
	return matchParts(strings.Split(strings.TrimSuffix(pattern, "/"), "/"), strings.Split(rel, "/"))
}

func matchParts(pattern, rel []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(rel) + 1 {
				if matchParts(pattern[1:], rel[i:]) {
					return len(pattern) > 1 || len(rel) > 0
				}
			}
			return false
		}
		if len(rel) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], rel[0]); !ok || err != nil {
			return false
		}
		pattern, rel = pattern[1:], rel[1:]
	}
	return true
}
