package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"patchbench/bench/sandbox"
	"patchbench/bot/demo"
)

type demoCommand struct {
	Dir  string  `arg:"" optional:"" placeholder:"DIR" help:"Where repository, series and reports go. Default: a new folder."`
	Seed *uint64 `placeholder:"N" help:"Seed of the order of runs and of the tests. Default: a new one."`
	// Store is not where a user's own evaluations are.
	Store string `placeholder:"FILE" help:"The SQLite file that keeps the evaluation. Default: bot.db in that folder."`
	formatFlag
}

// demoBudget leaves room for six builds below two minutes on two cores.
const demoBudget = 50 * time.Second

func (c *demoCommand) Run(ctx context.Context, t *terminal) error {
	if _, err := exec.LookPath("go"); err != nil {
		return usage(errors.New("the demonstration project is written in Go: install Go, or put its bin folder on PATH"))
	}
	dir, err := c.place()
	if err != nil {
		return err
	}
	if err := demo.Make(dir); err != nil {
		return err
	}
	// Our own code: without a sandbox it runs all the same, and says so.
	sb, err := sandbox.Open(ctx, sandbox.Options{})
	unsafe := errors.Is(err, sandbox.ErrNone)
	if err != nil && !unsafe {
		return err
	}
	if unsafe {
		fmt.Fprintf(t.stderr, "note: %s; the demonstration is our own code and runs without one\n", printable(err.Error()))
	} else {
		sb.Close()
	}
	eval := evalCommand{
		mailFlags:    mailFlags{Files: []string{filepath.Join(dir, "series.mbox")}},
		repoFlags:    repoFlags{Repo: filepath.Join(dir, "repo")},
		measureFlags: measureFlags{Budget: budget(demoBudget), Seed: c.Seed, Margin: 1, placeFlags: placeFlags{Unsafe: unsafe}},
		storeFlag:    storeFlag{Store: cmp.Or(c.Store, filepath.Join(dir, "bot.db"))},
		formatFlag:   c.formatFlag,
		Out:          filepath.Join(dir, "out"),
	}
	if err := eval.Run(ctx, t); err != nil {
		return err
	}
	fmt.Fprintf(t.stderr, "\nrepository  %s\nseries      %s\nreports     %s\nrecord      %s\n",
		eval.Repo, eval.Files[0], eval.Out, eval.Store)
	return nil
}

func (c *demoCommand) place() (string, error) {
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "patchbench-demo-")
		if err != nil {
			return "", usage(fmt.Errorf("no folder for the demonstration: %w; name one, or set TMPDIR", err))
		}
		return dir, nil
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return "", usage(err)
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return "", usage(err)
	}
	if len(entries) > 0 {
		return "", usage(fmt.Errorf("%s is not empty: name a new folder", c.Dir))
	}
	return filepath.Abs(c.Dir)
}
