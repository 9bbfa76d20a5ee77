package parse

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Whatever a program prints gives an error that names a line, or results with
// figures that can be compared; and never both.
func FuzzParse(f *testing.F) {
	for _, name := range files(f) {
		_, spec, out := load(f, name)
		f.Add(spec, out)
	}
	for _, c := range around {
		f.Add(c.spec, []byte(c.text))
	}
	f.Add("json:$[*].a name=b", []byte(`[{"a": 1, "b": "\u001b"}, [[[`))
	f.Add("regex:(?P<name>.)(?P<value>.)", []byte("a1\nb\xff\n"))
	f.Fuzz(func(t *testing.T, spec string, out []byte) {
		p, err := New(spec)
		if err != nil {
			return
		}
		list, err := p.Parse(out)
		if err != nil {
			if list != nil {
				t.Error("results and an error")
			}
			if err != ErrNone && !strings.HasPrefix(err.Error(), "standard output:") {
				t.Errorf("error without a line: %v", err)
			}
			return
		}
		seen := map[string]bool{}
		for _, r := range list {
			if seen[r.Name] || len(r.Values) == 0 || r.Line < 1 || r.Line > 1+strings.Count(string(out), "\n") {
				t.Errorf("result %q of line %d is there twice, has no figure or no such line", r.Name, r.Line)
			}
			seen[r.Name] = true
			for _, v := range r.Values {
				if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Value < 0 || v.Metric == "" || v.Unit == "" {
					t.Errorf("%q: %+v", r.Name, v)
				}
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}
