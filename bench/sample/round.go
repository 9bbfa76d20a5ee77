package sample

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
)

// When a run counts as stalled: it took stallFactor times the median of its
// version's earlier runs, of which there are at least stallMin, and for
// stallShare of the time something waited for a CPU.
const (
	stallFactor = 5
	stallMin    = 4
	stallShare  = 0.5
)

// Why a whole round was repeated.
const (
	discardedFailed = "failed"
	discardedStall  = "stall"
)

// Round is what one round gave.
type Round struct {
	// Samples are those of the round, and of its tries that were repeated,
	// which are marked as discarded. A version that is declared failing has
	// lines with Failed that are not marked: one for the benchmark, and one for
	// each row that is read from its output.
	Samples []bench.Sample
	// Failures are the versions declared failing in this round; later rounds go
	// on without them. They worked before, so they are flaky. A benchmark that is
	// given up has one failure, of version 0, and no later round yields anything.
	Failures []bench.Failure
	Warnings []string
	// Working is how many versions took part to the end, without the twin.
	Working int
}

// Round runs benchmark b once on every working version in random order; round
// counts from 1. WarmUp comes first. With no working version it yields nothing.
//
// When a run fails, the whole round is repeated; the version that fails again is
// declared failing and the round goes on without it. If by then the base's build
// has failed in any run, its twin's included, the benchmark is unreliable: it is
// given up, and nobody but version 0 has the failure. When a run stalls, the
// whole round is repeated once at most. When ctx ends, an incomplete round
// yields no samples and the error is ctx's; any other error is our own failure.
func (s *Sampler) Round(ctx context.Context, b int, round int) (Round, error) {
	bm, err := s.benchmark(b)
	if err != nil {
		return Round{}, err
	}
	st := s.states[b]
	if st == nil {
		return Round{}, fmt.Errorf("sample: round %d of %s: no warm-up was run before", round, bm.Key())
	}
	if round < 1 {
		return Round{}, fmt.Errorf("sample: round %d of %s: rounds count from 1", round, bm.Key())
	}
	// Until the round is complete nothing is changed that a later one sees.
	t := &trial{s: s, st: st.clone(), b: b, round: round, once: map[int]bool{}}
	for try := 0; ; try++ {
		again, err := t.run(ctx, try)
		if err != nil {
			return Round{}, first(ctx.Err(), err)
		}
		if !again {
			break
		}
	}
	s.states[b] = t.st
	t.out.Working = s.working(t.st)
	return t.out, nil
}

// EnoughPeaks says whether the figures of Apart are known well enough of a
// benchmark. Where they take runs of their own, later rounds do without these, and
// are half as long. WarmUp comes first.
func (s *Sampler) EnoughPeaks(b int, enough bool) {
	if st := s.states[b]; st != nil {
		st.enough = enough
	}
}

// Apart says that a metric is read in runs of their own where peaks are.
func Apart(metric string) bool {
	switch strings.TrimPrefix(metric, bench.OfBaseline) {
	case bench.RSS.Name, bench.Size.Name, bench.Tree.Name, "reads", "writes", instructions:
		return true
	}
	return false
}

// working is how many versions take part, without the twin.
func (s *Sampler) working(st *state) int {
	n := 0
	for i, sl := range s.slots {
		if st.upto[i] > 0 && !sl.Twin {
			n++
		}
	}
	return n
}

// trial is a round that is under way, with all its tries.
type trial struct {
	s        *Sampler
	st       *state
	b, round int
	once     map[int]bool // slots that failed once in this round
	stalled  bool         // the round was repeated for a stall
	out      Round
}

// visit is one run of a round.
type visit struct {
	slot  int
	trace bool
	peaks bool // it is for the figures of Apart alone
}

// behind is added to a try for the order of the runs for peaks alone.
const behind = 1 << 32

// visits are the runs of a try. Where peaks are read apart, these are a round of
// their own: what a trace leaves behind in a machine is beside no timed run.
func (t *trial) visits(try int) []visit {
	var list []visit
	trace := t.s.noPeaks == ""
	for _, i := range t.s.order(t.b, t.round, try) {
		list = append(list, visit{slot: i, trace: trace && !t.st.apart})
	}
	if !trace || !t.st.apart || t.st.enough {
		return list
	}
	for _, i := range t.s.order(t.b, t.round, try+behind) {
		list = append(list, visit{slot: i, trace: true, peaks: true})
	}
	return list
}

// ran is the run of a version in a try, with the peaks that were read for it.
type ran struct {
	slot, position int
	outcome
}

// run does one try of the round and says whether another is needed. It stops at
// the run that spoils the try.
func (t *trial) run(ctx context.Context, try int) (again bool, err error) {
	var done []ran
	for _, v := range t.visits(try) {
		i := v.slot
		if t.st.upto[i] == 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		o, err := t.s.measure(ctx, i, t.st, v.trace)
		if err != nil {
			return false, err
		}
		t.st.count(i, o)
		r := ran{i, len(done), o}
		if v.peaks {
			k := slices.IndexFunc(done, func(r ran) bool { return r.slot == i })
			r.position, r.figures = done[k].position, done[k].figures[:min(len(o.figures), len(done[k].figures))]
			for row := range r.figures {
				r.figures[row].TakePeaks(o.figures[row])
			}
			if o.failed == nil {
				continue
			}
			done = slices.Delete(done, k, k+1)
		}
		done = append(done, r)
		switch {
		case o.failed != nil && t.once[i] && t.s.baseFails(t.st) >= 0:
			// Nobody can tell then that it is the version's doing.
			t.giveUp(t.lines(done))
			return t.st.upto[0] > 0, nil
		case o.failed != nil && t.once[i]:
			failed := slices.DeleteFunc(t.lines(done[len(done)-1:]), func(l bench.Sample) bool { return l.Failed == nil })
			t.out.Samples = append(t.out.Samples, failed...)
			t.out.Failures = append(t.out.Failures, t.s.declare(i, t.st, o))
		case o.failed != nil:
			t.once[i] = true
			t.discard(t.lines(done), discardedFailed, fmt.Sprintf("%s failed (%d of %d runs): %s",
				t.s.slots[i].Version, t.st.failures[i][o.at], t.st.runs[i][o.at], o.failed))
			return true, nil
		case !t.stalled && stalled(o, t.st.walls[i]):
			t.stalled = true
			t.discard(t.lines(done), discardedStall, fmt.Sprintf("%s took %.3g s, %.3g times its median, while programs waited for a CPU",
				t.s.slots[i].Version, o.wall.Seconds(), o.wall.Seconds()/median(t.st.walls[i]).Seconds()))
			return true, nil
		}
	}
	slices.SortFunc(done, func(a, b ran) int { return a.position - b.position })
	for _, r := range done {
		lines := t.lines([]ran{r})
		if r.failed != nil {
			// What it says of the failure is told already.
			lines = slices.DeleteFunc(lines, func(l bench.Sample) bool { return l.Failed != nil })
		} else {
			t.st.walls[r.slot] = append(t.st.walls[r.slot], r.wall)
		}
		t.out.Samples = append(t.out.Samples, lines...)
	}
	return false, nil
}

// lines are those of some runs in the record.
func (t *trial) lines(list []ran) []bench.Sample {
	var lines []bench.Sample
	for _, r := range list {
		lines = append(lines, samples(point{t.round, t.s.slots[r.slot].Version, r.position}, t.st, r.outcome, t.st.rows[r.slot])...)
	}
	return lines
}

// giveUp ends the benchmark, or that part of it in which its base has failed:
// nothing of this try counts, and no failure of another version there.
func (t *trial) giveUp(list []bench.Sample) {
	row := t.s.baseFails(t.st)
	f, lines := t.s.giveUp(t.st, row, t.round)
	gone := t.st.names(t.st.upto[0])
	for i, l := range t.out.Samples {
		if l.Discarded == "" && gone[l.Benchmark] {
			t.out.Samples[i].Discarded = discardedFailed
		}
	}
	for i := range list {
		if list[i].Discarded == "" {
			list[i].Discarded = discardedFailed
		}
	}
	t.out.Samples = slices.Concat(t.out.Samples, list, lines)
	t.out.Failures = append(t.st.outside(t.out.Failures), f)
}

// discard keeps the samples of a spoiled try in the record, marked.
func (t *trial) discard(list []bench.Sample, why, text string) {
	for i := range list {
		list[i].Discarded = why
	}
	t.out.Samples = append(t.out.Samples, list...)
	t.out.Warnings = append(t.out.Warnings, fmt.Sprintf("%s: round %d is repeated: %s", t.st.bm.Key(), t.round, text))
}

// stalled says that a run's time is the machine's doing.
func stalled(o outcome, earlier []time.Duration) bool {
	if len(earlier) < stallMin || o.pressure < 0 {
		return false
	}
	return o.wall > stallFactor*median(earlier) && float64(o.pressure) > stallShare*float64(o.wall)
}

// median of a list that is not empty.
func median(list []time.Duration) time.Duration {
	l := slices.Sorted(slices.Values(list))
	return (l[(len(l)-1)/2] + l[len(l)/2]) / 2
}

// clone copies what a round may change.
func (st *state) clone() *state {
	c := *st
	c.upto = slices.Clone(st.upto)
	c.runs, c.failures = deeper(st.runs), deeper(st.failures)
	c.last, c.walls = deeper(st.last), deeper(st.walls)
	return &c
}

// deeper clones a list of lists.
func deeper[T any](list [][]T) [][]T {
	c := make([][]T, len(list))
	for i, l := range list {
		c[i] = slices.Clone(l)
	}
	return c
}
