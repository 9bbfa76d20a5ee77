package eval

import (
	"context"
	"fmt"
	"slices"

	"patchbench/bench"
	"patchbench/bench/sample"
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
			r.warn("base and the last version build to the same" + with(r.fields[bm.Variant].params) + ": no patch in between was measured")
			continue
		}
		// A continued evaluation has chosen already what it measured in between.
		chosen[b] = r.inBetween(bm, list)
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
		if chosen[b] = chosen[b] || first[b] && moved(r.e.Results, bm); first[b] && !chosen[b] {
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

// inBetween says that the record has samples of the benchmark on a version
// between the ends.
func (r *run) inBetween(b bench.Benchmark, ends []sample.Version) bool {
	return slices.ContainsFunc(r.samples, func(s bench.Sample) bool {
		return s.Failed == nil && s.Version != 0 && s.Version != ends[1].N && belongsTo(s.Benchmark, s.Params, b)
	})
}

// moved says that the total of a benchmark's row is not known to be the same, also
// because the benchmark fails on the last version.
// Wall time alone that is unclear does not count where cpu time is settled.
func moved(rows []bench.Comparison, b bench.Benchmark) bool {
	wall, cpu := false, false
	for _, c := range rows {
		if !c.Tested || !belongs(c, b) {
			continue
		}
		switch v := c.Total.Verdict; {
		case c.Metric == bench.CPU.Name && v == bench.Same:
			cpu = true
		case v == bench.Same:
		case c.Metric == bench.Wall.Name && v == bench.Unclear:
			wall = true
		default:
			return true
		}
	}
	return wall && !cpu
}
