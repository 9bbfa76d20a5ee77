package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/plain"
)

// The lengths of what failed, in lines of log and in entries.
const (
	longLog, shortLog = 10, 3
	longLogs          = 2
	mostFailures      = 8
)

// failures are the patches that do not apply, build or run, in order.
func (r *renderer) failures() []string {
	type entry struct {
		n     int
		lines []string
		log   string
	}
	var all []entry
	said := map[int]bool{}
	for i, v := range r.e.Versions {
		if v.State != bench.BuildFailed || said[v.N] {
			continue
		}
		what := "does not build"
		var also []int
		rest := r.e.Versions[i+1:]
		for len(rest) > 0 && rest[0].State == bench.BuildFailed {
			if slices.Equal(plain.Tail(rest[0].LogTail, longLog, r.inner), plain.Tail(v.LogTail, longLog, r.inner)) {
				also = append(also, rest[0].N)
				said[rest[0].N] = true
			}
			rest = rest[1:]
		}
		if len(also) > 0 {
			what += ", nor " + word(len(also) > 1, "do", "does") + " " + r.Names(also) + ", with the same log"
		}
		before := -1
		for _, w := range r.e.Versions[:i] {
			if w.State == bench.Built || w.State == bench.SameBuild {
				before = w.N
			}
		}
		if len(rest) > 0 && before >= 0 && (rest[0].State == bench.Built || rest[0].State == bench.SameBuild) {
			what += fmt.Sprintf("; %s is compared with %s", r.Patch(rest[0].N), r.Patch(before))
		}
		all = append(all, entry{v.N, []string{what}, v.LogTail})
	}
	for _, v := range r.e.Versions {
		for _, b := range v.Unbuilt() {
			what := "does not build with " + plain.Clean(strings.Trim(bench.RowName("", b.Params), "{}"))
			all = append(all, entry{v.N, []string{what}, b.LogTail})
		}
	}
	for i, f := range r.e.Failures {
		how := ended(f)
		first := true
		var later []int
		for j, g := range r.e.Failures {
			if g.Benchmark != f.Benchmark || ended(g) != how {
				continue
			}
			if j < i {
				first = false
			} else if j > i {
				later = append(later, g.N)
			}
		}
		if !first {
			continue
		}
		what := plain.CutName(plain.Clean(f.Benchmark), r.inner/2) + ": " + plain.Clean(how)
		if len(later) > 0 {
			what += ", and on " + r.Names(later) + " too"
		}
		what += "; not measured"
		all = append(all, entry{f.N, []string{what}, f.LogTail})
	}
	if c := r.e.Conflict; c != nil {
		lines := []string{"does not apply:"}
		for i, f := range c.Files {
			if i == 5 && len(c.Files) > 6 {
				lines = append(lines, fmt.Sprintf("  and %s", count(len(c.Files)-i, "more place")))
				break
			}
			where := plain.Clean(f.Path)
			if f.Hunk > 0 {
				where += fmt.Sprintf(", hunk %d", f.Hunk)
			}
			reason := plain.Clean(f.Reason)
			// The reason mostly says the line itself.
			if f.Line > 0 && !slices.Contains(strings.FieldsFunc(reason, func(r rune) bool { return r < '0' || r > '9' }), strconv.Itoa(f.Line)) {
				where += fmt.Sprintf(", line %d", f.Line)
			}
			lines = append(lines, "  "+where+": "+reason)
		}
		all = append(all, entry{n: c.N, lines: lines})
	}
	if len(r.e.NotTried) > 0 {
		what := "not tried, since patches before " + word(len(r.e.NotTried) > 1, "them", "it") + " are missing"
		if r.e.Conflict != nil {
			what = "not tried, since " + r.Patch(r.e.Conflict.N) + " does not apply"
		}
		n := slices.Min(r.e.NotTried)
		all = append(all, entry{-n, []string{r.Names(r.e.NotTried) + ": " + what}, ""})
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(max(a.n, -a.n), max(b.n, -b.n)) })
	lines := []string{r.paint("Failed", bold)}
	before := 0
	for i, f := range all {
		if i == mostFailures && len(all) > mostFailures+1 {
			lines = append(lines, "  and "+count(len(all)-i, "more failure"))
			break
		}
		if f.n < 0 {
			lines = append(lines, "  "+plain.Cut(f.lines[0], r.inner-2))
			continue
		}
		name := r.Patch(f.n)
		indent := strings.Repeat(" ", 4+plain.Columns(name))
		if i == 0 || f.n != before {
			lines = append(lines, r.heading("  "+name+"  ", f.n))
		}
		before = f.n
		for _, line := range f.lines {
			deeper := indent + line[:len(line)-len(strings.TrimLeft(line, " "))]
			for _, part := range plain.Wrap(line, r.inner-len(deeper)-2, "  ") {
				lines = append(lines, deeper+part)
			}
		}
		n := longLog
		if i >= longLogs {
			n = shortLog
		}
		for _, line := range plain.Tail(f.log, n, r.width-len(indent)-2) {
			lines = append(lines, indent+"| "+line)
		}
	}
	return lines
}

// ended says how a run ended that failed.
func ended(f bench.Failure) string {
	return bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String()
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
