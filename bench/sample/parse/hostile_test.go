package parse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A program that prints its name in endless lines or in no charset does no harm.
func TestGoBenchHostile(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	tests := []struct {
		name, out string
		rows      []string
		err       string
	}{
		{"long line of other text", long + "\nBenchmarkA 1 1 ns/op\n", []string{"A"}, ""},
		{"long benchmark line", "\nBenchmarkA" + long + " 1 1 ns/op\n", nil, "standard output:1: bufio.Scanner: token too long"},
		{"no UTF-8", "BenchmarkA\xff\xfe 1 1 ns/op\n", []string{"A\uFFFD"}, ""},
		{"escape sequence", "BenchmarkA\x1b[2J 1 1 ns/op\n", []string{"A\x1b[2J"}, ""},
		{"carriage returns", "BenchmarkA-2 1 1 ns/op\r\nBenchmarkB-2 1 1 ns/op\r\n", []string{"A", "B"}, ""},
		{"no newline at the end", "BenchmarkA-2 1 1 ns/op", []string{"A"}, ""},
		{"function named Benchmark", "Benchmark-2 1 1 ns/op\n", []string{"Benchmark"}, ""},
		{"nothing", "", nil, "suite produced no results"},
	}
	p, err := New("gobench")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rows, err := p.Parse([]byte(tt.out))
			var got []string
			for _, r := range rows {
				got = append(got, r.Name)
			}
			if d := cmp.Diff(tt.rows, got); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			if text := fmt.Sprint(err); err != nil && text != tt.err || err == nil && tt.err != "" {
				t.Errorf("error = %.200v, want %q", err, tt.err)
			}
		})
	}
}
