package tree_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// TestCases holds Apply against the trees that make-apply-cases.sh recorded of
// git am, for a repository of any size. PATCHBENCH_APPLY_CASES names the
// script's output folder and PATCHBENCH_APPLY_REPO the repository.
func TestCases(t *testing.T) {
	dir, repo := os.Getenv("PATCHBENCH_APPLY_CASES"), os.Getenv("PATCHBENCH_APPLY_REPO")
	if dir == "" || repo == "" {
		t.Skip("PATCHBENCH_APPLY_CASES and PATCHBENCH_APPLY_REPO are not set; make the cases with make-apply-cases.sh")
	}
	needGit(t)
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, Variant, Mbox string
		ApplyOnto         string   `json:"apply_onto"`
		ExpectTrees       []string `json:"expect_trees"`
		ExpectFailAt      int      `json:"expect_fail_at"`
		Missing           []int
		Am3               *struct{ Trees []string }
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	r, err := tree.Open(repo)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			if strings.HasPrefix(c.Variant, "hg-") {
				t.Skip("git mailinfo does not read hg mail")
			}
			box, err := os.ReadFile(filepath.Join(dir, c.Mbox))
			if err != nil {
				t.Fatal(err)
			}
			var options []string
			if c.Variant == "mboxrd" {
				options = []string{"--mboxrd"}
			}
			s := series(t, box, options...)
			st, err := r.Apply(t.Context(), mbox.Base{Commit: c.ApplyOnto}, s, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, last := []string{}, c.ApplyOnto
			for _, step := range st.Steps {
				// git am makes no commit of a patch that is there already.
				if step.Commit != last {
					got = append(got, step.Tree)
				}
				last = step.Commit
			}
			want := c.ExpectTrees
			if c.Am3 != nil {
				want = c.Am3.Trees
			}
			if len(c.Missing) > 0 {
				want = want[:min(len(want), c.Missing[0]-1)]
			}
			if !slices.Equal(got, want) {
				t.Errorf("applied %d of %d, git am %d; conflict %+v", len(got), len(s.Patches), len(want), st.Conflict)
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("first other tree: patch %d: %s, git am %s, notes %v", i+1, got[i], want[i], st.Steps[i].Notes)
						break
					}
				}
			}
			if c.ExpectFailAt > 0 && st.Conflict != nil {
				t.Logf("git am refuses %d; conflict %+v", c.ExpectFailAt, *st.Conflict)
			}
		})
	}
}
