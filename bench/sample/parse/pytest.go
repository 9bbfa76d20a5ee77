package parse

import (
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
	"patchbench/bench/sample/parse/unit"
)

var (
	pytestHeader = late.Regexp(`^Name \(time in (\S+)\)\s+(.*)$`)
	// pytestRatio is how much larger a figure is than the best in its column.
	pytestRatio = late.Regexp(`\s*\(>?[\d,.]+\)$`)
)

// pytestColumns are the figures that can stand for a benchmark, best first.
var pytestColumns = []string{"Median", "Mean", "Min"}

// readPytest reads pytest-benchmark: its JSON, or the table on the terminal.
func readPytest(out []byte) ([]Result, error) {
	if doc, err := node.In(out, "benchmarks"); err != nil {
		return nil, err
	} else if doc != nil {
		return pytestJSON(doc)
	}
	var list []Result
	var names []string
	var u string
	column := -1
	for i, line := range lines(out) {
		if m := pytestHeader().FindStringSubmatch(line); m != nil {
			u, names, column = m[1], columns(m[2]), -1
			for _, c := range pytestColumns {
				if column < 0 {
					column = slices.Index(names, c)
				}
			}
			if column < 0 {
				return nil, node.At(i+1, "the table has none of the columns %s: choose one with --benchmark-columns", strings.Join(pytestColumns, ", "))
			}
			continue
		}
		switch {
		case names == nil:
			continue
		case strings.TrimSpace(line) == "":
			names = nil // the end of a table
			continue
		case ruler(line, '-'):
			continue
		}
		cells := columns(line)
		if len(cells) != len(names)+1 {
			return nil, node.At(i+1, "%s: %d figures in a table of %d columns", shown(cells[0]), len(cells)-1, len(names))
		}
		v, err := unit.Grouped(pytestRatio().ReplaceAllString(cells[1+column], ""))
		if err != nil {
			return nil, node.At(i+1, "%s: %w", shown(cells[0]), err)
		}
		list = append(list, Result{Name: cells[0], Line: i + 1, Values: []Value{scaled(wall, v, u)}})
	}
	return list, nil
}

func pytestJSON(doc *node.Node) ([]Result, error) {
	var list []Result
	count := map[string]int{}
	all := doc.Get("benchmarks").Items
	for _, n := range all {
		count[n.Get("name").Str()]++
	}
	for _, n := range all {
		r := Result{Name: n.Get("name").Str(), Line: n.Line}
		// Two files may have tests of one name.
		if full := n.Get("fullname"); count[r.Name] > 1 && full != nil {
			r.Name = full.Text
		}
		stats := n.Get("stats")
		best := stats.Get("median").Or(stats.Get("mean"))
		if best == nil {
			return nil, node.At(n.Line, "%s has no median", shown(r.Name))
		}
		v, err := figure(best, wall, bench.Second)
		if err != nil {
			return nil, err
		}
		r.Values = []Value{v}
		list = append(list, r)
	}
	return list, nil
}
