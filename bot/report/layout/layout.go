// Package layout lays the figures of stored evaluations out as tables whose rows
// and columns the reader chooses.
//
// In go evaluations, of one series on one or several machines, and the names of
// dimensions: benchmark, params or one parameter's name, machine, version,
// metric. Out come lines of plain text. What is neither in rows nor in columns
// gets a table for each of its values. Some choices, and what they are good for:
//
//	rows                columns   metrics        shows
//	benchmark           version                  base, patched, change
//	benchmark           metric                   the grid of operations and quantities
//	version             threads   wall(user)     parameters side by side, total (user)
//	benchmark,version   metric    wall,user,sys  triplets
//	benchmark,metric    machine                  the same series on several machines
//
// Where versions are in rows or columns, cells are medians with their intervals,
// and behind the last version stands its change against base; where they are not,
// cells are the last version and that change. In a grid of benchmarks a line sums
// up those whose names begin alike. Nothing is judged here, and figures of
// different machines are never held against each other: they only stand side by
// side.
package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
	"patchbench/store"
)

// The dimensions beside the names of parameters.
const (
	Benchmark = "benchmark"
	Params    = "params"
	Machine   = "machine"
	Version   = "version"
	Metric    = "metric"
)

// Options choose a layout.
type Options struct {
	// Rows and Columns are dimensions, the outermost first. None means rows of
	// benchmarks and metrics, and columns of versions, or of machines where there
	// are several evaluations.
	Rows, Columns []string
	// Metrics are the quantities to show, in their order; "wall(user)" shows one
	// with another behind it in brackets. None means all that are tested.
	Metrics []string
	// Width is that of the longest line; 0 means 78.
	Width int
	// Keep picks rows of the evaluations; nil keeps all.
	Keep func(*bench.Comparison) bool
}

// A member is one of the values of a dimension.
type member struct {
	key   string
	order int
}

// A cell is what stands where a row and a column meet.
type cell struct {
	e      *store.Evaluation
	c      *bench.Comparison
	beside *bench.Comparison // shown in brackets, nil for none
	// version is the version shown, whole the last one with its change against
	// base, change that change alone.
	version int
}

const whole, change = -1, -2

// A point is a cell with its place in every dimension.
type point struct {
	cell
	at map[string]member
}

type layout struct {
	Options
	params   []string // dimensions that are parameters
	machines int
	points   []point
}

// Write writes a layout with the verdict of each evaluation before it and the
// rounds behind it; the same bytes each time.
func Write(w io.Writer, evaluations []*store.Evaluation, o Options) error {
	tables, err := Tables(evaluations, o)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for i, e := range evaluations {
		for _, s := range report.Sections(e, report.Options{Width: o.Width}, report.Headline, report.Notes) {
			for j, line := range s.Lines {
				if j == 0 && s.Kind == report.Headline && len(evaluations) > 1 {
					b.WriteString(MachineName(evaluations, i) + ":\n")
				}
				b.WriteString(line + "\n")
			}
		}
	}
	b.WriteString("\n" + strings.Join(tables, "\n") + "\n\n" + Legend + "\n")
	for i, e := range evaluations {
		view := rows.Of(e)
		rounds := fmt.Sprint(view.Most)
		if view.Fewest != view.Most {
			rounds = fmt.Sprintf("%d to %d", view.Fewest, view.Most)
		}
		fmt.Fprintf(&b, "%s rounds per row on %s, report %s\n", rounds, MachineName(evaluations, i), plain.Clean(e.ID))
	}
	_, err = w.Write(b.Bytes())
	return err
}

// Tables lays evaluations out. An error says what is wrong with the options.
func Tables(evaluations []*store.Evaluation, o Options) ([]string, error) {
	if len(o.Rows)+len(o.Columns) == 0 {
		o.Rows, o.Columns = []string{Benchmark, Metric}, []string{Version}
		if len(evaluations) > 1 {
			o.Columns = []string{Machine}
		}
	}
	if o.Width == 0 {
		o.Width = 78
	}
	l := &layout{Options: o, machines: len(evaluations)}
	if err := l.check(evaluations); err != nil {
		return nil, err
	}
	if err := l.collect(evaluations); err != nil {
		return nil, err
	}
	// What is in neither direction, the outermost first.
	var rest []string
	for _, d := range slices.Concat([]string{Machine, Benchmark}, l.params, []string{Metric}) {
		if !l.has(d) {
			rest = append(rest, d)
		}
	}
	var lines []string
	for _, block := range l.split(l.points, rest) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, l.block(block, rest)...)
	}
	return lines, nil
}

func (l *layout) has(dimension string) bool {
	return slices.Contains(l.Rows, dimension) || slices.Contains(l.Columns, dimension)
}

// check holds the names of dimensions against what there is.
func (l *layout) check(evaluations []*store.Evaluation) error {
	params := map[string]bool{}
	for _, e := range evaluations {
		for _, c := range e.Results {
			for name := range c.Params {
				params[name] = true
			}
		}
	}
	known := append([]string{Benchmark, Params, Machine, Version, Metric}, slices.Sorted(maps.Keys(params))...)
	seen := map[string]bool{}
	for _, d := range slices.Concat(l.Rows, l.Columns) {
		switch {
		case !slices.Contains(known, d):
			return fmt.Errorf("no dimension %q: there are %s", d, strings.Join(known, ", "))
		case seen[d]:
			return fmt.Errorf("dimension %q is named twice: each stands in rows or in columns, once", d)
		case d == Params || params[d]:
			l.params = append(l.params, d)
		}
		seen[d] = true
	}
	if seen[Params] && len(l.params) > 1 {
		return fmt.Errorf("%q is all parameters together: name it, or single ones", Params)
	}
	return nil
}

// quantity is one entry of Options.Metrics.
type quantity struct{ name, main, beside string }

func (l *layout) quantities() ([]quantity, error) {
	var all []quantity
	for _, name := range l.Metrics {
		q := quantity{name: name, main: name}
		if main, rest, found := strings.Cut(name, "("); found {
			beside, end := strings.CutSuffix(rest, ")")
			if !end || main == "" || beside == "" {
				return nil, fmt.Errorf("metric %q is neither a name nor one with another in brackets, as wall(user)", name)
			}
			q.name, q.main, q.beside = main+" ("+beside+")", main, beside
		}
		all = append(all, q)
	}
	return all, nil
}

// collect makes the points of all figures that are to be shown.
func (l *layout) collect(evaluations []*store.Evaluation) error {
	quantities, err := l.quantities()
	if err != nil {
		return err
	}
	orders := map[string]map[string]int{}
	at := func(dimension, key string) member {
		known := orders[dimension]
		if known == nil {
			known = map[string]int{}
			orders[dimension] = known
		}
		if _, ok := known[key]; !ok {
			known[key] = len(known)
		}
		return member{key, known[key]}
	}
	for _, q := range quantities {
		at(Metric, q.name) // in the order asked for
	}
	measured := map[string]bool{}
	for i, e := range evaluations {
		machine := MachineName(evaluations, i)
		for j := range e.Results {
			c := &e.Results[j]
			measured[c.Metric] = true
			if l.Keep != nil && !l.Keep(c) {
				continue
			}
			mine := quantities
			if len(quantities) == 0 && c.Tested {
				mine = []quantity{{c.Metric, c.Metric, ""}}
			}
			for _, q := range mine {
				if q.main != c.Metric {
					continue
				}
				places := map[string]member{Machine: at(Machine, machine), Metric: at(Metric, q.name)}
				l.place(places, c, at)
				one := cell{e: e, c: c, beside: beside(e, c, q.beside), version: whole}
				if !l.has(Version) {
					l.points = append(l.points, point{one, places})
					continue
				}
				for _, v := range l.versions(e) {
					p := point{one, maps.Clone(places)}
					p.version = v.N
					p.at[Version] = at(Version, v.Name)
					l.points = append(l.points, p)
				}
			}
		}
	}
	for _, q := range quantities {
		for _, name := range []string{q.main, q.beside} {
			if name != "" && !measured[name] {
				return fmt.Errorf("no metric %q was measured: there are %s", name, strings.Join(slices.Sorted(maps.Keys(measured)), ", "))
			}
		}
	}
	return nil
}

// versions are those that are shown, and the change behind them.
func (l *layout) versions(e *store.Evaluation) []bench.Version {
	all := e.Versions
	if n := len(all); n > mostColumns && slices.Contains(l.Columns, Version) {
		all = []bench.Version{all[0], all[n-1]}
	}
	all = slices.Clone(all)
	if len(all) > 1 {
		all = append(all, bench.Version{N: change, Name: "change"})
	}
	return all
}

// mostColumns is how many versions stand side by side; of more, base and the
// last do.
const mostColumns = 4

// place enters where a row belongs by its benchmark and parameters.
func (l *layout) place(places map[string]member, c *bench.Comparison, at func(dimension, key string) member) {
	rest := maps.Clone(c.Params)
	for _, d := range l.params {
		if d == Params {
			label := strings.TrimSuffix(strings.TrimPrefix(bench.RowName("", c.Params), "{"), "}")
			places[d] = at(d, label)
			rest = nil
			continue
		}
		label := ""
		if value, ok := c.Params[d]; ok {
			label = d + "=" + value
		}
		places[d] = at(d, label)
		delete(rest, d)
	}
	places[Benchmark] = at(Benchmark, bench.RowName(c.Benchmark, rest))
}

// beside is the row of another metric of the same benchmark.
func beside(e *store.Evaluation, c *bench.Comparison, metric string) *bench.Comparison {
	if metric == "" {
		return nil
	}
	name := bench.RowName(c.Benchmark, c.Params)
	for i := range e.Results {
		o := &e.Results[i]
		if o.Metric == metric && bench.RowName(o.Benchmark, o.Params) == name {
			return o
		}
	}
	return nil
}

// split sorts points into groups that are alike in some dimensions.
func (l *layout) split(points []point, dimensions []string) [][]point {
	slices.SortStableFunc(points, func(a, b point) int { return compare(a, b, dimensions) })
	var all [][]point
	for i, p := range points {
		if i == 0 || compare(points[i-1], p, dimensions) != 0 {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

func compare(a, b point, dimensions []string) int {
	for _, d := range dimensions {
		if c := cmp.Compare(a.at[d].order, b.at[d].order); c != 0 {
			return c
		}
	}
	return 0
}

// MachineName is how evaluation i is named among others: by its machine, and by
// its id too where several have the same.
func MachineName(evaluations []*store.Evaluation, i int) string {
	name := func(e *store.Evaluation) string { return cmp.Or(plain.Clean(e.Host.Name), plain.Clean(e.ID)) }
	mine := name(evaluations[i])
	for j, e := range evaluations {
		if j != i && name(e) == mine {
			return mine + " (" + plain.Clean(evaluations[i].ID) + ")"
		}
	}
	return mine
}
