package headline

import (
	"cmp"
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

// words say what a finding does to name; before stands in front of the size, and
// behind at the end of it.
func (s *summary) words(f finding, name, before, behind string) string {
	switch {
	case f.n < f.to:
		return name + " " + effectText(*f.c, f.change, before, false) + behind + ", somewhere in " + "patches " + strconv.Itoa(f.n) + "-" + strconv.Itoa(f.to)
	case s.last == 1:
		return name + " " + effectText(*f.c, f.change, before, false) + behind
	case f.n == 0:
		return name + " " + effectText(*f.c, f.change, before, false) + behind + " over the whole series"
	}
	return s.name(f.n) + " makes " + name + " " + effectText(*f.c, f.change, before, true) + behind
}

// effectText words a change of a metric; before stands in front of its size, and
// with made it stands behind "makes NAME".
func effectText(c bench.Comparison, ch float64, before string, made bool) string {
	size := "much "
	if !math.IsNaN(ch) {
		size = before + percent(ch) + " "
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
	use, get, copies := "uses ", "gets ", "copies "
	if made {
		use, get, copies = "use ", "", "copy "
	}
	switch {
	case c.Metric == bench.RSS.Name || c.Metric == "heap" || c.Metric == "malloc" || c.Unit == "B/op":
		return use + size + pick("more ", "less ") + "memory (" + c.Metric + ")"
	case c.Metric == "copied":
		return copies + size + pick("more", "less") + " memory (" + c.Metric + ")"
	case c.Unit == bench.Second || strings.HasSuffix(c.Unit, "s/op") || strings.HasSuffix(c.Unit, "sec/op"):
		return get + size + pick("slower", "faster") + " (" + c.Metric + ")"
	case strings.HasSuffix(c.Unit, "/s"):
		return get + size + pick("faster", "slower") + " (" + c.Metric + ")"
	}
	return use + size + pick("more ", "fewer ") + c.Metric
}

// percent is a change without its sign: "5.1 %", from tenfold on "15.2x".
func percent(ch float64) string {
	digits := 1
	switch {
	case ch >= 9:
		return strconv.FormatFloat(1+ch, 'f', 1, 64) + "x"
	case math.Abs(ch) < .00095:
		digits = 2
	case math.Abs(ch) >= .995:
		digits = 0
	}
	return strconv.FormatFloat(100*math.Abs(ch), 'f', digits, 64) + " %"
}

// shortly says how a benchmark failed, without in how many of its runs.
func shortly(f bench.Failure) string {
	why, _, _ := strings.Cut(bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String(), " (")
	return why
}

// names lists versions, the first three of them.
func (s *summary) names(list []int) string {
	var out []string
	for i, n := range list {
		if i == 2 && len(list) > 3 {
			out = append(out, strconv.Itoa(len(list)-i)+" more")
			break
		}
		out = append(out, s.name(n))
	}
	if n := len(out); n > 1 {
		return strings.Join(out[:n-1], ", ") + " and " + out[n-1]
	}
	return strings.Join(out, "")
}

// unbuilt says which versions do not build, "" if all do.
func (s *summary) unbuilt() string {
	switch list := s.failedBuilds(); len(list) {
	case 0:
		return s.partly()
	case 1:
		return s.names(list) + " does not build"
	default:
		return s.names(list) + " do not build"
	}
}

// partly says which version does not build with some choice of build parameters.
func (s *summary) partly() string {
	var told []string
	for _, v := range s.versions {
		if list := v.Unbuilt(); len(list) > 0 {
			told = append(told, s.name(v.N)+" does not build with "+strings.Trim(bench.RowName("", list[0].Params), "{}"))
		}
	}
	if len(told) > 1 {
		told = append(told[:1], strconv.Itoa(len(told)-1)+" more")
	}
	return strings.Join(told, ", and ")
}

func (s *summary) noFigures() string {
	for _, v := range s.versions {
		if v.N == 0 && v.State == bench.BuildFailed {
			return "base does not build"
		}
	}
	if u := s.unbuilt(); u != "" {
		return "no patch could be built and measured: " + u
	}
	if b := append(s.broken(), s.dead()...); len(b) > 0 && len(b) <= 3 {
		return strings.Join(b, ", ")
	}
	return "nothing could be measured"
}

// unclearText counts what is undecided and names the row that may have changed
// most: of wall time only where there is no other.
func (s *summary) unclearText() string {
	var pick *bench.Comparison
	var step bench.Step
	most := -1.0
	for i := range s.unclear {
		c := &s.unclear[i]
		weight := func(st bench.Step) float64 {
			w := 0.0
			if st.Lo != nil && st.Hi != nil {
				w = max(math.Abs(*st.Lo), math.Abs(*st.Hi))
			}
			if c.Metric == bench.Wall.Name {
				w /= 1e6
			}
			return w
		}
		for _, st := range append(slices.Clone(c.Steps), c.Total) {
			if st.Verdict == bench.Unclear && weight(st) > most {
				pick, step, most = c, st, weight(st)
			}
		}
	}
	text := fmt.Sprintf("%d of %d rows undecided: %s (%s)", len(s.unclear), s.tested, bench.RowName(pick.Benchmark, pick.Params), pick.Metric)
	if step.Lo != nil && step.Hi != nil {
		text += fmt.Sprintf(" %+.1f .. %+.1f %%", 100**step.Lo, 100**step.Hi)
	}
	if step.N != pick.Total.N || len(pick.Steps) > 0 && pick.Total.Verdict != bench.Unclear {
		text += " at " + s.name(step.N)
	}
	if step.Reason != "" {
		text += ", " + step.Reason
	}
	return text
}

func (s *summary) sameText() string {
	if s.allSame() {
		return "every patch " + map[bool]string{true: "that builds gives", false: "builds"}[s.unbuilt() != ""] + " the same program as base"
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

// line joins what is told, in the order of the patches. What the line is too
// short for is left out, the least first, and counted.
func line(head string, told []finding) string {
	weight := make([]int, len(told))
	for i := range weight {
		weight[i] = i
	}
	slices.SortStableFunc(weight, func(i, j int) int {
		a, b := told[i], told[j]
		switch {
		case a.first != b.first:
			return map[bool]int{true: -1, false: 1}[a.first]
		case a.better != b.better:
			return map[bool]int{true: 1, false: -1}[a.better]
		}
		return cmp.Compare(b.magnitude, a.magnitude)
	})
	for keep := len(told); ; keep-- {
		var out []string
		for _, i := range slices.Sorted(slices.Values(weight[:keep])) {
			out = append(out, told[i].text)
		}
		worse, better, others := 0, 0, 0
		for _, i := range weight[keep:] {
			switch {
			case told[i].first:
				others++
			case told[i].better:
				better++
			default:
				worse++
			}
		}
		var more []string
		for _, m := range []struct {
			n    int
			what string
		}{{worse, " more worse"}, {better, " more better"}, {others, " more"}} {
			if m.n > 0 {
				more = append(more, strconv.Itoa(m.n)+m.what)
			}
		}
		if len(more) > 0 {
			out = append(out, strings.Join(more, ", "))
		}
		text := head + strings.Join(out, "; ")
		if keep <= 1 || utf8.RuneCountInString(text) <= lineWidth {
			return text
		}
	}
}

// Incomplete is the headline of a series of which received of total patches came
// and the first ones, measured in number, were evaluated; line is what Of says.
func Incomplete(received, total, measured int, line string) string {
	return fmt.Sprintf("incomplete, %d of %d patches came; in the first %d, %s", received, total, measured, line)
}
