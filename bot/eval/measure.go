package eval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/store"
)

// measure takes samples until every row is decided, the budget is spent, or ctx
// ends. Without two builds that differ there is nothing to measure.
func (r *run) measure(ctx context.Context) error {
	var versions []sample.Version
	for n, b := range r.builds {
		if b.Dir != "" {
			versions = append(versions, sample.Version{N: n, Dir: b.Dir})
		}
	}
	if len(versions) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	if versions[0].N != 0 {
		r.warn("base does not build: there is nothing to compare with")
		return nil
	}
	if len(versions) == 1 {
		return nil
	}
	twin, err := r.twin()
	if err != nil {
		return fmt.Errorf("copy the base's build: %w", err)
	}
	versions = append(versions, sample.Version{Dir: twin.Dir, Twin: true})
	sampler, err := sample.Open(ctx, r.sandbox, r.suite, versions, sample.Options{Seed: r.Seed})
	if err != nil {
		return err
	}
	defer sampler.Close()
	if r.e.Host.Compiler, err = sampler.Compiler(ctx); err != nil {
		return err
	}
	round, err := r.warmUp(ctx, sampler)
	if err != nil {
		return err
	}
	start := r.Now()
	defer func() { r.e.MeasureSeconds = r.Now().Sub(start).Seconds() }()
	return r.rounds(ctx, sampler, round, start)
}

// warmUp runs every benchmark once on every version; it finds what fails, and
// gives what one round of each benchmark takes.
func (r *run) warmUp(ctx context.Context, sampler *sample.Sampler) ([]time.Duration, error) {
	round := make([]time.Duration, len(r.suite.Benchmarks))
	var all time.Duration
	r.Progress.Stage("warm up", len(round))
	for b, bm := range r.suite.Benchmarks {
		r.Progress.Done(b, bm.Key(), 0)
		w, err := sampler.WarmUp(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("warm up %s: %w", bm.Key(), err)
		}
		r.took(w.Samples, w.Failures, w.Warnings)
		if err := r.keep(ctx, w.Samples); err != nil {
			return nil, err
		}
		if w.Working > 1 {
			round[b] = w.Round
			all += w.Round
		}
	}
	r.Progress.Done(len(round), "", 0)
	firstLook := compare.Looks()[0]
	if need := time.Duration(firstLook) * all; r.Rounds == 0 && need > r.Budget {
		text := fmt.Sprintf("the budget of %v is too little for %d rounds of every row: that takes about %v",
			r.Budget, firstLook, need.Round(time.Second))
		r.warn(text)
		r.Progress.Note(text)
	}
	return round, nil
}

func (r *run) rounds(ctx context.Context, sampler *sample.Sampler, cost []time.Duration, start time.Time) error {
	looks := compare.Looks()
	if r.Rounds > 0 {
		looks = []int{r.Rounds}
	}
	last := looks[len(looks)-1]
	var open []int // benchmarks that need more rounds
	for b := range r.suite.Benchmarks {
		if cost[b] > 0 {
			open = append(open, b)
		}
	}
	r.Progress.Stage("measure", last)
	for n := 1; n <= last && len(open) > 0; n++ {
		var perRound time.Duration
		for _, b := range open {
			perRound += cost[b]
		}
		for _, b := range open {
			used := r.Now().Sub(start)
			if r.Budget > 0 && used >= r.Budget {
				r.e.Stopped = store.StoppedBudget
				return nil
			}
			left := perRound * time.Duration(last-n+1)
			if r.Budget > 0 {
				left = min(left, r.Budget-used)
			}
			r.Progress.Done(n-1, fmt.Sprintf("round %d, %s", n, r.suite.Benchmarks[b].Key()), left)
			got, err := sampler.Round(ctx, b, n)
			r.took(got.Samples, got.Failures, got.Warnings)
			if err := r.keep(context.WithoutCancel(ctx), got.Samples); err != nil {
				return err
			}
			if err != nil {
				return fmt.Errorf("round %d of %s: %w", n, r.suite.Benchmarks[b].Key(), err)
			}
		}
		if slices.Contains(looks, n) {
			r.judge(false)
			open = slices.DeleteFunc(open, func(b int) bool {
				return !r.compared.IsOpen(r.suite.Benchmarks[b])
			})
		}
	}
	r.Progress.Done(last, "", 0)
	return nil
}

// took records what the sampler found.
func (r *run) took(samples []bench.Sample, failures []bench.Failure, warnings []string) {
	r.samples = append(r.samples, samples...)
	r.e.Failures = append(r.e.Failures, failures...)
	r.e.Warnings = append(r.e.Warnings, warnings...)
}

// judge compares what was measured so far; final says that no round will follow.
func (r *run) judge(final bool) {
	o := compare.Options{Margin: r.Margin, Seed: r.Seed, Final: final}
	if r.Rounds > 0 {
		o.Looks = []int{r.Rounds}
	}
	r.compared = compare.Compare(r.e.Versions, r.samples, r.e.Failures, o)
	r.e.Results = r.compared.Comparisons
	for _, b := range r.suite.Benchmarks {
		if !slices.ContainsFunc(r.e.Results, func(c bench.Comparison) bool { return belongs(c, b) }) {
			r.e.Results = append(r.e.Results, compare.Unmeasured(r.e.Versions, b, r.e.Failures)...)
		}
	}
	r.e.Rounds = 0
	for _, c := range r.e.Results {
		r.e.Rounds = max(r.e.Rounds, c.Rounds)
	}
	if final {
		r.e.Warnings = append(r.e.Warnings, r.compared.Warnings...)
	}
}

// belongs says that a row is the benchmark's, or parsed from its output (NAME/...).
func belongs(c bench.Comparison, b bench.Benchmark) bool {
	return maps.Equal(c.Params, b.Params) && (c.Benchmark == b.Name || strings.HasPrefix(c.Benchmark, b.Name+"/"))
}

type silent struct{}

func (silent) Stage(string, int)               {}
func (silent) Done(int, string, time.Duration) {}
func (silent) Note(string)                     {}
