package build

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"patchbench/bench"
)

// TestPlanted builds the versions of the planted project, whose patches are
// known: p1 changes a comment alone.
func TestPlanted(t *testing.T) {
	need(t, "bash", "git", "gcc", "make", "tar")
	shared := cmp.Or(os.Getenv("PATCHBENCH_SHARED"), filepath.Join("..", "..", "..", "shared"))
	script, err := filepath.Abs(filepath.Join(shared, "cases", "make-planted.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script); err != nil {
		lacking(t, "the planted project is not there: "+err.Error())
	}
	project := filepath.Join(folder(t), "planted")
	if out, err := exec.Command("bash", script, project).CombinedOutput(); err != nil {
		t.Fatalf("make the planted project: %v\n%s", err, out)
	}
	sb := open(t, false)
	for _, keep := range [][]string{nil, {"kit"}} {
		suite := bench.Suite{Build: bench.Recipe{Run: sh("make -j2 kit"), Keep: keep}, Benchmarks: slices.Concat(line("./kit hash 15"), line("./kit sort 2000000"))}
		b := New(sb, &suite, Options{})
		var got []string
		seen := map[string]string{}
		for i, tag := range []string{"base", "p1", "p2", "p3", "p4", "p5"} {
			dir := folder(t)
			export(t, filepath.Join(project, "repo"), tag, filepath.Join(dir, "src"))
			made, err := b.Build(t.Context(), i, dir)
			if err != nil {
				t.Fatal(err)
			}
			state := made.State
			if made.State == bench.Built {
				if first, ok := seen[made.Digest]; ok {
					state = "as " + first
				} else {
					seen[made.Digest] = tag
				}
			} else if !strings.Contains(made.LogTail, "error:") || !strings.HasSuffix(made.LogTail, "make -j2 kit: exit status 2\n") {
				t.Errorf("%s: the end of the log is:\n%s", tag, made.LogTail)
			}
			got = append(got, tag+" "+state)
		}
		want := []string{"base built", "p1 as base", "p2 built", "p3 built", "p4 build-failed", "p5 built"}
		if !slices.Equal(got, want) {
			t.Errorf("with keep %q: %q, want %q", keep, got, want)
		}
	}
}

// export writes the tree of a revision into a new folder.
func export(t *testing.T, repo, revision, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var files, errs bytes.Buffer
	archive := exec.Command("git", "-C", repo, "archive", revision)
	archive.Stdout, archive.Stderr = &files, &errs
	if err := archive.Run(); err != nil {
		t.Fatalf("git archive: %v: %s", err, &errs)
	}
	unpack := exec.Command("tar", "-xf", "-", "-C", dir)
	unpack.Stdin = &files
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
}
