package compare

import (
	"testing"

	"patchbench/bench"
)

// A row sees the build that it was measured on: with one choice of build
// parameters a version may be the same as base, and not build with another.
func TestVariants(t *testing.T) {
	zero := 0
	variant := func(alloc, state string, as *int) bench.VariantBuild {
		return bench.VariantBuild{Params: map[string]string{"alloc": alloc}, State: state, SameAs: as}
	}
	versions := []bench.Version{
		{N: 0, State: bench.Built, Variants: []bench.VariantBuild{variant("pool", bench.Built, nil), variant("none", bench.Built, nil), variant("old", bench.Built, nil)}},
		{N: 1, State: bench.Built, Variants: []bench.VariantBuild{variant("pool", bench.Built, nil), variant("none", bench.SameBuild, &zero), variant("old", bench.BuildFailed, nil)}},
	}
	var samples []bench.Sample
	for round := 1; round <= 20; round++ {
		for _, alloc := range []string{"pool", "none", "old"} {
			for n := range versions {
				if v := versions[n].With(map[string]string{"alloc": alloc}); v.State == bench.Built {
					samples = append(samples, bench.Sample{
						Round: round, Version: n, Benchmark: "b", Params: map[string]string{"alloc": alloc, "n": "1"}, Metric: "cpu", Unit: "s",
						Value: 1 + float64(n)/2 + float64(round%7)/1000,
					})
				}
			}
		}
	}
	want := map[string]bench.Step{
		"pool": {Verdict: bench.Worse},
		"none": {Verdict: bench.Same, Reason: bench.SameBuildReason + "base"},
		"old":  {Verdict: bench.NotMeasured, Reason: noBuild},
	}
	for _, c := range Compare(versions, samples, nil, Options{Seed: 1}).Comparisons {
		w := want[c.Params["alloc"]]
		if s := c.Steps[0]; s.Verdict != w.Verdict || w.Reason != "" && s.Reason != w.Reason {
			t.Errorf("%v: %s (%s), want %s (%s)", c.Params, s.Verdict, s.Reason, w.Verdict, w.Reason)
		}
		delete(want, c.Params["alloc"])
	}
	if len(want) > 0 {
		t.Errorf("no rows of %v", want)
	}
	for alloc, verdict := range map[string]bench.Verdict{"pool": bench.NotMeasured, "none": bench.Same, "old": bench.NotMeasured} {
		rows := Unmeasured(versions, bench.Benchmark{Name: "u", Params: map[string]string{"alloc": alloc}}, nil)
		if s := rows[0].Steps[0]; s.Verdict != verdict {
			t.Errorf("unmeasured with %s: %s (%s), want %s", alloc, s.Verdict, s.Reason, verdict)
		}
	}
}
