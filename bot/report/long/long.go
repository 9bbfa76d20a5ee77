// Package long renders all figures of a stored evaluation as plain text, for
// those who want to see every row of every version and not what matters alone.
//
// In go a store.Evaluation and its samples; out come, after the verdict, a grid
// of benchmarks by quantities with a line that sums up each group of benchmarks,
// parameters side by side with the user time of each total, and for every row
// the versions one below the other:
//
//	hash cpu (ms, 20 rounds, sees 0.9 %)
//	               mean  sigma    min ..   max   factor
//	  base        412.3    9.1  400.1 .. 431.0
//	  1/2         433.1    8.8  419.0 .. 449.2   1.051 (1.046 .. 1.055)  worse
//
// Mean, deviation and extremes are of the samples; the factor is that of the
// step to the version, with its 95 % interval, as it was judged; "sees" is the
// smallest change of a step that these rounds would most likely have shown.
// Nothing is judged here.
package long

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// width of a line, in columns.
const width = 78

// Write writes all figures; the same bytes each time.
func Write(w io.Writer, e *store.Evaluation, samples []bench.Sample) error {
	r := &renderer{e: e, samples: map[key]map[int][]float64{}}
	for _, s := range samples {
		if s.Failed != nil || s.Discarded != "" || s.Twin {
			continue
		}
		k := key{bench.RowName(s.Benchmark, s.Params), s.Metric}
		if r.samples[k] == nil {
			r.samples[k] = map[int][]float64{}
		}
		r.samples[k][s.Version] = append(r.samples[k][s.Version], s.Value)
	}
	var b bytes.Buffer
	for _, s := range report.Sections(e, report.Options{Width: width}) {
		switch s.Kind {
		case report.Headline, report.Notes:
			b.WriteString(strings.Join(s.Lines, "\n") + "\n")
		case report.About:
			b.WriteString("\n" + strings.Join(s.Lines, "\n") + "\n")
		}
	}
	b.WriteByte('\n')
	for _, part := range [][]string{r.grid(), r.parameters(), r.rows()} {
		for _, line := range part {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := w.Write(append(bytes.TrimRight(b.Bytes(), "\n"), '\n'))
	return err
}

type key struct{ benchmark, metric string }

type renderer struct {
	e       *store.Evaluation
	samples map[key]map[int][]float64 // by version
}

func nameOf(c *bench.Comparison) string { return bench.RowName(c.Benchmark, c.Params) }

// benchmarks are the rows by benchmark and metric, and the names in their order.
func (r *renderer) benchmarks() (names []string, rows map[key]*bench.Comparison) {
	rows = map[key]*bench.Comparison{}
	for i := range r.e.Results {
		c := &r.e.Results[i]
		if !slices.Contains(names, nameOf(c)) {
			names = append(names, nameOf(c))
		}
		rows[key{nameOf(c), c.Metric}] = c
	}
	return names, rows
}

// columnsOfGrid is how many quantities stand side by side.
const columnsOfGrid = 3

// grid has a line for each benchmark and a column for each tested quantity, with
// what the whole series makes of it.
func (r *renderer) grid() []string {
	names, rows := r.benchmarks()
	var metrics []string
	for _, c := range r.e.Results {
		if c.Tested && !slices.Contains(metrics, c.Metric) {
			metrics = append(metrics, c.Metric)
		}
	}
	var lines []string
	for part := range slices.Chunk(metrics, columnsOfGrid) {
		body, wide := r.block(part, names, rows, false)
		if wide > width {
			body, _ = r.block(part, names, rows, true)
		}
		lines = append(lines, "Last version, and its change against base (?: unclear)")
		lines = append(append(lines, body...), "")
	}
	return lines
}

// block lays out the grid of some quantities; above puts the names on lines of
// their own.
func (r *renderer) block(part, names []string, rows map[key]*bench.Comparison, above bool) (lines []string, wide int) {
	t := &plain.Table{Columns: []plain.Column{{}}}
	for _, m := range part {
		t.Columns = append(t.Columns, plain.Column{Head: plain.Cut(plain.Clean(m), 18), Gap: 3, Align: plain.Point},
			plain.Column{Gap: 2, Align: plain.Point})
	}
	group := ""
	var factors map[string][]float64
	var members int
	end := func() {
		if members > 1 {
			t.Add(plain.Cut("    "+plain.Clean(group)+": "+summary(part, factors, rows), width-6))
		}
		members, factors = 0, map[string][]float64{}
	}
	for _, name := range names {
		label := "  " + plain.Cut(plain.Clean(name), width-6)
		cells := []string{label}
		if above {
			cells[0] = "   "
		}
		any := false
		if g := groupOf(name); g != group {
			end()
			group = g
		}
		for _, m := range part {
			c := rows[key{name, m}]
			if c == nil || !c.Tested {
				cells = append(cells, "", "")
				continue
			}
			any = true
			v := report.ValueOf(r.e, c, c.Total.N)
			if !figure.Finite(v.Median) {
				cells = append(cells, "-", "")
				continue
			}
			s := figure.ScaleFor(c.Unit, *v.Median)
			text := figure.Number(*v.Median/s.Factor, figure.Decimals(*v.Median == math.Trunc(*v.Median) && s.Factor == 1, 0, *v.Median/s.Factor))
			change := figure.ChangeOf(c.Total.Change, nil, nil).Middle
			if c.Total.Verdict == bench.Unclear {
				change += "?"
			}
			cells = append(cells, strings.TrimSpace(text+" "+s.Unit), change)
			if base := report.ValueOf(r.e, c, 0); figure.Finite(base.Median) && *base.Median > 0 {
				factors[m] = append(factors[m], *v.Median / *base.Median)
			}
		}
		if any {
			if above {
				t.Add(label)
			}
			t.Add(cells...)
			members++
		}
	}
	end()
	return t.Render()
}

// groupOf is what benchmarks of one kind have in common: the name before the
// parameters, or before its first dash or slash.
func groupOf(name string) string {
	if i := strings.IndexAny(name, "{-/"); i > 0 {
		return name[:i]
	}
	return name
}

// summary says how much a group changes: "cpu 1.2-2.0x less, rss the same".
func summary(metrics []string, factors map[string][]float64, rows map[key]*bench.Comparison) string {
	var parts []string
	for _, m := range metrics {
		f := factors[m]
		if len(f) == 0 {
			continue
		}
		lo, hi := slices.Min(f), slices.Max(f)
		word, more := "more", "less"
		for k, c := range rows {
			if k.metric == m && c.Unit == bench.Second {
				word, more = "slower", "faster"
			}
		}
		name := plain.Cut(plain.Clean(m), 12) + " "
		switch {
		case lo > 0.99 && hi < 1.01:
			parts = append(parts, name+"the same")
		case hi <= 1.005 && lo > 0:
			parts = append(parts, name+span(1/hi, 1/lo)+"x "+more)
		case lo >= 0.995:
			parts = append(parts, name+span(lo, hi)+"x "+word)
		default:
			parts = append(parts, fmt.Sprintf("%s%.2f to %.2f times base", name, lo, hi))
		}
	}
	return strings.Join(parts, ", ")
}

func span(lo, hi float64) string {
	a, b := short(lo), short(hi)
	if a == b {
		return a
	}
	return a + "-" + b
}

func short(f float64) string {
	if f >= 9.95 {
		return figure.Plain(f, 0)
	}
	return figure.Plain(f, 2)
}

// parameters set the values of a benchmark's only varying parameter side by
// side: each cell is the total time with the user time behind it.
func (r *renderer) parameters() []string {
	type table struct{ benchmark, param string }
	values := map[table][]string{}
	var order []table
	find := map[table]map[string]map[string]*bench.Comparison{} // value, metric
	vary := map[table]map[string]bool{}
	for _, c := range r.e.Results {
		for name, value := range c.Params {
			t := table{c.Benchmark, name}
			if vary[t] == nil {
				vary[t] = map[string]bool{}
			}
			vary[t][value] = true
		}
	}
	for i := range r.e.Results {
		c := &r.e.Results[i]
		varying := 0
		for name := range c.Params {
			if len(vary[table{c.Benchmark, name}]) > 1 {
				varying++
			}
		}
		if varying != 1 {
			continue
		}
		for name, value := range c.Params {
			if len(vary[table{c.Benchmark, name}]) < 2 {
				continue
			}
			t := table{c.Benchmark, name}
			if find[t] == nil {
				find[t] = map[string]map[string]*bench.Comparison{}
				order = append(order, t)
			}
			if find[t][value] == nil {
				find[t][value] = map[string]*bench.Comparison{}
				values[t] = append(values[t], value)
			}
			find[t][value][c.Metric] = c
		}
	}
	var lines []string
	for _, t := range order {
		all := values[t]
		if len(all) < 2 {
			continue
		}
		shown := all[:min(len(all), 4)]
		largest := 0.0
		for _, v := range shown {
			if c := find[t][v][bench.Wall.Name]; c != nil {
				for _, x := range c.Values {
					if figure.Finite(x.Median) {
						largest = max(largest, *x.Median)
					}
				}
			}
		}
		if largest == 0 {
			continue
		}
		s := figure.ScaleFor(bench.Second, largest)
		g := &plain.Table{Columns: []plain.Column{{}}}
		for _, v := range shown {
			g.Columns = append(g.Columns, plain.Column{Head: plain.Cut(plain.Clean(t.param+"="+v), 15), Gap: 3, Align: plain.Point})
		}
		for _, version := range r.e.Versions {
			cells := []string{"  " + plain.Clean(version.Name)}
			for _, v := range shown {
				cells = append(cells, r.total(find[t][v], version.N, s))
			}
			g.Add(cells...)
		}
		body, _ := g.Render()
		title := plain.Cut(plain.Clean(t.benchmark), 40) + ": total (user) time in " + s.Unit + " by " + plain.Cut(plain.Clean(t.param), 16)
		if len(all) > len(shown) {
			title += fmt.Sprintf(", the first %d values", len(shown))
		}
		lines = append(append(append(lines, plain.Cut(title, width)), body...), "")
	}
	return lines
}

func (r *renderer) total(metrics map[string]*bench.Comparison, n int, s figure.Scale) string {
	median := func(metric string) string {
		c := metrics[metric]
		if c == nil {
			return ""
		}
		v := report.ValueOf(r.e, c, n)
		if !figure.Finite(v.Median) {
			return ""
		}
		return figure.Number(*v.Median/s.Factor, 2)
	}
	wall, user := median(bench.Wall.Name), median(bench.User.Name)
	switch {
	case wall == "":
		return "-"
	case user == "":
		return wall
	}
	return wall + " (" + user + ")"
}

// rows are the long tables, wall, user and sys of a benchmark together.
func (r *renderer) rows() []string {
	names, rows := r.benchmarks()
	order := []string{bench.Wall.Name, bench.User.Name, bench.Sys.Name, bench.CPU.Name, bench.RSS.Name}
	var lines []string
	for _, name := range names {
		var metrics []string
		for k := range maps.Keys(rows) {
			if k.benchmark == name {
				metrics = append(metrics, k.metric)
			}
		}
		slices.SortFunc(metrics, func(a, b string) int {
			place := func(m string) int {
				if i := slices.Index(order, m); i >= 0 {
					return i
				}
				return len(order)
			}
			return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
		})
		for _, m := range metrics {
			lines = append(lines, r.row(rows[key{name, m}])...)
		}
	}
	return lines
}

func (r *renderer) row(c *bench.Comparison) []string {
	samples := r.samples[key{nameOf(c), c.Metric}]
	largest, small := 0.0, math.Inf(1)
	var sigmas []float64
	for _, list := range samples {
		_, sigma := moments(list)
		sigmas = append(sigmas, sigma)
		for _, v := range list {
			largest, small = max(largest, math.Abs(v)), min(small, math.Abs(v))
		}
	}
	if len(samples) == 0 {
		for _, v := range c.Values {
			if figure.Finite(v.Median) {
				largest, small = max(largest, math.Abs(*v.Median)), min(small, math.Abs(*v.Median))
			}
		}
	}
	s := figure.ScaleFor(c.Unit, largest)
	spread := 0.0
	if len(sigmas) > 0 {
		spread = slices.Max(sigmas)
	}
	d := figure.Decimals(c.Exact && s.Factor == 1, spread/s.Factor, largest/s.Factor)
	number := func(v float64) string { return figure.Number(v/s.Factor, d) }
	t := &plain.Table{Columns: []plain.Column{
		{}, {Head: "mean", Gap: 2, Align: plain.Point}, {Head: "sigma", Gap: 2, Align: plain.Point},
		{Head: "min", Gap: 2, Align: plain.Point}, {Gap: 1}, {Head: "max", Gap: 1, Align: plain.Point},
		{Head: "factor", Gap: 3, Align: plain.Point}, {Gap: 1}, {Gap: 2},
	}}
	for _, v := range r.e.Versions {
		cells := []string{"  " + plain.Cut(plain.Clean(v.Name), 10), "-", "", "", "", "", "", "", ""}
		if list := samples[v.N]; len(list) > 0 {
			mean, sigma := moments(list)
			cells[1], cells[2], cells[3], cells[4], cells[5] = number(mean), number(sigma), number(slices.Min(list)), "..", number(slices.Max(list))
		} else if v.State == bench.SameBuild && v.SameAs != nil {
			cells[1] = ""
			cells[8] = "same build as " + plain.Cut(plain.Clean(r.version(*v.SameAs)), 10)
		} else if value := report.ValueOf(r.e, c, v.N); figure.Finite(value.Median) {
			cells[1] = number(*value.Median)
		}
		for _, step := range c.Steps {
			if step.N == v.N && cells[8] == "" {
				r.factor(cells, step)
			}
		}
		t.Add(cells...)
	}
	if len(r.e.Versions) > 2 {
		cells := []string{"  all", "", "", "", "", "", "", "", ""}
		r.factor(cells, c.Total)
		t.Add(cells...)
	}
	body, _ := t.Render()
	sees := ""
	if c.Tested && figure.Finite(c.Detectable) {
		sees = ", sees " + figure.Share(*c.Detectable)
	}
	title := plain.Cut(plain.Clean(nameOf(c))+" "+plain.Clean(c.Metric), width-24-len(sees)) + " ("
	if s.Unit != "" {
		title += s.Unit + ", "
	}
	return append(append([]string{fmt.Sprintf("%s%d rounds%s)", title, c.Rounds, sees)}, body...), "")
}

func (r *renderer) version(n int) string {
	for _, v := range r.e.Versions {
		if v.N == n {
			return v.Name
		}
	}
	return "base"
}

// factor fills in what a step does.
func (r *renderer) factor(cells []string, s bench.Step) {
	if figure.Finite(s.Change) {
		cells[6] = figure.Number(1+*s.Change, 3)
		if figure.Finite(s.Lo) && figure.Finite(s.Hi) {
			cells[7] = "(" + figure.Number(1+*s.Lo, 3) + " .. " + figure.Number(1+*s.Hi, 3) + ")"
		}
	}
	switch s.Verdict {
	case bench.Shown:
	case bench.NotMeasured:
		cells[8] = "not measured"
	default:
		cells[8] = plain.Cut(plain.Clean(string(s.Verdict)), 12)
	}
}

// moments are mean and standard deviation (n-1) of samples.
func moments(list []float64) (mean, sigma float64) {
	if len(list) == 0 {
		return 0, 0
	}
	if lo := slices.Min(list); lo == slices.Max(list) {
		return lo, 0 // to the last digit
	}
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		sigma += (v - mean) * (v - mean) / float64(len(list)-1)
	}
	return mean, math.Sqrt(sigma)
}
