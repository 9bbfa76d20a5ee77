package main

import (
	"context"
	"errors"
	"os"

	"patchbench/bot/check/parts"
	"patchbench/config/service"
)

// service tries the parts of a service.
func (c *checkCommand) service(ctx context.Context, t *terminal) error {
	switch {
	case c.Repo != "." || c.Base != "" || c.Suite != "" || c.Benchmarks != "" || c.Rounds != 0 || c.Budget != 0 || len(c.With) > 0 || c.placeFlags != placeFlags{}:
		return usage(errors.New("--config tries a service; the flags of suites, but --json, have no meaning beside it"))
	}
	cfg, err := service.Load(c.Config, os.Getenv)
	if err != nil {
		return usage(err)
	}
	all := []parts.Part{{Name: "file", State: parts.OK, Text: cfg.File}}
	var failed error
	tell := func(p parts.Part) {
		all = append(all, p)
		if !c.JSON {
			failed = errors.Join(failed, p.Write(t.stdout))
		}
	}
	if !c.JSON {
		failed = all[0].Write(t.stdout)
	}
	if err := parts.Check(ctx, cfg, parts.Options{}, tell); err != nil {
		return err
	}
	if c.JSON {
		failed = writeJSON(t.stdout, struct {
			Worst parts.State  `json:"worst"`
			Parts []parts.Part `json:"parts"`
		}{parts.Worst(all), all})
	}
	return errors.Join(failed, partsOutcome(parts.Worst(all)))
}

// partsOutcome gives the exit status of the worst part, nil for 0.
func partsOutcome(worst parts.State) error {
	switch worst {
	case parts.Unsafe:
		return &failure{statusUnsafe, errors.New("there is no sandbox: the service would not start")}
	case parts.Wrong:
		return usage(errors.New("the service would not work as it is configured: see above"))
	case parts.Away:
		return errors.New("some part of the service does not answer: see above, and try again")
	}
	return nil
}
