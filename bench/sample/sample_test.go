package sample

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bench/sandbox"
)

// fakeLab stands in for the boxes: programs are a function of the version, of
// how often its benchmark ran before, and of the command.
type fakeLab struct {
	t *testing.T
	// program answers Run; prepare and cleanup succeed unless prep or clean is set.
	// With errGone the runner is dead from then on.
	program     func(v string, n int, c sandbox.Command) (sandbox.Result, error)
	prep, clean func(v string, n int) sandbox.Result
	stopCost    time.Duration // what one stop of a trace takes
	noTrace     bool
	noTwin      bool
	noStart     error                                   // what starting another box gives from now on
	kills       func(v string, part string, n int) bool // prepare or cleanup ends the runner
	wears       func(v string, n int) bool              // a run wears the box
	limits      bench.Limits

	clock   time.Time
	dirs    map[string]string // folder -> version
	starts  map[string]int
	runs    map[string]int
	open    int
	log     []string // "v RUN" in order, of programs that are not the sampler's own
	command sandbox.Command
	jobs    []sandbox.Job // the last ones
}

type fakeBox struct {
	lab  *fakeLab
	v    string
	dead bool
	worn bool
}

// errGone is what a dead runner says.
var errGone = errors.New("the runner ended")

func (l *fakeLab) start(_ context.Context, b sandbox.Box) (runner, error) {
	v := l.dirs[filepath.Dir(b.Mounts[0].Host)]
	if v == "" {
		l.t.Errorf("box with unknown mounts %v", b.Mounts)
	}
	if l.noStart != nil {
		return nil, l.noStart
	}
	l.starts[v]++
	l.open++
	return &fakeBox{lab: l, v: v}, nil
}

func (b *fakeBox) Close() error { b.lab.open--; return nil }

func (b *fakeBox) Worn() bool { return b.worn }

// DoAll runs the jobs one after the other; those behind one that fails are not started.
func (b *fakeBox) DoAll(ctx context.Context, jobs []sandbox.Job) ([]sandbox.Result, error) {
	var out []sandbox.Result
	if last := jobs[0].Args[len(jobs[0].Args)-1]; last != "prepare" && last != "cleanup" && last != "true" && b.v == "0" {
		b.lab.jobs = jobs
	}
	failed := ""
	for _, j := range jobs {
		if failed != "" {
			out = append(out, sandbox.Result{Status: -1, NotStarted: "job 1 (" + failed + ") failed before"})
			continue
		}
		r, err := b.do(ctx, j.Command)
		if err != nil {
			return nil, err
		}
		if out = append(out, r); !r.OK() {
			failed = j.Args[0]
		}
	}
	return out, nil
}

func (b *fakeBox) do(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if err := ctx.Err(); err != nil {
		return sandbox.Result{}, err
	}
	if b.dead {
		return sandbox.Result{}, errGone
	}
	l := b.lab
	l.clock = l.clock.Add(time.Second)
	switch last := c.Args[len(c.Args)-1]; last {
	case traceStops:
		r := sandbox.Result{Wall: 50 * time.Millisecond}
		if c.Peaks {
			if l.noTrace {
				return sandbox.Result{Untraced: "ptrace: operation not permitted"}, nil
			}
			r.Stops = 100
			r.Wall += 100 * l.stopCost / heavyStop
		}
		return r, nil
	case "prepare", "cleanup", "true":
		l.log = append(l.log, fmt.Sprintf("%s %s keep=%v", b.v, last, c.KeepTmp))
		if l.kills != nil && l.kills(b.v, last, l.runs[b.v]) {
			b.dead = true
			return sandbox.Result{}, errGone
		}
		if f := map[string]func(string, int) sandbox.Result{"prepare": l.prep, "cleanup": l.clean}[last]; f != nil {
			return f(b.v, l.runs[b.v]), nil
		}
		return sandbox.Result{}, nil
	}
	l.log = append(l.log, fmt.Sprintf("%s run keep=%v", b.v, c.KeepTmp))
	l.command = c
	n := l.runs[b.v]
	l.runs[b.v]++
	r, err := l.program(b.v, n, c)
	b.worn = b.worn || l.wears != nil && l.wears(b.v, n)
	b.dead = errors.Is(err, errGone)
	if !c.Peaks {
		r.RSSBytes, r.SizeBytes, r.RSSSumBytes, r.Stops, r.ReadBytes, r.WrittenBytes = 0, 0, 0, 0, -1, -1
	}
	return r, err
}

// newLab makes folders for versions 0..n-1 and a twin, and opens a sampler.
func newLab(t *testing.T, n int, b bench.Benchmark, l *fakeLab) (*fakeLab, *Sampler) {
	t.Helper()
	l.t, l.dirs, l.starts, l.runs = t, map[string]string{}, map[string]int{}, map[string]int{}
	l.clock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var versions []Version
	add := func(v Version, name string) {
		v.Dir = filepath.Join(t.TempDir(), name)
		l.dirs[v.Dir] = name
		for _, d := range []string{"src", "out"} {
			if err := os.MkdirAll(filepath.Join(v.Dir, d), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		versions = append(versions, v)
	}
	for i := n - 1; i >= 0; i-- {
		add(Version{N: i}, fmt.Sprint(i))
	}
	if !l.noTwin {
		add(Version{Twin: true}, "twin")
	}
	suite := &bench.Suite{Name: "suite", Limits: l.limits, Benchmarks: []bench.Benchmark{b}}
	s, err := open(t.Context(), nil, l.start, suite, versions, Options{Seed: 1, Now: func() time.Time { return l.clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if l.open != 0 {
			t.Errorf("%d boxes left open", l.open)
		}
	})
	return l, s
}

// fine is the result of a program that works.
func fine() sandbox.Result {
	return sandbox.Result{
		Wall: 100 * time.Millisecond, User: 60 * time.Millisecond, Sys: 20 * time.Millisecond,
		RSSBytes: 2 << 20, SizeBytes: 5 << 20, RSSSumBytes: 3 << 20, Faults: 90, MajorFaults: 10, Voluntary: 3, Involuntary: 4,
		ReadBytes: 8, WrittenBytes: 16, Processes: 1, Stops: 3, PressureNS: 1000, StdoutSHA256: "same",
	}
}

func crash() sandbox.Result {
	return sandbox.Result{Status: 139, Signal: "SIGSEGV", LogTail: "boom\n"}
}

func printed(text string) sandbox.Result {
	r := fine()
	r.Stdout, r.StdoutSHA256 = []byte(text), hexSHA256([]byte(text))
	return r
}

var plainBench = bench.Benchmark{Name: "hash", Params: map[string]string{"n": "3"}, Run: bench.Program{Args: []string{"./kit", "hash"}}}

// only makes a program that works but for some versions.
func only(bad map[string]func(n int) sandbox.Result) func(string, int, sandbox.Command) (sandbox.Result, error) {
	return func(v string, n int, _ sandbox.Command) (sandbox.Result, error) {
		if f := bad[v]; f != nil {
			return f(n), nil
		}
		return fine(), nil
	}
}

func warmUp(t *testing.T, s *Sampler) WarmUp {
	t.Helper()
	w, err := s.WarmUp(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestCommand(t *testing.T) {
	b := bench.Benchmark{
		Name: "b", Run: bench.Program{Line: "./kit <&0"}, Prepare: bench.Program{Args: []string{"prepare"}},
		Cleanup: bench.Program{Args: []string{"cleanup"}}, Env: map[string]string{"Z": "1", "A": "2"},
		Stdin: "data/in.txt", Timeout: 7 * time.Second,
	}
	l, s := newLab(t, 1, b, &fakeLab{program: only(nil)})
	warmUp(t, s)
	want := sandbox.Command{
		Args: []string{"sh", "-eu", "-c", "./kit <&0"}, Env: []string{"SRC=/build/src", "OUT=/build/out", "A=2", "Z=1"},
		Dir: "/build/src", Stdin: "/build/src/data/in.txt", Timeout: 7 * time.Second, Peaks: true, KeepTmp: true,
	}
	if d := cmp.Diff(want, l.command); d != "" {
		t.Errorf("command (-want +got):\n%s", d)
	}
	wantLog := []string{
		"0 prepare keep=true", "0 run keep=true", "0 cleanup keep=false",
		"twin prepare keep=true", "twin run keep=true", "twin cleanup keep=false",
	}
	if d := cmp.Diff(wantLog, l.log); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if got := s.slots[0].box.Mounts; len(got) != 2 || got[0].Inside != "/build/src" || got[1].Inside != "/build/out" || got[0].Write || got[1].Write {
		t.Errorf("mounts = %+v", got)
	}
}

func TestLimits(t *testing.T) {
	limits := bench.Limits{MemoryBytes: 1, Processes: 2, DiskBytes: 3, OutputBytes: 4, Timeout: 5 * time.Second}
	l, s := newLab(t, 1, plainBench, &fakeLab{program: only(nil), limits: limits})
	warmUp(t, s)
	if l.command.Timeout != 5*time.Second {
		t.Errorf("timeout = %v", l.command.Timeout)
	}
	want := sandbox.Limits{MemoryBytes: 1, Processes: 2, DiskBytes: 3, OutputBytes: 4}
	if d := cmp.Diff(want, s.slots[0].box.Limits); d != "" {
		t.Errorf("limits (-want +got):\n%s", d)
	}
}

// What a failed prepare left in /tmp must not reach the next run.
func TestPrepareFailedTidies(t *testing.T) {
	b := plainBench
	b.Prepare.Args = []string{"prepare"}
	l, s := newLab(t, 1, b, &fakeLab{program: only(nil), prep: func(v string, _ int) sandbox.Result {
		if v == "0" {
			return sandbox.Result{Status: 1}
		}
		return sandbox.Result{}
	}})
	warmUp(t, s)
	want := []string{"0 prepare keep=true", "0 true keep=false", "0 prepare keep=true"}
	if d := cmp.Diff(want, l.log); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

// recordedFailures tells from a record which benchmarks and rows fail on which
// versions.
func recordedFailures(list []bench.Sample) []bench.Failure {
	var out []bench.Failure
	for _, s := range list {
		if s.Failed != nil && s.Discarded == "" && !s.Twin {
			out = append(out, bench.Failure{N: s.Version, Benchmark: bench.RowName(s.Benchmark, s.Params), Signal: s.Failed.Signal, Status: s.Failed.Status})
		}
	}
	return out
}

func pick(list []bench.Sample, metric string) []bench.Sample {
	var out []bench.Sample
	for _, s := range list {
		if s.Metric == metric {
			out = append(out, s)
		}
	}
	return out
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"src", "out"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "half", "src"), 0o777); err != nil {
		t.Fatal(err)
	}
	good := Version{Dir: dir}
	tests := []struct {
		name     string
		versions []Version
		parse    string
		want     string
	}{
		{"no version", nil, "", "base is not among"},
		{"no base", []Version{{N: 1, Dir: dir}, {Twin: true, Dir: dir}}, "", "base is not among"},
		{"negative", []Version{good, {N: -1, Dir: dir}}, "", "numbers start at 0"},
		{"twin of a patch", []Version{good, {N: 1, Dir: dir, Twin: true}}, "", "only the base has one"},
		{"twice", []Version{good, {N: 1, Dir: dir}, {N: 1, Dir: dir}}, "", "patch 1 is given twice"},
		{"no out", []Version{good, {N: 1, Dir: filepath.Join(dir, "half")}}, "", "no such file"},
		{"parser", []Version{good}, "csv", `parse: unknown "csv" (`},
		{"box", []Version{good, {N: 7, Dir: dir}}, "", "start a box for patch 7: refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			open1, closed := 0, 0
			start := func(context.Context, sandbox.Box) (runner, error) {
				if open1 == 1 {
					return nil, errors.New("refused")
				}
				open1++
				return closer{&closed}, nil
			}
			suite := &bench.Suite{Benchmarks: []bench.Benchmark{{Name: "b", Parse: tt.parse}}}
			_, err := open(t.Context(), nil, start, suite, tt.versions, Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q in it", err, tt.want)
			}
			if open1 != closed {
				t.Errorf("%d boxes started, %d closed", open1, closed)
			}
		})
	}
}

type closer struct{ n *int }

func (c closer) DoAll(context.Context, []sandbox.Job) ([]sandbox.Result, error) { return nil, nil }
func (c closer) Worn() bool                                                     { return false }
func (c closer) Close() error                                                   { *c.n++; return nil }

// A box that a run has worn is used for no other run.
func TestWornBox(t *testing.T) {
	l, s := newLab(t, 2, plainBench, &fakeLab{program: only(nil), wears: func(v string, n int) bool { return v == "1" && n < 2 }})
	if _, err := s.WarmUp(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		r, err := s.Round(t.Context(), 0, round+1)
		if err != nil || len(r.Warnings) > 0 || len(r.Failures) > 0 {
			t.Fatalf("%v, %+v", err, r)
		}
	}
	// What a new runner does first is no run of the benchmark.
	if d := cmp.Diff(map[string]int{"0": 1, "twin": 1, "1": 3}, l.starts); d != "" {
		t.Error(d)
	}
	var of1 []string
	for _, line := range l.log {
		if strings.HasPrefix(line, "1 ") {
			of1 = append(of1, line)
		}
	}
	want := []string{"1 run keep=false", "1 true keep=false", "1 run keep=false", "1 true keep=false", "1 run keep=false", "1 run keep=false"}
	if d := cmp.Diff(want, of1); d != "" {
		t.Error(d)
	}
	if err := s.Close(); err != nil || l.open != 0 {
		t.Errorf("%v, %d boxes left", err, l.open)
	}
}

// The order is random, the same for the same seed, and does not depend on which
// versions fail.
func TestOrder(t *testing.T) {
	_, s := newLab(t, 3, plainBench, &fakeLab{program: only(nil)})
	if d := cmp.Diff(s.order(0, 1, 0), s.order(0, 1, 0)); d != "" {
		t.Error(d)
	}
	const rounds = 4000
	at := map[[2]int]int{} // slot and position
	follows := map[[2]int]int{}
	for r := range rounds {
		o := s.order(0, r, 0)
		for p, i := range o {
			at[[2]int{i, p}]++
			if p > 0 {
				follows[[2]int{o[p-1], i}]++
			}
		}
	}
	// Each of 4 slots is at each position in a quarter of the rounds, sd 27.
	for k, n := range at {
		if n < rounds/4-150 || n > rounds/4+150 {
			t.Errorf("slot %d at position %d: %d of %d rounds", k[0], k[1], n, rounds)
		}
	}
	// Each pair is adjacent in this order in a quarter of the rounds.
	for k, n := range follows {
		if n < rounds/4-150 || n > rounds/4+150 {
			t.Errorf("slot %d follows %d in %d of %d rounds", k[1], k[0], n, rounds)
		}
	}
	if len(at) != 16 || len(follows) != 12 {
		t.Errorf("%d places, %d pairs", len(at), len(follows))
	}
	other := &Sampler{slots: s.slots, seed: 2}
	same := 0
	for r := range 100 {
		if slices.Equal(s.order(0, r, 0), other.order(0, r, 0)) {
			same++
		}
	}
	if same > 15 {
		t.Errorf("two seeds give the same order in %d of 100 rounds", same)
	}
}
