package main

import (
	"context"

	"patchbench/bench/compare"
	"patchbench/bench/headline"
	"patchbench/bot/report"
	"patchbench/bot/samples"
	"patchbench/store"
)

type compareCommand struct {
	Files  []string `arg:"" name:"samples" help:"A samples.jsonl (a report.json beside it tells of builds and failures), or Go benchmark output: one file for each version, in order."`
	Rounds bool     `name:"fixed" help:"The number of rounds was fixed beforehand: test once, with all of alpha."`
	Seed   *uint64  `placeholder:"N" help:"Seed of the permutation tests. Default: the evaluation's own, else 1."`
	Margin *float64 `placeholder:"PERCENT" help:"Changes below this many percent count as the same. Default: the evaluation's own, else 1."`
	JSON   bool     `name:"json" help:"Print JSON and nothing else."`
}

func (c *compareCommand) Run(ctx context.Context, t *terminal) error {
	in, err := samples.Read(c.Files, t.stdin, c.Rounds)
	if err != nil {
		return usage(err)
	}
	// What the user says comes before what the evaluation had.
	if c.Seed != nil {
		in.Options.Seed = *c.Seed
	}
	if c.Margin != nil {
		if err := checkMargin(*c.Margin); err != nil {
			return err
		}
		in.Options.Margin = *c.Margin / 100
	}
	r := compare.Compare(in.Versions, in.Samples, in.Failures, in.Options)
	r.Warnings = append(r.Warnings, in.Warnings...)
	if c.JSON {
		return writeJSON(t.stdout, map[string]any{"results": orEmpty(r.Comparisons), "warnings": orEmpty(r.Warnings)})
	}
	e := &store.Evaluation{Versions: in.Versions, Results: r.Comparisons, Failures: in.Failures, Warnings: r.Warnings,
		Margin: in.Options.Margin, Seed: in.Options.Seed}
	e.Verdict, e.Headline = headline.Of(e.Versions, e.Results, e.Failures)
	return report.Text(t.stdout, e, report.Options{Color: colourful(t.stdout)})
}
