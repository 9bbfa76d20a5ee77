package variant

import (
	"context"
	"errors"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/bench/sandbox"
)

// Boxes are the versions of every variant, in boxes.
type Boxes struct {
	samplers []*sample.Sampler // nil for a variant without versions
	versions [][]sample.Version
}

// Open starts boxes for versions, one list for each variant of the suite.
func Open(ctx context.Context, box *sandbox.Sandbox, suite *bench.Suite, versions [][]sample.Version, o sample.Options) (*Boxes, error) {
	b := &Boxes{versions: versions, samplers: make([]*sample.Sampler, len(versions))}
	for k, list := range versions {
		if len(list) == 0 {
			continue
		}
		var err error
		if b.samplers[k], err = sample.Open(ctx, box, suite, list, o); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

// Of gives the boxes that a benchmark is measured in, nil for none, and their
// versions.
func (b *Boxes) Of(bm bench.Benchmark) (*sample.Sampler, []sample.Version) {
	return b.samplers[bm.Variant], b.versions[bm.Variant]
}

// Compiler is what compiles in the boxes, which are all alike.
func (b *Boxes) Compiler(ctx context.Context) (string, error) {
	for _, s := range b.samplers {
		if s != nil {
			return s.Compiler(ctx)
		}
	}
	return "", nil
}

// Instructions says how instructions are counted in the boxes.
func (b *Boxes) Instructions(ctx context.Context) (string, error) {
	for _, s := range b.samplers {
		if s != nil {
			return s.Instructions(ctx)
		}
	}
	return "", nil
}

// Close ends them.
func (b *Boxes) Close() error {
	var errs []error
	for _, s := range b.samplers {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
