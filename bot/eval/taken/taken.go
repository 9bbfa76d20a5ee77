// Package taken tells how far an evaluation has come, from the samples that it has
// taken: in how many rounds a benchmark ran on all of the versions, which counters it
// has and which of them repeat, what of new samples it has already. An evaluation
// that is continued learns all this from its record. In go samples, failures and
// benchmarks; out come numbers and answers. Nothing is run or kept here.
package taken

import (
	"maps"
	"slices"

	"patchbench/bench"
	"patchbench/bench/sample"
)

// Rounds counts a benchmark's rounds that all the versions took part in, but those
// that fail, and the others that came before them.
func Rounds(samples []bench.Sample, failures []bench.Failure, b bench.Benchmark, versions []sample.Version) (rounds, before int) {
	failed := map[int]bool{} // from the first row on
	for _, f := range failures {
		failed[f.N] = failed[f.N] || f.Benchmark == Rows(b)[0].Key()
	}
	took := map[int]map[int]bool{} // round -> versions
	for _, s := range samples {
		if s.Twin || s.Failed != nil || s.Discarded != "" || ofCounter(s) || !belongsTo(s.Benchmark, s.Params, b) {
			continue
		}
		if took[s.Round] == nil {
			took[s.Round] = map[int]bool{}
		}
		took[s.Round][s.Version] = true
		before = max(before, s.Round)
	}
	for _, in := range took {
		if !slices.ContainsFunc(versions, func(v sample.Version) bool { return !in[v.N] && !failed[v.N] }) {
			rounds++
		}
	}
	return rounds, before - rounds
}

// InBetween says that there are samples of the benchmark on a version between base
// and the last one.
func InBetween(samples []bench.Sample, b bench.Benchmark, last int) bool {
	return slices.ContainsFunc(samples, func(s bench.Sample) bool {
		return s.Failed == nil && s.Version != 0 && s.Version != last && belongsTo(s.Benchmark, s.Params, b)
	})
}

// Counted says that there are exact counters of a benchmark on a version.
func Counted(samples []bench.Sample, b bench.Benchmark, version int) bool {
	return slices.ContainsFunc(samples, func(s bench.Sample) bool {
		return s.Version == version && !s.Twin && ofCounter(s) && belongsTo(s.Benchmark, s.Params, b)
	})
}

// Countings tells in how many rounds some counters of a benchmark were taken on each
// of the versions that are counted at all, and the number of the last one.
func Countings(samples []bench.Sample, b bench.Benchmark, metrics []string, versions []sample.Version) (rounds, last int) {
	took := map[int]map[int]bool{} // round -> versions
	all := map[int]bool{}
	for _, s := range samples {
		if s.Twin || s.Discarded != "" || !slices.Contains(metrics, s.Metric) || !belongsTo(s.Benchmark, s.Params, b) ||
			!slices.ContainsFunc(versions, func(v sample.Version) bool { return v.N == s.Version }) {
			continue
		}
		if took[s.Round] == nil {
			took[s.Round] = map[int]bool{}
		}
		took[s.Round][s.Version], all[s.Version] = true, true
		last = max(last, s.Round)
	}
	for _, in := range took {
		if maps.Equal(in, all) {
			rounds++
		}
	}
	return rounds, last
}

// Repeats says that a counter of a benchmark was the same in all runs of base's build.
func Repeats(samples []bench.Sample, b bench.Benchmark, metric string) bool {
	first := map[string]float64{}
	for _, s := range samples {
		if s.Version != 0 || s.Metric != metric || s.Failed != nil || s.Discarded != "" || !belongsTo(s.Benchmark, s.Params, b) {
			continue
		}
		row := bench.RowName(s.Benchmark, s.Params)
		if x, ok := first[row]; ok && x != s.Value {
			return false
		}
		first[row] = s.Value
	}
	return true
}

// ofCounter says that a line of the record is one of an exact counter.
func ofCounter(s bench.Sample) bool { return bench.MetricFor(s.Metric, s.Unit).Exact }

// NewCounts drops the exact counters that were taken before: base and the last
// version may have been counted before those in between.
func NewCounts(now, before []bench.Sample) []bench.Sample {
	return slices.DeleteFunc(slices.Clone(now), func(s bench.Sample) bool {
		return slices.ContainsFunc(before, func(o bench.Sample) bool { return o.Round == s.Round && sameFigure(o, s) })
	})
}

// NewFailures drops the lines of failures that the record has already, from the
// warm-up before.
func NewFailures(now, before []bench.Sample) []bench.Sample {
	failed := func(s bench.Sample) bool { return s.Failed != nil && s.Discarded == "" }
	return slices.DeleteFunc(slices.Clone(now), func(s bench.Sample) bool {
		return failed(s) && slices.ContainsFunc(before, func(o bench.Sample) bool { return failed(o) && sameFigure(o, s) })
	})
}

// sameFigure says that two lines are of one metric of a row on a version.
func sameFigure(a, b bench.Sample) bool {
	return a.Version == b.Version && a.Twin == b.Twin && a.Metric == b.Metric &&
		bench.RowName(a.Benchmark, a.Params) == bench.RowName(b.Benchmark, b.Params)
}
