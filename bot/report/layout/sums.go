package layout

import (
	"fmt"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// sums keeps what the rows of a group of benchmarks change by, to be summed up
// behind the last of them. It does so in a grid of benchmarks alone.
type sums struct {
	l       *layout
	is      bool
	columns [][]point
	group   string
	members int
	factors map[int][]float64 // by column
	units   map[int]string
}

func (l *layout) sums(columns [][]point) *sums {
	is := len(l.Rows) > 0 && l.Rows[0] == Benchmark && !l.has(Version) && slices.Contains(l.Columns, Metric)
	return &sums{l: l, is: is, columns: columns}
}

// add takes a row in, nil after the last one, and writes the line of the group
// that ends with it.
func (s *sums) add(t *plain.Table, row []point) {
	if !s.is {
		return
	}
	group := ""
	if row != nil {
		group = groupOf(row[0].at[Benchmark].key)
	}
	if group != s.group {
		if s.members > 1 {
			for _, line := range plain.Wrap(plain.Clean(s.group)+": "+s.text(), s.l.Width-10, "  ") {
				t.Add("    " + line)
			}
		}
		s.group, s.members, s.factors, s.units = group, 0, map[int][]float64{}, map[int]string{}
	}
	s.members++
	for i, column := range s.columns {
		for _, p := range row {
			if compare(p, column[0], s.l.Columns) != 0 {
				continue
			}
			s.units[i] = p.c.Unit
			base, last := rows.Value(p.e, p.c, 0), rows.Value(p.e, p.c, p.c.Total.N)
			if figure.Finite(base.Median) && figure.Finite(last.Median) && *base.Median > 0 {
				s.factors[i] = append(s.factors[i], *last.Median / *base.Median)
			}
		}
	}
}

// groupOf is what benchmarks of one kind have in common: the name before the
// parameters, or before its first dash or slash.
func groupOf(name string) string {
	if i := strings.IndexAny(name, "{-/"); i > 0 {
		return name[:i]
	}
	return name
}

// text says how much a group changes: "cpu 1.2-2.0x faster, rss the same".
func (s *sums) text() string {
	var all []string
	for i, column := range s.columns {
		f := s.factors[i]
		if len(f) == 0 {
			continue
		}
		lo, hi := slices.Min(f), slices.Max(f)
		word, more := "more", "less"
		if s.units[i] == bench.Second {
			word, more = "slower", "faster"
		}
		name := plain.CutName(plain.Clean(key(column[0], s.l.Columns)), 24) + " "
		switch {
		case lo > 0.99 && hi < 1.01:
			all = append(all, name+"the same")
		case hi <= 1.005 && lo > 0:
			all = append(all, name+span(1/hi, 1/lo)+"x "+more)
		case lo >= 0.995:
			all = append(all, name+span(lo, hi)+"x "+word)
		default:
			all = append(all, fmt.Sprintf("%s%.2f to %.2f times base", name, lo, hi))
		}
	}
	return strings.Join(all, ", ")
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
