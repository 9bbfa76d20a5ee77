package sample

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/sample/parse"
	"patchbench/bench/sample/plan"
	"patchbench/bench/sandbox"
)

// keepOutput is how much of an output is read for results or checked, in bytes.
const keepOutput = 16 << 20

// checkName is the folder beside a version's files for what is checked.
const checkName = "check"

// outcome is what one run of a benchmark on one version gave.
type outcome struct {
	figures []plan.Figures // by row, of those before the one that failed
	failed  *bench.Failed  // nil: the run succeeded
	// at is the row that failed; whole says that what failed is not its program.
	at    int
	whole bool
	log   string
	// timedOut says that a time limit ended it.
	timedOut bool
	// unsteady says that it printed something else than another run of its build.
	unsteady bool
	outputs  []string       // digests of what each row's programs printed
	rows     []parse.Result // of a parsed output

	// Of all programs together.
	wall, started time.Duration // started: when the last group of programs was
	pressure      time.Duration // negative if unknown
	stops, left   int
	untraced      string // why peaks were not read; ""
}

// measure runs a benchmark once. When the box breaks, which is our fault and not
// the program's, a new one is started and the run repeated. A run that ended its
// runner is none of that, but one that failed.
func (s *Sampler) measure(ctx context.Context, i int, st *state, trace bool) (outcome, error) {
	o, err := s.once(ctx, i, st, trace)
	if err == nil || ctx.Err() != nil {
		return o, err
	}
	sl := s.slots[i]
	if rerr := s.renew(ctx, sl); rerr != nil {
		return o, fmt.Errorf("run %s on %s: %w; %w", st.bm.Key(), sl.Version, err, rerr)
	}
	if o, err = s.once(ctx, i, st, trace); err != nil {
		return o, fmt.Errorf("run %s on %s: %w", st.bm.Key(), sl.Version, err)
	}
	return o, nil
}

// once does all takes of a benchmark's plan, as far as the version works.
func (s *Sampler) once(ctx context.Context, i int, st *state, trace bool) (outcome, error) {
	p := st.plan.Upto(st.upto[i])
	o := outcome{outputs: make([]string, len(p.Rows))}
	var results [][]sandbox.Result
	for k, t := range p.Takes {
		whole := k+1 == len(p.Takes) && len(p.Rows) == len(st.plan.Rows)
		res, err := s.take(ctx, s.slots[i], st, t, trace, whole, &o)
		if err != nil {
			return o, err
		}
		if res == nil {
			return o, nil
		}
		results = append(results, res)
		if o.failed != nil {
			break
		}
	}
	if o.failed == nil {
		o.judge(st, i, s.slots[i].Version, results)
	}
	if o.failed != nil {
		// What came before the failure stands.
		p = p.Upto(p.Before(o.at))
	}
	o.figures = p.Figures(results)
	return o, nil
}

// take does prepare, the measured programs, the check of their output when whole
// says that it is all there, and cleanup. Its results are nil if none of them can
// count.
func (s *Sampler) take(ctx context.Context, sl *slot, st *state, t plan.Take, trace, whole bool, o *outcome) ([]sandbox.Result, error) {
	if err := s.ready(ctx, sl); err != nil {
		return nil, err
	}
	for _, p := range t.Prepare {
		if err := s.aside(ctx, sl, s.job(p), true, label(t, "prepare"), o); err != nil {
			return nil, err
		}
		if o.failed != nil {
			break
		}
	}
	var res []sandbox.Result
	if o.failed == nil {
		var err error
		if res, err = s.jobs(ctx, sl, st, t, trace, o); err != nil {
			return nil, err
		}
		if o.failed == nil && whole && !st.bm.Check.IsZero() {
			if err := s.check(ctx, sl, st, t, res, o); err != nil {
				return nil, err
			}
		}
	}
	for k, p := range t.Cleanup {
		if err := s.aside(ctx, sl, s.job(p), k+1 < len(t.Cleanup), label(t, "cleanup"), o); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// jobs starts the measured programs of a take.
func (s *Sampler) jobs(ctx context.Context, sl *slot, st *state, t plan.Take, trace bool, o *outcome) ([]sandbox.Result, error) {
	var jobs []sandbox.Job
	for _, j := range t.Jobs {
		job := s.job(j.Program)
		job.Background, job.Together, job.Ready = j.Background, j.Together, j.Ready.Argv()
		job.Peaks = trace
		if st.perf && trace {
			job.Count = &s.event
		}
		job.KeepTmp = len(t.Cleanup) > 0 || !st.bm.Check.IsZero()
		if (st.bm.Parse != "" || !st.bm.Check.IsZero()) && j.Use == plan.Counted && !j.Background {
			job.KeepStdout = keepOutput
		}
		jobs = append(jobs, job)
	}
	res, failed, err := s.part(ctx, sl, jobs...)
	if err != nil {
		return nil, err
	}
	if failed != nil {
		o.fail(during(t.Name, *failed), "")
		return nil, nil
	}
	for k, r := range res {
		o.add(r, t.Jobs[k])
		// One that was held back by another's failure tells nothing of itself.
		if !r.OK() && o.failed == nil && !strings.HasSuffix(r.NotStarted, "failed before") {
			o.fail(during(t.Name, failedOf(r)), r.LogTail)
			o.at, o.timedOut = t.Jobs[k].Row, timedOut(jobs[k].Command, r)
		}
	}
	return res, nil
}

// aside does prepare or cleanup. When one fails, no figure of the run counts.
func (s *Sampler) aside(ctx context.Context, sl *slot, j sandbox.Job, keep bool, what string, o *outcome) error {
	j.KeepTmp = keep
	res, failed, err := s.part(ctx, sl, j)
	if err != nil {
		return err
	}
	var log string
	var late bool
	if failed == nil && !res[0].OK() {
		f := failedOf(res[0])
		failed, log, late = &f, res[0].LogTail, timedOut(j.Command, res[0])
	}
	if failed != nil && o.failed == nil {
		o.fail(during(what, *failed), log)
		o.whole, o.timedOut = true, late
	}
	return nil
}

// check gives what the programs of a take printed to the program that checks it.
func (s *Sampler) check(ctx context.Context, sl *slot, st *state, t plan.Take, res []sandbox.Result, o *outcome) error {
	f, err := os.Create(filepath.Join(sl.Dir, checkName, "output"))
	if err != nil {
		return err
	}
	for k, j := range t.Jobs {
		if j.Background {
			continue
		}
		if cutOff(res[k]) {
			o.fail(bench.Failed{Reason: tooLong + "it cannot be checked"}, res[k].LogTail)
			break
		}
		if _, err := f.Write(res[k].Stdout); err != nil {
			f.Close()
			return err
		}
	}
	err = errors.Join(f.Chmod(0o644), f.Close())
	if err != nil || o.failed != nil {
		return err
	}
	c := s.job(plan.Program{Program: st.bm.Check, Env: t.Jobs[0].Env, Timeout: st.bm.Timeout})
	c.Stdin = path.Join(checkDir, "output")
	if err := s.aside(ctx, sl, c, len(t.Cleanup) > 0, "check", o); err != nil {
		return err
	}
	if o.failed != nil {
		o.whole, o.at = false, len(st.plan.Rows)-1
	}
	return nil
}

// add counts a program in what all of them took. Of those that ran at once the
// slowest counts.
func (o *outcome) add(r sandbox.Result, j plan.Job) {
	o.stops += r.Stops
	o.untraced = cmp.Or(o.untraced, r.Untraced)
	o.left += r.Left
	if j.Background {
		return // its time is that of the program that uses it
	}
	if j.Use == plan.Counted {
		o.outputs[j.Row] += r.StdoutSHA256
	}
	if !j.Together {
		o.started = o.wall
	}
	if end := o.started + r.Wall; end > o.wall {
		o.wall = end
		if o.pressure >= 0 {
			o.pressure += time.Duration(r.PressureNS)
		}
	}
	if r.PressureNS < 0 {
		o.pressure = -1
	}
}

// judge reads the output of programs that ended well.
func (o *outcome) judge(st *state, i int, v Version, results [][]sandbox.Result) {
	last := results[len(results)-1]
	log := last[len(last)-1].LogTail
	o.log = log
	for row, sum := range o.outputs {
		if st.bm.CheckStdout && st.outputs != nil && !st.plan.Rows[row].Background && sum != st.outputs[row] {
			o.unsteady = v.N == 0
			why := "output differs from base's"
			if o.unsteady {
				why = unsteady
			}
			o.fail(bench.Failed{Reason: why}, log)
			o.at = row
			return
		}
	}
	if st.bm.Parse == "" {
		return
	}
	out := last[0]
	if cutOff(out) {
		o.fail(bench.Failed{Reason: tooLong + "results cannot be read"}, log)
		return
	}
	rows, err := st.parser.Parse(out.Stdout)
	if err != nil {
		o.fail(bench.Failed{Reason: err.Error()}, log)
		return
	}
	o.rows = rows
	if st.rows[i] == nil {
		return
	}
	have := rowNames(rows)
	for _, name := range sortedKeys(st.rows[i]) {
		if !have[name] {
			o.fail(bench.Failed{Reason: fmt.Sprintf("printed no result for %s", name)}, log)
			return
		}
	}
}

// cutOff says that a program printed more than was kept.
func cutOff(r sandbox.Result) bool {
	return int64(len(r.Stdout)) >= keepOutput && hexSHA256(r.Stdout) != r.StdoutSHA256
}

const tooLong = "the output is longer than 16 MiB: "

// rowBenchmark is the name of the row that a parsed result goes to.
func rowBenchmark(b bench.Benchmark, row string) string { return b.Name + "/" + row }

func rowNames(rows []parse.Result) map[string]bool {
	m := map[string]bool{}
	for _, r := range rows {
		m[r.Name] = true
	}
	return m
}

func (o *outcome) fail(f bench.Failed, log string) {
	o.failed, o.log = &f, log
}

func hexSHA256(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// failedOf tells how a run that is not OK ended.
func failedOf(r sandbox.Result) bench.Failed {
	switch {
	case r.NotStarted != "":
		return bench.Failed{Status: -1, Reason: "could not be started: " + r.NotStarted}
	case r.Limit != "":
		return bench.Failed{Status: -1, Signal: r.Signal, Reason: r.Limit}
	}
	return bench.Failed{Signal: r.Signal, Status: r.Status}
}

// sandboxTimeout is how long a run may take when nobody says.
const sandboxTimeout = 10 * time.Minute

// timedOut says that it was the time limit that ended a run.
func timedOut(c sandbox.Command, r sandbox.Result) bool {
	return r.Limit != "" && r.Wall >= cmp.Or(c.Timeout, sandboxTimeout)
}

// label names a part of a take in a failure.
func label(t plan.Take, part string) string {
	if t.Name == "" {
		return part
	}
	return t.Name + ": " + part
}

// during says in which part of a run a failure happened; "" for no part.
func during(part string, f bench.Failed) bench.Failed {
	if part == "" {
		return f
	}
	f.Reason = part + ": " + f.String()
	return f
}

// point places a run in the record.
type point struct {
	round    int
	slot     Version
	position int
}

// samples turns a run into lines of the record: every metric of every row in
// base units, or, for a row that failed, a line that says how, and one for each
// row that its output would have had.
func samples(p point, st *state, o outcome, rows map[string]bool) []bench.Sample {
	b := st.bm
	line := bench.Sample{
		Round: p.round, Version: p.slot.N, Twin: p.slot.Twin, Params: b.Params, Position: &p.position,
	}
	var list []bench.Sample
	for row, f := range o.figures {
		line := line
		line.Benchmark = st.plan.Name(b, row)
		figures := f.List()
		if b.Parse != "" {
			figures = append(f.Memory(), f.Counters()...)
		}
		for _, x := range figures {
			line.Metric, line.Unit, line.Value, line.Covariates = x.Metric, x.Unit, x.Value, x.Covariates
			list = append(list, line)
		}
		if st.perf && f.Uncounted != "" {
			m := bench.MetricFor(instructions, "")
			line.Metric, line.Unit, line.Value, line.Covariates = m.Name, m.Unit, 0, nil
			line.Failed = &bench.Failed{Status: -1, Reason: f.Uncounted}
			list = append(list, line)
		}
	}
	if o.failed != nil {
		return append(list, failedLines(line, st, o, rows)...)
	}
	for _, row := range o.rows {
		for _, v := range row.Values {
			l := line
			l.Benchmark = rowBenchmark(b, row.Name)
			l.Metric, l.Unit, l.Value = v.Metric, v.Unit, v.Value
			if v.Unit == bench.Second {
				l.Covariates = o.figures[0].Covariates()
			}
			list = append(list, l)
		}
	}
	return list
}

// failedLines tell of the row that failed, and of those that had no figure for it.
func failedLines(line bench.Sample, st *state, o outcome, rows map[string]bool) []bench.Sample {
	var list []bench.Sample
	for row := len(o.figures); row < len(st.plan.Rows); row++ {
		line.Benchmark, line.Metric, line.Unit, line.Failed = st.plan.Name(st.bm, row), bench.Wall.Name, bench.Wall.Unit, o.failed
		if row != o.at && !o.whole {
			line.Failed = &bench.Failed{Status: -1, Reason: st.plan.Because(o.at)}
		}
		list = append(list, line)
	}
	for _, row := range sortedKeys(rows) {
		line.Benchmark, line.Metric, line.Unit, line.Failed = rowBenchmark(st.bm, row), st.parser.Main, st.parser.MainUnit, o.failed
		list = append(list, line)
	}
	return list
}

// traceStops is a program that a trace stops a thousand times, once for each
// signal, and that does nearly nothing else: on a busy machine what starting
// processes takes varies by more than what their trace costs.
const traceStops = "i=0; while [ $i -lt 1000 ]; do kill -s CONT $$; i=$((i+1)); done"

// heavyStop is what a stop of a real trace costs, in stops for a signal: at some
// of them the peaks are read from /proc, or a process is new to the trace.
const heavyStop = 2

// learnTrace measures once what one stop of a trace costs on this machine, by
// running traceStops with a trace and without. Where the machine refuses to
// trace, peaks are not read and the reason is kept.
func (s *Sampler) learnTrace(ctx context.Context) error {
	if s.traceKnown {
		return nil
	}
	st := newState(bench.Benchmark{Name: "trace", Run: bench.Program{Line: traceStops}, Timeout: time.Minute}, len(s.slots))
	var plain, traced time.Duration
	var stops int
	// The least of several runs is what the work itself costs.
	for range 7 {
		for _, trace := range []bool{false, true} {
			o, err := s.measure(ctx, 0, st, trace)
			if err != nil {
				return err
			}
			switch {
			case o.untraced != "":
				s.noPeaks, s.traceKnown = o.untraced, true
				return nil
			case o.failed != nil:
				return fmt.Errorf("sample: a box cannot run sh and kill: %s: %s", o.failed, strings.TrimSpace(o.log))
			case trace && (traced == 0 || o.wall < traced):
				traced, stops = o.wall, o.stops
			case !trace && (plain == 0 || o.wall < plain):
				plain = o.wall
			}
		}
	}
	if stops > 0 {
		s.stopCost = heavyStop * max(0, traced-plain) / time.Duration(stops)
	}
	s.traceKnown = true
	return nil
}
