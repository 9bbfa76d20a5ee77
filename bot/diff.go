package main

import (
	"context"
	"fmt"

	"patchbench/bot/report/delta"
	"patchbench/store"
)

type diffCommand struct {
	IDs []string `arg:"" name:"id" help:"Two evaluations, for instance of version 1 and 2 of a series; the start of an id is enough."`
	storeFlag
	formatFlag
	All bool `help:"Also list the rows whose verdict is the same on both sides."`
}

func (c *diffCommand) Run(ctx context.Context, t *terminal) error {
	if len(c.IDs) != 2 {
		return usage(fmt.Errorf("%d evaluations are named: two are set side by side", len(c.IDs)))
	}
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var both [2]*store.Evaluation
	for i, id := range c.IDs {
		if both[i], err = s.Evaluation(ctx, id); err != nil {
			return usage(err)
		}
	}
	d := delta.Of(both[0], both[1])
	if c.Format == "json" {
		return writeJSON(t.stdout, d)
	}
	return delta.Text(t.stdout, d, c.All)
}
