package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"patchbench/bench"
	"patchbench/bot/check"
	"patchbench/bot/eval"
	"patchbench/bot/progress"
)

type checkCommand struct {
	Config     string `placeholder:"FILE" help:"Try the service of this file instead: its folders, store, sandbox, projects, mailbox, mail server, GitHub. Nothing is sent."`
	Repo       string `default:"." placeholder:"DIR" help:"The git repository; it is only read. Default: this folder."`
	Base       string `placeholder:"REV" help:"The commit to try the suite on. Default: HEAD."`
	Suite      string `placeholder:"FILE" help:"The suite file. Default: .patchbench.toml, bench.toml or suite.toml of the base."`
	Benchmarks string `placeholder:"REGEX" help:"Only the benchmarks whose name, with its parameters as in grep{n=100}, matches."`
	Rounds     rounds `placeholder:"N" help:"Rounds of two equal builds; more tell the noise better. Default: 5."`
	Budget     budget `placeholder:"2m" help:"Time for these rounds; builds and one run of each benchmark are not counted. Default: 2m."`
	JSON       bool   `name:"json" help:"Print JSON and nothing else."`
	placeFlags
	withFlag
}

func (c *checkCommand) Run(ctx context.Context, t *terminal) error {
	if c.Config != "" {
		return c.service(ctx, t)
	}
	flags := measureFlags{Margin: 1, placeFlags: c.placeFlags}
	if err := flags.check(); err != nil {
		return err
	}
	o := eval.Options{Repo: c.Repo, Base: c.Base, Rounds: int(c.Rounds), Budget: time.Duration(c.Budget), Seed: 1}
	var err error
	if o.Benchmarks, err = pattern(c.Benchmarks); err != nil {
		return err
	}
	if err := readSuite(c.Suite, &o); err != nil {
		return err
	}
	if o.With, err = c.extras(ctx, t, mailFlags{}); err != nil {
		return err
	}
	remove, err := c.place(&o)
	if err != nil {
		return err
	}
	defer remove()
	var end func()
	o.Progress, end = progress.New(t.stderr)
	found, err := eval.Check(ctx, o)
	end()
	if err != nil {
		return stageError(noSpace(err, o.WorkDir))
	}
	r := check.Judge(found)
	if c.JSON {
		err = writeJSON(t.stdout, r)
	} else {
		err = r.Text(t.stdout)
	}
	return errors.Join(err, suiteOutcome(r))
}

// suiteOutcome gives a checked suite's exit status, nil for 0.
func suiteOutcome(r *check.Report) error {
	switch {
	case r.Build.State != bench.Built:
		return &failure{status: statusSeries, err: errors.New("base does not build: see to the suite's build")}
	case !r.OK:
		return usage(fmt.Errorf("suite %s has faults: see above", r.Suite.Name))
	}
	return nil
}
