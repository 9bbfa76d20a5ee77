package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"patchbench/bench"
	"patchbench/store"
)

// plantedSuite measures the planted project as its bench.json says.
const plantedSuite = `
[suite]
name = "kit"

[build]
run = "make -j2 kit"

[[benchmark]]
name = "hash"
run = "./kit hash 15"

[[benchmark]]
name = "table"
run = "./kit table 800000"

[[benchmark]]
name = "sort"
run = "./kit sort 2000000"

[[benchmark]]
name = "parse"
run = "./kit parse 3000"
`

// flag is a verdict that a report must hold: what patch N does to a row, with the
// change in percent.
type flag struct {
	n         int
	benchmark string
	metric    string
	verdict   bench.Verdict
	lo, hi    float64
}

// plantedCase is a mailbox of the planted project and what must be found in it.
type plantedCase struct {
	mbox string
	want []flag
	// states says what is not as it must always be, verdicts what chance may, seldom,
	// have made wrong.
	states   func(t *testing.T, e *store.Evaluation) []string
	verdicts func(e *store.Evaluation) []string
}

var plantedCases = []plantedCase{
	{mbox: "good.mbox", want: []flag{
		{2, "hash", "cpu", bench.Worse, 4, 6},
		{3, "table", "rss", bench.Worse, 17, 21},
	}, states: patch1IsBase},
	{mbox: "series.mbox", want: []flag{
		{2, "hash", "cpu", bench.Worse, 4, 6},
		{3, "table", "rss", bench.Worse, 17, 21},
	}, states: brokenPatches},
	{mbox: "noop.mbox", states: noRounds},
	{mbox: "documents.mbox", states: noRounds},
	{mbox: "cancel.mbox", want: []flag{
		{1, "hash", "cpu", bench.Worse, 4, 6},
		{2, "table", "rss", bench.Worse, 17, 21},
		{3, "hash", "cpu", bench.Better, -6, -4},
	}, verdicts: hashTotalSame},
}

// TestPlanted evaluates a small C project with known effects, end to end. It
// takes some minutes, so it runs when PATCHBENCH_LONG names it: "planted" for
// each mailbox, "planted-seeds" for good.mbox with ten seeds. By design one series
// of twenty may have a flag too many: a mailbox that comes out wrong is evaluated
// with two more seeds, and both must be right. What does not hang on chance (what
// builds, what fails, what needs no rounds) must be right each time.
func TestPlanted(t *testing.T) {
	long := os.Getenv("PATCHBENCH_LONG")
	if !strings.HasPrefix(long, "planted") {
		t.Skip("takes minutes: run with PATCHBENCH_LONG=planted, or deploy/long.sh")
	}
	bot, dir := buildBot(t), makePlanted(t)
	if long == "planted-seeds" {
		right := 0
		for seed := 1; seed <= 10; seed++ {
			bad := evaluatePlanted(t, bot, dir, plantedCases[0], seed, "3m")
			t.Logf("good.mbox, seed %d: %s", seed, rightOr(bad))
			if len(bad) == 0 {
				right++
			}
		}
		t.Logf("%d of 10 seeds right", right)
		if right < 9 {
			t.Errorf("good.mbox: %d of 10 seeds right, want at least 9", right)
		}
		return
	}
	addDocuments(t, dir)
	for _, c := range plantedCases {
		if first := evaluatePlanted(t, bot, dir, c, 1, "4m"); len(first) > 0 {
			t.Logf("%s: %s", c.mbox, rightOr(first))
			second, third := evaluatePlanted(t, bot, dir, c, 2, "4m"), evaluatePlanted(t, bot, dir, c, 3, "4m")
			if len(second)+len(third) > 0 {
				t.Errorf("%s is wrong with two seeds of three: %s; %s; %s", c.mbox, rightOr(first), rightOr(second), rightOr(third))
			}
		}
	}
}

func rightOr(bad []string) string {
	if len(bad) == 0 {
		return "right"
	}
	return strings.Join(bad, "; ")
}

// evaluatePlanted runs the built bot on one mailbox and says what in the report
// is not as planted.
func evaluatePlanted(t *testing.T, bot, dir string, c plantedCase, seed int, budget string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(bot, "eval", filepath.Join(dir, c.mbox), "--repo", filepath.Join(dir, "repo"),
		"--suite", filepath.Join(dir, "suite.toml"), "--store", filepath.Join(dir, "bot.db"), "--out", out,
		"--seed", fmt.Sprint(seed), "--budget", budget)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	t.Logf("%s, seed %d:\n%s", c.mbox, seed, text)
	if err != nil {
		t.Fatalf("bot eval %s: %v\n%s", c.mbox, err, stderr.Bytes())
	}
	data, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e store.Evaluation
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	if c.states != nil {
		for _, text := range c.states(t, &e) {
			t.Errorf("%s, seed %d: %s", c.mbox, seed, text)
		}
	}
	bad := c.compare(&e)
	if c.verdicts != nil {
		bad = append(bad, c.verdicts(&e)...)
	}
	return bad
}

// compare says which wanted flags are missing and which others are there. Wall
// may follow cpu, and the time of table at the patch that empties it is free.
func (c plantedCase) compare(e *store.Evaluation) []string {
	var bad []string
	found := make([]bool, len(c.want))
	for _, r := range e.Results {
		for _, s := range r.Steps {
			if s.Verdict != bench.Better && s.Verdict != bench.Worse {
				continue
			}
			expected := false
			for i, w := range c.want {
				if w.n != s.N || w.benchmark != r.Benchmark {
					continue
				}
				switch {
				case w.metric == r.Metric && w.verdict == s.Verdict:
					found[i], expected = true, true
					if x := 100 * *s.Change; x < w.lo || x > w.hi {
						bad = append(bad, fmt.Sprintf("%s %s at %d: %+.2f %%, want %v to %v", r.Benchmark, r.Metric, s.N, x, w.lo, w.hi))
					}
				case w.metric == "cpu" && r.Metric == "wall" && w.verdict == s.Verdict:
					expected = true
				case w.metric == "rss" && r.Benchmark == "table" && r.Metric != "rss":
					expected = true
				}
			}
			if !expected {
				bad = append(bad, fmt.Sprintf("%s %s is %s at %d by %+.2f %%, which was not planted", r.Benchmark, r.Metric, s.Verdict, s.N, 100**s.Change))
			}
		}
	}
	for i, w := range c.want {
		if !found[i] {
			bad = append(bad, fmt.Sprintf("%s %s at %d was not found", w.benchmark, w.metric, w.n))
		}
	}
	return bad
}

func patch1IsBase(t *testing.T, e *store.Evaluation) []string {
	if v := e.Versions[1]; v.State != bench.SameBuild || v.SameAs == nil || *v.SameAs != 0 {
		return []string{fmt.Sprintf("patch 1 is %s, want the same build as base", v.State)}
	}
	return nil
}

// noRounds says what is not the same without a single round.
func noRounds(t *testing.T, e *store.Evaluation) []string {
	var bad []string
	for _, v := range e.Versions[1:] {
		if v.State != bench.SameBuild || v.SameAs == nil || *v.SameAs != 0 || v.BuildSeconds == 0 {
			bad = append(bad, fmt.Sprintf("%s is %s, want it built, and the same build as base", v.Name, v.State))
		}
	}
	if e.Rounds != 0 || e.Verdict != bench.Same || len(e.Results) != 12 {
		bad = append(bad, fmt.Sprintf("%d rounds of %d rows with verdict %s, want none of 12, same", e.Rounds, len(e.Results), e.Verdict))
	}
	for _, r := range e.Results {
		for _, s := range append(r.Steps, r.Total) {
			if s.Verdict != bench.Same {
				bad = append(bad, fmt.Sprintf("%s %s is %s at %d", r.Benchmark, r.Metric, s.Verdict, s.N))
			}
		}
	}
	return bad
}

// addDocuments makes documents.mbox: five patches of comments and documents.
func addDocuments(t *testing.T, dir string) {
	t.Helper()
	repo := filepath.Join(dir, "repo")
	runGit(t, repo, "checkout", "-q", "-b", "documents", "base")
	for i, edit := range []struct{ file, old, new string }{
		{"hash.c", "/* one pass", "/* a single pass"},
		{"sort.c", "static void merge", "/* Sorts both halves and merges them by way of tmp. */\nstatic void merge"},
		{"kit.h", "/* util.c */", "/*\n * util.c\n */"},
		{"README", "", "Kit is a set of kernels.\n"},
		{"docs/sort.md", "", "# Sorting\n\nA merge sort.\n"},
	} {
		path := filepath.Join(repo, edit.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(path)
		if edit.old != "" && !bytes.Contains(text, []byte(edit.old)) {
			t.Fatalf("%s has no %q", edit.file, edit.old)
		}
		if edit.old == "" {
			text = []byte(edit.new)
		} else {
			text = bytes.Replace(text, []byte(edit.old), []byte(edit.new), 1)
		}
		write(t, path, string(text))
		runGit(t, repo, "add", "-A")
		runGit(t, repo, "commit", "-q", "-m", fmt.Sprintf("documents: change %d", i+1))
	}
	mbox := runGit(t, repo, "format-patch", "--stdout", "--base=base", "base..documents")
	write(t, filepath.Join(dir, "documents.mbox"), mbox)
	runGit(t, repo, "checkout", "-q", "main")
}

func brokenPatches(t *testing.T, e *store.Evaluation) []string {
	bad := patch1IsBase(t, e)
	if v := e.Versions[4]; v.State != bench.BuildFailed || !strings.Contains(v.LogTail, "merge") {
		bad = append(bad, fmt.Sprintf("patch 4 is %s with log %q, want it not to build because of merge", v.State, v.LogTail))
	}
	failed := false
	for _, f := range e.Failures {
		failed = failed || f.N == 5 && f.Benchmark == "sort" && f.Signal == "SIGSEGV"
	}
	if !failed {
		bad = append(bad, fmt.Sprintf("sort at 5 with SIGSEGV is not among the failures %+v", e.Failures))
	}
	for _, r := range e.Results {
		if s := r.Steps[4]; r.Benchmark == "sort" && s.Verdict != bench.NotMeasured {
			bad = append(bad, fmt.Sprintf("sort %s at 5 is %s, want not-measured", r.Metric, s.Verdict))
		}
	}
	return bad
}

func hashTotalSame(e *store.Evaluation) []string {
	for _, r := range e.Results {
		if r.Benchmark == "hash" && r.Metric == "cpu" && r.Total.Verdict != bench.Same {
			return []string{fmt.Sprintf("hash cpu from base to tip is %s, want same", r.Total.Verdict)}
		}
	}
	return nil
}

// makePlanted makes the planted project with the script of the shared cases.
func makePlanted(t *testing.T) string {
	t.Helper()
	script := filepath.Join(sharedCases(t), "make-planted.sh")
	for _, tool := range []string{"bash", "git", "gcc", "make", "perl", "python3"} {
		needTool(t, tool)
	}
	dir := filepath.Join(t.TempDir(), "planted")
	if out, err := exec.Command("bash", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("make the planted project: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "suite.toml"), []byte(plantedSuite), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// buildBot builds the command as it is delivered, without cgo.
func buildBot(t testing.TB) string {
	t.Helper()
	bot := filepath.Join(t.TempDir(), "bot")
	cmd := exec.Command("go", "build", "-o", bot, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the bot: %v\n%s", err, out)
	}
	return bot
}

// sharedCases is the folder of handed cases.
func sharedCases(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("PATCHBENCH_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	dir, err := filepath.Abs(filepath.Join(shared, "cases"))
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		missing(t, "the shared cases (%v); name their parent folder in PATCHBENCH_SHARED", err)
	}
	return dir
}

func needTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, "%s", name)
	}
}

// missing skips a test for want of something, and fails it in CI.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	text := "needs " + fmt.Sprintf(format, args...)
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
}
