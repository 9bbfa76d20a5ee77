package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/rows"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		name       string
		unit       string
		base, half float64 // half: of the interval, 0 for none
		patched    float64
		want       figures
	}{
		{"seconds", "s", 1.52, 0.006, 1.3333, figures{"1.520", "+-0.006", "1.333", "+-0.006", "s"}},
		{"milliseconds", "s", 0.4123, 0.0021, 0.4331, figures{"412.3", "+-2.1", "433.1", "+-2.1", "ms"}},
		{"wide spread", "s", 5.6224, 0.43, 5.235, figures{"5.62", "+-0.43", "5.24", "+-0.43", "s"}},
		{"wider than three digits", "s", 0.599, 0.15, 0.861, figures{"599", "+-150", "861", "+-150", "ms"}},
		{"one unit for a row", "s", 0.9, 0.002, 1.1, figures{"0.900", "+-0.002", "1.100", "+-0.002", "s"}},
		{"rounding up to the next unit", "s", 0.99996, 0.001, 0.99997, figures{"1.000", "+-0.001", "1.000", "+-0.001", "s"}},
		{"minutes", "s", 342.06, 1.2, 274, figures{"342.1", "+-1.2", "274.0", "+-1.2", "s"}},
		{"microseconds an operation", "s/op", 12.4e-6, 2e-8, 11.4e-6, figures{"12.40", "+-0.02", "11.40", "+-0.02", "us/op"}},
		{"a tool's nanoseconds", "ns/op", 1240, 2, 1100, figures{"1.240", "+-0.002", "1.100", "+-0.002", "us/op"}},
		{"nothing", "s", 0, 0, 0, figures{"0", "", "0", "", "s"}},
		{"memory", "B", 64 << 20, 40000, 76 << 20, figures{"64.00", "+-0.04", "76.00", "+-0.04", "MiB"}},
		{"few bytes", "B/op", 48, 0, 0, figures{"48", "", "0", "", "B/op"}},
		{"few allocations", "1", 12, 0, 8, figures{"12", "", "8", "", ""}},
		{"thousands stay", "1", 9876, 0, 9000, figures{"9876", "", "9000", "", ""}},
		{"ten thousands", "1", 12345, 0, 9000, figures{"12.345", "", "9.000", "", "k"}},
		{"instructions", "1", 123456789, 0, 112197531, figures{"123.5", "", "112.2", "", "M"}},
		{"a rate", "MB/s", 812.4, 8.1, 983, figures{"812.4", "+-8.1", "983.0", "+-8.1", "MB/s"}},
		{"huge", "1", 1e300, 0, 2e300, figures{"1e+288", "", "2e+288", "", "T"}},
		{"tiny", "s", 1e-300, 0, 2e-300, figures{"1e-291", "", "2e-291", "", "ns"}},
		{"another unit", "frames per second", 60, 1, 59, figures{"60", "+-1", "59", "+-1", "frames p.."}},
		{"no patched value", "s", 1, 0.01, math.NaN(), figures{"1.000", "+-0.010", "-", "", "s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := cases.New("", bench.Same, "one")
			value := func(n int, v float64) bench.Value {
				out := bench.Value{N: n, Median: ptr(v)}
				if c.half > 0 {
					out.Lo, out.Hi = ptr(v-c.half), ptr(v+c.half/2)
				}
				return out
			}
			w := rows.Row{Comparison: &bench.Comparison{
				Unit: c.unit, Values: []bench.Value{value(0, c.base), value(1, c.patched)}, Total: bench.Step{N: 1},
			}}
			got := (&renderer{e: e.Evaluation, View: rows.Of(e.Evaluation)}).figures(w)
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(figures{})); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
