package sample

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"patchbench/bench"
	"patchbench/bench/settle"
)

// A program that was written in pieces of a page, as linkers do, and a copy of it
// that was written in large ones have the same resident memory once both are
// settled. On kernels that hold the two differently they have not before.
func TestSettledPrograms(t *testing.T) {
	path, err := exec.LookPath("git")
	if err != nil {
		lacking(t, "git is not there, a large program that takes the same memory each time")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sb := openSandbox(t, false)
	var versions []Version
	for n, piece := range []int{4 << 10, 1 << 20} {
		v := shellVersion(t, sb, Version{N: n}, "")
		f, err := os.OpenFile(filepath.Join(v.Dir, "src", "prog"), os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		for off := 0; off < len(text); off += piece {
			if _, err := f.Write(text[off:min(off+piece, len(text))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, v)
	}
	suite := &bench.Suite{Name: "settled", Benchmarks: []bench.Benchmark{{Name: "version", Run: bench.Program{Args: []string{"./prog", "version"}}}}}
	resident := func(rounds int) []float64 {
		t.Helper()
		s, err := Open(t.Context(), sb, suite, versions, Options{Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if w, err := s.WarmUp(t.Context(), 0); err != nil || w.Working != 2 {
			t.Fatalf("warm-up: %+v, %v", w, err)
		}
		values := make([][]float64, 2)
		for round := range rounds {
			r, err := s.Round(t.Context(), 0, round+1)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range pick(r.Samples, bench.RSS.Name) {
				values[l.Version] = append(values[l.Version], l.Value)
			}
		}
		return []float64{middle(values[0]), middle(values[1])}
	}
	before := resident(15)
	for _, v := range versions {
		if err := settle.Programs(v.Dir); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel counts pages on each processor apart, so that one run varies by a
	// quarter of a MiB.
	after := resident(60)
	say := func(m []float64) string { return fmt.Sprintf("%.0f and %.0f KiB", m[0]/1024, m[1]/1024) }
	t.Logf("resident: %s, settled %s", say(before), say(after))
	if math.Abs(after[1]-after[0]) > 192<<10 {
		t.Errorf("resident memory is %s once settled, want the same", say(after))
	}
}
