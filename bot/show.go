package main

import (
	"context"

	"patchbench/bot/listing"
	"patchbench/mbox/series"
)

type showCommand struct {
	mailFlags
	JSON bool `name:"json" help:"Print JSON and nothing else."`
}

func (c *showCommand) Run(ctx context.Context, t *terminal) error {
	mail := c.mail(t)
	box, err := mail.Read(ctx, series.Options{DropDiffs: true, DropMessages: !c.JSON})
	if err != nil {
		return stageError(err)
	}
	defer box.Close()
	l := listing.Of(box.Index)
	if box.Len() > 0 && (c.Series != 0 || c.Patches != "") {
		s, err := mail.Choose(box.Index)
		if err != nil {
			return stageError(err)
		}
		l.Only(s.Series)
	}
	if c.JSON {
		err = l.JSON(t.stdout)
	} else {
		err = l.Text(t.stdout)
	}
	if err == nil && box.Len() == 0 {
		err = stageError(mail.NoPatches(box.Index))
	}
	return err
}
