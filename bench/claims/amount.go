package claims

import (
	"regexp"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
)

// An amount is a number with its unit, scaled to "s", "B" or "1"; unit is "" for
// a bare number.
type amount struct {
	value float64
	unit  string
	noun  string // what is counted, for unit "1"
	scale float64
}

const (
	number = `\d[\d,]*(?:\.\d+)?`
	units  = `nanoseconds?|microseconds?|milliseconds?|ns|us|µs|μs|ms|msecs?|sec(?:ond)?s?|s|min(?:ute)?s?|hours?|hrs?|h` +
		`|[kKMGT]i?B|[KMG]bytes|bytes?|B|MBs` +
		`|(?:billion |million |[kMGB] )?(?:steps|calls|syscalls|allocations|allocs|instructions|cycles|comparisons|lookups|faults|misses|reads|writes|stats)`
	// quantity matches an amount, with its spread if that is given.
	quantity = `(?:\d+h ?\d+m(?: ?\d+(?:\.\d+)?s)?|\d+m ?\d+(?:\.\d+)?s|\d+:\d\d(?::\d\d)?(?:\.\d+)?` +
		`|\d+\.\d+\(\d+\.\d+\+\d+\.\d+\)|` + number + `(?:[ \n]?(?:` + units + `)\b)?` +
		`(?:\s?(?:±|\+-|\+/-)\s?` + number + `(?:\s?(?:` + units + `)\b)?)?)`
)

var (
	clockRE  = late.Regexp(`^(?:(\d+)h ?)?(\d+)m(?: ?(\d+(?:\.\d+)?)s)?$`)
	colonRE  = late.Regexp(`^(?:(\d+):)?(\d+):(\d\d(?:\.\d+)?)$`)
	perfRE   = late.Regexp(`^(\d+\.\d+)\(\d+\.\d+\+\d+\.\d+\)$`)
	plainRE  = late.Regexp(`^(` + number + `)\s*(` + units + `)?$`)
	spreadRE = late.Regexp(`\s?(?:±|\+-|\+/-)\s?` + number + `\s*`)
	atStart  = late.Regexp(`^[~<|]?\s*(` + quantity + `)`)
)

var scales = map[string]struct {
	factor float64
	unit   string
}{
	"ns": {1e-9, bench.Second}, "nanosecond": {1e-9, bench.Second}, "us": {1e-6, bench.Second}, "µs": {1e-6, bench.Second}, "μs": {1e-6, bench.Second},
	"microsecond": {1e-6, bench.Second}, "ms": {1e-3, bench.Second}, "msec": {1e-3, bench.Second}, "millisecond": {1e-3, bench.Second},
	"s": {1, bench.Second}, "sec": {1, bench.Second}, "second": {1, bench.Second}, "min": {60, bench.Second}, "minute": {60, bench.Second},
	"h": {3600, bench.Second}, "hr": {3600, bench.Second}, "hour": {3600, bench.Second},
	"B": {1, bench.Byte}, "byte": {1, bench.Byte}, "kB": {1e3, bench.Byte}, "KB": {1 << 10, bench.Byte}, "KiB": {1 << 10, bench.Byte}, "Kbyte": {1 << 10, bench.Byte},
	"MB": {1 << 20, bench.Byte}, "MiB": {1 << 20, bench.Byte}, "Mbyte": {1 << 20, bench.Byte},
	"GB": {1 << 30, bench.Byte}, "GiB": {1 << 30, bench.Byte}, "Gbyte": {1 << 30, bench.Byte}, "TB": {1 << 40, bench.Byte}, "TiB": {1 << 40, bench.Byte},
}

// parse reads what the pattern quantity matched.
func parse(s string) (amount, bool) {
	s = strings.TrimSpace(strings.TrimLeft(s, "~<|"))
	float := func(s string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		return v
	}
	seconds := func(v float64) (amount, bool) { return amount{value: v, unit: bench.Second, scale: 1}, true }
	if m := clockRE().FindStringSubmatch(s); m != nil && (m[1] != "" || m[3] != "") {
		return seconds(exact(float(m[1])*3600 + float(m[2])*60 + float(m[3])))
	}
	if m := colonRE().FindStringSubmatch(s); m != nil {
		return seconds(exact(float(m[1])*3600 + float(m[2])*60 + float(m[3])))
	}
	if m := perfRE().FindStringSubmatch(s); m != nil {
		return seconds(float(m[1]))
	}
	if at := spreadRE().FindStringIndex(s); at != nil {
		// The unit may stand on either side: "192.9 ms ± 0.6 ms", "1.2 ± 0.1 s".
		rest := s[at[1]:]
		s = strings.TrimSpace(s[:at[0]])
		if m := plainRE().FindStringSubmatch(s); m != nil && m[2] == "" {
			s += " " + rest
		}
	}
	m := plainRE().FindStringSubmatch(strings.Join(strings.Fields(s), " "))
	if m == nil {
		return amount{}, false
	}
	a := amount{value: float(m[1]), scale: 1}
	if m[2] == "" {
		return a, true
	}
	if sc, ok := scaleOf(m[2]); ok {
		a.unit, a.scale = sc.unit, sc.factor
		a.value = exact(a.value * sc.factor)
		return a, true
	}
	a.unit, a.noun = bench.Count, m[2]
	if i := strings.LastIndexByte(a.noun, ' '); i >= 0 {
		a.scale = map[string]float64{"billion": 1e9, "million": 1e6, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9}[a.noun[:i]]
		a.noun = a.noun[i+1:]
		a.value *= a.scale
	}
	return a, true
}

// exact drops what scaling adds behind the twelfth digit.
func exact(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return v
}

func scaleOf(unit string) (struct {
	factor float64
	unit   string
}, bool) {
	sc, ok := scales[unit]
	if !ok {
		sc, ok = scales[strings.TrimSuffix(unit, "s")]
	}
	return sc, ok
}

// agree gives a bare number the unit of the other: "from 0.72 to 0.03 seconds".
func agree(a, b amount) (amount, amount) {
	lend := func(to, from amount) amount {
		if to.unit == "" && from.unit != "" {
			to.value = exact(to.value * from.scale)
			to.unit, to.noun, to.scale = from.unit, from.noun, from.scale
		}
		return to
	}
	return lend(a, b), lend(b, a)
}

var quantityWords = []struct {
	name, unit string
	re         func() *regexp.Regexp
}{
	{"rss", bench.Byte, late.Regexp(`(?i)\b(?:rss|resident|max(?:imum)? resident)\b`)},
	{"malloc", bench.Byte, late.Regexp(`(?i)\b(?:malloc'?d?|allocated)\b`)},
	{"heap", bench.Byte, late.Regexp(`(?i)\bheap\b`)},
	{"memory", bench.Byte, late.Regexp(`(?i)\b(?:memory|ram|footprint)\b`)},
	{"throughput", "", late.Regexp(`(?i)\b(?:throughput|bandwidth|[MGk]i?B/s|(?:ops|requests|queries) ?(?:/ ?s|per second))`)},
	{"cpu", bench.Second, late.Regexp(`(?i)\bcpu[ -](?:time|usage)?\b|\bcpu\b`)},
	{"user", bench.Second, late.Regexp(`(?i)\buser(?: time)?\b`)},
	{"sys", bench.Second, late.Regexp(`(?i)\bsys(?:tem)?(?: time)\b|\bsys\b`)},
	{"wall", bench.Second, late.Regexp(`(?i)\b(?:wall|wall-?clock|elapsed|real)\b`)},
	{"instructions", bench.Count, late.Regexp(`(?i)\binstructions\b`)},
	{"time", bench.Second, late.Regexp(`(?i)\b(?:time|runtime|duration|latency|faster|slower|quicker|as fast|speed-?ups?|takes?|took|takes)\b`)},
}

// quantityOf names what an amount counts, from its unit and the words around it.
func quantityOf(a amount, words string) string {
	if a.noun != "" {
		return a.noun
	}
	for _, q := range quantityWords {
		if (q.unit == "" || a.unit == "" || q.unit == a.unit) && q.re().MatchString(words) {
			return q.name
		}
	}
	switch a.unit {
	case bench.Second:
		return "time"
	case bench.Byte:
		return "size"
	}
	return ""
}
