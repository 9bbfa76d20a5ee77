package build

import (
	"path"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
)

// mentions is what the benchmarks of a suite name of a source folder.
type mentions struct {
	all  bool // the source folder itself
	tool bool // a build tool
	// paths are the words that may be a path, relative to src if they say so.
	paths []string
	// into are the folders that lines change to.
	into []string
}

// tool is a program that compiles, or starts one that does. The second pattern
// has those whose names are common words: only where a command begins.
var (
	tool = late.Regexp(`^([a-z0-9_]+-)*(go|gofmt|cargo|rustc|make|gmake|bmake|ninja|samu|cmake|ctest|meson|bazel|bazelisk|buck2?|scons|waf|` +
		`cc|c\+\+|gcc|g\+\+|clang|clang\+\+|cpp|tcc|icc|icx|nvcc|gfortran|flang|zig|ld|lld|mold|nasm|yasm|libtool|` +
		`configure|autoreconf|autogen\.sh|bootstrap\.sh|build\.sh|setup\.py|pip3?|pipx|uv|tox|nox|poetry|hatch|pdm|npm|npx|yarn|pnpm|node-gyp|` +
		`mvn|mvnw|gradle|gradlew|sbt|cabal|dune|opam|dub|rake|nix|nix-build|dpkg-buildpackage|rpmbuild|ccache|distcc)(-?[0-9][0-9.]*)?$`)
	changing = late.Regexp(`\bcd\s+["']?([^\s"';&|()]+)`)
	leading  = late.Regexp(`(^|[;&|({\n])\s*(\S*/)?(just|task|ant|stack|mix|as|bun|deno)\s`)
)

// wordBreak is what stands between words of a shell line, taken broadly:
// --input=docs/a.txt names docs/a.txt.
var wordBreak = late.Regexp("[\\s'\"`;&|()<>=,:{}]+")

// mentioned collects what the benchmarks name. read gives the text of a script
// by its path below src, "" for a file that is none.
func mentioned(benchmarks []bench.Benchmark, read func(rel string) string) mentions {
	var m mentions
	for _, b := range benchmarks {
		for _, p := range b.Programs() {
			lines := p.Args
			if p.Line != "" {
				lines = []string{p.Line}
			}
			m.line(strings.Join(lines, " "), true)
		}
		m.line(b.Stdin, true)
		for _, v := range b.Env {
			m.line(v, true)
		}
	}
	scripts := slices.Clone(m.paths)
	// Scripts may start others.
	seen := map[string]bool{}
	for len(scripts) > 0 && len(seen) < 1000 {
		word := scripts[0]
		scripts = scripts[1:]
		if seen[word] {
			continue
		}
		seen[word] = true
		for _, folder := range append([]string{"."}, m.into...) {
			if text := read(path.Join(folder, word)); text != "" {
				before := len(m.paths)
				m.line(text, false)
				scripts = append(scripts, m.paths[before:]...)
			}
		}
	}
	slices.Sort(m.paths)
	m.paths = slices.Compact(m.paths)
	return m
}

// line notes the words of a suite's line or of a script. Only in a line of the
// suite is the working folder known to be src.
func (m *mentions) line(text string, suite bool) {
	for _, r := range []string{"${SRC}", "$SRC"} {
		text = strings.ReplaceAll(text, r, insideSrc)
	}
	m.tool = m.tool || leading().MatchString(text+" ")
	for _, match := range changing().FindAllStringSubmatch(text, 20) {
		if suite {
			m.into = append(m.into, strings.TrimPrefix(path.Clean(match[1]), insideSrc+"/"))
		}
	}
	for _, word := range wordBreak().Split(text, -1) {
		if word == "" {
			continue
		}
		m.tool = m.tool || tool().MatchString(path.Base(word))
		if strings.HasPrefix(word, "-") {
			// -Idir, -fname: what follows the letter may be a path.
			if len(word) < 3 || word[1] == '-' {
				continue
			}
			word = word[2:]
		}
		rel := path.Clean(word)
		if rel == insideSrc || strings.HasPrefix(rel, insideSrc+"/") {
			rel = path.Clean("./" + strings.TrimPrefix(rel, insideSrc))
		}
		if rel == "." {
			m.all = m.all || suite
			continue
		}
		if rel == ".." || strings.HasPrefix(rel, "../") {
			// From a folder below src this may be src, or anything in it.
			rel = strings.TrimLeft(rel, "./")
			if rel == "" {
				m.all = m.all || suite
				continue
			}
		}
		m.paths = append(m.paths, rel)
	}
}

// file says that the file itself is named, by its path, its name in whatever
// folder, or a pattern for either.
func (m mentions) file(rel string) bool {
	base := path.Base(rel)
	return slices.ContainsFunc(m.paths, func(p string) bool {
		if b := path.Base(p); b == base {
			return true
		} else if !strings.ContainsAny(p, "*?[") {
			return false
		} else if ok, err := path.Match(b, base); ok && err == nil {
			return true
		}
		return matchBelow(p, rel)
	})
}

// folder says that a folder that the file lies in is named, at whatever depth.
func (m mentions) folder(rel string) bool {
	around := "/" + path.Dir(rel) + "/"
	if around == "/./" {
		return false
	}
	return slices.ContainsFunc(m.paths, func(p string) bool {
		return strings.Contains(around, "/"+strings.Trim(p, "/")+"/")
	})
}
