package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bench/sample"
	"patchbench/bot/eval/taken"
)

// count takes the exact counters of a benchmark, which need no rounds, unless the
// record has them of every version. The time it takes is no part of the budget,
// which is that of rounds.
func (r *run) count(ctx context.Context, sampler *sample.Sampler, b int, versions []sample.Version) error {
	bm := r.suite.Benchmarks[b]
	if !slices.ContainsFunc(versions, func(v sample.Version) bool { return !taken.Counted(r.samples, bm, v.N) }) {
		return nil
	}
	if counters := sampler.Counters(b); len(counters) > 0 {
		r.Progress.Done(b, bm.Key()+", counting "+strings.Join(counters, ", "), 0)
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
	r.counted(b, took)
	return r.took(ctx, taken.NewCounts(e.Samples, r.samples), nil, e.Warnings)
}

// counted notes how long it took to count a benchmark on its versions once.
func (r *run) counted(b int, took time.Duration) {
	if r.counting == nil {
		r.counting = map[int]time.Duration{}
	}
	r.counting[b] = took
}
