package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/headline"
)

// TestUntilDecided follows Open as the bot does: rounds are added where they are
// asked for until none are, at most 80.
func TestUntilDecided(t *testing.T) {
	simulation(t)
	zero := 0
	versions := builtVersions(4)
	versions[1].State, versions[1].SameAs = bench.SameBuild, &zero
	flat := []float64{1, 1, 1, 1}
	hash := []float64{1, 1, 1.05, 1.05}
	table := []float64{1, 1, 1, 1.2}
	for seed := range uint64(4) {
		all := map[string][]bench.Sample{}
		for i, name := range []string{"hash", "table", "sort", "parse"} {
			time, memory := flat, flat
			switch name {
			case "hash":
				time = hash
			case "table":
				memory = table
			}
			big := make([]float64, len(memory))
			for v := range big {
				big[v] = memory[v] * 100e6
			}
			s := 100*seed + 10*uint64(i)
			all[name] = append(all[name], made(bench.CPU, name, time, 80, .012, s)...)
			all[name] = append(all[name], made(bench.Wall, name, time, 80, .05, s+1)...)
			all[name] = append(all[name], made(bench.RSS, name, big, 80, .002, s+2)...)
		}
		rounds := map[string]int{"hash": 10, "table": 10, "sort": 10, "parse": 10}
		var r Result
		for asked := 0; ; asked++ {
			var samples []bench.Sample
			for _, name := range []string{"hash", "table", "sort", "parse"} {
				for _, x := range all[name] {
					if x.Round <= rounds[name] && x.Version != 1 {
						samples = append(samples, x)
					}
				}
			}
			r = Compare(versions, samples, nil, Options{Seed: seed})
			if len(r.Open) == 0 {
				break
			}
			if asked > 28 {
				t.Fatalf("seed %d: still open after %d looks: %+v", seed, asked, r.Open)
			}
			for _, o := range r.Open {
				next := 80
				for _, n := range defaultLooks {
					if n > rounds[o.Benchmark] {
						next = n
						break
					}
				}
				if rounds[o.Benchmark] >= 80 || o.Needed <= rounds[o.Benchmark] {
					t.Fatalf("seed %d: asks for %d rounds and has %d: %+v", seed, o.Needed, rounds[o.Benchmark], o)
				}
				rounds[o.Benchmark] = next
			}
		}
		t.Logf("seed %d: rounds %v", seed, rounds)
		for _, c := range r.Comparisons {
			want := []string{"same", "same", "same", "total same"}
			switch {
			case c.Metric == "wall":
				continue
			case c.Benchmark == "hash" && c.Metric == "cpu":
				want = []string{"same", "worse", "same", "total worse"}
			case c.Benchmark == "table" && c.Metric == "rss":
				want = []string{"same", "same", "worse", "total worse"}
			}
			if d := cmp.Diff(want, words(c)); d != "" {
				t.Errorf("seed %d, %s %s after %d rounds (-want +got):\n%s", seed, c.Benchmark, c.Metric, c.Rounds, d)
			}
		}
		v, line := headline.Of(versions, r.Comparisons, nil)
		t.Log(line)
		if v != bench.Worse {
			t.Errorf("seed %d: %s: %s", seed, v, line)
		}
	}
}
