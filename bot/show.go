package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"patchbench/mbox"
	"patchbench/mbox/series"
)

type showCommand struct {
	mailFlags
	JSON bool `name:"json" help:"Print JSON and nothing else."`
}

func (c *showCommand) Run(ctx context.Context, t *terminal) error {
	// Archives may be larger than memory; nothing here shows a diff.
	l, err := c.listing(ctx, t, series.Options{DropDiffs: true})
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(t.stdout, l)
	} else {
		err = printListing(t.stdout, l)
	}
	if err == nil && len(l.Series) == 0 {
		err = c.noPatches(l)
	}
	return err
}

// printListing prints what was understood for a person: a tree of series and
// patches, then what was skipped and what could not be read.
func printListing(w io.Writer, l mbox.Listing) error {
	var b strings.Builder
	for _, s := range l.Series {
		fmt.Fprintf(&b, "%s\n", printable(seriesLine(s)))
		fmt.Fprintf(&b, "  by %s, %s\n", printable(s.Author.String()), s.Date.Format("2006-01-02 15:04 -0700"))
		if s.Base != nil {
			fmt.Fprintf(&b, "  base %s (%s)\n", printable(s.Base.Commit), s.Base.How)
		}
		if s.Supersedes != nil {
			fmt.Fprintf(&b, "  supersedes <%s>\n", printable(*s.Supersedes))
		}
		for _, p := range s.Patches {
			fmt.Fprintf(&b, "  %d/%d %s\n", p.N, s.Total, printable(p.Subject))
			if p.Author != s.Author {
				fmt.Fprintf(&b, "      by %s\n", printable(p.Author.String()))
			}
			fmt.Fprintf(&b, "      %s\n", printable(strings.Join(p.Files, ", ")))
		}
		for _, n := range s.Missing {
			fmt.Fprintf(&b, "  %d/%d missing\n", n, s.Total)
		}
		b.WriteByte('\n')
	}
	if len(l.Skipped) > 0 {
		fmt.Fprintf(&b, "skipped:\n")
	}
	for _, s := range l.Skipped {
		fmt.Fprintf(&b, "  %s <%s>: %s\n", printable(s.Subject), printable(s.MessageID), printable(s.Reason))
	}
	if len(l.Problems) > 0 {
		fmt.Fprintf(&b, "not read:\n")
	}
	for _, p := range l.Problems {
		fmt.Fprintf(&b, "  %s: %s\n", printable(p.Position), printable(p.Error))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// seriesLine is a series in one line: "[v2, RFC] subject, 3 of 5 patches".
func seriesLine(s mbox.Series) string {
	tags := s.Tags
	if s.Version > 1 {
		tags = append([]string{fmt.Sprintf("v%d", s.Version)}, tags...)
	}
	line := s.Subject
	if len(tags) > 0 {
		line = "[" + strings.Join(tags, ", ") + "] " + line
	}
	switch {
	case !s.Complete:
		return fmt.Sprintf("%s, %d of %d patches", line, s.Received, s.Total)
	case s.Total == 1:
		return line + ", 1 patch"
	}
	return fmt.Sprintf("%s, %d patches", line, s.Total)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
