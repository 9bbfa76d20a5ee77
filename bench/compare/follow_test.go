package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"patchbench/bench"
)

// TestWallFollowsCPU: a change of cpu time at patch 2 makes the wall time of the
// same runs change there too. Wall time alone is so unsteady that it is now and
// then laid to a neighbour; beside its cpu time it never is.
func TestWallFollowsCPU(t *testing.T) {
	const number, n, at = 150, 30, 2
	alone, beside, found := 0, 0, 0
	for seed := range uint64(number) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var wall, cpu []bench.Sample
		for r := range n {
			for _, v := range rng.Perm(4) {
				level := 1.0
				if v >= at {
					level = .95
				}
				add := func(list *[]bench.Sample, m bench.Metric, sd float64) {
					pos := len(*list) % 4
					*list = append(*list, bench.Sample{Round: r + 1, Version: v, Benchmark: "table", Metric: m.Name, Unit: m.Unit,
						Value: level * math.Exp(sd*rng.NormFloat64()), Position: &pos})
				}
				add(&wall, bench.Wall, .065)
				add(&cpu, bench.CPU, .01)
			}
		}
		o := Options{Seed: seed, Looks: []int{n}, Final: true}
		wrong := func(samples []bench.Sample) (wrong, right int) {
			for _, c := range Compare(builtVersions(4), samples, nil, o).Comparisons {
				for _, s := range c.Steps {
					switch {
					case c.Metric != bench.Wall.Name || s.Verdict != bench.Better: // and chance makes a few worse
					case s.N != at || s.Group != nil:
						wrong++
					default:
						right++
					}
				}
			}
			return wrong, right
		}
		a, _ := wrong(wall)
		b, f := wrong(append(wall, cpu...))
		alone, beside, found = alone+a, beside+b, found+f
	}
	t.Logf("of %d: elsewhere or not pinned %d without cpu time, %d with it; found there %d", number, alone, beside, found)
	if beside > 0 {
		t.Errorf("wall time changes elsewhere than cpu time in %d of %d series", beside, number)
	}
	if alone == 0 || found < number/2 {
		t.Errorf("%d misplaced without cpu time and %d found with it: this does not test what it is for", alone, found)
	}
}
