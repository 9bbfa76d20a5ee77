package compare

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/headline"
)

// FuzzCompare makes versions, samples and failures of any bytes: whatever comes
// in, each row has one step for each patch, figures that JSON can hold, an
// interval around the change, and the same result again.
func FuzzCompare(f *testing.F) {
	f.Add(uint8(3), []byte{0, 0, 10, 1, 1, 12, 2, 2, 13, 0, 3, 14}, uint8(0))
	f.Add(uint8(1), []byte{}, uint8(7))
	f.Add(uint8(8), []byte("the same bytes again and again, the same bytes again and again"), uint8(255))
	f.Add(uint8(2), []byte{0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 2, 0, 1, 2, 0, 0, 3, 0, 1, 3, 0}, uint8(16))
	f.Fuzz(func(t *testing.T, n uint8, data []byte, kind uint8) {
		count := int(n % 12)
		var versions []bench.Version
		states := []string{bench.Built, bench.Built, bench.SameBuild, bench.BuildFailed, bench.NotBuilt, ""}
		for i := range count {
			v := bench.Version{N: i, State: bench.Built}
			if i < len(data) && kind&1 == 1 {
				v.State = states[int(data[i])%len(states)]
				as := int(data[i]/8) - 4
				v.SameAs = &as
			}
			versions = append(versions, v)
		}
		metrics := []bench.Metric{bench.CPU, bench.RSS, bench.User, {Name: "instructions", Unit: "1"}, {Name: "rate", Unit: "x/s"}}
		values := []float64{0, -1, 1, 1e-300, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, 5, 5.0000001}
		var samples []bench.Sample
		var failures []bench.Failure
		for i := 0; i+2 < len(data); i += 3 {
			a, b, c := data[i], data[i+1], data[i+2]
			m := metrics[int(kind>>1)%len(metrics)]
			if kind&16 != 0 {
				m = metrics[int(a>>4)%len(metrics)]
			}
			x := float64(c)
			if kind&32 != 0 {
				x = values[int(c)%len(values)]
			}
			s := bench.Sample{Round: int(b % 32), Version: int(a%13) - 1, Benchmark: "b", Metric: m.Name, Unit: m.Unit, Value: x, Twin: b&128 != 0}
			if kind&64 != 0 {
				s.Covariates = map[string]float64{"psi_ns": float64(b), "nivcsw": float64(a)}
			}
			if kind&128 != 0 && c == 255 {
				failures = append(failures, bench.Failure{N: int(a % 13), Benchmark: "b", Signal: "SIGSEGV"})
			}
			samples = append(samples, s)
		}
		o := Options{Final: kind&4 != 0, Seed: uint64(n)}
		if kind&8 != 0 {
			o.Looks = []int{2, 3, 5, 8}
		}
		r := Compare(versions, samples, failures, o)
		headline.Of(versions, r.Comparisons, failures)
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Comparisons {
			if count > 0 && len(c.Steps) != count-1 {
				t.Errorf("%s: %d steps of %d versions", c.Metric, len(c.Steps), count)
			}
			for _, s := range append(c.Steps, c.Total) {
				if s.Verdict == "" {
					t.Errorf("%s: step %d has no verdict", c.Metric, s.N)
				}
				if s.Lo != nil && s.Hi != nil && s.Change != nil && (*s.Lo > *s.Change || *s.Change > *s.Hi) {
					t.Errorf("%s: step %d: %g is outside %g..%g", c.Metric, s.N, *s.Change, *s.Lo, *s.Hi)
				}
				if s.Verdict.Changed() && !c.Tested {
					t.Errorf("%s: step %d is judged, and is only shown", c.Metric, s.N)
				}
			}
		}
		if d := cmp.Diff(r, Compare(versions, samples, failures, o)); d != "" {
			t.Errorf("not the same again:\n%s", d)
		}
	})
}
