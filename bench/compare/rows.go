package compare

import (
	"maps"
	"math"
	"slices"

	"patchbench/bench"
)

// cell is one figure of a row.
type cell struct {
	value      float64
	order      float64 // place in the round
	covariates map[string]float64
}

// row is one benchmark's metric with all its figures, before any statistics.
type row struct {
	key    string // bench.RowName
	name   string
	params map[string]string
	metric bench.Metric

	versions []version
	// cols are the distinct builds with figures, in order of first appearance,
	// as indices into versions.
	cols []int
	// rounds are the complete ones, ascending; cells[i] has one cell for each col.
	rounds []int
	cells  [][]cell
	// base and twin are the figures of the complete rounds in which both ran, twinned
	// which of the rounds these are.
	base, twin []float64
	twinned    []int
	// demoted says that the metric is declared exact but did not repeat, and was not
	// taken in the rounds that other metrics are taken in.
	demoted bool
	// placed says that figures have a place in the order of a round, so that further
	// rounds give further figures: counters under valgrind have none.
	placed bool

	all map[int]map[int]cell // version -> round -> figure
	why map[int]string       // version -> why this figure alone could not be had
}

// version is a bench.Version as one row sees it.
type version struct {
	bench.Version
	col    int    // its build's place in cols, -1 for none
	reason string // why there is no figure
	label  string // "base", "2/7"
}

// weight is the row's share of alpha relative to the others. With a single look a
// row in which every round has one value for all builds needs none: however the
// builds are dealt out, nothing can be found in it.
func (r *row) weight(p plan) float64 {
	switch {
	case !r.metric.Tested || r.metric.Exact || len(r.cols) < 2:
		return 0
	case len(p.looks) == 1 && r.constant():
		return 0
	case r.metric.Name == bench.CPU.Name:
		return cpuWeight
	}
	return 1
}

// constant says that no round tells the builds apart.
func (r *row) constant() bool {
	for _, line := range r.cells {
		for _, c := range line {
			if c.value != line[0].value {
				return false
			}
		}
	}
	return true
}

// gather sorts the samples into rows.
func gather(versions []bench.Version, samples []bench.Sample, failures []bench.Failure) []*row {
	versions = slices.Clone(versions)
	if len(versions) == 0 {
		top := -1
		for _, s := range samples {
			top = max(top, s.Version)
		}
		for n := range top + 1 {
			versions = append(versions, bench.Version{N: n, State: bench.Built})
		}
	}
	if len(versions) == 0 {
		return nil
	}
	slices.SortStableFunc(versions, func(a, b bench.Version) int { return a.N - b.N })
	failed := map[string]map[int]string{}
	for _, f := range failures {
		m := failed[f.Benchmark]
		if m == nil {
			m = map[int]string{}
			failed[f.Benchmark] = m
		}
		m[f.N] = bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String()
	}

	for _, s := range samples {
		if s.Failed == nil || s.Discarded != "" || s.Twin || ofCounter(s) {
			continue
		}
		k := bench.RowName(s.Benchmark, s.Params)
		if failed[k] == nil {
			failed[k] = map[int]string{}
		}
		if failed[k][s.Version] == "" {
			failed[k][s.Version] = s.Failed.String()
		}
	}

	type id struct{ key, metric string }
	index := map[id]*row{}
	twins := map[id]map[int]float64{}
	seen := map[string]map[int]bool{} // versions that a benchmark has run on
	order := map[string]int{}         // of benchmarks
	place := map[string]map[int]int{} // samples so far in a round, for the order
	var rows []*row
	for _, s := range samples {
		k := bench.RowName(s.Benchmark, s.Params)
		if _, ok := order[k]; !ok {
			order[k] = len(order)
			seen[k], place[k] = map[int]bool{}, map[int]int{}
		}
		if s.Discarded != "" {
			continue
		}
		at := place[k][s.Round]
		place[k][s.Round]++
		if s.Failed != nil && !ofCounter(s) || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || failed[k][s.Version] != "" {
			continue
		}
		i := id{k, s.Metric}
		r := index[i]
		if r == nil {
			r = &row{key: k, name: s.Benchmark, params: s.Params, metric: bench.MetricFor(s.Metric, s.Unit), all: map[int]map[int]cell{}, why: map[int]string{}}
			index[i], twins[i] = r, map[int]float64{}
			rows = append(rows, r)
		}
		if s.Failed != nil {
			if !s.Twin && r.why[s.Version] == "" {
				r.why[s.Version] = s.Failed.String()
			}
			continue
		}
		if s.Twin {
			twins[i][s.Round] = s.Value
			continue
		}
		seen[k][s.Version] = true
		m := r.all[s.Version]
		if m == nil {
			m = map[int]cell{}
			r.all[s.Version] = m
		}
		c := cell{value: s.Value, order: float64(at), covariates: s.Covariates}
		if s.Position != nil {
			c.order, r.placed = float64(*s.Position), true
		}
		m[s.Round] = c
	}
	slices.SortStableFunc(rows, func(a, b *row) int { return order[a.key] - order[b.key] })
	for _, r := range rows {
		r.place(versions, failed[r.key], seen[r.key])
		twin := twins[id{r.key, r.metric.Name}]
		r.table(twin)
		if r.metric.Exact && !r.repeats(twin) {
			r.metric.Exact, r.demoted = false, !r.placed
		}
	}
	return rows
}

// ofCounter says that a line that tells of a failure tells of one exact counter: the
// program itself has not failed.
func ofCounter(s bench.Sample) bool { return bench.MetricFor(s.Metric, s.Unit).Exact }

// place gives every version its column, or the reason for having none.
func (r *row) place(versions []bench.Version, failed map[int]string, seen map[int]bool) {
	last := 0
	at, cols := map[int]int{}, map[int]int{}
	versions = slices.Clone(versions)
	for i, v := range versions {
		last = max(last, v.N)
		at[v.N] = i
		versions[i] = v.With(r.params)
	}
	broken := "" // the last failure, for versions that were not run after it
	for _, v := range versions {
		w := version{Version: v, col: -1, label: v.Label(last)}
		src := v
		for hops := 0; src.State == bench.SameBuild && src.SameAs != nil && hops < len(versions); hops++ {
			j, ok := at[*src.SameAs]
			if !ok {
				break
			}
			src = versions[j]
		}
		figures := len(r.all[src.N]) > 0
		switch {
		case src.State == bench.BuildFailed:
			w.reason = noBuild
		case src.State == bench.NotBuilt && !figures:
			w.reason = "not built"
		case failed[src.N] != "":
			w.reason = failed[src.N]
			broken = w.reason + " on " + w.label
		case figures:
			c, ok := cols[src.N]
			if !ok {
				c = len(r.cols)
				cols[src.N] = c
				r.cols = append(r.cols, at[src.N])
			}
			w.col = c
		case r.why[src.N] != "":
			w.reason = r.why[src.N]
		case broken != "" && !seen[src.N]:
			w.reason = "not run after " + broken
		case !seen[src.N]:
			w.reason = "not run"
		default:
			w.reason = missing
		}
		r.versions = append(r.versions, w)
	}
}

const (
	noBuild = "does not build"
	missing = "no such figure"
)

// table keeps the rounds in which every build has a figure.
func (r *row) table(twin map[int]float64) {
	if len(r.cols) == 0 {
		return
	}
	first := r.all[r.versions[r.cols[0]].N]
	for _, round := range slices.Sorted(maps.Keys(first)) {
		line := make([]cell, 0, len(r.cols))
		for _, c := range r.cols {
			if x, ok := r.all[r.versions[c].N][round]; ok {
				line = append(line, x)
			}
		}
		if len(line) < len(r.cols) {
			continue
		}
		r.rounds = append(r.rounds, round)
		r.cells = append(r.cells, line)
		if t, ok := twin[round]; ok && r.versions[r.cols[0]].N == 0 {
			r.base = append(r.base, line[0].value)
			r.twin = append(r.twin, t)
			r.twinned = append(r.twinned, len(r.cells)-1)
		}
	}
}

// repeats says that every version's runs gave one figure, the twin's included.
func (r *row) repeats(twin map[int]float64) bool {
	for _, c := range r.cols {
		n := r.versions[c].N
		first, have := 0.0, false
		same := func(x float64) bool {
			if !have {
				first, have = x, true
			}
			return x == first
		}
		for _, x := range r.all[n] {
			if !same(x.value) {
				return false
			}
		}
		if n != 0 {
			continue
		}
		for _, x := range twin {
			if !same(x) {
				return false
			}
		}
	}
	return true
}
