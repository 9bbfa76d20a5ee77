// Package eval is the whole path of a series on one page: mail to versions,
// versions to builds, builds to samples, samples to comparisons.
//
//	series or A..B -> tree.Stack -> bench.Build of each version
//	               -> bench.Sample in rounds -> bench.Comparison -> store.Evaluation
//
// It holds nothing but order, retries and the translation between mbox and
// bench. In go an Input and Options; out comes a store.Evaluation, which is
// complete even when the evaluation was interrupted. What the evaluation says is
// rendered in bot/report.
package eval

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/fixture"
	"patchbench/bench/sandbox"
	"patchbench/bench/suite"
	"patchbench/mbox"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// Input is what is evaluated: a series, or the commits From..To of the
// repository when Series is nil.
type Input struct {
	Series   *mbox.Series
	From, To string
	// AtHand are the series of the same mail, in which prerequisites are found.
	AtHand []mbox.Series
}

// Options of an evaluation. The zero value of each field works, but for Repo.
type Options struct {
	Repo   string // the folder of the git repository, which is only read
	Base   string // a revision; "" as tree.Repo.Base chooses
	Branch string // whose tip is the base if nothing else says; "" means HEAD
	Fuzz   int    // how loosely patches may be applied: see tree.Options

	// SuiteName and SuiteText are the suite's file; without text the suite is
	// read from the base tree, under one of suite.DefaultNames.
	SuiteName string
	SuiteText []byte
	// With is put on base and on every version beside what the suite names, and
	// is not judged.
	With []tree.Extra
	// Most bounds the limits that the suite sets; zero fields do not.
	Most bench.Limits
	// Benchmarks chooses the benchmarks whose key matches; nil chooses all.
	Benchmarks *regexp.Regexp

	// Rounds is the fixed number of rounds; 0 means as many as it takes to decide.
	Rounds int
	// Budget bounds the time of measuring; 0 means 10 minutes, or no bound when
	// Rounds is set.
	Budget time.Duration
	Seed   uint64
	Margin float64 // fraction; 0 means compare's default of 0.01

	Sandbox sandbox.Options
	// CompareParam is the build parameter whose values are compared, on the last
	// version of the input, in place of versions; "" for none.
	CompareParam string
	// Fixtures is the folder where fixtures are kept from one evaluation to the
	// next, reachable as WorkDir is; "" keeps none.
	Fixtures string
	// WorkDir is the folder for checkouts and builds; it must be empty, on a
	// disk with room for every version, and reachable by Sandbox.UID.
	WorkDir string
	// Store keeps the evaluation and its samples while they come; nil keeps nothing.
	Store *store.Store
	// ID of the evaluation; "" draws a new one.
	ID string
	// Resume is the interrupted evaluation in Store to go on with, or resume.Last;
	// its seed, margin and fixed rounds are used, and Seed and Rounds must be 0 or
	// the same. "" starts a new one.
	Resume string
	// EndsFirst measures base and the last version first, and all versions only
	// of the benchmarks in which these differ or may.
	EndsFirst bool
	// Command gives the way to reproduce the evaluation on a base, for the
	// record; nil for none.
	Command func(base mbox.Base) string
	// Progress is told what happens; nil is silent.
	Progress Progress
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Progress is told how far an evaluation is. Calls come from one goroutine.
type Progress interface {
	// Stage begins a stage of total units; 0 means that the number is unknown.
	Stage(name string, total int)
	// Done says that n units of the stage are done, what is under way, and how
	// long the stage will take from here (0: unknown).
	Done(n int, what string, left time.Duration)
	// Note is something the user should read now.
	Note(text string)
}

// InputError says that what the user gave cannot be evaluated: no usable suite, a
// range without commits. It is the user's to mend.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Run evaluates the input. The evaluation is returned whenever something can be
// said of the series, with an error only if the machine, the repository or the
// suite is at fault: sandbox.ErrNone, *InputError, or an error of mbox/tree. An
// evaluation that ctx interrupts is complete as far as it came, with
// Stopped = store.StoppedInterrupted.
func Run(ctx context.Context, in Input, o Options) (*store.Evaluation, error) {
	r, err := open(ctx, in, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.nothingToRun() != "" { // the headline says why
		return r.finish(ctx)
	}
	if err := r.build(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	if err := r.measure(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return r.finish(ctx)
}

// open applies the series, reads the suite and finds the sandbox: all that can
// be refused is refused here, before anything is built.
func open(ctx context.Context, in Input, o Options) (*run, error) {
	o = o.defaults()
	repo, err := tree.Open(o.Repo)
	if err != nil {
		return nil, err
	}
	r := newRun(o, repo)
	if err := r.open(ctx, in); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func newRun(o Options, repo *tree.Repo) *run {
	return &run{Options: o, repo: repo, pristine: repo.Pristine(filepath.Join(o.WorkDir, "pristine"))}
}

func (r *run) close() {
	r.pristine.Close()
	r.repo.Close()
	if r.cache != nil {
		r.cache.Close()
	}
	if r.sandbox != nil {
		r.sandbox.Close()
	}
}

func (r *run) open(ctx context.Context, in Input) (err error) {
	r.Progress.Stage("apply", 0)
	if r.stack, err = apply(ctx, r.repo, in, r.Options); err != nil {
		return err
	}
	if in.Series == nil && len(r.stack.Steps) == 0 && r.CompareParam == "" {
		why := "both name the same commit"
		if turned, err := r.repo.Range(ctx, in.To, in.From); err == nil && len(turned.Steps) > 0 {
			why = fmt.Sprintf("the base comes first: did you mean %s..%s?", in.To, in.From)
		}
		return &InputError{fmt.Errorf("no commits in %s..%s; %s", in.From, in.To, why)}
	}
	return r.prepare(ctx, in)
}

// prepare is what follows once the stack is known.
func (r *run) prepare(ctx context.Context, in Input) (err error) {
	if r.baseTree, err = r.repo.Tree(r.stack.Base.Commit); err != nil {
		return err
	}
	if err = r.readSuite(); err != nil {
		return err
	}
	if err = r.with(ctx); err != nil {
		return err
	}
	if r.sandbox, err = sandbox.Open(ctx, r.Sandbox); err != nil {
		return err
	}
	digest, err := r.sandbox.Digest()
	if err != nil {
		return err
	}
	r.begin(in, digest)
	if err := r.warnOfEdits(); err != nil {
		return err
	}
	if r.Resume != "" {
		if err := r.goOn(ctx); err != nil {
			return err
		}
	}
	r.budget()
	return nil
}

func (o Options) defaults() Options {
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Margin == 0 {
		o.Margin = 0.01
	}
	if o.ID == "" {
		o.ID = store.NewID(o.Now(), rand.New(rand.NewPCG(o.Seed, uint64(o.Now().UnixNano()))))
	}
	return o
}

// budget is the time for measuring when none was named: with a fixed number of
// rounds it has no bound.
func (r *run) budget() {
	if r.Budget == 0 && r.Rounds == 0 {
		r.Budget = 10 * time.Minute
	}
}

// run is the state of one evaluation.
type run struct {
	Options
	repo     *tree.Repo
	pristine *tree.Pristine // writes the versions' folders
	stack    *tree.Stack
	baseTree string
	total    int // the m of n/m
	suite    *bench.Suite
	sandbox  *sandbox.Sandbox

	e         *store.Evaluation
	cache     *fixture.Cache
	fixtures  fixture.Set
	values    [][]bench.Recipe // by variant and value of CompareParam; nil if versions are compared
	names     []string         // of the values
	fields    []*field
	extra     []string // names of what is put on every version
	suiteFile string   // its path in the base tree, "" if it came from the options
	cut       []string // limits of the suite that Most cut
	samples   []bench.Sample
	compared  compare.Result
	resumed   *store.Evaluation // the record that is continued, nil for none
	deadline  time.Time         // of measuring; zero for none

	counting  map[int]time.Duration // what it took last to count a benchmark's versions once
	recounted time.Duration         // the time of all further counting
}

func apply(ctx context.Context, repo *tree.Repo, in Input, o Options) (*tree.Stack, error) {
	if in.Series == nil {
		return repo.Range(ctx, in.From, in.To)
	}
	base, err := repo.Base(in.Series, o.Base, o.Branch)
	if err != nil {
		return nil, err
	}
	return repo.Apply(ctx, base, in.Series, tree.Options{AtHand: in.AtHand, Fuzz: o.Fuzz})
}

func regular(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// readSuite takes the suite from the options or from the base tree, never from
// a patched one.
func (r *run) readSuite() (err error) {
	name, text := r.SuiteName, r.SuiteText
	for _, n := range suite.DefaultNames {
		if text != nil {
			break
		}
		if found, err := r.repo.Files(r.stack.Base.Commit, n); err == nil {
			name, text, r.suiteFile = n, found, n
		}
	}
	if text == nil {
		todo := "write one (bot init starts one) and name it with --suite"
		for _, n := range suite.DefaultNames {
			// Written or committed after what the series is based on.
			if at := filepath.Join(r.Repo, n); regular(at) {
				todo = "name the one that lies in the folder now: --suite " + at
				break
			}
		}
		return &InputError{fmt.Errorf("no suite: commit %.12s of %s has none of %s as a plain file at its top; %s",
			r.stack.Base.Commit, r.Repo, strings.Join(suite.DefaultNames, ", "), todo)}
	}
	if r.suite, err = suite.Parse(name, text); err != nil {
		return &InputError{err}
	}
	r.cut = r.suite.Bound(r.Most)
	if err := r.mayReachOut(); err != nil {
		return err
	}
	if r.CompareParam != "" {
		if err := r.compareValues(); err != nil {
			return err
		}
	}
	if r.Benchmarks == nil {
		return nil
	}
	all := keys(r.suite)
	r.suite.Benchmarks = slices.DeleteFunc(r.suite.Benchmarks, func(b bench.Benchmark) bool {
		return !r.Benchmarks.MatchString(b.Key())
	})
	if len(r.suite.Benchmarks) == 0 {
		return &InputError{fmt.Errorf("no benchmark of suite %s matches %q; it has %s", name, r.Benchmarks, all)}
	}
	return nil
}

// nothingToRun says why no version need be built, "" if some must be.
func (r *run) nothingToRun() string {
	switch {
	case len(r.stack.Submodules) > 0:
		return fmt.Sprintf("not evaluated: submodule change in patch %s", numbers(r.stack.Submodules))
	case len(r.e.Versions) == 1:
		return "not evaluated: no patch could be applied"
	}
	return ""
}
