package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample"
	"patchbench/bot/report"
	"patchbench/store"
)

type compareCommand struct {
	Files  []string `arg:"" name:"samples" help:"A samples.jsonl (a report.json beside it tells of builds and failures), or Go benchmark output: one file for each version, in order."`
	Rounds bool     `name:"fixed" help:"The number of rounds was fixed beforehand: test once, with all of alpha."`
	Seed   uint64   `default:"1" placeholder:"N" help:"Seed of the permutation tests. Default: the evaluation's own, else 1."`
	Margin float64  `default:"1" placeholder:"PERCENT" help:"Changes below this many percent count as the same. Default: 1."`
	JSON   bool     `name:"json" help:"Print JSON and nothing else."`
}

func (c *compareCommand) Run(ctx context.Context, t *terminal) error {
	in, err := c.read(t)
	if err != nil {
		return usage(err)
	}
	r := compare.Compare(in.versions, in.samples, in.failures, in.options)
	if c.JSON {
		return writeJSON(t.stdout, map[string]any{"results": orEmpty(r.Comparisons), "warnings": orEmpty(r.Warnings)})
	}
	e := &store.Evaluation{Versions: in.versions, Results: r.Comparisons, Failures: in.failures, Warnings: r.Warnings,
		Margin: in.options.Margin, Seed: in.options.Seed}
	e.Verdict, e.Headline = compare.Summary(e.Versions, e.Results, e.Failures)
	return report.Text(t.stdout, e, report.Options{Color: colourful(t.stdout)})
}

// comparison is what is known of some samples.
type comparison struct {
	versions []bench.Version
	samples  []bench.Sample
	failures []bench.Failure
	options  compare.Options
}

func (c *compareCommand) read(t *terminal) (comparison, error) {
	in := comparison{options: compare.Options{Margin: c.Margin / 100, Seed: c.Seed, Final: true}}
	var names []string
	var err error
	if len(c.Files) == 1 && (c.Files[0] == "-" || strings.HasSuffix(c.Files[0], ".jsonl")) {
		err = in.readOurs(c.Files[0], t.stdin)
	} else {
		in.samples, names, err = sample.ReadGoBench(c.Files...)
	}
	if err != nil {
		return in, err
	}
	if len(in.samples) == 0 {
		return in, fmt.Errorf("%s: no samples", strings.Join(c.Files, ", "))
	}
	last := 0
	rounds := 0
	for _, s := range in.samples {
		last, rounds = max(last, s.Version), max(rounds, s.Round)
	}
	if in.versions == nil {
		for n := range last + 1 {
			v := bench.Version{N: n, Name: fmt.Sprintf("%d/%d", n, last), State: bench.Built}
			if n == 0 {
				v.Name = "base"
			}
			if n < len(names) {
				v.Name = names[n]
			}
			in.versions = append(in.versions, v)
		}
	}
	if c.Rounds || names != nil {
		in.options.Looks = []int{rounds}
	}
	return in, nil
}

// readOurs reads a samples file and, if it is there, the report beside it.
func (in *comparison) readOurs(name string, stdin io.Reader) error {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		r = f
	}
	var err error
	if in.samples, err = sample.ReadSamples(name, r); err != nil || name == "-" {
		return err
	}
	path := filepath.Join(filepath.Dir(name), "report.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var e store.Evaluation
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	in.versions, in.failures = e.Versions, e.Failures
	in.options.Seed, in.options.Margin = e.Seed, e.Margin
	if e.FixedRounds > 0 {
		in.options.Looks = []int{e.FixedRounds}
	}
	return nil
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
