package compare

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// paired makes samples of base and its twin, both at the same level.
func paired(m bench.Metric, level float64, rounds int, sd float64, seed uint64) []bench.Sample {
	list := made(m, "sort", []float64{level, level}, rounds, sd, seed)
	for i := range list {
		if list[i].Version == 1 {
			list[i].Version, list[i].Twin = 0, true
		}
	}
	return list
}

func TestNoise(t *testing.T) {
	exact := bench.MetricFor("malloc", bench.Byte)
	again := paired(exact, 4096, 1, 0, 1)
	again[1].Value++
	failed := paired(bench.CPU, 2, 8, .02, 1)
	for i := range failed {
		if failed[i].Round > 4 {
			failed[i].Discarded = "stall"
		}
	}
	for _, c := range []struct {
		name    string
		samples []bench.Sample
		want    []string
	}{
		{"nothing", nil, nil},
		{"no noise", paired(bench.CPU, 2, 5, 0, 1), []string{"sort cpu: 5 rounds, spread 0.0 %, detectable [0.0 0.0]"}},
		{"shown only", paired(bench.User, 2, 400, .02, 1), []string{"sort user: 400 rounds, spread 2.1 %, detectable [NaN NaN]"}},
		{"two rounds tell nothing", paired(bench.CPU, 2, 2, .02, 1), []string{"sort cpu: 2 rounds, spread NaN %, detectable [NaN NaN]"}},
		{"repeated rounds do not count", failed, []string{"sort cpu: 4 rounds, spread 1.6 %, detectable [1.5 0.7]"}},
		{"base alone", paired(bench.CPU, 2, 5, .02, 1)[:1], []string{"sort cpu: 0 rounds, spread NaN %, detectable [NaN NaN]"}},
		{"exact", paired(exact, 4096, 1, 0, 1), []string{"sort malloc: 1 rounds, spread NaN %, detectable [NaN NaN], exact"}},
		{"exact, but does not repeat", again, []string{
			"sort malloc: 1 rounds, spread NaN %, detectable [NaN NaN] declared exact, but equal builds gave different figures: judged as a noisy one"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, n := range NoiseOf(c.samples, 5, []int{10, 40}, Options{}) {
				var detectable []string
				for _, d := range n.Detectable {
					detectable = append(detectable, fmt.Sprintf("%.1f", 100*d))
				}
				line := fmt.Sprintf("%s %s: %d rounds, spread %.1f %%, detectable %s", n.Benchmark, n.Metric.Name, n.Rounds, 100*n.Spread, detectable)
				if n.Exact {
					line += ", exact"
				}
				for _, w := range n.Warnings {
					line += " " + w
				}
				got = append(got, line)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What base and its twin promise is what an evaluation of a series then says that
// it would have seen.
func TestNoiseFitsCompare(t *testing.T) {
	for _, patches := range []int{1, 3, 7} {
		for _, rounds := range []int{10, 20, 40} {
			t.Run(fmt.Sprintf("%d patches, %d rounds", patches, rounds), func(t *testing.T) {
				promised := NoiseOf(paired(bench.CPU, 2, 400, .02, 1), patches, []int{rounds}, Options{})[0].Detectable[0]
				level := make([]float64, patches+1)
				for i := range level {
					level[i] = 2
				}
				var said float64
				const series = 20
				for i := range series {
					r := Compare(builtVersions(patches+1), made(bench.CPU, "sort", level, rounds, .02, uint64(i)), nil, Options{Seed: 1})
					said += *r.Comparisons[0].Detectable / series
				}
				if ratio := promised / said; math.Abs(math.Log(ratio)) > math.Log(1.25) {
					t.Errorf("%.2f %% promised, %.2f %% said by %d series", 100*promised, 100*said, series)
				}
			})
		}
	}
}
