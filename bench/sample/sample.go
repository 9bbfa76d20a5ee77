// Package sample measures built versions: it runs the benchmarks of a suite in
// randomised complete blocks and yields samples.
//
//	versions (bench/build) --> WarmUp, Round, Round, ... --> samples (bench/compare)
//
// Each version has a box of its own that lives as long as the Sampler. Inside
// every box the version lies at the same paths, read-only, and is started with
// the same environment and arguments:
//
//	/build/src   the version's source folder, where programs start
//	/build/out   what the build put aside
//	/tmp         private, empty at the start of each run
//
// A warm-up finds out which versions work, how long a round takes and whether
// peaks of memory can be read in the timed runs. It also finds out whether the
// benchmark can be trusted: one that fails on the base or its twin, or prints
// something else there under a check, is measured on no version, since what it
// does on a patch would tell nothing of the patch. A round then runs every working
// version once, in random order; it counts as a whole or not at all. When a run
// fails or stalls, the whole round is repeated and the samples of the first try
// stay in the record (bench/sample/jsonl), marked as discarded.
//
// What is run is a plan (bench/sample/plan): one program, a chain of them on one
// state, or several at once, each with a row of its own. A version on which a row
// fails is still measured in the rows of a chain before it.
//
// Exact counters (bench/sample/counter) need no rounds: Exact counts each version
// once after the warm-up, and base twice. Those that do not repeat get some rounds of
// their own: Recount. Instructions are counted in the ordinary rounds, by
// perf_event_open, where the machine has a counter for them.
//
// The package also tells the facts of the host. It draws no conclusions from figures: that is bench/compare's part. It starts no
// program itself: bench/sandbox does.
package sample

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/bench/fixture"
	"patchbench/bench/sample/parse"
	"patchbench/bench/sample/plan"
	"patchbench/bench/sandbox"
	"patchbench/bench/sandbox/perf"
	"patchbench/bench/settle"
)

// Where every version lies inside its box.
const (
	srcDir = "/build/src"
	outDir = "/build/out"
	// checkDir has the output of a run that a program checks.
	checkDir = "/build/check"
)

// Version is a built version to be measured.
type Version struct {
	// N is the version's number: 0 is the base, n the code after n patches.
	N int
	// Dir is the folder on this machine that holds src and out.
	Dir string
	// Twin marks the copy of the base that is measured beside it (A/A); N is 0.
	Twin bool
}

// String names the version as reports do.
func (v Version) String() string {
	switch {
	case v.Twin:
		return "the base's twin"
	case v.N == 0:
		return "base"
	}
	return fmt.Sprintf("patch %d", v.N)
}

// Options choose how a Sampler works. The zero value works.
type Options struct {
	// Seed decides the order of runs: the same seed, benchmark, round and
	// versions give the same order.
	Seed uint64
	// Now is the clock that estimates are made with; nil means time.Now.
	// Samples are timed inside the box and never by it.
	Now func() time.Time
	// Fixtures are laid out in every box; the copies among them are fresh at the
	// start of each run.
	Fixtures fixture.Set
}

// Sampler measures the versions of one evaluation. It is not for use by several
// goroutines: runs that overlap would disturb each other.
type Sampler struct {
	suite *bench.Suite
	slots []*slot
	start starter
	seed  uint64
	now   func() time.Time

	states map[int]*state // by index of the benchmark

	traceKnown bool          // the next two were found out
	stopCost   time.Duration // of one stop of a trace
	noPeaks    string        // why peaks cannot be read here; "" if they can

	event     perf.Event // what instructions are to the kernel
	perfKnown bool       // the next was found out
	noPerf    string     // why the machine does not count them; "" if it does
}

// state is what is known of one benchmark.
type state struct {
	bm   bench.Benchmark
	plan plan.Plan
	// upto is how many rows of the plan can be measured, by slot; 0: the version
	// takes no part. No slot has more than the base.
	upto []int
	// apart says that peaks are read in runs of their own, enough that these are no
	// longer wanted.
	apart, enough bool
	// perf says that instructions are counted where peaks are read: neither the
	// trace nor the counter changes what a program executes.
	perf   bool
	ground *ground // nil before it was counted
	// outputs are the digests of what each row must print, the base's.
	outputs  []string
	parser   *parse.Parser     // of the output; nil for none
	rows     []map[string]bool // by slot: the rows that a parsed output must have
	loose    map[string]bool   // rows that only one of base and its twin printed
	walls    [][]time.Duration // by slot: of the rounds that count
	runs     [][]int           // by slot and row of the plan
	failures [][]int
	last     [][]outcome // the last run in which the row failed
}

func newState(b bench.Benchmark, slots int) *state {
	st := &state{
		bm: b, plan: plan.Of(b), upto: make([]int, slots), rows: make([]map[string]bool, slots), walls: make([][]time.Duration, slots),
		runs: make([][]int, slots), failures: make([][]int, slots), last: make([][]outcome, slots),
	}
	if b.Parse != "" {
		st.parser, _ = parse.New(b.Parse) // known: Open has asked
	}
	n := len(st.plan.Rows)
	for i := range slots {
		st.upto[i] = n
		st.runs[i], st.failures[i], st.last[i] = make([]int, n), make([]int, n), make([]outcome, n)
	}
	return st
}

// Open starts a box for each version. The suite and the versions stay the
// caller's and must not change until Close. Exactly one version must be the base
// (N 0, no twin); at most one is its twin.
func Open(ctx context.Context, sb *sandbox.Sandbox, suite *bench.Suite, versions []Version, o Options) (*Sampler, error) {
	return open(ctx, sb, func(ctx context.Context, box sandbox.Box) (runner, error) {
		r, err := sb.Start(ctx, box)
		if err != nil {
			return nil, err
		}
		return r, nil
	}, suite, versions, o)
}

func open(ctx context.Context, sb *sandbox.Sandbox, start starter, suite *bench.Suite, versions []Version, o Options) (*Sampler, error) {
	if err := checkVersions(versions); err != nil {
		return nil, err
	}
	for _, b := range suite.Benchmarks {
		if b.Parse == "" {
			continue
		}
		if _, err := parse.New(b.Parse); err != nil {
			return nil, fmt.Errorf("benchmark %q: parse: %w", b.Key(), err)
		}
	}
	s := &Sampler{suite: suite, start: start, seed: o.Seed, now: o.Now, states: map[int]*state{}, event: perf.Instructions}
	if s.now == nil {
		s.now = time.Now
	}
	// All at once, since what memory holds of a file changes with time.
	for _, v := range versions {
		for _, name := range []string{"src", "out"} {
			err := settle.Programs(filepath.Join(v.Dir, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // boxOf says what is not there
				return nil, fmt.Errorf("sample %s: %w", v, err)
			}
		}
	}
	for _, v := range versions {
		box, err := boxOf(v, suite)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		sl := &slot{Version: v, box: box}
		if sl.fixtures, err = o.Fixtures.Lay(filepath.Join(v.Dir, "fixtures"), sb); err != nil {
			return nil, errors.Join(fmt.Errorf("sample %s: %w", v, err), s.Close())
		}
		sl.box.Mounts = append(sl.box.Mounts, sl.fixtures.Mounts...)
		if sl.run, err = start(ctx, sl.box); err != nil {
			return nil, errors.Join(fmt.Errorf("start a box for %s: %w", v, err), s.Close())
		}
		s.slots = append(s.slots, sl)
	}
	// The base and its twin go first where order matters: what they print is
	// what the others are compared with.
	slices.SortStableFunc(s.slots, func(a, b *slot) int {
		if c := cmp.Compare(a.N, b.N); c != 0 || a.Twin == b.Twin {
			return c
		}
		if b.Twin {
			return -1
		}
		return 1
	})
	return s, nil
}

func checkVersions(versions []Version) error {
	seen := map[[2]int]bool{}
	for _, v := range versions {
		k := [2]int{v.N, 0}
		if v.Twin {
			k[1] = 1
		}
		switch {
		case v.N < 0:
			return fmt.Errorf("sample: version %d: numbers start at 0, the base", v.N)
		case v.Twin && v.N != 0:
			return fmt.Errorf("sample: version %d is marked as a twin: only the base has one", v.N)
		case seen[k]:
			return fmt.Errorf("sample: %s is given twice", v)
		}
		seen[k] = true
	}
	if !seen[[2]int{}] {
		return errors.New("sample: the base is not among the versions")
	}
	return nil
}

// Close ends all boxes and whatever still runs in them.
func (s *Sampler) Close() error {
	var errs []error
	for _, sl := range s.slots {
		if sl.run != nil {
			errs = append(errs, sl.run.Close())
			sl.run = nil
		}
	}
	return errors.Join(errs...)
}

// benchmark gives benchmark b, which the caller counts from 0 as the suite does.
func (s *Sampler) benchmark(b int) (bench.Benchmark, error) {
	if b < 0 || b >= len(s.suite.Benchmarks) {
		return bench.Benchmark{}, fmt.Errorf("sample: benchmark %d of %d", b, len(s.suite.Benchmarks))
	}
	return s.suite.Benchmarks[b], nil
}

// order is the random order of slots in one try of a round. It is drawn over all
// slots and the failing ones are skipped, so that it does not hang on who fails.
func (s *Sampler) order(b, round, try int) []int {
	h := sha256.New()
	for _, x := range []uint64{s.seed, uint64(b), uint64(round), uint64(try)} {
		h.Write(binary.LittleEndian.AppendUint64(nil, x))
	}
	return rand.New(rand.NewChaCha8([sha256.Size]byte(h.Sum(nil)))).Perm(len(s.slots))
}
