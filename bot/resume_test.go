package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/store"
)

// countdown is a repository of one shell script that counts, each commit to
// another number. Its folder and the commits' numbers are returned.
func countdown(t *testing.T, counts ...int) string {
	t.Helper()
	repo := filepath.Join(reachableDir(t), "repo")
	runGit(t, filepath.Dir(repo), "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), "[[benchmark]]\nname = \"count\"\nrun = \"sh work.sh\"\n[[benchmark]]\nname = \"nap\"\nrun = \"sh nap.sh\"\n")
	write(t, filepath.Join(repo, "nap.sh"), "sleep 0.01\n")
	for i, n := range counts {
		write(t, filepath.Join(repo, "work.sh"), fmt.Sprintf("i=0\nwhile [ $i -lt %d ]; do i=$((i + 1)); done\n", n))
		runGit(t, repo, "add", ".")
		runGit(t, repo, "commit", "-q", "-m", fmt.Sprintf("count to %d", n))
		runGit(t, repo, "tag", fmt.Sprintf("v%d", i))
	}
	return repo
}

// botRun runs the command and gives its status with what it printed.
func botRun(t *testing.T, bot string, args ...string) (int, string, string) {
	t.Helper()
	cmd := exec.Command(bot, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, stdout.String(), stderr.String()
	case errors.As(err, &exit):
		return exit.ExitCode(), stdout.String(), stderr.String()
	}
	t.Fatal(err)
	return 0, "", ""
}

// record reads the newest evaluation of a store and its samples.
func record(t *testing.T, path string) (*store.Evaluation, []bench.Sample) {
	t.Helper()
	ctx := context.Background()
	st, err := store.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	list, err := st.List(ctx)
	if err != nil || len(list) == 0 {
		return nil, nil
	}
	e, err := st.Evaluation(ctx, list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var all []bench.Sample
	for s, err := range st.Samples(ctx, e.ID) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return e, all
}

// An evaluation that was interrupted, or whose bot was killed, goes on with
// --resume: one record, the same seed, the rounds that it lacks and no other.
func TestResume(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot := buildBot(t)
	for name, end := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			repo := countdown(t, 20000, 20001, 20002)
			db := filepath.Join(t.TempDir(), "bot.db")
			args := []string{"eval", "v0..v2", "--repo", repo, "--store", db}
			const rounds = 40
			cmd := exec.Command(bot, append(args, "--rounds", fmt.Sprint(rounds), "--seed", "7")...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "some rounds", func() bool {
				_, s := record(t, db)
				return len(s) > 0 && s[len(s)-1].Round >= 3
			})
			if err := cmd.Process.Signal(end); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			e, before := record(t, db)
			if e.Stopped != store.StoppedInterrupted || len(before) == 0 {
				t.Fatalf("stopped = %q with %d samples, want interrupted with some", e.Stopped, len(before))
			}

			for _, c := range []struct {
				args []string
				want string
			}{
				{append(slices.Clone(args), "--resume", "nowhere"), `no evaluation "nowhere"`},
				{append(slices.Clone(args), "--resume", "last", "--seed", "8"), "its seed is 7, not 8"},
				{append(slices.Clone(args), "--resume", "last", "--rounds", "50"), "it was not to have 50 rounds"},
				{[]string{"eval", "v1..v2", "--repo", repo, "--store", db, "--resume", "last"}, "no interrupted one of this series"},
				{[]string{"eval", "v1..v2", "--repo", repo, "--store", db, "--resume", e.ID}, "it has 3 versions and this series 2"},
			} {
				if status, _, log := botRun(t, bot, c.args...); status != 2 || !strings.Contains(log, c.want) {
					t.Errorf("%v: status %d, want 2 with %q:\n%s", c.args, status, c.want, log)
				}
			}

			out := filepath.Join(t.TempDir(), "out")
			status, text, log := botRun(t, bot, append(args, "--resume", "last", "--out", out)...)
			if status != 0 {
				t.Fatalf("status %d\n%s", status, log)
			}
			if !regexp.MustCompile(`interrupted after \d+ rounds, continued on`).MatchString(text) {
				t.Errorf("the report does not say that it was continued:\n%s", text)
			}
			f, after := record(t, db)
			if f.ID != e.ID || f.Seed != 7 || f.FixedRounds != rounds || f.Rounds != rounds || f.Stopped != store.StoppedDecided || !f.Created.Equal(e.Created) {
				t.Errorf("evaluation %s, seed %d, %d of %d rounds, %s; want %s, 7, all of %d, decided", f.ID, f.Seed, f.Rounds, f.FixedRounds, f.Stopped, e.ID, rounds)
			}
			if len(after) <= len(before) {
				t.Fatalf("%d samples after %d", len(after), len(before))
			}
			if d := cmp.Diff(before, after[:len(before)]); d != "" {
				t.Errorf("the first samples changed (-before +after):\n%s", d)
			}
			checkRounds(t, after, rounds)
			// What is in the record is what was reported.
			if status, json, _ := botRun(t, bot, "compare", filepath.Join(out, "samples.jsonl"), "--json"); status != 0 || !sameResults(t, json, f) {
				t.Errorf("bot compare on the samples: status %d, or other verdicts", status)
			}
			if status, _, log := botRun(t, bot, append(args, "--resume", e.ID)...); status != 2 || !strings.Contains(log, "was not interrupted") {
				t.Errorf("going on once more: status %d\n%s", status, log)
			}
		})
	}
}

// checkRounds: every version has each round of each benchmark once.
func checkRounds(t *testing.T, samples []bench.Sample, rounds int) {
	t.Helper()
	count := map[string]int{}
	for _, s := range samples {
		if s.Metric == bench.Wall.Name && s.Discarded == "" {
			count[fmt.Sprintf("%s round %d version %d twin %v", s.Benchmark, s.Round, s.Version, s.Twin)]++
		}
	}
	for k, n := range count {
		if n != 1 {
			t.Errorf("%s was run %d times", k, n)
		}
	}
	if want := 2 * rounds * 4; len(count) != want {
		t.Errorf("%d runs in the record, want %d", len(count), want)
	}
}

func sameResults(t *testing.T, text string, e *store.Evaluation) bool {
	t.Helper()
	var got struct{ Results []bench.Comparison }
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	var a, b []string
	for _, c := range got.Results {
		a = append(a, fmt.Sprint(c.Benchmark, c.Metric, c.Rounds, c.Total.Verdict))
	}
	for _, c := range e.Results {
		b = append(b, fmt.Sprint(c.Benchmark, c.Metric, c.Rounds, c.Total.Verdict))
	}
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("(-evaluation +compare):\n%s", d)
		return false
	}
	return true
}

// With --ends-first only the benchmark that moved is run on the versions in
// between.
func TestEndsFirst(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot, repo := buildBot(t), countdown(t, 10000, 10001, 15000, 15001)
	db := filepath.Join(t.TempDir(), "bot.db")
	status, text, log := botRun(t, bot, "eval", "v0..v3", "--repo", repo, "--store", db, "--rounds", "12", "--seed", "3", "--ends-first", "--margin", "40")
	if status != 0 {
		t.Fatalf("status %d\n%s", status, log)
	}
	e, samples := record(t, db)
	runs := map[string]int{}
	for _, s := range samples {
		if s.Metric == bench.Wall.Name && s.Discarded == "" && !s.Twin {
			runs[fmt.Sprintf("%s %d", s.Benchmark, s.Version)]++
		}
	}
	want := map[string]int{"nap 0": 12, "nap 3": 12, "count 0": 24, "count 1": 12, "count 2": 12, "count 3": 24}
	warning := "1 of 2 benchmarks are the same"
	if runs["nap 1"] > 0 {
		// On a busy machine it cannot be told that a nap is as long as before.
		want["nap 0"], want["nap 1"], want["nap 2"], want["nap 3"] = 24, 12, 12, 24
		warning = ""
	}
	if d := cmp.Diff(want, runs); d != "" {
		t.Errorf("runs (-want +got):\n%s\n%v", d, e.Warnings)
	}
	for _, c := range e.Results {
		if c.Tested && c.Rounds != 12 {
			t.Errorf("%s %s has %d rounds, want 12", c.Benchmark, c.Metric, c.Rounds)
		}
		if c.Tested && c.Benchmark == "nap" && runs["nap 1"] == 0 && c.Steps[0].Verdict != bench.NotMeasured {
			t.Errorf("nap %s was not run on patch 1, and is %s there", c.Metric, c.Steps[0].Verdict)
		}
	}
	if !strings.Contains(strings.Join(e.Warnings, "\n"), warning) {
		t.Errorf("warnings %q do not tell of the versions left out", e.Warnings)
	}
	if !strings.Contains(e.Command, "--ends-first") {
		t.Errorf("reproduced by %q, without --ends-first\n%s", e.Command, text)
	}
}
