package compare

import (
	"math"
	"math/rand/v2"
	"sync"
)

const (
	// enough exceedances end the drawing: p is then known to about a fifth.
	enough = 20
	// drawsMax bounds the permutations of one test; p below what they can show
	// comes from the tail.
	drawsMax = 20000
)

// draw is a stream of random numbers, made for speed: it is asked for a few
// hundred million numbers in one comparison.
type draw struct{ src rand.PCG }

func newDraw(seed, stream uint64) *draw {
	d := &draw{}
	d.src.Seed(seed^0x9e3779b97f4a7c15, stream*0xbf58476d1ce4e5b9+1)
	return d
}

// shuffle permutes x.
func (d *draw) shuffle(x []float64) {
	i := len(x) - 1
	for ; i >= 2; i -= 2 {
		u := d.src.Uint64()
		a := int((u >> 32) * uint64(i+1) >> 32)
		b := int((u & 0xffffffff) * uint64(i) >> 32)
		x[i], x[a] = x[a], x[i]
		x[i-1], x[b] = x[b], x[i-1]
	}
	if i == 1 {
		if d.src.Uint64()&1 == 1 {
			x[0], x[1] = x[1], x[0]
		}
	}
}

// contrast compares the columns c..hi-1 with lo..c-1.
type contrast struct {
	lo, c, hi int
	left      float64 // 1/(c-lo)
	right     float64 // 1/(hi-c)
	scale     float64 // 1/(left+right)
	_         struct{}
}

var contrastCache sync.Map // number of columns -> []contrast

// contrasts lists what the scan looks at in k columns. Up to 16 columns these
// are all lo < c < hi; above that the stretches have lengths 1, 2, 3, 4, 6, 8,
// 12, 16 ... or reach to the end, which keeps long series affordable and loses
// little, since a stretch one build too short or too long is nearly as good.
func contrasts(k int) []contrast {
	if c, ok := contrastCache.Load(k); ok {
		return c.([]contrast)
	}
	var out []contrast
	for c := 1; c < k; c++ {
		for a := 1; a <= c; a++ {
			if !lengthUsed(a, c, k) {
				continue
			}
			for b := 1; b <= k-c; b++ {
				if !lengthUsed(b, k-c, k) {
					continue
				}
				l, r := 1/float64(a), 1/float64(b)
				out = append(out, contrast{lo: c - a, c: c, hi: c + b, left: l, right: r, scale: 1 / (l + r)})
			}
		}
	}
	contrastCache.Store(k, out)
	return out
}

func lengthUsed(n, end, k int) bool {
	if k <= 16 || n == end || n <= 4 {
		return true
	}
	for p := 4; p <= n; p *= 2 {
		if n == p || n == p+p/2 {
			return true
		}
	}
	return false
}

// scores is a table of rounds by columns in which every round sums to zero.
// Under the null hypothesis its entries are exchangeable inside each round.
type scores struct {
	n, k int
	v    []float64 // v[round*k+column]
}

// sums of the columns, and tau: a squared contrast divided by tau is a squared z
// under permutation.
func (s scores) sums() (sums []float64, tau float64) {
	sums = make([]float64, s.k)
	for r := range s.n {
		for v, x := range s.v[r*s.k : (r+1)*s.k] {
			sums[v] += x
			tau += x * x
		}
	}
	return sums, tau / float64(s.k-1)
}

// scan gives the largest squared contrast between the column sums and where it lies.
func scan(sums, prefix []float64, cs []contrast) (float64, int) {
	prefix[0] = 0
	for i, s := range sums {
		prefix[i+1] = prefix[i] + s
	}
	best, at := -1.0, 0
	for i := range cs {
		c := &cs[i]
		m := prefix[c.c]
		d := (prefix[c.hi]-m)*c.right - (m-prefix[c.lo])*c.left
		if t := d * d * c.scale; t > best {
			best, at = t, i
		}
	}
	return best, at
}

// reaches says whether some squared contrast is at least t.
func reaches(sums, prefix []float64, cs []contrast, t float64) bool {
	prefix[0] = 0
	for i, s := range sums {
		prefix[i+1] = prefix[i] + s
	}
	for i := range cs {
		c := &cs[i]
		m := prefix[c.c]
		d := (prefix[c.hi]-m)*c.right - (m-prefix[c.lo])*c.left
		if d*d*c.scale >= t {
			return true
		}
	}
	return false
}

// found is the outcome of a scan.
type found struct {
	contrast
	p float64
	t float64 // the statistic, in units of its variance: a squared z
}

// largest finds the largest contrast, with p = 1 for now; t is 0 if there is none.
func (s scores) largest() found {
	cs := contrasts(s.k)
	sums, tau := s.sums()
	t, at := scan(sums, make([]float64, s.k+1), cs)
	f := found{contrast: cs[at], p: 1}
	if tau > 0 && t > 1e-12*tau {
		f.t = t / tau
	}
	return f
}

// test finds the largest contrast and its p. values are what the scores were
// made of, in the same shape; the tail of very small p is taken from them.
// The p needs to be known to a tenth of threshold only.
func (s scores) test(values []float64, gap, threshold float64, d *draw) found {
	cs := contrasts(s.k)
	f := s.largest()
	if f.t == 0 {
		return f
	}
	draws := drawsMax
	if threshold > 0 {
		draws = int(min(drawsMax, max(1000, math.Ceil(10/threshold))))
	}
	work := make([]float64, len(s.v))
	copy(work, s.v)
	sums, tau := s.sums()
	prefix := make([]float64, s.k+1)
	limit := f.t * tau * (1 - 1e-9) // sums of the same numbers differ in the last bits
	hits, b := 0, 0
	for b < draws && hits < enough {
		clear(sums)
		for r := 0; r < len(work); r += s.k {
			line := work[r : r+s.k]
			d.shuffle(line)
			for v, x := range line {
				sums[v] += x
			}
		}
		b++
		if reaches(sums, prefix, cs, limit) {
			hits++
		}
	}
	f.p = float64(hits+1) / float64(b+1)
	if threshold <= 0 || f.p <= threshold/10 {
		return f
	}
	// Two or three builds in few rounds have so few arrangements that none is
	// rare enough for a suite of many rows, and of the rest no more than drawsMax
	// are drawn: where the figures are as extreme as either can show, the tail
	// tells the rest.
	if f.p <= max(s.floor(), 4/float64(draws)) && (draws == drawsMax || s.floor() > threshold/10) {
		f.p = min(f.p, s.tail(f, values, gap, len(cs)))
	}
	return f
}

// floor is about the p of the most extreme arrangement: one column is first, or
// last, in every round.
func (s scores) floor() float64 {
	return 4 * float64(s.k-1) * math.Pow(float64(s.k), -float64(s.n))
}

// tail bounds a p too small for permutations by the sum over all contrasts of
// one contrast's tail: the normal law for the permuted scores, or Student's for
// the differences in each round, whichever is smaller. The first has its limit
// where ranks cannot become more extreme, the second does not know it.
func (s scores) tail(f found, values []float64, gap float64, m int) float64 {
	normal := math.Erfc(math.Sqrt(f.t / 2))
	diffs := make([]float64, s.n)
	for r := range s.n {
		diffs[r] = f.diff(values[r*s.k : (r+1)*s.k])
	}
	return min(1, float64(m)*min(normal, studentP(diffs, gap)))
}

// diff is the contrast of one round's values.
func (c contrast) diff(line []float64) float64 {
	var l, r float64
	for _, x := range line[c.lo:c.c] {
		l += x
	}
	for _, x := range line[c.c:c.hi] {
		r += x
	}
	return r*c.right - l*c.left
}
