package parse

import (
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
	"patchbench/bench/sample/parse/unit"
)

var (
	// googleLine is a benchmark of the console: name, real time, processor time,
	// and behind them the iterations and counters.
	googleLine = late.Regexp(`^(.*?)\s+(\S+) (\S+)\s+(\S+) (\S+)\s*(.*)$`)
	// googleError is one that says that it failed or was not run.
	googleError = late.Regexp(`^(\S.*?)\s+(ERROR OCCURRED|SKIPPED): (.*)$`)
	// counterValue is a counter as the console shows it: 95.2816G/s, 17, 4.32%.
	counterValue = late.Regexp(`^([+-]?(?i:nan|inf)|[^a-zA-Z%/]+(?:[eE][+-]?\d+)?)([kMGTPEZY]i?|[munpfazy])?(/s|%)?$`)
)

// aggregates of repetitions. The median stands for the benchmark; the others are
// not compared.
var aggregates = []string{"_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"}

// readGoogle reads the console of Google Benchmark, or its JSON. With
// --benchmark_repetitions the median is taken.
func readGoogle(out []byte) ([]Result, error) {
	if doc, err := node.In(out, "benchmarks"); doc != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return googleJSON(doc)
	}
	var list []Result
	var names []string // of the columns behind Iterations
	in := false
	text := lines(out)
	for i, line := range text {
		switch {
		case strings.HasPrefix(line, "Benchmark ") && strings.Contains(line, " Iterations"):
			in = true
			_, rest, _ := strings.Cut(line, " Iterations")
			names = strings.Fields(rest)
			continue
		case ruler(line, '-'), !in:
			continue
		}
		if m := googleError().FindStringSubmatch(line); m != nil {
			return nil, node.At(i+1, "%s: %s: %s", shown(m[1]), strings.ToLower(m[2]), first(strings.Trim(m[3], "'")))
		}
		m := googleLine().FindStringSubmatch(line)
		if m == nil || !unit.IsNumber(m[2]) || !unit.IsNumber(m[4]) {
			continue
		}
		r := Result{Name: m[1], Line: i + 1}
		if m[3] == "%" || strings.HasSuffix(r.Name, "_BigO") || strings.HasSuffix(r.Name, "_RMS") {
			continue // a spread, or the estimate of a complexity
		}
		for k, metric := range []string{wall, cpu} {
			v, err := value(metric, m[2+2*k], m[3+2*k])
			if err == nil && v.Unit != bench.Second {
				continue
			}
			if err != nil {
				return nil, node.At(i+1, "%s: %w", shown(r.Name), err)
			}
			r.Values = append(r.Values, v)
		}
		if len(r.Values) == 0 {
			continue
		}
		if err := r.counters(m[6], names); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return medians(list), nil
}

// counters reads what stands behind the times: the iterations, then NAME=VALUE, or
// values alone under the names of the header.
func (r *Result) counters(text string, names []string) error {
	words := strings.Fields(text)
	for i, w := range words[min(1, len(words)):] {
		name, figure, ok := strings.Cut(w, "=")
		if !ok {
			if i >= len(names) || strings.HasSuffix(names[i], "...") {
				return nil // a label
			}
			name, figure = names[i], w
		}
		m := counterValue().FindStringSubmatch(figure)
		if m == nil || name == "" || !unit.IsNumber(m[1]) {
			return nil // the label may be any text
		}
		v, err := unit.Number(m[1])
		if err != nil {
			return node.At(r.Line, "%s: %s: %w", shown(r.Name), shown(name), err)
		}
		r.Values = append(r.Values, counter(name, v*googlePrefix(name, m[2]), m[3] == "/s"))
	}
	return nil
}

// googlePrefix is what a letter behind a figure of the console stands for. Bytes a
// second count in 1024s, also in versions that print G for it.
func googlePrefix(name, prefix string) float64 {
	if prefix == "" {
		return 1
	}
	step := 1000.0
	if name == "bytes_per_second" || strings.HasSuffix(prefix, "i") {
		step = 1024
	}
	f := 1.0
	if n := strings.IndexByte("kMGTPEZY", prefix[0]); n >= 0 {
		for range n + 1 {
			f *= step
		}
		return f
	}
	for range strings.IndexByte("munpfazy", prefix[0]) + 1 {
		f /= 1000
	}
	return f
}

// counter is a user's counter, or one of the two rates that the library counts.
func counter(name string, v float64, rate bool) Value {
	switch {
	case name == "bytes_per_second":
		return Value{name, "B/s", v}
	case rate || strings.HasSuffix(name, "_per_second"):
		return Value{name, "1/s", v}
	}
	return Value{name, bench.Count, v}
}

// medians puts the median of repetitions in their place.
func medians(list []Result) []Result {
	repeated := map[string]bool{}
	for _, r := range list {
		if name, ok := strings.CutSuffix(r.Name, "_median"); ok {
			repeated[name] = true
		}
	}
	var out []Result
	for _, r := range list {
		name, is := r.Name, ""
		for _, a := range aggregates {
			if cut, ok := strings.CutSuffix(r.Name, a); ok && repeated[cut] {
				name, is = cut, a
			}
		}
		if repeated[name] && is != "_median" {
			continue
		}
		r.Name = name
		out = append(out, r)
	}
	return out
}

// googleKeys are the members of a benchmark that are no counters.
var googleKeys = []string{
	"name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index", "threads",
	"iterations", "real_time", "cpu_time", "time_unit", "label", "aggregate_name", "aggregate_unit", "error_occurred", "error_message",
	"skipped", "skip_message", "cpu_coefficient", "real_coefficient", "big_o", "rms", "allocs_per_iter", "max_bytes_used",
	"total_allocated_bytes", "net_heap_growth",
}

func googleJSON(doc *node.Node) ([]Result, error) {
	var list []Result
	for _, b := range doc.Get("benchmarks").Items {
		r := Result{Name: b.Get("name").Str(), Line: b.Line}
		if u := b.Get("aggregate_unit"); u != nil && u.Text == "percentage" || b.Get("rms") != nil || b.Get("big_o") != nil {
			continue
		}
		for _, flag := range []string{"error_occurred", "skipped"} {
			if f := b.Get(flag); f != nil && f.Text == "true" {
				why := b.Get("error_message").Or(b.Get("skip_message"))
				return nil, node.At(f.Line, "%s: %s: %s", shown(r.Name), strings.ReplaceAll(flag, "_", " "), first(why.Str()))
			}
		}
		u := b.Get("time_unit").Str()
		for _, x := range []struct{ key, metric string }{{"real_time", wall}, {"cpu_time", cpu}} {
			if n := b.Get(x.key); n != nil {
				v, err := figure(n, x.metric, u)
				if err != nil {
					return nil, err
				}
				r.Values = append(r.Values, v)
			}
		}
		for _, m := range b.Members {
			if m.Value.Kind != node.Num || m.Key == "" || slices.Contains(googleKeys, m.Key) {
				continue
			}
			v, err := m.Value.Number()
			if err != nil {
				return nil, err
			}
			r.Values = append(r.Values, counter(m.Key, v, false))
		}
		list = append(list, r)
	}
	return medians(list), nil
}
