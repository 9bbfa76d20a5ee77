package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// made gives one row's samples: level[v] times a noise of sd, which the round
// shares by half. A NaN level means that the version has no figure.
func made(metric bench.Metric, name string, level []float64, rounds int, sd float64, seed uint64) []bench.Sample {
	rng := rand.New(rand.NewPCG(seed, 99))
	var out []bench.Sample
	for r := range rounds {
		load := math.Exp(sd * rng.NormFloat64())
		for _, v := range rng.Perm(len(level)) {
			x := level[v] * load * math.Exp(sd*rng.NormFloat64())
			if math.IsNaN(level[v]) {
				continue
			}
			out = append(out, bench.Sample{Round: r + 1, Version: v, Benchmark: name, Metric: metric.Name, Unit: metric.Unit, Value: x})
		}
	}
	return out
}

// words is each step's verdict with its group, and the total's last.
func words(c bench.Comparison) []string {
	var out []string
	word := func(s bench.Step) string {
		w := string(s.Verdict)
		if s.Group != nil {
			w += " " + strconv.Itoa(s.Group[0]) + "-" + strconv.Itoa(s.Group[1])
		}
		return w
	}
	for _, s := range c.Steps {
		out = append(out, word(s))
	}
	return append(out, "total "+word(c.Total))
}

func fixed(n int) Options { return Options{Looks: []int{n}, Final: true, Seed: 1} }

func TestShapes(t *testing.T) {
	nan := math.NaN()
	tests := map[string]struct {
		metric bench.Metric
		level  []float64
		sd     float64
		n      int
		want   []string
	}{
		"nothing changes":               {bench.CPU, []float64{1, 1, 1, 1, 1}, .01, 40, []string{"same", "same", "same", "same", "total same"}},
		"one step":                      {bench.CPU, []float64{1, 1, 1.05, 1.05, 1.05}, .01, 20, []string{"same", "worse", "same", "same", "total worse"}},
		"a step up, undone":             {bench.CPU, []float64{1, 1, 1.05, 1.05, 1.05, 1}, .01, 40, []string{"same", "worse", "same", "same", "better", "total same"}},
		"one patch, twenty rounds":      {bench.CPU, []float64{1, 1.05}, .01, 20, []string{"worse", "total worse"}},
		"one patch that speeds up":      {bench.CPU, []float64{1, .9}, .01, 15, []string{"better", "total better"}},
		"one version alone is slower":   {bench.CPU, []float64{1, 1, 1.08, 1, 1}, .01, 40, []string{"same", "worse", "better", "same", "total same"}},
		"values all equal":              {bench.CPU, []float64{1, 1, 1}, 0, 10, []string{"same", "same", "total same"}},
		"two levels without spread":     {bench.RSS, []float64{1 << 30, 1 << 30, 1.2 * (1 << 30), 1.2 * (1 << 30)}, 0, 10, []string{"same", "worse", "same", "total worse"}},
		"one patch without spread":      {bench.RSS, []float64{1 << 30, 1.2 * (1 << 30)}, 0, 10, []string{"worse", "total worse"}},
		"all zero":                      {bench.CPU, []float64{0, 0, 0}, .1, 10, []string{"same", "same", "total same"}},
		"small change of memory":        {bench.RSS, []float64{2 << 20, 2<<20 + 100<<10}, .0001, 20, []string{"same", "total same"}},
		"one round":                     {bench.CPU, []float64{1, 2, 2}, .01, 1, []string{"unclear", "unclear", "total unclear"}},
		"too noisy to say":              {bench.Wall, []float64{1, 1, 1}, .3, 10, []string{"unclear", "unclear", "total unclear"}},
		"row that appears":              {bench.CPU, []float64{nan, nan, 1, 1}, .001, 20, []string{"not-measured", "not-measured", "same", "total not-measured"}},
		"row that goes":                 {bench.CPU, []float64{1, 1, nan, nan}, .001, 20, []string{"same", "not-measured", "not-measured", "total not-measured"}},
		"metric that is only shown":     {bench.User, []float64{1, 2}, .01, 20, []string{"shown", "total shown"}},
		"higher is better":              {bench.Metric{Name: "rate", Unit: "op/s"}, []float64{1, 1, 1.1, 1.1}, .01, 20, []string{"same", "better", "same", "total better"}},
		"exact, any difference is real": {bench.Metric{Name: "instructions", Unit: "1"}, []float64{1000, 1001, 1100, 990}, 0, 1, []string{"same", "worse", "better", "total same"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := made(tt.metric, "b", tt.level, tt.n, tt.sd, 5)
			if strings.HasPrefix(name, "row that") {
				// Another row shows that the benchmark ran on all versions.
				s = append(s, made(bench.User, "b", []float64{1, 1, 1, 1}, tt.n, .01, 6)...)
			}
			c := Compare(builtVersions(len(tt.level)), s, nil, fixed(tt.n)).Comparisons[0]
			if d := cmp.Diff(tt.want, words(c)); d != "" {
				t.Errorf("verdicts (-want +got):\n%s%+v", d, c.Steps)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	nan := math.NaN()
	seven := []float64{1, 1, 1.1, 1.1, 1.1, 1.1}
	same := func(n int) *int { return &n }
	tests := map[string]struct {
		level    []float64
		versions func([]bench.Version)
		failures []bench.Failure
		want     []string // verdict, group: reason
	}{
		"does not build, then the change cannot be pinned": {
			level:    []float64{1, 1, nan, 1.1, 1.1, 1.1},
			versions: func(v []bench.Version) { v[2].State = bench.BuildFailed },
			want:     []string{"same", "not-measured: does not build", "worse 2-3", "same", "same", "total worse"},
		},
		"crashes from a patch on": {
			level:    []float64{1, 1, 1, 1, 1, nan},
			failures: []bench.Failure{{N: 5, Benchmark: "b", Signal: "SIGSEGV"}},
			want:     []string{"same", "same", "same", "same", "not-measured: SIGSEGV", "total not-measured: SIGSEGV"},
		},
		"crashes and works again": {
			level:    seven,
			failures: []bench.Failure{{N: 2, Benchmark: "b", Status: 3}},
			want:     []string{"same", "not-measured: exit status 3", "worse 2-3", "same", "same", "total worse"},
		},
		"not run after a crash": {
			level:    []float64{1, 1, 1, nan, nan, nan},
			failures: []bench.Failure{{N: 3, Benchmark: "b", Reason: "timed out after 600 s"}},
			want: []string{"same", "same", "not-measured: timed out after 600 s", "not-measured: not run after timed out after 600 s on 3/5",
				"not-measured: not run after timed out after 600 s on 3/5", "total not-measured: not run after timed out after 600 s on 3/5"},
		},
		"builds that are equal": {
			level: []float64{1, nan, 1.1, nan, nan, 1.1},
			versions: func(v []bench.Version) {
				for n, as := range map[int]int{1: 0, 3: 2, 4: 0} {
					v[n].State, v[n].SameAs = bench.SameBuild, same(as)
				}
			},
			want: []string{"same: same build as base", "worse", "same: same build as 2/5", "better", "worse", "total worse"},
		},
		"base does not build": {
			level:    []float64{nan, 1, 1.1, 1.1, 1.1, 1.1},
			versions: func(v []bench.Version) { v[0].State = bench.BuildFailed },
			want: []string{"not-measured: nothing to compare with: base does not build", "worse", "same", "same", "same",
				"total not-measured: base: does not build"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			versions := builtVersions(6)
			if tt.versions != nil {
				tt.versions(versions)
			}
			c := Compare(versions, made(bench.CPU, "b", tt.level, 30, .005, 2), tt.failures, fixed(30)).Comparisons[0]
			got := words(c)
			for i, s := range append(c.Steps, c.Total) {
				if s.Reason != "" {
					got[i] += ": " + s.Reason
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestRowsAppearAndGo(t *testing.T) {
	nan := math.NaN()
	s := made(bench.CPU, "b", []float64{1, 1, 1, 1}, 20, .002, 1)
	s = append(s, made(bench.Metric{Name: "hits", Unit: "1"}, "b", []float64{1, nan, nan, 1}, 20, .002, 1)...)
	c := Compare(builtVersions(4), s, nil, fixed(20)).Comparisons[1]
	var got []string
	for _, x := range append(c.Steps, c.Total) {
		got = append(got, string(x.Verdict)+": "+x.Reason)
	}
	want := []string{"not-measured: gone", "not-measured: no such figure", "not-measured: added", "same: "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The rounds that do not count must not move a figure.
func TestIncompleteRoundsAreLeftOut(t *testing.T) {
	s := made(bench.CPU, "b", []float64{1, 1.1, 1.1}, 12, .01, 3)
	want := Compare(builtVersions(3), s, nil, fixed(12))
	more := append([]bench.Sample{}, s...)
	for r := 13; r < 20; r++ {
		x := bench.Sample{Round: r, Version: r % 3, Benchmark: "b", Metric: "cpu", Unit: "s", Value: 50}
		more = append(more, x)
		x.Version, x.Discarded = (r+1)%3, "stall"
		more = append(more, x)
	}
	if d := cmp.Diff(want, Compare(builtVersions(3), more, nil, fixed(12))); d != "" {
		t.Errorf("incomplete and discarded rounds changed the result:\n%s", d)
	}
	if got := want.Comparisons[0].Rounds; got != 12 {
		t.Errorf("rounds = %d, want 12", got)
	}
}

func TestTwinWithdraws(t *testing.T) {
	s := made(bench.CPU, "b", []float64{1, 1, 1.1, 1.1}, 20, .01, 3)
	twin := func(by float64) []bench.Sample {
		out := append([]bench.Sample{}, s...)
		rng := rand.New(rand.NewPCG(4, 4))
		for _, x := range s {
			if x.Version == 0 {
				x.Twin, x.Value = true, x.Value*by*math.Exp(.01*rng.NormFloat64())
				out = append(out, x)
			}
		}
		return out
	}
	equal := Compare(builtVersions(4), twin(1), nil, fixed(20)).Comparisons[0]
	plain := Compare(builtVersions(4), s, nil, fixed(20)).Comparisons[0]
	if d := cmp.Diff(plain, equal); d != "" {
		t.Errorf("an equal twin entered the comparison:\n%s", d)
	}
	off := Compare(builtVersions(4), twin(1.05), nil, fixed(20)).Comparisons[0]
	if off.Steps[1].Verdict != bench.Unclear || !strings.Contains(off.Steps[1].Reason, "withdrawn: base and a second copy of it") || len(off.Warnings) == 0 {
		t.Errorf("a differing twin must withdraw the change: %+v, warnings %q", off.Steps[1], off.Warnings)
	}
}

// withTwin adds base's twin to the samples of a row of four versions.
func withTwin(s []bench.Sample, by, sd float64, seed uint64) []bench.Sample {
	out := slices.Clone(s)
	rng := rand.New(rand.NewPCG(seed, 4))
	round := map[int]float64{} // the patched versions' mean
	for _, x := range s {
		if x.Version > 0 {
			round[x.Round] += x.Value / 3
		}
	}
	for _, x := range s {
		if x.Version == 0 {
			x.Twin, x.Value = true, by*round[x.Round]*math.Exp(sd*rng.NormFloat64())
			out = append(out, x)
		}
	}
	return out
}

// TestOddBase: base's copy may be odd, by how its files lie in memory. A change from
// it that its twin does not show is no patch's, also among so many rows and in so
// few rounds that base against twin is not beyond chance. One that both show stays.
func TestOddBase(t *testing.T) {
	var others []bench.Sample
	for i := range 40 {
		others = append(others, made(bench.CPU, fmt.Sprint("other", i), []float64{1, 1, 1, 1}, 10, .02, uint64(100+i))...)
	}
	for name, tt := range map[string]struct {
		level []float64
		twin  float64 // against the mean of the patched versions
		want  []string
	}{
		"base is odd": {[]float64{1.06, 1, 1, 1}, 1, []string{"unclear", "unclear", "unclear", "total unclear"}},
		"patch 1":     {[]float64{1.06, 1, 1, 1}, 1.06, []string{"better", "unclear", "unclear", "total better"}},
	} {
		t.Run(name, func(t *testing.T) {
			row := withTwin(made(bench.CPU, "b", tt.level, 10, .02, 3), tt.twin, .02, 5)
			c := Compare(builtVersions(4), append(row, others...), nil, fixed(10)).Comparisons[0]
			if d := cmp.Diff(tt.want, words(c)); d != "" {
				t.Errorf("(-want +got):\n%s%+v\nwarnings %q", d, c.Steps, c.Warnings)
			}
			odd := strings.HasPrefix(name, "base is odd")
			if withdrawn := strings.Contains(c.Steps[0].Reason, "withdrawn: from a second copy of base it is "); withdrawn != odd || (len(c.Warnings) > 0) != odd {
				t.Errorf("reason %q, warnings %q", c.Steps[0].Reason, c.Warnings)
			}
		})
	}
}

// TestTwinCostsLittle: of changes at patch 1 that are just found, few are withdrawn
// because of what chance does to the twin.
func TestTwinCostsLittle(t *testing.T) {
	found, kept := 0, 0
	for i := range 300 {
		s := made(bench.CPU, "b", []float64{1, 1.03, 1.03, 1.03}, 20, .02, uint64(i))
		step := func(s []bench.Sample) bench.Step {
			return Compare(builtVersions(4), s, nil, fixed(20)).Comparisons[0].Steps[0]
		}
		if step(s).Verdict.Changed() {
			found++
			if !strings.Contains(step(withTwin(s, 1/1.03, .02, uint64(i))).Reason, "from a second copy") {
				kept++
			}
		}
	}
	t.Logf("%d of 300 found, %d of them kept", found, kept)
	if found < 100 || kept < found*99/100 {
		t.Errorf("%d of 300 changes found, %d of them kept", found, kept)
	}
}

func TestExactThatDoesNotRepeat(t *testing.T) {
	m := bench.MetricFor("instructions", "1")
	s := made(m, "b", []float64{1e6, 1e6, 1.1e6}, 1, 0, 1)
	again := s[0]
	for _, x := range s {
		if x.Version == 0 {
			again = x
		}
	}
	again.Round, again.Value = 2, again.Value+7
	c := Compare(builtVersions(3), append(s, again), nil, fixed(10)).Comparisons[0]
	if c.Exact || len(c.Warnings) != 1 {
		t.Errorf("exact = %v, warnings = %q; want a demoted row with a warning", c.Exact, c.Warnings)
	}
	if d := cmp.Diff([]string{"unclear", "unclear", "total unclear"}, words(c)); d != "" {
		t.Errorf("verdicts (-want +got):\n%s", d)
	}
}

// Counters that are taken in the ordinary rounds, or in ten of their own, are judged as
// noisy figures; only the former ask for further rounds.
func TestExactInRounds(t *testing.T) {
	m := bench.MetricFor("instructions", "1")
	level := []float64{1e6, 1e6, 1.03e6}
	for name, tt := range map[string]struct {
		placed   bool
		sd       float64
		rounds   int
		final    bool
		want     []string
		warnings int
		open     bool
	}{
		"in ordinary rounds":              {true, .0003, 10, true, []string{"same", "worse", "total worse"}, 0, false},
		"in rounds of their own":          {false, .0003, 10, true, []string{"same", "worse", "total worse"}, 1, false},
		"in too few ordinary rounds":      {true, .05, 10, false, []string{"unclear", "unclear", "total unclear"}, 0, true},
		"in too few rounds of their own":  {false, .05, 10, false, []string{"unclear", "unclear", "total unclear"}, 1, false},
		"always the same in their rounds": {true, 0, 10, true, []string{"same", "worse", "total worse"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := made(m, "b", level, tt.rounds, tt.sd, 3)
			for i := range s {
				if place := i % len(level); tt.placed {
					s[i].Position = &place
				}
			}
			res := Compare(builtVersions(3), s, nil, Options{Seed: 1, Final: tt.final})
			c := res.Comparisons[0]
			if c.Exact != (tt.sd == 0) || len(c.Warnings) != tt.warnings {
				t.Errorf("exact = %v, warnings = %q", c.Exact, c.Warnings)
			}
			if d := cmp.Diff(tt.want, words(c)); d != "" {
				t.Errorf("verdicts (-want +got):\n%s", d)
			}
			if open := len(res.Needs(bench.Benchmark{Name: "b"})) > 0; open != tt.open {
				t.Errorf("asks for further rounds: %t", open)
			}
		})
	}
}

func TestLooks(t *testing.T) {
	o := Options{Seed: 1}
	level := []float64{1, 1, 1.08, 1.08}
	all := made(bench.CPU, "b", level, 80, .01, 8)
	first := func(n int) []bench.Sample { return all[:n*len(level)] }
	t.Run("before the first look nothing is said", func(t *testing.T) {
		r := Compare(builtVersions(4), first(6), nil, o)
		if d := cmp.Diff([]string{"unclear", "unclear", "unclear", "total unclear"}, words(r.Comparisons[0])); d != "" {
			t.Error(d)
		}
		if len(r.Open) != 1 || r.Open[0].Benchmark != "b" || r.Open[0].Needed < 10 {
			t.Errorf("open = %+v, want b with at least 10 rounds", r.Open)
		}
	})
	t.Run("found at the first look stays found", func(t *testing.T) {
		for _, n := range []int{10, 12, 15, 33, 80} {
			c := Compare(builtVersions(4), first(n), nil, o).Comparisons[0]
			if c.Steps[1].Verdict != bench.Worse {
				t.Errorf("n = %d: step 2 is %s", n, c.Steps[1].Verdict)
			}
		}
	})
	t.Run("decided rows are closed", func(t *testing.T) {
		r := Compare(builtVersions(4), first(60), nil, o)
		if len(r.Open) != 0 {
			t.Errorf("open = %+v, comparison %+v", r.Open, r.Comparisons[0].Steps)
		}
	})
	t.Run("a hopeless row is given up", func(t *testing.T) {
		s := made(bench.Wall, "b", []float64{1, 1, 1}, 20, .5, 4)
		if r := Compare(builtVersions(3), s, nil, o); len(r.Open) != 0 {
			t.Errorf("open = %+v", r.Open)
		}
	})
}

func TestPlan(t *testing.T) {
	at := func(n int, a float64) look { return look{n, a} }
	tests := map[string]struct {
		o    Options
		n    int
		want []look
	}{
		"too early":           {Options{}, 9, nil},
		"first":               {Options{}, 14, []look{at(10, .0125)}},
		"ended between looks": {Options{Final: true}, 12, []look{at(10, .0125), at(12, .0075)}},
		"ended early":         {Options{Final: true}, 6, []look{at(6, .0125)}},
		"ended at one":        {Options{Final: true}, 1, nil},
		"fixed":               {Options{Looks: []int{20}}, 20, []look{at(20, .05)}},
		"beyond the last":     {Options{Looks: []int{20}, Final: true}, 25, []look{at(25, .05)}},
	}
	for name, tt := range tests {
		got := tt.o.plan().due(tt.n)
		for i := range got {
			got[i].alpha = math.Round(got[i].alpha*1e6) / 1e6
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(look{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestWarnings(t *testing.T) {
	level := []float64{1, 1, 1, 1}
	mode := made(bench.CPU, "b", level, 30, .005, 1)
	rng := rand.New(rand.NewPCG(1, 7))
	for i := range mode {
		if rng.IntN(3) == 0 {
			mode[i].Value *= 1.3
		}
	}
	speed := made(bench.CPU, "b", level, 30, .005, 1)
	for i := range speed {
		if speed[i].Round > 12 {
			speed[i].Value *= 1.4
		}
	}
	tests := map[string]struct {
		s    []bench.Sample
		want string
	}{
		"two modes":      {mode, "two modes"},
		"machine slowed": {speed, "from round 13 on"},
		"plain":          {made(bench.CPU, "b", level, 30, .1, 1), ""},
	}
	for name, tt := range tests {
		c := Compare(builtVersions(4), tt.s, nil, fixed(30)).Comparisons[0]
		got := strings.Join(c.Warnings, "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: warnings %q, want %q", name, got, tt.want)
		}
		for _, s := range c.Steps {
			if flagged(s) {
				t.Errorf("%s: false %s at %d", name, s.Verdict, s.N)
			}
		}
	}
}

// The level of all versions shifts when the machine changes its speed; drift, a
// patch and plain noise are none of that.
func TestSpeedChange(t *testing.T) {
	shifted := func(by float64, from, to int) func(s *bench.Sample) {
		return func(s *bench.Sample) {
			if s.Round >= from && s.Round < to {
				s.Value *= 1 + by
			}
		}
	}
	for _, c := range []struct {
		name   string
		rounds int
		sd     float64
		change func(*bench.Sample)
		want   string
	}{
		{"slower", 20, .01, shifted(.3, 9, 99), "from round 9 on all versions are (29|30|31) % higher: the machine changed its speed"},
		{"faster", 20, .01, shifted(-.2, 15, 99), "from round 15 on all versions are (19|20|21) % lower: the machine changed its speed"},
		{"a little", 40, .005, shifted(.06, 21, 99), "from round 21 on all versions are 6 % higher: the machine changed its speed"},
		{"in a noisy row", 40, .04, shifted(.5, 21, 99), "from round 21 on all versions are (4[7-9]|5[0-3]) % higher: the machine changed its speed"},
		{"less than worth a word", 20, .002, shifted(.03, 11, 99), ""},
		{"one round only", 20, .01, shifted(.3, 11, 12), ""},
		{"drift", 20, .01, func(s *bench.Sample) { s.Value *= 1 + .01*float64(s.Round) }, ""},
		{"noise", 20, .3, shifted(0, 0, 0), ""},
		{"a patch", 20, .01, func(s *bench.Sample) {
			if s.Version >= 2 {
				s.Value *= 1.3
			}
		}, ""},
		{"too few rounds to tell", 6, .01, shifted(.3, 4, 99), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				s := made(bench.CPU, "b", []float64{1, 1, 1, 1}, c.rounds, c.sd, seed)
				for i := range s {
					c.change(&s[i])
				}
				var got []string
				for _, w := range Compare(builtVersions(4), s, nil, Options{Seed: seed, Final: true}).Comparisons[0].Warnings {
					if strings.Contains(w, "speed") {
						got = append(got, w)
					}
				}
				text := strings.Join(got, "; ")
				if ok, err := regexp.MatchString("^"+c.want+"$", text); err != nil || !ok {
					t.Errorf("seed %d: %q, want %q", seed, text, c.want)
				}
			}
		})
	}
}

func TestWaits(t *testing.T) {
	run := func(name string, rounds int, psi func(round int) float64) []bench.Sample {
		s := made(bench.Wall, name, []float64{2, 2}, rounds, 0, 1)
		for i := range s {
			if x := psi(s[i].Round); x != -1 {
				s[i].Covariates = map[string]float64{"psi_ns": x}
			}
		}
		return s
	}
	some := func(of int) func(int) float64 {
		return func(round int) float64 {
			if round <= of {
				return 1.5e9
			}
			return 1e8
		}
	}
	unknown := func(int) float64 { return -1 }
	for name, c := range map[string]struct {
		s    []bench.Sample
		want []string
	}{
		"idle":     {run("a", 20, some(0)), nil},
		"a hiccup": {run("a", 20, some(1)), nil},
		"unknown":  {run("a", 20, unknown), nil},
		"busy":     {run("a", 20, some(5)), []string{"a: in 10 of 40 runs programs waited for a CPU for more than half of the time"}},
		"in some": {slices.Concat(run("a", 10, some(10)), run("b", 10, some(0)), run("c", 10, some(2))),
			[]string{"a and c: in 24 of 40 runs programs waited for a CPU for more than half of the time"}},
		"in many": {slices.Concat(run("a", 2, some(2)), run("b", 2, some(2)), run("c", 2, some(2)), run("d", 2, some(2)), run("e", 2, some(2)), run("f", 2, some(0))),
			[]string{"a, b, c and 2 more: in 20 of 20 runs programs waited for a CPU for more than half of the time"}},
		"in all": {slices.Concat(run("a", 2, some(2)), run("b", 2, some(2)), run("c", 2, some(2)), run("d", 2, some(2))),
			[]string{"all benchmarks: in 16 of 16 runs programs waited for a CPU for more than half of the time"}},
	} {
		if d := cmp.Diff(c.want, Compare(builtVersions(2), c.s, nil, Options{}).Warnings); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestNoInput(t *testing.T) {
	for name, r := range map[string]Result{
		"nothing":     Compare(nil, nil, nil, Options{}),
		"no samples":  Compare(builtVersions(3), nil, nil, Options{}),
		"no versions": Compare(nil, made(bench.CPU, "b", []float64{1, 1}, 3, .1, 1), nil, Options{}),
	} {
		if want := map[bool]int{true: 1}[name == "no versions"]; len(r.Comparisons) != want {
			t.Errorf("%s: %d comparisons, want %d", name, len(r.Comparisons), want)
		}
	}
}
