package sample

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// keepOutput is how much of an output is read for results, in bytes.
const keepOutput = 16 << 20

// outcome is what one run of a benchmark on one version gave.
type outcome struct {
	res    sandbox.Result
	failed *bench.Failed // nil: the run succeeded
	log    string
	// timedOut says that a time limit ended it.
	timedOut bool
	// unsteady says that it printed something else than another run of its build.
	unsteady bool
	rows     []goResult // of a parsed output
	peaks    peaks
}

// peaks are peak resident and virtual size in bytes, 0 if unknown.
type peaks struct{ rss, size int64 }

// measure runs a benchmark once. When the box breaks, which is our fault and not
// the program's, a new one is started and the run repeated. A run that ended its
// runner is none of that, but one that failed.
func (s *Sampler) measure(ctx context.Context, i int, b bench.Benchmark, st *state, trace bool) (outcome, error) {
	o, err := s.once(ctx, i, b, st, trace)
	if err == nil || ctx.Err() != nil {
		return o, err
	}
	sl := s.slots[i]
	if rerr := s.renew(ctx, sl); rerr != nil {
		return o, fmt.Errorf("run %s on %s: %w; %w", b.Key(), sl.Version, err, rerr)
	}
	if o, err = s.once(ctx, i, b, st, trace); err != nil {
		return o, fmt.Errorf("run %s on %s: %w", b.Key(), sl.Version, err)
	}
	return o, nil
}

// renew puts a new box in the place of a version's.
func (s *Sampler) renew(ctx context.Context, sl *slot) error {
	if sl.run != nil {
		// What remains of a broken box is told by what broke it.
		_ = sl.run.Close()
		sl.run = nil
	}
	r, err := s.start(ctx, sl.box)
	if err != nil {
		return fmt.Errorf("start another box: %w", err)
	}
	sl.run, sl.dirty = r, false
	return nil
}

// part carries out prepare, run or cleanup of a benchmark. These are strangers'
// programs: without a sandbox they can reach the runner, and one after which it is
// gone has failed, with a new box for what comes next. The error is ours.
func (s *Sampler) part(ctx context.Context, sl *slot, c sandbox.Command) (sandbox.Result, *bench.Failed, error) {
	start := s.now()
	res, err := sl.do(ctx, c)
	if err == nil {
		if res.OK() {
			return res, nil, nil
		}
		f := failedOf(res)
		return res, &f, nil
	}
	// A runner that did not come back in time was ended by us.
	late := s.now().Sub(start) > cmp.Or(c.Timeout, sandboxTimeout)
	if late || ctx.Err() != nil || sl.alive(ctx) || ctx.Err() != nil {
		return res, nil, err
	}
	if rerr := s.renew(ctx, sl); rerr != nil {
		return res, nil, fmt.Errorf("%w; %w", err, rerr)
	}
	return sandbox.Result{Status: -1, PressureNS: -1}, &bench.Failed{Status: -1, Reason: "it ended the runner that started it"}, nil
}

// alive says whether a version's runner still carries out commands.
func (sl *slot) alive(ctx context.Context) bool {
	_, err := sl.do(ctx, sandbox.Command{Args: []string{"true"}, Timeout: time.Minute})
	return err == nil
}

// once does prepare, run and cleanup. Only run is measured.
func (s *Sampler) once(ctx context.Context, i int, b bench.Benchmark, st *state, trace bool) (outcome, error) {
	var o outcome
	sl := s.slots[i]
	if sl.dirty {
		if _, err := sl.do(ctx, s.command(b, bench.Program{Args: []string{"true"}})); err != nil {
			return o, err
		}
	}
	if !b.Prepare.IsZero() {
		c := s.command(b, b.Prepare)
		c.KeepTmp = true
		res, failed, err := s.part(ctx, sl, c)
		if err != nil {
			return o, err
		}
		if failed != nil {
			o.fail(during("prepare", *failed), res.LogTail)
			o.timedOut = timedOut(c, res)
		}
	}
	if o.failed == nil {
		c := s.command(b, b.Run)
		c.Stdin = stdin(b.Stdin)
		c.Peaks = trace
		c.KeepTmp = !b.Cleanup.IsZero()
		if b.Parse != "" {
			c.KeepStdout = keepOutput
		}
		res, failed, err := s.part(ctx, sl, c)
		if err != nil {
			return o, err
		}
		o.res = res
		o.peaks = peaks{res.RSSBytes, res.SizeBytes}
		if failed == nil {
			o.judge(b, st, i, sl.Version)
		} else {
			o.fail(*failed, res.LogTail)
			o.timedOut = timedOut(c, res)
		}
	}
	if !b.Cleanup.IsZero() {
		c := s.command(b, b.Cleanup)
		res, failed, err := s.part(ctx, sl, c)
		if err != nil {
			return o, err
		}
		if failed != nil && o.failed == nil {
			o.fail(during("cleanup", *failed), res.LogTail)
			o.timedOut = timedOut(c, res)
		}
	}
	return o, nil
}

// do runs a command in the version's box and remembers whether it may have left
// something in /tmp, which must not reach the next run.
func (sl *slot) do(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if sl.run == nil {
		return sandbox.Result{}, fmt.Errorf("%s has no box", sl.Version)
	}
	sl.dirty = true
	res, err := sl.run.Do(ctx, c)
	if err == nil {
		sl.dirty = c.KeepTmp
	}
	return res, err
}

// judge reads the output of a program that ended well.
func (o *outcome) judge(b bench.Benchmark, st *state, i int, v Version) {
	if b.CheckStdout && st.output != "" && o.res.StdoutSHA256 != st.output {
		o.unsteady = v.N == 0
		why := "output differs from base's"
		if o.unsteady {
			why = unsteady
		}
		o.fail(bench.Failed{Reason: why}, o.res.LogTail)
		return
	}
	if b.Parse == "" {
		return
	}
	if int64(len(o.res.Stdout)) >= keepOutput && hexSHA256(o.res.Stdout) != o.res.StdoutSHA256 {
		o.fail(bench.Failed{Reason: fmt.Sprintf("the output is longer than %d MiB: results cannot be read", keepOutput>>20)}, o.res.LogTail)
		return
	}
	rows, err := parseRun(o.res.Stdout)
	if err != nil {
		o.fail(bench.Failed{Reason: err.Error()}, o.res.LogTail)
		return
	}
	o.rows = rows
	if st.rows[i] == nil {
		return
	}
	have := rowNames(rows)
	for _, name := range sortedKeys(st.rows[i]) {
		if !have[name] {
			o.fail(bench.Failed{Reason: fmt.Sprintf("printed no result for %s", name)}, o.res.LogTail)
			return
		}
	}
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

// during says in which part of a run a failure happened.
func during(part string, f bench.Failed) bench.Failed {
	f.Reason = part + ": " + f.String()
	return f
}

// point places a run in the record.
type point struct {
	round    int
	slot     Version
	position int
}

// samples turns a run into lines of the record: every metric in base units, or,
// for a run that failed, a line that says how, and one for each row that its
// output would have had.
func samples(p point, b bench.Benchmark, o outcome, rows map[string]bool) []bench.Sample {
	line := bench.Sample{
		Round: p.round, Version: p.slot.N, Twin: p.slot.Twin,
		Benchmark: b.Name, Params: b.Params, Position: &p.position,
	}
	if o.failed != nil {
		line.Metric, line.Unit, line.Failed = bench.Wall.Name, bench.Wall.Unit, o.failed
		list := []bench.Sample{line}
		for _, row := range sortedKeys(rows) {
			line.Benchmark, line.Metric, line.Unit = rowBenchmark(b, row), secPerOp, bench.Second
			list = append(list, line)
		}
		return list
	}
	var list []bench.Sample
	add := func(m string, unit string, v float64, covariates map[string]float64) {
		l := line
		l.Metric, l.Unit, l.Value, l.Covariates = m, unit, v, covariates
		list = append(list, l)
	}
	r := o.res
	covariates := map[string]float64{"nivcsw": float64(r.Involuntary)}
	if r.PressureNS >= 0 {
		covariates["psi_ns"] = float64(r.PressureNS)
	}
	if b.Parse == "" {
		add(bench.Wall.Name, bench.Second, r.Wall.Seconds(), covariates)
		add(bench.CPU.Name, bench.Second, (r.User + r.Sys).Seconds(), covariates)
		add(bench.User.Name, bench.Second, r.User.Seconds(), nil)
		add(bench.Sys.Name, bench.Second, r.Sys.Seconds(), nil)
	}
	// A peak of 0 means that it could not be read, never that it was nothing.
	if o.peaks.rss > 0 {
		add(bench.RSS.Name, bench.Byte, float64(o.peaks.rss), nil)
	}
	if o.peaks.size > 0 {
		add(bench.Size.Name, bench.Byte, float64(o.peaks.size), nil)
	}
	if b.Parse == "" {
		// Whether a page fault needs the disk hangs on the page cache; that it
		// happens does not.
		add(bench.Faults.Name, bench.Count, float64(r.Faults+r.MajorFaults), nil)
		add("switches", bench.Count, float64(r.Voluntary+r.Involuntary), nil)
		add("reads", bench.Count, float64(r.ReadBlocks), nil)
		add("writes", bench.Count, float64(r.WriteBlocks), nil)
	}
	for _, row := range o.rows {
		for _, v := range row.values {
			l := line
			l.Benchmark = rowBenchmark(b, row.row)
			l.Metric, l.Unit, l.Value = v.metric, v.unit, v.value
			if v.unit == bench.Second {
				l.Covariates = covariates
			}
			list = append(list, l)
		}
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
	b := bench.Benchmark{Name: "trace", Run: bench.Program{Line: traceStops}, Timeout: time.Minute}
	var plain, traced time.Duration
	var stops int
	// The least of several runs is what the work itself costs.
	for range 7 {
		for _, trace := range []bool{false, true} {
			o, err := s.measure(ctx, 0, b, &state{}, trace)
			if err != nil {
				return err
			}
			switch {
			case o.failed != nil && trace:
				s.noPeaks, s.traceKnown = o.failed.String(), true
				return nil
			case o.failed != nil:
				return fmt.Errorf("sample: a box cannot run sh and kill: %s: %s", o.failed, strings.TrimSpace(o.log))
			case trace && (traced == 0 || o.res.Wall < traced):
				traced, stops = o.res.Wall, o.res.Stops
			case !trace && (plain == 0 || o.res.Wall < plain):
				plain = o.res.Wall
			}
		}
	}
	if stops > 0 {
		s.stopCost = heavyStop * max(0, traced-plain) / time.Duration(stops)
	}
	s.traceKnown = true
	return nil
}
