package eval

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/bench/sandbox"
	"patchbench/bench/unlink"
	"patchbench/bot/eval/variant"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// Rounds and time of Check where nobody says.
const (
	checkRounds = 5
	checkBudget = 2 * time.Minute
)

// Checked is what a suite does on the base alone.
type Checked struct {
	// Evaluation has the base, suite, host, failures and warnings. Versions[0] is
	// the base with its build; there are no results.
	*store.Evaluation
	// SuiteFile is the suite's path in the base tree, or the file that was given.
	SuiteFile string
	Sandbox   sandbox.Facts
	// BaseBuild is what base took to check out and build; AgainBuild is the same
	// once more, with the caches that base has filled, as every patch is built. 0
	// if it was not done.
	BaseBuild, AgainBuild time.Duration
	// Again is the second build; nil if it was not done because the first took
	// longer than the budget.
	Again *bench.Version
	// VersionBytes is the disk that one built version takes, without caches.
	VersionBytes int64
	Benchmarks   []CheckedBenchmark
	// Samples are those of base and its twin, in rounds.
	Samples []bench.Sample
	// Cut says that the budget ended before all rounds were run.
	Cut bool
}

// CheckedBenchmark is one benchmark on the base.
type CheckedBenchmark struct {
	Benchmark bench.Benchmark
	// Works says that it can be measured.
	Works bool
	// Run is about how long one run takes with all around it: preparation,
	// cleaning up, and a second run for peaks where that is needed.
	Run time.Duration
	// Count is about how long it takes to take one version's exact counters, Recount
	// to take once more those that do not repeat; 0 if there are none.
	Count, Recount time.Duration
	// Rounds are those of base and its twin that were run.
	Rounds int
	// PeaksApart says that peaks of memory need runs of their own, as reading them
	// takes TraceShare, a fraction, of the time.
	PeaksApart bool
	TraceShare float64
}

// Cost is about what an evaluation of a series takes.
type Cost struct {
	Patches int
	Builds  time.Duration // of all versions
	Round   time.Duration // of every benchmark once on every version
	// First is the time of measuring until rows are judged for the first time,
	// Last until they are for the last time, exact counters included.
	First, Last time.Duration
	DiskBytes   int64
}

// Cost estimates an evaluation of so many patches, each of which has a build of
// its own.
func (c *Checked) Cost(patches int) Cost {
	k := Cost{Patches: patches, Builds: c.BaseBuild}
	each := c.BaseBuild
	if c.Again != nil && c.Again.State == bench.Built {
		each = c.AgainBuild
	}
	k.Builds += each * time.Duration(patches)
	versions := patches + 2 // base and its twin
	looks := compare.Looks()
	first, last := looks[0], looks[len(looks)-1]
	for _, b := range c.Benchmarks {
		if !b.Works {
			continue
		}
		round := b.Run * time.Duration(versions)
		k.Round += round
		// The warm-up runs everything once more.
		k.First += round*time.Duration(first+1) + (b.Count+b.Recount*time.Duration(recountings()-1))*time.Duration(versions)
		if b.PeaksApart {
			round /= 2 // at the first look memory is decided as a rule
		}
		k.Last += round * time.Duration(last-first)
	}
	k.Last += k.First
	k.DiskBytes = c.VersionBytes * int64(versions)
	return k
}

// Check runs a suite on the base alone: it builds base twice, runs every benchmark
// in a warm-up, takes its exact counters, and then goes on in o.Rounds rounds (5 if
// it is 0) with base and its twin, as far as o.Budget (2 minutes) goes. Counters that
// do not repeat are counted in as many rounds, for as long as o.Budget. Nothing is
// kept in a store. What does not build or work is in the result; the error is as
// Run's.
func Check(ctx context.Context, o Options) (*Checked, error) {
	if o.Rounds == 0 {
		o.Rounds = checkRounds
	}
	if o.Budget == 0 {
		o.Budget = checkBudget
	}
	r, err := openBase(ctx, o.defaults())
	if err != nil {
		return nil, err
	}
	defer r.close()
	c := &Checked{Evaluation: r.e, SuiteFile: r.suiteFile, Sandbox: r.sandbox.Facts()}
	if c.SuiteFile == "" {
		c.SuiteFile = r.SuiteName
	}
	if r.stack.Conflict != nil {
		return c, nil
	}
	if err := r.buildTwice(ctx, c); err != nil || r.e.Versions[0].State != bench.Built {
		return c, err
	}
	return c, r.sampleBase(ctx, c)
}

// openBase is open for a base without a series.
func openBase(ctx context.Context, o Options) (*run, error) {
	repo, err := tree.Open(o.Repo)
	if err != nil {
		return nil, err
	}
	r := newRun(o, repo)
	base, err := repo.Base(nil, o.Base, o.Branch)
	if err == nil {
		r.stack = &tree.Stack{Base: base}
		err = r.prepare(ctx, Input{})
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// buildTwice builds base, and the same once more as the version of a patch that
// changes nothing.
func (r *run) buildTwice(ctx context.Context, c *Checked) error {
	if err := r.openFields(ctx); err != nil {
		return err
	}
	r.Progress.Stage("build base, twice", 2)
	r.stack.Steps = []tree.Step{{N: 1, Commit: r.stack.Commit(0)}}
	one := func(v *bench.Version) ([]bench.Build, time.Duration, error) {
		start := r.Now()
		builds, err := r.buildVersion(ctx, v)
		return builds, r.Now().Sub(start), err
	}
	r.Progress.Done(0, "base", 0)
	builds, took, err := one(&r.e.Versions[0])
	if err != nil || r.e.Versions[0].State != bench.Built {
		return err
	}
	c.BaseBuild = took
	for k, b := range builds {
		r.fields[k].builds = []bench.Build{b}
		for _, name := range []string{"src", "out"} {
			n, err := diskOf(filepath.Join(b.Dir, name))
			if err != nil && b.State == bench.Built {
				return err
			}
			c.VersionBytes += n
		}
	}
	if took > r.Budget {
		r.Progress.Done(2, "", 0)
		return nil
	}
	r.Progress.Done(1, "base again", 0)
	c.Again = &bench.Version{N: 1, Name: "base, built again"}
	builds, took, err = one(c.Again)
	if err != nil {
		return err
	}
	c.AgainBuild = took
	r.Progress.Done(2, "", 0)
	var errs []error
	for _, b := range builds {
		errs = append(errs, unlink.All(b.Dir))
	}
	return errors.Join(errs...)
}

// diskOf is the room that a folder's files take.
func diskOf(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return ignoreGone(err)
	})
	return n, err
}

// ignoreGone lets what a build left unreadable or took away out of a sum.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// sampleBase runs the benchmarks on base and its twin.
func (r *run) sampleBase(ctx context.Context, c *Checked) error {
	versions := make([][]sample.Version, len(r.fields))
	for k, f := range r.fields {
		if f.builds[0].State != bench.Built {
			continue
		}
		twin, err := r.twin(k)
		if err != nil {
			return err
		}
		versions[k] = []sample.Version{{Dir: f.builds[0].Dir}, twin}
	}
	boxes, err := r.openBoxes(ctx, versions)
	if err != nil {
		return err
	}
	defer boxes.Close()
	if r.e.Host.Compiler, err = boxes.Compiler(ctx); err != nil {
		return err
	}
	if r.e.Host.Instructions, err = boxes.Instructions(ctx); err != nil {
		return err
	}
	start := r.Now()
	r.Progress.Stage("warm up", len(r.suite.Benchmarks))
	for b, bm := range r.suite.Benchmarks {
		r.Progress.Done(b, bm.Key(), leftOf(start, r.Now(), b, len(r.suite.Benchmarks)))
		sampler, _ := boxes.Of(bm)
		if sampler == nil {
			c.Benchmarks = append(c.Benchmarks, CheckedBenchmark{Benchmark: bm})
			continue
		}
		w, err := sampler.WarmUp(ctx, b)
		if err != nil {
			return fmt.Errorf("warm up %s: %w", bm.Key(), err)
		}
		if err := r.took(ctx, w.Samples, w.Failures, w.Warnings); err != nil {
			return err
		}
		counting := r.Now()
		if err := r.count(ctx, sampler, b, []sample.Version{{}}); err != nil {
			return err
		}
		c.Benchmarks = append(c.Benchmarks, CheckedBenchmark{
			Benchmark: bm, Works: w.Working > 0, Run: w.Round / 2, Count: r.Now().Sub(counting) / 2,
			PeaksApart: w.PeaksApart, TraceShare: w.TraceShare})
	}
	r.Progress.Done(len(r.suite.Benchmarks), "", 0)
	if err := r.recountBase(ctx, boxes, c); err != nil {
		return err
	}
	r.deadline = r.Now().Add(r.Budget)
	err = r.checkRounds(ctx, boxes, c)
	c.Samples = r.samples
	r.e.MeasureSeconds = r.Now().Sub(start).Seconds()
	r.e.Host.LoadAfter, r.e.Host.PressureAfter = sample.Pressure()
	return err
}

// recountBase counts again what does not repeat, and learns what that takes.
func (r *run) recountBase(ctx context.Context, boxes *variant.Boxes, c *Checked) error {
	works := make([]bool, len(c.Benchmarks))
	for b := range works {
		works[b] = c.Benchmarks[b].Works
	}
	list, _ := r.unsteady(boxes, works, r.Rounds)
	if err := r.recount(ctx, boxes, works); err != nil {
		return err
	}
	for _, u := range list {
		c.Benchmarks[u.b].Recount = r.counting[u.b] / 2
	}
	return nil
}

// checkRounds runs round after round of all that works, and learns what a run
// takes: the mean of the rounds, as what takes long now and then does so later, too.
func (r *run) checkRounds(ctx context.Context, boxes *variant.Boxes, c *Checked) error {
	spent := make([]time.Duration, len(c.Benchmarks))
	r.Progress.Stage("try", r.Rounds)
	for round := 1; round <= r.Rounds; round++ {
		for b := range c.Benchmarks {
			t := &c.Benchmarks[b]
			if !t.Works {
				continue
			}
			if c.Cut = r.timeLeft() == 0; c.Cut {
				return nil
			}
			start, key := r.Now(), t.Benchmark.Key()
			r.Progress.Done(round-1, fmt.Sprintf("round %d, %s", round, key), r.timeLeft())
			sampler, _ := boxes.Of(t.Benchmark)
			got, err := sampler.Round(ctx, b, round)
			if err != nil {
				return fmt.Errorf("round %d of %s: %w", round, key, err)
			}
			if err := r.took(ctx, got.Samples, got.Failures, got.Warnings); err != nil {
				return err
			}
			t.Works = got.Working > 0
			t.Rounds = round
			spent[b] += r.Now().Sub(start)
			t.Run = spent[b] / time.Duration(2*round)
		}
		r.e.Rounds = round
	}
	r.Progress.Done(r.Rounds, "", 0)
	return nil
}
