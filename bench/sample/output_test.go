package sample

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sample/jsonl"
	"patchbench/bench/sample/parse"
	"patchbench/bench/sandbox"
)

// An output longer than what is kept is never taken for a whole one.
func TestOutputCutOff(t *testing.T) {
	text := bytes.Repeat([]byte("BenchmarkA 1 1 ns/op\n"), keepOutput/21+1)[:keepOutput]
	b := plainBench
	b.Parse = "gobench"
	for _, tt := range []struct {
		name, sum, want string
	}{
		{"cut", "digest of more", "the output is longer than 16 MiB: results cannot be read"},
		{"whole", hexSHA256(text), "standard output:2: A printed twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := fine()
			r.Stdout, r.StdoutSHA256 = text, tt.sum
			var o outcome
			o.judge(newState(b, 1), 0, Version{}, [][]sandbox.Result{{r}})
			if o.failed == nil || !strings.HasPrefix(o.failed.Reason, tt.want) {
				t.Errorf("failed = %v, want %q", o.failed, tt.want)
			}
		})
	}
}

// Whatever a program prints gives an error or figures that can be compared, and
// they can be written and read back.
func FuzzParseRun(f *testing.F) {
	for _, s := range []string{
		"", "PASS\n", "BenchmarkA-8 1 1 ns/op\n", "BenchmarkA 1 NaN ns/op\n", "BenchmarkA 1 -1 ns/op 3 B/op\n",
		"pkg: a\nBenchmarkA 1 1 ns/op\npkg: b\nBenchmarkA 1 1 ns/op\n", "BenchmarkA 1 1e309 x\n", "BenchmarkA 1 1e305 MB/s\n",
		"Benchmark\xff 1 0x1p-2 MB/s 0 ns/op\n", "BenchmarkA\x00 1 1 \x00\n", "Benchmark-2 1 1 ns\nBenchmarkBenchmark-2 1 1 ns\n",
	} {
		f.Add([]byte(s))
	}
	p, err := parse.New("gobench")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		rows, err := p.Parse(out)
		if err != nil {
			if rows != nil {
				t.Error("rows and an error")
			}
			return
		}
		st := newState(bench.Benchmark{Name: "b", Parse: "gobench"}, 1)
		o := outcome{figures: st.plan.Figures([][]sandbox.Result{{fine()}}), rows: rows}
		list := samples(point{round: 1}, st, o, nil)
		for _, s := range list {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || s.Value < 0 {
				t.Errorf("%s %s = %v", s.Benchmark, s.Metric, s.Value)
			}
		}
		var buf bytes.Buffer
		if err := jsonl.Write(&buf, list); err != nil {
			t.Fatal(err)
		}
		back, err := jsonl.Read("samples.jsonl", &buf)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(list, back); d != "" {
			t.Errorf("written and read (-want +got):\n%s", d)
		}
	})
}
