package layout

import (
	"math"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// How much of a cell is shown: what does not fit is left out.
type detail struct {
	value, spread, interval bool
	above                   bool // names stand on lines of their own
}

// A table is the part of a layout that has one title.
type table struct {
	*layout
	rows, columns [][]point
	// units are the scales of the metrics that have one in the whole table; their
	// unit stands in the title or in the heads, not in the cells.
	units map[string]figure.Scale
}

// block is one table with its title. Columns that do not fit side by side follow
// below each other.
func (l *layout) block(points []point, rest []string) []string {
	t := &table{layout: l, rows: l.split(slices.Clone(points), l.Rows), columns: l.split(slices.Clone(points), l.Columns), units: l.units(points)}
	full := detail{value: true, spread: true, interval: true}
	details := []detail{full, {value: true, interval: true}, {value: true}, {value: true, interval: true, above: true}, {value: true, above: true}}
	switch {
	case slices.Contains(l.Columns, Version):
		// Base and patched with their intervals say more than all versions without.
		if _, wide := t.render(t.columns, full); wide > l.Width {
			t.columns = slices.DeleteFunc(t.columns, func(column []point) bool { return column[0].between() })
		}
	case !l.has(Version) && slices.Contains(l.Columns, Machine):
		// Figures of machines are not held against each other, their changes are.
		details = []detail{full, {interval: true}, {interval: true, above: true}, {above: true}}
	case !l.has(Version) && slices.Contains(l.Columns, Metric):
		details = []detail{{value: true, interval: true}, {value: true}, {value: true, above: true}}
	}
	var lines []string
	if title := t.title(points, rest); title != "" {
		lines = append(lines, plain.Cut(title, l.Width))
	}
	for len(t.columns) > 0 {
		n, d, body := t.fit(details)
		lines = append(lines, body...)
		t.columns = t.columns[n:]
		details = details[d:] // what follows below shows no more
	}
	return lines
}

// between says that a point's version is neither base nor the last.
func (p point) between() bool {
	return p.version > 0 && p.version < p.e.Versions[len(p.e.Versions)-1].N
}

// fit lays out as many columns as have room, in the most detail that has.
func (t *table) fit(details []detail) (n, used int, lines []string) {
	for n = len(t.columns); n > 0; n-- {
		for i, d := range details {
			body, wide := t.render(t.columns[:n], d)
			if wide <= t.Width || n == 1 && i == len(details)-1 {
				return n, i, body
			}
		}
	}
	return len(t.columns), 0, nil
}

// title names what is alike in a whole table.
func (t *table) title(points []point, rest []string) string {
	var parts []string
	text, machine := "", ""
	for _, d := range rest {
		switch key := plain.CutName(plain.Clean(points[0].at[d].key), 50); {
		case key == "":
		case d == Machine:
			if t.machines > 1 {
				machine = " on " + key
			}
		default:
			parts = append(parts, key)
		}
	}
	text = strings.Join(parts, " ") + machine
	if u := t.units[points[0].at[Metric].key].Unit; u != "" && slices.Contains(rest, Metric) {
		text += ", in " + u
	}
	switch {
	case t.has(Version):
	case text == "":
		return "Last version, and its change against base"
	default:
		text += ": last version, and its change against base"
	}
	return text
}

// unitsBelow is how large the largest figure of a table may be in the unit of the
// smallest, for all to have that unit.
const unitsBelow = 1e4

// units gives the scale of each metric that can have one in a whole table.
func (l *layout) units(points []point) map[string]figure.Scale {
	all := map[string]figure.Scale{}
	if slices.Contains(l.Rows, Metric) {
		return all // each row has its own
	}
	for _, metric := range l.split(slices.Clone(points), []string{Metric}) {
		small, large := math.Inf(1), 0.0
		same := true
		for _, p := range metric {
			same = same && p.c.Unit == metric[0].c.Unit
			for _, v := range p.c.Values {
				if figure.Finite(v.Median) && *v.Median != 0 {
					small, large = min(small, math.Abs(*v.Median)), max(large, math.Abs(*v.Median))
				}
			}
		}
		if s := figure.ScaleFor(metric[0].c.Unit, small); same && !math.IsInf(small, 1) && large/s.Factor < unitsBelow {
			all[metric[0].at[Metric].key] = s
		}
	}
	return all
}

// scale is the unit of a point's row, the same for all its versions.
func (t *table) scale(p point) figure.Scale {
	if s, ok := t.units[p.at[Metric].key]; ok {
		return s
	}
	largest := 0.0
	for _, v := range p.c.Values {
		if figure.Finite(v.Median) {
			largest = max(largest, math.Abs(*v.Median))
		}
	}
	return figure.ScaleFor(p.c.Unit, largest)
}

// parts are the sub-columns of a cell.
const parts = 3

func (t *table) render(columns [][]point, d detail) (lines []string, wide int) {
	labels := max(1, len(t.Rows))
	if d.above {
		labels = 1
	}
	out := &plain.Table{}
	for i := range labels {
		out.Columns = append(out.Columns, plain.Column{Gap: 2 * min(i, 1)})
	}
	for _, column := range columns {
		head := plain.Clean(key(column[0], t.Columns))
		if u := t.units[column[0].at[Metric].key].Unit; u != "" && u != column[0].c.Metric && slices.Contains(t.Columns, Metric) && column[0].version != change {
			head += ", " + u
		}
		head = plain.CutName(head, 30)
		out.Columns = append(out.Columns, plain.Column{Head: head, Gap: 3, Align: plain.Point}, plain.Column{Gap: 1, Align: plain.Point}, plain.Column{Gap: 1})
	}
	sum := t.sums(columns)
	before := make([]string, len(t.Rows))
	for _, row := range t.rows {
		if !slices.ContainsFunc(columns, func(column []point) bool {
			return slices.ContainsFunc(row, func(p point) bool { return compare(p, column[0], t.Columns) == 0 })
		}) {
			continue // it has nothing here
		}
		sum.add(out, row)
		names := make([]string, len(t.Rows))
		fresh := false
		for i, dim := range t.Rows {
			name := plain.Clean(row[0].at[dim].key)
			fresh = fresh || before[i] != name
			before[i] = name
			if fresh {
				names[i] = name
			}
		}
		cells := make([]string, labels, labels+parts*len(columns))
		if d.above {
			cells[0] = "   "
			out.Add("  " + plain.CutName(strings.TrimSpace(strings.Join(before, " ")), t.Width-8))
		} else {
			copy(cells, names)
			cells[0] = "  " + cells[0]
		}
		for _, column := range columns {
			text := make([]string, parts)
			for _, p := range row {
				if compare(p, column[0], t.Columns) == 0 {
					text = t.cell(p, d)
				}
			}
			cells = append(cells, text...)
		}
		out.Add(cells...)
	}
	sum.add(out, nil)
	return out.Render()
}

// key names a point in some dimensions.
func key(p point, dimensions []string) string {
	var all []string
	for _, d := range dimensions {
		if k := p.at[d].key; k != "" {
			all = append(all, k)
		}
	}
	return strings.Join(all, " ")
}

// cell is a point's text: value or change, and what stands beside it.
func (t *table) cell(p point, d detail) []string {
	if p.version == change {
		c := figure.ChangeOf(p.c.Total.Change, p.c.Total.Lo, p.c.Total.Hi)
		interval := ""
		if c.Lo != "" && d.interval {
			interval = "(" + c.Lo + " .. " + c.Hi + ")"
		}
		return []string{c.Middle + mark(p.c.Total.Verdict), interval, ""}
	}
	n := p.version
	if n == whole {
		n = p.c.Total.N
	}
	s := t.scale(p)
	value := rows.Value(p.e, p.c, n)
	text, spread := "-", ""
	if figure.Finite(value.Median) {
		half := 0.0
		if figure.Finite(value.Lo) && figure.Finite(value.Hi) && !p.c.Exact {
			half = max(*value.Hi-*value.Median, *value.Median-*value.Lo)
		}
		decimals := figure.Decimals(s.Factor == 1 && *value.Median == math.Trunc(*value.Median), half/s.Factor, *value.Median/s.Factor)
		text = figure.Number(*value.Median/s.Factor, decimals)
		if half > 0 && d.spread {
			spread = "+-" + figure.Number(half/s.Factor, decimals)
		}
		if p.beside != nil {
			if other := rows.Value(p.e, p.beside, n); figure.Finite(other.Median) {
				spread = "(" + figure.Number(*other.Median/s.Factor, decimals) + ")"
			}
		}
	}
	shown := ""
	if _, told := t.units[p.at[Metric].key]; text != "-" && !told {
		shown = s.Unit
	}
	if p.version != whole {
		return []string{text, spread, shown}
	}
	// The last version and its change: the spread gives way to the change's interval.
	c := figure.ChangeOf(p.c.Total.Change, p.c.Total.Lo, p.c.Total.Hi)
	middle, interval := c.Middle+mark(p.c.Total.Verdict), ""
	if c.Lo != "" && d.interval {
		interval = "(" + c.Lo + " .. " + c.Hi + ")"
	}
	if c.Middle == "-" {
		middle = mark(p.c.Total.Verdict)
		if text == "-" {
			middle = ""
		}
	}
	if !d.value {
		if middle == "" {
			middle = "-"
		}
		return []string{middle, interval, ""}
	}
	if p.beside != nil && spread != "" {
		text += " " + spread
	}
	return []string{strings.TrimSpace(text + " " + shown), middle, interval}
}

// The marks of a change that is none for certain; Legend explains them.
func mark(v bench.Verdict) string {
	switch v {
	case bench.Unclear:
		return "?"
	case bench.Same:
		return "="
	case bench.Shown:
		return "~"
	}
	return ""
}

// Legend explains what stands after changes.
const Legend = "After a change: = the same within the margin, ? unclear, ~ not tested."
