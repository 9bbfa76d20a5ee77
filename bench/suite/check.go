package suite

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"patchbench/bench"
	"patchbench/bench/late"
	"patchbench/bench/sample/counter"
	"patchbench/config"
)

// What a suite may ask for.
const (
	maxVariants = 32   // builds of each version
	maxRows     = 5000 // benchmarks with all combinations of parameters
	maxName     = 100  // bytes

	minTimeout, maxTimeout     = 10 * time.Millisecond, 7 * 24 * time.Hour
	minProcesses, maxProcesses = 1, 1 << 20
	minParallel, maxParallel   = 1, 1000
	minWeight, maxWeight       = 0.001, 1000

	mib = 1 << 20
	tib = 1 << 40
	// The runner lives under the same bound: bench/sandbox grants no less.
	minMemory = 256 * mib
)

var (
	metrics        = append([]string{"wall", "cpu", "user", "sys", "rss", "size", "rss_tree", "faults", "switches", "reads", "writes"}, counter.Metrics()...)
	fileName       = late.Regexp(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	variable       = late.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ownedVariables = []string{"SRC", "OUT", "FIXTURES", "COPY"}
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
	c.fixtures(f)
	n := 1
	for _, values := range f.Build.Params {
		if n = min(n*len(values), maxVariants+1); n > maxVariants {
			c.fault(place("build", "params"), "build.params make more than %d builds of every version: give fewer values", maxVariants)
			break
		}
	}
	rows := 0
	first := map[string]int{}
	for i, b := range f.Benchmark {
		c.benchmark(i, b, f)
		c.named(i, b, f)
		line := c.doc.Line("benchmark", i, "name")
		if before, ok := first[b.Name]; ok && b.Name != "" {
			c.fault(place("benchmark", i, "name"), "benchmark %q is there twice, first at line %d: rename one", b.Name, before)
		} else {
			first[b.Name] = line
		}
		n := 1
		for _, values := range union(b.Params, f.Build.Params) {
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
	c.params(place("build", "params"), "build.params", b.Params)
	c.buildPlaceholders(f)
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
		case !variable().MatchString(e.Env) || slices.Contains(ownedVariables, e.Env):
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

func (c *checker) fixtures(f file) {
	for i, x := range f.Fixture {
		at := func(name ...any) []any { return append(place("fixture", i), name...) }
		whose := fmt.Sprintf("fixture %q: ", x.Name)
		switch {
		case x.Name == "":
			if !c.partial || c.doc.Has(at("name")...) {
				c.fault(at(), `a fixture has no name: add name = "..."`)
			}
		case !fileName().MatchString(x.Name):
			c.fault(at("name"), "%sit is the name of a folder: use letters, digits, _, - and .", whose)
		case slices.ContainsFunc(f.Fixture[:i], func(o fixture) bool { return o.Name == x.Name }):
			c.fault(at("name"), "%sit is there twice: rename one", whose)
		}
		if bench.Program(x.Run).IsZero() && !c.partial {
			c.fault(at(), `fixture %q has no run: add run = "...", which makes it in the folder where it starts`, x.Name)
		}
		c.program(at("run"), whose+"run", x.Run)
	}
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
