// Package demo makes the demonstration: a small project of our own and a series for it.
// In goes an empty folder; out come a git repository and a mailbox in it, the same each
// time. What is in them lies in deploy/demo.
package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/tools/txtar"

	"patchbench/deploy"
)

// Make writes the demonstration's repository and series below dir.
func Make(dir string) error {
	repo := filepath.Join(dir, "repo")
	r, err := git.PlainInitWithOptions(repo, &git.PlainInitOptions{
		InitOptions: git.InitOptions{DefaultBranch: plumbing.NewBranchReferenceName("main")}})
	if err != nil {
		return err
	}
	w, err := r.Worktree()
	if err != nil {
		return err
	}
	for _, f := range txtar.Parse(deploy.DemoBase).Files {
		if err := os.WriteFile(filepath.Join(repo, f.Name), f.Data, 0o644); err != nil {
			return err
		}
		if _, err := w.Add(f.Name); err != nil {
			return err
		}
	}
	who := &object.Signature{Name: "Patchbench demo", Email: "demo@example.org",
		When: time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)}
	base, err := w.Commit("tally: four small workloads\n", &git.CommitOptions{Author: who, Committer: who})
	if err != nil {
		return err
	}
	if !bytes.Contains(deploy.DemoSeries, []byte("base-commit: "+base.String())) {
		return fmt.Errorf("the demonstration's series was not made for its base %s: see deploy/demo/README.md", base)
	}
	return os.WriteFile(filepath.Join(dir, "series.mbox"), deploy.DemoSeries, 0o644)
}
