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
	"patchbench/bench/headline"
	"patchbench/bench/sample/jsonl"
	"patchbench/bench/sample/parse/gobench"
	"patchbench/bot/report"
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
	in, err := c.read(t)
	if err != nil {
		return usage(err)
	}
	r := compare.Compare(in.versions, in.samples, in.failures, in.options)
	r.Warnings = append(r.Warnings, in.warnings...)
	if c.JSON {
		return writeJSON(t.stdout, map[string]any{"results": orEmpty(r.Comparisons), "warnings": orEmpty(r.Warnings)})
	}
	e := &store.Evaluation{Versions: in.versions, Results: r.Comparisons, Failures: in.failures, Warnings: r.Warnings,
		Margin: in.options.Margin, Seed: in.options.Seed}
	e.Verdict, e.Headline = headline.Of(e.Versions, e.Results, e.Failures)
	return report.Text(t.stdout, e, report.Options{Color: colourful(t.stdout)})
}

// comparison is what is known of some samples.
type comparison struct {
	versions []bench.Version
	samples  []bench.Sample
	failures []bench.Failure
	options  compare.Options
	warnings []string
}

func (c *compareCommand) read(t *terminal) (comparison, error) {
	in := comparison{options: compare.Options{Margin: 0.01, Seed: 1, Final: true}}
	var names []string
	var err error
	if len(c.Files) == 1 && (c.Files[0] == "-" || strings.HasSuffix(c.Files[0], ".jsonl")) {
		err = in.readOurs(c.Files[0], t.stdin)
	} else {
		in.samples, names, err = gobench.ReadFiles(c.Files...)
	}
	if err != nil {
		return in, err
	}
	if len(in.samples) == 0 {
		return in, fmt.Errorf("%s: no samples", strings.Join(c.Files, ", "))
	}
	// What the user says comes before what the evaluation had.
	if c.Seed != nil {
		in.options.Seed = *c.Seed
	}
	if c.Margin != nil {
		if err := checkMargin(*c.Margin); err != nil {
			return in, err
		}
		in.options.Margin = *c.Margin / 100
	}
	last := 0
	rounds := 0
	for _, s := range in.samples {
		last, rounds = max(last, s.Version), max(rounds, s.Round)
	}
	if last == 0 {
		return in, fmt.Errorf("%s: samples of one version only: there is nothing to compare", strings.Join(c.Files, ", "))
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
	if names != nil {
		in.warnings = append(ordered(in.samples, len(c.Files)), uneven(in.samples, names)...)
	}
	return in, nil
}

// ordered says what the order of Go benchmark results leaves in doubt. The n-th
// runs of all versions are taken as a round, which they are only when the
// versions ran in turn.
func ordered(samples []bench.Sample, files int) []string {
	const advice = "a change of the machine's speed meanwhile would look like one of the code: run the versions in turn, one -count=1 each"
	if files > 1 {
		return []string{"the files do not say in which order the versions ran; if one after the other, " + advice}
	}
	seen := map[int]bool{}
	last := -1
	for _, s := range samples {
		if s.Version != last && seen[s.Version] {
			return nil // it comes back: the versions ran in turn
		}
		seen[s.Version], last = true, s.Version
	}
	return []string{"the versions ran one after the other: " + advice}
}

// uneven tells of benchmarks that have more runs in one version than in another:
// the runs without a counterpart are left out.
func uneven(samples []bench.Sample, names []string) []string {
	count := map[string][]int{}
	var order []string
	for _, s := range samples {
		k := s.Benchmark + " " + s.Metric
		if count[k] == nil {
			count[k] = make([]int, len(names))
			order = append(order, k)
		}
		count[k][s.Version]++
	}
	for _, k := range order {
		least, most := -1, -1
		for v, n := range count[k] {
			if n > 0 && (least < 0 || n < count[k][least]) {
				least = v
			}
			if most < 0 || n > count[k][most] {
				most = v
			}
		}
		if count[k][least] < count[k][most] {
			return []string{fmt.Sprintf("%s has %d values in %s and %d in %s: only the first %d of each are compared",
				k, count[k][most], names[most], count[k][least], names[least], count[k][least])}
		}
	}
	return nil
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
	if in.samples, err = jsonl.Read(name, r); err != nil || name == "-" {
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
	tested := map[[2]string]bool{}
	for _, c := range e.Results {
		tested[[2]string{bench.RowName(c.Benchmark, c.Params), c.Metric}] = c.Tested
	}
	in.options.Tested = func(row, metric string) bool { return tested[[2]string{row, metric}] }
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
