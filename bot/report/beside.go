package report

import (
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// mostBeside is for how many benchmarks is told what stands beside their figures.
const mostBeside = 5

// beside tells what the tables leave out of figures that are made of two: what
// was subtracted as the baseline, and how much longer than alone benchmarks take
// together.
func (r *renderer) beside() []string {
	var less, slow []string
	at := map[string]int{} // in less, by benchmark
	for i := range r.e.Results {
		w := rows.Row{Comparison: &r.e.Results[i]}
		f := r.figures(w)
		if f.base == "-" {
			continue
		}
		name := plain.CutName(plain.Clean(bench.RowName(w.Benchmark, w.Params)), 30)
		metric, ok := strings.CutPrefix(w.Metric, bench.OfBaseline)
		switch {
		case ok:
			text := plain.Clean(metric) + " " + f.base + " " + f.unit
			if k, ok := at[name]; ok {
				less[k] += ", " + text
				continue
			}
			at[name] = len(less)
			less = append(less, name+" "+text)
		case w.Metric == bench.Slowdown.Name && w.Unit == bench.Slowdown.Unit:
			v := r.Value(w, 0)
			text := name + " " + figure.Number(*v.Median, 2)
			if b := r.Value(w, w.Total.N); b.Median != nil && f.patched != f.base {
				text += " (patched " + figure.Number(*b.Median, 2) + ")"
			}
			slow = append(slow, text)
		}
	}
	var lines []string
	tell := func(before string, list []string, between string) {
		if len(list) == 0 {
			return
		}
		if more := len(list) - mostBeside; more > 0 {
			list = append(list[:mostBeside], "and "+count(more, "more benchmark"))
		}
		lines = append(lines, plain.Wrap(before+strings.Join(list, between)+".", r.inner, "  ")...)
	}
	tell("Subtracted as the baseline: ", less, "; ")
	tell("Time when run together, as a multiple of the time alone: ", slow, ", ")
	return lines
}
