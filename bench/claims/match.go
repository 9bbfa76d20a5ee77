package claims

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"patchbench/bench"
)

// Match holds each claim against the row that its words name, and says what
// became of it: a cover letter's against the whole series, a commit message's
// against its patch. A claim that names several rows alike (a benchmark with
// parameters) is repeated for each, four at most. Claims of no row are kept as
// bench.ClaimUnmeasured.
func Match(list []bench.Claim, results []bench.Comparison) []bench.Claim {
	var names []string // benchmarks, each once
	for _, r := range results {
		if name := bench.RowName(r.Benchmark, r.Params); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	all := []bench.Claim{}
	for _, c := range list {
		before := len(all)
		for _, name := range benchmarksOf(c, names) {
			row := rowOf(c, name, results)
			if row == nil || len(all)-before == 4 {
				continue
			}
			one := c
			one.Benchmark, one.Metric = name, row.Metric
			judge(&one, row)
			all = append(all, one)
		}
		if len(all) == before {
			c.Verdict = bench.ClaimUnmeasured
			all = append(all, c)
		}
	}
	return all
}

// benchmarksOf gives the benchmarks that a claim names: those of which most
// words stand in its label, or else in its text. Where there is one benchmark
// only, a claim without a label is about that.
func benchmarksOf(c bench.Claim, names []string) []string {
	anywhere := words(c.Subject + " " + c.Text)
	for _, text := range []string{c.Subject, c.Text} {
		has := words(text)
		var best []string
		most := 0
		for _, name := range names {
			base, params, _ := strings.Cut(name, "{")
			parts := slices.Sorted(has.all(base))
			if len(parts) == 0 {
				continue
			}
			score := len(parts) * 100
			for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == ',' || r == '}' }) {
				if _, value, _ := strings.Cut(p, "="); anywhere[strings.ToLower(value)] {
					score++
				}
			}
			if score > most {
				best, most = nil, score
			}
			if score == most {
				best = append(best, name)
			}
		}
		if len(best) > 0 {
			return best
		}
	}
	if len(names) == 1 && c.Subject == "" {
		return names
	}
	return nil
}

type wordSet map[string]bool

func words(s string) wordSet {
	set := wordSet{}
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		set[strings.ToLower(w)] = true
	}
	return set
}

// all yields the words of a name if each of them is in the set, and nothing
// otherwise.
func (set wordSet) all(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		parts := words(name)
		for w := range parts {
			if !set[w] {
				return
			}
		}
		for w := range parts {
			if !yield(w) {
				return
			}
		}
	}
}

// metricsOf are the metrics that a quantity may mean, the first first.
func metricsOf(c bench.Claim) []string {
	switch c.Quantity {
	case "time":
		return []string{bench.Wall.Name, bench.CPU.Name, "s/op", "sec/op", "ns/op"}
	case "", "calls", "steps":
		if c.Unit == "" && c.Quantity == "" {
			return []string{bench.Wall.Name, bench.CPU.Name, "s/op", "sec/op", "ns/op"}
		}
	case "memory", "rss":
		return []string{bench.RSS.Name, "heap"}
	case "malloc":
		return []string{"malloc", "B/op"}
	case "allocs", "allocations":
		return []string{"allocs", "allocs/op"}
	case "size":
		return []string{bench.Size.Name}
	}
	return []string{c.Quantity}
}

// rowOf is the row of a benchmark that a claim's quantity means, nil for none.
// One without a verdict is passed over for one with.
func rowOf(c bench.Claim, name string, results []bench.Comparison) *bench.Comparison {
	var fallback *bench.Comparison
	for _, metric := range metricsOf(c) {
		for i := range results {
			r := &results[i]
			is := r.Metric == metric || metric == "throughput" && r.Better == bench.Higher
			if !is || bench.RowName(r.Benchmark, r.Params) != name {
				continue
			}
			if s := stepOf(c, r); s.Verdict != bench.Unclear && s.Verdict != bench.NotMeasured && s.Change != nil {
				return r
			}
			if fallback == nil {
				fallback = r
			}
		}
	}
	return fallback
}

// stepOf is what the claim speaks of: its patch, or the whole series.
func stepOf(c bench.Claim, r *bench.Comparison) bench.Step {
	if c.N > 0 {
		for _, s := range r.Steps {
			if s.N == c.N {
				return s
			}
		}
		return bench.Step{N: c.N, Verdict: bench.NotMeasured}
	}
	return r.Total
}

// near is how far, as a share of the claimed change (in logarithms), a measured
// one may be off and still confirm it: the author's machine is another one.
const near = 0.25

func judge(c *bench.Claim, r *bench.Comparison) {
	s := stepOf(*c, r)
	c.Measured, c.Lo, c.Hi = s.Change, s.Lo, s.Hi
	change := func(f *float64) float64 {
		if f == nil {
			return math.NaN()
		}
		return math.Log1p(max(*f, -0.999999))
	}
	claimed, measured, lo, hi := math.Log1p(c.Change), change(s.Change), change(s.Lo), change(s.Hi)
	within := lo <= claimed && claimed <= hi
	verdict := s.Verdict
	if verdict == bench.Shown {
		// Not tested: the interval alone tells.
		switch {
		case lo > 0 || hi < 0:
			verdict = bench.Better
		default:
			verdict = bench.Unclear
		}
	}
	small := math.Abs(claimed) < 0.01
	switch {
	case s.Change == nil && verdict == bench.Same:
		// The same build: exactly no change.
		c.Verdict = bench.NotSeen
		if small {
			c.Verdict = bench.Confirmed
		}
	case verdict == bench.NotMeasured || math.IsNaN(measured):
		c.Verdict = bench.ClaimUnmeasured
	case small && verdict == bench.Same:
		c.Verdict = bench.Confirmed
	case verdict == bench.Same:
		c.Verdict = bench.NotSeen
	case verdict == bench.Unclear && within:
		c.Verdict = bench.Undecided
	case verdict == bench.Unclear:
		c.Verdict = bench.NotSeen
	case small:
		c.Verdict = bench.Larger
	case (measured > 0) != (claimed > 0):
		c.Verdict = bench.Opposite
	case within || math.Abs(measured-claimed) <= near*math.Abs(claimed):
		c.Verdict = bench.Confirmed
	case math.Abs(measured) < math.Abs(claimed):
		c.Verdict = bench.Smaller
	default:
		c.Verdict = bench.Larger
	}
}
