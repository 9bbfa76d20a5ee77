package suite

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/sample/parse"
	"patchbench/config"
)

func (c *checker) benchmark(i int, b benchmark, f file) {
	at := func(name ...any) []any { return append(place("benchmark", i), name...) }
	if b.Name == "" {
		if !c.partial || c.doc.Has(at("name")...) {
			c.fault(at(), `a benchmark has no name: add name = "..."`)
		}
	} else {
		c.name(at("name"), "name", b.Name)
		c.braces(at("name"), "name", b.Name)
	}
	whose := fmt.Sprintf("benchmark %q: ", b.Name)
	if bench.Program(b.Run).IsZero() && len(b.Step) == 0 && b.Together == nil && !c.partial {
		c.fault(at(), `benchmark %q has no run: add run = "..."`, b.Name)
	}
	c.program(at("run"), whose+"run", b.Run)
	c.program(at("prepare"), whose+"prepare", b.Prepare)
	c.program(at("cleanup"), whose+"cleanup", b.Cleanup)
	c.env(at("env"), whose+"env", b.Env)
	c.duration(at("timeout"), whose+"timeout", b.Timeout)
	c.check(at("check"), whose, b.Check)
	between(c, at("parallel"), whose+"parallel", b.Parallel, minParallel, maxParallel, integer)
	if c.doc.Has(at("weight")...) && !(b.Weight >= minWeight && b.Weight <= maxWeight) {
		c.fault(at("weight"), "%sweight = %v is out of range: give %v to %v, 1 being usual", whose, b.Weight, minWeight, maxWeight)
	}
	c.alone(i, whose)
	c.steps(i, whose, b)
	if c.doc.Has(at("parse")...) {
		if _, err := parse.New(b.Parse); err != nil {
			c.fault(at("parse"), "%sparse: %v", whose, err)
		}
	}
	for j, m := range b.Metrics {
		// A parser yields metrics of the tool's own names.
		if b.Parse == "" && !slices.Contains(metrics, m) {
			c.fault(at("metrics", j), "%smetrics: unknown %q (%s)", whose, m, config.Hint(m, metrics))
		}
		if slices.Contains(b.Metrics[:j], m) {
			c.fault(at("metrics", j), "%smetrics has %q twice: remove one", whose, m)
		}
	}
	c.params(at("params"), whose+"params", b.Params)
	for _, name := range slices.Sorted(maps.Keys(b.Params)) {
		if _, ok := f.Build.Params[name]; ok {
			c.fault(at("params", name), "%sparams: %s is a parameter of the build already: rename one", whose, name)
		}
	}
	c.placeholders(i, whose, b, f)
}

// braces refuses a name that looks as if parameters were filled in.
func (c *checker) braces(at []any, what, name string) {
	if strings.ContainsAny(name, "{}") {
		c.fault(at, "%s = %q has braces: leave the parameters out, they are shown behind it, as in sort{n=10}", what, name)
	}
}

func (c *checker) params(at []any, what string, params map[string][]value) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		values := params[name]
		at := append(slices.Clip(at), name)
		switch {
		case !wordPattern().MatchString(name):
			c.fault(at, "%s: %q is no name of a parameter: use letters, digits, _ and -", what, name)
		case len(values) == 0:
			if !c.partial {
				c.fault(at, "%s: %s has no values: give at least one", what, name)
			}
		}
		for j, v := range values {
			p := append(slices.Clip(at), j)
			c.name(p, what+"."+name, string(v))
			if slices.Contains(values[:j], v) {
				c.fault(p, "%s: %s has the value %q twice: remove one", what, name, string(v))
			}
		}
	}
}

// placeholders checks that every {word} is a parameter, and every parameter is
// used: rows that do not differ are a mistake.
func (c *checker) placeholders(i int, whose string, b benchmark, f file) {
	known := slices.Sorted(maps.Keys(union(b.Params, f.Build.Params)))
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
	}{{"run", b.Run}, {"prepare", b.Prepare}, {"cleanup", b.Cleanup}, {"check", b.Check}} {
		look(p.Line, p.key)
		for _, a := range p.Args {
			look(a, p.key)
		}
	}
	for j, l := range b.Step {
		for _, s := range slices.Concat([]string{l.Run.Line, l.Ready.Line}, l.Run.Args, l.Ready.Args) {
			look(s, "step", j)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		look(b.Env[k], "env", k)
	}
	look(b.Stdin, "stdin")
	for _, name := range slices.Sorted(maps.Keys(b.Params)) {
		if !used[name] && wordPattern().MatchString(name) && !c.partial && len(b.Together) == 0 {
			c.fault(place("benchmark", i, "params", name), "%sthe parameter %s is used nowhere: write {%s} in run or env", whose, name, name)
		}
	}
	for _, params := range combinations(limited(union(b.Params, f.Build.Params))) {
		if s := expand(b.Stdin, params); s != "" && (!filepath.IsLocal(s) || strings.ContainsRune(s, 0)) {
			c.fault(place("benchmark", i, "stdin"), "%sstdin = %q must be a file inside the source folder, by its path from there", whose, s)
			break
		}
	}
}

// buildPlaceholders does the same for the recipe, if it has parameters.
func (c *checker) buildPlaceholders(f file) {
	b := f.Build
	if len(b.Params) == 0 {
		return
	}
	known := slices.Sorted(maps.Keys(b.Params))
	used := map[string]bool{}
	look := func(s string, where ...any) {
		for _, name := range names(s) {
			used[name] = true
			if !slices.Contains(known, name) {
				c.fault(append(place("build"), where...), "build.%s has the unknown parameter {%s} (%s); write {{%s}} for the text itself",
					where[0], name, config.Hint(name, known), name)
			}
		}
	}
	for _, s := range append([]string{b.Run.Line}, b.Run.Args...) {
		look(s, "run")
	}
	for _, s := range append([]string{b.Check.Line}, b.Check.Args...) {
		look(s, "check")
	}
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		look(b.Env[k], "env", k)
	}
	for i, k := range b.Keep {
		look(k, "keep", i)
	}
	for _, name := range known {
		if !used[name] && wordPattern().MatchString(name) && !c.partial {
			c.fault(place("build", "params", name), "the build does not use its parameter %s: write {%s} in run or env", name, name)
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

// check looks for a misspelt "stdout": any other text is a shell line.
func (c *checker) check(at []any, whose string, p program) {
	c.program(at, whose+"check", p)
	if word := p.Line; word != checkStdout && word != "" && wordPattern().MatchString(word) {
		if hint := config.Hint(word, []string{checkStdout}); strings.HasPrefix(hint, "did you mean") {
			c.fault(at, "%scheck = %q (%s); a command of that name is written [%[2]q]", whose, word, hint)
		}
	}
}

// apart lists, for a key that says what a benchmark consists of, those that
// have no meaning beside it.
var apart = []struct {
	key    string
	others []string
	advice string
}{
	{"step", []string{"run", "parse", "stdin", "parallel", "together", "baseline"}, "a chain consists of its steps"},
	{"together", []string{"run", "parse", "stdin", "parallel", "baseline", "prepare", "cleanup", "env", "timeout", "check", "metrics"}, "these belong to the benchmarks that it names"},
	{"parallel", []string{"parse"}, "the results of several copies would be mixed"},
	{"baseline", []string{"parse"}, "results that a program prints are not those of a run"},
}

// alone refuses keys that do not go together.
func (c *checker) alone(i int, whose string) {
	for _, a := range apart {
		if !c.doc.Has("benchmark", i, a.key) {
			continue
		}
		for _, other := range a.others {
			if at := place("benchmark", i, other); c.doc.Has(at...) {
				c.fault(at, "%s%s has no meaning beside %s: %s", whose, other, a.key, a.advice)
			}
		}
	}
}

func (c *checker) steps(i int, whose string, b benchmark) {
	for j, l := range b.Step {
		at := func(name ...any) []any { return append(place("benchmark", i, "step", j), name...) }
		switch {
		case l.Name == "":
			if !c.partial || c.doc.Has(at("name")...) {
				c.fault(at(), `%sa step has no name: add name = "..."`, whose)
			}
		case slices.ContainsFunc(b.Step[:j], func(o step) bool { return o.Name == l.Name }):
			c.fault(at("name"), "%sthe step %q is there twice: rename one", whose, l.Name)
		default:
			c.name(at("name"), whose+"step.name", l.Name)
			c.braces(at("name"), whose+"step.name", l.Name)
		}
		which := fmt.Sprintf("%sstep %q: ", whose, l.Name)
		if bench.Program(l.Run).IsZero() && !c.partial {
			c.fault(at(), `%sstep %q has no run: add run = "..."`, whose, l.Name)
		}
		c.program(at("run"), which+"run", l.Run)
		c.program(at("ready"), which+"ready", l.Ready)
		between(c, at("parallel"), which+"parallel", l.Parallel, minParallel, maxParallel, integer)
		switch {
		case !l.Background && !bench.Program(l.Ready).IsZero():
			c.fault(at("ready"), "%sready says when a server can be used: it needs background = true", which)
		case l.Background && l.Parallel > 1:
			c.fault(at("parallel"), "%sparallel has no meaning beside background: start the copies as steps of their own", which)
		case l.Background && j == len(b.Step)-1 && !c.partial:
			c.fault(at("background"), "%sno step comes after it that could use it: a background step is ended after the next one", which)
		}
	}
}

// named checks the benchmarks that another names, and the names of rows.
func (c *checker) named(i int, b benchmark, f file) {
	whose := fmt.Sprintf("benchmark %q: ", b.Name)
	if c.doc.Has("benchmark", i, "together") && len(b.Together) < 2 {
		c.fault(place("benchmark", i, "together"), "%stogether names the benchmarks that are started at once: give two at least", whose)
	}
	for j, name := range b.Together {
		at := place("benchmark", i, "together", j)
		if slices.Contains(b.Together[:j], name) {
			c.fault(at, "%stogether has %q twice: remove one, or use parallel", whose, name)
			continue
		}
		o := c.other(at, whose+"together", b, name, f)
		switch {
		case o == nil:
		case len(o.Together) > 0 || o.Baseline != "" || o.Parse != "":
			c.fault(at, "%stogether: %q must not have together, baseline or parse", whose, name)
		case slices.ContainsFunc(o.Step[:max(0, len(o.Step)-1)], func(l step) bool { return !l.Background }):
			c.fault(at, "%stogether: of the steps of %q all but the last must be background: it is the last ones that start at once", whose, name)
		}
	}
	if c.doc.Has("benchmark", i, "baseline") {
		at := place("benchmark", i, "baseline")
		if o := c.other(at, whose+"baseline", b, b.Baseline, f); o != nil && (len(o.Together) > 0 || len(o.Step) > 0 || o.Baseline != "" || o.Parse != "" || o.Parallel > 1) {
			c.fault(at, "%sbaseline: %q must be a single program without baseline, parallel and parse", whose, b.Baseline)
		}
	}
	for _, o := range f.Benchmark {
		if o.Name != "" && strings.HasPrefix(b.Name, o.Name+"/") {
			c.fault(place("benchmark", i, "name"), "%sits name is one for a row of %q (%[2]s/...): rename one", whose, o.Name)
		}
	}
}

// other finds a benchmark that another names, nil if there is none that fits.
func (c *checker) other(at []any, what string, b benchmark, name string, f file) *benchmark {
	o := f.find(name)
	if name == b.Name && name != "" {
		c.fault(at, "%s: %q is this benchmark itself: name another", what, name)
		return nil
	}
	if o == nil {
		var valid []string
		for _, x := range f.Benchmark {
			if x.Name != "" && x.Name != b.Name {
				valid = append(valid, x.Name)
			}
		}
		if len(valid) == 0 {
			valid = []string{"none"}
		}
		c.fault(at, "%s: there is no other benchmark %q (%s)", what, name, config.Hint(name, valid))
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(o.Params)) {
		for _, v := range b.Params[k] {
			if !slices.Contains(o.Params[k], v) {
				c.fault(at, "%s: %q does not have the value %q of the parameter %s: give it the same values", what, name, string(v), k)
				return nil
			}
		}
		if len(b.Params[k]) == 0 {
			c.fault(at, "%s: %q has the parameter %s, which this one has not: give it params = { %[3]s = [...] }", what, name, k)
			return nil
		}
	}
	return o
}
