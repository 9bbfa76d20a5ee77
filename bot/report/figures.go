package report

import (
	"math"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/rows"
)

// figures are base and patched of a row's total in one unit, each with its
// spread ("+-2.1"). A value that is not there is "-", its spread "".
type figures struct{ base, baseSpread, patched, patchedSpread, unit string }

func (r *renderer) figures(w rows.Row) figures {
	a, b := r.Value(w, 0), r.Value(w, w.Total.N)
	var values []float64
	largest, spread, whole := 0.0, 0.0, true
	for _, v := range []bench.Value{a, b} {
		if v.Median == nil {
			continue
		}
		values = append(values, *v.Median)
		largest = max(largest, math.Abs(*v.Median))
		spread = max(spread, spreadOf(w, v))
		whole = whole && *v.Median == math.Trunc(*v.Median)
	}
	s := figure.ScaleFor(w.Unit, largest)
	for i := range values {
		values[i] /= s.Factor
	}
	d := figure.Decimals(whole && s.Factor == 1 && spread == math.Trunc(spread), spread/s.Factor, values...)
	show := func(v bench.Value) (string, string) {
		if v.Median == nil {
			return "-", ""
		}
		plusMinus := ""
		if figure.Finite(v.Lo) && figure.Finite(v.Hi) && !w.Exact {
			plusMinus = "+-" + figure.Number(spreadOf(w, v)/s.Factor, d)
		}
		return figure.Number(*v.Median/s.Factor, d), plusMinus
	}
	f := figures{unit: s.Unit}
	f.base, f.baseSpread = show(a)
	f.patched, f.patchedSpread = show(b)
	return f
}

// spreadOf is the farther end of the interval of v's median, as a distance.
func spreadOf(w rows.Row, v bench.Value) float64 {
	if w.Exact || v.Median == nil || !figure.Finite(v.Lo) || !figure.Finite(v.Hi) {
		return 0
	}
	return max(*v.Median-*v.Lo, *v.Hi-*v.Median, 0)
}
