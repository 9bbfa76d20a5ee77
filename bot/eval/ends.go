package eval

import (
	"context"
	"fmt"
	"slices"

	"patchbench/bench/sample"
	"patchbench/bot/eval/taken"
	"patchbench/bot/eval/variant"
	"patchbench/store"
)

// measureEnds measures base and the last version alone, and chooses the
// benchmarks that are worth measuring on every version: those in which a row's
// total moved or cannot be told. Rounds on all versions are counted anew, so
// that what chose a benchmark is no part of what judges its patches.
func (r *run) measureEnds(ctx context.Context, versions [][]sample.Version, all []bool) ([]bool, error) {
	ends := make([][]sample.Version, len(versions))
	for k, list := range versions {
		if len(list) > 0 {
			last := len(list) - 1 // base's twin
			ends[k] = []sample.Version{list[0], list[r.tip(list[:last], r.fields[k].params)], list[last]}
		}
	}
	chosen := make([]bool, len(r.suite.Benchmarks))
	first := make([]bool, len(chosen))
	for b, bm := range r.suite.Benchmarks {
		list := ends[bm.Variant]
		if !all[b] {
			continue
		}
		if list[1].N == 0 {
			r.warn("base and the last version build to the same" + variant.With(r.fields[bm.Variant].params) + ": no patch in between was measured")
			continue
		}
		// A continued evaluation has chosen already what it measured in between.
		chosen[b] = taken.InBetween(r.samples, bm, list[1].N)
		first[b] = !chosen[b]
	}
	if err := r.stretch(ctx, ends, first); err != nil {
		return nil, err
	}
	if r.e.Stopped == store.StoppedBudget && r.timeLeft() > 0 {
		// What base and tip alone could not tell leaves time for the versions in between.
		r.e.Stopped = store.StoppedInterrupted
	}
	r.judge(true)
	apart := 0
	for b, bm := range r.suite.Benchmarks {
		if chosen[b] = chosen[b] || first[b] && taken.Moved(r.e.Results, bm); first[b] && !chosen[b] {
			apart++
		}
	}
	if apart > 0 {
		r.warn(fmt.Sprintf("%d of %d benchmarks are the same on base and the last version, and were not measured in between: what one patch costs and another saves is not seen there",
			apart, len(chosen)))
	}
	return chosen, nil
}

// tip is the place among the measured versions of the one that the last version's
// build is: the last that builds, or an earlier one that it equals.
func (r *run) tip(versions []sample.Version, params map[string]string) int {
	for i := len(r.e.Versions) - 1; i > 0; i-- {
		n := r.e.Versions[i].N
		if as := r.e.Versions[i].With(params).SameAs; as != nil {
			n = *as
		}
		if at := slices.IndexFunc(versions, func(v sample.Version) bool { return v.N == n }); at >= 0 {
			return at
		}
	}
	return 0
}
