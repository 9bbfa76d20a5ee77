package layout

import (
	"strings"
	"testing"

	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

func TestTables(t *testing.T) {
	one := func(name string) []*store.Evaluation { return []*store.Evaluation{cases.All[name]().Evaluation} }
	two := func(name string) []*store.Evaluation {
		return []*store.Evaluation{cases.All[name]().Evaluation, cases.Other(cases.All[name](), 2.4, 0.5).Evaluation}
	}
	list := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	for _, c := range []struct {
		name                   string
		evaluations            []*store.Evaluation
		rows, columns, metrics string
	}{
		{"default", one("planted"), "", "", ""},
		{"before-after", one("operations"), "benchmark", "version", "cpu"},
		{"grid", one("operations"), "benchmark", "metric", "cpu,rss,copied,malloc"},
		{"grid-by-parameter", one("operations"), "benchmark", "alloc,metric", "cpu,rss"},
		{"total-user", one("operations"), "benchmark,version", "alloc", "wall(user)"},
		{"triplets", one("operations"), "benchmark,version", "metric", "wall,user,sys"},
		{"versions-down", one("planted"), "version", "benchmark", "wall"},
		{"all-parameters", one("parameters"), "version", "params", "wall(user)"},
		{"two-parameters", one("parameters"), "tree,benchmark", "threads", "wall,rss"},
		{"machines", two("operations"), "", "", "cpu,rss"},
		{"machines-by-version", two("planted"), "benchmark,metric", "machine,version", ""},
		{"machines-down", two("planted"), "machine,version", "benchmark", "cpu"},
		{"thirty-versions", one("large"), "benchmark", "version", "cpu"},
		{"crash", one("crash"), "benchmark", "version", "cpu,wall"},
		{"exact", one("exact"), "benchmark,metric", "version", ""},
		{"hostile", one("hostile"), "benchmark", "version,metric", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			metrics := list(c.metrics)
			lines, err := Tables(c.evaluations, Options{Rows: list(c.rows), Columns: list(c.columns), Metrics: metrics})
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range lines {
				if plain.Columns(line) > 78 || plain.Clean(line) != line && c.name != "hostile" {
					t.Errorf("line %d has %d columns: %q", i+1, plain.Columns(line), line)
				}
			}
			cases.Golden(t, c.name+".txt", strings.Join(lines, "\n")+"\n")
		})
	}
}
