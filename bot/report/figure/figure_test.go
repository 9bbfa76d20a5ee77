package figure

import (
	"math"
	"testing"
)

func TestScaleFor(t *testing.T) {
	for _, c := range []struct {
		unit string
		v    float64
		want Scale
	}{
		{"bit/s", 80e6, Scale{"Mbit/s", 1e6}},
		{"flop/s", 2.5e9, Scale{"Gflop/s", 1e9}},
		{"bit", 12, Scale{"bit", 1}},
		{"B/s", 80 << 20, Scale{"MiB/s", 1 << 20}},
		{"1/s", 1200, Scale{"/s", 1}},
		{"ns/op", 1240, Scale{"us/op", 1e3}},
		{"%", 93.5, Scale{"%", 1}},
	} {
		got := ScaleFor(c.unit, c.v)
		if got.Unit != c.want.Unit || math.Abs(got.Factor/c.want.Factor-1) > 1e-9 {
			t.Errorf("%v %s is shown in %+v, want %+v", c.v, c.unit, got, c.want)
		}
	}
}

func TestChange(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		mid, lo, hi float64 // NaN: not there
		want        string
	}{
		{0.051, 0.0462, 0.0549, "+5.1 % (4.6 .. 5.5)"},
		{-0.123, -0.1301, -0.1164, "-12.3 % (-13.0 .. -11.6)"},
		{0.002, -0.004, 0.0086, "+0.20 % (-0.40 .. 0.86)"},
		{0.0003, -0.009, 0.02, "0.0 % (-0.9 .. 2.0)"},
		{-1e-17, -0.004, 0.004, "0.00 % (-0.40 .. 0.40)"},
		{1.45, 1.4, 1.5, "+145 % (140 .. 150)"},
		{9.5, 9.1, 9.93, "x10.5 (10.1 .. 10.9)"},
		{150, 140, 160, "x151 (141 .. 161)"},
		{-0.9993, -0.9995, -0.999, "-99.9 % (-100.0 .. -99.9)"},
		{-1, nan, nan, "-100 %"},
		{-1.0 / 3, nan, nan, "-33.3 %"},
		{0.000012, nan, nan, "+0.0012 %"},
		{0, nan, nan, "0.00 %"},
		{nan, nan, nan, "-"},
		{math.Inf(1), 0, 1, "-"},
		{0.1, nan, 0.3, "+10.0 %"},
		{1e300, 1e299, 1e301, "x1e+300 (1e+299 .. 1e+301)"},
	} {
		p := func(v float64) *float64 {
			if math.IsNaN(v) {
				return nil
			}
			return &v
		}
		if got := ChangeOf(p(c.mid), p(c.lo), p(c.hi)).String(); got != c.want {
			t.Errorf("change %v (%v .. %v) is %q, want %q", c.mid, c.lo, c.hi, got, c.want)
		}
	}
}

func TestShareAndElapsed(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Share(0), "0 %"}, {Share(0.01), "1 %"}, {Share(0.0123), "1.2 %"}, {Share(0.00036), "0.04 %"}, {Share(0.2), "20 %"}, {Share(1), "100 %"},
		{Elapsed(0), "0.0 s"}, {Elapsed(0.44), "0.4 s"}, {Elapsed(31.4), "31 s"}, {Elapsed(59.7), "1 min 0 s"}, {Elapsed(250.2), "4 min 10 s"},
		{Elapsed(3599), "1 h 0 min"}, {Elapsed(7500), "2 h 5 min"}, {Elapsed(math.NaN()), "-"}, {Elapsed(-1), "-"}, {Elapsed(math.Inf(1)), "-"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
