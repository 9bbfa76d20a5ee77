package sample

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
)

// confirmRuns is how often a version that failed twice is run again, and the
// base beside it. A benchmark that fails in a quarter of its runs on any version
// is then blamed on a patch in less than one of 2,000 tries.
const confirmRuns = 3

// unsteady is why a benchmark under a check of its output is given up.
const unsteady = "its output differs from run to run of the same build, so it cannot be checked"

// count notes how a run on a version ended.
func (st *state) count(i int, o outcome) {
	st.runs[i]++
	if o.failed != nil {
		st.failures[i]++
		st.last[i] = o
	}
}

// twin is the slot of the base's twin, -1 if there is none.
func (s *Sampler) twin() int {
	return slices.IndexFunc(s.slots, func(sl *slot) bool { return sl.Twin })
}

// ofBase counts the failures and runs of the base's build: its own and its twin's.
func (s *Sampler) ofBase(st *state) (fails, runs int) {
	for i, sl := range s.slots {
		if sl.N == 0 {
			fails += st.failures[i]
			runs += st.runs[i]
		}
	}
	return fails, runs
}

// confirm runs a version that failed twice, last with o, and the base beside it
// until the base fails or all is known, and gives the version's last failure.
func (s *Sampler) confirm(ctx context.Context, i int, b bench.Benchmark, st *state, o outcome) (outcome, error) {
	for range confirmRuns {
		again, _, err := s.tally(ctx, i, b, st)
		if err != nil {
			return o, err
		}
		if again.failed != nil {
			o = again
		}
		base, _, err := s.tally(ctx, 0, b, st)
		if err != nil || base.failed != nil || again.timedOut {
			return o, err
		}
	}
	return o, nil
}

// failure declares a version failing, with how often it failed of how many runs.
// What has worked before or between is flaky.
func (s *Sampler) failure(i int, b bench.Benchmark, st *state, o outcome) bench.Failure {
	return bench.Failure{
		N: s.slots[i].N, Benchmark: b.Key(), Signal: o.failed.Signal, Status: o.failed.Status, LogTail: o.log,
		Reason: ofRuns(o, st.failures[i], st.runs[i]), Flaky: st.failures[i] < st.runs[i],
	}
}

func ofRuns(o outcome, fails, runs int) string {
	return fmt.Sprintf("%s (%d of %d runs)", o.failed, fails, runs)
}

// giveUp takes every version out of the rounds, because the base's build has
// failed, and gives the failure of version 0 with its lines for the record.
func (s *Sampler) giveUp(b bench.Benchmark, st *state, round int) (bench.Failure, []bench.Sample) {
	clear(st.working)
	i := 0
	if st.failures[i] == 0 {
		i = s.twin()
	}
	o := st.last[i]
	why := ofRuns(o, st.failures[i], st.runs[i])
	if always := st.failures[0] > 0 && st.failures[0] == st.runs[0]; !always {
		why = "unreliable: " + s.unreliable(i, st, o)
		if o.unsteady {
			why = unsteady
		}
		// The record alone must tell that it is not the base that is broken.
		f := *o.failed
		f.Reason = why
		o.failed = &f
	}
	return bench.Failure{
		N: 0, Benchmark: b.Key(), Signal: o.failed.Signal, Status: o.failed.Status, LogTail: o.log, Reason: why,
	}, linesOfFailure(round, s.slots[0].Version, b, o, st.rows[0])
}

// unreliable says how the base's build fails that works as well; i is the slot
// that failed last.
func (s *Sampler) unreliable(i int, st *state, o outcome) string {
	fails, runs := s.ofBase(st)
	if s.slots[i].Twin {
		return "base's twin, the same build, fails where base did not: " + ofRuns(o, fails, runs)
	}
	return "base fails in some runs: " + ofRuns(o, fails, runs)
}

// linesOfFailure are a failure in the record that was no part of a round's
// random order: they have no position.
func linesOfFailure(round int, v Version, b bench.Benchmark, o outcome, rows map[string]bool) []bench.Sample {
	list := samples(point{round: round, slot: v}, b, o, rows)
	for i := range list {
		list[i].Position = nil
	}
	return list
}

// leftBehind tells of the processes that programs left, counted by slot.
func (s *Sampler) leftBehind(left map[int]int) string {
	var on []Version
	least, most := 0, 0
	for i, sl := range s.slots {
		n, ok := left[i]
		if !ok {
			continue
		}
		on = append(on, sl.Version)
		if least == 0 || n < least {
			least = n
		}
		most = max(most, n)
	}
	number := strconv.Itoa(least)
	if most > least {
		number += " to " + strconv.Itoa(most)
	}
	processes, were := "processes", "were"
	if most == 1 {
		processes = "process"
	}
	who, each := versionNames(on), ""
	switch {
	case len(on) == len(s.slots):
		who = "every version"
	case len(on) > 1:
		each = " each"
	}
	if most == 1 && each == "" {
		were = "was"
	}
	return fmt.Sprintf("%s left %s %s behind%s, which %s killed and not measured", who, number, processes, each, were)
}

// versionNames names versions in the order of their numbers: "base and patches
// 1-3, 7". Beside the base its twin goes without saying.
func versionNames(list []Version) string {
	var names, patches []string
	for i := 0; i < len(list); i++ {
		v := list[i]
		switch {
		case v.Twin && i > 0:
		case v.N == 0:
			names = append(names, v.String())
		default:
			from := v.N
			for i+1 < len(list) && list[i+1].N == list[i].N+1 {
				i++
			}
			text := strconv.Itoa(from)
			if to := list[i].N; to > from {
				text += "-" + strconv.Itoa(to)
			}
			patches = append(patches, text)
		}
	}
	if len(patches) > 0 {
		text := strings.Join(patches, ", ")
		if strings.ContainsAny(text, ",-") {
			text = "patches " + text
		} else {
			text = "patch " + text
		}
		names = append(names, text)
	}
	return strings.Join(names, " and ")
}
