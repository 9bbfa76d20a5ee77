package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"patchbench/bench"
)

// Noise is how much a row varies where nothing was changed, and what of a change
// could therefore be seen.
type Noise struct {
	Benchmark string
	Params    map[string]string
	Metric    bench.Metric
	// Rounds are those in which base and its twin both ran.
	Rounds int
	// Median of all runs, in the metric's unit; NaN for none.
	Median float64
	// Spread is the standard deviation of a run from its round's middle, relative
	// to the median; NaN if there are fewer than three rounds, or for a metric
	// that is exact.
	Spread float64
	// Detectable are the smallest changes of one patch, as fractions, that would
	// most likely (80 %) show after each of the numbers of rounds asked for. NaN
	// where Spread is, and for a metric that is not tested.
	Detectable []float64
	// Exact says that the metric is exact and has repeated so far.
	Exact    bool
	Warnings []string
}

// NoiseOf looks at samples of base and its twin alone: what would a series of so
// many patches show after so many rounds? The rows stand in the order of
// Compare's, and are judged as strictly as there. Spread and Detectable come from
// few runs and are rough: five rounds give them within a third or so.
func NoiseOf(samples []bench.Sample, patches int, rounds []int, o Options) []Noise {
	pl := o.plan()
	pair := slices.Clone(samples)
	for i := range pair {
		if pair[i].Twin {
			pair[i].Twin, pair[i].Version = false, 1
		}
	}
	rows := gather([]bench.Version{{N: 0, State: bench.Built}, {N: 1, State: bench.Built}}, pair, nil)
	var weights float64
	for _, r := range rows {
		weights += r.weight(pl)
	}
	var out []Noise
	for _, r := range rows {
		j := judge{plan: pl, row: r, share: r.weight(pl) / max(weights, 1)}
		out = append(out, j.noise(max(1, patches), rounds))
	}
	return out
}

func (j *judge) noise(patches int, rounds []int) Noise {
	n := Noise{
		Benchmark: j.name, Params: j.params, Metric: j.metric, Rounds: len(j.rounds),
		Median: math.NaN(), Spread: math.NaN(), Detectable: make([]float64, len(rounds)), Exact: j.metric.Exact,
	}
	for i := range n.Detectable {
		n.Detectable[i] = math.NaN()
	}
	if len(j.cols) < 2 {
		n.Rounds = 0
	}
	var all []float64
	for col := range j.cols {
		all = append(all, j.figures(col)...)
	}
	n.Median = median(all)
	if j.metric.Exact {
		if slices.ContainsFunc(all, func(x float64) bool { return x != all[0] }) {
			n.Exact, j.demoted = false, !j.placed
		}
		n.Warnings = j.warnings()
		return n
	}
	if n.Rounds < 3 {
		return n
	}
	j.t = newTable(j.cells)
	j.seg = segmentation{k: j.t.k}
	n.Warnings = j.warnings()
	// Among two, each run's distance from the middle is half of what lies between them.
	off := j.t.aligned(span{0, 2})
	for i := range off {
		off[i] *= math.Sqrt2
	}
	l := levelsOf(off, j.t.n, 2, ones(make([]float64, j.t.n)))
	e := l.between(span{0, 1}, span{1, 2})
	// From the error of a difference of means, scaled as off is, to one run's.
	n.Spread = math.Abs(j.change(e.se*math.Sqrt(float64(j.t.n))/2, 0))
	if !j.metric.Tested {
		return n
	}
	for i, want := range rounds {
		n.Detectable[i] = j.detectableAt(off, patches+1, want)
	}
	return n
}

// dealt is how many series are made up for one estimate.
const dealt = 8

// detectableAt is what a series of k builds says that it would have seen, when
// the runs of each of its n rounds lie off the middle as those in off.
func (j *judge) detectableAt(off []float64, k, n int) float64 {
	rng := rand.New(rand.NewPCG(j.seed, uint64(n)))
	var sum float64
	for range dealt {
		at := *j
		at.looks, at.seg = j.due(n), segmentation{k: k}
		at.t = table{n: n, k: k, x: make([]float64, n*k), log: j.t.log, gap: j.t.gap}
		for i := range at.t.x {
			at.t.x[i] = off[rng.IntN(len(off))]
		}
		at.levels = levelsOf(at.t.aligned(span{0, k}), n, k, at.t.weights(at.seg.segments()))
		if d := at.detectable(); d != nil {
			sum += math.Abs(*d) / dealt
		}
	}
	return sum
}
