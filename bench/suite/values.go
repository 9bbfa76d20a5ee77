package suite

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"patchbench/bench"
	"patchbench/config"
)

// Values makes a comparison of the values of one build parameter of a suite. It
// gives the suite without that parameter, the values in the order of the file,
// and for each Variant of that suite (one if it has none) the recipe of each value.
//
// The benchmarks must not use the parameter: where two values run different
// commands, there is nothing to compare.
func Values(s *bench.Suite, param string) (rest *bench.Suite, values []string, recipes [][]bench.Recipe, err error) {
	if len(s.Variants) == 0 {
		return nil, nil, nil, fmt.Errorf("compare the values of %s: suite %s has no build.params", param, s.Name)
	}
	if _, ok := s.Build.Params[param]; !ok {
		return nil, nil, nil, fmt.Errorf("compare the values of %s: suite %s has no such build parameter (%s)",
			param, s.Name, config.Hint(param, slices.Sorted(maps.Keys(s.Build.Params))))
	}
	without := func(params map[string]string) map[string]string {
		m := maps.Clone(params)
		delete(m, param)
		if len(m) == 0 {
			return nil
		}
		return m
	}
	var groups []map[string]string
	at := make([]int, len(s.Variants)) // group of each variant
	for i, r := range s.Variants {
		if v := r.Params[param]; !slices.Contains(values, v) {
			values = append(values, v)
		}
		p := without(r.Params)
		at[i] = slices.IndexFunc(groups, func(g map[string]string) bool { return maps.Equal(g, p) })
		if at[i] < 0 {
			at[i] = len(groups)
			groups = append(groups, p)
			recipes = append(recipes, nil)
		}
		// Each group has the values in the order of the file.
		recipes[at[i]] = append(recipes[at[i]], r)
	}
	if len(values) < 2 {
		return nil, nil, nil, fmt.Errorf("compare the values of %s: it has only %q", param, values[0])
	}
	rest = new(bench.Suite)
	*rest = *s
	rest.Benchmarks, rest.Variants = nil, nil
	for k := range recipes {
		first := recipes[k][0]
		first.Params = without(first.Params)
		rest.Variants = append(rest.Variants, first)
	}
	rest.Build = rest.Variants[0]
	if rest.Build.Params == nil {
		rest.Variants = nil
	}
	seen := map[string]bench.Benchmark{}
	for _, b := range s.Benchmarks {
		b.Params, b.Variant = without(b.Params), at[b.Variant]
		strip(&b, without)
		first, ok := seen[b.Key()]
		if !ok {
			seen[b.Key()] = b
			rest.Benchmarks = append(rest.Benchmarks, b)
		} else if !reflect.DeepEqual(first, b) {
			return nil, nil, nil, fmt.Errorf("compare the values of %s: benchmark %s uses {%[1]s} itself and runs another command for each value: leave it to the build",
				param, b.Key())
		}
	}
	return rest, values, recipes, nil
}

// strip drops a parameter from the benchmarks that another stands on.
func strip(b *bench.Benchmark, without func(map[string]string) map[string]string) {
	b.Together = slices.Clone(b.Together)
	for i := range b.Together {
		b.Together[i].Params, b.Together[i].Variant = without(b.Together[i].Params), 0
		strip(&b.Together[i], without)
	}
	if b.Baseline != nil {
		line := *b.Baseline
		line.Params, line.Variant = without(line.Params), 0
		b.Baseline = &line
	}
}
