package compare

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// median of x, which is left as it is. NaN for none.
func median(x []float64) float64 {
	s := slices.Clone(x)
	slices.Sort(s)
	return sortedMedian(s)
}

func sortedMedian(s []float64) float64 {
	n := len(s)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 1:
		return s[n/2]
	}
	return s[n/2-1]/2 + s[n/2]/2
}

// medianInterval is the 95 % interval of the median by order statistics (the
// sign test's interval); ok is false when there are too few values (below 6).
func medianInterval(sorted []float64) (lo, hi float64, ok bool) {
	n := len(sorted)
	if n > 1000 {
		k := int(float64(n)/2 - .98*math.Sqrt(float64(n)))
		return sorted[k-1], sorted[n-k], true
	}
	// P(fewer than k of n coins) is to stay below 0.025.
	p, sum, k := math.Pow(.5, float64(n)), 0.0, 0
	for sum+p <= .025 {
		sum += p
		p *= float64(n-k) / float64(k+1)
		k++
	}
	if k == 0 {
		return 0, 0, false
	}
	return sorted[k-1], sorted[n-k], true
}

// studentP is the two-sided p of the differences' mean by Student's test. The
// spread is taken as no smaller than rounding to steps of gap leaves.
func studentP(d []float64, gap float64) float64 {
	n := float64(len(d))
	if n < 3 {
		return 1
	}
	var mean, ss float64
	for _, x := range d {
		mean += x / n
	}
	for _, x := range d {
		ss += (x - mean) * (x - mean)
	}
	v := max(ss/(n-1), gap*gap/12)
	if mean == 0 {
		return 1
	}
	if v == 0 {
		return 0
	}
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Survival(math.Abs(mean)/math.Sqrt(v/n))
}

// levels holds for every column its level, a robust mean of its aligned values,
// and how each round moves it: the influence of the round's value, whose mean is
// about zero and whose spread is the level's error.
type levels struct {
	n, k      int
	level     []float64
	influence []float64 // [round*k+column]
	df        float64
}

// huber is where a value's pull ends, in standard deviations: 95 % efficient for
// normal noise (Huber 1964).
const huber = 1.345

// levelsOf gives each column its Huber mean, each round with the squared weight,
// as suits weights that are the inverse of a spread. On recorded runs of a busy
// machine its error is a third less than that of the trimmed mean, and its
// interval as true.
func levelsOf(values []float64, n, k int, w []float64) levels {
	l := levels{n: n, k: k, level: make([]float64, k), influence: make([]float64, n*k)}
	abs := make([]float64, 0, n*k)
	var w2, w4 float64
	for r := range n {
		for _, x := range values[r*k : (r+1)*k] {
			abs = append(abs, math.Abs(x*w[r]))
		}
		w2 += w[r] * w[r]
		w4 += w[r] * w[r] * w[r] * w[r]
	}
	l.df = w2*w2/w4 - 1
	s := huber * 1.4826 * median(abs)
	if s == 0 {
		return trimmedLevels(values, n, k)
	}
	col := make([]float64, n)
	for v := range k {
		for r := range n {
			col[r] = values[r*k+v]
		}
		mu := median(col)
		for range 15 {
			var sum, weight float64
			for r, x := range col {
				q := w[r] * w[r]
				if z := math.Abs(x-mu) * w[r]; z > s {
					q *= s / z
				}
				sum += q * x
				weight += q
			}
			step := sum/weight - mu
			mu += step
			if math.Abs(step) < 1e-6*s {
				break
			}
		}
		var inside float64
		for r, x := range col {
			if math.Abs(x-mu)*w[r] <= s {
				inside += w[r] * w[r]
			}
		}
		if inside < w2/4 {
			return trimmedLevels(values, n, k)
		}
		for r, x := range col {
			l.influence[r*k+v] = min(max((x-mu)*w[r], -s), s) * w[r] / inside * float64(n)
		}
		l.level[v] = mu
	}
	return l
}

// trim is the share cut off at each end of a column.
const trim = 0.2

// trimmedLevels gives each column its 20 % trimmed mean, every round with the
// same weight (Yuen 1974): for figures of which most are equal, whose spread
// has no usual measure.
func trimmedLevels(values []float64, n, k int) levels {
	g := int(trim * float64(n))
	l := levels{n: n, k: k, level: make([]float64, k), influence: make([]float64, n*k), df: float64(n - 2*g - 1)}
	col := make([]float64, n)
	for v := range k {
		for r := range n {
			col[r] = values[r*k+v]
		}
		slices.Sort(col)
		var sum float64
		for _, x := range col[g : n-g] {
			sum += x
		}
		lo, hi := col[g], col[n-g-1]
		win := (sum + float64(g)*(lo+hi)) / float64(n)
		l.level[v] = sum / float64(n-2*g)
		c := float64(n) / float64(n-2*g)
		for r := range n {
			l.influence[r*k+v] = (min(max(values[r*k+v], lo), hi) - win) * c
		}
	}
	return l
}

// effect is a difference of levels with its standard error.
type effect struct {
	diff, se, df float64
}

// between is the mean level of the columns in right less that in left.
func (l levels) between(left, right span) effect {
	var e effect
	for v := left.lo; v < left.hi; v++ {
		e.diff -= l.level[v] / float64(left.hi-left.lo)
	}
	for v := right.lo; v < right.hi; v++ {
		e.diff += l.level[v] / float64(right.hi-right.lo)
	}
	var ss float64
	for r := range l.n {
		line := l.influence[r*l.k : (r+1)*l.k]
		var a, b float64
		for v := left.lo; v < left.hi; v++ {
			a += line[v]
		}
		for v := right.lo; v < right.hi; v++ {
			b += line[v]
		}
		d := b/float64(right.hi-right.lo) - a/float64(left.hi-left.lo)
		ss += d * d
	}
	n := float64(l.n)
	e.se = math.Sqrt(ss / (n - 1) / n)
	e.df = l.df
	return e
}

// span is the columns lo..hi-1.
type span struct{ lo, hi int }

// half is half the width of the 95 % interval.
func (e effect) half() float64 {
	if e.se == 0 {
		return 0
	}
	return e.se * studentQuantile(e.df)
}

var quantiles = sync.OnceValue(func() (q [200]float64) {
	for df := 1; df < len(q); df++ {
		q[df] = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(df)}.Quantile(.975)
	}
	return q
})

// studentQuantile is the .975 quantile of Student's law.
func studentQuantile(df float64) float64 {
	i := int(df)
	switch {
	case i < 1:
		return math.Inf(1)
	case i >= 200:
		return 1.96
	}
	return quantiles()[i]
}
