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
	return d[len(d)/2]
}

// BenchmarkStart is what starts cost. A box, bounded by a group where there are
// any and by rlimits: start-ns is until its runner answers, ns/op with its end.
// A program, `true`: started by this process as bare as Go can, and in a running
// box, in turn, since the machine's speed drifts. figure is what is reported as
// Wall, against the bare one; whole is all that the bot waits for, to the empty
// /tmp.
func BenchmarkStart(b *testing.B) {
	for _, grouped := range []bool{true, false} {
		b.Run("box/group="+strconv.FormatBool(grouped), func(b *testing.B) {
			s := openBoxed(b)
			if !grouped {
				s = openUngrouped(b)
			} else if s.groups == nil {
				b.Skip(s.Facts().Lost)
			}
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
		})
	}
	b.Run("program", func(b *testing.B) {
		path, err := exec.LookPath("true")
		if err != nil {
			b.Fatal(err)
		}
		r := start(b, openBoxed(b), Box{})
		took := map[string][]time.Duration{}
		for b.Loop() {
			begin := time.Now()
			pid, err := syscall.ForkExec(path, []string{"true"}, &syscall.ProcAttr{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
				b.Fatal(err)
			}
			took["bare"] = append(took["bare"], time.Since(begin))
			for _, peaks := range []bool{false, true} {
				begin := time.Now()
				wall := do(b, r, Command{Args: []string{"true"}, Peaks: peaks}).Wall
				name := "peaks=" + strconv.FormatBool(peaks)
				took["figure/"+name] = append(took["figure/"+name], wall)
				took["whole/"+name] = append(took["whole/"+name], time.Since(begin))
			}
		}
		bare := float64(median(took["bare"]))
		b.ReportMetric(bare, "bare-ns/op")
		for name, d := range took {
			if name != "bare" {
				b.ReportMetric(float64(median(d))/bare, name+"/bare")
			}
		}
	})
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
