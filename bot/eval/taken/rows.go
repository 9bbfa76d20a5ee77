package taken

import (
	"maps"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/sample/plan"
)

// Rows gives a benchmark as a list of its rows, each a benchmark by name: itself,
// or for one of several programs NAME/PROGRAM.
func Rows(b bench.Benchmark) []bench.Benchmark {
	p := plan.Of(b)
	var rows []bench.Benchmark
	for i := range p.Rows {
		rows = append(rows, bench.Benchmark{Name: p.Name(b, i), Params: b.Params})
	}
	return rows
}

// Failures are the failures of a row: also those that only the samples tell
// of, because what goes before it in a chain has failed.
func Failures(samples []bench.Sample, failures []bench.Failure, row bench.Benchmark) []bench.Failure {
	list := slices.Clone(failures)
	for _, s := range samples {
		if s.Failed != nil && s.Discarded == "" && !s.Twin && !ofCounter(s) && s.Benchmark == row.Name && maps.Equal(s.Params, row.Params) &&
			!slices.ContainsFunc(list, func(f bench.Failure) bool { return f.N == s.Version && f.Benchmark == row.Key() }) {
			list = append(list, bench.Failure{N: s.Version, Benchmark: row.Key(), Signal: s.Failed.Signal, Status: s.Failed.Status, Reason: s.Failed.Reason})
		}
	}
	return list
}

// Tested says that the suite asks for verdicts on a metric of a row.
func Tested(suite *bench.Suite, row, metric string) bool {
	return slices.ContainsFunc(suite.Benchmarks, func(b bench.Benchmark) bool {
		own := func(of bench.Benchmark) bool { return of.Key() == row }
		return slices.Contains(b.Metrics, metric) &&
			(slices.ContainsFunc(Rows(b), own) || b.Parse != "" && strings.HasPrefix(row, b.Name+"/"))
	})
}

// Belongs says that a row is the benchmark's, or parsed from its output (NAME/...).
func Belongs(c bench.Comparison, b bench.Benchmark) bool {
	return belongsTo(c.Benchmark, c.Params, b)
}

func belongsTo(name string, params map[string]string, b bench.Benchmark) bool {
	return maps.Equal(params, b.Params) && (name == b.Name || strings.HasPrefix(name, b.Name+"/"))
}

// Moved says that the total of a benchmark's row is not known to be the same, also
// because the benchmark fails on the last version.
// Wall time alone that is unclear does not count where cpu time is settled.
func Moved(rows []bench.Comparison, b bench.Benchmark) bool {
	wall, cpu := false, false
	for _, c := range rows {
		if !c.Tested || !Belongs(c, b) {
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
