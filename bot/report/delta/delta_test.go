package delta_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/delta"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// evaluation has one patch and these total changes of rows, by "hash cpu".
func evaluation(version int, rows map[string]float64, order ...string) *store.Evaluation {
	b := cases.New("", bench.Same, "hash: mix in the length")
	b.Series.Version = version
	b.ID = fmt.Sprintf("2026112%d-aaaaaa", version)
	for _, name := range order {
		benchmark, metric, _ := strings.Cut(name, " ")
		b.Row(benchmark, metric, "s", 0.4, 0.004, map[int]float64{1: rows[name]})
	}
	return b.Judged().Evaluation
}

func TestLines(t *testing.T) {
	v1 := evaluation(1, map[string]float64{"hash cpu": .05, "sort cpu": -.1, "gone cpu": .2}, "hash cpu", "sort cpu", "gone cpu", "table cpu")
	v2 := evaluation(2, map[string]float64{"sort cpu": -.12, "table cpu": .03}, "hash cpu", "sort cpu", "table cpu", "new cpu")
	elsewhere := evaluation(2, nil, "hash cpu")
	elsewhere.Host.Name, elsewhere.Base.Commit, elsewhere.Suite.Digest = "bench2", "ffff", "eeee"
	unmeasured := evaluation(2, nil, "hash cpu")
	unmeasured.Results[0].Total = bench.Step{Verdict: bench.NotMeasured, Reason: "crashed"}
	var many []string
	rows := map[string]float64{}
	for i := range 20 {
		many = append(many, fmt.Sprintf("row%d cpu", i))
		rows[many[i]] = .1
	}
	hostile := evaluation(1, map[string]float64{"x\x1b[2J\u202e" + strings.Repeat("長", 60) + " cpu": .1}, "x\x1b[2J\u202e"+strings.Repeat("長", 60)+" cpu")
	hostile.Headline = strings.Repeat("a word and\x1b[2J ", 90)
	for name, c := range map[string]struct {
		before, now *store.Evaluation
		want        string // "" : only what holds for all
	}{
		"better, worse, gone and new": {v1, v2, `
Since v1 (20261121-aaaaaa), which was measured at another time
  it said: mixed: gone gets 20.0 % slower (cpu); sort gets 10.0 % faster
    (cpu); hash gets 5.0 % slower (cpu)
  hash cpu   worse   +5.0 %  ->  same
  sort cpu   better -10.0 %  ->  better -12.0 %
  gone cpu   worse  +20.0 %  ->  no row
  table cpu  same            ->  worse   +3.0 %
`},
		"another machine, base and suite": {v2, elsewhere, `
Since 20261122-aaaaaa, which was measured at another time, on another
  machine, with another suite, with another base
  it said: mixed: sort gets 12.0 % faster (cpu); table gets 3.0 % slower
    (cpu)
  sort cpu   better -12.0 %  ->  no row
  table cpu  worse   +3.0 %  ->  no row
`},
		"not measured now": {v1, unmeasured, `
Since v1 (20261121-aaaaaa), which was measured at another time
  it said: mixed: gone gets 20.0 % slower (cpu); sort gets 10.0 % faster
    (cpu); hash gets 5.0 % slower (cpu)
  hash cpu  worse   +5.0 %  ->  no figure
  sort cpu  better -10.0 %  ->  no row
  gone cpu  worse  +20.0 %  ->  no row
`},
		"nothing in either": {evaluation(1, nil, "hash cpu"), evaluation(2, nil, "hash cpu"), `
Since v1 (20261121-aaaaaa), which was measured at another time
  it said: no change: 1 benchmark, within 0.4 %
`},
		"many rows": {evaluation(1, rows, many...), evaluation(2, nil, many...), ""},
		"hostile":   {hostile, hostile, ""},
		"empty":     {&store.Evaluation{}, &store.Evaluation{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			lines := delta.Lines(c.before, c.now, 72)
			got := "\n" + strings.Join(lines, "\n") + "\n"
			if c.want != "" {
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			if len(lines) > 20 {
				t.Errorf("%d lines", len(lines))
			}
			for _, line := range lines {
				if plain.Columns(line) > 72 || plain.Clean(line) != line {
					t.Errorf("%d columns: %q", plain.Columns(line), line)
				}
			}
			if name == "many rows" && lines[len(lines)-1] != "  and 8 rows more" {
				t.Errorf("the last line is %q", lines[len(lines)-1])
			}
		})
	}
}
