package sample

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"patchbench/bench"
)

// maxTraceShare is the share of wall time that reading peaks may cost before
// they get runs of their own.
const maxTraceShare = 0.005

// WarmUp is what was learned of a benchmark before its first round.
type WarmUp struct {
	// Failures are the versions that the benchmark does not work on, and the
	// rows that the base prints and another version does not (Benchmark is
	// then the row's name). The base's twin is never among them.
	Failures []bench.Failure
	// Samples are lines for the record, of round 1, so that it alone tells of
	// the failures: one for each version that failed, and one for each row that
	// a version does not have for it, or has not printed.
	Samples  []bench.Sample
	Warnings []string
	// Working is how many versions take part in rounds, without the twin. With
	// fewer than two there is nothing to compare.
	Working int
	// Round is how long a round will take, as far as one run can tell.
	Round time.Duration
	// PeaksApart says that peaks are read in runs of their own, because
	// following the program's processes takes TraceShare of its wall time, a
	// fraction, and more than 0.5 % is not tolerated.
	PeaksApart bool
	TraceShare float64
}

// WarmUp runs benchmark b once on every version, the base twice (its twin is the
// second time, if there is one), and keeps no figures. A version that fails is
// tried once more: only what fails twice is failing, and is left out of all
// rounds. The error is ctx's or our own failure, never the program's.
func (s *Sampler) WarmUp(ctx context.Context, b int) (WarmUp, error) {
	bm, err := s.benchmark(b)
	if err != nil {
		return WarmUp{}, err
	}
	if err := s.learnTrace(ctx); err != nil {
		return WarmUp{}, first(ctx.Err(), err)
	}
	n := len(s.slots)
	st := &state{
		working: make([]bool, n), rows: make([]map[string]bool, n), walls: make([][]time.Duration, n),
		runs: make([]int, n), failures: make([]int, n),
	}
	var w WarmUp
	if s.noPeaks != "" {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: peaks of memory cannot be read on this machine: %s", bm.Key(), s.noPeaks))
	}
	for i, sl := range s.slots {
		if sl.Twin && !st.working[0] {
			continue // without the base it shows nothing
		}
		o, elapsed, err := s.attempt(ctx, i, bm, st, &w)
		if err != nil {
			return WarmUp{}, first(ctx.Err(), err)
		}
		if o.failed != nil {
			s.reject(i, bm, st, o, &w)
			continue
		}
		s.learn(i, bm, st, o, &w)
		if i == 0 && !s.hasTwin() {
			// Only a second run shows whether the output is always the same.
			again, _, err := s.attempt(ctx, i, bm, st, &w)
			if err != nil {
				return WarmUp{}, first(ctx.Err(), err)
			}
			if again.failed != nil {
				s.reject(i, bm, st, again, &w)
				continue
			}
		}
		st.working[i] = true
		w.Round += elapsed
	}
	w.PeaksApart = w.TraceShare > maxTraceShare
	st.apart = w.PeaksApart
	if st.apart {
		w.Round *= 2
	}
	for i, sl := range s.slots {
		if st.working[i] && !sl.Twin {
			w.Working++
		}
	}
	s.states[b] = st
	return w, nil
}

// attempt runs a benchmark on a version, and once more if it fails.
func (s *Sampler) attempt(ctx context.Context, i int, b bench.Benchmark, st *state, w *WarmUp) (outcome, time.Duration, error) {
	var reason string
	for {
		start := s.now()
		o, err := s.measure(ctx, i, b, st, s.noPeaks == "")
		if err != nil {
			return o, 0, err
		}
		elapsed := s.now().Sub(start)
		st.runs[i]++
		if o.failed == nil {
			if reason != "" {
				w.Warnings = append(w.Warnings, fmt.Sprintf("%s: %s failed in 1 of 2 runs: %s", b.Key(), s.slots[i].Version, reason))
			}
			return o, elapsed, nil
		}
		st.failures[i]++
		if reason != "" {
			return o, elapsed, nil
		}
		reason = o.failed.String()
	}
}

// reject takes a version that failed twice out of the rounds.
func (s *Sampler) reject(i int, b bench.Benchmark, st *state, o outcome, w *WarmUp) {
	sl := s.slots[i]
	w.Samples = append(w.Samples, linesOfFailure(sl.Version, b, o, st.rows[0])...)
	if sl.Twin {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: no A/A check: the base's twin fails where the base does not: %s", b.Key(), o.failed))
		return
	}
	w.Failures = append(w.Failures, s.failure(i, b, st, o))
}

// failure declares a version failing, with how often it failed of how many runs.
func (s *Sampler) failure(i int, b bench.Benchmark, st *state, o outcome) bench.Failure {
	return bench.Failure{
		N: s.slots[i].N, Benchmark: b.Key(), Signal: o.failed.Signal, Status: o.failed.Status, LogTail: o.log,
		Reason: fmt.Sprintf("%s (%d of %d runs)", o.failed, st.failures[i], st.runs[i]),
	}
}

// linesOfFailure are a failed warm-up in the record. They have no position: it
// was no part of a random order.
func linesOfFailure(v Version, b bench.Benchmark, o outcome, rows map[string]bool) []bench.Sample {
	list := samples(point{round: 1, slot: v}, b, o, rows)
	for i := range list {
		list[i].Position = nil
	}
	return list
}

// learn takes from a working run what later runs are held against.
func (s *Sampler) learn(i int, b bench.Benchmark, st *state, o outcome, w *WarmUp) {
	sl := s.slots[i]
	if st.output == "" {
		st.output, st.outputOf = o.res.StdoutSHA256, sl.Version
	}
	if o.res.Left > 0 {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: %s left %d processes behind, which were killed and not measured", b.Key(), sl.Version, o.res.Left))
	}
	if stops := time.Duration(o.res.Stops); stops > 0 {
		spent := stops * s.stopCost
		share := 1.0
		if wall := o.res.Wall - spent; wall > 0 {
			share = float64(spent) / float64(wall)
		}
		w.TraceShare = max(w.TraceShare, share)
	}
	if b.Parse == "" {
		return
	}
	st.rows[i] = rowNames(o.rows)
	if i == 0 {
		return
	}
	for _, name := range sortedKeys(st.rows[0]) {
		switch {
		case st.rows[i][name]:
		case sl.Twin:
			w.Warnings = append(w.Warnings, fmt.Sprintf("%s: the base's twin printed no result for %s, the base did", b.Key(), name))
		default:
			const missing = "missing: base printed a result for it, this version did not"
			w.Failures = append(w.Failures, bench.Failure{
				N: sl.N, Benchmark: bench.RowName(rowBenchmark(b, name), b.Params), Reason: missing, LogTail: o.res.LogTail,
			})
			w.Samples = append(w.Samples, bench.Sample{
				Round: 1, Version: sl.N, Benchmark: rowBenchmark(b, name), Params: b.Params,
				Metric: secPerOp, Unit: bench.Second, Failed: &bench.Failed{Reason: missing},
			})
		}
	}
}

// hasTwin says whether the base is measured twice.
func (s *Sampler) hasTwin() bool {
	return slices.ContainsFunc(s.slots, func(sl *slot) bool { return sl.Twin })
}

// dropTwin takes the twin out: without the base it shows nothing.
func (s *Sampler) dropTwin(st *state) {
	for i, sl := range s.slots {
		if sl.Twin {
			st.working[i] = false
		}
	}
}

// first gives ctx's error where there is one: what a broken-off run says
// otherwise is only its consequence.
func first(ctxErr, err error) error {
	if ctxErr != nil {
		return ctxErr
	}
	return err
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
