package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"patchbench/bench"
)

// lineWidth is what a headline should keep to, in characters: two lines of a
// mail.
const lineWidth = 144

// Summary gives the verdict of a whole evaluation and one line about it for a
// maintainer, of at most 144 characters where one finding fits in:
//
//	worse: 2/5 makes hash 5.1 % slower (cpu); 3/5 makes table use 19.8 % more memory (rss)
//	no change: 4 benchmarks, all within 1.0 %
//	unclear: 3 of 12 rows undecided: sort (cpu) needs about 60 rounds
//
// A benchmark that works on an earlier version and fails on a later one makes
// the verdict worse and comes first, unless it is flaky. Wall time that follows
// cpu time of the same benchmark at the same patch is not told twice. What could
// not be measured at all is told too, and the verdict is failed when that is
// everything: a lack of figures is never "no change".
func Summary(versions []bench.Version, comparisons []bench.Comparison, failures []bench.Failure) (bench.Verdict, string) {
	s := summary{versions: versions, failures: failures}
	for _, v := range versions {
		s.last = max(s.last, v.N)
	}
	for _, c := range comparisons {
		s.row(c)
	}
	s.dropFollowers()
	better, worse := false, false
	for _, f := range s.findings {
		better = better || f.better
		worse = worse || !f.better
	}
	broken, unbuilt := s.broken(), s.unbuilt()
	worse = worse || len(broken) > 0
	// What does not work any more comes before what got slower.
	told := broken
	for _, f := range s.findings {
		told = append(told, f.text)
	}
	unbuilt = append(unbuilt, s.dead()...)
	switch {
	case s.nothing() && len(broken) == 0:
		return bench.FailedSeries, "failed: " + s.noFigures()
	case better && worse:
		return bench.Mixed, line("mixed: ", append(told, unbuilt...))
	case worse:
		return bench.Worse, line("worse: ", append(told, unbuilt...))
	case better:
		return bench.Better, line("better: ", append(told, unbuilt...))
	case s.undecided():
		return bench.Unclear, line("unclear: ", append([]string{s.unclearText()}, unbuilt...))
	}
	return bench.Same, line("no change: ", append([]string{s.sameText()}, unbuilt...))
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
	n, to     int
	row       string
	metric    string
	better    bool
	text      string
	magnitude float64
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
		case changed(st) && (st.N != c.Total.N || !any || len(c.Steps) == 0 || !sameStep(st, c.Total)):
			any = true
			s.findings = append(s.findings, s.finding(key, c, st))
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
	return st.Verdict == bench.Unclear || changed(st) ||
		st.Verdict == bench.Same && !strings.HasPrefix(st.Reason, sameBuild)
}

func sameStep(a, b bench.Step) bool {
	return a.N == b.N && a.Change == b.Change && a.P == b.P && slices.Equal(a.Group, b.Group)
}

func (s *summary) finding(key string, c bench.Comparison, st bench.Step) finding {
	f := finding{n: st.N, to: st.N, row: key, metric: c.Metric, better: st.Verdict == bench.Better}
	where := s.name(st.N)
	if len(st.Group) == 2 && st.Group[0] < st.Group[1] {
		f.n, f.to = st.Group[0], st.Group[1]
		where = ""
	}
	ch := math.NaN()
	if st.Change != nil {
		ch = *st.Change
		f.magnitude = math.Abs(ch)
	}
	if where != "" {
		f.text = where + " makes " + key + " " + effectText(c, ch, true)
		return f
	}
	f.text = key + " " + effectText(c, ch, false) + ", somewhere in " + patches(st.Group)
	return f
}

// effectText words a change of a metric; made stands behind "makes NAME".
func effectText(c bench.Comparison, ch float64, made bool) string {
	size := "much "
	if !math.IsNaN(ch) {
		size = percent(ch) + " "
	}
	up := ch > 0
	if math.IsNaN(ch) {
		up = (c.Total.Verdict == bench.Better) == (c.Better == bench.Higher)
	}
	pick := func(a, b string) string {
		if up {
			return a
		}
		return b
	}
	use := func(what string) string {
		verb := pick("uses ", "uses ")
		if made {
			verb = "use "
		}
		return verb + size + pick("more ", "less ") + what + " (" + c.Metric + ")"
	}
	switch {
	case c.Metric == bench.RSS.Name || c.Metric == "heap" || c.Metric == "malloc" || c.Unit == "B/op":
		return use("memory")
	case c.Unit == bench.Second || strings.HasSuffix(c.Unit, "s/op") || strings.HasSuffix(c.Unit, "sec/op"):
		verb := "gets "
		if made {
			verb = ""
		}
		return verb + size + pick("slower", "faster") + " (" + c.Metric + ")"
	case strings.HasSuffix(c.Unit, "/s"):
		verb := "gets "
		if made {
			verb = ""
		}
		return verb + size + pick("faster", "slower") + " (" + c.Metric + ")"
	}
	return use(c.Metric)[:len(use(c.Metric))-len(" ("+c.Metric+")")]
}

func percent(ch float64) string {
	digits := 1
	if math.Abs(ch) < .00095 {
		digits = 2
	} else if math.Abs(ch) >= .995 {
		digits = 0
	}
	return strconv.FormatFloat(100*math.Abs(ch), 'f', digits, 64) + " %"
}

func (s *summary) name(n int) string {
	for _, v := range s.versions {
		if v.N == n {
			return label(v, s.last)
		}
	}
	return label(bench.Version{N: n}, max(n, s.last))
}

// dropFollowers takes out wall time where cpu time says the same, and a row's
// total where one of its steps was told, and sorts by patch.
func (s *summary) dropFollowers() {
	s.findings = slices.DeleteFunc(s.findings, func(f finding) bool {
		if f.metric != bench.Wall.Name {
			return false
		}
		return slices.ContainsFunc(s.findings, func(g finding) bool {
			return g.metric == bench.CPU.Name && g.row == f.row && g.better == f.better && g.n <= f.to && f.n <= g.to
		})
	})
	slices.SortStableFunc(s.findings, func(a, b finding) int {
		if a.n != b.n {
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

// shortly says how a benchmark failed, without in how many of its runs.
func shortly(f bench.Failure) string {
	why, _, _ := strings.Cut(bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String(), " (")
	return why
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
		case s.figures[b] || text == "-":
		case text != "":
			out = append(out, text)
		default:
			out = append(out, b+" was not measured")
		}
	}
	return out
}

func (s *summary) unbuilt() []string {
	var out []string
	for _, v := range s.versions {
		if v.State == bench.BuildFailed {
			out = append(out, s.name(v.N)+" does not build")
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

func (s *summary) noFigures() string {
	for _, v := range s.versions {
		if v.N == 0 && v.State == bench.BuildFailed {
			return "base does not build"
		}
	}
	if u := s.unbuilt(); len(u) > 0 {
		return "no patch could be built and measured: " + strings.Join(u, ", ")
	}
	if b := append(s.broken(), s.dead()...); len(b) > 0 && len(b) <= 3 {
		return strings.Join(b, ", ")
	}
	return "nothing could be measured"
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

func (s *summary) unclearText() string {
	var pick *bench.Comparison
	for i, c := range s.unclear {
		if pick == nil || c.Metric == bench.CPU.Name && pick.Metric != bench.CPU.Name {
			pick = &s.unclear[i]
		}
	}
	reason := ""
	for _, st := range pick.Steps {
		if st.Verdict == bench.Unclear {
			reason = st.Reason
			break
		}
	}
	if reason == "" {
		reason = pick.Total.Reason
	}
	return fmt.Sprintf("%d of %d rows undecided: %s (%s) %s", len(s.unclear), s.tested,
		bench.RowName(pick.Benchmark, pick.Params), pick.Metric, reason)
}

func (s *summary) sameText() string {
	if s.allSame() {
		return "every patch " + map[bool]string{true: "that builds gives", false: "builds"}[len(s.unbuilt()) > 0] + " the same program as base"
	}
	text := fmt.Sprintf("%d benchmarks, all within %s", len(s.figures), percent(s.widest))
	if len(s.figures) == 1 {
		text = "1 benchmark, within " + percent(s.widest)
	}
	if s.wallOnly > 0 {
		text += "; wall time too noisy to say"
	}
	return text
}

// line joins what is told until the line is full.
func line(head string, told []string) string {
	out := head + told[0]
	for i, t := range told[1:] {
		if utf8.RuneCountInString(out)+utf8.RuneCountInString(t)+2 > lineWidth {
			return out + fmt.Sprintf("; %d more", len(told)-1-i)
		}
		out += "; " + t
	}
	return out
}
