package eval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"patchbench/bench/fixture"
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

// makeFixtures makes the fixtures of the suite that are not kept from before.
func (r *run) makeFixtures(ctx context.Context) error {
	if len(r.suite.Fixtures) == 0 || r.cache != nil {
		return nil
	}
	dir := r.Fixtures
	if dir == "" {
		dir = filepath.Join(r.WorkDir, "fixtures")
	}
	c, err := fixture.Open(r.sandbox, dir)
	if err != nil {
		return err
	}
	r.cache = c
	r.Progress.Stage("fixtures", len(r.suite.Fixtures))
	r.fixtures, err = c.Make(ctx, r.suite.Fixtures, r.suite.Limits, func(n int, name string) { r.Progress.Done(n, name, 0) })
	var failed *fixture.Failed
	if errors.As(err, &failed) {
		return &InputError{fmt.Errorf("suite %s: %w", r.suite.Name, err)}
	}
	return err
}
