package bench

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBound(t *testing.T) {
	suite := func() *Suite {
		return &Suite{
			Build:    Recipe{Timeout: time.Hour},
			Variants: []Recipe{{Timeout: time.Hour}, {Timeout: time.Minute}},
			Limits:   Limits{MemoryBytes: 8 << 30, Processes: 4000, OutputBytes: 1 << 20, Timeout: 2 * time.Minute},
			Benchmarks: []Benchmark{
				{Name: "a", Timeout: 30 * time.Minute, Baseline: &Benchmark{Timeout: 20 * time.Minute}},
				{Name: "b", Together: []Benchmark{{Timeout: 40 * time.Minute}, {}}},
			},
		}
	}
	tests := []struct {
		name string
		most Limits
		want func(s *Suite)
		cut  []string
	}{
		{"no bounds", Limits{}, func(*Suite) {}, nil},
		{"none is passed", Limits{MemoryBytes: 8 << 30, Processes: 4000, DiskBytes: 1, OutputBytes: 2 << 20, Timeout: time.Hour}, func(*Suite) {}, nil},
		{"memory, processes and output", Limits{MemoryBytes: 1 << 30, Processes: 100, OutputBytes: 1000}, func(s *Suite) {
			s.Limits.MemoryBytes, s.Limits.Processes, s.Limits.OutputBytes = 1<<30, 100, 1000
		}, []string{"memory", "output", "processes"}},
		{"times, wherever they stand", Limits{Timeout: 10 * time.Minute}, func(s *Suite) {
			s.Build.Timeout, s.Variants[0].Timeout = 10*time.Minute, 10*time.Minute
			s.Benchmarks[0].Timeout, s.Benchmarks[0].Baseline.Timeout = 10*time.Minute, 10*time.Minute
			s.Benchmarks[1].Together[0].Timeout = 10 * time.Minute
		}, []string{"timeout"}},
	}
	for _, tt := range tests {
		got, want := suite(), suite()
		tt.want(want)
		cut := got.Bound(tt.most)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff(tt.cut, cut); d != "" {
			t.Errorf("%s: cut (-want +got):\n%s", tt.name, d)
		}
	}
}
