package unit

import (
	"math"
	"testing"
)

func TestBase(t *testing.T) {
	tests := []struct {
		unit, base string
		factor     float64
	}{
		{"ns", "s", 1e-9}, {"us", "s", 1e-6}, {"\u00b5s", "s", 1e-6}, {"\u03bcs", "s", 1e-6}, {"ms", "s", 1e-3}, {"s", "s", 1}, {"min", "s", 60},
		{"ns/op", "s", 1e-9}, {"us/iter", "s", 1e-6}, {"B", "B", 1}, {"kB", "B", 1e3}, {"KB", "B", 1e3}, {"KiB", "B", 1024}, {"MiB", "B", 1 << 20},
		{"MB/s", "B/s", 1e6}, {"GiB/s", "B/s", 1 << 30}, {"MB/sec", "B/s", 1e6}, {"ops/s", "1/s", 1}, {"ops/us", "1/s", 1e6}, {"ops/min", "1/s", 1. / 60},
		{"Kelem/s", "1/s", 1e3}, {"Melem/s", "1/s", 1e6}, {"req/s", "1/s", 1}, {"B/op", "B", 1}, {"counts", "1", 1}, {"", "1", 1}, {"1", "1", 1},
		{"msecs", "s", 1e-3}, {"Mbps", "bit/s", 1e6}, {"bps", "bit/s", 1}, {"Mbits/sec", "bit/s", 1e6}, {"Gbit/s", "bit/s", 1e9}, {"bits", "bit", 1},
		{"GFLOPS", "flop/s", 1e9}, {"fps", "1/s", 1}, {"qps", "1/s", 1}, {"kIOPS", "1/s", 1e3}, {"ps", "s", 1e-12}, {"MiB/s", "B/s", 1 << 20},
		{"%", "%", 1}, {"widgets", "widgets", 1}, {"widgets/s", "widgets/s", 1}, {"J/op", "J", 1}, {"B/row", "B/row", 1},
	}
	for _, tt := range tests {
		base, factor := Base(tt.unit)
		if base != tt.base || math.Abs(factor/tt.factor-1) > 1e-12 {
			t.Errorf("unit.Base(%q) = %s, %v, want %s, %v", tt.unit, base, factor, tt.base, tt.factor)
		}
	}
}

func TestNumber(t *testing.T) {
	for s, want := range map[string]float64{"1": 1, "1.": 1, ".5": 0.5, "+2e3": 2000, "1E-2": 0.01, "0": 0, "-0": 0} {
		if got, err := Number(s); err != nil || got != want {
			t.Errorf("Number(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "1,5", "1,000", "nan", "NaN", "-inf", "+Infinity", "-1", "1e309", "0x10", "1_000", "1e", "٣", "1 2"} {
		if got, err := Number(s); err == nil {
			t.Errorf("Number(%q) = %v", s, got)
		}
	}
	for s, want := range map[string]float64{"1,234.5": 1234.5, "12,345,678": 12345678, "999": 999} {
		if got, err := Grouped(s); err != nil || got != want {
			t.Errorf("Grouped(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"1,5", "1,2345", "1234,567", ",123"} {
		if got, err := Grouped(s); err == nil {
			t.Errorf("Grouped(%q) = %v", s, got)
		}
	}
	for s, want := range map[string]bool{"1": true, "1,5": true, "nan": true, "-Inf": true, "1e309": true, "-1": true, "x": false, "": false, "e": false, "1ms": false} {
		if got := IsNumber(s); got != want {
			t.Errorf("IsNumber(%q) = %v", s, got)
		}
	}
}
