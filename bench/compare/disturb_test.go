package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"patchbench/bench"
)

// disturbed is what a machine does to runs; v is the version, place the run's
// place in its round, both of n.
var disturbed = map[string]func(rng *rand.Rand, round, v, place int) float64{
	"a single spike": func(_ *rand.Rand, round, v, _ int) float64 {
		if round == 7 && v == 4 {
			return 10
		}
		return 1
	},
	"a spike in every version, once": func(_ *rand.Rand, round, v, _ int) float64 {
		if round == 3*v+1 {
			return 6
		}
		return 1
	},
	"a load that starts half way": func(rng *rand.Rand, round, _, _ int) float64 {
		if round > 10 {
			return 1.5 * math.Exp(.03*rng.NormFloat64())
		}
		return 1
	},
	"a load that starts within a round": func(rng *rand.Rand, round, _, place int) float64 {
		if round > 9 || round == 9 && place > 2 {
			return 1.5
		}
		return 1
	},
	"a monotone drift": func(_ *rand.Rand, round, _, place int) float64 {
		return 1 + .02*float64(round) + .02/8*float64(place)
	},
	"a drift downwards, as a machine warms up": func(_ *rand.Rand, round, _, place int) float64 {
		return 1 + math.Exp(-float64(round*8+place)/20)
	},
	"two modes": func(rng *rand.Rand, _, _, _ int) float64 {
		if rng.IntN(3) == 0 {
			return 1.15
		}
		return 1
	},
}

// TestDisturbances: what a machine does to runs makes no false alarm above alpha,
// and hides no change of 5 %, but for two modes, which are wider than it.
func TestDisturbances(t *testing.T) {
	simulation(t)
	const series, n, k = 100, 20, 8
	row := func(seed uint64, by float64, disturb func(*rand.Rand, int, int, int) float64) bench.Comparison {
		rng := rand.New(rand.NewPCG(seed, 11))
		var s []bench.Sample
		for round := 1; round <= n; round++ {
			for place, v := range rng.Perm(k) {
				x := math.Exp(.01*rng.NormFloat64()) * disturb(rng, round, v, place)
				if v >= 3 {
					x *= by
				}
				s = append(s, bench.Sample{Round: round, Version: v, Benchmark: "b", Metric: "cpu", Unit: "s", Value: x, Position: &place})
			}
		}
		o := fixed(n)
		o.Seed = seed
		return Compare(builtVersions(k), s, nil, o).Comparisons[0]
	}
	for name, disturb := range disturbed {
		alarms, found, exact := 0, 0, 0
		for seed := range uint64(series) {
			alarm := false
			c := row(seed, 1, disturb)
			for _, st := range append(c.Steps, c.Total) {
				alarm = alarm || flagged(st)
			}
			if alarm {
				alarms++
			}
			c = row(seed, 1.05, disturb)
			others := 0
			for _, st := range c.Steps {
				if flagged(st) && st.N != 3 {
					others++
				}
			}
			if flagged(c.Steps[2]) && c.Steps[2].Group == nil {
				found++
				if others == 0 {
					exact++
				}
			}
		}
		t.Logf("%-42s alarms in %d of %d; +5 %% pinned in %d, and nothing else in %d", name, alarms, series, found, exact)
		if alarms > 10 {
			t.Errorf("%s: a false alarm in %d of %d", name, alarms, series)
		}
		if want := map[bool]int{true: 70, false: 90}[name == "two modes"]; exact < want {
			t.Errorf("%s: +5 %% and nothing else in %d of %d, want %d", name, exact, series, want)
		}
	}
}
