package eval

import (
	"context"
	"fmt"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/store"
)

// Planned is what an evaluation would do, and how long it would take, judged by
// one build of base and one run of every benchmark on it.
type Planned struct {
	// Evaluation has the series, base, suite, host, versions and conflict, and no results.
	*store.Evaluation
	Benchmarks []string // keys, in order
	// BaseBuild is the time of base's build; LogTail says why it failed.
	BaseBuild time.Duration
	// Builds estimates all builds, from BaseBuild.
	Builds time.Duration
	// Round estimates one round of every benchmark over all versions and the twin.
	Round time.Duration
	// MinRounds and MaxRounds bound the rounds; Budget bounds the time of
	// measuring, 0 if nothing does.
	MinRounds, MaxRounds int
	Budget               time.Duration
	// Counted are the keys of benchmarks with exact counters, which are taken
	// outside Budget; those that do not repeat in at most Recountings rounds, for as
	// long as Budget once more.
	Counted     []string
	Recountings int
}

// Measure estimates the shortest and the longest time of measuring.
func (p *Planned) Measure() (least, most time.Duration) {
	least, most = p.Round*time.Duration(p.MinRounds), p.Round*time.Duration(p.MaxRounds)
	if p.Budget > 0 {
		least, most = min(least, p.Budget), min(most, p.Budget)
	}
	return least, most
}

// Plan says what Run would do with the same arguments. Nothing is kept.
func Plan(ctx context.Context, in Input, o Options) (*Planned, error) {
	r, err := open(ctx, in, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	looks := compare.Looks()
	p := &Planned{Evaluation: r.e, MinRounds: looks[0], MaxRounds: looks[len(looks)-1], Budget: r.Budget, Recountings: recountings()}
	if r.Rounds > 0 {
		p.MinRounds, p.MaxRounds, p.Recountings = r.Rounds, r.Rounds, min(p.Recountings, r.Rounds)
	}
	for _, b := range r.suite.Benchmarks {
		p.Benchmarks = append(p.Benchmarks, b.Key())
	}
	if why := r.nothingToRun(); why != "" {
		r.warn(why)
		return p, nil
	}
	return p, r.try(ctx, p)
}

// try builds base and runs every benchmark on it, to learn what they take.
func (r *run) try(ctx context.Context, p *Planned) error {
	if err := r.openFields(ctx); err != nil {
		return err
	}
	r.Progress.Stage("build base", 1)
	base := &r.e.Versions[0]
	builds, err := r.buildVersion(ctx, base)
	if err != nil {
		return err
	}
	versions := make([][]sample.Version, len(builds))
	for k, b := range builds {
		p.BaseBuild += b.Elapsed
		if b.State == bench.Built {
			versions[k] = []sample.Version{{Dir: b.Dir}}
		}
	}
	p.Builds = p.BaseBuild * time.Duration(len(r.e.Versions))
	if base.State != bench.Built {
		return nil
	}
	boxes, err := r.openBoxes(ctx, versions)
	if err != nil {
		return err
	}
	defer boxes.Close()
	r.Progress.Stage("try", len(r.suite.Benchmarks))
	for i, bm := range r.suite.Benchmarks {
		r.Progress.Done(i, bm.Key(), 0)
		sampler, _ := boxes.Of(bm)
		if sampler == nil {
			continue
		}
		w, err := sampler.WarmUp(ctx, i)
		if err != nil {
			return fmt.Errorf("try %s: %w", bm.Key(), err)
		}
		r.e.Failures = append(r.e.Failures, w.Failures...)
		p.Round += w.Round * time.Duration(len(r.e.Versions)+1)
		if len(sampler.Counters(i)) > 0 {
			p.Counted = append(p.Counted, bm.Key())
		}
	}
	return nil
}
