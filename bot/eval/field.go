package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"patchbench/bench"
	"patchbench/bench/build"
	"patchbench/bench/sample"
	"patchbench/bench/suite"
	"patchbench/bot/eval/variant"
)

// field is one choice of build parameters with its builds; a suite without such
// parameters has one. Rows of different fields are never compared.
type field struct {
	params map[string]string
	// builders are one for all versions, or one for each where they are values of
	// a parameter.
	builders []*build.Builder
	builds   []bench.Build // by version; Dir is "" for one that is not measured
	// versions are those that are measured, base's twin last; nil if there are not
	// two that differ.
	versions []sample.Version
}

func (f *field) builder(version int) *build.Builder { return f.builders[version%len(f.builders)] }

// openFields makes a field for each choice of build parameters, with the fixtures
// that its builds and runs see.
func (r *run) openFields(ctx context.Context) error {
	if err := r.makeFixtures(ctx); err != nil {
		return err
	}
	recipes := r.values
	if recipes == nil {
		list := r.suite.Variants
		if list == nil {
			list = []bench.Recipe{r.suite.Build}
		}
		for _, recipe := range list {
			recipes = append(recipes, []bench.Recipe{recipe})
		}
	}
	r.fields = nil
	for k, list := range recipes {
		f := &field{}
		if r.suite.Variants != nil {
			f.params = r.suite.Variants[k].Params
		}
		for _, recipe := range list {
			s := *r.suite
			s.Build = recipe
			f.builders = append(f.builders, build.New(r.sandbox, &s, build.Options{Fixtures: r.fixtures}))
		}
		r.fields = append(r.fields, f)
	}
	return nil
}

// compareValues makes the values of a build parameter what is compared, each built
// of the last version of the input.
func (r *run) compareValues() (err error) {
	var values []string
	if r.suite, values, r.values, err = suite.Values(r.suite, r.CompareParam); err != nil {
		return &InputError{err}
	}
	for _, v := range values {
		r.names = append(r.names, bench.RowName("", map[string]string{r.CompareParam: v}))
	}
	for i, n := range r.names {
		r.names[i] = strings.Trim(n, "{}")
	}
	return nil
}

// valueVersions are the versions of a comparison of values: the last version of
// the input, once for each.
func (r *run) valueVersions() []bench.Version {
	last := bench.Version{Commit: r.stack.Base.Commit, Tree: r.baseTree}
	if n := len(r.stack.Steps); n > 0 {
		last.Commit, last.Tree = r.stack.Steps[n-1].Commit, r.stack.Steps[n-1].Tree
	}
	var list []bench.Version
	for n, name := range r.names {
		list = append(list, bench.Version{N: n, Name: name, Commit: last.Commit, Tree: last.Tree, State: bench.NotBuilt})
	}
	return list
}

// buildVersion builds a version in every field, and fills in what came of it.
func (r *run) buildVersion(ctx context.Context, v *bench.Version) ([]bench.Build, error) {
	var builds []bench.Build
	v.Variants = nil
	for k, f := range r.fields {
		b, err := r.buildOne(ctx, f, k, v)
		if err != nil {
			return nil, err
		}
		builds = append(builds, b)
		if f.params != nil {
			v.Variants = append(v.Variants, bench.VariantBuild{Params: f.params})
		}
		variant.Enter(v, k, b, nil)
	}
	return builds, nil
}

// chooseVersions finds in each field the builds that are measured, and copies its
// base's afresh for the A/A rows.
func (r *run) chooseVersions() error {
	for k, f := range r.fields {
		f.versions = nil
		for _, b := range f.builds {
			if b.Dir != "" {
				f.versions = append(f.versions, sample.Version{N: b.Version, Dir: b.Dir})
			}
		}
		if len(f.versions) > 0 && f.versions[0].N != 0 {
			r.warn(r.e.Versions[0].Name + " does not build" + variant.With(f.params) + ": there is nothing to compare with")
			f.versions = nil
		}
		if len(f.versions) < 2 {
			f.versions = nil
			continue
		}
		twin, err := r.twin(k)
		if err != nil {
			return err
		}
		f.versions = append(f.versions, twin)
	}
	return nil
}

// twin copies the base's build of a field.
func (r *run) twin(k int) (sample.Version, error) {
	dir := filepath.Join(r.WorkDir, r.folder("twin", k))
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return sample.Version{}, err
	}
	b, err := r.fields[k].builder(0).Copy(r.fields[k].builds[0], dir)
	if err != nil {
		return sample.Version{}, fmt.Errorf("copy the base's build: %w", err)
	}
	return sample.Version{Dir: b.Dir, Twin: true}, nil
}

// folder names a folder of a field's in the work folder.
func (r *run) folder(name string, k int) string {
	if len(r.fields) == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, k)
}

// openBoxes starts boxes for versions, one list for each field.
func (r *run) openBoxes(ctx context.Context, versions [][]sample.Version) (*variant.Boxes, error) {
	return variant.Open(ctx, r.sandbox, r.suite, versions, sample.Options{Seed: r.Seed, Fixtures: r.fixtures})
}
