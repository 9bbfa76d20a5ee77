package compare

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"

	"patchbench/bench"
)

// Noise laws under which p must not be too small too often.
var laws = map[string]func(*rand.Rand) float64{
	"normal":      func(r *rand.Rand) float64 { return r.NormFloat64() },
	"uniform":     func(r *rand.Rand) float64 { return r.Float64() },
	"exponential": func(r *rand.Rand) float64 { return r.ExpFloat64() },
	"heavy": func(r *rand.Rand) float64 {
		return r.NormFloat64() / math.Max(math.Abs(r.NormFloat64()), 1e-3)
	},
	"ticks": func(r *rand.Rand) float64 { return math.Round(r.NormFloat64()) },
}

// A p that comes from the tail must be as rare as it says. PATCHBENCH_LONG sets
// how many thousand tables are drawn of each kind (8 without).
func TestTailIsAsRareAsItSays(t *testing.T) {
	simulation(t)
	thousands := 8
	if s := os.Getenv("PATCHBENCH_LONG"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("PATCHBENCH_LONG: %v", err)
		}
		thousands = n
	}
	const threshold = 1e-3
	for name, law := range laws {
		for _, k := range []int{2, 3, 5, 8} {
			rng := rand.New(rand.NewPCG(uint64(k), 77))
			d := newDraw(1, uint64(k))
			n, hits := 10, 0
			x := make([]float64, n*k)
			for range thousands * 1000 {
				for i := range x {
					x[i] = law(rng)
				}
				tb := table{n: n, k: k, x: x}
				a := tb.aligned(span{0, k})
				s := ranked(a, n, k, ones(make([]float64, n)))
				// The tail alone, where permutations do not already rule it out.
				f := s.largest()
				if f.t == 0 {
					continue
				}
				if s.tail(f, a, 0.05, len(contrasts(k))) > threshold {
					continue
				}
				if f = s.test(a, 0.05, threshold/10, d); f.p <= threshold {
					hits++
				}
			}
			expect := threshold * 1000 * float64(thousands)
			if float64(hits) > expect+4*math.Sqrt(expect) {
				t.Errorf("%s, %d builds: p <= %g in %d of %d tables, expected at most %.0f", name, k, threshold, hits, thousands*1000, expect)
			}
			t.Logf("%-12s k=%d: %d of %dk, nominal %.0f", name, k, hits, thousands, expect)
		}
	}
}

// The p of permutations is that of all permutations, where these can be listed.
func TestPermutationAgainstEnumeration(t *testing.T) {
	// Five rounds of two builds, all differences positive: 2 of 32 arrangements
	// are as extreme.
	x := []float64{0, 1, 0, 2, 0, 3, 0, 4, 0, 5}
	tb := table{n: 5, k: 2, x: x}
	a := tb.aligned(span{0, 2})
	f := ranked(a, 5, 2, ones(make([]float64, 5))).test(a, 1, 0, newDraw(3, 1))
	if want := 2.0 / 32; math.Abs(f.p-want) > .03 {
		t.Errorf("p = %g, want about %g", f.p, want)
	}
}

func TestManyRows(t *testing.T) {
	simulation(t)
	for _, versions := range []int{2, 3, 8} {
		var samples []bench.Sample
		for b := range 500 {
			level := make([]float64, versions)
			for v := range level {
				level[v] = 1
				if b%50 == 0 && v >= versions/2 {
					level[v] = 1.2
				}
			}
			samples = append(samples, made(bench.CPU, "b"+strconv.Itoa(b), level, 10, .02, uint64(b))...)
		}
		for name, o := range map[string]Options{"first look": {}, "ten rounds": fixed(10)} {
			found, alarms := 0, 0
			for i, c := range Compare(builtVersions(versions), samples, nil, o).Comparisons {
				for _, s := range c.Steps {
					switch {
					case !flagged(s):
					case i%50 == 0 && s.N == versions/2 && s.Group == nil:
						found++
					default:
						alarms++
					}
				}
			}
			if found < 10 || alarms > 0 {
				t.Errorf("%d versions, %s: found %d of 10 steps of +20 %%, %d false alarms", versions, name, found, alarms)
			}
		}
	}
}

// large is the largest suite that is promised to be judged in time: 100
// benchmarks, 3 metrics, 14 versions, 40 rounds.
func large() []bench.Sample {
	var samples []bench.Sample
	for i := range 100 {
		level := make([]float64, 14)
		for v := range level {
			level[v] = 1
			if i%10 == 0 && v >= 6 {
				level[v] = 1.03
			}
		}
		for j, m := range []bench.Metric{bench.Wall, bench.CPU, bench.RSS} {
			samples = append(samples, made(m, "b"+strconv.Itoa(i), level, 40, .02, uint64(3*i+j))...)
		}
	}
	return samples
}

// cpuSeconds is the cpu time of this process, which a busy machine does not
// lengthen.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// A large suite is judged in under 5 s of one core.
func TestSpeed(t *testing.T) {
	simulation(t)
	if testing.Short() {
		t.Skip("time means nothing under the race detector")
	}
	samples, versions := large(), builtVersions(14)
	start := cpuSeconds()
	Compare(versions, samples, nil, Options{Seed: 1})
	took := cpuSeconds() - start
	t.Logf("%.1f s of cpu time", took)
	if took > 5 {
		t.Errorf("%d samples were judged in %.1f s of cpu time, want at most 5", len(samples), took)
	}
}

func BenchmarkCompare(b *testing.B) {
	samples, versions := large(), builtVersions(14)
	b.ReportAllocs()
	start := cpuSeconds()
	for b.Loop() {
		Compare(versions, samples, nil, Options{Seed: 1})
	}
	b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
}
