// Package plan says what one run of a benchmark consists of: which programs are
// started on which state, and whose figures are whose.
//
//	bench.Benchmark -> Plan -> bench/sample carries it out
//	                -> results of the programs -> Figures of each row
//
// A benchmark has one row, named as itself, if it is a single program:
//
//	take 1   prepare; run; cleanup                      row ""
//
// A chain has a row for each step, all on one state:
//
//	take 1   prepare; add; commit; serve &, pull; cleanup   rows add, commit, serve, pull
//
// Nothing is run here, and nothing read.
package plan

import (
	"maps"
	"slices"

	"patchbench/bench"
)

// Plan is one run of a benchmark.
type Plan struct {
	Rows  []Row
	Takes []Take
	// Chain says that rows can be measured without those behind them.
	Chain bool
}

// Row is a row that a run yields.
type Row struct {
	Name string // what stands behind NAME/; "" for the benchmark itself
	// Background says that it is a server's, which the next row's program uses.
	Background bool
}

// Take is programs on one state: /tmp is empty before them and after.
type Take struct {
	Prepare, Cleanup []Program // not measured
	Jobs             []Job
}

// Program is what is started, and its surroundings.
type Program struct {
	bench.Program
	Env   []string // NAME=VALUE, sorted
	Stdin string   // relative to the source folder; "" for none
}

// Job is a measured program of a take.
type Job struct {
	Program
	Ready      bench.Program // run until it succeeds; zero for none
	Background bool
	Together   bool // starts with the job before it
	Row        int  // whose figure it is part of
}

// Of gives the plan of a benchmark.
func Of(b bench.Benchmark) Plan {
	env := environment(b)
	t := Take{Prepare: programs(env, b.Prepare), Cleanup: programs(env, b.Cleanup)}
	if len(b.Chain) == 0 {
		t.Jobs = []Job{{Program: Program{b.Run, env, b.Stdin}}}
		return Plan{Rows: []Row{{}}, Takes: []Take{t}}
	}
	p := Plan{Chain: true}
	for i, l := range b.Chain {
		p.Rows = append(p.Rows, Row{l.Name, l.Background})
		t.Jobs = append(t.Jobs, Job{Program: Program{Program: l.Run, Env: env}, Ready: l.Ready, Background: l.Background, Row: i})
	}
	p.Takes = []Take{t}
	return p
}

// programs lists those that are not zero.
func programs(env []string, list ...bench.Program) []Program {
	var out []Program
	for _, p := range list {
		if !p.IsZero() {
			out = append(out, Program{Program: p, Env: env})
		}
	}
	return out
}

func environment(b bench.Benchmark) []string {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		env = append(env, k+"="+b.Env[k])
	}
	return env
}

// Before gives how many rows can be measured when a row cannot: those before it
// in a chain, but for servers that nothing would use; otherwise none.
func (p Plan) Before(row int) int {
	if !p.Chain {
		return 0
	}
	for row > 0 && p.Rows[row-1].Background {
		row--
	}
	return row
}

// Upto gives the plan of the first rows alone.
func (p Plan) Upto(rows int) Plan {
	if rows >= len(p.Rows) {
		return p
	}
	cut := Plan{Rows: p.Rows[:rows], Chain: p.Chain}
	for _, t := range p.Takes {
		t.Jobs = slices.DeleteFunc(slices.Clone(t.Jobs), func(j Job) bool { return j.Row >= rows })
		cut.Takes = append(cut.Takes, t)
	}
	return cut
}

// Last is the last row that is no server's.
func (p Plan) Last() int {
	for i := len(p.Rows) - 1; i > 0; i-- {
		if !p.Rows[i].Background {
			return i
		}
	}
	return 0
}

// Name is the name under which a row is kept: that of its benchmark, or NAME/ROW.
func (p Plan) Name(b bench.Benchmark, row int) string {
	if p.Rows[row].Name == "" {
		return b.Name
	}
	return b.Name + "/" + p.Rows[row].Name
}

// Key is Name with the parameters, as bench.RowName.
func (p Plan) Key(b bench.Benchmark, row int) string { return bench.RowName(p.Name(b, row), b.Params) }
