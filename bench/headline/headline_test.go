package headline

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

// builtVersions are base and the versions after it, all built.
func builtVersions(n int) []bench.Version {
	list := make([]bench.Version, n)
	for i := range list {
		list[i] = bench.Version{N: i, State: bench.Built}
		list[i].Name = list[i].Label(n - 1)
	}
	return list
}

func TestOf(t *testing.T) {
	five := builtVersions(6)
	step := func(n int, ch float64, v bench.Verdict, group ...int) bench.Step {
		lo, hi := ch-.005, ch+.005
		s := bench.Step{N: n, Change: &ch, Lo: &lo, Hi: &hi, Verdict: v}
		if len(group) > 0 {
			s.Group = group
		}
		return s
	}
	// row has one step that is not the same, at patch n.
	row := func(name string, m bench.Metric, steps ...bench.Step) bench.Comparison {
		c := bench.Comparison{Benchmark: name, Metric: m.Name, Unit: m.Unit, Better: m.Better, Tested: true}
		total := step(5, 0, bench.Same)
		for n := 1; n <= 5; n++ {
			s := step(n, 0, bench.Same)
			for _, x := range steps {
				if x.N == n {
					s = x
					if x.Verdict != bench.Unclear {
						total = step(5, *x.Change, x.Verdict)
					}
				}
			}
			c.Steps = append(c.Steps, s)
		}
		c.Total = total
		return c
	}
	with := func(param, value string, c bench.Comparison) bench.Comparison {
		c.Params = map[string]string{param: value}
		return c
	}
	weighing := func(weight float64, c bench.Comparison) bench.Comparison {
		c.Weight = weight
		return c
	}
	none := func(name string) bench.Comparison {
		c := row(name, bench.CPU)
		for i := range c.Steps {
			c.Steps[i] = bench.Step{N: i + 1, Verdict: bench.NotMeasured}
		}
		c.Total = bench.Step{N: 5, Verdict: bench.NotMeasured}
		return c
	}
	unclear := step(2, .008, bench.Unclear)
	unclear.Reason = "needs about 60 rounds"
	totalOnly := row("hash", bench.CPU)
	totalOnly.Total = step(5, .036, bench.Worse, 2, 4)
	nowhere := row("hash", bench.CPU)
	nowhere.Total = step(5, -.021, bench.Better)
	equal := none("hash")
	for i := range equal.Steps {
		equal.Steps[i] = bench.Step{N: i + 1, Verdict: bench.Same, Reason: "same build as base"}
	}
	equal.Total = bench.Step{N: 5, Verdict: bench.Same, Reason: "same build as base"}
	cancel := row("hash", bench.CPU, step(1, .05, bench.Worse), step(3, -.05, bench.Better))
	broken := builtVersions(6)
	broken[4].State = bench.BuildFailed
	same := builtVersions(3)
	zero := 0
	for i := 1; i < 3; i++ {
		same[i].State, same[i].SameAs = bench.SameBuild, &zero
	}
	dead := builtVersions(3)
	dead[1].State, dead[2].State = bench.BuildFailed, bench.NotBuilt

	type answer struct {
		Verdict bench.Verdict
		Line    string
	}
	tests := map[string]struct {
		versions []bench.Version
		rows     []bench.Comparison
		failures []bench.Failure
		want     answer
	}{
		"time and memory": {five, []bench.Comparison{
			row("hash", bench.CPU, step(2, .051, bench.Worse)),
			row("hash", bench.Wall, step(2, .049, bench.Worse)),
			row("table", bench.RSS, step(3, .198, bench.Worse)),
		}, nil, answer{bench.Worse, "worse: 2/5 makes hash 5.1 % slower (cpu); 3/5 makes table use 19.8 % more memory (rss)"}},
		"what weighs more comes first": {five, []bench.Comparison{
			row("hash", bench.CPU, step(2, .09, bench.Worse)),
			weighing(10, row("sort", bench.CPU, step(2, .02, bench.Worse))),
		}, nil, answer{bench.Worse, "worse: 2/5 makes sort 2.0 % slower (cpu); 2/5 makes hash 9.0 % slower (cpu)"}},
		"better": {five, []bench.Comparison{row("sort", bench.Wall, step(1, -.25, bench.Better))}, nil,
			answer{bench.Better, "better: 1/5 makes sort 25.0 % faster (wall)"}},
		"undone": {five, []bench.Comparison{cancel}, nil,
			answer{bench.Mixed, "mixed: 1/5 makes hash 5.0 % slower (cpu); 3/5 makes hash 5.0 % faster (cpu)"}},
		"a group of patches": {five, []bench.Comparison{row("hash", bench.CPU, step(2, .036, bench.Worse, 2, 3), step(3, .036, bench.Worse, 2, 3))}, nil,
			answer{bench.Worse, "worse: hash gets 3.6 % slower (cpu), somewhere in patches 2-3"}},
		"by no single patch": {five, []bench.Comparison{nowhere}, nil, answer{bench.Better, "better: hash gets 2.1 % faster (cpu) over the whole series"}},
		"more than tenfold": {five, []bench.Comparison{row("hash", bench.Wall, step(2, 14.2, bench.Worse))}, nil,
			answer{bench.Worse, "worse: 2/5 makes hash 15.2x slower (wall)"}},
		"equal builds with their rows": {same, []bench.Comparison{equal}, nil, answer{bench.Same, "no change: every patch builds the same program as base"}},
		"only the whole": {five, []bench.Comparison{totalOnly}, nil,
			answer{bench.Worse, "worse: hash gets 3.6 % slower (cpu), somewhere in patches 2-4"}},
		"nothing changed": {five, []bench.Comparison{row("hash", bench.CPU), row("sort", bench.CPU)}, nil,
			answer{bench.Same, "no change: 2 benchmarks, all within 0.5 %"}},
		"undecided": {five, []bench.Comparison{row("hash", bench.CPU), row("sort", bench.CPU, unclear)}, nil,
			answer{bench.Unclear, "unclear: 1 of 2 rows undecided: sort (cpu) +0.3 .. +1.3 % at 2/5, needs about 60 rounds"}},
		"wall too noisy": {five, []bench.Comparison{row("sort", bench.CPU), row("sort", bench.Wall, unclear)}, nil,
			answer{bench.Same, "no change: 1 benchmark, within 0.5 %; wall time too noisy to say"}},
		"crash": {broken, []bench.Comparison{row("hash", bench.CPU)},
			[]bench.Failure{{N: 5, Benchmark: "sort", Signal: "SIGSEGV"}},
			answer{bench.Worse, "worse: 4/5 does not build; sort fails on 5/5 (SIGSEGV)"}},
		"counter": {five, []bench.Comparison{row("hash", bench.MetricFor("instructions", "1"), step(2, .031, bench.Worse))}, nil,
			answer{bench.Worse, "worse: 2/5 makes hash use 3.1 % more instructions"}},
		"crash and slower": {broken, []bench.Comparison{row("hash", bench.CPU, step(2, .051, bench.Worse))},
			[]bench.Failure{{N: 5, Benchmark: "sort", Signal: "SIGSEGV"}},
			answer{bench.Worse, "worse: 4/5 does not build; sort fails on 5/5 (SIGSEGV); 2/5 makes hash 5.1 % slower (cpu)"}},
		"a build fails, else nothing": {broken, []bench.Comparison{row("hash", bench.CPU)}, nil,
			answer{bench.Same, "does not build: 4/5; no change in the others: 1 benchmark, within 0.5 %"}},
		"a build fails, else better": {broken, []bench.Comparison{row("hash", bench.CPU, step(2, -.051, bench.Better))}, nil,
			answer{bench.Better, "better: 2/5 makes hash 5.1 % faster (cpu); 4/5 does not build"}},
		"a single patch": {builtVersions(2), []bench.Comparison{{Benchmark: "hash", Metric: "cpu", Unit: "s", Better: bench.Lower, Tested: true,
			Steps: []bench.Step{step(1, -.12, bench.Better)}, Total: step(1, -.12, bench.Better)}}, nil,
			answer{bench.Better, "better: hash gets 12.0 % faster (cpu)"}},
		"alike but for parameters": {five, []bench.Comparison{
			with("n", "1", row("grep", bench.CPU, step(2, -.2, bench.Better))), with("n", "8", row("grep", bench.CPU, step(2, -.31, bench.Better))),
		}, nil, answer{bench.Better, "better: 2/5 makes grep up to 31.0 % faster (cpu) in 2 rows"}},
		"too many: the worst are told": {five, []bench.Comparison{
			row("first", bench.CPU, step(1, -.4, bench.Better)), row("second", bench.CPU, step(2, .02, bench.Worse)),
			row("third", bench.CPU, step(3, .03, bench.Worse)), row("fourth", bench.CPU, step(4, .33, bench.Worse)), row("fifth", bench.CPU, step(5, .05, bench.Worse)),
		}, nil, answer{bench.Mixed, "mixed: 3/5 makes third 3.0 % slower (cpu); 4/5 makes fourth 33.0 % slower (cpu); 5/5 makes fifth 5.0 % slower (cpu); 1 more worse, 1 more better"}},
		"flaky": {five, []bench.Comparison{row("hash", bench.CPU), none("sort")},
			[]bench.Failure{{N: 2, Benchmark: "sort", Status: 1, Flaky: true, Reason: "exit status 1 (2 of 5 runs)"}},
			answer{bench.Same, "no change: 1 benchmark, within 0.5 %; sort is flaky on 2/5 (exit status 1)"}},
		"fails on base": {five, []bench.Comparison{row("hash", bench.CPU), none("sort")},
			[]bench.Failure{{N: 0, Benchmark: "sort", Status: 1}, {N: 1, Benchmark: "sort", Status: 1}},
			answer{bench.Same, "no change: 1 benchmark, within 0.5 %; sort fails on base (exit status 1)"}},
		"all fail on base": {five, []bench.Comparison{none("sort")}, []bench.Failure{{N: 0, Benchmark: "sort", Status: 1}},
			answer{bench.FailedSeries, "failed: sort fails on base (exit status 1)"}},
		"the only one breaks": {five, []bench.Comparison{none("sort")}, []bench.Failure{{N: 3, Benchmark: "sort", Status: 1}},
			answer{bench.Worse, "worse: sort fails on 3/5 (exit status 1)"}},
		"nothing but an equal build ran": {five, []bench.Comparison{func() bench.Comparison {
			c := none("sort")
			c.Steps[0] = bench.Step{N: 1, Verdict: bench.Same, Reason: "same build as base"}
			return c
		}()}, nil, answer{bench.FailedSeries, "failed: sort was not measured"}},
		"nothing ran": {five, []bench.Comparison{none("sort")}, nil,
			answer{bench.FailedSeries, "failed: sort was not measured"}},
		"equal builds": {same, nil, nil, answer{bench.Same, "no change: every patch builds the same program as base"}},
		"no build":     {dead, nil, nil, answer{bench.FailedSeries, "failed: no patch could be built and measured: 1/2 does not build"}},
	}
	for name, tt := range tests {
		v, line := Of(tt.versions, tt.rows, tt.failures)
		if d := cmp.Diff(tt.want, answer{v, line}); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if n := utf8.RuneCountInString(line); n > lineWidth {
			t.Errorf("%s: %d characters", name, n)
		}
	}
}
