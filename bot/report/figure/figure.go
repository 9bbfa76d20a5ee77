// Package figure writes measured numbers as people read them: samples in the
// unit that fits, changes in per cent, shares and durations.
//
// In go float64 in base units and fractions, out come short ASCII words, the
// same in every format of a report.
package figure

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"patchbench/bot/report/plain"
)

// A Scale turns samples in their own unit into the unit that people read.
type Scale struct {
	Unit   string  // as shown, "" for a plain count
	Factor float64 // shown = sample / factor
}

// ScaleFor picks the unit in which v, a sample in unit, has one to three digits
// before its point: "s" becomes ms, "B" MiB, "B/op" KiB/op, "1" a count in M.
func ScaleFor(unit string, v float64) Scale {
	base, per := unit, ""
	if i := strings.IndexByte(unit, '/'); i > 0 {
		base, per = unit[:i], unit[i:]
	}
	v = math.Abs(v)
	pick := func(one float64, steps ...Scale) Scale {
		s := steps[0]
		for _, next := range steps[1:] {
			// 999.96 would be shown as 1000.0.
			if v*one >= next.Factor*0.99995 {
				s = next
			}
		}
		return Scale{s.Unit + per, s.Factor / one}
	}
	seconds := []Scale{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}
	if v == 0 {
		seconds = seconds[3:]
	}
	switch base {
	case "s", "sec":
		return pick(1, seconds...)
	case "ms":
		return pick(1e-3, seconds...)
	case "us":
		return pick(1e-6, seconds...)
	case "ns":
		return pick(1e-9, seconds...)
	case "B", "bytes":
		return pick(1, Scale{"B", 1}, Scale{"KiB", 1 << 10}, Scale{"MiB", 1 << 20}, Scale{"GiB", 1 << 30}, Scale{"TiB", 1 << 40})
	case "1", "":
		return pick(1, Scale{"", 1}, Scale{"k", 1e4}, Scale{"M", 1e6}, Scale{"G", 1e9}, Scale{"T", 1e12}).thousand()
	case "bit", "flop":
		return pick(1, Scale{base, 1}, Scale{"k" + base, 1e3}, Scale{"M" + base, 1e6}, Scale{"G" + base, 1e9}, Scale{"T" + base, 1e12})
	}
	return Scale{plain.Cut(plain.Clean(unit), 10), 1}
}

// thousand lets counts below 10,000 stand as they are.
func (s Scale) thousand() Scale {
	if s.Unit == "k" {
		s.Factor = 1e3
	}
	return s
}

// Decimals is how many digits stand behind the point of a row's values: four
// digits in all for the smallest, but at most two of its spread.
func Decimals(whole bool, spread float64, values ...float64) int {
	small := math.Inf(1)
	for _, v := range values {
		if v != 0 {
			small = min(small, math.Abs(v))
		}
	}
	if math.IsInf(small, 1) {
		return 0
	}
	if whole && small < 10000 {
		return 0
	}
	d := 3 - int(math.Floor(math.Log10(small)))
	if spread > 0 {
		d = min(d, 1-int(math.Floor(math.Log10(spread))))
		// Three digits stay, however wide the spread.
		d = max(d, 2-int(math.Floor(math.Log10(small))))
	}
	return min(max(d, 0), 3)
}

// Number is v with d decimals, or with four digits and an exponent where that
// would be too long for a table.
func Number(v float64, d int) string { return string(AppendNumber(nil, v, d)) }

// AppendNumber appends what Number gives.
func AppendNumber(b []byte, v float64, d int) []byte {
	if a := math.Abs(v); a >= 1e7 || a != 0 && a < 1e-4 {
		return strconv.AppendFloat(b, v, 'g', 4, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'f', d, 64)
	if b[start] == '-' && len(bytes.Trim(b[start:], "-0.")) == 0 {
		b = append(b[:start], b[start+1:]...)
	}
	return b
}

// Plain is v with d decimals and without a minus before zero.
func Plain(v float64, d int) string {
	s := strconv.FormatFloat(v, 'f', d, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// A Change is a relative change in the words of a table. lo and hi are "" where
// there is no interval.
type Change struct{ Middle, Lo, Hi string }

// ChangeOf words a change given as fractions. From tenfold on it is a factor.
func ChangeOf(mid, lo, hi *float64) Change {
	if !Finite(mid) {
		return Change{Middle: "-"}
	}
	if !Finite(lo) || !Finite(hi) {
		lo, hi = nil, nil
	}
	largest := math.Abs(*mid)
	if lo != nil {
		largest = max(largest, math.Abs(*lo), math.Abs(*hi))
	}
	d, times := 1, *mid >= 9
	switch {
	case times && *mid >= 99, !times && largest >= 1:
		d = 0
	case times, largest >= 0.01:
	case lo == nil && largest >= 1e-8:
		d = 1 - int(math.Floor(math.Log10(largest*100)))
	default:
		d = 2
	}
	show := func(v float64) string {
		v *= 100
		if times {
			v = v/100 + 1
		}
		if math.Abs(v) >= 1e7 {
			return strconv.FormatFloat(v, 'g', 3, 64)
		}
		return Plain(v, d)
	}
	c := Change{Middle: show(*mid)}
	if times {
		c.Middle = "x" + c.Middle
	} else {
		c.Middle = Signed(c.Middle) + " %"
	}
	if lo != nil {
		c.Lo, c.Hi = show(*lo), show(*hi)
	}
	return c
}

// Signed puts a plus before a positive number.
func Signed(s string) string {
	if s == "" || s[0] == '-' || strings.Trim(s, "0.") == "" {
		return s
	}
	return "+" + s
}

// String is the change in a sentence: "+5.1 % (4.6 .. 5.5)".
func (c Change) String() string {
	if c.Lo == "" {
		return c.Middle
	}
	return c.Middle + " (" + c.Lo + " .. " + c.Hi + ")"
}

// Share is a fraction of no sign in per cent: "0.35 %", "1 %", "1.2 %", "14 %".
func Share(f float64) string {
	p := math.Abs(f) * 100
	d := 0
	if p < 9.95 {
		d = 1
	}
	if p < 0.095 {
		d = 2
	}
	s := Number(p, d)
	if strings.Contains(s, ".") && !strings.Contains(s, "e") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + " %"
}

// Elapsed is a duration as people say it: "0.4 s", "31 s", "4 min 10 s", "2 h 5 min".
func Elapsed(seconds float64) string {
	if !(seconds >= 0) || seconds > 1e9 {
		return "-"
	}
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case seconds < 9.95:
		return Plain(seconds, 1) + " s"
	case seconds < 59.5:
		return Plain(seconds, 0) + " s"
	case seconds < 3570:
		d = d.Round(time.Second)
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	d = d.Round(time.Minute)
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// Finite says that a figure is there and can be shown.
func Finite(f *float64) bool { return f != nil && !math.IsNaN(*f) && !math.IsInf(*f, 0) }
