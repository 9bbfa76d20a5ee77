package parse

import (
	"bytes"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
	"patchbench/bench/sample/parse/node"
)

// criterionLine is a time or rate with its interval: low, middle, high.
var criterionLine = late.Regexp(`^(.*?)\s*(time|thrpt):\s+\[(\S+) (\S+) (\S+) (\S+) (\S+) (\S+)\]`)

// readCriterion reads Criterion.rs: what it prints, the JSON lines of
// cargo-criterion, or its files benchmark.json and estimates.json.
func readCriterion(out []byte) ([]Result, error) {
	for _, key := range []string{`"reason"`, `"point_estimate"`} {
		if bytes.Contains(out, []byte(key)) {
			return criterionJSON(out)
		}
	}
	var list []Result
	before := "" // the line before: a long name stands alone
	for i, line := range lines(out) {
		m := criterionLine().FindStringSubmatch(line)
		if m == nil {
			before = line
			continue
		}
		name := m[1]
		if strings.TrimSpace(name) == "" {
			name = before
		}
		v, err := value(map[string]string{"time": wall, "thrpt": throughput}[m[2]], m[5], m[6])
		switch {
		case err != nil:
			return nil, node.At(i+1, "%s: %w", shown(name), err)
		case m[2] == "time":
			list = append(list, Result{Name: name, Line: i + 1, Values: []Value{v}})
		case len(list) > 0:
			r := &list[len(list)-1]
			r.Values = append(r.Values, v)
		}
	}
	return list, nil
}

// criterionJSON reads messages of cargo-criterion, and estimates that stand behind
// the description of their benchmark.
func criterionJSON(out []byte) ([]Result, error) {
	docs, err := node.Documents(out, func(n *node.Node) bool { return n.Kind == node.Object })
	if err != nil {
		return nil, err
	}
	var list []Result
	var about *node.Node // the benchmark.json before
	for _, n := range docs {
		switch {
		case n.Get("reason").Str() == "benchmark-complete":
			r := Result{Name: n.Get("id").Str(), Line: n.Line}
			best := n.Get("typical")
			if best == nil || best.Get("estimate") == nil {
				return nil, node.At(n.Line, "%s has no typical estimate", shown(r.Name))
			}
			v, err := figure(best.Get("estimate"), wall, best.Get("unit").Or(n.Get("unit")).Str())
			if err != nil {
				return nil, err
			}
			r.Values = []Value{v}
			if t := n.Get("throughput"); t != nil && len(t.Items) > 0 {
				if err := r.rate(t.Items[0].Get("per_iteration"), t.Items[0].Get("unit").Str()); err != nil {
					return nil, err
				}
			}
			list = append(list, r)
		case n.Get("full_id") != nil:
			about = n
		case n.Get("mean").Get("point_estimate") != nil:
			if about == nil {
				return nil, node.At(n.Line, "estimates without a name: print benchmark.json before each estimates.json")
			}
			r := Result{Name: about.Get("full_id").Str(), Line: n.Line}
			// As the tool itself prints it: the slope where it could be had.
			v, err := figure(n.Get("slope").Or(n.Get("mean")).Get("point_estimate").Or(n), wall, "ns")
			if err != nil {
				return nil, err
			}
			r.Values = []Value{v}
			for _, t := range about.Get("throughput").Or(&node.Node{}).Members {
				if err := r.rate(t.Value, strings.ToLower(t.Key)); err != nil {
					return nil, err
				}
			}
			list, about = append(list, r), nil
		}
	}
	return list, nil
}

// rate adds how much is done in a second, of so much in each iteration.
func (r *Result) rate(each *node.Node, u string) error {
	if each == nil || r.Values[0].Value == 0 {
		return nil
	}
	n, err := each.Number()
	if err != nil {
		return err
	}
	base := "1/s"
	if strings.HasPrefix(u, "bytes") {
		base = bench.Byte + "/s"
	}
	r.Values = append(r.Values, Value{throughput, base, n / r.Values[0].Value})
	return nil
}
