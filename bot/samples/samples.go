// Package samples reads measured figures that lie in files, for a comparison of them
// alone: a samples.jsonl, and what the report.json beside it tells of its evaluation,
// or Go benchmark output, one file for each version. Out comes all that
// bench/compare is to be given. Nothing is judged here but whether the order of runs
// can be known.
package samples

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"patchbench/bench"
	"patchbench/bench/compare"
	"patchbench/bench/sample/jsonl"
	"patchbench/bench/sample/parse/gobench"
	"patchbench/store"
)

// Set is what is known of some samples.
type Set struct {
	Versions []bench.Version
	Samples  []bench.Sample
	Failures []bench.Failure
	Options  compare.Options
	Warnings []string
}

// Read reads files, or stdin for the only one of name "-". With fixed, the number of
// rounds was fixed beforehand.
func Read(files []string, stdin io.Reader, fixed bool) (Set, error) {
	in := Set{Options: compare.Options{Margin: 0.01, Seed: 1, Final: true}}
	var names []string
	var err error
	if len(files) == 1 && (files[0] == "-" || strings.HasSuffix(files[0], ".jsonl")) {
		err = in.readOurs(files[0], stdin)
	} else {
		in.Samples, names, err = gobench.ReadFiles(files...)
	}
	if err != nil {
		return in, err
	}
	if len(in.Samples) == 0 {
		return in, fmt.Errorf("%s: no samples", strings.Join(files, ", "))
	}
	last := 0
	rounds := 0
	for _, s := range in.Samples {
		last, rounds = max(last, s.Version), max(rounds, s.Round)
	}
	if last == 0 {
		return in, fmt.Errorf("%s: samples of one version only: there is nothing to compare", strings.Join(files, ", "))
	}
	if in.Versions == nil {
		for n := range last + 1 {
			v := bench.Version{N: n, Name: fmt.Sprintf("%d/%d", n, last), State: bench.Built}
			if n == 0 {
				v.Name = "base"
			}
			if n < len(names) {
				v.Name = names[n]
			}
			in.Versions = append(in.Versions, v)
		}
	}
	if fixed || names != nil {
		in.Options.Looks = []int{rounds}
	}
	if names != nil {
		in.Warnings = append(ordered(in.Samples, len(files)), uneven(in.Samples, names)...)
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
func (in *Set) readOurs(name string, stdin io.Reader) error {
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
	if in.Samples, err = jsonl.Read(name, r); err != nil || name == "-" {
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
	in.Versions, in.Failures = e.Versions, e.Failures
	in.Options.Seed, in.Options.Margin = e.Seed, e.Margin
	tested := map[[2]string]bool{}
	for _, c := range e.Results {
		tested[[2]string{bench.RowName(c.Benchmark, c.Params), c.Metric}] = c.Tested
	}
	in.Options.Tested = func(row, metric string) bool { return tested[[2]string{row, metric}] }
	if e.FixedRounds > 0 {
		in.Options.Looks = []int{e.FixedRounds}
	}
	return nil
}
