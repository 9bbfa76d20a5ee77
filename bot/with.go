package main

import (
	"context"

	"patchbench/mbox/tree"
)

// withFlag names patches that are put on every version.
type withFlag struct {
	With []string `placeholder:"FILE" help:"Put the patches of this mail on base and on every version, without judging them. May be given several times."`
}

// extras reads the patches. How mail is looked up is as for the series itself.
func (f *withFlag) extras(ctx context.Context, t *terminal, m mailFlags) ([]tree.Extra, error) {
	var list []tree.Extra
	for _, name := range f.With {
		own := mailFlags{Files: []string{name}, Archive: m.Archive, Scissor: m.Scissor}
		s, err := own.series(ctx, t)
		if err != nil {
			return nil, err
		}
		list = append(list, tree.Extra{Name: name, Series: s})
	}
	return list, nil
}
