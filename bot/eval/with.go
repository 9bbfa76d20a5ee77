package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/mbox/tree"
)

// with puts the patches that are not judged on every version: first those of the
// options, then those that the suite names.
func (r *run) with(ctx context.Context) error {
	extra := append([]tree.Extra(nil), r.With...)
	for _, name := range r.suite.Apply {
		s, err := r.patchesOfSuite(name)
		if err != nil {
			return &InputError{fmt.Errorf("suite %s: apply: %w", r.suite.Name, err)}
		}
		extra = append(extra, tree.Extra{Name: name, Series: s})
	}
	for _, e := range extra {
		r.extra = append(r.extra, e.Name)
	}
	return r.repo.With(ctx, r.stack, extra, tree.Options{Fuzz: r.Fuzz})
}

// patchesOfSuite reads a file of patches from where the suite stands: the base
// tree, or the folder of its file.
func (r *run) patchesOfSuite(name string) (*mbox.Series, error) {
	var text []byte
	var err error
	if r.suiteFile != "" {
		text, err = r.repo.Files(r.stack.Base.Commit, path.Join(path.Dir(r.suiteFile), name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is not in the base beside the suite", name)
		}
	} else {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(r.SuiteName), name)
		}
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, err
	}
	c := series.NewCollector(series.Options{})
	mail := mbox.NewReader(bytes.NewReader(text), name)
	for {
		m, problem, err := mail.Next()
		switch {
		case problem != nil:
			return nil, fmt.Errorf("%s: %s", problem.Position, problem.Error)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil:
			_, s, err := c.Index().Choose(series.Choice{})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return s, nil
		}
		if err := c.Add(m); err != nil {
			return nil, err
		}
	}
}
