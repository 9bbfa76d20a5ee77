package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
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
	mail := c.mail(t)
	box, err := mail.Read(ctx, series.Options{DropDiffs: true, DropMessages: !c.JSON})
	if err != nil {
		return stageError(err)
	}
	defer box.Close()
	l := listed(box.Index)
	if box.Len() > 0 && (c.Series != 0 || c.Patches != "") {
		s, err := mail.Choose(box.Index)
		if err != nil {
			return stageError(err)
		}
		l.lineages = [][]int{{0}}
		l.series = func(int) (mbox.Series, error) { return *s.Series, nil }
	}
	if c.JSON {
		err = l.writeJSON(t.stdout)
	} else {
		err = l.print(t.stdout)
	}
	if err == nil && box.Len() == 0 {
		err = stageError(mail.NoPatches(box.Index))
	}
	return err
}

// list is what was understood of mail, which may be more than fits into memory:
// each series is read back when it is printed.
type list struct {
	series   func(i int) (mbox.Series, error)
	lineages [][]int // numbers of the versions of each series, oldest first
	// skipped and problems are how many messages are in no series, by time or
	// grouped by the reason, and could not be read.
	skipped  int
	skips    func(grouped bool) iter.Seq2[mbox.Skipped, error]
	problems int
	broken   iter.Seq2[mbox.Problem, error]
}

func listed(x *series.Index) *list {
	return &list{series: x.Series, lineages: lineages(x.Replaces()), skipped: x.SkippedLen(), skips: x.Skipped, problems: x.ProblemsLen(), broken: x.Problems()}
}

// lineages puts the versions of each series together, oldest first. It is told
// which earlier series each one replaces, -1 for none.
func lineages(replaces []int) [][]int {
	var out [][]int
	of := make([]int, len(replaces))
	for i, r := range replaces {
		if r < 0 {
			of[i] = len(out)
			out = append(out, []int{i})
			continue
		}
		of[i] = of[r]
		out[of[r]] = append(out[of[r]], i)
	}
	return out
}

// print prints what was understood for a person: a tree of series, their versions
// and patches, then what is in no series and what could not be read.
func (l *list) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	for _, versions := range l.lineages {
		title := ""
		for k, i := range slices.Backward(versions) {
			s, err := l.series(i)
			if err != nil {
				return err
			}
			if k == len(versions)-1 {
				title = s.Subject
				fmt.Fprintf(w, "%s\n", printable(title))
			}
			printVersion(w, s, title)
		}
		fmt.Fprintln(w)
	}
	if err := l.printSkipped(w); err != nil {
		return err
	}
	if l.problems > 0 {
		fmt.Fprintf(w, "could not be read: %s\n", counted(l.problems, "message"))
	}
	for p, err := range l.broken {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  %s: %s\n", printable(p.Position), printable(p.Error))
	}
	return w.Flush()
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
func (l *list) printSkipped(w io.Writer) error {
	if l.skipped == 0 {
		return nil
	}
	fmt.Fprintf(w, "in no series: %s\n", counted(l.skipped, "message"))
	reason := ""
	for s, err := range l.skips(true) {
		if err != nil {
			return err
		}
		if s.Reason != reason {
			reason = s.Reason
			fmt.Fprintf(w, "  %s\n", printable(reason))
		}
		if s.Subject == "" {
			s.Subject = "(no subject)"
		}
		name := "<" + s.MessageID + ">"
		if s.MessageID == "" {
			name = "(" + s.Position + ")"
		}
		fmt.Fprintf(w, "    %s %s\n", printable(s.Subject), printable(name))
	}
	fmt.Fprintln(w)
	return nil
}

// writeJSON writes the listing as writeJSON would, one entry after another.
func (l *list) writeJSON(out io.Writer) error {
	w := bufio.NewWriter(out)
	w.WriteString("{")
	all := func(yield func(mbox.Series, error) bool) {
		n := 0
		for _, versions := range l.lineages {
			n += len(versions)
		}
		for i := range n {
			if s, err := l.series(i); !yield(s, err) {
				return
			}
		}
	}
	err := errors.Join(
		writeEntries(w, "series", all, ","),
		writeEntries(w, "skipped", l.skips(false), ","),
		writeEntries(w, "problems", l.broken, "\n}\n"))
	if err != nil {
		return err
	}
	return w.Flush()
}

func writeEntries[T any](w *bufio.Writer, name string, entries iter.Seq2[T, error], after string) error {
	fmt.Fprintf(w, "\n  %q: [", name)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("    ", "  ")
	before := ""
	for entry, err := range entries {
		if err != nil {
			return err
		}
		b.Reset()
		if err := e.Encode(entry); err != nil {
			return err
		}
		w.WriteString(before + "\n    ")
		w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
		before = ","
	}
	if before != "" {
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
