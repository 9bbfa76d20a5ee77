package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/mbox/series"
)

type showCommand struct {
	mailFlags
	JSON bool `name:"json" help:"Print JSON and nothing else."`
}

func (c *showCommand) Run(ctx context.Context, t *terminal) error {
	// Archives may be larger than memory: only what is shown is kept, and that is
	// little beside the garbage of reading it.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	l, err := c.listing(ctx, t, series.Options{DropDiffs: true, DropMessages: !c.JSON})
	if err != nil {
		return err
	}
	if len(l.Series) > 0 && (c.Series != 0 || c.Patches != "") {
		s, err := c.choose(l)
		if err != nil {
			return err
		}
		l.Series = []mbox.Series{*s}
	}
	if c.JSON {
		err = writeListing(t.stdout, l)
	} else {
		err = printListing(t.stdout, l)
	}
	if err == nil && len(l.Series) == 0 {
		err = c.noPatches(l)
	}
	return err
}

// printListing prints what was understood for a person: a tree of series, their
// versions and patches, then what is in no series and what could not be read.
func printListing(out io.Writer, l mbox.Listing) error {
	w := bufio.NewWriter(out)
	for _, versions := range lineages(l.Series) {
		newest := versions[len(versions)-1]
		fmt.Fprintf(w, "%s\n", printable(newest.Subject))
		for i := len(versions) - 1; i >= 0; i-- {
			printVersion(w, versions[i], newest.Subject)
		}
		fmt.Fprintln(w)
	}
	printSkipped(w, l.Skipped)
	if len(l.Problems) > 0 {
		fmt.Fprintf(w, "could not be read: %s\n", counted(len(l.Problems), "message"))
	}
	for _, p := range l.Problems {
		fmt.Fprintf(w, "  %s: %s\n", printable(p.Position), printable(p.Error))
	}
	return w.Flush()
}

// lineages puts the versions of each series together, oldest first.
func lineages(all []mbox.Series) [][]mbox.Series {
	var out [][]mbox.Series
	of := make(map[string]int) // where a series is, by its Message-ID
	for _, s := range all {
		i, ok := len(out), false
		if s.Supersedes != nil {
			i, ok = of[*s.Supersedes]
		}
		if !ok {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
		if s.MessageID != "" {
			of[s.MessageID] = i
		}
	}
	return out
}

// printVersion prints one version of a series: who, when, how much of it there
// is, what it says of others, and its patches.
func printVersion(w io.Writer, s mbox.Series, title string) {
	fmt.Fprintf(w, "  v%d", s.Version)
	if len(s.Tags) > 0 {
		fmt.Fprintf(w, " [%s]", printable(strings.Join(s.Tags, ", ")))
	}
	fmt.Fprintf(w, ", %s, %s", dateOf(s.Date), printable(s.Author.String()))
	if len(s.Lists) > 0 {
		fmt.Fprintf(w, ", on %s", printable(strings.Join(s.Lists, ", ")))
	}
	fmt.Fprintf(w, "\n    %s\n", extent(s))
	if s.Subject != title {
		fmt.Fprintf(w, "    then called %s\n", printable(s.Subject))
	}
	if s.MessageID != "" {
		fmt.Fprintf(w, "    <%s>\n", printable(s.MessageID))
	}
	if s.Supersedes != nil {
		fmt.Fprintf(w, "    replaces <%s>\n", printable(*s.Supersedes))
	}
	if s.Base != nil {
		fmt.Fprintf(w, "    base %s (%s)\n", printable(s.Base.Commit), s.Base.How)
	}
	for _, p := range s.Prerequisites {
		if p.MessageID != "" {
			fmt.Fprintf(w, "    needs <%s>\n", printable(p.MessageID))
		} else {
			fmt.Fprintf(w, "    needs the patch with id %s\n", printable(p.PatchID))
		}
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "    note: %s\n", printable(n))
	}
	missing := s.Missing
	for i, p := range s.Patches {
		for len(missing) > 0 && missing[0] < p.N {
			fmt.Fprintf(w, "    ├─ %d/%d missing\n", missing[0], s.Total)
			missing = missing[1:]
		}
		branch, below := "├─", "│ "
		if i == len(s.Patches)-1 && len(missing) == 0 {
			branch, below = "└─", "  "
		}
		fmt.Fprintf(w, "    %s %d/%d %s\n", branch, p.N, s.Total, printable(p.Subject))
		if p.Author != s.Author {
			fmt.Fprintf(w, "    %s     by %s\n", below, printable(p.Author.String()))
		}
		fmt.Fprintf(w, "    %s     %s\n", below, printable(someOf(p.Files)))
	}
	for i, n := range missing {
		branch := "├─"
		if i == len(missing)-1 {
			branch = "└─"
		}
		fmt.Fprintf(w, "    %s %d/%d missing\n", branch, n, s.Total)
	}
}

func dateOf(t time.Time) string {
	if t.IsZero() {
		return "no date"
	}
	return t.Format("2 Jan 2006 15:04 -0700")
}

// extent says how much of a series there is.
func extent(s mbox.Series) string {
	text := "complete: " + counted(s.Total, "patch")
	if !s.Complete {
		text = fmt.Sprintf("incomplete: %d of %s", s.Received, counted(s.Total, "patch"))
	}
	if n := len(s.Patches) - s.Received; n > 0 {
		text += fmt.Sprintf(", and %d more than announced", n)
	}
	if s.Cover != nil {
		text += ", with a cover letter"
	}
	return text
}

func counted(n int, word string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(word, "ch"):
		word += "es"
	default:
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// someOf names the files of a patch, or the first of many.
func someOf(files []string) string {
	const most = 5
	if len(files) <= most+1 {
		return strings.Join(files, ", ")
	}
	return fmt.Sprintf("%s and %d more files", strings.Join(files[:most], ", "), len(files)-most)
}

// printSkipped lists what is in no series by the reason why.
func printSkipped(w io.Writer, skipped []mbox.Skipped) {
	if len(skipped) == 0 {
		return
	}
	fmt.Fprintf(w, "in no series: %s\n", counted(len(skipped), "message"))
	var reasons []string
	by := make(map[string][]mbox.Skipped)
	for _, s := range skipped {
		if by[s.Reason] == nil {
			reasons = append(reasons, s.Reason)
		}
		by[s.Reason] = append(by[s.Reason], s)
	}
	for _, r := range reasons {
		fmt.Fprintf(w, "  %s\n", printable(r))
		for _, s := range by[r] {
			subject := s.Subject
			if subject == "" {
				subject = "(no subject)"
			}
			fmt.Fprintf(w, "    %s <%s>\n", printable(subject), printable(s.MessageID))
		}
	}
	fmt.Fprintln(w)
}

// writeListing writes what writeJSON would, one entry after another: a listing of
// an archive is large.
func writeListing(out io.Writer, l mbox.Listing) error {
	w := bufio.NewWriter(out)
	w.WriteString("{")
	err := errors.Join(
		writeEntries(w, "series", l.Series, ","),
		writeEntries(w, "skipped", l.Skipped, ","),
		writeEntries(w, "problems", l.Problems, "\n}\n"))
	if err != nil {
		return err
	}
	return w.Flush()
}

func writeEntries[T any](w *bufio.Writer, name string, list []T, after string) error {
	fmt.Fprintf(w, "\n  %q: [", name)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("    ", "  ")
	for i, entry := range list {
		b.Reset()
		if err := e.Encode(entry); err != nil {
			return err
		}
		if i > 0 {
			w.WriteString(",")
		}
		w.WriteString("\n    ")
		w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
	if len(list) > 0 {
		w.WriteString("\n  ")
	}
	w.WriteString("]" + after)
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
