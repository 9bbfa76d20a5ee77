package parse

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
	"patchbench/bench/sample/parse/unit"
)

// jmhModes are what the Mode column says.
var jmhModes = []string{"thrpt", "avgt", "sample", "ss"}

var jmhHeader = late.Regexp(`^Benchmark\s.*\bMode\s+(?:Cnt\s+)?Score\s.*Units\s*$`)

// readJMH reads the table in which a run of JMH ends, or its JSON.
func readJMH(out []byte) ([]Result, error) {
	docs, err := node.Documents(out, func(n *node.Node) bool {
		return n.Kind == node.List && len(n.Items) > 0 && n.Items[0].Get("primaryMetric") != nil
	})
	switch {
	case err != nil && strings.Contains(string(out), `"primaryMetric"`):
		return nil, err
	case len(docs) > 1:
		return nil, node.At(docs[1].Line, "a second document of results (first in line %d): run the tool once", docs[0].Line)
	case len(docs) == 1:
		return jmhJSON(docs[0])
	}
	var list []Result
	var params []string
	in := false
	for i, line := range lines(out) {
		words := strings.Fields(line)
		switch {
		case jmhHeader().MatchString(line):
			in, params = true, nil
			for _, w := range words[1:slices.Index(words, "Mode")] {
				params = append(params, strings.Trim(w, "()"))
			}
			continue
		case !in:
			continue
		case len(words) == 0:
			in = false
			continue
		}
		r, err := jmhRow(words, params, i+1)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return merge(list), nil
}

// jmhRow reads NAME [PARAM...] MODE [COUNT] SCORE [± ERROR] UNITS.
func jmhRow(words, params []string, line int) (r Result, err error) {
	name, mode := words[0], 1+len(params)
	if len(words) < mode+3 || !slices.Contains(jmhModes, words[mode]) {
		return r, node.At(line, "%s: a line of results reads NAME PARAMETERS MODE COUNT SCORE ERROR UNITS", shown(name))
	}
	main, secondary, _ := strings.Cut(name, ":")
	r = Result{Name: main, Line: line}
	var values []string
	for i, p := range params {
		if v := words[1+i]; v != "N/A" {
			values = append(values, p+"="+v)
		}
	}
	r.Name += jmhParams(values)
	u := words[len(words)-1]
	figures := words[mode+1 : len(words)-1]
	if i := slices.Index(figures, "±"); i >= 0 {
		figures = figures[:i]
	}
	score := figures[len(figures)-1]
	var v float64
	if slices.Contains(figures, "≈") {
		// Only the magnitude is printed, for what is next to nothing.
		if secondary == "" {
			return r, node.At(line, "%s: %s %s is only a magnitude: choose a finer unit (-tu ns)", shown(name), "≈ "+score, u)
		}
		v, err = magnitude(score)
	} else {
		v, err = unit.Number(score)
	}
	if err != nil {
		return r, node.At(line, "%s: %w", shown(name), err)
	}
	r.Values = []Value{jmhValue(jmhMetric(main, secondary), words[mode], v, u)}
	return r, nil
}

// jmhMetric is the name of a secondary figure, "" for the primary. Percentiles and
// profilers put the method's name or a dot before it.
func jmhMetric(main, secondary string) string {
	method := main[strings.LastIndexByte(main, '.')+1:]
	return strings.TrimPrefix(strings.TrimPrefix(secondary, method), "·")
}

func jmhValue(metric, mode string, v float64, u string) Value {
	switch {
	case metric != "":
	case mode == "thrpt":
		metric = throughput
	default:
		metric = wall
	}
	return scaled(metric, v, u)
}

func jmhParams(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return "{" + strings.Join(values, ",") + "}"
}

// magnitude reads "10⁻⁶", or "0".
func magnitude(s string) (float64, error) {
	power, ok := strings.CutPrefix(s, "10")
	if !ok {
		return unit.Number(s)
	}
	plain := strings.NewReplacer("⁻", "-", "⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4", "⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9").Replace(power)
	n, err := strconv.Atoi(plain)
	if err != nil {
		return unit.Number(s)
	}
	return math.Pow10(n), nil
}

func jmhJSON(doc *node.Node) ([]Result, error) {
	var list []Result
	for _, n := range doc.Items {
		full := n.Get("benchmark").Str()
		r := Result{Name: full, Line: n.Line}
		// As the table does: class and method.
		if parts := strings.Split(full, "."); len(parts) > 2 {
			r.Name = strings.Join(parts[len(parts)-2:], ".")
		}
		var params []string
		for _, p := range n.Get("params").Or(&node.Node{}).Members {
			params = append(params, p.Key+"="+p.Value.Str())
		}
		r.Name += jmhParams(params)
		mode := n.Get("mode").Str()
		add := func(metric string, m *node.Node) error {
			score := m.Get("score")
			if score == nil {
				return node.At(n.Line, "%s has no score", shown(r.Name))
			}
			v, err := score.Number()
			if err != nil {
				return err
			}
			r.Values = append(r.Values, jmhValue(metric, mode, v, m.Get("scoreUnit").Str()))
			return nil
		}
		if err := add("", n.Get("primaryMetric")); err != nil {
			return nil, err
		}
		for _, m := range n.Get("secondaryMetrics").Or(&node.Node{}).Members {
			// A profiler that saw nothing says so with a NaN.
			if s := m.Value.Get("score"); s == nil || strings.EqualFold(strings.Trim(s.Text, "+-"), "nan") {
				continue
			}
			if err := add(strings.TrimPrefix(m.Key, "·"), m.Value); err != nil {
				return nil, err
			}
		}
		list = append(list, r)
	}
	return merge(list), nil
}
