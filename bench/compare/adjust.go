package compare

import (
	"math"
	"slices"

	"patchbench/bench"
)

// covariates are the readings of the machine that can explain a run's cpu time:
// pressure, and how often the run was pushed off its processor.
var covariates = []string{"psi_ns", "nivcsw"}

// neighboursFrom is the number of builds from which a run's neighbours in its
// round say something: among fewer, what is above the round's middle here must
// be below it there.
const neighboursFrom = 6

// adjusted takes out of each value what the runs just before and after it in
// the round and the covariates explain. All of that belongs to the run and not
// to the build, whose place in the round was random, so permuting stays exact.
// Wall time is left to its neighbours alone, because pressure counts the same
// waiting that wall time consists of.
func (t table) adjusted(cells [][]cell, segments []span, metric string) table {
	if t.k < 3 || t.n < 5 {
		return t
	}
	res := t.residuals(segments)
	limit := make([]float64, len(res))
	for i, x := range res {
		limit[i] = math.Abs(x)
	}
	lim := 3 * 1.4826 * median(limit)
	for i, x := range res {
		res[i] = min(max(x, -lim), lim)
	}
	var features [][]float64
	if t.k >= neighboursFrom && shuffled(cells) {
		features = append(features, t.neighbours(cells, res))
	}
	if metric == bench.CPU.Name || metric == bench.User.Name || metric == bench.Sys.Name {
		for _, name := range covariates {
			if f := t.covariate(cells, name); f != nil {
				features = append(features, f)
			}
		}
	}
	if len(features) == 0 {
		return t
	}
	beta := leastSquares(res, features)
	x := slices.Clone(t.x)
	for j, f := range features {
		for i := range x {
			x[i] -= beta[j] * f[i]
		}
	}
	t.x = x
	return t
}

// residuals are the values less their segment's level and the round's median.
func (t table) residuals(segments []span) []float64 {
	res := t.aligned(span{0, t.k})
	col := make([]float64, 0, len(res))
	for _, s := range segments {
		col = col[:0]
		for r := range t.n {
			col = append(col, res[r*t.k+s.lo:r*t.k+s.hi]...)
		}
		m := median(col)
		for r := range t.n {
			for v := s.lo; v < s.hi; v++ {
				res[r*t.k+v] -= m
			}
		}
	}
	centre(res, t.k)
	return res
}

// centre takes each round's median out of x.
func centre(x []float64, k int) {
	sorted := make([]float64, k)
	for r := 0; r < len(x); r += k {
		line := x[r : r+k]
		copy(sorted, line)
		slices.Sort(sorted)
		m := sortedMedian(sorted)
		for i := range line {
			line[i] -= m
		}
	}
}

// shuffled says that the builds did not run in the same order in every round.
func shuffled(cells [][]cell) bool {
	for _, line := range cells {
		for v := range line {
			if line[v].order != cells[0][v].order {
				return true
			}
		}
	}
	return false
}

// neighbours is, for every run, the mean of the residuals of the other runs of
// its round, the nearer the more: e-fold for each place.
func (t table) neighbours(cells [][]cell, res []float64) []float64 {
	f := make([]float64, len(res))
	for r := range t.n {
		line := res[r*t.k : (r+1)*t.k]
		for v := range t.k {
			var sum, weight float64
			for u := range t.k {
				if u == v {
					continue
				}
				w := 1.0
				if d := int(math.Abs(cells[r][u].order - cells[r][v].order)); d < len(fade) {
					w = fade[d]
				} else {
					w = 0
				}
				sum += w * line[u]
				weight += w
			}
			if weight > 0 {
				f[r*t.k+v] = sum / weight
			}
		}
	}
	return f
}

// fade is exp(-distance).
var fade = [...]float64{1, .3679, .1353, .0498, .0183, .0067, .0025, .0009}

// covariate is the logarithm of a reading, less the round's median; nil if it
// was not taken of every run, or differs between the builds, as when a patch
// makes the program wait: then it is an effect and no excuse.
func (t table) covariate(cells [][]cell, name string) []float64 {
	f := make([]float64, 0, len(t.x))
	for r := range t.n {
		for _, c := range cells[r] {
			x, ok := c.covariates[name]
			if !ok || x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
				return nil
			}
			f = append(f, math.Log1p(x))
		}
	}
	centre(f, t.k)
	s := ranked(f, t.n, t.k, ones(make([]float64, t.n)))
	cs := contrasts(t.k)
	sums, tau := s.sums()
	if !(tau > 0) {
		return nil
	}
	z2, _ := scan(sums, make([]float64, t.k+1), cs)
	if float64(len(cs))*math.Erfc(math.Sqrt(z2/tau/2)) < .05 {
		return nil
	}
	return f
}

// leastSquares gives the coefficients that explain y by the features best. Of
// features that say the same only one counts.
func leastSquares(y []float64, features [][]float64) []float64 {
	p := len(features)
	a := make([][]float64, p)
	for i := range a {
		a[i] = make([]float64, p+1)
		for r, x := range features[i] {
			for j := range features {
				a[i][j] += x * features[j][r]
			}
			a[i][p] += x * y[r]
		}
	}
	scale := make([]float64, p)
	for i := range p {
		scale[i] = a[i][i]
	}
	beta := make([]float64, p)
	for i := range p {
		if a[i][i] <= 1e-9*scale[i] {
			clear(a[i])
			continue
		}
		for j := range p {
			if j == i {
				continue
			}
			q := a[j][i] / a[i][i]
			for c := i; c <= p; c++ {
				a[j][c] -= q * a[i][c]
			}
		}
	}
	for i := range p {
		if a[i][i] > 0 {
			beta[i] = a[i][p] / a[i][i]
		}
	}
	return beta
}
