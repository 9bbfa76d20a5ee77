package sample

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"patchbench/bench"
)

// A program that was written in pieces of a page, as linkers do, and a copy of it
// that was written in large ones have the same resident memory. On kernels that
// hold the two differently they differ by half a MiB if nobody settles them.
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
	s, err := Open(t.Context(), sb, suite, versions, Options{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if w, err := s.WarmUp(t.Context(), 0); err != nil || w.Working != 2 {
		t.Fatalf("warm-up: %+v, %v", w, err)
	}
	// The kernel counts pages on each processor apart, so that one run varies by a
	// quarter of a MiB.
	values := make([][]float64, 2)
	for round := range 60 {
		r, err := s.Round(t.Context(), 0, round+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range pick(r.Samples, bench.RSS.Name) {
			values[l.Version] = append(values[l.Version], l.Value)
		}
	}
	one, other := middle(values[0]), middle(values[1])
	t.Logf("resident: %.0f and %.0f KiB", one/1024, other/1024)
	if math.Abs(other-one) > 192<<10 {
		t.Errorf("resident memory is %.0f and %.0f KiB, want the same", one/1024, other/1024)
	}
}
