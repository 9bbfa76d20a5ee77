package compare

import "patchbench/bench"

// Summary gives the verdict of a whole evaluation and one line about it.
func Summary(versions []bench.Version, comparisons []bench.Comparison, failures []bench.Failure) (bench.Verdict, string) {
	for _, c := range comparisons {
		for _, s := range c.Steps {
			if s.Verdict == bench.Worse {
				return bench.Worse, c.Benchmark
			}
		}
	}
	return bench.Same, "no change"
}
