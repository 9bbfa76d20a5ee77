// Package listing shows what was understood of mail: the series, their versions and
// patches, what is in no series and why, and what could not be read. In go the index
// of a collector; out come a text for people, or JSON. Mail may be more than fits into
// memory: each series is read back when it is printed.
package listing

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/mbox/series"
)

// List is what was understood of mail.
type List struct {
	series   func(i int) (mbox.Series, error)
	lineages [][]int // numbers of the versions of each series, oldest first
	// skipped and problems are how many messages are in no series, by time or
	// grouped by the reason, and could not be read.
	skipped  int
	skips    func(grouped bool) iter.Seq2[mbox.Skipped, error]
	problems int
	broken   iter.Seq2[mbox.Problem, error]
}

// Of lists what the index holds.
func Of(x *series.Index) *List {
	return &List{series: x.Series, lineages: lineages(x.Replaces()), skipped: x.SkippedLen(), skips: x.Skipped, problems: x.ProblemsLen(), broken: x.Problems()}
}

// Only leaves nothing but s of the series.
func (l *List) Only(s *mbox.Series) {
	l.lineages = [][]int{{0}}
	l.series = func(int) (mbox.Series, error) { return *s, nil }
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

// Text prints what was understood for a person: a tree of series, their versions
// and patches, then what is in no series and what could not be read.
func (l *List) Text(out io.Writer) error {
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
				fmt.Fprintf(w, "%s\n", plain.Clean(title))
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
		fmt.Fprintf(w, "  %s: %s\n", plain.Clean(p.Position), plain.Clean(p.Error))
	}
	return w.Flush()
}

// printVersion prints one version of a series: who, when, how much of it there
// is, what it says of others, and its patches.
func printVersion(w io.Writer, s mbox.Series, title string) {
	fmt.Fprintf(w, "  v%d", s.Version)
	if len(s.Tags) > 0 {
		fmt.Fprintf(w, " [%s]", plain.Clean(strings.Join(s.Tags, ", ")))
	}
	fmt.Fprintf(w, ", %s, %s", dateOf(s.Date), plain.Clean(s.Author.String()))
	if len(s.Lists) > 0 {
		fmt.Fprintf(w, ", on %s", plain.Clean(strings.Join(s.Lists, ", ")))
	}
	fmt.Fprintf(w, "\n    %s\n", extent(s))
	if s.Subject != title {
		fmt.Fprintf(w, "    then called %s\n", plain.Clean(s.Subject))
	}
	if s.MessageID != "" {
		fmt.Fprintf(w, "    <%s>\n", plain.Clean(s.MessageID))
	}
	if s.Supersedes != nil {
		fmt.Fprintf(w, "    replaces <%s>\n", plain.Clean(*s.Supersedes))
	}
	if s.Base != nil {
		fmt.Fprintf(w, "    base %s (%s)\n", plain.Clean(s.Base.Commit), s.Base.How)
	}
	for _, p := range s.Prerequisites {
		if p.MessageID != "" {
			fmt.Fprintf(w, "    needs <%s>\n", plain.Clean(p.MessageID))
		} else {
			fmt.Fprintf(w, "    needs the patch with id %s\n", plain.Clean(p.PatchID))
		}
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "    note: %s\n", plain.Clean(n))
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
		fmt.Fprintf(w, "    %s %d/%d %s\n", branch, p.N, s.Total, plain.Clean(p.Subject))
		if p.Author != s.Author {
			fmt.Fprintf(w, "    %s     by %s\n", below, plain.Clean(p.Author.String()))
		}
		fmt.Fprintf(w, "    %s     %s\n", below, plain.Clean(someOf(p.Files)))
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
func (l *List) printSkipped(w io.Writer) error {
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
			fmt.Fprintf(w, "  %s\n", plain.Clean(reason))
		}
		if s.Subject == "" {
			s.Subject = "(no subject)"
		}
		name := "<" + s.MessageID + ">"
		if s.MessageID == "" {
			name = "(" + s.Position + ")"
		}
		fmt.Fprintf(w, "    %s %s\n", plain.Clean(s.Subject), plain.Clean(name))
	}
	fmt.Fprintln(w)
	return nil
}

// JSON writes the listing as encoding/json would, with indent, one entry after another.
func (l *List) JSON(out io.Writer) error {
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
