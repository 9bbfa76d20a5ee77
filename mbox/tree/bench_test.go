package tree_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// longest is the longest series of the cases that PATCHBENCH_APPLY_CASES and
// PATCHBENCH_APPLY_REPO name, as for TestCases.
func longest(b *testing.B) (repo string, base mbox.Base, s *mbox.Series) {
	b.Helper()
	dir, repo := os.Getenv("PATCHBENCH_APPLY_CASES"), os.Getenv("PATCHBENCH_APPLY_REPO")
	if dir == "" || repo == "" {
		b.Skip("PATCHBENCH_APPLY_CASES and PATCHBENCH_APPLY_REPO are not set; make the cases with make-apply-cases.sh")
	}
	needGit(b)
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		b.Fatal(err)
	}
	var cases []struct {
		ID, Mbox  string
		ApplyOnto string `json:"apply_onto"`
		Total     int
		Am        struct {
			OK      bool
			Seconds float64
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		b.Fatal(err)
	}
	best := 0
	for i, c := range cases {
		if c.Am.OK && c.Total > cases[best].Total && !strings.Contains(c.ID, "-hg-") {
			best = i
		}
	}
	box, err := os.ReadFile(filepath.Join(dir, cases[best].Mbox))
	if err != nil {
		b.Fatal(err)
	}
	c := cases[best]
	b.Logf("%s: %d patches, git am took %.0f ms when the case was made", c.ID, c.Total, 1000*c.Am.Seconds)
	return repo, mbox.Base{Commit: c.ApplyOnto}, series(b, box)
}

// BenchmarkApply opens a repository and applies a series to it.
func BenchmarkApply(b *testing.B) {
	repo, base, s := longest(b)
	for b.Loop() {
		r, err := tree.Open(repo)
		if err != nil {
			b.Fatal(err)
		}
		st, err := r.Apply(b.Context(), base, s, tree.Options{})
		if err != nil || st.Conflict != nil {
			b.Fatalf("%v, %+v", err, st.Conflict)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N*len(s.Patches)), "ms/patch")
}

// BenchmarkCheckout writes a base and then each version of a series.
func BenchmarkCheckout(b *testing.B) {
	repo, base, s := longest(b)
	r, err := tree.Open(repo)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	st, err := r.Apply(b.Context(), base, s, tree.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var first, next []time.Duration
	for b.Loop() {
		dir := b.TempDir()
		start := time.Now()
		if err := r.Checkout(b.Context(), base.Commit, dir); err != nil {
			b.Fatal(err)
		}
		first = append(first, time.Since(start))
		at := base.Commit
		for _, step := range st.Steps {
			start = time.Now()
			if err := r.Update(b.Context(), at, step.Commit, dir); err != nil {
				b.Fatal(err)
			}
			next = append(next, time.Since(start))
			at = step.Commit
		}
	}
	slices.Sort(first)
	slices.Sort(next)
	b.ReportMetric(float64(first[len(first)/2].Microseconds())/1000, "ms/checkout")
	b.ReportMetric(float64(next[len(next)/2].Microseconds())/1000, "ms/update")
}
