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
	"patchbench/bot/report/layout"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
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
	for _, s := range report.Sections(e, report.Options{Width: width}, report.Headline, report.Notes, report.About) {
		if s.Kind == report.About {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Join(s.Lines, "\n") + "\n")
	}
	b.WriteByte('\n')
	if !r.measured() {
		for i, s := range report.Sections(e, report.Options{Width: width}, report.Failed, report.Builds, report.Missing, report.Unchanged) {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(strings.Join(s.Lines, "\n") + "\n")
		}
		_, err := w.Write(append(bytes.TrimRight(b.Bytes(), "\n"), '\n'))
		return err
	}
	grid, err := r.grid()
	if err != nil {
		return err
	}
	parameters, err := r.parameters()
	if err != nil {
		return err
	}
	for _, part := range [][]string{grid, parameters, r.rows()} {
		for _, line := range part {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err = w.Write(append(bytes.TrimRight(b.Bytes(), "\n"), '\n'))
	return err
}

type key struct{ benchmark, metric string }

type renderer struct {
	e       *store.Evaluation
	samples map[key]map[int][]float64 // by version
}

// measured says that there is a figure of some row.
func (r *renderer) measured() bool {
	return len(r.samples) > 0 || slices.ContainsFunc(r.e.Results, func(c bench.Comparison) bool {
		return slices.ContainsFunc(c.Values, func(v bench.Value) bool { return figure.Finite(v.Median) })
	})
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

// grid has a line for each benchmark and a column for each tested quantity, with
// what the whole series makes of it.
func (r *renderer) grid() ([]string, error) {
	lines, err := layout.Tables([]*store.Evaluation{r.e}, layout.Options{Rows: []string{layout.Benchmark}, Columns: []string{layout.Metric}, Width: width})
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	return append(lines, layout.Legend, ""), nil
}

// parameters set the values of a benchmark's only varying parameter side by
// side, with the user time behind each total time.
func (r *renderer) parameters() ([]string, error) {
	values := map[string]map[string]map[string]bool{} // benchmark, parameter
	times := map[string]bool{}                        // benchmark and metric
	var order []string
	for _, c := range r.e.Results {
		times[c.Benchmark+" "+c.Metric] = true
		if values[c.Benchmark] == nil {
			values[c.Benchmark] = map[string]map[string]bool{}
			order = append(order, c.Benchmark)
		}
		for name, value := range c.Params {
			if values[c.Benchmark][name] == nil {
				values[c.Benchmark][name] = map[string]bool{}
			}
			values[c.Benchmark][name][value] = true
		}
	}
	var all []string
	for _, benchmark := range order {
		var varying []string
		for name, v := range values[benchmark] {
			if len(v) > 1 {
				varying = append(varying, name)
			}
		}
		if len(varying) != 1 || !times[benchmark+" "+bench.Wall.Name] {
			continue
		}
		metric := bench.Wall.Name
		if times[benchmark+" "+bench.User.Name] {
			metric += "(" + bench.User.Name + ")"
		}
		lines, err := layout.Tables([]*store.Evaluation{r.e}, layout.Options{
			Rows: []string{layout.Version}, Columns: varying, Metrics: []string{metric}, Width: width,
			Keep: func(c *bench.Comparison) bool { return c.Benchmark == benchmark },
		})
		if err != nil {
			return nil, err
		}
		all = append(append(all, lines...), "")
	}
	return all, nil
}

// rows are the long tables, wall, user and sys of a benchmark together.
func (r *renderer) rows() []string {
	names, rows := r.benchmarks()
	var lines []string
	if len(r.e.Versions) > 2 {
		lines = []string{"Factor: against the version before it; all: the last version against base.", ""}
	}
	order := []string{bench.Wall.Name, bench.User.Name, bench.Sys.Name, bench.CPU.Name, bench.RSS.Name}
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
		} else if value := rows.Value(r.e, c, v.N); figure.Finite(value.Median) {
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
	title := plain.CutName(plain.Clean(nameOf(c))+" "+plain.Clean(c.Metric), width-24-len(sees)) + " ("
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
