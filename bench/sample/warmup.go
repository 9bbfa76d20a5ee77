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
	// then the row's name). A benchmark that is given up has one, of version 0,
	// and a row that the base's twin does not print is one of version 0 too.
	Failures []bench.Failure
	// Samples are lines for the record, of round 1, so that it alone tells of
	// the failures: one for each version that failed, and one for each row that
	// a version does not have for it, or has not printed.
	Samples  []bench.Sample
	Warnings []string
	// Working is how many versions take part in rounds, without the twin: 0 for
	// a benchmark that is given up. With fewer than two there is nothing to compare.
	Working int
	// Round is how long a round will take, as far as one run can tell; half of that
	// once EnoughPeaks was said, if PeaksApart.
	Round time.Duration
	// PeaksApart says that peaks are read in runs of their own, because
	// following the program's processes takes TraceShare of its wall time, a
	// fraction, and more than 0.5 % is not tolerated.
	PeaksApart bool
	TraceShare float64
}

// WarmUp runs benchmark b once on every version, the base twice (its twin is the
// second time, if there is one), and keeps no figures.
//
// The base decides whether the benchmark can be trusted: when a run of its build
// fails, its twin's included, or prints something else under a check of the
// output, no version is measured, and the only failure is that of version 0. The
// base's own first failure is repeated once, to tell always from sometimes.
//
// Another version that fails is tried once more, and when that fails too it is
// left out of all rounds. Unless a time limit ended it, three more runs of it and
// of the base tell what is the version's: what failed in each of its runs. What
// failed in some only is flaky. So is a row that is missing in one of two runs,
// and a row that only one of base and twin prints is nobody's. The error is ctx's or our own failure, never the
// program's.
func (s *Sampler) WarmUp(ctx context.Context, b int) (WarmUp, error) {
	bm, err := s.benchmark(b)
	if err != nil {
		return WarmUp{}, err
	}
	if err := s.learnTrace(ctx); err != nil {
		return WarmUp{}, first(ctx.Err(), err)
	}
	st := newState(bm, len(s.slots))
	if wantsInstructions(bm) {
		if err := s.learnPerf(ctx); err != nil {
			return WarmUp{}, first(ctx.Err(), err)
		}
		st.perf = s.noPerf == ""
	}
	var w WarmUp
	if s.noPeaks != "" {
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: peaks of memory cannot be read on this machine: %s", bm.Key(), s.noPeaks))
	}
	left := map[int]int{} // by slot
	for i := 0; i < len(s.slots); {
		if st.upto[i] == 0 {
			i++
			continue
		}
		o, elapsed, err := s.attempt(ctx, i, st, &w)
		if err == nil && o.failed == nil {
			err = s.learn(ctx, i, st, o, &w)
		}
		if err == nil && o.failed == nil && i == 0 && s.twin() < 0 {
			// Only a second run shows whether the output is always the same.
			_, _, err = s.tally(ctx, i, st)
		}
		if err != nil {
			return WarmUp{}, first(ctx.Err(), err)
		}
		if row := s.baseFails(st); row >= 0 {
			f, lines := s.giveUp(st, row, 1)
			gone := st.names(st.upto[0])
			w.Samples = append(slices.DeleteFunc(w.Samples, func(l bench.Sample) bool { return gone[l.Benchmark] }), lines...)
			w.Failures = append(st.outside(w.Failures), f)
			if st.upto[0] == 0 {
				s.states[b] = st
				return WarmUp{Failures: w.Failures, Samples: w.Samples, Warnings: w.Warnings}, nil
			}
			continue // with what goes before it
		}
		if o.failed != nil {
			w.Samples = append(w.Samples, linesOfFailure(1, s.slots[i].Version, st, o, st.rows[0])...)
			w.Failures = append(w.Failures, s.declare(i, st, o))
			continue
		}
		if o.left > 0 {
			left[i] = o.left
		}
		w.Round += elapsed
		i++
	}
	if len(left) > 0 {
		w.Warnings = append(w.Warnings, bm.Key()+": "+s.leftBehind(left))
	}
	w.PeaksApart = w.TraceShare > maxTraceShare
	st.apart = w.PeaksApart
	if st.apart {
		w.Round *= 2
	}
	w.Working = s.working(st)
	s.states[b] = st
	return w, nil
}

// attempt runs a benchmark on a version, and again if it fails. The outcome is a
// failure when the version is not to be measured in a row.
func (s *Sampler) attempt(ctx context.Context, i int, st *state, w *WarmUp) (outcome, time.Duration, error) {
	o, elapsed, err := s.tally(ctx, i, st)
	sl := s.slots[i]
	if err != nil || o.failed == nil || sl.Twin {
		return o, elapsed, err
	}
	again, elapsed, err := s.tally(ctx, i, st)
	switch {
	case err != nil:
		return again, 0, err
	case sl.N == 0:
		return o, 0, nil // one failure of the base is enough
	case again.failed == nil:
		w.Warnings = append(w.Warnings, fmt.Sprintf("%s: %s failed in 1 of 2 runs: %s", st.bm.Key(), sl.Version, o.failed))
		return again, elapsed, nil
	case again.timedOut:
		return again, 0, nil
	}
	again, err = s.confirm(ctx, i, st, again)
	return again, 0, err
}

// tally runs a benchmark once on a version and counts how that ended.
func (s *Sampler) tally(ctx context.Context, i int, st *state) (outcome, time.Duration, error) {
	start := s.now()
	o, err := s.measure(ctx, i, st, s.noPeaks == "")
	if err != nil {
		return o, 0, err
	}
	st.count(i, o)
	return o, s.now().Sub(start), nil
}

// learn takes from a working run what later runs are held against.
func (s *Sampler) learn(ctx context.Context, i int, st *state, o outcome, w *WarmUp) error {
	sl := s.slots[i]
	if i == 0 {
		st.outputs = o.outputs
	}
	if stops := time.Duration(o.stops); stops > 0 {
		spent := stops * s.stopCost
		share := 1.0
		if wall := o.wall - spent; wall > 0 {
			share = float64(spent) / float64(wall)
		}
		w.TraceShare = max(w.TraceShare, share)
	}
	if st.bm.Parse == "" {
		return nil
	}
	st.rows[i] = rowNames(o.rows)
	if sl.Twin {
		s.loosen(st, o, w)
		return nil
	}
	maps.DeleteFunc(st.rows[i], func(name string, _ bool) bool { return st.loose[name] })
	missing := slices.DeleteFunc(sortedKeys(st.rows[0]), func(name string) bool { return st.rows[i][name] })
	if len(missing) == 0 {
		return nil
	}
	// A second run tells what is never printed from what is printed sometimes.
	must := st.rows[i]
	st.rows[i] = nil
	again, _, err := s.tally(ctx, i, st)
	st.rows[i] = must
	if err != nil {
		return err
	}
	printed := rowNames(again.rows)
	for _, name := range missing {
		f := bench.Failure{N: sl.N, Reason: "missing: base printed a result for it, this version did not", LogTail: o.log}
		if printed[name] {
			f.Reason, f.Flaky = "printed no result for it (1 of 2 runs)", true
		}
		w.lack(st, name, f)
	}
	return nil
}

// loosen holds nobody to a row that the base's build prints only sometimes.
func (s *Sampler) loosen(st *state, o outcome, w *WarmUp) {
	twin := s.twin()
	for _, name := range sortedKeys(st.rows[0]) {
		if !st.rows[twin][name] {
			w.lack(st, name, bench.Failure{
				Reason: "unreliable: base printed a result for it, its twin, the same build, did not", LogTail: o.log,
			})
		}
	}
	st.loose = map[string]bool{}
	for _, pair := range [][2]int{{0, twin}, {twin, 0}} {
		for name := range st.rows[pair[0]] {
			if !st.rows[pair[1]][name] {
				st.loose[name] = true
			}
		}
	}
	for _, i := range []int{0, twin} {
		maps.DeleteFunc(st.rows[i], func(name string, _ bool) bool { return st.loose[name] })
	}
}

// lack tells of a row that a version has not printed: f but for the row's name.
func (w *WarmUp) lack(st *state, row string, f bench.Failure) {
	name := rowBenchmark(st.bm, row)
	f.Benchmark = bench.RowName(name, st.bm.Params)
	w.Failures = append(w.Failures, f)
	w.Samples = append(w.Samples, bench.Sample{
		Round: 1, Version: f.N, Benchmark: name, Params: st.bm.Params,
		Metric: st.parser.Main, Unit: st.parser.MainUnit, Failed: &bench.Failed{Reason: f.Reason},
	})
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
