package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"patchbench/bench"
)

// TestWants: memory that never varies is decided at the first look, while time that
// varies much stays open; the rows of memory then go without further rounds and keep
// their verdicts.
func TestWants(t *testing.T) {
	memory := func(metric string) bool { return metric == bench.RSS.Name }
	timing := func(metric string) bool { return metric != bench.RSS.Name }
	b := bench.Benchmark{Name: "table"}
	rng := rand.New(rand.NewPCG(1, 2))
	var samples []bench.Sample
	add := func(round, version int, m bench.Metric, value float64) {
		pos := version
		samples = append(samples, bench.Sample{Round: round, Version: version, Benchmark: "table", Metric: m.Name, Unit: m.Unit, Value: value, Position: &pos})
	}
	for round := 1; round < 20; round++ {
		for v := range 3 {
			add(round, v, bench.Wall, math.Exp(.2*rng.NormFloat64()))
			add(round, v, bench.CPU, math.Exp(.1*rng.NormFloat64()))
			if round <= 10 {
				add(round, v, bench.RSS, float64(100<<20+v/2*(20<<20))) // more at patch 2
			}
		}
		switch got := Compare(builtVersions(3), samples, nil, Options{}); {
		case round < 10:
			if !got.Wants(b, memory) || !got.Wants(b, timing) {
				t.Fatalf("round %d: memory wanted %v, time %v", round, got.Wants(b, memory), got.Wants(b, timing))
			}
		case got.Wants(b, memory) || !got.Wants(b, timing):
			t.Fatalf("round %d: memory wanted %v, time %v", round, got.Wants(b, memory), got.Wants(b, timing))
		default:
			for _, c := range got.Comparisons {
				if text := fmt.Sprintf("%d %s %s", c.Rounds, c.Steps[0].Verdict, c.Steps[1].Verdict); c.Metric == bench.RSS.Name && text != "10 same worse" {
					t.Fatalf("round %d: rss is %s", round, text)
				}
			}
		}
	}
	if got := Compare(builtVersions(3), samples, nil, Options{}); got.Wants(bench.Benchmark{Name: "tab"}, timing) {
		t.Error("another benchmark's rows count")
	}
}
