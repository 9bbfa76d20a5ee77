package suite

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"patchbench/config"
)

// What a suite may ask for.
const (
	maxRows = 5000 // benchmarks with all combinations of parameters
	maxName = 100  // bytes

	minTimeout, maxTimeout     = 10 * time.Millisecond, 7 * 24 * time.Hour
	minProcesses, maxProcesses = 1, 1 << 20

	mib = 1 << 20
	tib = 1 << 40
	// The runner lives under the same bound: bench/sandbox grants no less.
	minMemory = 256 * mib
)

var (
	parsers        = []string{"gobench"}
	laterParsers   = []string{"google-benchmark", "hyperfine", "criterion", "pytest-benchmark", "jmh", "catch2", "json", "regex"}
	metrics        = []string{"wall", "cpu", "user", "sys", "rss", "size", "faults", "switches", "reads", "writes"}
	laterMetrics   = []string{"heap", "malloc", "allocs", "copied", "instructions"}
	variable       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ownedVariables = []string{"SRC", "OUT"}
)

// checker finds what is wrong with a file beyond the types of its values.
type checker struct {
	doc *config.Document
	// partial says that some keys were not understood, so that what is missing
	// may be there under a wrong name.
	partial bool
	errs    config.Errors
}

func (c *checker) fault(at []any, format string, args ...any) {
	c.errs = append(c.errs, c.doc.Errorf(at, format, args...))
}

func place(parts ...any) []any { return parts }

func (c *checker) all(f file) {
	c.name(place("suite", "name"), "suite.name", f.Suite.Name)
	if strings.ContainsFunc(f.Suite.Description, bad) {
		c.fault(place("suite", "description"), "suite.description has control or invisible characters")
	}
	for i, p := range f.Suite.Apply {
		if strings.TrimSpace(p) == "" || strings.ContainsRune(p, 0) || p == "-" {
			c.fault(place("suite", "apply", i), "suite.apply: %q is no file name: give a file of patches, from the folder of the suite", p)
		}
	}
	c.build(f)
	c.limits(f)
	if len(f.Benchmark) == 0 && !c.partial {
		c.fault(nil, `the suite has no benchmark: add [[benchmark]] with name = "..." and run = "..."`)
	}
	rows := 0
	first := map[string]int{}
	for i, b := range f.Benchmark {
		c.benchmark(i, b)
		line := c.doc.Line("benchmark", i, "name")
		if before, ok := first[b.Name]; ok && b.Name != "" {
			c.fault(place("benchmark", i, "name"), "benchmark %q is there twice, first at line %d: rename one", b.Name, before)
		} else {
			first[b.Name] = line
		}
		n := 1
		for _, values := range b.Params {
			n = min(n*len(values), maxRows+1)
		}
		rows += n
	}
	if rows > maxRows {
		c.fault(place("benchmark"), "the parameters make more than %d benchmarks: give fewer values", maxRows)
	}
}

// bad says that a character must not stand in a name: it steers a terminal or
// is not seen.
func bad(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar || r == '\u2028' || r == '\u2029'
}

func (c *checker) name(at []any, what, name string) {
	switch {
	case strings.ContainsFunc(name, bad):
		c.fault(at, "%s = %q has control or invisible characters: use printable ones", what, name)
	case name != strings.TrimSpace(name):
		c.fault(at, "%s = %q has blanks at an end: remove them", what, name)
	case len(name) > maxName:
		c.fault(at, "%s has %d bytes: give at most %d", what, len(name), maxName)
	}
}

func (c *checker) build(f file) {
	b := f.Build
	c.program(place("build", "run"), "build.run", b.Run)
	c.program(place("build", "check"), "build.check", b.Check)
	c.env(place("build", "env"), "build.env", b.Env)
	c.duration(place("build", "timeout"), "build.timeout", b.Timeout)
	for i, p := range b.Keep {
		c.pattern(place("build", "keep", i), p)
	}
	for i, e := range b.Cache {
		at := place("build", "cache", i)
		switch {
		case e.Env == "":
			if !c.partial {
				c.fault(at, `build.cache has an entry without env: write { env = "GOCACHE" }`)
			}
		case !variable.MatchString(e.Env) || slices.Contains(ownedVariables, e.Env):
			c.fault(at, "build.cache: env = %q cannot be the name of a cache folder's variable", e.Env)
		case slices.ContainsFunc(b.Cache[:i], func(o cache) bool { return o.Env == e.Env }):
			c.fault(at, "build.cache names %s twice: remove one", e.Env)
		default:
			if _, ok := b.Env[e.Env]; ok {
				c.fault(at, "%s is a cache and is in build.env: remove one", e.Env)
			}
		}
	}
}

func (c *checker) pattern(at []any, p string) {
	switch {
	case strings.ContainsRune(p, 0):
		c.fault(at, "build.keep: %q has a NUL character", p)
	case p == "" || path.Clean(p) != strings.TrimSuffix(p, "/") || !filepath.IsLocal(p):
		c.fault(at, "build.keep: %q must be a path inside the source folder, such as \"bin/*\"", p)
	default:
		if _, err := path.Match(p, ""); err != nil {
			c.fault(at, "build.keep: %q is no shell pattern: %v", p, err)
		}
	}
}

func (c *checker) limits(f file) {
	l := f.Limits
	between(c, place("limits", "memory"), "limits.memory", l.Memory, minMemory, 64*tib, size)
	between(c, place("limits", "processes"), "limits.processes", l.Processes, minProcesses, maxProcesses, integer)
	between(c, place("limits", "disk"), "limits.disk", l.Disk, mib, 64*tib, size)
	between(c, place("limits", "output"), "limits.output", l.Output, 1<<10, tib, size)
	c.duration(place("limits", "timeout"), "limits.timeout", l.Timeout)
}

func (c *checker) duration(at []any, what string, d time.Duration) {
	between(c, at, what, d, minTimeout, maxTimeout, func(d time.Duration) string {
		if d == maxTimeout {
			return "168h"
		}
		return d.String()
	})
}

// between checks a value that the file gives: zero stands for a default in
// bench, but who writes 0 wants something else.
func between[T cmp.Ordered](c *checker, at []any, what string, v, least, most T, show func(T) string) {
	if !c.doc.Has(at...) || v >= least && v <= most {
		return
	}
	c.fault(at, "%s = %s is out of range: give %s to %s, or leave it out", what, show(v), show(least), show(most))
}

func integer(n int) string { return fmt.Sprint(n) }

// size shows a number of bytes as a suite may give it.
func size(n config.Size) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i+1 < len(units) {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%d%s", n, units[i])
}

func (c *checker) program(at []any, what string, p program) {
	if slices.ContainsFunc(append([]string{p.Line}, p.Args...), func(s string) bool { return strings.ContainsRune(s, 0) }) {
		c.fault(at, "%s has a NUL character", what)
	}
}

func (c *checker) env(at []any, what string, env map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p := append(slices.Clip(at), name)
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.fault(p, "%s: %q is no name of a variable", what, name)
		case slices.Contains(ownedVariables, name):
			c.fault(p, "%s: %s is set for every program: choose another name", what, name)
		case strings.ContainsRune(env[name], 0):
			c.fault(p, "%s: %s has a NUL character", what, name)
		}
	}
}

func (c *checker) benchmark(i int, b benchmark) {
	at := func(name ...any) []any { return append(place("benchmark", i), name...) }
	if b.Name == "" {
		if !c.partial || c.doc.Has(at("name")...) {
			c.fault(at(), `a benchmark has no name: add name = "..."`)
		}
	} else {
		c.name(at("name"), "name", b.Name)
	}
	whose := fmt.Sprintf("benchmark %q: ", b.Name)
	if b.Run.Line == "" && b.Run.Args == nil && !c.partial {
		c.fault(at(), `benchmark %q has no run: add run = "..."`, b.Name)
	}
	c.program(at("run"), whose+"run", b.Run)
	c.program(at("prepare"), whose+"prepare", b.Prepare)
	c.program(at("cleanup"), whose+"cleanup", b.Cleanup)
	c.env(at("env"), whose+"env", b.Env)
	c.duration(at("timeout"), whose+"timeout", b.Timeout)
	if c.doc.Has(at("check")...) && b.Check != "stdout" {
		c.fault(at("check"), `%scheck = %q is not supported yet: write "stdout"`, whose, b.Check)
	}
	if c.doc.Has(at("parse")...) {
		c.choice(at("parse"), whose+"parse", b.Parse, parsers, laterParsers)
	}
	for j, m := range b.Metrics {
		// A parser yields metrics of the tool's own names.
		if b.Parse == "" || slices.Contains(laterMetrics, m) {
			c.choice(at("metrics", j), whose+"metrics", m, metrics, laterMetrics)
		}
	}
	c.params(i, whose, b)
	c.placeholders(i, whose, b)
}

func (c *checker) choice(at []any, what, v string, valid, later []string) {
	switch {
	case slices.Contains(valid, v):
	case slices.Contains(later, v):
		c.fault(at, "%s: %q is not supported yet (valid here: %s)", what, v, strings.Join(valid, ", "))
	default:
		c.fault(at, "%s: unknown %q (%s)", what, v, config.Hint(v, valid))
	}
}

func (c *checker) params(i int, whose string, b benchmark) {
	for _, name := range slices.Sorted(maps.Keys(b.Params)) {
		at := place("benchmark", i, "params", name)
		values := b.Params[name]
		switch {
		case !wordPattern.MatchString(name):
			c.fault(at, "%sparams: %q is no name of a parameter: use letters, digits, _ and -", whose, name)
		case len(values) == 0:
			if !c.partial {
				c.fault(at, "%sparams: %s has no values: give at least one", whose, name)
			}
		}
		for j, v := range values {
			p := place("benchmark", i, "params", name, j)
			c.name(p, whose+"params."+name, string(v))
			if slices.Contains(values[:j], v) {
				c.fault(p, "%sparams: %s has the value %q twice: remove one", whose, name, string(v))
			}
		}
	}
}

// placeholders checks that every {word} is a parameter, and every parameter is
// used: rows that do not differ are a mistake.
func (c *checker) placeholders(i int, whose string, b benchmark) {
	known := slices.Sorted(maps.Keys(b.Params))
	used := map[string]bool{}
	look := func(s string, where ...any) {
		for _, name := range names(s) {
			used[name] = true
			if slices.Contains(known, name) {
				continue
			}
			hint := "the benchmark has no params"
			if len(known) > 0 {
				hint = config.Hint(name, known)
			}
			c.fault(append(place("benchmark", i), where...), "%s%s has the unknown parameter {%s} (%s); write {{%s}} for the text itself",
				whose, where[0], name, hint, name)
		}
	}
	for _, p := range []struct {
		key string
		program
	}{{"run", b.Run}, {"prepare", b.Prepare}, {"cleanup", b.Cleanup}} {
		look(p.Line, p.key)
		for _, a := range p.Args {
			look(a, p.key)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		look(b.Env[k], "env", k)
	}
	look(b.Stdin, "stdin")
	for _, name := range known {
		if !used[name] && wordPattern.MatchString(name) && !c.partial {
			c.fault(place("benchmark", i, "params", name), "%sthe parameter %s is used nowhere: write {%s} in run or env", whose, name, name)
		}
	}
	for _, params := range combinations(limited(b.Params)) {
		if s := expand(b.Stdin, params); s != "" && (!filepath.IsLocal(s) || strings.ContainsRune(s, 0)) {
			c.fault(place("benchmark", i, "stdin"), "%sstdin = %q must be a file inside the source folder, by its path from there", whose, s)
			break
		}
	}
}

// limited drops the values of parameters whose combinations are too many to go
// through; that they are is reported elsewhere.
func limited(params map[string][]value) map[string][]value {
	n := 1
	for _, values := range params {
		if n *= max(1, len(values)); n > maxRows {
			return nil
		}
	}
	return params
}
