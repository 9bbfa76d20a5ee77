package sample

import (
	"cmp"
	"context"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// instructions is the counter that the machine may count by itself.
const instructions = "instructions"

// ByPerf is what Instructions says where the machine counts them itself.
const ByPerf = "instructions by perf_event"

// Instructions says how instructions are counted on this machine: ByPerf, which is in
// every round and in no time, or "instructions by valgrind: " and why; "" when no
// benchmark of the suite asks for them.
func (s *Sampler) Instructions(ctx context.Context) (string, error) {
	if !slices.ContainsFunc(s.suite.Benchmarks, wantsInstructions) {
		return "", nil
	}
	if err := s.learnPerf(ctx); err != nil {
		return "", first(ctx.Err(), err)
	}
	if s.noPerf == "" {
		return ByPerf, nil
	}
	return "instructions by valgrind: " + s.noPerf, nil
}

func wantsInstructions(b bench.Benchmark) bool { return slices.Contains(b.Metrics, instructions) }

// learnPerf finds out once whether the machine counts instructions by itself.
func (s *Sampler) learnPerf(ctx context.Context) error {
	if s.perfKnown {
		return nil
	}
	res, err := s.slots[0].do(ctx, sandbox.Job{Command: sandbox.Command{Args: []string{"sh", "-c", ":"}, Count: &s.event, Timeout: time.Minute}})
	if err != nil {
		return err
	}
	s.noPerf = res[0].Uncounted
	if s.noPerf == "" && res[0].Counted == 0 {
		s.noPerf = cmp.Or(res[0].NotStarted, "the hardware counter of this machine stands still")
	}
	s.perfKnown = true
	return nil
}
