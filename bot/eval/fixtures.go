package eval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"patchbench/bench/build"
	"patchbench/bench/fixture"
	"patchbench/bench/sample"
)

// mayReachOut refuses fixtures that want the network in a suite of the base tree,
// which is no word of the owner's.
func (r *run) mayReachOut() error {
	if r.suiteFile == "" {
		return nil
	}
	for _, f := range r.suite.Fixtures {
		if f.Network {
			return &InputError{fmt.Errorf("%s: fixture %q wants the network, which a suite from the base tree never gets: "+
				"look at what it does, and give the suite as a file of yours with --suite", r.suiteFile, f.Name)}
		}
	}
	return nil
}

// newBuilder makes the fixtures, and what builds versions with them.
func (r *run) newBuilder(ctx context.Context) (*build.Builder, error) {
	if len(r.suite.Fixtures) > 0 && r.fixtures == nil {
		dir := r.Fixtures
		if dir == "" {
			dir = filepath.Join(r.WorkDir, "fixtures")
		}
		c, err := fixture.Open(r.sandbox, dir)
		if err != nil {
			return nil, err
		}
		r.cache = c
		r.Progress.Stage("fixtures", len(r.suite.Fixtures))
		r.fixtures, err = c.Make(ctx, r.suite.Fixtures, r.suite.Limits, func(n int, name string) { r.Progress.Done(n, name, 0) })
		var failed *fixture.Failed
		if errors.As(err, &failed) {
			return nil, &InputError{fmt.Errorf("suite %s: %w", r.suite.Name, err)}
		}
		if err != nil {
			return nil, err
		}
	}
	return build.New(r.sandbox, r.suite, build.Options{Fixtures: r.fixtures}), nil
}

// newSampler starts boxes for built versions.
func (r *run) newSampler(ctx context.Context, versions []sample.Version) (*sample.Sampler, error) {
	return sample.Open(ctx, r.sandbox, r.suite, versions, sample.Options{Seed: r.Seed, Fixtures: r.fixtures})
}
