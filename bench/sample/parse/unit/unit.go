// Package unit reads the figures and units that benchmark programs print: "12.5"
// and "ms" are 0.0125 s. Text goes in, floats in base units come out; nothing else
// is known here.
package unit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
)

var (
	plainNumber = late.Regexp(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$`)
	thousands   = late.Regexp(`^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$`)
	withComma   = late.Regexp(`^[+-]?\d+,\d+$`)
)

// Number reads a figure as programs print it in the C locale. The error says why
// it is no measurement.
func Number(s string) (float64, error) {
	switch word := strings.TrimLeft(strings.ToLower(s), "+-"); {
	case withComma().MatchString(s):
		return 0, fmt.Errorf("%s has a decimal comma: print it with a decimal point (LC_ALL=C)", s)
	case word == "nan" || word == "inf" || word == "infinity":
		return 0, fmt.Errorf("%s is no measurement: it must be finite and not negative", s)
	case !plainNumber().MatchString(s):
		return 0, fmt.Errorf("%s is no number", short(s))
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", s)
	case err != nil:
		return 0, fmt.Errorf("%s is no number", short(s))
	case v < 0:
		return 0, fmt.Errorf("%s is no measurement: it must be finite and not negative", s)
	}
	return v, nil
}

// Grouped reads a figure of a tool that puts commas between thousands.
func Grouped(s string) (float64, error) {
	if thousands().MatchString(s) {
		s = strings.ReplaceAll(s, ",", "")
	}
	return Number(s)
}

// IsNumber says that a word is meant as a figure, also as one that is refused.
func IsNumber(s string) bool {
	_, err := Number(s)
	return err == nil || strings.ContainsAny(s, "0123456789") && strings.Trim(s, "+-0123456789.,eE") == "" ||
		slices.Contains([]string{"nan", "inf", "infinity"}, strings.TrimLeft(strings.ToLower(s), "+-"))
}

var times = map[string]float64{
	"ps": 1e-12, "ns": 1e-9, "nsec": 1e-9, "nanoseconds": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "usec": 1e-6, "microseconds": 1e-6,
	"nsecs": 1e-9, "nanosecond": 1e-9, "usecs": 1e-6, "microsecond": 1e-6, "msecs": 1e-3, "millisecond": 1e-3,
	"ms": 1e-3, "msec": 1e-3, "milliseconds": 1e-3, "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
	"min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600, "day": 86400, "days": 86400,
}

// prefixes of bytes, rates and counts; the longer stand first.
var prefixes = []struct {
	text   string
	factor float64
}{
	{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"Ti", 1 << 40},
	{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"", 1},
}

var (
	bytesNamed = []string{"B", "byte", "bytes", "Byte", "Bytes"}
	bitsNamed  = []string{"bit", "bits", "Bit", "Bits"}
)

// rates are those that are written without a stroke; with a prefix, too.
var rates = map[string]string{
	"bps": "bit/s", "flops": "flop/s", "FLOPS": "flop/s",
	"fps": "1/s", "FPS": "1/s", "qps": "1/s", "QPS": "1/s", "rps": "1/s", "RPS": "1/s", "tps": "1/s", "TPS": "1/s",
	"ips": "1/s", "iops": "1/s", "IOPS": "1/s",
}

// things are what is counted in the rates of tools; a rate of them is one of "1".
var things = []string{
	"", "1", "op", "ops", "Op", "Ops", "item", "items", "elem", "elems", "element", "elements", "iter", "iters", "iteration", "iterations",
	"req", "reqs", "request", "requests", "call", "calls", "event", "events", "msg", "msgs", "row", "rows", "count", "counts", "it",
}

// each are the things behind the stroke in "ns/op".
var each = []string{"op", "ops", "iter", "iteration", "it", "call", "item", "elem", "element", "request", "req"}

// Base gives the base unit that a unit is a multiple of, and the factor. One that
// is not known is its own base unit.
func Base(u string) (base string, factor float64) {
	u = strings.TrimSpace(u)
	over, under, rate := strings.Cut(u, "/")
	if !rate {
		return plain(u)
	}
	if f, ok := times[under]; ok {
		// A rate: so much in a unit of time.
		b, g := plain(over)
		switch {
		case b == bench.Byte:
			return "B/s", g / f
		case b == bench.Count:
			return "1/s", g / f
		case b == bench.Second: // seconds a second: a share
			return bench.Count, g / f
		}
		return b + "/s", g / f
	}
	b, g := plain(over)
	if slices.Contains(each, under) || under == "" {
		return b, g
	}
	return b + "/" + under, g
}

func plain(u string) (base string, factor float64) {
	if f, ok := times[u]; ok {
		return bench.Second, f
	}
	for _, p := range prefixes {
		rest, ok := strings.CutPrefix(u, p.text)
		if !ok {
			continue
		}
		if slices.Contains(bytesNamed, rest) {
			return bench.Byte, p.factor
		}
		if slices.Contains(bitsNamed, rest) {
			return "bit", p.factor
		}
		if rate := rates[rest]; rate != "" {
			return rate, p.factor
		}
		if slices.Contains(things, rest) && (rest != "1" || p.text == "") && (rest != "" || len(p.text) == 0) {
			return bench.Count, p.factor
		}
	}
	if u == "#" {
		return bench.Count, 1
	}
	return u, 1
}

// short is a text of which a message needs only the beginning.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "..."
	}
	return fmt.Sprintf("%+q", s)
}
