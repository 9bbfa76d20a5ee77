package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// What measuring costs. Run these on a quiet machine by
//
//	go test -run '^$' -bench 'Hyperfine|EightVersions' -benchtime 10x ./bench/sample

// spin is a program that takes a number of milliseconds of CPU.
const spin = `
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv)
{
	struct timespec t;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < atol(argv[1]));
	return argc != 2;
}
`

// spinning is a version that holds spin, compiled.
func spinning(b *testing.B, sb *sandbox.Sandbox) Version {
	b.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		lacking(b, "gcc is not there to compile a program")
	}
	v := shellVersion(b, sb, Version{}, "")
	cc := exec.Command("gcc", "-O1", "-x", "c", "-o", filepath.Join(v.Dir, "src", "spin"), "-")
	cc.Stdin = strings.NewReader(spin)
	if out, err := cc.CombinedOutput(); err != nil {
		b.Fatalf("compile: %v\n%s", err, out)
	}
	return v
}

// warm opens a sampler of a suite with one benchmark that works.
func warm(b *testing.B, sb *sandbox.Sandbox, suite *bench.Suite, versions []Version) *Sampler {
	b.Helper()
	s, err := Open(b.Context(), sb, suite, versions, Options{Seed: 7})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	w, err := s.WarmUp(b.Context(), 0)
	if err != nil || w.Working != len(versions) {
		b.Fatalf("warm-up: %+v, %v", w, err)
	}
	return s
}

// BenchmarkAgainstHyperfine has hyperfine and a sampler time the same program by
// turns. The medians' difference should be less than hyperfine's own spread.
func BenchmarkAgainstHyperfine(b *testing.B) {
	if _, err := exec.LookPath("hyperfine"); err != nil {
		lacking(b, "hyperfine is not installed")
	}
	sb := openSandbox(b, false)
	for _, tt := range []struct {
		name string
		args []string
		runs int // of each, in a turn
	}{
		{"true", []string{"true"}, 40},
		{"50ms", []string{"./spin", "50"}, 10},
		{"1s", []string{"./spin", "1000"}, 3},
	} {
		b.Run(tt.name, func(b *testing.B) {
			v := spinning(b, sb)
			suite := &bench.Suite{Name: "overhead", Benchmarks: []bench.Benchmark{{Name: tt.name, Run: bench.Program{Args: tt.args}}}}
			s := warm(b, sb, suite, []Version{v})
			var ours, theirs []float64
			round := 0
			for b.Loop() {
				for range tt.runs {
					round++
					r, err := s.Round(b.Context(), 0, round)
					if err != nil {
						b.Fatal(err)
					}
					for _, l := range r.Samples {
						if l.Metric == bench.Wall.Name && l.Failed == nil && l.Discarded == "" {
							ours = append(ours, l.Value)
						}
					}
				}
				theirs = append(theirs, hyperfine(b, filepath.Join(v.Dir, "src"), tt.runs, tt.args)...)
			}
			if len(ours) < len(theirs) {
				b.Fatalf("%d samples, hyperfine has %d", len(ours), len(theirs))
			}
			mean, variance := 0.0, 0.0
			for _, x := range theirs {
				mean += x / float64(len(theirs))
			}
			for _, x := range theirs {
				variance += (x - mean) * (x - mean) / float64(max(1, len(theirs)-1))
			}
			our, their, sd := middle(ours), middle(theirs), math.Sqrt(variance)
			b.ReportMetric(1e3*our, "ms")
			b.ReportMetric(1e3*their, "hyperfine-ms")
			b.ReportMetric(1e3*sd, "hyperfine-sd-ms")
			b.ReportMetric((our-their)/sd, "diff/sd")
			b.ReportMetric(our/their, "ours/hyperfine")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// hyperfine gives the times of some runs in a folder, in s.
func hyperfine(b *testing.B, dir string, runs int, args []string) []float64 {
	b.Helper()
	out := filepath.Join(b.TempDir(), "times.json")
	cmd := exec.Command("hyperfine", "-N", "--style", "none", "--warmup", "1", "--runs", strconv.Itoa(runs), "--export-json", out, strings.Join(args, " "))
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("hyperfine: %v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	var doc struct {
		Results []struct{ Times []float64 }
	}
	if err := json.Unmarshal(text, &doc); err != nil || len(doc.Results) != 1 {
		b.Fatalf("hyperfine wrote %s (%v)", text, err)
	}
	return doc.Results[0].Times
}

// BenchmarkEightVersions compares rounds of eight versions of `true`, all that a
// round is, with eight bare starts of it. For `true` the trace is dear, so peaks are
// read in rounds of their own, until they are known well enough: "timed" is a round
// for time alone, "peaks" one for peaks alone, as both together less "timed".
func BenchmarkEightVersions(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	sb := openSandbox(b, false)
	var versions []Version
	for n := range 8 {
		versions = append(versions, shellVersion(b, sb, Version{N: n}, fmt.Sprintf("# %d\n", n)))
	}
	suite := &bench.Suite{Name: "overhead", Benchmarks: []bench.Benchmark{{Name: "true", Run: bench.Program{Args: []string{"true"}}}}}
	s := warm(b, sb, suite, versions)
	if !s.states[0].apart {
		b.Fatal("peaks are not read in rounds of their own")
	}
	var timed, peaks, starts []float64
	round := 0
	for b.Loop() {
		var took [2]float64
		for k, enough := range []bool{true, false} {
			round++
			s.EnoughPeaks(0, enough)
			begin := time.Now()
			if _, err := s.Round(b.Context(), 0, round); err != nil {
				b.Fatal(err)
			}
			took[k] = time.Since(begin).Seconds()
		}
		begin := time.Now()
		for range 8 {
			pid, err := syscall.ForkExec(path, []string{"true"}, &syscall.ProcAttr{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
				b.Fatal(err)
			}
		}
		bare := time.Since(begin).Seconds()
		starts, timed, peaks = append(starts, bare), append(timed, took[0]/bare), append(peaks, (took[1]-took[0])/bare)
	}
	b.ReportMetric(1e3*middle(starts), "bare-ms")
	b.ReportMetric(middle(timed), "timed/bare")
	b.ReportMetric(middle(peaks), "peaks/bare")
	b.ReportMetric(0, "ns/op")
}

func middle(list []float64) float64 {
	l := slices.Sorted(slices.Values(list))
	return (l[(len(l)-1)/2] + l[len(l)/2]) / 2
}
