package tree_test

import (
	"encoding/json"
	"fmt"
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

// BenchmarkCheckout writes a base in full, brings it to each version of a series, and
// writes each version into a folder of its own. PATCHBENCH_CHECKOUT_DIR is a folder
// on another file system.
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
	took := map[string][]time.Duration{}
	timed := func(what string, f func() error) {
		start := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		took[what] = append(took[what], time.Since(start))
	}
	for b.Loop() {
		dir, err := os.MkdirTemp(os.Getenv("PATCHBENCH_CHECKOUT_DIR"), "")
		if err != nil {
			b.Fatal(err)
		}
		p := r.Pristine(filepath.Join(dir, "pristine"))
		timed("ms/full", func() error { return p.Update(b.Context(), base.Commit) })
		for i, step := range st.Steps {
			timed("ms/update", func() error { return p.Update(b.Context(), step.Commit) })
			timed("ms/checkout", func() error { return p.Checkout(b.Context(), step.Commit, filepath.Join(dir, fmt.Sprint(i))) })
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	for what, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, what)
	}
}
