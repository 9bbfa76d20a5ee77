package claims

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
)

var update = flag.Bool("update", false, "write the expected readings anew")

// reading is a claim in one line: "12 cpu -19.9 % (342 -> 274 s) [subject]".
func reading(c bench.Claim) string {
	s := fmt.Sprintf("%d %s %+.1f %%", c.Line, c.Quantity, c.Change*100)
	if c.Quantity == "" {
		s = fmt.Sprintf("%d ? %+.1f %%", c.Line, c.Change*100)
	}
	if c.Before != nil {
		s += fmt.Sprintf(" (%g -> %g %s)", *c.Before, *c.After, c.Unit)
	}
	if c.Subject != "" {
		s += " [" + c.Subject + "]"
	}
	return s
}

func readings(text string) []string {
	all := []string{}
	for _, c := range Read(text, 1) {
		all = append(all, reading(c))
	}
	return all
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "kit: mix in the length\n\nSee RFC 1321 and issue 12; 64 bits of 128 are used.\n", nil},
		{"before and after with clock times", "Pulling got cheaper (before: 5:42 CPU time, after: 4:34).\n", []string{"1 cpu -19.9 % (342 -> 274 s)"}},
		{"from and to over a line's end", "On a big tree, `kit scan` dropped from 52.5 seconds to\n13.5 seconds.\n", []string{"1 time -74.3 % (52.5 -> 13.5 s)"}},
		{"the unit is given once", "table improves from 0.80 to 0.60 seconds.\n", []string{"1 time -25.0 % (0.8 -> 0.6 s)"}},
		{"arrows in a list", "Results:\n\n  hash:  400ms -> 300ms (25 % faster)\n  sort: 10 MiB -> 8 MiB RSS\n",
			[]string{"3 time -25.0 % (0.4 -> 0.3 s) [hash]", "4 rss -20.0 % (1.048576e+07 -> 8.388608e+06 B) [sort]"}},
		{"instead of", "It now needs 2 s instead of 8 s.\n", []string{"1 time -75.0 % (8 -> 2 s)"}},
		{"factor", "With this hash is 1.25x faster.\n", []string{"1 time -20.0 %"}},
		{"times as a word", "hash is 2 times faster\n", []string{"1 time -50.0 %"}},
		{"by a factor of", "This speeds hash up by a factor of 4.\n", []string{"1 ? -75.0 %"}},
		{"per cent", "sort gets 12% faster, and uses 3 % more memory.\n", []string{"1 time -12.0 %", "1 memory +3.0 %"}},
		{"reduced by", "Reduces the run time of table by about 30 percent.\n", []string{"1 time -30.0 %"}},
		{"signed", "hash: -12 %\n", []string{"1 ? -12.0 % [hash]"}},
		{"throughput", "This improves the throughput of copy by 20%.\n", []string{"1 throughput +20.0 %"}},
		{"more than twice as fast in per cent", "copy is 150% faster\n", []string{"1 time -60.0 %"}},
		{"counts", "The number of calls falls from 12,000 to 3,000 calls.\n", []string{"1 calls -75.0 % (12000 -> 3000 1)"}},
		{"instructions in billions", "  before: 4 billion instructions\n  after: 3 billion instructions\n", []string{"1 instructions -25.0 % (4e+09 -> 3e+09 1)"}},
		{"a conditional is no claim", "A cache could make this 3x faster.\n", nil},
		{"what another commit did", "1234567abc (kit: hash faster, 2019-02-03) took it from 9 s to 3 s.\n", nil},
		{"twice as fast", "With this, table is twice as fast as before.\n", []string{"1 time -50.0 %"}},
		{"three times as fast", "It is three times as fast now.\n", []string{"1 time -66.7 %"}},
		{"something else is twice as fast", "The library's own sum is about twice as fast as ours on this machine.\n", nil},
		{"two quantities in a sentence", "It takes 17% longer on the large tree, but uses 2% less CPU time.\n", []string{"1 time +17.0 %", "1 cpu -2.0 %"}},
		{"a number of calls", "Reduces the number of system calls made for a usage statement from 22610 to 1122.\n", []string{"1 calls -95.0 % (22610 -> 1122 1)"}},
		{"a number of what is not known", "Reduces the number of files from 22610 to 1122.\n", nil},
		{"a conditional in another clause", "Even if we might still look at all, we can return earlier, reducing the run time from 5.8 s to 5.0 s.\n",
			[]string{"1 time -13.8 % (5.8 -> 5 s)"}},
		{"a conditional in the same clause", "A cache might reduce the run time from 5.8 s to 5.0 s.\n", nil},
		{"the fault that is mended", "This regressed hash from 1.0 s to 3.0 s in the last release.\n", nil},
		{"a hyperfine block", `    Benchmark 1: kit hash (HEAD~)
      Time (mean ± σ):     200.0 ms ±   0.9 ms    [User: 100.0 ms, System: 2.0 ms]
      Range (min … max):   190.0 ms … 210.0 ms    10 runs

    Benchmark 2: kit hash (HEAD)
      Time (mean ± σ):     150.0 ms ±   0.9 ms    [User: 90.0 ms, System: 2.0 ms]
      Range (min … max):   140.0 ms … 160.0 ms    10 runs

    Summary
      kit hash (HEAD) ran
        1.33 ± 0.01 times faster than kit hash (HEAD~)
`, []string{"1 wall -25.0 % (0.2 -> 0.15 s) [kit hash]"}},
		{"hyperfine, the patched one first", `Benchmark #1: ./new/kit hash
  Time (mean ± σ):      1.000 s ±  0.009 s
Benchmark #2: ./old/kit hash
  Time (mean ± σ):      2.000 s ±  0.009 s
`, []string{"3 wall -50.0 % (2 -> 1 s) [kit hash]"}},
		{"hyperfine on a setting", `Benchmark 1: kit --cache=true
  Time (mean ± σ):      1.000 s ±  0.009 s
Benchmark 2: kit --cache=false
  Time (mean ± σ):      2.000 s ±  0.009 s
`, nil},
		{"hyperfine's summary alone", "Summary\n  'patched hash' ran\n    2.00 ± 0.01 times faster than 'master hash'\n", []string{"3 time -50.0 % [hash]"}},
		{"hyperfine over parameters", `Benchmark 1: hash n=1 (old)
  Time (mean ± σ):      1.0 s ±  0.0 s
Benchmark 2: hash n=1 (new)
  Time (mean ± σ):      0.5 s ±  0.0 s
Benchmark 3: hash n=2 (old)
  Time (mean ± σ):      2.0 s ±  0.0 s
Benchmark 4: hash n=2 (new)
  Time (mean ± σ):      1.5 s ±  0.0 s
`, []string{"1 wall -50.0 % (1 -> 0.5 s) [hash n=1]", "5 wall -25.0 % (2 -> 1.5 s) [hash n=2]"}},
		{"a table with gaps", `Medians of ten runs:

  workload   before   after
  ---------  -------  ------
  hash       400 ms   300 ms
  sort       1.0 s    1.1 s
`, []string{"5 time -25.0 % (0.4 -> 0.3 s) [hash (Medians of ten runs)]", "6 time +10.0 % (1 -> 1.1 s) [sort (Medians of ten runs)]"}},
		{"a table with bars and units in its head", `| Benchmark | base (ms) | patched (ms) |
|-----------|----------:|-------------:|
| hash      |    40     |     30       |
`, []string{"3 time -25.0 % (0.04 -> 0.03 s) [hash]"}},
		{"a table of the perf suite", `Test                    HEAD^             HEAD
---------------------------------------------------------
12.1: kit hash          1.20(1.1+0.1)     0.90(0.8+0.1) -25.0%
`, []string{"3 time -25.0 % (1.2 -> 0.9 s) [12.1: kit hash]"}},
		{"blocks of time(1)", "Before:\n\n  $ time kit hash\n  real\t0m2.000s\n  user\t0m1.000s\n  sys\t0m0.100s\n\nAfter:\n\n  $ time kit hash\n  real\t0m1.000s\n  user\t0m0.900s\n  sys\t0m0.100s\n",
			[]string{"4 wall -50.0 % (2 -> 1 s) [time kit hash]", "4 user -10.0 % (1 -> 0.9 s) [time kit hash]", "4 sys +0.0 % (0.1 -> 0.1 s) [time kit hash]"}},
		{"time(1) after a longer prompt", "Before:\n\n\t[me@box tree]$ time kit list HEAD\n\treal\t0m2.0s\n\nAfter:\n\n\t[me@box tree]$ time kit list HEAD\n\treal\t0m1.0s\n",
			[]string{"4 wall -50.0 % (2 -> 1 s) [time kit list HEAD]"}},
		{"time(1), the first side without a label", "Here are the times of the last release.  They are\nthe fastest of three.\n\n$ time kit hash\nreal 0m2.0s\n\nAnd with this patch:\n\n$ time kit hash\nreal 0m1.0s\n",
			[]string{"5 wall -50.0 % (2 -> 1 s) [time kit hash]"}},
		{"time(1) of another command without a label", "$ time kit sort\nreal 0m2.0s\n\nWith this patch:\n\n$ time kit hash --all\nreal 0m1.0s\n", nil},
		{"time(1), another block in between", "# without an index\n$ time kit list --all\nreal 0m1.0s\n\n# the same with the old index\n$ time kit list --all --index\nreal 0m9.0s\n\n# this commit\n$ time kit list --all --index\nreal 0m2.0s\n",
			[]string{"7 wall -77.8 % (9 -> 2 s) [time kit list --all --index]"}},
		{"time(1), detached head, before", "At the top, detached head, before:\n\nreal 0m2.0s\n\nAfter:\n\nreal 0m1.0s\n", []string{"3 wall -50.0 % (2 -> 1 s)"}},
		{"time(1), the program under another name", "(without patch)\n$ /usr/bin/time kit diff --raw\nreal 0m2.0s\n\n(with patch)\n$ /usr/bin/time ../build/kit-diff --raw\nreal 0m1.0s\n",
			[]string{"3 wall -50.0 % (2 -> 1 s) [time kit diff --raw]"}},
		{"hyperfine on two programs, HEAD an argument", `Benchmark 1: kit describe --dirty
  Time (mean ± σ):      1.000 s ±  0.009 s
Benchmark 2: kit describe HEAD && kit refresh -q && kit diff --name-only HEAD
  Time (mean ± σ):      2.000 s ±  0.009 s
`, nil},
		{"time(1) in one line, patched first", "With the patch:\n0.80user 0.10system 0:01.00elapsed 99%CPU\nWithout:\n0.90user 0.10system 0:02.00elapsed 99%CPU\n",
			[]string{"2 wall -50.0 % (2 -> 1 s)", "2 user -11.1 % (0.9 -> 0.8 s)", "2 sys +0.0 % (0.1 -> 0.1 s)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == nil {
				c.want = []string{}
			}
			if d := cmp.Diff(c.want, readings(c.text)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestReadHistory reads the commit messages of a real project, which are not
// kept here: testdata/history.txt holds commit ids and what is read of each, as
//
//	COMMIT right|wrong|missed  REMARK
//	    READING
//
// where the judgement is a human's on the reading that follows: wrong if a
// number is taken for a claim that is none, missed if a claim was passed over.
func TestReadHistory(t *testing.T) {
	repo := os.Getenv("PATCHBENCH_GIT_REPO")
	if repo == "" {
		t.Skip("PATCHBENCH_GIT_REPO names no clone of git's own repository")
	}
	path := filepath.Join("testdata", "history.txt")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]int{}
	var got strings.Builder
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, " ") {
			continue
		}
		got.WriteString(line)
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		judged[fields[1]]++
		message, err := exec.Command("git", "-C", repo, "log", "-1", "--format=%B", fields[0]).Output()
		if err != nil {
			t.Fatalf("commit %s: %v", fields[0], err)
		}
		for _, c := range Read(string(message), 1) {
			c.Subject = ""
			got.WriteString("    " + reading(c) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(string(raw), got.String()); d != "" && !*update {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
	if judged["right"] < 25 {
		t.Errorf("only %d messages are read right: %v", judged["right"], judged)
	}
	t.Logf("%v", judged)
}

func ptr[T any](v T) *T { return &v }

func row(name, metric string, params map[string]string, change, half float64, v bench.Verdict) bench.Comparison {
	s := bench.Step{N: 1, Change: ptr(change), Lo: ptr(change - half), Hi: ptr(change + half), Verdict: v}
	m := bench.MetricFor(metric, bench.Second)
	return bench.Comparison{Benchmark: name, Params: params, Metric: metric, Unit: m.Unit, Better: m.Better, Tested: m.Tested,
		Steps: []bench.Step{s}, Total: s}
}

func TestMatch(t *testing.T) {
	rows := []bench.Comparison{
		row("hash", "wall", nil, -0.24, 0.01, bench.Better),
		row("hash", "cpu", nil, -0.20, 0.01, bench.Better),
		row("hash", "rss", nil, 0.001, 0.002, bench.Same),
		row("sort", "wall", nil, 0.004, 0.06, bench.Unclear),
		row("sort", "cpu", nil, 0.001, 0.004, bench.Same),
		row("scan", "wall", nil, 0.05, 0.01, bench.Worse),
		row("pull-viz", "wall", nil, 0, 0.04, bench.Unclear),
		row("grep", "wall", map[string]string{"threads": "1"}, -0.05, 0.01, bench.Better),
		row("grep", "wall", map[string]string{"threads": "8"}, -0.5, 0.01, bench.Better),
	}
	for _, c := range []struct {
		name, text string
		want       []string // benchmark metric verdict
	}{
		{"confirmed", "hash is 1.33x faster.", []string{"hash wall confirmed"}},
		{"near is near enough", "hash: 30 % faster", []string{"hash wall confirmed"}},
		{"smaller", "hash is 3x faster.", []string{"hash wall smaller"}},
		{"larger", "hash is 5 % faster.", []string{"hash wall larger"}},
		{"another metric", "hash: 1.00 s -> 0.80 s CPU time", []string{"hash cpu confirmed"}},
		{"not seen", "hash uses 20 % less memory", []string{"hash rss not-seen"}},
		{"cpu decides where wall does not", "sort: 10 s -> 5 s", []string{"sort cpu not-seen"}},
		{"opposite", "scan is 10% faster", []string{"scan wall opposite"}},
		{"unclear", "pull-viz is 2% faster", []string{"pull-viz wall unclear"}},
		{"unclear and out of reach", "pull-viz is 2x faster", []string{"pull-viz wall not-seen"}},
		{"a parameter is named", "grep: with 8 threads 2x faster", []string{"grep{threads=8} wall confirmed"}},
		{"no parameter is named", "grep is 2x faster", []string{"grep{threads=1} wall smaller", "grep{threads=8} wall confirmed"}},
		{"no such row", "rebase is 2x faster", []string{"  not-measured"}},
		{"no such metric", "hash: from 30 syscalls to 10 syscalls", []string{"  not-measured"}},
		{"no change is claimed and seen", "hash: rss 10 MiB -> 10 MiB", []string{"hash rss confirmed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range []int{0, 1} {
				var got []string
				for _, m := range Match(Read(c.text, n), rows) {
					got = append(got, fmt.Sprintf("%s %s %s", m.Benchmark, m.Metric, m.Verdict))
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("text %d: -want +got:\n%s", n, d)
				}
			}
		})
	}
	only := rows[:3]
	if got := Match(Read("This is 1.33x faster.", 0), only); len(got) != 1 || got[0].Verdict != bench.Confirmed {
		t.Errorf("with one benchmark a claim without a name gives %+v", got)
	}
	if got := Match(nil, rows); got == nil || len(got) != 0 {
		t.Errorf("no claims give %v, want an empty list", got)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"before: 5:42 CPU time, after: 4:34", "hash: 400ms -> 300ms (25 % faster)", "1.45x faster, -12 %",
		"Benchmark 1: a\n  Time (mean ± σ):  1 ms ± 2 ms\nBenchmark 2: b\n  Time (mean ± σ):  1 ms ± 2 ms\nSummary\n a ran\n 1 times faster than b",
		"Test  HEAD^  HEAD\n1.1: x   1.0(1.0+0.0)   0.0(0.0+0.0)", "a | before | after\n|-|\nx | 1 | 2 ms", "Before:\nreal 0m1.0s\nAfter:\nreal 0m0.0s",
		"from 0 s to 0 s", "from 9,,9 s to ,1 s", "reduces by 900 %", "\xff\xfe from 1 s to 2 s", strings.Repeat("1 s -> ", 900),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Count(text, "\n") + 1
		for _, c := range Match(Read(text, 3), []bench.Comparison{row("a", "wall", nil, 0.1, 0.2, bench.Unclear)}) {
			if c.Line < 1 || c.Line > lines || c.N != 3 || c.Change <= -1 || c.Change != c.Change || len(c.Text) > mostText || strings.ContainsAny(c.Text+c.Subject, "\n\r") {
				t.Errorf("%+v", c)
			}
			if (c.Before == nil) != (c.After == nil) || c.Verdict == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := strings.Repeat("On a tree of 10,000 files hash went from 4.5 s to 3.1 s, which is 1.45x faster, and sort by -12 %.\n\n", 600)
	for b.Loop() {
		Read(text, 1)
	}
}
