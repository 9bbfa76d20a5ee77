// Package build turns a checked-out version into a bench.Build: it runs the
// suite's recipe in a box and works out a digest of what came of it.
//
// In go a folder with the source in DIR/src; out come the build in DIR/src and
// DIR/out and a bench.Build. A recipe that fails is a Build with State
// BuildFailed and the end of its output; an error means that the recipe could
// not be tried. What is done with a build, and which builds are compared, is not
// known here.
//
//	host                    box              environment
//	DIR/src                 /build/src       SRC, the working directory
//	DIR/out                 /build/out       OUT
//	DIR/cache/GOCACHE       /build/cache/…   GOCACHE, for cache = [{ env = "GOCACHE" }]
//	the fixtures            /build/fixtures  FIXTURES, read-only
//
// A cache folder is empty for version 0. Every other version gets a copy of it
// as version 0 left it, which is thrown away after the build, so that no version
// can put anything into the build of another.
//
// # Incremental builds
//
// With incremental = true a version's build starts from what the last build
// before it has left, with its files brought up to date, so that make and the like
// build only what changed. That is faster and less sure: the recipe must notice
// every change by the times of files (a change of flags in the environment is not
// one), a file that is built no more may stay behind, and what an earlier version
// has put into the folder is there in later ones. A version whose former build is
// not there any more, since it failed or equals an earlier one, starts from the
// last that is.
//
// # The digest
//
// Builds of equal digest are the same program and are not measured again, so the
// digest leaves out only what cannot matter when a benchmark runs. It covers
// path, executable bit and content of these files:
//
//   - With keep: the files that its patterns match (a matched folder stands for
//     all below it) and everything in OUT. Nothing else.
//   - Without keep: everything in src and OUT but documentation and, if the build
//     made an ELF executable or shared object, what only goes into it.
//   - Documentation is *.md, *.rst, *.adoc and the like, files called README,
//     LICENSE, NEWS and the like, *.txt and manual pages at the top of src, and
//     what is not source in the top folders doc, docs, Documentation and man. In
//     a folder whose name says test, data, sample or benchmark nothing is
//     documentation, nor are CMakeLists.txt and requirements.txt. It counts if a
//     benchmark names its path, its file name, a folder around it, or a pattern
//     that matches it.
//   - What only goes into a program is source of compiled languages, objects,
//     archives, and notes of build tools; not in folders called data, testdata,
//     corpus and the like. It counts if a benchmark names its path, its file name,
//     or a pattern that matches it, and all of it counts if a benchmark, or a
//     script that it starts, names a build tool (make, go, cc, ...).
//   - A benchmark that names the source folder itself ("." or "$SRC") makes
//     everything count.
//
// A benchmark names what stands in its programs, stdin and environment. A program
// that reads source or documentation of its own accord, without being told the
// place, needs keep to have those counted.
//
// The content of an ELF file is what is loaded from it and those other sections
// whose meaning is not known: debug sections, symbol tables of linked files and
// build ids do not count; of relocatable objects symbols and relocations do. The
// content of an ar archive is its members without dates and owners. The folder
// of the version on this machine is blanked where its name occurs.
package build

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"patchbench/bench"
	"patchbench/bench/clone"
	"patchbench/bench/fixture"
	"patchbench/bench/sandbox"
	"patchbench/bench/unlink"
)

// DefaultTimeout bounds a build whose recipe sets no timeout.
const DefaultTimeout = 30 * time.Minute

// Paths inside the box.
const (
	insideSrc   = "/build/src"
	insideOut   = "/build/out"
	insideCache = "/build/cache"
)

// Options choose how builds are made.
type Options struct {
	// Timeout is that of a build whose recipe sets none; 0: DefaultTimeout.
	Timeout time.Duration
	// Fixtures are seen by the recipe's programs, read-only.
	Fixtures fixture.Set
	// Progress is told before each program of a recipe starts; nil: nobody.
	Progress func(version int, what string)
}

// Builder builds versions by one suite's recipe. It may be used by several
// goroutines at once, version 0 being built before the others.
type Builder struct {
	sb    *sandbox.Sandbox
	suite *bench.Suite
	o     Options

	mu sync.Mutex
	// base is the folder of version 0, whose caches the others start from; ""
	// before it was built.
	base string
	// formers are the builds that the next one may start from, if the recipe is
	// incremental.
	formers []former
}

// New makes a Builder. The sandbox may be nil for a suite that builds nothing.
func New(sb *sandbox.Sandbox, suite *bench.Suite, o Options) *Builder {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Builder{sb: sb, suite: suite, o: o}
}

// Build builds the version in dir: dir/src holds the source, dir/out is made
// afresh. Version 0 is base and comes first, as the others start from its
// caches, which lie in dir/cache and must stay. The files then belong to the uid
// that programs run under.
//
// A recipe that fails, or whose build is not fit to be measured, gives State
// BuildFailed. The error is ours, or ctx.Err().
func (b *Builder) Build(ctx context.Context, version int, dir string) (bench.Build, error) {
	begin := time.Now()
	made, err := b.build(ctx, version, dir)
	if err != nil {
		return bench.Build{}, fmt.Errorf("build version %d: %w", version, err)
	}
	made.Version, made.Dir, made.Elapsed = version, dir, time.Since(begin)
	return made, nil
}

func (b *Builder) build(ctx context.Context, version int, dir string) (bench.Build, error) {
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	if info, err := os.Lstat(src); err != nil {
		return bench.Build{}, err
	} else if !info.IsDir() {
		return bench.Build{}, fmt.Errorf("%s is no folder", src)
	}
	if err := fresh(out); err != nil {
		return bench.Build{}, err
	}
	for _, d := range []string{src, out} {
		if err := b.own(d); err != nil {
			return bench.Build{}, err
		}
	}
	var before map[string]stamp
	var err error
	switch {
	case b.suite.Build.Incremental:
		before, err = b.start(ctx, dir)
	case len(b.suite.Build.Keep) == 0:
		before, err = snapshot(ctx, src)
	}
	if err != nil {
		return bench.Build{}, err
	}
	caches, err := b.caches(version, dir)
	if err != nil {
		return bench.Build{}, fmt.Errorf("prepare the caches: %w", err)
	}
	tail, why, err := b.runRecipe(ctx, version, src, out, caches)
	if version != 0 && len(caches) > 0 {
		err = errors.Join(err, unlink.All(filepath.Join(dir, "cache")))
	}
	if err != nil {
		return bench.Build{}, err
	}
	if why != "" {
		return bench.Build{State: bench.BuildFailed, LogTail: ending(tail, why)}, nil
	}
	sum, err := digest(ctx, dir, before, b.suite)
	if unfit := fault(""); errors.As(err, &unfit) {
		return bench.Build{State: bench.BuildFailed, LogTail: ending(tail, unfit.Error())}, nil
	}
	if err != nil {
		return bench.Build{}, fmt.Errorf("digest: %w", err)
	}
	if b.suite.Build.Incremental {
		b.mu.Lock()
		f := former{dir: dir, tracked: map[string]bool{}}
		for rel := range before {
			f.tracked[rel] = true
		}
		b.formers = append(b.formers, f)
		b.mu.Unlock()
	}
	return bench.Build{State: bench.Built, Digest: sum}, nil
}

func (b *Builder) own(dir string) error {
	if b.sb == nil {
		return nil
	}
	return b.sb.Own(dir)
}

// runRecipe runs the recipe's programs in one box. why says how one of them
// failed, "" for success; tail is the end of its output.
func (b *Builder) runRecipe(ctx context.Context, version int, src, out string, caches []sandbox.Mount) (tail, why string, err error) {
	recipe := b.suite.Build
	var programs []bench.Program
	for _, p := range []bench.Program{recipe.Run, recipe.Check} {
		if !p.IsZero() {
			programs = append(programs, p)
		}
	}
	if len(programs) == 0 {
		return "", "", nil
	}
	if b.sb == nil {
		return "", "", errors.New("no sandbox was given to run the recipe in")
	}
	l := b.suite.Limits
	laid, err := b.o.Fixtures.ReadOnly().Lay(filepath.Join(filepath.Dir(src), "fixtures"), b.sb)
	if err != nil {
		return "", "", err
	}
	r, err := b.sb.Start(ctx, sandbox.Box{
		Mounts: slices.Concat([]sandbox.Mount{
			{Host: src, Inside: insideSrc, Write: true},
			{Host: out, Inside: insideOut, Write: true},
		}, caches, laid.Mounts),
		Limits: sandbox.Limits{MemoryBytes: l.MemoryBytes, Processes: l.Processes, DiskBytes: l.DiskBytes, OutputBytes: l.OutputBytes},
	})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()

	timeout := recipe.Timeout
	if timeout == 0 {
		timeout = b.o.Timeout
	}
	for _, p := range programs {
		if b.o.Progress != nil {
			b.o.Progress(version, p.String())
		}
		res, err := r.Do(ctx, sandbox.Command{
			Args:    oneStream(p),
			Env:     append(environment(recipe.Env, caches), laid.Env()...),
			Dir:     insideSrc,
			Timeout: timeout,
		})
		if err != nil {
			return "", "", err
		}
		if !res.OK() {
			return res.LogTail, ended(p, res), nil
		}
		tail = res.LogTail
	}
	return tail, "", nil
}

// oneStream gives a program's arguments such that a shell line prints errors into
// its standard output: of two streams the log would not keep the order, and a
// compiler's complaint belongs below the command that make echoed.
func oneStream(p bench.Program) []string {
	if p.Line == "" {
		return p.Argv()
	}
	return append([]string{"sh", "-c", `exec "$@" 2>&1`, "sh"}, p.Argv()...)
}

// environment is that of a recipe's programs.
func environment(env map[string]string, caches []sandbox.Mount) []string {
	all := maps.Clone(env)
	if all == nil {
		all = map[string]string{}
	}
	for _, c := range caches {
		all[filepath.Base(c.Inside)] = c.Inside
	}
	all["SRC"], all["OUT"] = insideSrc, insideOut
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// ended says in words how a program ended that did not succeed.
func ended(p bench.Program, r sandbox.Result) string {
	switch {
	case r.NotStarted != "":
		return r.NotStarted // names the program itself
	case r.Limit != "":
		return p.String() + ": " + r.Limit
	case r.Signal != "":
		return p.String() + ": " + r.Signal
	}
	return fmt.Sprintf("%s: exit status %d", p, r.Status)
}

// What is kept of a recipe's output.
const (
	tailLines = 40
	tailBytes = 8 << 10
)

// ending gives the last lines of a log with one line that says why the build
// failed.
func ending(log, why string) string {
	why = strings.ToValidUTF8(why, "?")
	if len(why) > 200 {
		why = strings.ToValidUTF8(why[:100], "") + " ... " + strings.ToValidUTF8(why[len(why)-100:], "")
	}
	room := tailBytes - len(why) - 2
	if len(log) > room {
		log = log[len(log)-room:]
		if _, rest, ok := strings.Cut(log, "\n"); ok {
			log = rest
		}
	}
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(log, "?"), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	if len(lines) == 1 && lines[0] == "" {
		lines = nil
	}
	return strings.Join(append(lines, why), "\n") + "\n"
}

// caches makes the cache folders of a version and says where they are mounted.
func (b *Builder) caches(version int, dir string) ([]sandbox.Mount, error) {
	b.mu.Lock()
	if version == 0 {
		b.base = dir
	}
	base := b.base
	b.mu.Unlock()

	var mounts []sandbox.Mount
	for _, name := range b.suite.Build.Cache {
		host := filepath.Join(dir, "cache", name)
		if err := fresh(host); err != nil {
			return nil, err
		}
		if version != 0 && base != "" {
			if err := clone.Tree(filepath.Join(base, "cache", name), host); err != nil {
				return nil, err
			}
		}
		if err := b.own(host); err != nil {
			return nil, err
		}
		mounts = append(mounts, sandbox.Mount{Host: host, Inside: insideCache + "/" + name, Write: true})
	}
	return mounts, nil
}

// Copy makes a fresh copy of a build in dir, for a twin that shares no file with
// it. Times of files are kept, so that a tool that goes by them finds nothing to
// do; the caches are not copied.
func (b *Builder) Copy(made bench.Build, dir string) (bench.Build, error) {
	if made.State != bench.Built {
		return bench.Build{}, fmt.Errorf("copy build of version %d: it is %s", made.Version, made.State)
	}
	for _, name := range []string{"src", "out"} {
		to := filepath.Join(dir, name)
		err := fresh(to)
		if err == nil {
			err = clone.Tree(filepath.Join(made.Dir, name), to)
		}
		if err == nil {
			err = b.own(to)
		}
		if err != nil {
			return bench.Build{}, fmt.Errorf("copy build of version %d: %w", made.Version, err)
		}
	}
	made.Dir = dir
	return made, nil
}

// fresh makes an empty folder that the uid of programs can enter, with its
// parent if need be.
func fresh(dir string) error {
	if err := unlink.All(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.Mkdir(parent, 0o755); err == nil {
		if err := os.Chmod(parent, 0o755); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Mkdir(dir, 0o755)
}
