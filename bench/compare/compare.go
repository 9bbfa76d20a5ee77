// Package compare turns samples into comparisons: at which patches did a
// benchmark's metric change, by how much, and how sure is that. It is the last
// stage of measuring, behind bench/sample, and pure: samples and a seed go in,
// comparisons come out, and equal input gives equal output. It runs, reads and
// writes nothing. Which benchmarks further rounds could decide is in the Result,
// and Next says where the time that is left is best spent.
//
// The walk through one row (a benchmark's metric):
//
//  1. The samples become a table of complete rounds by builds. Versions with
//     equal builds share a column; failed runs and repeated rounds are left out.
//  2. Logarithms are taken, and in each round the median over the builds is
//     subtracted, so that what a whole round suffered from falls out.
//  3. All values are ranked together, rounds weighted by their inverse spread.
//     The statistic is the largest contrast between neighbouring stretches of
//     builds; its p comes from permuting the builds inside the rounds, which is
//     exact because their order was random (Fisher's randomisation test; for
//     segmentation see Vostrikova 1981, for aligned ranks Hodges and Lehmann
//     1962).
//  4. Where p is below the row's share of alpha the builds are split in two, and
//     both sides are looked at in the same way. That is done at each look, on
//     the first 10, 15, 20 ... rounds, with a share of alpha each.
//  5. What the runs just before and after a run, pressure and switches explain of
//     it is taken out before ranking. A change that neighbouring patches may
//     share is given as a range of patches. One of wall time lies where cpu time
//     has it, unless that fits far worse.
//  6. The size of a step is the difference of the levels beside it, with a 95 %
//     interval from the differences in each round.
//  7. Verdicts follow: better or worse when significant, same when the whole
//     interval lies within the margin, else unclear with the rounds needed.
//
// On recorded runs of a busy two-core virtual machine (AMD EPYC, Linux 6.18,
// November 2026; wall time varies by
// half, cpu time by 2 to 10 %; 84 comparisons a series, 20 rounds, 300 series)
// 3 % of the series without a change have a flag, where testing neighbours at
// .05 (Mann-Whitney) flags 69 %; +2 % of cpu time at one of seven patches is
// found in 69 %, and nothing else beside it in 66 %, where neighbours give 14 %,
// with Holm's correction 5 %. The whole table stands in deploy/verdicts.md, and
// deploy/replay.sh prints it.
package compare

import (
	"fmt"
	"math"
	"slices"

	"patchbench/bench"
)

// Options tune the judgement. The zero value is what reports use.
type Options struct {
	// Margin is the relative change below which a step counts as the same, a
	// fraction. 0 means 0.01.
	Margin float64
	// Alpha is the chance of any false change in a series without one. 0 means 0.05.
	Alpha float64
	// Seed drives the permutations. The same samples and seed give the same result.
	Seed uint64
	// Looks are the numbers of rounds at which a row is judged, ascending. Nil
	// means 10, 15, 20, 30, 40, 60, 80 with .25 .15 .15 .15 .10 .10 .10 of alpha;
	// otherwise each look has an equal share, so that a fixed number of rounds n
	// is []int{n}.
	Looks []int
	// Final says that measuring has ended: a row whose rounds lie between two
	// looks gets a last look with the next one's share.
	Final bool
	// Tested says which metrics of a row get verdicts beside those that always do; nil
	// means none. The row is a benchmark's name with its parameters, as bench.RowName.
	Tested func(row, metric string) bool
}

// Result is what was found in all rows.
type Result struct {
	// Comparisons stand in order of first appearance: benchmark, then metric.
	Comparisons []bench.Comparison
	// Open lists the benchmarks that further rounds could decide, in the order
	// of Comparisons.
	Open []Open
	// Warnings concern all rows.
	Warnings []string
}

// Open is a benchmark that still needs rounds.
type Open struct {
	Benchmark string // with parameters, as bench.RowName
	// Metric is the row that needs the most rounds.
	Metric string
	Rounds int // complete rounds so far, of the row that has fewest
	// Needed is about how many rounds in all would decide the benchmark's open rows.
	Needed int
	// Needs are the rounds in all that would decide each open step, totals too.
	Needs  []int
	Reason string
	// Metrics are those of the open rows.
	Metrics []string
}

var (
	defaultLooks  = []int{10, 15, 20, 30, 40, 60, 80}
	defaultShares = []float64{.25, .15, .15, .15, .10, .10, .10}
)

const (
	defaultMargin = 0.01
	defaultAlpha  = 0.05
	// stepShare of alpha is for the steps, the rest for the totals. With two
	// builds both are one question, which has all of it.
	stepShare = 0.8
	// cpuWeight is how much more of alpha a cpu row has than the benchmark's
	// other rows: with wall, cpu and rss four fifths. cpu is where small changes
	// of time can be seen at all on a shared machine.
	cpuWeight = 8
	// futileFrom is the number of rounds from which a row can be given up.
	futileFrom = 20
)

// look is one judgement: the rounds it takes in and its share of alpha.
type look struct {
	rounds int
	alpha  float64
}

// plan is Options with the defaults filled in.
type plan struct {
	margin, alpha float64
	seed          uint64
	looks         []look // ascending
	final         bool
}

func (o Options) plan() plan {
	p := plan{margin: o.Margin, alpha: o.Alpha, seed: o.Seed, final: o.Final}
	if !(p.margin > 0) || math.IsInf(p.margin, 0) {
		p.margin = defaultMargin
	}
	if !(p.alpha > 0 && p.alpha < 1) {
		p.alpha = defaultAlpha
	}
	looks, shares := slices.Clone(o.Looks), []float64(nil)
	slices.Sort(looks)
	looks = slices.DeleteFunc(slices.Compact(looks), func(n int) bool { return n < 2 })
	if len(looks) == 0 {
		looks, shares = defaultLooks, defaultShares
	}
	for i, n := range looks {
		a := p.alpha / float64(len(looks))
		if shares != nil {
			a = p.alpha * shares[i]
		}
		p.looks = append(p.looks, look{n, a})
	}
	return p
}

// lookFor is the first look that has n rounds, the last when none has.
func (p plan) lookFor(n int) int {
	for _, l := range p.looks {
		if l.rounds >= n {
			return l.rounds
		}
	}
	return p.last()
}

// last is the number of rounds after which nothing more is asked for.
func (p plan) last() int { return p.looks[len(p.looks)-1].rounds }

// due lists the looks that a row with n rounds has had.
func (p plan) due(n int) []look {
	var out []look
	for _, l := range p.looks {
		if l.rounds <= n {
			out = append(out, l)
			continue
		}
		if p.final && n >= 2 && (len(out) == 0 || out[len(out)-1].rounds < n) {
			out = append(out, look{n, l.alpha})
		}
		return out
	}
	if p.final && len(out) > 0 {
		// Rounds beyond the last look are there, so they are used.
		out[len(out)-1].rounds = n
	}
	return out
}

// Compare judges every row of the samples. Versions are base and one for each
// patch, in order of N; nil means that every version in the samples was built.
// Failures are benchmarks that yield no figures on a version: their samples
// there are ignored.
//
// Only complete rounds count: rounds in which every version that works has a
// sample. Samples of the twin are compared with base alone, and when they
// differ the row's changes are withdrawn. A change from base that is not there from
// its twin, in a third at least, is withdrawn too.
//
// A Step of the result has a P when its level was tested: that of the
// permutation test, not corrected for the number of rows. A Step with a Group
// is a change that cannot be pinned on one patch.
func Compare(versions []bench.Version, samples []bench.Sample, failures []bench.Failure, o Options) Result {
	pl := o.plan()
	rows := gather(versions, samples, failures)
	var weights float64
	for _, r := range rows {
		if o.Tested != nil && o.Tested(r.key, r.metric.Name) {
			r.metric.Tested = true
		}
		weights += r.weight(pl)
	}
	res := Result{Warnings: waits(rows)}
	res.Comparisons = make([]bench.Comparison, len(rows))
	needs := make([][]int, len(rows))
	busy := map[string]bool{}          // benchmarks whose cpu time is open
	quiet := map[string]segmentation{} // where the cpu time of each changes
	one := func(i int) {
		r := rows[i]
		j := judge{plan: pl, row: r, share: r.weight(pl) / max(weights, 1)}
		j.draw = newDraw(pl.seed, uint64(i))
		if r.metric.Name == bench.Wall.Name {
			j.quiet = quiet[r.key]
		}
		res.Comparisons[i], needs[i] = j.comparison()
		if r.metric.Name == bench.CPU.Name {
			busy[r.key], quiet[r.key] = len(needs[i]) > 0, j.seg
		}
	}
	isWall := func(r *row) bool { return r.metric.Name == bench.Wall.Name }
	for i, r := range rows { // those of wall time last, since they heed the others
		if !isWall(r) {
			one(i)
		}
	}
	for i, r := range rows {
		if isWall(r) {
			one(i)
		}
	}
	open := map[string]int{}
	for i, r := range rows {
		k, c := r.key, res.Comparisons[i]
		if cpuOpen, has := busy[k]; has && !cpuOpen && r.metric.Name == bench.Wall.Name && c.Rounds >= pl.looks[0].rounds && !hints(c) {
			continue
		}
		if len(needs[i]) == 0 {
			continue
		}
		need := pl.lookFor(slices.Max(needs[i]))
		at, ok := open[k]
		if !ok {
			at = len(res.Open)
			open[k] = at
			res.Open = append(res.Open, Open{Benchmark: k, Rounds: c.Rounds})
		}
		e := &res.Open[at]
		e.Rounds = min(e.Rounds, c.Rounds)
		e.Needs = append(e.Needs, needs[i]...)
		e.Metrics = append(e.Metrics, c.Metric)
		if need > e.Needed {
			e.Needed, e.Metric, e.Reason = need, c.Metric, needsText(c.Metric, need)
		}
	}
	pointOut(res.Comparisons)
	return res
}

// hints says that an unclear step of the row may well be a change: its estimate
// lies beyond what chance gives once in 100 steps. Wall time whose cpu time is
// settled gets no rounds without such a hint: on a machine that is not idle it
// would take all the time there is, and be unclear in the end.
func hints(c bench.Comparison) bool {
	for _, s := range append(slices.Clone(c.Steps), c.Total) {
		if s.Verdict != bench.Unclear || s.Lo == nil || s.Hi == nil {
			continue
		}
		if half := (*s.Hi - *s.Lo) / 2; math.Abs(*s.Change)*1.96 > doubtZ*half {
			return true
		}
	}
	return false
}

// pointOut tells in a step that is unclear what an exact figure of the same
// benchmark says there, and in one that changed when the exact figure moves the
// other way. No verdict is altered by it: more instructions are not always more
// time.
func pointOut(cs []bench.Comparison) {
	for _, x := range cs {
		if !x.Exact || !x.Tested {
			continue
		}
		for i := range cs {
			c := &cs[i]
			if c.Exact || !c.Tested || bench.RowName(c.Benchmark, c.Params) != bench.RowName(x.Benchmark, x.Params) {
				continue
			}
			for _, s := range x.Steps {
				for k := range c.Steps {
					if c.Steps[k].N == s.N {
						beside(&c.Steps[k], s, x.Metric)
					}
				}
			}
			beside(&c.Total, x.Total, x.Metric)
		}
	}
}

// beside puts the change of an exact figure into the reason of a step of a noisy
// one, before the rest of it.
func beside(s *bench.Step, exact bench.Step, metric string) {
	if !exact.Verdict.Changed() || exact.Change == nil || s.Verdict != bench.Unclear && !(s.Verdict.Changed() && s.Verdict != exact.Verdict) {
		return
	}
	text := fmt.Sprintf("%s %+.1f %% here", metric, 100**exact.Change)
	if s.Reason != "" {
		text += "; " + s.Reason
	}
	s.Reason = text
}
