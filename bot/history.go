package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bot/report/history"
	"patchbench/bot/report/html"
	"patchbench/store"
)

type historyCommand struct {
	Benchmark string `arg:"" help:"A benchmark: its name for all its parameters, or a row's full name."`
	Metric    string `placeholder:"NAME" help:"Which quantity. Default: cpu, or else every tested one."`
	Since     string `placeholder:"DATE" help:"Only evaluations since a day (2026-01-31), or of the last 90d or 48h."`
	storeFlag
	Format string `enum:"text,json,html" default:"text" help:"text, json or html."`
}

func (c *historyCommand) Run(ctx context.Context, t *terminal) error {
	since, err := sinceOf(c.Since, time.Now())
	if err != nil {
		return usage(fmt.Errorf("--since: %w", err))
	}
	s, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	points, err := s.History(ctx, c.Benchmark, c.Metric, since)
	if err != nil {
		return err
	}
	if c.Metric == "" {
		points = history.Telling(points)
	}
	if len(points) == 0 {
		if c.Metric != "" {
			all, err := s.History(ctx, c.Benchmark, "", since)
			if err != nil {
				return err
			}
			if len(all) > 0 {
				return usage(fmt.Errorf("%s has no metric %q in store %s: it has %s", c.Benchmark, c.Metric, s.Path(), metricsOf(all)))
			}
		}
		names, err := s.Benchmarks(ctx)
		if err != nil {
			return err
		}
		return usage(c.nothing(s.Path(), slices.DeleteFunc(names, func(name string) bool { return name == c.Benchmark })))
	}
	tracks := history.Tracks(points, 0)
	switch c.Format {
	case "json":
		return writeJSON(t.stdout, tracks)
	case "html":
		return html.History(t.stdout, strings.TrimSpace(c.Benchmark+" "+c.Metric), tracks)
	}
	return history.Text(t.stdout, tracks)
}

// metricsOf names the metrics of some points, by name.
func metricsOf(points []store.Point) string {
	var names []string
	for _, p := range points {
		if !slices.Contains(names, p.Metric) {
			names = append(names, p.Metric)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// nothing says what there is instead: benchmarks of these names.
func (c *historyCommand) nothing(path string, names []string) error {
	what := c.Benchmark
	if c.Metric != "" {
		what += " " + c.Metric
	}
	if c.Since != "" {
		what += " since " + c.Since
	}
	if len(names) == 0 {
		return fmt.Errorf("no figures of %s in store %s", what, path)
	}
	more := ""
	if n := len(names); n > 8 {
		names, more = names[:8], fmt.Sprintf(" and %d more", n-8)
	}
	return fmt.Errorf("no figures of %s in store %s: it has %s%s", what, path, strings.Join(names, ", "), more)
}

// sinceOf reads a day or a time that reaches back from now; "" is the beginning.
func sinceOf(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	days := 0
	if n, found := strings.CutSuffix(s, "d"); found {
		if _, err := fmt.Sscanf(n, "%d", &days); err == nil && fmt.Sprint(days) == n && days > 0 && days < 100_000 {
			return now.AddDate(0, 0, -days), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is neither a day like 2026-01-31 nor a time like 90d or 48h", s)
}
