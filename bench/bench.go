// Package bench holds the nouns of measuring: the Suite with its benchmarks and
// metrics, the Build of each version, the Sample of one run, and the Comparison
// of all versions of one row with its verdicts.
//
// bench/suite reads a Suite, bench/build makes builds, bench/sample takes
// samples, bench/compare turns samples into comparisons, and bench/sandbox is
// where foreign programs run. Nothing here runs, reads or writes anything.
package bench

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Suite is everything that is run on a version, as its owner wrote it.
type Suite struct {
	Name        string
	Description string
	// Digest is the hex SHA-256 of the suite's text.
	Digest string
	// Apply names files of patches that are put on base and on every version, as
	// the suite's text has them: from the folder in which the suite stands.
	Apply []string
	Build Recipe
	// Variants are the recipes for each choice of build parameters, of which Build
	// is the first; nil if there are none.
	Variants   []Recipe
	Limits     Limits
	Fixtures   []Fixture
	Benchmarks []Benchmark
}

// Fixture is data for benchmarks that is made once: a folder that they find at
// $FIXTURES/NAME, read-only. No code of any version takes part in making it.
type Fixture struct {
	Name string
	// Run makes the data in the folder in which it starts.
	Run Program
	// Copy gives each run a fresh copy, which it may write to.
	Copy bool
	// Network lets Run reach the network.
	Network bool
}

// Program is what to start: a shell line run as `sh -eu -c LINE`, or a list of
// arguments that runs as it stands. Exactly one is set; both empty means nothing.
type Program struct {
	Line string
	Args []string
}

// IsZero says that there is nothing to run.
func (p Program) IsZero() bool { return p.Line == "" && len(p.Args) == 0 }

// Argv is the argument list that is executed, nil for nothing.
func (p Program) Argv() []string {
	if p.Line != "" {
		return []string{"sh", "-eu", "-c", p.Line}
	}
	return slices.Clone(p.Args)
}

// String shows the program as its owner wrote it.
func (p Program) String() string {
	if p.Line != "" {
		return p.Line
	}
	return strings.Join(p.Args, " ")
}

// Recipe says how a version is built. A Run that is zero means that nothing is built.
type Recipe struct {
	// Params are the build parameters that were filled in; nil for none.
	Params  map[string]string
	Run     Program
	Check   Program // must succeed after the build; zero for none
	Env     map[string]string
	Timeout time.Duration // 0: the package bench/build's default
	// Keep lists the files, relative to the source folder, that make the
	// build's digest; shell patterns as in path.Match. Empty: the files are
	// chosen as bench/build documents.
	Keep []string
	// Cache lists environment variables that name a cache folder, for
	// instance GOCACHE.
	Cache []string
	// Incremental says that a version's build starts from the former one's files.
	Incremental bool
}

// Limits bounds what a run or build may use. A zero field means the default of
// bench/sandbox.
type Limits struct {
	MemoryBytes int64
	Processes   int
	DiskBytes   int64 // size of the private /tmp
	OutputBytes int64
	Timeout     time.Duration // of one run
}

// Benchmark is one named workload with its parameters filled in: a suite's
// `params` give one Benchmark for each combination of values.
type Benchmark struct {
	Name string
	// Params are the values that were filled in, those of the build too; nil for none.
	Params map[string]string
	// Variant is the place in Suite.Variants of the recipe whose builds it runs on.
	Variant int
	Run     Program
	Prepare Program // before each run, not measured
	Cleanup Program // after each run, not measured
	Env     map[string]string
	Stdin   string        // a file relative to the source folder; "" for none
	Timeout time.Duration // of one run; 0: Limits.Timeout
	// Metrics names further metrics that are tested beside wall, cpu and rss.
	Metrics []string
	// Parse names the format in which the program prints its own results
	// ("gobench"), "" for none.
	Parse string
	// CheckStdout says that the output must equal the base's.
	CheckStdout bool
	// Check must succeed with the run's output as its standard input; zero for none.
	Check Program
	// Parallel is how many copies of Run are started at once; 0 and 1 are one.
	Parallel int
	// Weight is how much the benchmark matters beside others; 0 is 1.
	Weight float64
	// Chain are programs on one state, in place of Run; nil for none.
	Chain []Link
	// Together are benchmarks that are started at once, in place of Run; nil for none.
	Together []Benchmark
	// Baseline is the benchmark whose figures are subtracted; nil for none.
	Baseline *Benchmark
}

// Link is a step of a chain: a program on the state that those before it left.
type Link struct {
	Name string
	Run  Program
	// Background says that it is a server: the next link starts while it runs,
	// and it is ended when that one has ended.
	Background bool
	// Ready is run until it succeeds before the next link starts; zero for none.
	Ready Program
	// Parallel is as Benchmark.Parallel.
	Parallel int
}

// Programs are all that the benchmark may start, also those of the benchmarks
// that it stands on.
func (b Benchmark) Programs() []Program {
	list := []Program{b.Run, b.Prepare, b.Cleanup, b.Check}
	for _, l := range b.Chain {
		list = append(list, l.Run, l.Ready)
	}
	for _, t := range b.Together {
		list = append(list, t.Programs()...)
	}
	if b.Baseline != nil {
		list = append(list, b.Baseline.Programs()...)
	}
	return slices.DeleteFunc(list, Program.IsZero)
}

// Key names the benchmark with its parameters: `grep{threads=4}`.
func (b Benchmark) Key() string { return RowName(b.Name, b.Params) }

// RowName is NAME or NAME{k=v,...} with the keys in order.
func RowName(name string, params map[string]string) string {
	if len(params) == 0 {
		return name
	}
	var s strings.Builder
	s.WriteString(name + "{")
	for i, k := range slices.Sorted(maps.Keys(params)) {
		if i > 0 {
			s.WriteByte(',')
		}
		s.WriteString(k + "=" + params[k])
	}
	return s.String() + "}"
}

// Directions of a metric.
const (
	Lower  = "lower"
	Higher = "higher"
)

// Base units of samples.
const (
	Second = "s"
	Byte   = "B"
	Count  = "1"
)

// Metric is one quantity measured of a run.
type Metric struct {
	Name   string
	Unit   string // of a sample: "s", "B", "1", or the tool's own ("B/op")
	Better string // Lower or Higher
	Exact  bool   // any difference is real; nothing is tested
	Tested bool   // gets verdicts; otherwise it is only shown
	// MarginAbs is the difference, in Unit, below which a change is not worth
	// showing, beside the relative margin; 0 for none.
	MarginAbs float64
}

// Metrics that every run of a program yields.
var (
	Wall   = Metric{Name: "wall", Unit: Second, Better: Lower, Tested: true}
	CPU    = Metric{Name: "cpu", Unit: Second, Better: Lower, Tested: true}
	User   = Metric{Name: "user", Unit: Second, Better: Lower}
	Sys    = Metric{Name: "sys", Unit: Second, Better: Lower}
	RSS    = Metric{Name: "rss", Unit: Byte, Better: Lower, Tested: true, MarginAbs: 256 << 10}
	Size   = Metric{Name: "size", Unit: Byte, Better: Lower, MarginAbs: 256 << 10}
	Tree   = Metric{Name: "rss_tree", Unit: Byte, Better: Lower, MarginAbs: 256 << 10} // of all processes at once
	Faults = Metric{Name: "faults", Unit: Count, Better: Lower}
)

// Slowdown is how many times as long as alone a benchmark takes beside others.
var Slowdown = Metric{Name: "slowdown", Unit: "x", Better: Lower}

// OfBaseline begins the names of metrics that tell what was subtracted from a
// row: baseline-wall. They are shown, never tested.
const OfBaseline = "baseline-"

// Sample is one metric of one run; its JSON form is a line of samples.jsonl.
type Sample struct {
	// Round counts from 1 within the benchmark; warm-up rounds are not kept.
	Round     int               `json:"round"`
	Version   int               `json:"version"`
	Benchmark string            `json:"benchmark"`
	Params    map[string]string `json:"params,omitempty"`
	Metric    string            `json:"metric"`
	Unit      string            `json:"unit"`
	Value     float64           `json:"value"`
	// Twin marks a run of the base twin (A/A); Version is 0 then.
	Twin bool `json:"twin,omitempty"`
	// Failed stands instead of a value for a run that failed.
	Failed *Failed `json:"failed,omitempty"`
	// Discarded says why the whole round was repeated ("stall", "failed").
	Discarded string `json:"discarded,omitempty"`
	// Position is the run's place in its round, from 0; nil: the order of the lines.
	Position *int `json:"position,omitempty"`
	// Covariates are readings of the machine during the run: psi_ns, nivcsw.
	Covariates map[string]float64 `json:"covariates,omitempty"`
}

// Failed tells how a run ended that yielded no figure.
type Failed struct {
	Signal string `json:"signal,omitempty"` // "SIGSEGV"
	Status int    `json:"status,omitempty"` // exit status, -1 for none
	Reason string `json:"reason,omitempty"` // "timed out after 600 s", "output differs"
}

// String says it in a few words: "SIGSEGV", "exit status 3", or the reason.
func (f Failed) String() string {
	switch {
	case f.Reason != "":
		return f.Reason
	case f.Signal != "":
		return f.Signal
	}
	return "exit status " + strconv.Itoa(f.Status)
}

// States of a version's build.
const (
	Built       = "built"
	SameBuild   = "same-build"   // equal digest as an earlier version's
	BuildFailed = "build-failed" // the recipe failed
	NotBuilt    = "not-built"    // interrupted, or the patch did not apply
)

// Version is the code after n patches and what became of its build. Its JSON
// form is an entry of "versions" in report.json.
type Version struct {
	N       int    `json:"n"`
	Name    string `json:"name"` // "base", "1/7"
	Subject string `json:"subject,omitempty"`
	Commit  string `json:"commit"`
	Tree    string `json:"tree"`
	State   string `json:"state"`
	// SameAs is the version that was built with the same digest, for SameBuild.
	SameAs  *int   `json:"same_as"`
	LogTail string `json:"log_tail"`
	Digest  string `json:"digest,omitempty"` // of the build
	// BuildSeconds is how long the build took; 0 if it was not run.
	BuildSeconds float64 `json:"build_seconds,omitempty"`
	// Variants tell of the build for each choice of build parameters; nil if there
	// are none. The version itself is then built if any of them is another than
	// before, and failed if all of them are.
	Variants []VariantBuild `json:"variants,omitempty"`
	// Added and Deleted count the lines of the patch.
	Added   int `json:"added,omitempty"`
	Deleted int `json:"deleted,omitempty"`
}

// VariantBuild is a version's build with one choice of the build parameters. Its
// fields are as those of Version.
type VariantBuild struct {
	Params       map[string]string `json:"params"`
	State        string            `json:"state"`
	SameAs       *int              `json:"same_as"`
	LogTail      string            `json:"log_tail"`
	Digest       string            `json:"digest,omitempty"`
	BuildSeconds float64           `json:"build_seconds,omitempty"`
}

// With is the version as a row of these parameters sees it: with the build that
// the row was measured on.
func (v Version) With(params map[string]string) Version {
	for _, b := range v.Variants {
		fits := true
		for k, value := range b.Params {
			fits = fits && params[k] == value
		}
		if fits {
			v.State, v.SameAs, v.LogTail, v.Digest, v.BuildSeconds = b.State, b.SameAs, b.LogTail, b.Digest, b.BuildSeconds
			break
		}
	}
	return v
}

// Unbuilt lists the choices of build parameters with which the version does not
// build although it does with others.
func (v Version) Unbuilt() []VariantBuild {
	if v.State == BuildFailed {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Variants), func(b VariantBuild) bool { return b.State != BuildFailed })
}

// Label names the version where reports count patches: "base", "2/5"; last is the
// number of the last version.
func (v Version) Label(last int) string {
	switch {
	case v.Name != "":
		return v.Name
	case v.N == 0:
		return "base"
	}
	return strconv.Itoa(v.N) + "/" + strconv.Itoa(last)
}

// Build is a version, built.
type Build struct {
	Version int
	State   string // Built or BuildFailed
	Dir     string // the folder on this machine that holds source and build
	Digest  string // hex SHA-256, "" for BuildFailed
	LogTail string
	Elapsed time.Duration
}

// Verdict is what is said of a step or of the whole series in one row.
type Verdict string

// SameBuildReason begins the reason of a step between equal builds; the name of
// the build follows.
const SameBuildReason = "same build as "

// The verdicts.
const (
	Better      Verdict = "better"
	Worse       Verdict = "worse"
	Same        Verdict = "same"         // the whole interval lies within the margin
	Unclear     Verdict = "unclear"      // neither changed nor shown to be the same
	NotMeasured Verdict = "not-measured" // no figure on one side of the step
	Shown       Verdict = "shown"        // the metric is not tested
)

// Changed says that a verdict tells of a change.
func (v Verdict) Changed() bool { return v == Better || v == Worse }

// Verdicts of a whole evaluation beside Better, Worse, Same and Unclear.
const (
	Mixed        Verdict = "mixed"
	FailedSeries Verdict = "failed"
)

// Comparison is one row, a benchmark's metric: base and all versions, with
// every step's change. Its JSON form is an entry of "results".
type Comparison struct {
	Benchmark string            `json:"benchmark"`
	Params    map[string]string `json:"params"`
	Metric    string            `json:"metric"`
	Unit      string            `json:"unit"`
	Better    string            `json:"better"`
	Exact     bool              `json:"exact"`
	Tested    bool              `json:"tested"`
	// Weight is that of the benchmark; 0 is 1.
	Weight float64 `json:"weight,omitempty"`
	// Rounds is the number of complete rounds behind the figures.
	Rounds int `json:"rounds"`
	// Detectable is the smallest relative change of a step that these rounds
	// would most likely (80 %) have shown, as a fraction; nil if it cannot be said.
	Detectable *float64 `json:"detectable"`
	Values     []Value  `json:"values"`
	Steps      []Step   `json:"steps"`
	Total      Step     `json:"total"`
	Warnings   []string `json:"warnings"`
}

// Matters is the row's weight, 1 where none is given.
func (c Comparison) Matters() float64 {
	if c.Weight == 0 {
		return 1
	}
	return c.Weight
}

// Value is one version's figure in the row's unit. Median is the centre of its
// rounds after what each round as a whole was off (its median over the
// versions) is taken out: two versions' differ by about the change between them.
// It is nil where there is none.
type Value struct {
	N       int      `json:"n"`
	Median  *float64 `json:"median"`
	Lo      *float64 `json:"lo"` // 95 % interval of the median
	Hi      *float64 `json:"hi"`
	Samples int      `json:"samples"`
}

// Step is what patch N does to a row, or for a row's Total (N = last version)
// what the whole series does. Change is patched/base - 1; Lo and Hi are both there or
// neither.
type Step struct {
	N      int      `json:"n"`
	Change *float64 `json:"change"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	P      *float64 `json:"p"`
	// Verdict is in {better, worse, same, unclear, not-measured}, or shown.
	Verdict Verdict `json:"verdict"`
	// Reason explains a verdict that is not a figure's: "same build as base",
	// "SIGSEGV", "needs about 40 rounds".
	Reason string `json:"reason"`
	// Group is set when the change cannot be pinned on one patch: it lies
	// somewhere in patches Group[0]..Group[1].
	Group []int `json:"group"`
}

// Failure is a benchmark that could not be measured on a version.
type Failure struct {
	N         int    `json:"n"`
	Benchmark string `json:"benchmark"` // with parameters, as RowName
	Signal    string `json:"signal"`
	Status    int    `json:"status"`
	Reason    string `json:"reason,omitempty"`
	// Flaky says that it failed in some runs only, so that the patch is not to blame.
	Flaky   bool   `json:"flaky,omitempty"`
	LogTail string `json:"log_tail"`
}

// Host is the machine that an evaluation ran on. Comparisons never cross two.
type Host struct {
	Name     string `json:"name"`
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Governor string `json:"governor,omitempty"`
	Kernel   string `json:"kernel"`
	Memory   int64  `json:"memory_bytes"`
	// Compiler has the versions of the compilers that programs see, each by the
	// first line that it prints of itself, with "; " between them.
	Compiler string `json:"compiler,omitempty"`
	// Instructions says in words how they are counted: "instructions by perf_event",
	// or "instructions by valgrind: " and why; "" when no benchmark asks for them.
	Instructions string `json:"instructions,omitempty"`
	Sandbox      string `json:"sandbox"`
	// SandboxDigest is that of the sandbox's program and box; "" for no sandbox.
	SandboxDigest string `json:"sandbox_digest,omitempty"`
	// Autogroup says that the kernel shares the processors among sessions
	// (sched_autogroup_enabled), so that nice does nothing between two of them.
	Autogroup  bool    `json:"autogroup,omitempty"`
	LoadBefore float64 `json:"load_before"` // 1-minute load average
	LoadAfter  float64 `json:"load_after"`
	// PressureBefore and PressureAfter are the share of time, 0..1, in which
	// something waited for a CPU (PSI some avg60); negative if unknown.
	PressureBefore float64 `json:"pressure_before"`
	PressureAfter  float64 `json:"pressure_after"`
}

// Scheduling says in words what the kernel does that moves times: the governor of
// the CPU's frequency, and that sessions are groups of their own; "" for nothing
// known.
func (h Host) Scheduling() string {
	var list []string
	if h.Governor != "" {
		list = append(list, "governor "+h.Governor)
	}
	if h.Autogroup {
		list = append(list, "sessions scheduled as groups")
	}
	return strings.Join(list, ", ")
}
