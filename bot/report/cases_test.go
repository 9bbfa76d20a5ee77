package report

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
func kit(b builder, hash, table map[int]float64) {
	b.process("hash", 0.4123, 2.1*(1<<20), hash, nil)
	b.process("table", 1.52, 64*(1<<20), nil, table)
	b.process("sort", 0.0871, 9.3*(1<<20), nil, nil)
	b.process("scan", 0.2202, 2.2*(1<<20), nil, nil)
}

var evaluations = map[string]func() builder{
	"one-improvement": func() builder {
		b := newSeries("Better: cpu -12.3 % in table (-12.7 .. -11.9)", bench.Better, "table: probe in steps of a cache line")
		b.Series.Subject = "table: probe in steps of a cache line"
		b.row("table", "cpu", "s", 1.52, 0.004, map[int]float64{1: -0.123})
		b.Versions[1].Added, b.Versions[1].Deleted = 41, 18
		return b
	},
	"regression-of-13": func() builder {
		b := newSeries("Patch 8/13 makes hash slower: cpu +5.1 % (4.7 .. 5.5)", bench.Worse, subjects(13)...)
		b.Series.Version = 3
		kit(b, map[int]float64{8: 0.051}, nil)
		b.Results[4].Rounds = 40
		return b
	},
	"planted": func() builder {
		b := newSeries("Mixed: 2/5 makes hash slower (cpu +5.1 %), 3/5 makes table larger (rss +18.9 %)", bench.Mixed, five...)
		kit(b, map[int]float64{2: 0.051}, map[int]float64{3: 0.189})
		b.same(1, 0)
		b.unbuilt(4, gccLog)
		b.fail(5, "sort", bench.Failed{Signal: "SIGSEGV", Status: -1}, "sort: 200000 lines\n")
		return b
	},
	"nothing-found": func() builder {
		b := newSeries("No change: all 12 rows are the same within 1 %", bench.Same, five...)
		kit(b, nil, nil)
		return b
	},
	"unclear": func() builder {
		b := newSeries("Unclear: 3 of 12 rows are not decided after 80 rounds", bench.Unclear, five...)
		kit(b, nil, nil)
		doubt(&b.Results[1], 0, 0.012, 0.031, "needs about 200 rounds")
		doubt(&b.Results[1], 2, 0.018, 0.029, "needs about 200 rounds")
		doubt(&b.Results[1], 3, -0.004, 0.025, "needs about 120 rounds")
		doubt(&b.Results[5], 4, -0.007, 0.012, "needs about 110 rounds")
		doubt(&b.Results[12], 0, 0.0061, 0.0083, "needs about 90 rounds")
		b.Stopped, b.Rounds = store.StoppedBudget, 80
		return b
	},
	"build-failure": func() builder {
		b := newSeries("Failed: 4/5 and 5/5 do not build; no change in the others", bench.FailedSeries, five...)
		kit(b, nil, nil)
		for i := range b.Results {
			b.Results[i].Total.N = 3
		}
		b.unbuilt(4, gccLog)
		b.unbuilt(5, gccLog)
		return b
	},
	"crash": func() builder {
		b := newSeries("Worse: sort fails from 3/5 on with SIGSEGV; scan times out at 5/5", bench.Worse, five...)
		kit(b, nil, nil)
		b.fail(3, "sort", bench.Failed{Signal: "SIGSEGV", Status: -1}, "sort: 200000 lines\n"+strings.Repeat("sort: warning: run of length 1\n", 20))
		b.fail(5, "scan", bench.Failed{Reason: "timed out after 600 s"}, "")
		return b
	},
	"same-build": func() builder {
		b := newSeries("No change: every build is the same as base's", bench.Same, five...)
		kit(b, nil, nil)
		for n := 1; n <= 5; n++ {
			b.same(n, 0)
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
		return b
	},
	"conflict": func() builder {
		b := newSeries("Failed: 4/7 does not apply; 2/7 makes hash slower (cpu +5.1 %)", bench.FailedSeries, five[:3]...)
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
		return b
	},
	"interrupted": func() builder {
		b := newSeries("Unclear: interrupted; hash looks slower at 2/5 (cpu)", bench.Unclear, five...)
		kit(b, map[int]float64{2: 0.051}, nil)
		for i := range b.Results {
			c := &b.Results[i]
			c.Rounds = 4
			doubt(c, 0, *c.Total.Change, 0.06, "needs about 20 rounds")
			for n := 1; n <= 5; n++ {
				doubt(c, n, *c.Steps[n-1].Change, 0.06, "needs about 20 rounds")
			}
		}
		b.Versions[5].State = bench.NotBuilt
		b.Stopped, b.Rounds = store.StoppedInterrupted, 4
		return b
	},
	"no-single-step": func() builder {
		b := newSeries("Worse: table cpu +3.6 % (2.8 .. 4.5), somewhere in patches 2-4", bench.Worse, five...)
		kit(b, nil, nil)
		c := &b.Results[4]
		c.Total = bench.Step{N: 5, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse, Group: []int{2, 4}}
		for n := 2; n <= 4; n++ {
			doubt(c, n, 0.012, 0.013, "needs about 60 rounds")
		}
		c.Values[5].Median = ptr(*c.Values[0].Median * 1.036)
		d := &b.Results[8]
		d.Total = bench.Step{N: 5, Change: ptr(-0.021), Lo: ptr(-0.027), Hi: ptr(-0.015), Verdict: bench.Better}
		d.Values[5].Median = ptr(*d.Values[0].Median * 0.979)
		return b
	},
	"group": func() builder {
		b := newSeries("Worse: table cpu +3.6 % (2.8 .. 4.5) by patches 2-3", bench.Worse, five...)
		kit(b, nil, nil)
		for _, n := range []int{2, 3} {
			b.Results[4].Steps[n-1] = bench.Step{N: n, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse, Group: []int{2, 3}}
		}
		b.Results[4].Total = bench.Step{N: 5, Change: ptr(0.036), Lo: ptr(0.028), Hi: ptr(0.045), Verdict: bench.Worse}
		b.Results[4].Values[5].Median = ptr(*b.Results[4].Values[0].Median * 1.036)
		return b
	},
	"cancelled": func() builder {
		b := newSeries("Mixed: 1/3 makes hash slower (cpu +5.1 %), 3/3 faster (-4.9 %); as a whole the same", bench.Mixed, five[:3]...)
		kit(b, map[int]float64{1: 0.051, 3: 1/1.051 - 1}, nil)
		return b
	},
	"exact": func() builder {
		b := newSeries("Better: 1/2 makes parse allocate less (allocs -33.3 %)", bench.Better, five[:2]...).commits()
		b.row("parse", "s/op", "s/op", 12.4e-6, 0.002, map[int]float64{1: -0.082})
		b.row("parse", "B/op", "B/op", 4096, 0.0001, map[int]float64{1: -0.25})
		b.row("parse", "allocs", "1", 12, 0, map[int]float64{1: -1.0 / 3})
		b.row("parse", "instructions", "1", 123456789, 0, map[int]float64{1: -0.0912, 2: 0.000012})
		b.Results[3].Steps[1].Verdict = bench.Worse
		b.row("copy", "MB/s", "MB/s", 812.4, 0.01, map[int]float64{2: 0.21})
		b.row("start", "wall", "s", 0.00213, 0.01, map[int]float64{2: 14.2})
		return b
	},
	"warnings": func() builder {
		b := newSeries("Unclear: the machine was not steady", bench.Unclear, five...)
		kit(b, nil, nil)
		for i, c := range b.Results {
			if c.Metric == "wall" {
				doubt(&b.Results[i], 0, 0.021, 0.02, "verdicts withdrawn")
				b.Results[i].Warnings = []string{"the base twin differs from base (A/A): verdicts are withdrawn"}
			}
		}
		b.Series.Complete, b.Series.Received, b.Series.Missing, b.Series.Total = false, 5, []int{6, 8}, 8
		b.NotTried = []int{7}
		b.Unsafe = true
		b.Warnings = []string{
			"the series touches bench/run.sh, which the suite names: base's copy was used for all versions",
			"the budget of 10 min is too little for 10 rounds of every row",
		}
		return b
	},
	"parameters": func() builder {
		b := newSeries("Better: grep on the large tree, cpu -31.0 %", bench.Better, five[:2]...)
		for _, t := range []string{"1", "4", "16"} {
			b.process("grep", 2.31, 80*(1<<20), map[int]float64{2: -0.31}, nil)
			for i := range b.Results[len(b.Results)-4:] {
				b.Results[len(b.Results)-4+i].Params = map[string]string{"threads": t, "tree": "linux-large"}
			}
		}
		return b
	},
	"large": func() builder {
		b := newSeries("Mixed: 31 of 225 rows are better, 14 worse; the largest is +41 % (cpu of b03 at 7/30)", bench.Mixed, subjects(30)...)
		for i := range 45 {
			changes := map[int]float64{}
			if i%3 == 0 {
				changes[1+i*7%30] = float64(i%7)*0.08 - 0.15
				changes[1+i*11%30] = 0.02 + float64(i%5)*0.03
			}
			name := fmt.Sprintf("workload-%02d", i)
			b.process(name, 0.02*float64(i+1), float64(i+1)*(1<<22), changes, map[int]float64{1 + i%30: float64(i%2) * 0.03})
			b.row(name, "heap", "B", float64(i+1)*1e6, 0, nil)
		}
		for i := range b.Results {
			if i%17 == 3 && b.Results[i].Tested {
				doubt(&b.Results[i], 4, 0.01, 0.02, "needs about 90 rounds")
			}
		}
		return b
	},
	"largest": func() builder {
		b := newSeries(strings.Repeat("Everything is worse. ", 60), bench.Worse, subjects(30)...)
		for i := range 45 {
			changes := map[int]float64{}
			for n := 1; n <= 30; n++ {
				changes[n] = 0.02
			}
			b.process(fmt.Sprintf("workload-with-a-rather-long-name-%02d", i), 0.02, 1e7, changes, changes)
			b.row(fmt.Sprintf("unsure-%d", i), "wall", "s", 1, 0.1, nil)
			doubt(&b.Results[len(b.Results)-1], 0, 0.01, 0.02, "needs about 90 rounds")
			b.Results[len(b.Results)-1].Warnings = []string{fmt.Sprint("warning ", i, strings.Repeat(" of many", 60))}
			b.Warnings = append(b.Warnings, fmt.Sprint(i, strings.Repeat(" more", 90)))
			b.fail(1+i%30, fmt.Sprintf("unsure-%d", i+100), bench.Failed{Status: 1}, strings.Repeat("log\n", 99))
		}
		for n := 2; n <= 30; n += 3 {
			b.Versions[n].State, b.Versions[n].LogTail = bench.BuildFailed, strings.Repeat(fmt.Sprintln("error", n), 40)
		}
		for n := 3; n <= 30; n += 3 {
			b.same(n, n-2)
		}
		b.Series.Complete, b.Series.Missing, b.Unsafe, b.Stopped = false, []int{3, 9}, true, store.StoppedInterrupted
		b.Base.Reason = strings.Repeat("because ", 90)
		b.Host.CPU = strings.Repeat("fast ", 200)
		b.Command = "bot eval " + strings.Repeat("'a file' ", 60)
		return b
	},
	"hostile": func() builder {
		evil := "\x1b]0;pwn\x07\x1b[2J\u202egnp.exe\u0085 a\u0301\u0301\u0301\u0301\u0301 \xff\x00 </pre><script>"
		b := newSeries("Worse: 1/2 makes "+evil+" slower (cpu +5.1 %)", bench.Worse,
			"表: 速くする "+evil, "über: "+strings.Repeat("very long ", 40))
		b.Series.Subject = evil + strings.Repeat(" 長い", 60)
		b.Series.Author = mbox.Address{Name: "Zoë \x1b[31m Müller\nBcc: all@example.org", Email: "zoe@example.org"}
		b.Base.Reason = evil
		b.Suite.Name, b.Host.Name, b.Host.CPU, b.Command = evil, evil, evil, "bot eval '"+evil+"'"
		b.process(evil, 0.4, 1<<20, map[int]float64{1: 0.051}, nil)
		b.process("表の速さ", 0.3, 1<<20, map[int]float64{2: 0.052}, nil)
		b.process(strings.Repeat("n", 300), 0.3, 1<<20, map[int]float64{2: 0.053}, nil)
		b.row("x", "m\x1b[2J", "un\x1bit/op", 1, 0.01, map[int]float64{1: 0.2})
		b.fail(2, "x", bench.Failed{Reason: evil}, evil+"\r\n\tprogress 1%\rprogress 100%\n\x1b[31mred\x1b[0m "+strings.Repeat("z", 300))
		b.Conflict = &mbox.Conflict{N: 2, Files: []mbox.ConflictFile{{Path: evil, Hunk: 1, Reason: evil}}}
		b.Warnings = []string{evil}
		return b
	},
}
