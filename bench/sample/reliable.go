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

// count notes how a run on a version ended, for each row that was tried.
func (st *state) count(i int, o outcome) {
	for row := range st.upto[i] {
		st.runs[i][row]++
		if o.failed != nil && row == o.at {
			st.failures[i][row]++
			st.last[i][row] = o
			return
		}
	}
}

// names are the names of the rows from one on, also of those of a parsed output.
func (st *state) names(from int) map[string]bool {
	m := map[string]bool{}
	for row := from; row < len(st.plan.Rows); row++ {
		m[st.plan.Name(st.bm, row)] = true
	}
	for _, rows := range st.rows {
		for name := range rows {
			m[rowBenchmark(st.bm, name)] = true
		}
	}
	return m
}

// outside drops the failures of rows that no version is measured in.
func (st *state) outside(list []bench.Failure) []bench.Failure {
	gone := map[string]bool{}
	for name := range st.names(st.upto[0]) {
		gone[bench.RowName(name, st.bm.Params)] = true
	}
	return slices.DeleteFunc(list, func(f bench.Failure) bool { return gone[f.Benchmark] })
}

// twin is the slot of the base's twin, -1 if there is none.
func (s *Sampler) twin() int {
	return slices.IndexFunc(s.slots, func(sl *slot) bool { return sl.Twin })
}

// ofBase counts the failures and runs of the base's build in a row: its own and
// its twin's.
func (s *Sampler) ofBase(st *state, row int) (fails, runs int) {
	for i, sl := range s.slots {
		if sl.N == 0 {
			fails += st.failures[i][row]
			runs += st.runs[i][row]
		}
	}
	return fails, runs
}

// baseFails is the first of the rows still measured in which the base's build
// has failed, -1 for none.
func (s *Sampler) baseFails(st *state) int {
	for row := range st.upto[0] {
		if fails, _ := s.ofBase(st, row); fails > 0 {
			return row
		}
	}
	return -1
}

// confirm runs a version that failed twice, last with o, and the base beside it
// until the base fails or all is known, and gives the version's last failure.
func (s *Sampler) confirm(ctx context.Context, i int, st *state, o outcome) (outcome, error) {
	for range confirmRuns {
		again, _, err := s.tally(ctx, i, st)
		if err != nil {
			return o, err
		}
		if again.failed != nil {
			o = again
		}
		base, _, err := s.tally(ctx, 0, st)
		if err != nil || base.failed != nil || again.timedOut {
			return o, err
		}
	}
	return o, nil
}

// declare takes a version out of the row that failed, and of those that need it,
// and says how often it failed of how many runs. What has worked before or
// between is flaky.
func (s *Sampler) declare(i int, st *state, o outcome) bench.Failure {
	st.upto[i] = st.plan.Before(o.at)
	fails, runs := st.failures[i][o.at], st.runs[i][o.at]
	return bench.Failure{
		N: s.slots[i].N, Benchmark: st.plan.Key(st.bm, o.at), Signal: o.failed.Signal, Status: o.failed.Status, LogTail: o.log,
		Reason: ofRuns(o, fails, runs), Flaky: fails < runs,
	}
}

func ofRuns(o outcome, fails, runs int) string {
	return fmt.Sprintf("%s (%d of %d runs)", o.failed, fails, runs)
}

// giveUp takes every version out of a row, and of those that need it, because
// the base's build has failed in it, and gives the failure of version 0 with its
// lines for the record.
func (s *Sampler) giveUp(st *state, row, round int) (bench.Failure, []bench.Sample) {
	for i := range st.upto {
		st.upto[i] = min(st.upto[i], st.plan.Before(row))
	}
	i := 0
	if st.failures[i][row] == 0 {
		i = s.twin()
	}
	o := st.last[i][row]
	why := ofRuns(o, st.failures[i][row], st.runs[i][row])
	if always := st.failures[0][row] > 0 && st.failures[0][row] == st.runs[0][row]; !always {
		why = "unreliable: " + s.unreliable(i, st, row, o)
		if o.unsteady {
			why = unsteady
		}
		// The record alone must tell that it is not the base that is broken.
		f := *o.failed
		f.Reason = why
		o.failed = &f
	}
	o.figures = o.figures[:min(len(o.figures), st.upto[0])]
	return bench.Failure{
		N: 0, Benchmark: st.plan.Key(st.bm, row), Signal: o.failed.Signal, Status: o.failed.Status, LogTail: o.log, Reason: why,
	}, linesOfFailure(round, s.slots[0].Version, st, o, st.rows[0])
}

// unreliable says how the base's build fails that works as well; i is the slot
// that failed last.
func (s *Sampler) unreliable(i int, st *state, row int, o outcome) string {
	fails, runs := s.ofBase(st, row)
	if s.slots[i].Twin {
		return "base's twin, the same build, fails where base did not: " + ofRuns(o, fails, runs)
	}
	return "base fails in some runs: " + ofRuns(o, fails, runs)
}

// linesOfFailure are a failure in the record that was no part of a round's
// random order: they have no position, and no figures.
func linesOfFailure(round int, v Version, st *state, o outcome, rows map[string]bool) []bench.Sample {
	list := samples(point{round: round, slot: v}, st, o, rows)
	list = slices.DeleteFunc(list, func(s bench.Sample) bool { return s.Failed == nil })
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
