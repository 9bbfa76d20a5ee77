package history

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

// points are evaluations a week apart, whose bases have these levels.
func points(machine, metric, unit string, levels ...float64) []store.Point {
	var all []store.Point
	for i, v := range levels {
		lo, hi := v*0.997, v*1.003
		all = append(all, store.Point{
			Evaluation: fmt.Sprintf("e%d", i), Created: time.Date(2026, 1, 2+7*i, 8, 0, 0, 0, time.UTC), Base: mbox.Base{Commit: fmt.Sprintf("%012x%028d", 0x3f9a2c<<24+i*977, i)},
			Host: bench.Host{Name: machine, CPU: "Example EX-2650", Kernel: "Linux 6.12"}, Benchmark: "hash", Metric: metric, Unit: unit, Better: bench.Lower,
			Rounds: 20, Value: bench.Value{Median: &v, Lo: &lo, Hi: &hi, Samples: 20},
		})
	}
	return all
}

// noisy are n levels around mid with 0.4 % of noise.
func noisy(seed uint64, n int, mid float64) []float64 {
	random := rand.New(rand.NewPCG(seed, 2))
	var all []float64
	for range n {
		all = append(all, mid*(1+0.004*random.NormFloat64()))
	}
	return all
}

func TestText(t *testing.T) {
	steps := append(append(noisy(1, 9, 0.412), noisy(2, 8, 0.433)...), noisy(3, 7, 0.391)...)
	two := points("bench1", "cpu", "s", steps...)
	for i := 17; i < len(two); i++ {
		two[i].Host.Kernel = "Linux 6.18"
	}
	two = append(two, points("old\x1b[2J laptop", "cpu", "s", noisy(4, 5, 1.2)...)...)
	exact := points("bench1", "allocs", "1", 12, 12, 12, 8, 8)
	for i := range exact {
		exact[i].Exact, exact[i].Value.Lo, exact[i].Value.Hi = true, nil, nil
	}
	for name, list := range map[string][]store.Point{
		"two-machines": two, "exact": exact, "flat": points("bench1", "rss", "B", noisy(5, 12, 2e6)...), "one": points("bench1", "cpu", "s", 1.5),
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Text(&b, Tracks(list, 0)); err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(b.String(), "\n") {
				if plain.Columns(line) > width || plain.Clean(line) != line {
					t.Errorf("line %d: %q", i+1, line)
				}
			}
			cases.Golden(t, name+".txt", b.String())
		})
	}
}

func TestChanges(t *testing.T) {
	join := func(parts ...[]float64) (all []float64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name   string
		levels []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"a single point", []float64{1}, nil},
		{"equal figures", []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, nil},
		{"one step", join(noisy(1, 10, 1), noisy(2, 10, 1.05)), []int{10}},
		{"up and down again", join(noisy(1, 10, 1), noisy(2, 10, 1.05), noisy(3, 10, 1)), []int{10, 20}},
		{"three levels", join(noisy(4, 8, 1), noisy(5, 8, 1.055), noisy(6, 8, 0.97)), []int{8, 16}},
		{"three levels upwards", join(noisy(7, 9, 1), noisy(8, 9, 1.03), noisy(9, 9, 1.08)), []int{9, 18}},
		{"an outlier is no step", join(noisy(1, 10, 1), []float64{1.5}, noisy(2, 10, 1)), nil},
		{"too few to tell", []float64{1, 1.001, 0.999, 1.05, 1.051}, nil},
		{"below the margin", join(noisy(1, 30, 1), noisy(2, 30, 1.006)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []int
			for _, track := range Tracks(points("m", "cpu", "s", c.levels...), 0) {
				for _, change := range track.Changes {
					got = append(got, change.At)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestFalseAlarms holds the share of quiet histories with a mark to what is
// promised, in 300 of 30 points each.
func TestFalseAlarms(t *testing.T) {
	alarms := 0
	for seed := range uint64(300) {
		// Without a margin, which would hide them.
		if len(Tracks(points("m", "cpu", "s", noisy(seed+100, 30, 1)...), 1e-9)[0].Changes) > 0 {
			alarms++
		}
	}
	// 3 are expected; 9 or more come once in 250 times.
	if alarms > 8 {
		t.Errorf("%d of 300 histories without a change have one marked", alarms)
	}
}
