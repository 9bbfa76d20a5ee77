package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"patchbench/bench"
)

// method says which steps of which rows changed: one line of flags for each row.
type method struct {
	name  string
	flags func(rows []*row, n int) [][]bool
}

// The rules that are in use elsewhere, on the same samples.
var practice = []method{
	{"Mann-Whitney .05 (benchstat)", perStep(mannWhitney, plain)},
	{"Mann-Whitney, Holm", perStep(mannWhitney, holm)},
	{"paired Wilcoxon, Holm", perStep(wilcoxon, holm)},
	{"minimum, 2 % apart", perStep(func(a, b []float64) float64 {
		if math.Abs(slices.Min(b)/slices.Min(a)-1) > .02 {
			return 0
		}
		return 1
	}, plain)},
	{"mean +- sd overlap (hyperfine)", perStep(func(a, b []float64) float64 {
		ma, sa := meanSD(a)
		mb, sb := meanSD(b)
		if math.Abs(ma-mb) > sa+sb {
			return 0
		}
		return 1
	}, plain)},
}

// perStep tests each pair of neighbours.
func perStep(p func(a, b []float64) float64, keep func(p []float64) []bool) func([]*row, int) [][]bool {
	return func(rows []*row, n int) [][]bool {
		var ps []float64
		for _, r := range rows {
			for v := 1; v < len(r.cols); v++ {
				var a, b []float64
				for _, line := range r.cells {
					a, b = append(a, line[v-1].value), append(b, line[v].value)
				}
				ps = append(ps, p(a, b))
			}
		}
		ok := keep(ps)
		var out [][]bool
		for _, r := range rows {
			out = append(out, ok[:len(r.cols)-1])
			ok = ok[len(r.cols)-1:]
		}
		return out
	}
}

func plain(p []float64) []bool {
	out := make([]bool, len(p))
	for i, x := range p {
		out[i] = x < .05
	}
	return out
}

func holm(p []float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	out := make([]bool, len(p))
	for i, o := range order {
		if p[o] > .05/float64(len(p)-i) {
			break
		}
		out[o] = true
	}
	return out
}

// mannWhitney is the two-sided p by the normal law with ties.
func mannWhitney(a, b []float64) float64 {
	n, m := float64(len(a)), float64(len(b))
	r := ranks(append(slices.Clone(a), b...))
	var ra, ss float64
	for i, x := range r {
		if i < len(a) {
			ra += x
		}
		ss += (x - (n+m+1)/2) * (x - (n+m+1)/2)
	}
	if ss == 0 {
		return 1
	}
	sd := math.Sqrt(n * m / (n + m) / (n + m - 1) * ss)
	z := max(0, math.Abs(ra-n*(n+m+1)/2)-.5) / sd
	return math.Erfc(z / math.Sqrt2)
}

// wilcoxon is the two-sided p of the signed ranks by the normal law.
func wilcoxon(a, b []float64) float64 {
	var abs, sign []float64
	for i := range a {
		if d := math.Log(b[i] / a[i]); d != 0 {
			abs, sign = append(abs, math.Abs(d)), append(sign, math.Copysign(1, d))
		}
	}
	var w, v float64
	for i, r := range ranks(abs) {
		w += sign[i] * r
		v += r * r
	}
	if v == 0 {
		return 1
	}
	return math.Erfc(max(0, math.Abs(w)-1) / math.Sqrt(2*v))
}

func meanSD(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(len(x)-1))
}

// count is how a method did over many series.
type count struct{ series, alarms, found, exact int }

func (c *count) add(flags [][]bool, rows []*row, p *plant) {
	c.series++
	hit, other := false, false
	for i, line := range flags {
		for s, on := range line {
			if !on {
				continue
			}
			r := rows[i]
			if p != nil && r.name == p.bench && s+1 == p.at && (r.metric.Name == "cpu" || r.metric.Name == "wall") {
				hit = true
			} else {
				other = true
			}
		}
	}
	if other {
		c.alarms++
	}
	if hit {
		c.found++
		if !other {
			c.exact++
		}
	}
}

// replayed runs all methods over series of recorded rounds: with no change for
// factor 1, else with one of cpu and wall time in one benchmark from one patch on.
// For ours a change that is not pinned counts as a false flag, and so does a
// changed total in a series without a change.
func replayed(traces []trace, series_, n int, factor float64, others bool) map[string]*count {
	rng := rand.New(rand.NewPCG(uint64(n), math.Float64bits(factor)))
	versions := builtVersions(8)
	out := map[string]*count{}
	of := func(name string) *count {
		if out[name] == nil {
			out[name] = &count{}
		}
		return out[name]
	}
	for i := range series_ {
		var p *plant
		var plants []plant
		if factor != 1 {
			p = &plant{traces[i%len(traces)].bench, "cpu", 1 + rng.IntN(7), factor}
			plants = []plant{*p}
		}
		s := series(traces, n, rng, plants...)
		rows := gather(versions, s, nil)
		var flags [][]bool
		for _, c := range Compare(versions, s, nil, Options{Seed: uint64(i), Looks: []int{n}, Final: true}).Comparisons {
			var line []bool
			for _, st := range c.Steps {
				line = append(line, flagged(st))
			}
			if p == nil && flagged(c.Total) {
				line[len(line)-1] = true
			}
			for k, st := range c.Steps {
				if line[k] && st.Group != nil {
					// Charged to a neighbour, where it counts as wrong.
					line[k] = false
					line[(k+1)%len(line)] = true
				}
			}
			flags = append(flags, line)
		}
		of(ours).add(flags, rows, p)
		if !others {
			continue
		}
		for _, m := range practice {
			of(m.name).add(m.flags(rows, n), rows, p)
		}
	}
	return out
}

const ours = "this package"

// TestRecordedTraces holds the method to what it is for: in 84 comparisons of
// 20 rounds a series without a change has a flag in at most one of twenty
// cases, and 2 % of one patch of seven is found, and nothing else, in most.
func TestRecordedTraces(t *testing.T) {
	simulation(t)
	traces := recorded(t)
	null := replayed(traces, 200, 20, 1, true)
	planted := replayed(traces, 200, 20, 1.02, true)
	for _, m := range append([]method{{name: ours}}, practice...) {
		a, b := null[m.name], planted[m.name]
		t.Logf("%-32s alarms %5.1f %%  found %5.1f %%  exactly %5.1f %%", m.name, share(a.alarms, a.series), share(b.found, b.series), share(b.exact, b.series))
	}
	if a := null[ours]; share(a.alarms, a.series) > 5 {
		t.Errorf("a false alarm in %d of %d series without a change, at most 5 %% are allowed", a.alarms, a.series)
	}
	if b := planted[ours]; share(b.exact, b.series) < 60 {
		t.Errorf("+2 %% found and nothing else in %d of %d series, at least 60 %% are wanted", b.exact, b.series)
	}
	if a, b := planted[practice[0].name], planted[ours]; a.exact*3 > b.exact {
		t.Errorf("pairwise tests found exactly %d, this method %d: the replay is not the recorded one", a.exact, b.exact)
	}
}

func share(k, n int) float64 { return 100 * float64(k) / float64(n) }

// TestReplay prints the table of methods for the documentation. It runs when
// PATCHBENCH_REPLAY names the number of series of each kind (300 for the table),
// on the recorded traces or, if PATCHBENCH_TRACES names a folder of
// deploy/truth.sh, on what that measured. deploy/replay.sh calls it.
func TestReplay(t *testing.T) {
	number, err := strconv.Atoi(os.Getenv("PATCHBENCH_REPLAY"))
	if err != nil {
		t.Skip("set PATCHBENCH_REPLAY to the number of series")
	}
	var traces []trace
	if dir := os.Getenv("PATCHBENCH_TRACES"); dir != "" {
		traces = ownTraces(t, dir)
	} else {
		traces = recorded(t)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "| n | method | false alarms | +1 %% found / exactly | +2 %% | +5 %% |\n|---|---|---|---|---|---|\n")
	for _, n := range []int{10, 20, 40} {
		null := replayed(traces, number, n, 1, true)
		var with []map[string]*count
		for _, f := range []float64{1.01, 1.02, 1.05} {
			with = append(with, replayed(traces, number, n, f, true))
		}
		for _, m := range append([]method{{name: ours}}, practice...) {
			fmt.Fprintf(&out, "| %d | %s | %.1f %% |", n, m.name, share(null[m.name].alarms, number))
			for _, w := range with {
				c := w[m.name]
				fmt.Fprintf(&out, " %.0f %% / %.0f %% |", share(c.found, c.series), share(c.exact, c.series))
			}
			fmt.Fprintln(&out)
		}
		if a := null[ours]; a.alarms > int(.05*float64(number)+3*math.Sqrt(.05*.95*float64(number))) {
			t.Errorf("n = %d: %d false alarms in %d series", n, a.alarms, number)
		}
	}
	t.Log("\n" + out.String())
}

// TestThreeSmallSteps: 1.2 % at each of three patches is 3.6 % in all, and no
// patch takes the blame alone.
func TestThreeSmallSteps(t *testing.T) {
	simulation(t)
	traces := recorded(t)
	rng := rand.New(rand.NewPCG(3, 5))
	total, alone := 0, 0
	const number = 60
	for i := range number {
		b := []string{"cpu", "io", "git"}[i%3]
		s := series(traces, 20, rng, plant{b, "cpu", 2, 1.012}, plant{b, "cpu", 3, 1.012}, plant{b, "cpu", 4, 1.012})
		for _, c := range Compare(builtVersions(8), s, nil, Options{Seed: uint64(i), Looks: []int{20}, Final: true}).Comparisons {
			if c.Benchmark != b || c.Metric != bench.CPU.Name {
				continue
			}
			if c.Total.Verdict == bench.Worse {
				total++
			}
			var on []bench.Step
			for _, st := range c.Steps {
				if flagged(st) {
					on = append(on, st)
				}
			}
			if len(on) == 1 && on[0].Group == nil {
				alone++
			}
		}
	}
	if total < number*9/10 || alone > number/5 {
		t.Errorf("total found in %d of %d series, one patch blamed alone in %d", total, number, alone)
	}
}

// TestCoverage: nineteen of twenty 95 % intervals hold the truth.
func TestCoverage(t *testing.T) {
	simulation(t)
	traces := recorded(t)
	rng := rand.New(rand.NewPCG(8, 1))
	for _, n := range []int{10, 20, 40} {
		in, all := map[string]int{}, map[string]int{}
		for range 60 {
			for _, r := range gather(builtVersions(8), series(traces, n, rng), nil) {
				j := judge{plan: Options{Looks: []int{n}}.plan(), row: r, share: 0, draw: newDraw(1, 1)}
				j.t = newTable(r.cells)
				j.fit()
				for c := 1; c < 8; c++ {
					e, _ := j.pick(c-1, c)
					k := r.metric.Name
					all[k]++
					if math.Abs(e.diff) <= e.half()+1e-12 {
						in[k]++
					}
				}
			}
		}
		for k, m := range all {
			if s := share(in[k], m); s < 93 {
				t.Errorf("n = %d, %s: %.1f %% of the intervals hold the truth", n, k, s)
			}
		}
		t.Logf("n = %d: coverage cpu %.1f %%, wall %.1f %%, rss %.1f %%", n,
			share(in["cpu"], all["cpu"]), share(in["wall"], all["wall"]), share(in["rss"], all["rss"]))
	}
}

// TestAllLooks: judging after each of seven looks must not add false alarms.
func TestAllLooks(t *testing.T) {
	simulation(t)
	traces := recorded(t)
	rng := rand.New(rand.NewPCG(21, 1))
	alarms := 0
	const number = 40
	for i := range number {
		s := series(traces, 80, rng)
		alarm := false
		for _, c := range Compare(builtVersions(8), s, nil, Options{Seed: uint64(i)}).Comparisons {
			for _, st := range append(c.Steps, c.Total) {
				alarm = alarm || flagged(st)
			}
		}
		if alarm {
			alarms++
		}
	}
	t.Logf("alarms in %d of %d series", alarms, number)
	if alarms > 5 {
		t.Errorf("a false alarm in %d of %d series after seven looks", alarms, number)
	}
}
