package cases

import (
	"fmt"
	"strings"

	"patchbench/bench"
	"patchbench/mbox"
	"patchbench/store"
)

var five = []string{
	"hash: say what the seed is for", "hash: mix in the length", "table: keep a spare half", "table: use a macro for the mask",
	"sort: skip what is in order",
}

func subjects(n int) []string {
	var s []string
	for i := range n {
		s = append(s, fmt.Sprintf("subsystem %c: change number %d of many", 'a'+i%26, i+1))
	}
	return s
}

const gccLog = `gcc -O2 -c -o table.o table.c
table.c: In function 'grow':
table.c:41:9: error: implicit declaration of function 'MASK_OF' [-Wimplicit-function-declaration]
   41 |         MASK_OF(t->size);
	|         ^~~~~~~
make: *** [Makefile:7: table.o] Error 1
`

// kit adds the rows of the small project's four benchmarks.
func kit(b Builder, hash, table map[int]float64) {
	b.Process("hash", 0.4123, 2.1*(1<<20), hash, nil)
	b.Process("table", 1.52, 64*(1<<20), nil, table)
	b.Process("sort", 0.0871, 9.3*(1<<20), nil, nil)
	b.Process("scan", 0.2202, 2.2*(1<<20), nil, nil)
}

// Other is the same series on another, smaller machine: everything takes times as
// long there, and what changes changes by share of what it does here.
func Other(b Builder, times, share float64) Builder {
	b.ID, b.Host.Name, b.Host.CPU, b.Host.Cores, b.Host.Memory = "20261130-77c0ff", "arm1", "Example A72", 4, 8<<30
	for i := range b.Results {
		c := &b.Results[i]
		scale := 1.0
		if c.Unit == bench.Second {
			scale = times
		}
		for j := range c.Values {
			v := &c.Values[j]
			for _, f := range []**float64{&v.Median, &v.Lo, &v.Hi} {
				if *f != nil {
					*f = ptr(**f * scale)
				}
			}
		}
		for _, s := range append([]*bench.Step{&c.Total}, pointers(c.Steps)...) {
			if s.Change == nil || s.Verdict != bench.Better && s.Verdict != bench.Worse {
				continue
			}
			half := *s.Change
			for _, f := range []**float64{&s.Change, &s.Lo, &s.Hi} {
				if *f != nil {
					*f = ptr(**f - half*(1-share))
				}
			}
			if share == 0 {
				s.Verdict = bench.Same
			}
		}
	}
	return b.Judged()
}

func pointers(steps []bench.Step) (all []*bench.Step) {
	for i := range steps {
		all = append(all, &steps[i])
	}
	return all
}

// All are the evaluations by name: one for each kind of outcome, and some that
// are hostile or very large. Each call gives a new one.
var All = map[string]func() Builder{
	"one-improvement": func() Builder {
		b := New("", "", "table: probe in steps of a cache line")
		b.Series.Subject = "table: probe in steps of a cache line"
		b.Row("table", "cpu", "s", 1.52, 0.004, map[int]float64{1: -0.123})
		b.Versions[1].Added, b.Versions[1].Deleted = 41, 18
		return b.Judged()
	},
	"regression-of-13": func() Builder {
		b := New("", "", subjects(13)...)
		b.Series.Version = 3
		kit(b, map[int]float64{8: 0.051}, nil)
		b.Results[1].Rounds, b.Results[4].Rounds = 60, 40
		return b.Judged()
	},
	"planted": func() Builder {
		b := New("", "", five...)
		kit(b, map[int]float64{2: 0.051}, map[int]float64{3: 0.189})
		b.Same(1, 0)
		b.Unbuilt(4, gccLog)
		b.Fail(5, "sort", bench.Failed{Signal: "SIGSEGV", Status: -1}, "sort: 200000 lines\n")
		return b.Judged()
	},
	"nothing-found": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		return b.Judged()
	},
	"unclear": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		Doubt(&b.Results[1], 0, 0.012, 0.031, "needs about 200 rounds")
		Doubt(&b.Results[1], 2, 0.018, 0.029, "needs about 200 rounds")
		Doubt(&b.Results[1], 3, -0.004, 0.025, "needs about 120 rounds")
		Doubt(&b.Results[5], 4, -0.007, 0.012, "needs about 110 rounds")
		Doubt(&b.Results[12], 0, 0.0061, 0.0083, "needs about 90 rounds")
		b.Stopped, b.Rounds = store.StoppedBudget, 80
		return b.Judged()
	},
	"doubts-and-parameters": func() Builder { // names that differ at their ends, and numbers at the end of a line
		b := New("", "", five[:3]...)
		for i, p := range []map[string]string{{"n": "1000"}, {"n": "800000"}, {"tree": "linux-large", "threads": "16", "mode": "cold"},
			{"tree": "linux-large", "threads": "16", "mode": "warm"}} {
			name := "table"
			if i > 1 {
				name = "checkout/of-a-whole-tree"
			}
			b.Process(name, 0.0094, 8.9*(1<<20), map[int]float64{3: -0.09 * float64(i%2)}, nil)
			rows := b.Results[len(b.Results)-4:]
			for j := range rows {
				rows[j].Params = p
			}
			Doubt(&rows[1], 0, 0.02, 0.16, "needs about 170 rounds")
			Doubt(&rows[1], 1, 0.03, 0.024, "needs about 1000 rounds")
			Doubt(&rows[1], 2, 0.01, 0.024, "needs > 1000 rounds")
			if i%2 == 0 {
				Doubt(&rows[0], 2, -0.02, 0.024, "alone the two versions differ by -2.4 %; needs about 240 rounds")
			}
		}
		return b.Judged()
	},
	"build-failure": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		for i := range b.Results {
			b.Results[i].Total.N = 3
		}
		b.Unbuilt(4, gccLog)
		b.Unbuilt(5, gccLog)
		return b.Judged()
	},
	"crash": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		b.Fail(3, "sort", bench.Failed{Signal: "SIGSEGV", Status: -1}, "sort: 200000 lines\n"+strings.Repeat("sort: warning: run of length 1\n", 20))
		b.Fail(5, "scan", bench.Failed{Reason: "timed out after 600 s"}, "")
		return b.Judged()
	},
	"same-build": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		for n := 1; n <= 5; n++ {
			b.Same(n, 0)
		}
		for i := range b.Results {
			c := &b.Results[i]
			c.Rounds, c.Detectable, c.Values = 0, nil, nil
			for j := range c.Steps {
				c.Steps[j] = bench.Step{N: j + 1, Verdict: bench.Same, Reason: "same build as base"}
			}
			c.Total = bench.Step{N: 5, Verdict: bench.Same, Reason: "same build as base"}
		}
		b.Rounds, b.MeasureSeconds = 0, 0
		return b.Judged()
	},
	"conflict": func() Builder {
		b := New("", "", five[:3]...)
		kit(b, map[int]float64{2: 0.051}, nil)
		b.Series.Total, b.Series.Received = 7, 7
		for n := 1; n <= 3; n++ {
			b.Versions[n].Name = fmt.Sprintf("%d/7", n)
		}
		b.Series.Patches = append(b.Series.Patches, mbox.Patch{N: 4, Subject: five[3]})
		b.Conflict = &mbox.Conflict{N: 4, Subject: five[3], Files: []mbox.ConflictFile{
			{Path: "table.c", Hunk: 2, Line: 120, Reason: "context differs"},
			{Path: "doc/table.txt", Reason: "no such file in 3/7"},
		}}
		b.NotTried = []int{5, 6, 7}
		b = b.Judged()
		b.Verdict, b.Headline = bench.FailedSeries, "failed: 4/7 does not apply; before it, "+b.Headline
		return b
	},
	"conflict-at-first": func() Builder { // nothing was built
		b := New("", "", five[:3]...)
		b.Versions = b.Versions[:1]
		b.Versions[0].State = bench.NotBuilt
		kit(b, nil, nil)
		for i := range b.Results {
			c := &b.Results[i]
			c.Rounds, c.Detectable, c.Values, c.Steps = 0, nil, []bench.Value{{N: 0}}, nil
			c.Total = bench.Step{Verdict: bench.NotMeasured, Reason: "not built"}
		}
		b.Conflict = &mbox.Conflict{N: 1, Subject: five[0], Files: []mbox.ConflictFile{{Path: "hash.c", Hunk: 1, Line: 7, Reason: "context differs"}}}
		b.NotTried = []int{2, 3}
		b.Claims = []bench.Claim{{N: 2, Line: 1, Text: "hash gets 20 % faster", Change: -0.2, Verdict: bench.ClaimUnmeasured}}
		b.Rounds, b.BuildSeconds, b.MeasureSeconds = 0, 0, 0
		b.Verdict, b.Headline = bench.FailedSeries, "failed: 1/3 does not apply"
		return b
	},
	"interrupted": func() Builder {
		b := New("", "", five...)
		kit(b, map[int]float64{2: 0.051}, nil)
		for i := range b.Results {
			c := &b.Results[i]
			c.Rounds = 4
			Doubt(c, 0, *c.Total.Change, 0.06, "needs about 20 rounds")
			for n := 1; n <= 5; n++ {
				Doubt(c, n, *c.Steps[n-1].Change, 0.06, "needs about 20 rounds")
			}
		}
		b.Versions[5].State = bench.NotBuilt
		b.Stopped, b.Rounds = store.StoppedInterrupted, 4
		return b.Judged()
	},
	"no-single-step": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		c := &b.Results[4]
		c.Total = bench.Step{N: 5, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse, Group: []int{2, 4}}
		for n := 2; n <= 4; n++ {
			Doubt(c, n, 0.012, 0.013, "needs about 60 rounds")
		}
		c.Values[5].Median = ptr(*c.Values[0].Median * 1.036)
		d := &b.Results[8]
		d.Total = bench.Step{N: 5, Change: ptr(-0.021), Lo: ptr(-0.027), Hi: ptr(-0.015), Verdict: bench.Better}
		d.Values[5].Median = ptr(*d.Values[0].Median * 0.979)
		return b.Judged()
	},
	"group": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		for _, n := range []int{2, 3} {
			b.Results[4].Steps[n-1] = bench.Step{N: n, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse, Group: []int{2, 3}}
		}
		b.Results[4].Total = bench.Step{N: 5, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse}
		b.Results[4].Values[5].Median = ptr(*b.Results[4].Values[0].Median * 1.036)
		return b.Judged()
	},
	"cancelled": func() Builder {
		b := New("", "", five[:3]...)
		kit(b, map[int]float64{1: 0.051, 3: 1/1.051 - 1}, nil)
		return b.Judged()
	},
	"exact": func() Builder {
		b := New("", "", five[:2]...).Commits()
		b.Row("parse", "s/op", "s/op", 12.4e-6, 0.002, map[int]float64{1: -0.082})
		b.Row("parse", "B/op", "B/op", 4096, 0.0001, map[int]float64{1: -0.25})
		b.Row("parse", "allocs", "1", 12, 0, map[int]float64{1: -1.0 / 3})
		b.Row("parse", "instructions", "1", 123456789, 0, map[int]float64{1: -0.0912, 2: 0.000012})
		b.Row("copy", "MB/s", "MB/s", 812.4, 0.01, map[int]float64{2: 0.21})
		b.Row("start", "wall", "s", 0.00213, 0.01, map[int]float64{2: 14.2})
		return b.Judged()
	},
	"warnings": func() Builder {
		b := New("", "", five...)
		kit(b, nil, nil)
		for i, c := range b.Results {
			if c.Metric == "wall" {
				Doubt(&b.Results[i], 0, 0.021, 0.02, "verdicts withdrawn")
				b.Results[i].Warnings = []string{"the base twin differs from base (A/A): verdicts are withdrawn"}
			}
		}
		b.Series.Complete, b.Series.Received, b.Series.Missing, b.Series.Total = false, 6, []int{6, 8}, 8
		b.NotTried = []int{7}
		b.Unsafe = true
		b.Warnings = []string{
			"the series touches bench/run.sh, which the suite names: base's copy was used for all versions",
			"the budget of 10 min is too little for 10 rounds of every row",
		}
		return b.Judged()
	},
	"parameters": func() Builder {
		b := New("", "", five[:2]...)
		for _, t := range []string{"1", "4", "16"} {
			b.Process("grep", 2.31, 80*(1<<20), map[int]float64{2: -0.31}, nil)
			for i := range b.Results[len(b.Results)-4:] {
				b.Results[len(b.Results)-4+i].Params = map[string]string{"threads": t, "tree": "linux-large"}
			}
		}
		return b.Judged()
	},
	"beside": func() Builder { // a baseline, benchmarks together, a chain of which a step fails
		b := New("", "", five[:2]...)
		b.Process("parse", 0.31, 8<<20, map[int]float64{1: 0.08}, nil)
		b.Row("parse", "baseline-cpu", "s", 0.0123, 0.03, nil)
		b.Row("parse", "baseline-rss", "B", 2<<20, 0.002, nil)
		b.Process("pulls/viz", 1.2, 61<<20, nil, nil)
		b.Row("pulls/viz", "slowdown", "x", 1.84, 0.02, map[int]float64{2: 0.3})
		b.Process("pulls/guitone", 0.7, 42<<20, nil, nil)
		b.Row("pulls/guitone", "slowdown", "x", 1.31, 0.02, nil)
		for _, step := range []string{"vc/add", "vc/commit", "vc/check"} {
			b.Process(step, 0.2, 12<<20, nil, nil)
		}
		b.Fail(2, "vc/commit", bench.Failed{Status: 3}, "cannot lock the tree")
		b.Fail(2, "vc/check", bench.Failed{Status: -1, Reason: "step commit failed"}, "")
		b.Failures = b.Failures[:len(b.Failures)-1] // the record alone tells of it
		return b.Judged()
	},
	"values": func() Builder { // of a build parameter, on one version
		b := New("", "", "", "")
		b.Commits()
		b.Series, b.CompareParam = nil, "alloc"
		for i, name := range []string{"alloc=pool", "alloc=glibc", "alloc=none"} {
			b.Versions[i] = bench.Version{N: i, Name: name, State: bench.Built, Commit: b.Base.Commit}
		}
		b.Same(2, 1)
		b.Process("hash", 0.4123, 64<<20, map[int]float64{1: 0.21}, map[int]float64{1: -0.3})
		b.Process("table", 1.52, 80<<20, nil, nil)
		b.Command = "bot eval v1.1..v1.1 --repo kit.git --compare-param alloc --seed 7"
		return b.Judged()
	},
	"variants": func() Builder { // each choice of a build parameter is a row
		b := New("", "", five[:2]...)
		base := 0
		for _, alloc := range []string{"pool", "none"} {
			b.Process("hash", 0.4123, 64<<20, map[int]float64{1: 0.05}, nil)
			params := map[string]string{"alloc": alloc}
			for i := len(b.Results) - 4; i < len(b.Results); i++ {
				b.Results[i].Params = params
			}
			for n := range b.Versions {
				b.Versions[n].Variants = append(b.Versions[n].Variants, bench.VariantBuild{Params: params, State: bench.Built})
			}
		}
		b.Versions[1].Variants[1].State, b.Versions[1].Variants[1].SameAs = bench.SameBuild, &base
		b.Versions[2].Variants[1].State, b.Versions[2].Variants[1].LogTail = bench.BuildFailed, "hash.c:12: undefined: none_alloc\n"
		for i := range b.Results[4:] {
			c := &b.Results[4+i]
			c.Steps[0], c.Steps[1] = bench.Step{N: 1, Change: ptr(0.0), Verdict: bench.Same, Reason: "same build as base"},
				bench.Step{N: 2, Verdict: bench.NotMeasured, Reason: "does not build"}
			c.Values = []bench.Value{c.Values[0], {N: 1}, {N: 2}}
			c.Total = c.Steps[1]
		}
		return b.Judged()
	},
	"operations": func() Builder {
		b := New("", "", five[1:3]...)
		for i, o := range []struct {
			name         string
			seconds      float64
			bytes        float64
			time, memory map[int]float64
		}{
			{"pull-viz", 2.31, 80 << 20, map[int]float64{1: -0.31}, map[int]float64{2: -0.4}},
			{"pull-guitone", 0.82, 61 << 20, map[int]float64{1: -0.22}, map[int]float64{2: -0.33}},
			{"serve", 5.04, 120 << 20, map[int]float64{1: -0.8, 2: -0.1}, nil},
		} {
			for _, alloc := range []string{"pool", "none"} {
				before := len(b.Results)
				b.Process(o.name, o.seconds, o.bytes, o.time, o.memory)
				b.Row(o.name, "sys", "s", o.seconds*0.1, 0.03, o.time)
				b.Row(o.name, "malloc", "B", 3*o.bytes, 0, o.memory)
				b.Row(o.name, "copied", "B", 1.7*o.bytes, 0, nil)
				o.seconds, o.bytes = o.seconds*1.4, o.bytes*float64(1+i)
				for j := range b.Results[before:] {
					b.Results[before+j].Params = map[string]string{"alloc": alloc}
				}
			}
		}
		return b.Judged()
	},
	"large": func() Builder {
		b := New("", "", subjects(30)...)
		for i := range 45 {
			changes := map[int]float64{}
			if i%3 == 0 {
				changes[1+i*7%30] = float64(i%7)*0.08 - 0.15
				changes[1+i*11%30] = 0.02 + float64(i%5)*0.03
			}
			name := fmt.Sprintf("workload-%02d", i)
			b.Process(name, 0.02*float64(i+1), float64(i+1)*(1<<22), changes, map[int]float64{1 + i%30: float64(i%2) * 0.03})
			b.Row(name, "heap", "B", float64(i+1)*1e6, 0, nil)
		}
		for i := range b.Results {
			if i%17 == 3 && b.Results[i].Tested {
				Doubt(&b.Results[i], 4, 0.01, 0.02, "needs about 90 rounds")
			}
		}
		return b.Judged()
	},
	"largest": func() Builder {
		b := New(strings.Repeat("Everything is worse. ", 60), bench.Worse, subjects(30)...)
		for i := range 45 {
			changes := map[int]float64{}
			for n := 1; n <= 30; n++ {
				changes[n] = 0.02
			}
			b.Process(fmt.Sprintf("workload-with-a-rather-long-name-%02d", i), 0.02, 1e7, changes, changes)
			b.Row(fmt.Sprintf("unsure-%d", i), "wall", "s", 1, 0.1, nil)
			Doubt(&b.Results[len(b.Results)-1], 0, 0.01, 0.02, "needs about 90 rounds")
			b.Results[len(b.Results)-1].Warnings = []string{fmt.Sprint("warning ", i, strings.Repeat(" of many", 60))}
			b.Warnings = append(b.Warnings, fmt.Sprint(i, strings.Repeat(" more", 90)))
			b.Claims = append(b.Claims, bench.Claim{N: i % 30, Text: strings.Repeat("claim ", 30), Change: -0.1, Benchmark: fmt.Sprintf("workload-with-a-rather-long-name-%02d", i), Metric: "cpu", Verdict: bench.Opposite, Measured: ptr(0.02), Lo: ptr(0.01), Hi: ptr(0.03)})
			b.Fail(1+i%30, fmt.Sprintf("unsure-%d", i+100), bench.Failed{Status: 1}, strings.Repeat("log\n", 99))
		}
		for n := 2; n <= 30; n += 3 {
			b.Versions[n].State, b.Versions[n].LogTail = bench.BuildFailed, strings.Repeat(fmt.Sprintln("error", n), 40)
		}
		for n := 3; n <= 30; n += 3 {
			b.Same(n, n-2)
		}
		b.Series.Complete, b.Series.Missing, b.Unsafe, b.Stopped = false, []int{3, 9}, true, store.StoppedInterrupted
		b.Base.Reason = strings.Repeat("because ", 90)
		b.Host.CPU = strings.Repeat("fast ", 200)
		b.Command = "bot eval " + strings.Repeat("'a file' ", 60)
		return b
	},
	"claims": func() Builder {
		b := New("", "", five...)
		kit(b, map[int]float64{2: -0.198}, map[int]float64{3: -0.21})
		b.Row("pull", "cpu", "s", 0.35, 0.004, nil)
		b.Row("pull", "wall", "s", 2.41, 0.02, map[int]float64{2: -0.2})
		for i, change := range map[int]float64{12: 0.041, 13: 0.043} {
			b.Results[i].Steps[3].Change, b.Results[i].Steps[3].Lo, b.Results[i].Steps[3].Hi = ptr(change), ptr(change-0.004), ptr(change+0.004)
			b.Results[i].Steps[3].Verdict = bench.Worse
			b.Results[i].Total = b.Results[i].Steps[3]
			b.Results[i].Total.N = 5
			for _, n := range []int{4, 5} {
				v := &b.Results[i].Values[n]
				v.Median, v.Lo, v.Hi = ptr(*v.Median*(1+change)), ptr(*v.Lo*(1+change)), ptr(*v.Hi*(1+change))
			}
		}
		b.Series.Cover = &mbox.Cover{Subject: "kit: cleaner hash, faster table", Body: "hash gets 1.25x faster, and table needs half the memory.\n"}
		claim := func(n int, text, name, metric string, change float64, v bench.ClaimVerdict) {
			c := bench.Claim{N: n, Line: 3, Text: text, Change: change, Benchmark: name, Metric: metric, Verdict: v}
			for _, r := range b.Results {
				if r.Benchmark == name && r.Metric == metric {
					s := r.Total
					if n > 0 {
						s = r.Steps[n-1]
					}
					c.Measured, c.Lo, c.Hi = s.Change, s.Lo, s.Hi
				}
			}
			b.Claims = append(b.Claims, c)
		}
		claim(0, "hash gets 1.25x faster, and table needs half the memory.", "hash", "cpu", -0.2, bench.Confirmed)
		claim(2, "before: 2.41 s, after: 1.20 s for a pull over the network", "pull", "wall", -0.502, bench.Smaller)
		claim(3, "Peak RSS of table drops from 64 MiB to 32 MiB.", "table", "rss", -0.5, bench.Smaller)
		claim(4, "scan is 3 % faster", "scan", "cpu", -0.03, bench.Opposite)
		claim(5, "| sort | 87.1 ms | 70.2 ms |", "sort", "cpu", -0.194, bench.NotSeen)
		claim(5, "a build of the kernel: 5:42 -> 4:34 CPU time", "", "", -0.199, bench.ClaimUnmeasured)
		return b.Judged()
	},
	"withdrawn": func() Builder {
		b := New("", "", five...)
		kit(b, map[int]float64{2: 0.021}, nil)
		const why = "base and a second copy of it differ by +1.9 % (p = 0.0003)"
		for i := range 2 {
			c := &b.Results[i]
			c.Warnings = []string{why}
			for _, s := range []*bench.Step{&c.Steps[1], &c.Total} {
				s.Verdict, s.Reason = bench.Unclear, "withdrawn: "+why
			}
		}
		return b.Judged()
	},
	"hostile": func() Builder {
		evil := "\x1b]0;pwn\x07\x1b[2J\u202egnp.exe\u0085 a\u0301\u0301\u0301\u0301\u0301 \xff\x00 </pre><script>"
		b := New("Worse: 1/2 makes "+evil+" slower (cpu +5.1 %)", bench.Worse,
			"表: 速くする "+evil, "über: "+strings.Repeat("very long ", 40))
		b.Series.Subject = evil + strings.Repeat(" 長い", 60)
		b.Series.Author = mbox.Address{Name: "Zoë \x1b[31m Müller\nBcc: all@example.org", Email: "zoe@example.org"}
		b.Base.Reason = evil
		b.Suite.Name, b.Host.Name, b.Host.CPU, b.Command = evil, evil, evil, "bot eval '"+evil+"'"
		b.Process(evil, 0.4, 1<<20, map[int]float64{1: 0.051}, nil)
		b.Process("表の速さ", 0.3, 1<<20, map[int]float64{2: 0.052}, nil)
		b.Process(strings.Repeat("n", 300), 0.3, 1<<20, map[int]float64{2: 0.053}, nil)
		b.Row("x", "m\x1b[2J", "un\x1bit/op", 1, 0.01, map[int]float64{1: 0.2})
		b.Fail(2, "x", bench.Failed{Reason: evil}, evil+"\r\n\tprogress 1%\rprogress 100%\n\x1b[31mred\x1b[0m "+strings.Repeat("z", 300))
		b.Conflict = &mbox.Conflict{N: 2, Files: []mbox.ConflictFile{{Path: evil, Hunk: 1, Reason: evil}}}
		b.Warnings = []string{evil}
		b.Claims = []bench.Claim{{N: 1, Line: 1, Text: evil, Subject: evil, Change: -0.5, Benchmark: evil, Metric: "cpu", Measured: ptr(0.1), Verdict: bench.Opposite},
			{N: 0, Line: 2, Text: evil + strings.Repeat(" 長い", 60), Change: 3, Verdict: bench.ClaimUnmeasured}}
		return b
	},
}
