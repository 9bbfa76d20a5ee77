package long

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

func render(t *testing.T, e *store.Evaluation, samples []bench.Sample) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, e, samples); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	for name, build := range cases.All {
		t.Run(name, func(t *testing.T) {
			e := build().Evaluation
			got := render(t, e, cases.Samples(e))
			for i, line := range strings.Split(got, "\n") {
				if n := plain.Columns(line); n > width {
					t.Errorf("line %d has %d columns: %s", i+1, n, line)
				}
				if line != strings.TrimRight(line, " ") || plain.Clean(line) != line && name != "hostile" {
					t.Errorf("line %d: %q", i+1, line)
				}
			}
			if again := render(t, e, cases.Samples(e)); again != got {
				t.Error("a second rendering differs")
			}
			if !slices.Contains([]string{"claims", "crash", "exact", "parameters", "same-build", "one-improvement"}, name) {
				return
			}
			cases.Golden(t, name+".txt", got)
		})
	}
}

func TestMoments(t *testing.T) {
	for _, c := range []struct {
		list        []float64
		mean, sigma float64
	}{
		{nil, 0, 0}, {[]float64{3}, 3, 0}, {[]float64{2, 4, 4, 4, 5, 5, 7, 9}, 5, math.Sqrt(32.0 / 7)},
	} {
		mean, sigma := moments(c.list)
		if math.Abs(mean-c.mean) > 1e-12 || math.Abs(sigma-c.sigma) > 1e-12 {
			t.Errorf("%v: %v %v, want %v %v", c.list, mean, sigma, c.mean, c.sigma)
		}
	}
}

func TestSparse(t *testing.T) {
	e := cases.All["claims"]().Evaluation
	if got := render(t, e, nil); !strings.Contains(got, "hash cpu (ms, 20 rounds, sees 0.9 %)") || !strings.Contains(got, "412") {
		t.Errorf("without samples:\n%s", got)
	}
	render(t, &store.Evaluation{}, nil)
}

func BenchmarkLargest(b *testing.B) {
	e := cases.All["largest"]().Evaluation
	samples := cases.Samples(e)
	for b.Loop() {
		if err := Write(&bytes.Buffer{}, e, samples); err != nil {
			b.Fatal(err)
		}
	}
}
