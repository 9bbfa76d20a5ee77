// Package check says what is wrong or slow with a suite, how noisy its rows are,
// and what an evaluation with it will cost.
//
//	eval.Checked (the suite, run on the base alone) --> Judge --> Report --> text, JSON
//
// In goes what bot/eval found out; out comes a Report. It is pure: nothing is run
// here. The figures of noise are bench/compare's.
package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample/parse"
	"patchbench/bot/eval"
	"patchbench/bot/report/figure"
	"patchbench/mbox"
)

// seriesOf is the length of the series that detectable changes are told for.
const seriesOf = 5

var (
	// atRounds are the numbers of rounds for which detectable changes are told.
	atRounds = []int{10, 20, 40}
	// costOf are the lengths of series whose cost is told.
	costOf = []int{1, 5, 20}
)

// What is worth a note.
const (
	shortRun  = 20 * time.Millisecond
	longRun   = 10 * time.Second
	noisy     = 0.05 // detectable after the last of atRounds
	busy      = 0.10 // CPU pressure
	budget    = 10 * time.Minute
	maxCauses = 3 // hidden folders named where a build fails
	named     = 4 // rows named in a note
)

// Report is what is said of a suite. Its JSON form is `bot check --json`.
type Report struct {
	// OK says that nothing is wrong; notes may be there all the same.
	OK    bool       `json:"ok"`
	Suite Suite      `json:"suite"`
	Base  mbox.Base  `json:"base"`
	Host  bench.Host `json:"host"`
	Build Build      `json:"build"`
	// Wrong must be mended, Notes are for thought.
	Wrong      []Fault     `json:"wrong"`
	Notes      []string    `json:"notes"`
	Benchmarks []Benchmark `json:"benchmarks"`
	Rows       []Row       `json:"rows"`
	Cost       []Cost      `json:"cost"`
}

// Suite names the suite and its file.
type Suite struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	File   string `json:"file"`
}

// Build is what became of the base's build. Same says that building again gave
// the same; it and AgainSeconds are nil where that was not tried.
type Build struct {
	State        string   `json:"state"`
	Seconds      float64  `json:"seconds"`
	AgainSeconds *float64 `json:"again_seconds"`
	Same         *bool    `json:"same"`
	VersionBytes int64    `json:"version_bytes"`
}

// Fault is something that must be mended. Where is a benchmark, or "build".
type Fault struct {
	Where   string `json:"where"`
	What    string `json:"what"`
	LogTail string `json:"log_tail"`
}

// Benchmark is one benchmark as it ran on the base.
type Benchmark struct {
	Benchmark  string            `json:"benchmark"`
	Params     map[string]string `json:"params"`
	Works      bool              `json:"works"`
	RunSeconds float64           `json:"run_seconds"`
	Rounds     int               `json:"rounds"`
	PeaksApart bool              `json:"peaks_apart"`
}

// Row is the noise of one metric. Median is in Unit; Spread, a run's standard
// deviation, and the changes are fractions. Nil is what cannot be told.
type Row struct {
	Benchmark  string            `json:"benchmark"`
	Params     map[string]string `json:"params"`
	Metric     string            `json:"metric"`
	Unit       string            `json:"unit"`
	Tested     bool              `json:"tested"`
	Exact      bool              `json:"exact"`
	Rounds     int               `json:"rounds"`
	Median     *float64          `json:"median"`
	Spread     *float64          `json:"spread"`
	Detectable []Detectable      `json:"detectable"`
}

// Detectable is the smallest change of one patch of five that so many rounds
// would most likely show.
type Detectable struct {
	Rounds int      `json:"rounds"`
	Change *float64 `json:"change"`
}

// Cost is what an evaluation of a series takes: all builds, a round, and measuring
// until the first and the last judgement.
type Cost struct {
	Patches       int     `json:"patches"`
	BuildsSeconds float64 `json:"builds_seconds"`
	RoundSeconds  float64 `json:"round_seconds"`
	FirstSeconds  float64 `json:"first_seconds"`
	LastSeconds   float64 `json:"last_seconds"`
	DiskBytes     int64   `json:"disk_bytes"`
}

// Judge says of a suite that was run on the base what there is to say.
func Judge(c *eval.Checked) *Report {
	base := c.Versions[0]
	r := &Report{
		Suite: Suite{c.Suite.Name, c.Suite.Digest, c.SuiteFile}, Base: c.Base, Host: c.Host,
		Build: Build{State: base.State, Seconds: c.BaseBuild.Seconds(), VersionBytes: c.VersionBytes},
		Wrong: []Fault{}, Notes: []string{}, Benchmarks: []Benchmark{}, Rows: []Row{}, Cost: []Cost{},
	}
	r.build(c)
	for _, f := range c.Failures {
		r.Wrong = append(r.Wrong, Fault{f.Benchmark, bench.Failed{Signal: f.Signal, Status: f.Status, Reason: f.Reason}.String(), f.LogTail})
	}
	r.advise()
	noises := compare.NoiseOf(c.Samples, seriesOf, atRounds, compare.Options{Margin: c.Margin, Seed: c.Seed})
	for _, n := range noises {
		r.Rows = append(r.Rows, rowOf(n))
	}
	var s seen
	for _, b := range c.Benchmarks {
		r.benchmark(b, noises, &s)
	}
	s.notes(r)
	for _, l := range c.Samples {
		if l.Failed != nil && !l.Twin && bench.MetricFor(l.Metric, l.Unit).Exact {
			r.note("%s %s is not counted: %s", bench.RowName(l.Benchmark, l.Params), l.Metric, l.Failed)
		}
	}
	if c.Cut {
		r.note("the time to try ended after %s: give --budget for more", rounds(c.Rounds))
	}
	for _, w := range c.Warnings {
		r.note("%s", w)
	}
	if slices.ContainsFunc(r.Benchmarks, func(b Benchmark) bool { return b.Works }) {
		for _, patches := range costOf {
			k := c.Cost(patches)
			r.Cost = append(r.Cost, Cost{k.Patches, k.Builds.Seconds(), k.Round.Seconds(), k.First.Seconds(), k.Last.Seconds(), k.DiskBytes})
			if patches == seriesOf && k.First > budget {
				r.note("a series of %d patches needs %s until its first judgement, and bot eval ends after 10 minutes: give it --budget, shorten the benchmarks, or choose some with --benchmarks",
					patches, figure.Elapsed(k.First.Seconds()))
			}
		}
	}
	r.host()
	r.OK = len(r.Wrong) == 0
	return r
}

func (r *Report) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.Notes, text) {
		r.Notes = append(r.Notes, text)
	}
}

func rounds(n int) string {
	if n == 1 {
		return "1 round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// build tells of base's two builds.
func (r *Report) build(c *eval.Checked) {
	base := c.Versions[0]
	switch {
	case c.Conflict != nil:
		var why []string
		for _, f := range c.Conflict.Files {
			why = append(why, f.String())
		}
		r.Wrong = append(r.Wrong, Fault{Where: "build", What: strings.Join(why, "; ")})
	case base.State == bench.BuildFailed:
		r.Wrong = append(r.Wrong, Fault{"build", "base does not build", base.LogTail})
	}
	for _, v := range base.Variants {
		if v.State == bench.BuildFailed && base.State != bench.BuildFailed {
			r.Wrong = append(r.Wrong, Fault{bench.RowName("build", v.Params), "base does not build", v.LogTail})
		}
	}
	if hidden := c.Sandbox.Hidden; len(hidden) > 0 && len(r.Wrong) > 0 && c.Conflict == nil {
		r.note("folders of your PATH that programs in the sandbox do not see: %s", strings.Join(hidden[:min(maxCauses, len(hidden))], "; "))
	}
	if c.Again == nil {
		if base.State == bench.Built {
			r.note("base was built once only, as that took longer than the time to try: give --budget to see whether a second build is the same")
		}
		return
	}
	if c.Again.State != bench.Built {
		r.Wrong = append(r.Wrong, Fault{"build", "base builds, but not a second time with the caches of the first", c.Again.LogTail})
		return
	}
	seconds, same := c.AgainBuild.Seconds(), c.Again.Digest == base.Digest
	r.Build.AgainSeconds, r.Build.Same = &seconds, &same
	if !same {
		r.note("base built twice gives other files: a patch that changes nothing is not known as such and costs its rounds. Name the files that matter with keep, and leave dates and random numbers out of them")
	}
}

// advice is for what goes wrong in a sandbox and nowhere else, or in most first
// attempts. A fault that has one of the signs gets it.
var advice = []struct {
	signs []string
	text  string
}{
	{
		[]string{"Read-only file system", "read-only file system"},
		"the source folder is read-only when benchmarks run: let them write to /tmp, which is empty before each run, or to $FIXTURES/NAME of a fixture with copy = true",
	},
	{
		[]string{"ould not resolve host", "ailure in name resolution", "etwork is unreachable", "dial tcp", "dial udp", "o address associated with hostname"},
		"there is no network in the sandbox: let a fixture with network = true fetch what is needed, in a suite that is given with --suite, or commit it",
	},
	{
		[]string{parse.ErrNone.Error()},
		"results are looked for in the standard output, in the format that parse names: 2>&1 adds what goes to the standard error",
	},
}

// advise gives each advice that a fault calls for, with where.
func (r *Report) advise() {
	for _, a := range advice {
		var where []string
		for _, f := range r.Wrong {
			if slices.ContainsFunc(a.signs, func(sign string) bool { return strings.Contains(f.What+"\n"+f.LogTail, sign) }) {
				where = append(where, f.Where)
			}
		}
		if len(where) > 0 {
			r.note("%s: %s", some(where), a.text)
		}
	}
}

// seen collects, over all benchmarks, what is worth a note.
type seen struct {
	short, long, apart, noisy, lower []string
	trace                            float64 // the largest share that reading peaks takes
	warnings                         []string
	warned                           map[string][]string // rows, by warning
}

// benchmark tells of one benchmark and of its noise.
func (r *Report) benchmark(b eval.CheckedBenchmark, noises []compare.Noise, s *seen) {
	key := b.Benchmark.Key()
	r.Benchmarks = append(r.Benchmarks, Benchmark{
		Benchmark: b.Benchmark.Name, Params: filled(b.Benchmark.Params), Works: b.Works, RunSeconds: b.Run.Seconds(),
		Rounds: b.Rounds, PeaksApart: b.PeaksApart,
	})
	if !b.Works {
		return
	}
	if b.Run > longRun {
		s.long = append(s.long, key+" ("+figure.Elapsed(b.Run.Seconds())+")")
	}
	if b.PeaksApart {
		s.apart = append(s.apart, key)
		s.trace = max(s.trace, b.TraceShare)
	}
	own := slices.DeleteFunc(slices.Clone(noises), func(n compare.Noise) bool { return !belongs(n, b.Benchmark) })
	cpu := slices.ContainsFunc(own, func(n compare.Noise) bool { return n.Metric.Name == bench.CPU.Name })
	for _, n := range own {
		row := bench.RowName(n.Benchmark, n.Params)
		for _, w := range n.Warnings {
			s.warn(w, row+" "+n.Metric.Name)
		}
		// What a program prints is not the time of its run.
		printed := b.Benchmark.Parse != "" && n.Benchmark != b.Benchmark.Name
		if printed && takenForLower(n.Metric) {
			s.lower = append(s.lower, row+" "+n.Metric.Name+inUnit(n.Metric.Unit))
		}
		if n.Metric.Name == bench.Wall.Name && !printed && n.Median < shortRun.Seconds() {
			s.short = append(s.short, row+" ("+value(n.Median, bench.Second)+")")
		}
		if n.Metric.Name == bench.Wall.Name && cpu {
			continue // it is cpu that small changes are seen in
		}
		if last := n.Detectable[len(n.Detectable)-1]; n.Metric.Tested && last > noisy && last*math.Abs(n.Median) > n.Metric.MarginAbs {
			s.noisy = append(s.noisy, row+" "+n.Metric.Name+" ("+figure.Share(last)+")")
		}
	}
}

// warn notes that a row was warned of.
func (s *seen) warn(text, row string) {
	if s.warned == nil {
		s.warned = map[string][]string{}
	}
	if s.warned[text] == nil {
		s.warnings = append(s.warnings, text)
	}
	s.warned[text] = append(s.warned[text], row)
}

// takenForLower says that only its unit tells that a lower figure is better, and
// that the unit is none of which everybody knows that.
func takenForLower(m bench.Metric) bool {
	return m.Tested && m.Better == bench.Lower && m.Unit != bench.Second && m.Unit != bench.Byte &&
		!strings.HasSuffix(m.Unit, "/op") && !strings.HasSuffix(m.Name, "/op")
}

func inUnit(unit string) string {
	if unit == bench.Count {
		return ""
	}
	return " (" + unit + ")"
}

// notes tells what was seen, each thing once.
func (s *seen) notes(r *Report) {
	for _, w := range s.warnings {
		r.note("%s: %s", some(s.warned[w]), w)
	}
	if len(s.lower) > 0 {
		r.note("a lower figure counts as better, as it does of all that is no rate (/s): %s", some(s.lower))
	}
	if len(s.short) > 0 {
		r.note("short runs, which are mostly the start of a program; 20 ms and more tell more: %s", some(s.short))
	}
	if len(s.long) > 0 {
		r.note("long runs, of which a budget allows few rounds; a smaller input may do: %s", some(s.long))
	}
	if len(s.apart) > 0 {
		r.note("reading peaks of memory costs up to %s of the time, so that they get runs of their own and a round takes twice as long: %s", figure.Share(s.trace), some(s.apart))
	}
	if len(s.noisy) > 0 {
		r.note("noisy: even %d rounds would miss what is smaller than this: %s", atRounds[len(atRounds)-1], some(s.noisy))
	}
}

// some names the first of a list.
func some(list []string) string {
	text := strings.Join(list[:min(named, len(list))], ", ")
	if more := len(list) - named; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// belongs says that a row is the benchmark's, or one of those that it yields (NAME/...).
func belongs(n compare.Noise, b bench.Benchmark) bool {
	return bench.RowName("", n.Params) == bench.RowName("", b.Params) && (n.Benchmark == b.Name || strings.HasPrefix(n.Benchmark, b.Name+"/"))
}

// host tells what of the machine makes figures worse than they could be.
func (r *Report) host() {
	h := r.Host
	if p := max(h.PressureBefore, h.PressureAfter); p > busy {
		r.note("the machine is busy (programs waited for a CPU in %s of the last minute): on an idle one rows are less noisy", figure.Share(p))
	}
	if h.Autogroup {
		r.note("sched_autogroup_enabled is 1: nice keeps no other session's programs away from the benchmarks")
	}
	if h.Governor != "" && h.Governor != "performance" {
		r.note("the CPU's frequency is chosen by the governor %s: performance makes times steadier", h.Governor)
	}
}

func rowOf(n compare.Noise) Row {
	row := Row{
		Benchmark: n.Benchmark, Params: filled(n.Params), Metric: n.Metric.Name, Unit: n.Metric.Unit, Tested: n.Metric.Tested,
		Exact: n.Exact, Rounds: n.Rounds, Median: known(n.Median), Spread: known(n.Spread), Detectable: []Detectable{},
	}
	for i, d := range n.Detectable {
		row.Detectable = append(row.Detectable, Detectable{atRounds[i], known(d)})
	}
	return row
}

func filled(params map[string]string) map[string]string {
	if params == nil {
		return map[string]string{}
	}
	return params
}

func known(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// value words one figure with its unit.
func value(v float64, unit string) string {
	s := figure.ScaleFor(unit, v)
	shown := v / s.Factor
	whole := (unit == bench.Byte || unit == bench.Count) && s.Factor == 1 && v == math.Trunc(v)
	return strings.TrimSpace(figure.Number(shown, figure.Decimals(whole, 0, shown)) + " " + s.Unit)
}
