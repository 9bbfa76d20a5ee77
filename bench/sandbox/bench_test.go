package sandbox

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Run these by
//
//	go test -run '^$' -bench . ./bench/sandbox

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/4]
}

// BenchmarkStart is the start and the end of a box; start-ns is the start alone.
func BenchmarkStart(b *testing.B) {
	s := openBoxed(b)
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		r, err := s.Start(context.Background(), Box{})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(median(took)), "start-ns/op")
}

// BenchmarkTrue compares `true` started by this process, as bare as Go can, with
// a run in a box. wall-ns is the median of what is reported as Wall: figures,
// while ns/op has all that a run costs, to the empty /tmp.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		path, err := exec.LookPath("true")
		if err != nil {
			b.Fatal(err)
		}
		var took []time.Duration
		for b.Loop() {
			begin := time.Now()
			pid, err := syscall.ForkExec(path, []string{"true"}, &syscall.ProcAttr{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		b.ReportMetric(float64(median(took)), "wall-ns/op")
	})
	for _, peaks := range []bool{false, true} {
		b.Run("box/peaks="+strconv.FormatBool(peaks), func(b *testing.B) {
			r := start(b, openBoxed(b), Box{})
			var took []time.Duration
			for b.Loop() {
				took = append(took, do(b, r, Command{Args: []string{"true"}, Peaks: peaks}).Wall)
			}
			b.ReportMetric(float64(median(took)), "wall-ns/op")
		})
	}
}

// BenchmarkTrace is the cost of following a program that forks a lot. Wall and
// cpu of neighbouring runs are compared, since the machine's speed drifts. The
// cpu that a stop adds is the program's part, the tracer's is not counted.
func BenchmarkTrace(b *testing.B) {
	r := start(b, openBoxed(b), Box{})
	line := []string{"sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"}
	var wall, cpu []float64
	var stopWall, stopCPU []time.Duration
	stops := 0
	for b.Loop() {
		plain := do(b, r, Command{Args: line})
		traced := do(b, r, Command{Args: line, Peaks: true})
		stops = traced.Stops
		wall = append(wall, float64(traced.Wall)/float64(plain.Wall))
		cpu = append(cpu, float64(traced.User+traced.Sys)/float64(plain.User+plain.Sys))
		stopWall = append(stopWall, (traced.Wall-plain.Wall)/time.Duration(stops))
		stopCPU = append(stopCPU, (traced.User+traced.Sys-plain.User-plain.Sys)/time.Duration(stops))
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	b.ReportMetric(float64(median(stopWall)), "stop-wall-ns/op")
	b.ReportMetric(float64(median(stopCPU)), "stop-cpu-ns/op")
	b.ReportMetric(wall[len(wall)/2], "traced/plain-wall")
	b.ReportMetric(cpu[len(cpu)/2], "traced/plain-cpu")
	b.ReportMetric(float64(stops), "stops/op")
}
