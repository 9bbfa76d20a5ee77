// Package starter writes a first suite for a project from what lies in its folder.
//
//	fs.FS (the project) --> Suite --> the text of a suite file, and what it is made of
//
// It looks for benchmarks that the project has: Go benchmark functions, Criterion,
// google-benchmark, Meson benchmarks, pytest-benchmark, a bench target of a
// Makefile. What has none gets a template to fill in. Nothing is run, and nothing
// is written but the text: whether it works is for `bot check` to say.
package starter

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"patchbench/bench/late"
)

// Starter is a suite for a project.
type Starter struct {
	// Found says in a few words what the suite is made of: "3 packages with Go
	// benchmarks".
	Found string
	// Benchmarks is how many of the project's own benchmarks it runs; 0 for a
	// template.
	Benchmarks int
	Text       string
	// Left are the benchmarks' files that were left out, with the reason.
	Left []string
}

// Bounds of the search.
const (
	maxFiles      = 50_000
	maxFile       = 1 << 20
	maxBenchmarks = 200
)

// passed are folders in which nothing of the project's own is looked for.
var passed = map[string]bool{
	"vendor": true, "node_modules": true, "testdata": true, "third_party": true, "target": true, "build": true, "dist": true, "__pycache__": true,
}

// project is what was found in a folder.
type project struct {
	fsys  fs.FS
	name  string
	files []string // paths, in order
	left  []string
}

// benchmark is one [[benchmark]] of the suite.
type benchmark struct {
	name, run, parse string
	more             []string // further lines
}

// draft is a suite in the making.
type draft struct {
	found  string
	build  []string // lines of [build]
	limits []string
	list   []benchmark
	notes  []string // comments at the top
}

// Suite makes a suite for the project in fsys. The name is that of its folder.
// The error is one of reading the folder.
func Suite(fsys fs.FS, name string) (Starter, error) {
	p := &project{fsys: fsys, name: plainName(name)}
	if err := p.walk(); err != nil {
		return Starter{}, err
	}
	for _, kind := range []func(*project) *draft{golang, cargo, cmake, meson, pytest, makefile, template} {
		d := kind(p)
		if d == nil {
			continue
		}
		d.list = once(d.list)
		return Starter{Found: d.found, Benchmarks: len(d.list), Text: d.text(p.name), Left: p.left}, nil
	}
	panic("unreachable: the template takes every project")
}

func (p *project) walk() error {
	err := fs.WalkDir(p.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			return nil // what cannot be read is none of the project's benchmarks
		case len(p.files) >= maxFiles:
			return fs.SkipAll
		case d.IsDir() && name != "." && (passed[d.Name()] || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.Type().IsRegular():
			p.files = append(p.files, name)
		}
		return nil
	})
	return err
}

func (p *project) has(name string) bool { return slices.Contains(p.files, name) }

// read gives a file's text, "" for what is not there or too long.
func (p *project) read(name string) string {
	info, err := fs.Stat(p.fsys, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return ""
	}
	data, err := fs.ReadFile(p.fsys, name)
	if err != nil {
		return ""
	}
	return string(data)
}

// named gives the files of a base name.
func (p *project) named(base string) []string {
	var list []string
	for _, f := range p.files {
		if path.Base(f) == base {
			list = append(list, f)
		}
	}
	return list
}

// unplain is what a name or path needs no care without, in a shell line and in
// a suite file.
var unplain = late.Regexp(`[^A-Za-z0-9._/+-]+`)

func plainName(name string) string {
	name = strings.Trim(unplain().ReplaceAllString(path.Base(name), "-"), "-./")
	if name == "" {
		return "project"
	}
	return name[:min(len(name), 60)]
}

// usable says that a name can stand in a shell line as it is.
func (p *project) usable(file, name string) bool {
	if name != "" && !unplain().MatchString(name) && !strings.HasPrefix(name, "-") {
		return true
	}
	p.left = append(p.left, fmt.Sprintf("%q in %q: its name has characters that a shell line would need quotes for", name, file))
	return false
}

// once gives each benchmark a name of its own.
func once(list []benchmark) []benchmark {
	seen := map[string]int{}
	for i := range list {
		n := &list[i].name
		*n = (*n)[:min(len(*n), 80)]
		seen[*n]++
		if k := seen[*n]; k > 1 {
			*n = fmt.Sprintf("%s-%d", *n, k)
			seen[*n]++
		}
	}
	return list[:min(len(list), maxBenchmarks)]
}

// text writes the suite file.
func (d *draft) text(name string) string {
	var b strings.Builder
	b.WriteString("# A suite for Patchbench, made by `bot init` from what it found. Try it with\n# `bot check`, shape it, and commit it.\n")
	for _, n := range d.notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	fmt.Fprintf(&b, "\n[suite]\nname = %q\n", name)
	section := func(head string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n[%s]\n%s\n", head, strings.Join(lines, "\n"))
		}
	}
	section("build", d.build)
	section("limits", d.limits)
	for _, m := range d.list {
		fmt.Fprintf(&b, "\n[[benchmark]]\nname = %q\nrun = %q\n", m.name, m.run)
		if m.parse != "" {
			fmt.Fprintf(&b, "parse = %q\n", m.parse)
		}
		for _, l := range m.more {
			b.WriteString(l + "\n")
		}
	}
	if len(d.list) == 0 {
		b.WriteString(blank)
	}
	return b.String()
}

// blank stands where a project has no benchmarks that could be found.
const blank = `
# What to run goes here: programs that take 20 ms to some seconds and do what
# users wait for. They start in the source folder, which is read-only then; /tmp
# is theirs. This one only shows the form, and measures nothing of yours.
[[benchmark]]
name = "start"
run = "true"                            # a shell line, or a list of arguments
# prepare = "seq 100000 > /tmp/in"      # before each run, not measured
# params = { n = ["1000", "100000"] }   # one row for each value of {n} in run
# check = "stdout"                      # the output must equal base's
# parse = "gobench"                     # if it prints its own results
`

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
