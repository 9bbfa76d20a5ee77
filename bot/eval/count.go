package eval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/bench/sample"
)

// count takes the exact counters of a benchmark, which need no rounds, unless the
// record has them of every version. The time it takes is no part of the budget,
// which is that of rounds.
func (r *run) count(ctx context.Context, sampler *sample.Sampler, b int, versions []sample.Version) error {
	bm := r.suite.Benchmarks[b]
	if !slices.ContainsFunc(versions, func(v sample.Version) bool { return !r.counted(bm, v.N) }) {
		return nil
	}
	start := r.Now()
	e, err := sampler.Exact(ctx, b)
	if err != nil {
		return fmt.Errorf("count %s: %w", bm.Key(), err)
	}
	took := r.Now().Sub(start)
	if !r.deadline.IsZero() {
		r.deadline = r.deadline.Add(took)
	}
	if r.counting == nil {
		r.counting = map[int]time.Duration{}
	}
	r.counting[b] = took
	// Base and the last version may have been counted before those in between.
	fresh := slices.DeleteFunc(e.Samples, func(s bench.Sample) bool {
		return slices.ContainsFunc(r.samples, func(o bench.Sample) bool {
			return o.Round == s.Round && o.Version == s.Version && o.Twin == s.Twin && o.Metric == s.Metric &&
				bench.RowName(o.Benchmark, o.Params) == bench.RowName(s.Benchmark, s.Params)
		})
	})
	return r.took(ctx, fresh, nil, e.Warnings)
}

// counted says that the record has exact counters of a benchmark on a version.
func (r *run) counted(b bench.Benchmark, version int) bool {
	return slices.ContainsFunc(r.samples, func(s bench.Sample) bool {
		return s.Version == version && !s.Twin && ofCounter(s) && belongsTo(s.Benchmark, s.Params, b)
	})
}

// ofCounter says that a line of the record is one of an exact counter.
func ofCounter(s bench.Sample) bool { return bench.MetricFor(s.Metric, s.Unit).Exact }
