// Package suite reads a suite file: what to build, what to run on every
// version, and within which limits. In goes the text, out comes a bench.Suite
// with every parameter filled in, or config.Errors that name each fault with its
// line. Nothing is run here, and no file is looked for.
//
// A suite file by example:
//
//	[suite]
//	name = "kit"
//	description = "the four loops of kit"
//	apply = ["accounting.mbox"]           # patches put on base and every version
//
//	[build]
//	run = "make -j2 ALLOC={alloc} kit"    # sh -eu, in the source folder
//	params = { alloc = ["pool", "none"] } # each choice is a build of every version, and rows of its own
//	check = ["make", "check"]             # must pass; a list runs as it stands
//	env = { CFLAGS = "-O2 -g" }
//	timeout = "15m"
//	keep = ["kit", "data/**"]             # these files decide "same build"
//	cache = [{ env = "GOCACHE" }]         # a folder kept from base to patched builds
//	incremental = true                    # a build starts from the last one's files
//
//	[limits]                              # of a run, and of the build but timeout
//	memory = "2GiB"
//	processes = 256
//	disk = "512MiB"
//	output = "16MiB"
//	timeout = "2m"
//
//	[[fixture]]                           # made once, in the folder in which run starts
//	name = "corpus"                       # found at $FIXTURES/corpus by builds and benchmarks
//	run = "seq 1 1000000 > numbers"       # no code of the project is there; those before it are if it names $FIXTURES
//	copy = true                           # each run of a benchmark has a fresh copy to write to
//
//	[[fixture]]
//	name = "modules"
//	run = "curl -sSfO https://example.org/modules.tar"
//	network = true                        # only in a suite given by --suite
//
//	[[benchmark]]
//	name = "hash"
//	run = "./kit hash {rounds}"           # the loop that is measured
//	params = { rounds = ["100", "1000"] } # one row for each value
//	prepare = "cat data/hash.in > /tmp/in"
//	cleanup = "rm -f /tmp/in"
//	env = { KIT_ROUNDS = "{rounds}" }
//	timeout = "30s"
//	check = "stdout"                      # the output must equal base's
//	metrics = ["sys"]                     # tested beside wall, cpu and rss; exact counters (bench/sample/counter)
//
//	[[benchmark]]
//	name = "sort"
//	run = ["./kit", "sort"]
//	stdin = "data/sort.in"                # relative to the source folder
//	parse = "gobench"                     # prints Go benchmark lines itself; other formats: bench/sample/parse
//
//	[[benchmark]]
//	name = "start"
//	run = "./kit --version"
//
//	[[benchmark]]
//	name = "parse"
//	run = "./kit parse data/large"
//	baseline = "start"                    # each run's figures are less those of a run of start
//	check = "sort | cmp - data/parsed"    # gets the output as standard input, must succeed
//	weight = 3                            # counts three times as much as others
//
//	[[benchmark]]
//	name = "readers"
//	run = "./kit read $COPY"              # COPY is 1, 2, 3, 4
//	parallel = 4                          # copies at once: wall of the slowest, the sum of all else
//
//	[[benchmark]]
//	name = "net"                          # a chain: each step is a row, net/add, net/serve, ...
//	prepare = "./kit init /tmp/db"
//	[[benchmark.step]]
//	name = "add"
//	run = "./kit add /tmp/db data/large"
//	[[benchmark.step]]
//	name = "serve"                        # ended when the step after it has ended
//	run = "./kit serve /tmp/db /tmp/socket"
//	background = true
//	ready = "test -S /tmp/socket"         # run until it succeeds
//	[[benchmark.step]]
//	name = "pull"
//	run = "./kit pull /tmp/socket"
//	parallel = 2
//
//	[[benchmark]]
//	name = "beside"                       # rows beside/hash, beside/start, and slowdown of both
//	together = ["hash", "start"]          # these benchmarks alone, then at once
//	params = { rounds = ["1000"] }        # for the hash of this parameter
//
// A {word} in run, prepare, cleanup, check, env, stdin and steps is a parameter,
// of the benchmark or of the build; {{word}} stands for the text {word}. ${word},
// {a,b} and { word; } are left to the shell. So it is in run, check, env and keep
// of the build, if that has parameters.
//
// A benchmark named by together or baseline is that of the same parameters. It
// must be a single program; for together it may be a chain whose steps but the
// last are servers, and a server that several have is started once.
//
// The weight of a benchmark says how much its rows matter: they get more of the
// time that is left, and come before others in the headline and the tables. No
// verdict depends on it.
package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/config"
)

// DefaultNames are the files in which a project may keep its suite, at the top
// of the base tree, in the order in which they are looked for.
var DefaultNames = []string{".patchbench.toml", "bench.toml", "suite.toml"}

// file has the shape of a suite file.
type file struct {
	Suite struct {
		Name        string   `toml:"name"`
		Description string   `toml:"description"`
		Apply       []string `toml:"apply"`
	} `toml:"suite"`
	Build struct {
		Run         program            `toml:"run"`
		Check       program            `toml:"check"`
		Env         map[string]string  `toml:"env"`
		Timeout     time.Duration      `toml:"timeout"`
		Keep        []string           `toml:"keep"`
		Cache       []cache            `toml:"cache"`
		Incremental bool               `toml:"incremental"`
		Params      map[string][]value `toml:"params"`
	} `toml:"build"`
	Limits struct {
		Memory    config.Size   `toml:"memory"`
		Processes int           `toml:"processes"`
		Disk      config.Size   `toml:"disk"`
		Output    config.Size   `toml:"output"`
		Timeout   time.Duration `toml:"timeout"`
	} `toml:"limits"`
	Benchmark []benchmark `toml:"benchmark"`
	Fixture   []fixture   `toml:"fixture"`
}

type cache struct {
	Env string `toml:"env"`
}

type fixture struct {
	Name    string  `toml:"name"`
	Run     program `toml:"run"`
	Copy    bool    `toml:"copy"`
	Network bool    `toml:"network"`
}

type benchmark struct {
	Name     string             `toml:"name"`
	Run      program            `toml:"run"`
	Prepare  program            `toml:"prepare"`
	Cleanup  program            `toml:"cleanup"`
	Env      map[string]string  `toml:"env"`
	Timeout  time.Duration      `toml:"timeout"`
	Stdin    string             `toml:"stdin"`
	Metrics  []string           `toml:"metrics"`
	Parse    string             `toml:"parse"`
	Params   map[string][]value `toml:"params"`
	Check    program            `toml:"check"`
	Parallel int                `toml:"parallel"`
	Weight   float64            `toml:"weight"`
	Together []string           `toml:"together"`
	Baseline string             `toml:"baseline"`
	Step     []step             `toml:"step"`
}

// checkStdout is the check that compares with the base's output.
const checkStdout = "stdout"

type step struct {
	Name       string  `toml:"name"`
	Run        program `toml:"run"`
	Background bool    `toml:"background"`
	Ready      program `toml:"ready"`
	Parallel   int     `toml:"parallel"`
}

// program is a bench.Program as a file gives it: a string or a list of strings.
type program bench.Program

// UnmarshalTOML reads a shell line or an argument list.
func (p *program) UnmarshalTOML(data any) error {
	switch v := data.(type) {
	case string:
		if strings.TrimSpace(v) == "" {
			return errors.New("is empty: give a shell line, or leave the key out")
		}
		p.Line = v
		return nil
	case []any:
		if len(v) == 0 {
			return errors.New("is empty: give a program and its arguments, or leave the key out")
		}
		for _, arg := range v {
			s, ok := arg.(string)
			if !ok {
				return fmt.Errorf("want strings in the list, is %v: put it in quotes", arg)
			}
			p.Args = append(p.Args, s)
		}
		if p.Args[0] == "" {
			return errors.New("the program's name, first in the list, is empty")
		}
		return nil
	}
	return fmt.Errorf("want a shell line or a list of strings, is %v", data)
}

// value is a parameter's value; numbers and truth values are taken as they are
// written.
type value string

// UnmarshalTOML reads a string, number or truth value.
func (v *value) UnmarshalTOML(data any) error {
	switch d := data.(type) {
	case string:
		*v = value(d)
	case int64, float64, bool:
		*v = value(fmt.Sprint(d))
	default:
		return errors.New("want strings or numbers in the list")
	}
	return nil
}

// Parse reads a suite. The name is that of the file, for messages, and names a
// suite that gives itself no name. The error is config.Errors: every fault of
// the text by line.
func Parse(name string, text []byte) (*bench.Suite, error) {
	var f file
	doc, err := config.Read(name, text, &f)
	if doc == nil {
		return nil, err
	}
	// A mistyped key would also show as a missing one.
	c := checker{doc: doc, partial: err != nil}
	c.all(f)
	var errs config.Errors
	errors.As(err, &errs)
	if err := errs.Join(c.errs); err != nil {
		return nil, err
	}
	s := f.suite()
	if s.Name == "" {
		s.Name = strings.TrimSuffix(path.Base(name), ".toml")
	}
	sum := sha256.Sum256(text)
	s.Digest = hex.EncodeToString(sum[:])
	return s, nil
}

// suite converts a file in which no fault was found.
func (f file) suite() *bench.Suite {
	s := &bench.Suite{
		Name:        f.Suite.Name,
		Description: f.Suite.Description,
		Apply:       f.Suite.Apply,
		Limits: bench.Limits{
			MemoryBytes: int64(f.Limits.Memory),
			Processes:   f.Limits.Processes,
			DiskBytes:   int64(f.Limits.Disk),
			OutputBytes: int64(f.Limits.Output),
			Timeout:     f.Limits.Timeout,
		},
	}
	variants := combinations(f.Build.Params)
	for _, params := range variants {
		s.Variants = append(s.Variants, f.recipe(params))
	}
	if s.Build = s.Variants[0]; len(f.Build.Params) == 0 {
		s.Variants = nil
	}
	for _, x := range f.Fixture {
		s.Fixtures = append(s.Fixtures, bench.Fixture{Name: x.Name, Run: bench.Program(x.Run), Copy: x.Copy, Network: x.Network})
	}
	for _, b := range f.Benchmark {
		for k, chosen := range variants {
			for _, params := range combinations(b.Params) {
				if chosen != nil {
					params = union(params, chosen)
				}
				made := f.resolve(b, params)
				made.Variant = k
				s.Benchmarks = append(s.Benchmarks, made)
			}
		}
	}
	return s
}

// union has the keys of both.
func union[V any](a, b map[string]V) map[string]V {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]V{}
	}
	maps.Copy(m, b)
	return m
}

// recipe makes the recipe for one choice of build parameters. Without any, braces
// are the shell's.
func (f file) recipe(params map[string]string) bench.Recipe {
	b := f.Build
	fill := func(s string) string {
		if params == nil {
			return s
		}
		return expand(s, params)
	}
	r := bench.Recipe{
		Params: params, Run: b.Run.filled(fill), Check: b.Check.filled(fill), Env: filled(b.Env, fill),
		Timeout: b.Timeout, Incremental: b.Incremental,
	}
	for _, k := range b.Keep {
		r.Keep = append(r.Keep, fill(k))
	}
	for _, c := range b.Cache {
		r.Cache = append(r.Cache, c.Env)
	}
	return r
}

// filled gives the program with its texts filled in.
func (p program) filled(fill func(string) string) bench.Program {
	q := bench.Program{Line: fill(p.Line)}
	for _, a := range p.Args {
		q.Args = append(q.Args, fill(a))
	}
	return q
}

// filled gives an environment with its values filled in, nil for nil.
func filled(env map[string]string, fill func(string) string) map[string]string {
	if env == nil {
		return nil
	}
	m := make(map[string]string, len(env))
	for k, v := range env {
		m[k] = fill(v)
	}
	return m
}

// resolve makes the benchmark for one combination of parameters, with those
// that it names: each with the values that it shares with this one.
func (f file) resolve(b benchmark, params map[string]string) bench.Benchmark {
	made := b.with(params)
	named := func(name string) bench.Benchmark {
		other := *f.find(name)
		var shared map[string]string
		for k := range union(other.Params, f.Build.Params) {
			if shared == nil {
				shared = map[string]string{}
			}
			shared[k] = params[k]
		}
		return other.with(shared)
	}
	for _, name := range b.Together {
		made.Together = append(made.Together, named(name))
	}
	if b.Baseline != "" {
		line := named(b.Baseline)
		made.Baseline = &line
	}
	return made
}

// find gives the benchmark of a name, nil for none.
func (f file) find(name string) *benchmark {
	i := slices.IndexFunc(f.Benchmark, func(b benchmark) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Benchmark[i]
}

// with makes the benchmark for one combination of parameters.
func (b benchmark) with(params map[string]string) bench.Benchmark {
	fill := func(s string) string { return expand(s, params) }
	prog := func(p program) bench.Program { return p.filled(fill) }
	made := bench.Benchmark{
		Name:        b.Name,
		Params:      params,
		Run:         prog(b.Run),
		Prepare:     prog(b.Prepare),
		Cleanup:     prog(b.Cleanup),
		Env:         filled(b.Env, fill),
		Stdin:       fill(b.Stdin),
		Timeout:     b.Timeout,
		Metrics:     slices.Clone(b.Metrics),
		Parse:       b.Parse,
		CheckStdout: b.Check.Line == checkStdout,
		Parallel:    b.Parallel,
		Weight:      b.Weight,
	}
	if !made.CheckStdout {
		made.Check = prog(b.Check)
	}
	for _, l := range b.Step {
		made.Chain = append(made.Chain, bench.Link{
			Name: l.Name, Run: prog(l.Run), Background: l.Background, Ready: prog(l.Ready), Parallel: l.Parallel,
		})
	}
	return made
}
