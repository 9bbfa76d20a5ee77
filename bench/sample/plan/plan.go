// Package plan says what one run of a benchmark consists of: which programs are
// started on which state, and whose figures are whose.
//
//	bench.Benchmark -> Plan -> bench/sample carries it out
//	                -> results of the programs -> Figures of each row
//
// A take is programs on one state. A single program has one take and one row,
// named as the benchmark; k copies in parallel are one row, too:
//
//	take 1   prepare; run; cleanup                              row ""
//
// A chain has a row for each step, all on one state. A server is ended when the
// step after it has ended:
//
//	take 1   prepare; add; commit; serve & pull; cleanup        rows add, commit, serve, pull
//
// Benchmarks together are run alone first, then at once on one state, with
// prepare, servers and cleanup that they share once:
//
//	take 1   prepare; serve & pull-a; cleanup                   for the slowdown of row pull-a
//	take 2   prepare; serve & pull-b; cleanup                   for the slowdown of row pull-b
//	take 3   prepare; serve & (pull-a | pull-b); cleanup        rows serve, pull-a, pull-b
//
// A benchmark with a baseline is run after it, and its figures are those of its
// own programs less the baseline's:
//
//	take 1   the baseline                                       subtracted from row ""
//	take 2   prepare; run; cleanup                              row ""
//
// Nothing is run here, and nothing read.
package plan

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

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
	// Name tells of a take that is not the last one in what a failure is said to
	// be: "pull alone"; "" for the last.
	Name             string
	Prepare, Cleanup []Program // not measured
	Jobs             []Job
}

// Program is what is started, and its surroundings.
type Program struct {
	bench.Program
	Env     []string // NAME=VALUE, sorted
	Stdin   string   // relative to the source folder; "" for none
	Timeout time.Duration
}

// Use says what becomes of a program's figures.
type Use int

// The uses.
const (
	Counted    Use = iota // they are the row's, or part of its sum
	Alone                 // the row's slowdown is told by them
	Subtracted            // from the row's
	Unused                // a server's in a take that measures something else
)

// Job is a measured program of a take.
type Job struct {
	Program
	Ready      bench.Program // run until it succeeds; zero for none
	Background bool
	Together   bool // starts with the job before it
	Row        int  // whose figure it is part of
	Use        Use
}

// Of gives the plan of a benchmark.
func Of(b bench.Benchmark) Plan {
	switch {
	case len(b.Together) > 0:
		return group(b)
	case len(b.Chain) > 0:
		return chain(b)
	}
	p := Plan{Rows: []Row{{}}, Takes: []Take{single(b)}}
	if b.Baseline != nil {
		less := single(*b.Baseline)
		less.Name = "baseline " + b.Baseline.Name
		p.Takes = append([]Take{less.as(0, Subtracted)}, p.Takes...)
	}
	return p
}

// single is the take of one program, or of copies of it.
func single(b bench.Benchmark) Take {
	t := around(b)
	j := Job{Program: programOf(b, b.Run)}
	j.Stdin = b.Stdin
	t.Jobs = copies(j, b.Parallel)
	return t
}

func chain(b bench.Benchmark) Plan {
	p := Plan{Chain: true}
	t := around(b)
	for i, l := range b.Chain {
		p.Rows = append(p.Rows, Row{l.Name, l.Background})
		t.Jobs = append(t.Jobs, copies(Job{Program: programOf(b, l.Run), Ready: l.Ready, Background: l.Background, Row: i}, l.Parallel)...)
	}
	p.Takes = []Take{t}
	return p
}

// group is the plan of benchmarks that are run alone and together. Each ends in
// one step; those before it are servers.
func group(b bench.Benchmark) Plan {
	var p Plan
	var at []int // the row of each member
	var last Take
	var clients []Job
	for _, m := range b.Together {
		alone := Of(m).Takes[0]
		servers, own := alone.Jobs[:0:0], alone.Jobs[:0:0]
		for _, j := range alone.Jobs {
			if j.Background {
				servers = append(servers, j)
			} else {
				own = append(own, j)
			}
		}
		last.Prepare = join(last.Prepare, alone.Prepare)
		last.Cleanup = join(last.Cleanup, alone.Cleanup)
		for _, j := range servers {
			name := m.Chain[j.Row].Name
			j.Row = 0
			same := func(o Job) bool { o.Row = 0; return reflect.DeepEqual(o, j) }
			if slices.ContainsFunc(last.Jobs, same) {
				continue
			}
			if slices.ContainsFunc(p.Rows, func(r Row) bool { return r.Name == name }) {
				name = m.Name + "/" + name
			}
			j.Row = len(p.Rows)
			p.Rows = append(p.Rows, Row{name, true})
			last.Jobs = append(last.Jobs, j)
		}
		clients = append(clients, own...)
		at = append(at, len(own))
	}
	for k, m := range b.Together {
		row := len(p.Rows)
		p.Rows = append(p.Rows, Row{Name: m.Name})
		for _, j := range clients[:at[k]] {
			j.Row, j.Together = row, k > 0 || j.Together
			last.Jobs = append(last.Jobs, j)
		}
		clients = clients[at[k]:]
		alone := Of(m).Takes[0]
		alone.Name = m.Name + " alone"
		p.Takes = append(p.Takes, alone.as(row, Alone))
	}
	p.Takes = append(p.Takes, last)
	return p
}

// as gives the take for another use: its servers are not used.
func (t Take) as(row int, use Use) Take {
	t.Jobs = slices.Clone(t.Jobs)
	for i := range t.Jobs {
		t.Jobs[i].Row, t.Jobs[i].Use = row, use
		if t.Jobs[i].Background {
			t.Jobs[i].Use = Unused
		}
	}
	return t
}

// join appends the programs that are not there yet.
func join(list, more []Program) []Program {
	for _, p := range more {
		if !slices.ContainsFunc(list, func(o Program) bool { return reflect.DeepEqual(o, p) }) {
			list = append(list, p)
		}
	}
	return list
}

// copies gives n jobs that start at once, each told by COPY which one it is.
func copies(j Job, n int) []Job {
	if n <= 1 {
		return []Job{j}
	}
	var list []Job
	for i := range n {
		c := j
		c.Env = append(slices.Clip(j.Env), "COPY="+strconv.Itoa(i+1))
		c.Together = i > 0
		list = append(list, c)
	}
	return list
}

// around is a take of a benchmark without its measured programs.
func around(b bench.Benchmark) Take {
	list := func(p bench.Program) []Program {
		if p.IsZero() {
			return nil
		}
		return []Program{programOf(b, p)}
	}
	return Take{Prepare: list(b.Prepare), Cleanup: list(b.Cleanup)}
}

func programOf(b bench.Benchmark, p bench.Program) Program {
	var env []string
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		env = append(env, k+"="+b.Env[k])
	}
	return Program{Program: p, Env: env, Timeout: b.Timeout}
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

// Because is why a row has no figure when another fails.
func (p Plan) Because(row int) string {
	name := p.Rows[row].Name
	if p.Chain {
		return "step " + name + " failed"
	}
	return cmp.Or(name, "it") + " failed"
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
