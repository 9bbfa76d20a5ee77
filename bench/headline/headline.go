// Package headline says in one line what an evaluation found: which patches
// changed what, by how much, and what does not build or work any more. It reads
// verdicts (bench/compare) and draws no conclusions of its own.
package headline

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
)

// Of gives the verdict of a whole evaluation and one line about it for a
// maintainer, of at most 144 characters where one finding fits in:
//
//	worse: 2/5 makes hash 5.1 % slower (cpu); 3/5 makes table use 19.8 % more memory (rss)
//	no change: 4 benchmarks, all within 1.0 %
//	unclear: 3 of 12 rows undecided: sort (cpu) -0.4 .. +1.6 % at 2/5, needs about 60 rounds
//	does not build: 4/5; no change in the others: 4 benchmarks, all within 1.0 %
//
// A benchmark that works on an earlier version and fails on a later one makes
// the verdict worse and comes first, unless it is flaky. Wall time that follows
// cpu time of the same benchmark at the same patch is not told twice, and rows
// that differ in their parameters alone are told together. Where the line is too
// short for all, what gets worse and then what changes most is told, and the
// rest counted. What could not be measured at all is told too, and the verdict
// is failed when that is everything: a lack of figures is never "no change".
func Of(versions []bench.Version, comparisons []bench.Comparison, failures []bench.Failure) (bench.Verdict, string) {
	s := summary{versions: versions, failures: failures}
	for _, v := range versions {
		s.last = max(s.last, v.N)
	}
	for _, c := range comparisons {
		s.row(c)
	}
	s.dropFollowers()
	s.joinParameters()
	better, worse := false, false
	for _, f := range s.findings {
		better = better || f.better
		worse = worse || !f.better
	}
	broken, unbuilt := s.broken(), s.unbuilt()
	worse = worse || len(broken) > 0
	// What does not build or work any more comes before what got slower.
	var told []finding
	add := func(texts ...string) {
		for _, text := range texts {
			told = append(told, finding{text: text, first: true})
		}
	}
	if worse && unbuilt != "" {
		add(unbuilt)
	}
	add(broken...)
	told = append(told, s.findings...)
	if better && !worse && unbuilt != "" {
		add(unbuilt)
	}
	quiet := "" // what is said before a verdict that has nothing else to tell
	if list := s.failedBuilds(); len(list) > 0 {
		quiet = "does not build: " + s.names(list) + "; "
	} else if unbuilt != "" {
		quiet = unbuilt + "; "
	}
	switch {
	case s.nothing() && len(broken) == 0:
		return bench.FailedSeries, "failed: " + s.noFigures()
	case better && worse:
		add(s.dead()...)
		return bench.Mixed, line("mixed: ", told)
	case worse:
		add(s.dead()...)
		return bench.Worse, line("worse: ", told)
	case better:
		add(s.dead()...)
		return bench.Better, line("better: ", told)
	case s.undecided():
		add(s.unclearText())
		add(s.dead()...)
		return bench.Unclear, line(quiet+"unclear: ", told)
	}
	add(s.sameText())
	add(s.dead()...)
	if quiet != "" {
		return bench.Same, line(quiet+"no change in the others: ", told)
	}
	return bench.Same, line("no change: ", told)
}

type summary struct {
	versions []bench.Version
	failures []bench.Failure
	last     int

	findings   []finding
	benchmarks []string
	tested     int // rows
	unclear    []bench.Comparison
	wallOnly   int     // unclear rows of wall time whose cpu time is the same
	widest     float64 // the furthest end of the intervals of what is the same
	decided    map[string]bool
	figures    map[string]bool // benchmarks of which some step has a figure
}

// finding is a change of one row at one patch or somewhere in a group.
type finding struct {
	n, to     int // both 0 for a change of the series as a whole
	row       string
	c         *bench.Comparison
	better    bool
	change    float64 // may be NaN
	text      string
	magnitude float64
	first     bool // told before what only changes
}

func (s *summary) row(c bench.Comparison) {
	key := bench.RowName(c.Benchmark, c.Params)
	if !slices.Contains(s.benchmarks, key) {
		s.benchmarks = append(s.benchmarks, key)
	}
	if !c.Tested {
		return
	}
	if !slices.ContainsFunc(append(slices.Clone(c.Steps), c.Total), hasFigure) {
		return
	}
	if s.figures == nil {
		s.figures = map[string]bool{}
	}
	s.figures[key] = true
	s.tested++
	unclear, any := false, false
	for _, st := range append(slices.Clone(c.Steps), c.Total) {
		switch {
		case st.Verdict.Changed() && (st.N != c.Total.N || !any || len(c.Steps) == 0 || !sameStep(st, c.Total)):
			any = true
			f := s.finding(key, c, st)
			if n := len(s.findings); n > 0 && f.n < f.to && s.findings[n-1].row == key && s.findings[n-1].c.Metric == c.Metric &&
				s.findings[n-1].n == f.n && s.findings[n-1].to == f.to {
				continue // each patch of a group carries the group's change
			}
			s.findings = append(s.findings, f)
		case st.Verdict == bench.Unclear:
			unclear = true
		case st.Verdict == bench.Same && st.Lo != nil && st.Hi != nil:
			s.widest = max(s.widest, math.Abs(*st.Lo), math.Abs(*st.Hi))
		}
	}
	if unclear && !any {
		s.unclear = append(s.unclear, c)
	} else {
		if s.decided == nil {
			s.decided = map[string]bool{}
		}
		s.decided[key+" "+c.Metric] = true
	}
}

// hasFigure says that a step was measured: between equal builds nothing need be.
func hasFigure(st bench.Step) bool {
	return st.Verdict == bench.Unclear || st.Verdict.Changed() ||
		st.Verdict == bench.Same && !strings.HasPrefix(st.Reason, bench.SameBuildReason)
}

func sameStep(a, b bench.Step) bool {
	return a.N == b.N && a.Change == b.Change && a.P == b.P && slices.Equal(a.Group, b.Group)
}

func (s *summary) finding(key string, c bench.Comparison, st bench.Step) finding {
	f := finding{n: st.N, to: st.N, row: key, c: &c, better: st.Verdict == bench.Better, change: math.NaN()}
	if st.Change != nil {
		f.change = *st.Change
		f.magnitude = math.Abs(*st.Change) * c.Matters()
	}
	if len(st.Group) == 2 && st.Group[0] < st.Group[1] {
		f.n, f.to = st.Group[0], st.Group[1]
	} else if n := len(c.Steps); n > 1 && !c.Steps[n-1].Verdict.Changed() && st.N == c.Total.N {
		f.n, f.to = 0, 0
	}
	f.text = s.words(f, key, "", "")
	return f
}

// joinParameters tells rows of one benchmark that change alike at one patch, and
// differ in their parameters alone, in one finding: that of the largest change.
func (s *summary) joinParameters() {
	type key struct {
		n, to     int
		benchmark string
		metric    string
		better    bool
	}
	of := func(f finding) key { return key{f.n, f.to, f.c.Benchmark, f.c.Metric, f.better} }
	same := map[key][]finding{}
	for _, f := range s.findings {
		same[of(f)] = append(same[of(f)], f)
	}
	told := map[key]bool{}
	s.findings = slices.DeleteFunc(s.findings, func(f finding) bool {
		gone := told[of(f)]
		told[of(f)] = true
		return gone
	})
	for i, f := range s.findings {
		list := same[of(f)]
		if len(list) < 2 {
			continue
		}
		before := ""
		for _, g := range list {
			if percent(g.change) != percent(f.change) {
				before = "up to "
			}
		}
		s.findings[i].text = s.words(f, f.c.Benchmark, before, " in "+strconv.Itoa(len(list))+" rows")
	}
}

func (s *summary) name(n int) string {
	for _, v := range s.versions {
		if v.N == n {
			return v.Label(s.last)
		}
	}
	return bench.Version{N: n}.Label(max(n, s.last))
}

// dropFollowers takes out wall time where cpu time says the same, and a row's
// total where one of its steps was told, and sorts by patch.
func (s *summary) dropFollowers() {
	s.findings = slices.DeleteFunc(s.findings, func(f finding) bool {
		if f.c.Metric != bench.Wall.Name {
			return false
		}
		return slices.ContainsFunc(s.findings, func(g finding) bool {
			return g.c.Metric == bench.CPU.Name && g.row == f.row && g.better == f.better && g.n <= f.to && f.n <= g.to
		})
	})
	slices.SortStableFunc(s.findings, func(a, b finding) int {
		if a.n != b.n {
			if a.n == 0 || b.n == 0 {
				return b.n - a.n // what no patch is known for comes last
			}
			return a.n - b.n
		}
		switch {
		case a.magnitude > b.magnitude:
			return -1
		case a.magnitude < b.magnitude:
			return 1
		}
		return 0
	})
}

// broken tells of benchmarks that fail on a patch and did not fail before.
func (s *summary) broken() []string {
	first := map[string]bench.Failure{}
	var order []string
	for _, f := range s.failures {
		g, ok := first[f.Benchmark]
		if !ok {
			order = append(order, f.Benchmark)
		}
		if !ok || f.N < g.N {
			first[f.Benchmark] = f
		}
	}
	var out []string
	for _, b := range order {
		f := first[b]
		if f.N == 0 || f.Flaky {
			continue
		}
		out = append(out, b+" fails on "+s.name(f.N)+" ("+shortly(f)+")")
	}
	return out
}

// dead tells of benchmarks without any figure, which fail on base or were not
// run; those that a patch breaks are told by broken.
func (s *summary) dead() []string {
	told := map[string]string{}
	for _, f := range s.failures {
		switch {
		case f.N == 0:
			told[f.Benchmark] = f.Benchmark + " fails on base (" + shortly(f) + ")"
		case f.Flaky && told[f.Benchmark] == "":
			told[f.Benchmark] = f.Benchmark + " is flaky on " + s.name(f.N) + " (" + shortly(f) + ")"
		case told[f.Benchmark] == "":
			told[f.Benchmark] = "-"
		}
	}
	var out []string
	for _, b := range s.benchmarks {
		switch text := told[b]; {
		case s.figures[b] || text == "-" || text == "" && s.allSame():
		case text != "":
			out = append(out, text)
		default:
			out = append(out, b+" was not measured")
		}
	}
	return out
}

// failedBuilds are the versions that do not build.
func (s *summary) failedBuilds() []int {
	var out []int
	for _, v := range s.versions {
		if v.State == bench.BuildFailed {
			out = append(out, v.N)
		}
	}
	return out
}

// nothing says that base or all patches have no build.
func (s *summary) nothing() bool {
	if len(s.versions) == 0 {
		return s.tested == 0
	}
	base, patched := false, false
	for _, v := range s.versions {
		ok := v.State == bench.Built || v.State == bench.SameBuild
		base = base || ok && v.N == 0
		patched = patched || ok && v.N > 0
	}
	return !base || !patched || s.tested == 0 && !s.allSame()
}

// allSame says that no patch that builds changes the build.
func (s *summary) allSame() bool {
	same := false
	for _, v := range s.versions {
		switch {
		case v.N == 0 || v.State == bench.BuildFailed:
		case v.State != bench.SameBuild:
			return false
		default:
			same = true
		}
	}
	return same
}

// undecided says that some row may have changed. Wall time alone does not count
// where cpu time of the same benchmark is known to be the same: on a busy
// machine wall time is never decided.
func (s *summary) undecided() bool {
	s.wallOnly = 0
	for _, c := range s.unclear {
		if c.Metric == bench.Wall.Name && s.decided[bench.RowName(c.Benchmark, c.Params)+" "+bench.CPU.Name] {
			s.wallOnly++
		}
	}
	return len(s.unclear) > s.wallOnly
}
