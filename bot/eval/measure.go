package eval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/bot/eval/resume"
	"patchbench/bot/eval/taken"
	"patchbench/bot/eval/variant"
	"patchbench/store"
)

// measure takes samples until every row is decided, the budget is spent, or ctx
// ends. Without two builds that differ there is nothing to measure.
func (r *run) measure(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := r.chooseVersions(); err != nil {
		return err
	}
	all := make([]bool, len(r.suite.Benchmarks))
	for b, bm := range r.suite.Benchmarks {
		all[b] = r.fields[bm.Variant].versions != nil
	}
	if !slices.Contains(all, true) {
		return nil
	}
	before := r.e.MeasureSeconds
	start := r.Now()
	defer func() { r.e.MeasureSeconds = before + r.Now().Sub(start).Seconds() }()
	if r.Budget > 0 {
		r.deadline = start.Add(r.Budget)
	}
	versions, most := make([][]sample.Version, len(r.fields)), 0
	for k, f := range r.fields {
		versions[k] = f.versions
		most = max(most, len(f.versions))
	}
	if r.EndsFirst && most > 3 {
		var err error
		if all, err = r.measureEnds(ctx, versions, all); err != nil || r.e.Stopped == store.StoppedBudget {
			return err
		}
	}
	return r.stretch(ctx, versions, all)
}

// stretch measures the chosen benchmarks on the versions, one list for each field,
// until nothing is left to decide.
func (r *run) stretch(ctx context.Context, versions [][]sample.Version, chosen []bool) error {
	if !slices.Contains(chosen, true) {
		return nil
	}
	boxes, err := r.openBoxes(ctx, versions)
	if err != nil {
		return err
	}
	defer boxes.Close()
	compiler, err := boxes.Compiler(ctx)
	if err != nil {
		return err
	}
	if err := resume.SameCompiler(r.resumed, compiler); err != nil {
		return err
	}
	r.e.Host.Compiler = compiler
	how, err := boxes.Instructions(ctx)
	if err != nil {
		return err
	}
	if err := resume.SameInstructions(r.resumed, how); err != nil {
		return err
	}
	r.e.Host.Instructions = how
	courses, err := r.warmUp(ctx, boxes, chosen)
	if err != nil {
		return err
	}
	if err := r.recount(ctx, boxes, chosen); err != nil {
		return err
	}
	return r.rounds(ctx, boxes, courses)
}

// course is how far a benchmark has come in a stretch.
type course struct {
	compare.Feed
	// before is how many rounds the record has that this stretch does not count:
	// those on fewer versions.
	before int
	// apart says that peaks take runs of their own, spared that these are left out.
	apart, spared bool
}

// warmUp runs the chosen benchmarks once on every version; it finds what fails,
// and gives what one round of each benchmark takes.
func (r *run) warmUp(ctx context.Context, boxes *variant.Boxes, chosen []bool) ([]course, error) {
	courses := make([]course, len(r.suite.Benchmarks))
	var all time.Duration // until each has had its first look
	r.Progress.Stage("warm up", len(courses))
	firstLook := r.looks()[0]
	for b, bm := range r.suite.Benchmarks {
		if !chosen[b] {
			continue
		}
		r.Progress.Done(b, bm.Key(), 0)
		sampler, versions := boxes.Of(bm)
		w, err := sampler.WarmUp(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("warm up %s: %w", bm.Key(), err)
		}
		if err := r.took(ctx, w.Samples, w.Failures, w.Warnings); err != nil {
			return nil, err
		}
		if w.Working > 1 {
			if err := r.count(ctx, sampler, b, versions); err != nil {
				return nil, err
			}
		}
		c := &courses[b]
		c.Weight, c.apart = bm.Weight, w.PeaksApart
		c.Rounds, c.before = taken.Rounds(r.samples, r.e.Failures, bm, versions)
		if w.Working > 1 {
			c.Cost = max(w.Round, 1)
			all += time.Duration(max(0, firstLook-c.Rounds)) * c.Cost
		}
	}
	r.Progress.Done(len(courses), "", 0)
	if left := r.timeLeft(); r.Rounds == 0 && left >= 0 && all > left {
		text := fmt.Sprintf("the budget of %v is too little for %d rounds of every row: that takes about %v",
			r.Budget, firstLook, all.Round(time.Second))
		r.warn(text)
		r.Progress.Note(text)
	}
	return courses, nil
}

func (r *run) looks() []int {
	if r.Rounds > 0 {
		return []int{r.Rounds}
	}
	return compare.Looks()
}

// timeLeft is what is left of the budget, negative if there is none.
func (r *run) timeLeft() time.Duration {
	if r.deadline.IsZero() {
		return -1
	}
	return max(0, r.deadline.Sub(r.Now()))
}

// rounds runs turn after turn of what compare.Next asks for, judging in between.
func (r *run) rounds(ctx context.Context, boxes *variant.Boxes, courses []course) error {
	looks := r.looks()
	r.Progress.Stage("measure", looks[len(looks)-1])
	for {
		r.judge(false)
		feeds := make([]compare.Feed, len(courses))
		for b := range courses {
			courses[b].Needs = r.compared.Needs(r.suite.Benchmarks[b])
			r.sparePeaks(boxes, b, &courses[b])
			feeds[b] = courses[b].Feed
		}
		left := r.timeLeft()
		turn := compare.Next(feeds, left, looks)
		if turn.Ended(feeds) {
			if turn.Starved {
				r.e.Stopped = store.StoppedBudget
			}
			r.Progress.Done(looks[len(looks)-1], "", 0)
			return nil
		}
		if err := r.turn(ctx, boxes, courses, turn); err != nil || r.e.Stopped == store.StoppedBudget {
			return err
		}
		if r.Rounds > 0 {
			r.Progress.Done(r.Rounds, "", 0)
			return nil
		}
	}
}

// sparePeaks leaves out the runs in which a benchmark's peaks are read once no row of
// them is open. Memory is mostly decided at the first look, cpu time much later.
func (r *run) sparePeaks(boxes *variant.Boxes, b int, c *course) {
	if !c.apart || r.Rounds > 0 {
		return
	}
	enough := c.Rounds >= r.looks()[0] && !r.compared.Wants(r.suite.Benchmarks[b], sample.Apart)
	if enough != c.spared {
		sampler, _ := boxes.Of(r.suite.Benchmarks[b])
		sampler.EnoughPeaks(b, enough)
		c.spared = enough
		if enough {
			c.Cost = max(c.Cost/2, 1)
		} else {
			c.Cost *= 2
		}
	}
}

// turn runs a round of each benchmark in turn until all have come to their goals.
func (r *run) turn(ctx context.Context, boxes *variant.Boxes, courses []course, turn compare.Turn) error {
	start := r.Now()
	for fed := true; fed; {
		fed = false
		for b := range courses {
			c := &courses[b]
			if c.Rounds >= turn.Goals[b] {
				continue
			}
			if r.timeLeft() == 0 {
				r.e.Stopped = store.StoppedBudget
				return nil
			}
			fed = true
			c.Rounds++
			key := r.suite.Benchmarks[b].Key()
			r.Progress.Done(c.Rounds-1, fmt.Sprintf("round %d, %s", c.Rounds, key), max(0, turn.Left-r.Now().Sub(start)))
			sampler, _ := boxes.Of(r.suite.Benchmarks[b])
			got, err := sampler.Round(ctx, b, c.before+c.Rounds)
			if err := r.took(context.WithoutCancel(ctx), got.Samples, got.Failures, got.Warnings); err != nil {
				return err
			}
			if err != nil {
				return fmt.Errorf("round %d of %s: %w", c.Rounds, key, err)
			}
		}
	}
	return nil
}

// took records and keeps what the sampler found. What a continued evaluation
// found before is not recorded twice.
func (r *run) took(ctx context.Context, samples []bench.Sample, failures []bench.Failure, warnings []string) error {
	if r.resumed != nil {
		samples = taken.NewFailures(samples, r.samples)
	}
	r.samples = append(r.samples, samples...)
	for _, f := range failures {
		if !slices.ContainsFunc(r.e.Failures, func(g bench.Failure) bool { return g.N == f.N && g.Benchmark == f.Benchmark }) {
			r.e.Failures = append(r.e.Failures, f)
		}
	}
	for _, w := range warnings {
		r.warn(w)
	}
	return r.keep(ctx, samples)
}

// judge compares what was measured so far; final says that no round will follow.
func (r *run) judge(final bool) {
	o := compare.Options{Margin: r.Margin, Seed: r.Seed, Final: final, Tested: func(row, metric string) bool { return taken.Tested(r.suite, row, metric) }}
	if r.Rounds > 0 {
		o.Looks = []int{r.Rounds}
	}
	r.compared = compare.Compare(r.e.Versions, r.samples, r.e.Failures, o)
	r.e.Results = r.compared.Comparisons
	for _, b := range r.suite.Benchmarks {
		for _, row := range taken.Rows(b) {
			if !slices.ContainsFunc(r.e.Results, func(c bench.Comparison) bool { return taken.Belongs(c, row) }) {
				r.e.Results = append(r.e.Results, compare.Unmeasured(r.e.Versions, row, taken.Failures(r.samples, r.e.Failures, row))...)
			}
		}
	}
	for _, b := range r.suite.Benchmarks {
		for i := range r.e.Results {
			if c := &r.e.Results[i]; taken.Belongs(*c, b) {
				c.Weight = b.Weight
			}
		}
	}
	r.e.Rounds = 0
	for _, c := range r.e.Results {
		r.e.Rounds = max(r.e.Rounds, c.Rounds)
	}
	if final {
		for _, w := range r.compared.Warnings {
			r.warn(w)
		}
	}
}

type silent struct{}

func (silent) Stage(string, int)               {}
func (silent) Done(int, string, time.Duration) {}
func (silent) Note(string)                     {}
