package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"patchbench/bench"
	"patchbench/store"
)

// truthSuite is that of testdata/truth/kit.c.
const truthSuite = `
[suite]
name = "truth"

[build]
run = "gcc -O2 -fno-inline -falign-functions=64 -falign-loops=32 -o kit kit.c"
keep = ["kit"]

[[benchmark]]
name = "hash"
run = ["./kit", "hash"]

[[benchmark]]
name = "parse"
run = ["./kit", "parse"]

[[benchmark]]
name = "sort"
run = ["./kit", "sort"]

[[benchmark]]
name = "table"
run = ["./kit", "table"]
`

// edit is what one commit changes in kit.c beside the unused string: "HASH" to
// "102", or nothing.
type edit struct{ name, value string }

// The series of TestTruth: 2 % and 5 % of time, 5 % of memory, and two commits
// that change nothing but the string.
var truth = []edit{{}, {"HASH", "102"}, {"PARSE", "168"}, {"CELLS", "2100000"}, {}}

var truthFlags = []flag{
	{2, "hash", "cpu", bench.Worse, 1, 3},
	{3, "parse", "cpu", bench.Worse, 4, 6},
	{4, "table", "rss", bench.Worse, 4, 6},
}

// truthDir is a folder that a repeated call finds again when PATCHBENCH_DIR names
// one: what is in it is gone on with.
func truthDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PATCHBENCH_DIR")
	if dir == "" {
		return t.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1", name, text)
	}
	return n
}

// makeTruth writes a repository with a commit for base and for each edit, tagged
// v0, v1 ... Every version differs in an unused string of equal length, so that
// no two builds are the same.
func makeTruth(t *testing.T, dir string, series int, edits []edit) {
	t.Helper()
	repo := filepath.Join(dir, "repo")
	if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
		return
	}
	if err := os.RemoveAll(repo); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "truth", "kit.c"))
	if err != nil {
		t.Fatal(err)
	}
	source := string(text)
	define := func(name, value string) {
		before, rest, ok := strings.Cut(source, "#define "+name+" ")
		_, after, ok2 := strings.Cut(rest, "\n")
		if !ok || !ok2 {
			t.Fatalf("kit.c defines no %s", name)
		}
		source = before + "#define " + name + " " + value + "\n" + after
	}
	runGit(t, dir, "init", "-q", "-b", "main", repo)
	for v, e := range append([]edit{{}}, edits...) {
		define("MARK", fmt.Sprintf(`"series %02d version %d"`, series, v))
		if e.name != "" {
			define(e.name, e.value)
		}
		write(t, filepath.Join(repo, "kit.c"), source)
		runGit(t, repo, "add", ".")
		runGit(t, repo, "commit", "-q", "-m", fmt.Sprintf("kit: version %d %s", v, e.name))
		runGit(t, repo, "tag", fmt.Sprintf("v%d", v))
	}
	write(t, filepath.Join(dir, "suite.toml"), truthSuite)
	write(t, filepath.Join(dir, "made"), "")
}

// measured evaluates the series in dir, or goes on with it, or reads what is
// there when it has ended already.
func measured(t *testing.T, bot, dir string, versions int, args ...string) *store.Evaluation {
	t.Helper()
	report := filepath.Join(dir, "out", "report.json")
	read := func() *store.Evaluation {
		text, err := os.ReadFile(report)
		if err != nil {
			return nil
		}
		var e store.Evaluation
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%s: %v", report, err)
		}
		return &e
	}
	if e := read(); e != nil && e.Stopped != store.StoppedInterrupted {
		return e
	}
	db := filepath.Join(dir, "bot.db")
	args = append([]string{"eval", fmt.Sprintf("v0..v%d", versions), "--repo", filepath.Join(dir, "repo"),
		"--suite", filepath.Join(dir, "suite.toml"), "--store", db, "--out", filepath.Join(dir, "out")}, args...)
	if _, err := os.Stat(db); err == nil {
		if status, _, log := botRun(t, bot, append(slices.Clone(args), "--resume", "last")...); status == 0 {
			return read()
		} else if !strings.Contains(log, "no interrupted one") {
			t.Fatalf("go on with %s: status %d\n%s", dir, status, log)
		}
	}
	if status, _, log := botRun(t, bot, args...); status != 0 {
		t.Fatalf("evaluate %s: status %d\n%s", dir, status, log)
	}
	return read()
}

// loaded keeps a processor busy two seconds of three until the test ends, however
// it ends.
func loaded(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `while kill -0 $PPID; do timeout 2 sh -c 'while :; do :; done'; sleep 1; done`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// timeout makes a group of its own; it ends by itself within two seconds.
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		cmd.Wait()
	})
}

func needTruth(t *testing.T, name string) (bot, dir string) {
	t.Helper()
	if os.Getenv("PATCHBENCH_LONG") != name {
		t.Skip("takes a quarter of an hour: deploy/truth.sh runs it")
	}
	for _, tool := range []string{"bwrap", "git", "gcc", "timeout"} {
		needTool(t, tool)
	}
	return buildBot(t), truthDir(t)
}

// flagsOf lists what a report says has changed.
func flagsOf(e *store.Evaluation) (flags []string, comparisons int) {
	for _, c := range e.Results {
		if !c.Tested {
			continue
		}
		comparisons += len(c.Steps)
		for i, s := range append(slices.Clone(c.Steps), c.Total) {
			if s.Verdict != bench.Better && s.Verdict != bench.Worse {
				continue
			}
			where := fmt.Sprintf("at %d", s.N)
			if i == len(c.Steps) {
				where = "in all"
			} else if s.Group != nil {
				where = fmt.Sprintf("in %d-%d", s.Group[0], s.Group[1])
			}
			flags = append(flags, fmt.Sprintf("%s %s %s %s by %+.2f %%", c.Benchmark, c.Metric, s.Verdict, where, 100**s.Change))
		}
	}
	return flags, comparisons
}

// TestAA measures 20 series of eight versions that do the same, 20 rounds each,
// while something else loads the machine. At most two may have any flag.
// deploy/truth.sh runs it; PATCHBENCH_SERIES sets the number of series.
func TestAA(t *testing.T) {
	bot, dir := needTruth(t, "aa")
	loaded(t)
	all := number(t, "PATCHBENCH_SERIES", 20)
	flagged := 0
	var took time.Duration
	for n := 1; n <= all; n++ {
		one := filepath.Join(dir, fmt.Sprintf("aa-%02d", n))
		if err := os.MkdirAll(one, 0o755); err != nil {
			t.Fatal(err)
		}
		makeTruth(t, one, n, make([]edit, 7))
		e := measured(t, bot, one, 7, "--rounds", "20", "--seed", fmt.Sprint(n))
		for _, v := range e.Versions {
			if v.State != bench.Built {
				t.Fatalf("series %d: version %d is %s: equal builds are not measured", n, v.N, v.State)
			}
		}
		flags, comparisons := flagsOf(e)
		if comparisons != 84 || e.Rounds != 20 {
			t.Errorf("series %d: %d comparisons of %d rounds, want 84 of 20", n, comparisons, e.Rounds)
		}
		if len(flags) > 0 {
			flagged++
		}
		time := time.Duration((e.BuildSeconds + e.MeasureSeconds) * 1e9)
		took += time
		t.Logf("series %2d: %.0f s, load %.1f, flags %q, warnings %q", n, time.Seconds(), e.Host.LoadAfter, flags, e.Warnings)
	}
	t.Logf("%d of %d series have a flag; building and measuring took %.1f min", flagged, all, took.Minutes())
	if flagged > all/10 {
		t.Errorf("%d of %d series of equal versions have a flag, at most %d are allowed", flagged, all, all/10)
	}
}

// TestTruth measures a series with 2 % and 5 % of time and 5 % of memory planted,
// with five seeds and rounds until decided. deploy/truth.sh runs it.
func TestTruth(t *testing.T) {
	bot, dir := needTruth(t, "truth")
	all := number(t, "PATCHBENCH_SERIES", 5)
	pinned, grouped, alarms, wrong := make([]int, len(truthFlags)), make([]int, len(truthFlags)), 0, 0
	for seed := 1; seed <= all; seed++ {
		one := filepath.Join(dir, fmt.Sprintf("truth-%02d", seed))
		if err := os.MkdirAll(one, 0o755); err != nil {
			t.Fatal(err)
		}
		makeTruth(t, one, seed, truth)
		e := measured(t, bot, one, len(truth), "--seed", fmt.Sprint(seed), "--budget", "80s")
		pin, group, other, off := judged(e)
		wrong += len(off)
		for i := range truthFlags {
			pinned[i] += pin[i]
			grouped[i] += group[i]
		}
		if len(other) > 0 {
			alarms++
		}
		flags, _ := flagsOf(e)
		rounds := map[string]int{}
		for _, c := range e.Results {
			rounds[c.Benchmark] = c.Rounds
		}
		t.Logf("seed %d: %.0f s, %s, rounds %v, flags %q, of which not planted %q, intervals beside the truth %q", seed, e.BuildSeconds+e.MeasureSeconds, e.Stopped, rounds, flags, other, off)
	}
	for i, w := range truthFlags {
		t.Logf("%s %s at %d: pinned in %d of %d, in a group with it in %d", w.benchmark, w.metric, w.n, pinned[i], all, grouped[i])
		if pinned[i]+grouped[i] < all*3/5 {
			t.Errorf("%s %s at %d was found in %d of %d", w.benchmark, w.metric, w.n, pinned[i]+grouped[i], all)
		}
	}
	t.Logf("a flag that was not planted in %d of %d series; %d of %d intervals beside the truth", alarms, all, wrong, len(truthFlags)*all)
	if alarms > max(1, all/5) {
		t.Errorf("a flag that was not planted in %d of %d series", alarms, all)
	}
	if wrong > max(1, len(truthFlags)*all/5) {
		t.Errorf("%d of %d intervals do not reach what was planted", wrong, len(truthFlags)*all)
	}
}

// judged counts which planted changes a report pins on their patch, or on a
// group with it, and lists its flags that were not planted and the intervals that
// do not reach what was. Wall time may follow, and so may all of table where it
// grows.
func judged(e *store.Evaluation) (pinned, grouped []int, other, off []string) {
	pinned, grouped = make([]int, len(truthFlags)), make([]int, len(truthFlags))
	for _, c := range e.Results {
		for _, s := range c.Steps {
			if s.Verdict != bench.Better && s.Verdict != bench.Worse {
				continue
			}
			text := fmt.Sprintf("%s %s %s at %d by %+.2f %% (%+.2f to %+.2f) %v", c.Benchmark, c.Metric, s.Verdict, s.N, 100**s.Change, 100**s.Lo, 100**s.Hi, s.Group)
			expected := false
			for i, w := range truthFlags {
				in := s.N == w.n || len(s.Group) == 2 && s.Group[0] <= w.n && w.n <= s.Group[1]
				if !in || w.benchmark != c.Benchmark || s.Verdict != w.verdict {
					continue
				}
				expected = expected || w.metric == c.Metric || c.Metric == bench.Wall.Name || w.benchmark == "table"
				switch {
				case w.metric != c.Metric:
					continue
				case s.Group == nil:
					pinned[i] = 1
				default:
					grouped[i] = 1
				}
				if 100**s.Hi < w.lo || 100**s.Lo > w.hi {
					off = append(off, text)
				}
			}
			if !expected {
				other = append(other, text)
			}
		}
	}
	return pinned, grouped, other, off
}
