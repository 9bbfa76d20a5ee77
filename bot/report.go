package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"patchbench/bot/out"
	"patchbench/bot/report/layout"
	"patchbench/bot/report/long"
	"patchbench/bot/report/machines"
	"patchbench/bot/report/markdown"
	"patchbench/store"
)

type reportCommand struct {
	IDs []string `arg:"" optional:"" name:"id" help:"The evaluation, or the start of its id; several of one series, each on its own machine, are set side by side; without any the evaluations are listed."`
	storeFlag
	Format  string   `enum:"text,json,markdown,html" default:"text" help:"text, json, markdown or html."`
	Long    bool     `help:"Text with every row of every version: mean, deviation, extremes, factor."`
	Rows    []string `placeholder:"NAMES" help:"Tables with these in rows, the outermost first: benchmark, params or one parameter's name, machine, version, metric."`
	Columns []string `placeholder:"NAMES" help:"The same for columns. What is in neither gets a table for each of its values."`
	Metrics []string `placeholder:"NAMES" help:"The quantities in such tables; wall(user) puts one behind another. Default: all that are tested."`
}

func (c *reportCommand) Run(ctx context.Context, t *terminal) error {
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	chosen := len(c.Rows)+len(c.Columns)+len(c.Metrics) > 0
	switch {
	case c.Format != "text" && c.Long:
		return usage(fmt.Errorf("--long is a form of the text, not of %s", c.Format))
	case c.Format != "text" && chosen:
		return usage(fmt.Errorf("--rows, --columns and --metrics lay out the text, not %s", c.Format))
	case c.Long && chosen:
		return usage(errors.New("--long has its own tables: leave --rows, --columns and --metrics out"))
	case len(c.IDs) == 0 && (c.Long || chosen):
		return usage(errors.New("no evaluation is named: bot report lists them"))
	case len(c.IDs) == 0:
		return c.list(ctx, t, s)
	case len(c.IDs) > 1 && (c.Long || c.Format != "text"):
		return usage(errors.New("several evaluations are shown side by side as text alone; name one for another format"))
	}
	var all []*store.Evaluation
	for _, id := range c.IDs {
		e, err := s.Evaluation(ctx, id)
		if err != nil {
			return usage(err)
		}
		all = append(all, e)
	}
	if chosen {
		if err := machines.Check(all); err != nil {
			return usage(err)
		}
		var b bytes.Buffer
		if err := layout.Write(&b, all, layout.Options{Rows: c.Rows, Columns: c.Columns, Metrics: c.Metrics}); err != nil {
			return usage(err)
		}
		_, err := b.WriteTo(t.stdout)
		return err
	}
	if len(all) > 1 {
		if err := machines.Check(all); err != nil {
			return usage(err)
		}
		return machines.Write(t.stdout, all)
	}
	e := all[0]
	if c.Long {
		samples, err := out.Samples(ctx, e, s)
		if err != nil {
			return err
		}
		return long.Write(t.stdout, e, samples)
	}
	switch c.Format {
	case "markdown":
		return markdown.Write(t.stdout, e)
	case "html":
		return out.HTML(ctx, t.stdout, e, s)
	}
	return (&formatFlag{c.Format}).write(t.stdout, e)
}

// list prints a line for each evaluation that is kept, or their JSON.
func (c *reportCommand) list(ctx context.Context, t *terminal, s *store.Store) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	switch c.Format {
	case "json":
		return writeJSON(t.stdout, orEmpty(all))
	case "text":
	default:
		return usage(fmt.Errorf("the list of evaluations has no %s; name an evaluation, or --format json", c.Format))
	}
	if len(all) == 0 {
		fmt.Fprintf(t.stderr, "no evaluations in %s\n", printable(s.Path()))
	}
	for _, e := range all {
		what := e.Headline
		if e.Subject != "" {
			what = e.Subject + ": " + what
		}
		fmt.Fprintf(t.stdout, "%s  %s  %s\n", e.ID, e.Created.Format("2006-01-02 15:04"), printable(what))
	}
	return nil
}
