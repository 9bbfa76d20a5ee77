package html

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// rowKey names a row among samples.
type rowKey struct{ benchmark, metric string }

func keyOf(name string, params map[string]string, metric string) rowKey {
	return rowKey{bench.RowName(name, params), metric}
}

// group sorts samples to their rows, of which most have each at most; runs that failed or were repeated have no
// place in a plot.
func group(samples []bench.Sample, each int) map[rowKey][]*bench.Sample {
	all := map[rowKey][]*bench.Sample{}
	for i := range samples {
		s := &samples[i]
		if s.Failed != nil || s.Discarded != "" {
			continue
		}
		k := rowKey{s.Benchmark, s.Metric}
		if len(s.Params) > 0 {
			k = keyOf(s.Benchmark, s.Params, s.Metric)
		}
		if all[k] == nil {
			all[k] = make([]*bench.Sample, 0, min(each, len(samples)-i))
		}
		all[k] = append(all[k], s)
	}
	return all
}

// A written row has one unit and as many decimals as its spread allows.
type written struct {
	figure.Scale
	decimals int
}

func (r *renderer) writtenOf(c *bench.Comparison) written {
	if w, ok := r.written[c]; ok {
		return w
	}
	largest, spread, whole := 0.0, 0.0, true
	var medians []float64
	for _, v := range c.Values {
		if !figure.Finite(v.Median) {
			continue
		}
		largest = max(largest, math.Abs(*v.Median))
		medians = append(medians, *v.Median)
		whole = whole && *v.Median == math.Trunc(*v.Median)
		if figure.Finite(v.Lo) && figure.Finite(v.Hi) && !c.Exact {
			spread = max(spread, *v.Hi-*v.Median, *v.Median-*v.Lo)
		}
	}
	s := figure.ScaleFor(c.Unit, largest)
	for i := range medians {
		medians[i] /= s.Factor
	}
	r.written[c] = written{s, figure.Decimals(whole && s.Factor == 1 && spread == math.Trunc(spread), spread/s.Factor, medians...)}
	return r.written[c]
}

func (w written) number(v float64) string { return figure.Number(v/w.Factor, w.decimals) }

func (w written) value(v bench.Value) string {
	if !figure.Finite(v.Median) {
		return "-"
	}
	return w.number(*v.Median) + unit(w.Unit)
}

func unit(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// line is a row with what one step, or the total, does to it.
func (r *renderer) line(c *bench.Comparison, s bench.Step) rowLine {
	change := figure.ChangeOf(s.Change, s.Lo, s.Hi)
	l := rowLine{
		Benchmark: plain.Clean(bench.RowName(c.Benchmark, c.Params)), Metric: plain.Clean(c.Metric),
		Change: change.Middle, Verdict: class(s.Verdict), Word: stepWord(s.Verdict), Note: plain.Clean(s.Reason), Rounds: c.Rounds,
	}
	switch {
	case change.Lo != "":
		l.Interval = change.Lo + " .. " + change.Hi
	case c.Exact && change.Middle != "-":
		l.Interval = "exact"
	}
	return l
}

// between is a line with the figures of versions before and after.
func (r *renderer) between(l rowLine, c *bench.Comparison, before, after int) rowLine {
	w := r.writtenOf(c)
	l.Base, l.Patched = w.value(rows.Value(r.e, c, before)), w.value(rows.Value(r.e, c, after))
	return l
}

// effect is a row with what a patch, or the group of which it is one, does to it.
func (r *renderer) effect(c *bench.Comparison, s bench.Step) rowLine {
	l := r.line(c, s)
	first, last := s.N, s.N
	if len(s.Group) == 2 {
		first, last = s.Group[0], s.Group[1]
		l.Note = fmt.Sprintf("by one of the patches %d-%d, or by some of them together", first, last)
	}
	// What was not measured is passed over, as it was in judging.
	before := first - 1
	for before > 0 && rows.Value(r.e, c, before).Median == nil {
		before--
	}
	return r.between(l, c, before, last)
}

// rows are the sections of rows, each with its plot.
func (r *renderer) rows(list []rows.Row) []rowView {
	var all []rowView
	for _, row := range list {
		c := row.Comparison
		r.plots++
		w := r.writtenOf(c)
		v := rowView{
			ID: "row" + strconv.Itoa(r.plots), Benchmark: plain.Clean(bench.RowName(c.Benchmark, c.Params)), Metric: plain.Clean(c.Metric),
			Verdict: class(c.Total.Verdict), Word: stepWord(c.Total.Verdict),
		}
		l := r.line(c, c.Total)
		v.Summary = l.Change
		if l.Interval != "" {
			v.Summary += " (" + l.Interval + ")"
		}
		v.Plot = r.plot(c, w, v.ID)
		v.Values = r.values(c, w)
		v.Raw = r.raw(c, w, v)
		all = append(all, v)
	}
	return all
}

// values are the lines of the table of a row's versions. There may be thousands
// in a page, which the template would take too long for: every text is escaped here.
func (r *renderer) values(c *bench.Comparison, w written) template.HTML {
	var b strings.Builder
	for _, version := range r.e.Versions {
		value := rows.Value(r.e, c, version.N)
		interval, step, verdict, word := "", "", "", ""
		if figure.Finite(value.Median) && figure.Finite(value.Lo) && figure.Finite(value.Hi) && !c.Exact {
			interval = w.number(*value.Lo) + " .. " + w.number(*value.Hi)
		}
		if i := slices.IndexFunc(c.Steps, func(s bench.Step) bool { return s.N == version.N }); i >= 0 {
			s := c.Steps[i]
			step = figure.ChangeOf(s.Change, s.Lo, s.Hi).String()
			verdict, word = class(s.Verdict), stepWord(s.Verdict)
			if s.Reason != "" {
				word += ": " + plain.Clean(s.Reason)
			}
		}
		for i, text := range []string{
			`<tr><th scope="row">`, r.patch(version.N), `</th><td class="n">`, w.value(value), `</td><td class="i">`, interval, `</td><td>`, step,
			`</td><td><span class="v `, verdict, `">`, word, "</span></td></tr>\n",
		} {
			if i%2 == 1 {
				text = template.HTMLEscapeString(text)
			}
			b.WriteString(text)
		}
	}
	return template.HTML(b.String())
}

// raw are the samples of a row: each round's, with the base twin beside base.
func (r *renderer) raw(c *bench.Comparison, w written, v rowView) *rawView {
	samples := r.samples[keyOf(c.Benchmark, c.Params, c.Metric)]
	if len(samples) == 0 {
		return nil
	}
	rounds, versions := 0, 0
	for _, s := range samples {
		rounds, versions = max(rounds, s.Round), max(versions, s.Version)
	}
	const most = 2000 // rounds and versions, against a record that lies
	rounds, versions = min(rounds, most), min(versions, most)
	// A grid of rounds by columns: base, its twin, 1, 2, ...
	columns := versions + 2
	grid := make([]float64, rounds*columns)
	for i := range grid {
		grid[i] = math.NaN()
	}
	for _, s := range samples {
		column := s.Version + 1
		if s.Version == 0 && !s.Twin {
			column = 0
		}
		if s.Round >= 1 && s.Round <= rounds && column >= 0 && column < columns {
			grid[(s.Round-1)*columns+column] = s.Value
		}
	}
	d := max(w.decimals, min(3, w.decimals+1))
	wide := 7
	numbers, ends := make([]byte, 0, 8*len(grid)), make([]int, len(grid))
	for i, x := range grid {
		before := len(numbers)
		if math.IsNaN(x) {
			numbers = append(numbers, '-')
		} else {
			numbers = figure.AppendNumber(numbers, x/w.Factor, d)
		}
		ends[i] = len(numbers)
		wide = max(wide, len(numbers)-before+1)
	}
	var b strings.Builder
	b.Grow((rounds + 1) * (6 + columns*wide))
	fmt.Fprintf(&b, "%5s%*s%*s", "round", wide, "base", wide, "twin")
	for n := 1; n <= versions; n++ {
		fmt.Fprintf(&b, "%*d", wide, n)
	}
	from := 0
	for i, end := range ends {
		if i%columns == 0 {
			fmt.Fprintf(&b, "\n%5d", i/columns+1)
		}
		for range wide - (end - from) {
			b.WriteByte(' ')
		}
		b.Write(numbers[from:end])
		from = end
	}
	label := "Samples by round"
	if w.Unit != "" {
		label += ", in " + w.Unit
	}
	return &rawView{Label: label, Text: b.String(), SVG: r.scatter(c, w, samples, v.ID)}
}

// shown is the table of the rows that are not tested.
func (r *renderer) shown(p *pageView) {
	for i := range r.e.Results {
		c := &r.e.Results[i]
		if c.Tested {
			continue
		}
		w := r.writtenOf(c)
		s := shownView{Name: plain.Clean(bench.RowName(c.Benchmark, c.Params) + " " + c.Metric), Unit: w.Unit}
		any := false
		for _, v := range r.e.Versions {
			value := rows.Value(r.e, c, v.N)
			if figure.Finite(value.Median) {
				any = true
				s.Values = append(s.Values, w.number(*value.Median))
			} else {
				s.Values = append(s.Values, "-")
			}
		}
		if any {
			p.Shown = append(p.Shown, s)
		}
	}
	for _, v := range r.e.Versions {
		p.ShownVersions = append(p.ShownVersions, r.patch(v.N))
	}
}

// patch is the name of version n: "base", "2/5".
func (r *renderer) patch(n int) string {
	for _, v := range r.e.Versions {
		if v.N == n && v.Name != "" {
			return plain.Clean(v.Name)
		}
	}
	if n == 0 {
		return "base"
	}
	return strconv.Itoa(n)
}

// patches are the versions after base, each with what it changes and its logs.
func (r *renderer) patches(view *rows.View, views []rowView) []patchView {
	var all []patchView
	failures := r.e.Failures
	told := map[string]bool{} // logs
	for _, v := range r.e.Versions {
		p := patchView{ID: "patch" + strconv.Itoa(v.N), Name: r.patch(v.N), Subject: plain.Clean(v.Subject), Commit: plain.Clean(short(v.Commit))}
		if v.Added != 0 || v.Deleted != 0 {
			p.Size = fmt.Sprintf("+%d -%d lines", v.Added, v.Deleted)
		}
		switch {
		case v.State == bench.SameBuild && v.SameAs != nil:
			p.State = "same build as " + r.patch(*v.SameAs) + ", not measured again"
		case v.State == bench.BuildFailed:
			p.Bad = append(p.Bad, "does not build")
		case v.State == bench.NotBuilt:
			p.State = "not built"
		}
		if v.State == bench.BuildFailed && v.LogTail != "" {
			p.Logs = append(p.Logs, r.log("Build log of "+p.Name, v.LogTail, told))
		}
		for _, f := range failures {
			if f.N == v.N {
				how := bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String()
				what := plain.Clean(f.Benchmark + ": " + how)
				p.Bad = append(p.Bad, what)
				p.Logs = append(p.Logs, r.log(p.Name+", "+what, f.LogTail, told))
			}
		}
		for i, c := range view.Changed {
			for _, s := range c.Steps {
				if s.N != v.N || s.Verdict != bench.Better && s.Verdict != bench.Worse {
					continue
				}
				l := r.effect(c.Comparison, s)
				l.Anchor = views[i].ID
				p.Effects = append(p.Effects, l)
			}
		}
		p.shorten()
		if v.N == 0 && len(p.Logs) == 0 {
			continue
		}
		all = append(all, p)
	}
	if c := r.e.Conflict; c != nil {
		p := patchView{ID: "patch" + strconv.Itoa(c.N), Name: view.Patch(c.N), Subject: plain.Clean(c.Subject), Bad: []string{"does not apply"}}
		for _, f := range c.Files {
			p.Conflict = append(p.Conflict, plain.Clean(f.String()))
		}
		all = slices.DeleteFunc(all, func(other patchView) bool { return other.ID == p.ID })
		all = append(all, p)
	}
	for _, n := range r.e.NotTried {
		p := patchView{ID: "patch" + strconv.Itoa(n), Name: view.Patch(n), Subject: view.Subject(n), State: "not tried, since patches before it are missing"}
		if c := r.e.Conflict; c != nil {
			p.State = "not tried, since " + view.Patch(c.N) + " does not apply"
		}
		all = slices.DeleteFunc(all, func(other patchView) bool { return other.ID == p.ID })
		all = append(all, p)
	}
	return all
}

// mostEffects is how many rows are told of one patch; all have their plot.
const mostEffects = 25

// shorten keeps the effects that matter most: what is worse, and then in the
// order of the rows.
func (p *patchView) shorten() {
	if len(p.Effects) <= mostEffects+1 {
		return
	}
	slices.SortStableFunc(p.Effects, func(a, b rowLine) int {
		switch {
		case a.Verdict == b.Verdict:
			return 0
		case a.Verdict == "worse":
			return -1
		}
		return 1
	})
	p.More = len(p.Effects) - mostEffects
	p.Effects = p.Effects[:mostEffects]
}

// log is a log with its title; the same text again is folded.
func (r *renderer) log(title, text string, told map[string]bool) logView {
	clean, known := r.logs[text]
	if !known {
		clean = cleanLog(text)
		r.logs[text] = clean
	}
	v := logView{title, clean, !told[text]}
	told[text] = true
	return v
}

// cleanLog keeps the lines of a log and cleans each.
func cleanLog(log string) string {
	if strings.TrimSpace(log) == "" {
		return "(no output)"
	}
	return strings.Join(plain.Tail(log, 400, 500), "\n")
}

// claims are the author's numbers beside ours.
func (r *renderer) claims() []claimView {
	var all []claimView
	for _, c := range r.e.Claims {
		v := claimView{Scope: "cover letter", Text: plain.Clean(c.Text), Row: plain.Clean(strings.TrimSpace(c.Benchmark + " " + c.Metric)),
			Claimed: figure.ChangeOf(&c.Change, nil, nil).Middle, Verdict: "unclear", Word: plain.Clean(string(c.Verdict))}
		if c.N > 0 {
			v.Scope = r.patch(c.N)
		}
		m := figure.ChangeOf(c.Measured, c.Lo, c.Hi)
		v.Measured = m.Middle
		if m.Lo != "" {
			v.Interval = m.Lo + " .. " + m.Hi
		}
		switch c.Verdict {
		case bench.Confirmed:
			v.Verdict = "better"
		case bench.Opposite:
			v.Verdict = "worse"
		case bench.NotSeen:
			v.Word = "not seen"
		case bench.ClaimUnmeasured:
			v.Verdict, v.Word, v.Measured = "shown", "names no row", ""
			if c.Benchmark != "" {
				v.Word = "not measured"
			}
		}
		all = append(all, v)
	}
	return all
}
