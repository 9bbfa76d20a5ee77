package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/store"
)

const accounting = "../deploy/suites/accounting"

// sets are the accounting suite's file sets, with their files at small size.
var sets = map[string]int{
	"zero_small": 1, "zero_large": 1, "random_medium": 1, "halfzero_large": 1, "random_large": 1,
	"release": 16, "releases": 160, "bigfiles": 10, "everything": 5 + 16 + 160 + 10,
}

// TestAccounting runs the accounting suite at its small size from end to end: every
// set and operation has its figures on both versions.
func TestAccounting(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of measuring, left out with -short")
	}
	var want []string
	for set := range sets {
		want = append(want, rowsOf("git", set, "wall", "cpu", "rss", "size")...)
	}
	want = append(want, "pulls/serve  cpu")
	for _, pull := range []string{"pull-release", "pull-random"} {
		for _, m := range []string{"wall", "cpu", "user", "sys", "slowdown"} {
			want = append(want, "pulls/"+pull+"  "+m)
		}
	}
	account(t, `^(git|pulls)\{.*size=small`, want)
}

// TestAccountingExact counts what the operations allocate and copy.
func TestAccountingExact(t *testing.T) {
	if !strings.Contains(os.Getenv("PATCHBENCH_LONG"), "accounting") {
		t.Skip("takes minutes under valgrind; PATCHBENCH_LONG=accounting runs it")
	}
	needTool(t, "valgrind")
	account(t, `^git-exact\{files=zero_small,size=small`, rowsOf("git-exact", "zero_small", "cpu", "rss", "size", "malloc", "copied"))
}

// rowsOf names the rows of a set's operations.
func rowsOf(benchmark, set string, metrics ...string) (rows []string) {
	for _, op := range []string{"add", "commit", "checkout", "serve", "pull"} {
		for _, m := range metrics {
			rows = append(rows, benchmark+"/"+op+" "+set+" "+m)
		}
	}
	return rows
}

// account evaluates one patch by the suite's benchmarks that match, and checks that
// these rows, given as "BENCHMARK SET METRIC", have a figure on both versions.
func account(t *testing.T, benchmarks string, want []string) {
	t.Helper()
	for _, tool := range []string{"git", "python3", "bwrap"} {
		needTool(t, tool)
	}
	dir := reachableDir(t)
	repo := filepath.Join(dir, "repo")
	project(t, repo)
	cmd := exec.Command(buildBot(t), "eval", "base..loose", "--repo", repo, "--suite", filepath.Join(accounting, "suite.toml"),
		"--benchmarks", benchmarks, "--rounds", "1", "--format", "json", "--store", filepath.Join(dir, "bot.db"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("bot eval: %v\n%s", err, stderr.Bytes())
	}
	var e store.Evaluation
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	for _, f := range e.Failures {
		t.Errorf("%s fails on version %d: %s %s\n%s", f.Benchmark, f.N, f.Signal, f.Reason, f.LogTail)
	}
	have := map[string]bool{}
	for _, r := range e.Results {
		measured := len(r.Values) == 2
		for _, v := range r.Values {
			// By the kernel's tick a short run has user time alone, or sys.
			part := r.Metric == "user" || r.Metric == "sys"
			measured = measured && v.Median != nil && (*v.Median > 0 || part)
		}
		row := r.Benchmark + " " + r.Params["files"] + " " + r.Metric
		have[row] = have[row] || measured
	}
	for _, row := range want {
		if !have[row] {
			t.Errorf("no figures on both versions: %s", row)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(e.Warnings, "\n"))
	}
}

// project makes the suite's repository.
func project(t *testing.T, repo string, args ...string) {
	t.Helper()
	if out, err := exec.Command("sh", append([]string{filepath.Join(accounting, "project.sh"), repo}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("project.sh: %v\n%s", err, out)
	}
}

// TestAccountingSets checks what the file sets are made of, and that they are the
// same each time.
func TestAccountingSets(t *testing.T) {
	needTool(t, "python3")
	for set, files := range sets {
		t.Run(set, func(t *testing.T) {
			first, again := makeSet(t, accounting, set), makeSet(t, accounting, set)
			if d := cmp.Diff(digests(first), digests(again)); d != "" {
				t.Errorf("made twice (-first +second):\n%s", d)
			}
			if len(first) != files {
				t.Errorf("%d files, want %d", len(first), files)
			}
			zeros := func(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
			data := first[set]
			switch set {
			case "zero_small":
				if len(data) != 10<<10 || !zeros(data) {
					t.Errorf("%d bytes, zeros: %v", len(data), zeros(data))
				}
			case "zero_large":
				if len(data) != 1<<20 || !zeros(data) {
					t.Errorf("%d bytes, zeros: %v", len(data), zeros(data))
				}
			case "halfzero_large":
				if half := len(data) / 2; len(data) != 1<<20 || !zeros(data[:half]) || bytes.Count(data[half:], []byte{0}) > half/100 {
					t.Errorf("%d bytes, %d of them zero", len(data), bytes.Count(data, []byte{0}))
				}
			case "random_medium", "random_large":
				if n := bytes.Count(data, []byte{0}); n < len(data)/512 || n > len(data)/128 {
					t.Errorf("%d of %d bytes are zero: want about one in 256", n, len(data))
				}
			case "releases":
				changed := 0
				for name, text := range first {
					if rest, ok := strings.CutPrefix(name, "release00/"); ok && !bytes.Equal(text, first["release01/"+rest]) {
						changed++
					}
				}
				if changed == 0 || changed > 8 {
					t.Errorf("%d of 16 files differ between two releases: want some, and fewer than half", changed)
				}
			}
		})
	}
}

// TestAccountingReleases takes the releases from a repository's tags.
func TestAccountingReleases(t *testing.T) {
	for _, tool := range []string{"git", "python3"} {
		needTool(t, tool)
	}
	from, repo := t.TempDir(), filepath.Join(t.TempDir(), "repo")
	runGit(t, from, "init", "-q", "-b", "main")
	for _, tag := range []string{"v1", "v2"} {
		write(t, filepath.Join(from, "kit.c"), tag+"\n")
		runGit(t, from, "add", ".")
		runGit(t, from, "commit", "-q", "-m", tag)
		runGit(t, from, "tag", tag)
	}
	project(t, repo, from, "v1", "v2")
	for set, want := range map[string]map[string]string{
		"release":  {"kit.c": "v2\n"},
		"releases": {"release00/kit.c": "v1\n", "release01/kit.c": "v2\n"},
	} {
		got := map[string]string{}
		for name, data := range makeSet(t, filepath.Join(repo, "accounting"), set) {
			got[name] = string(data)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", set, d)
		}
	}
	if out := runGit(t, repo, "status", "--porcelain"); out != "" {
		t.Errorf("not committed: %s", out)
	}
	for _, args := range [][]string{{}, {repo, from}, {repo}} {
		if err := exec.Command("sh", append([]string{filepath.Join(accounting, "project.sh")}, args...)...).Run(); err == nil {
			t.Errorf("project.sh %v succeeds", args)
		}
	}
}

// makeSet gives the files of a set at small size, by their names.
func makeSet(t *testing.T, scripts, set string) map[string][]byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "set")
	cmd := exec.Command("python3", filepath.Join(scripts, "sets.py"), set, "small", dir)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sets.py %s: %v\n%s", set, err, out)
	}
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[rel], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func digests(files map[string][]byte) []string {
	var list []string
	for name, data := range files {
		list = append(list, fmt.Sprintf("%s %x", name, sha256.Sum256(data)))
	}
	slices.Sort(list)
	return list
}
