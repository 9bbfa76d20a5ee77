package compare

import (
	"slices"

	"patchbench/bench"
)

// Unmeasured gives the rows wall, cpu and rss of a benchmark that has no sample,
// so that a report lists it all the same: because all builds are equal, because
// nothing that it runs on differs from base, or because it fails. A step
// between equal builds is the same; no other step has a figure.
func Unmeasured(versions []bench.Version, b bench.Benchmark, failures []bench.Failure) []bench.Comparison {
	failed := map[int]string{}
	for _, f := range failures {
		if f.Benchmark == b.Key() {
			failed[f.N] = bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String()
		}
	}
	params := b.Params
	if params == nil {
		params = map[string]string{}
	}
	versions = slices.Clone(versions)
	for i, v := range versions {
		versions[i] = v.With(b.Params)
	}
	steps, total := unmeasuredSteps(versions, failed)
	var out []bench.Comparison
	for _, m := range []bench.Metric{bench.Wall, bench.CPU, bench.RSS} {
		c := bench.Comparison{
			Benchmark: b.Name, Params: params, Metric: m.Name, Unit: m.Unit, Better: m.Better, Tested: m.Tested,
			Steps: append([]bench.Step{}, steps...), Total: total, Warnings: []string{},
		}
		for _, v := range versions {
			c.Values = append(c.Values, bench.Value{N: v.N})
		}
		out = append(out, c)
	}
	return out
}

func unmeasuredSteps(versions []bench.Version, failed map[int]string) (steps []bench.Step, total bench.Step) {
	// build is the version whose build v has, -1 if it has none that works.
	build := func(v bench.Version) (int, string) {
		n := v.N
		if v.State == bench.SameBuild && v.SameAs != nil {
			n = *v.SameAs
		}
		switch {
		case v.State == bench.BuildFailed:
			return -1, noBuild
		case v.State == bench.NotBuilt:
			return -1, "not built"
		case failed[n] != "":
			return -1, failed[n]
		}
		return n, ""
	}
	name := func(n int) string {
		i := slices.IndexFunc(versions, func(v bench.Version) bool { return v.N == n })
		return versions[i].Label(versions[len(versions)-1].N)
	}
	step := func(n int, from, to bench.Version) bench.Step {
		a, whyNot := build(from)
		b, why := build(to)
		switch {
		case b < 0:
			return bench.Step{N: n, Verdict: bench.NotMeasured, Reason: why}
		case a < 0:
			return bench.Step{N: n, Verdict: bench.NotMeasured, Reason: whyNot}
		case a != b:
			return bench.Step{N: n, Verdict: bench.NotMeasured, Reason: "not run"}
		}
		zero := 0.0
		return bench.Step{N: n, Change: &zero, Lo: &zero, Hi: &zero, Verdict: bench.Same,
			Reason: bench.SameBuildReason + name(b)}
	}
	if len(versions) == 0 {
		return nil, bench.Step{Verdict: bench.NotMeasured}
	}
	before := versions[0] // the last version that works
	for _, v := range versions[1:] {
		steps = append(steps, step(v.N, before, v))
		if n, _ := build(v); n >= 0 {
			before = v
		}
	}
	last := versions[len(versions)-1]
	return steps, step(last.N, versions[0], last)
}
