// Package markdown renders a stored evaluation for a pull request, in GitHub's
// Markdown.
//
// In go a store.Evaluation, out comes the text of bot/report with its tables and
// everything foreign in code fences: what changed in the open, the rest below a
// details block. Nothing is judged and nothing is sent here.
//
//	**Worse.** `Patch 2/5 makes hash slower: cpu +5.1 % (4.6 .. 5.5)`
//
//	```text
//	Base against the whole series (medians +- 95 %, 20 rounds)
//	...
//	```
//
//	<details><summary>Machine and how to reproduce</summary>
//	...
//
// Subjects, names, logs and claims stand inside code alone, fenced by more
// backticks than they hold in a row: no mention, closing keyword, link, image or
// markup can come from them.
package markdown

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// width is that of the text, which a page of GitHub shows without scrolling.
const width = 84

// folded is what stands in the summary of a details block for a section in it.
var folded = map[report.Kind]string{
	report.Builds: "Builds", report.Doubts: "Unclear", report.Missing: "Not measured", report.Warnings: "Warnings",
	report.Facts: "Machine, rounds, and how to reproduce",
}

// part is what shares a fence.
type part struct {
	open  bool // shown at once
	kinds []report.Kind
}

// parts are the sections in their fences, the open ones first. Unclear rows are
// open where there is nothing else to tell.
func parts(e *store.Evaluation) []part {
	list := []part{
		{true, []report.Kind{report.About, report.Whole}},
		{true, []report.Kind{report.Patches}},
		{true, []report.Kind{report.Failed}},
		{true, []report.Kind{report.Claims}},
	}
	rest := []report.Kind{report.Builds, report.Doubts, report.Missing, report.Warnings}
	if e.Verdict == bench.Unclear {
		list = append(list, part{true, []report.Kind{report.Doubts}})
		rest = slices.Delete(rest, 1, 2)
	}
	return append(list, part{true, []report.Kind{report.Unchanged}}, part{false, rest}, part{false, []report.Kind{report.Facts}})
}

// Write writes the report of an evaluation; the same bytes each time.
func Write(w io.Writer, e *store.Evaluation) error {
	sections := report.Sections(e, report.Options{Width: width})
	var b bytes.Buffer
	word, headline := report.Lead(e)
	b.WriteString("**" + word + ".** " + code(plain.Cut(headline, 4*width)) + "\n")
	for _, s := range sections {
		if s.Kind == report.Notes {
			notes := strings.Fields(strings.Join(s.Lines, " ")) // text wraps and indents them
			b.WriteString("\n" + code(strings.Join(notes, " ")) + "\n")
		}
	}
	for _, p := range parts(e) {
		var text, summary []string
		for _, s := range sections {
			for _, k := range p.kinds {
				if s.Kind != k {
					continue
				}
				summary = append(summary, folded[k])
				if len(text) > 0 {
					text = append(text, "")
				}
				text = append(text, s.Lines...)
			}
		}
		switch {
		case len(text) == 0:
		case p.open:
			b.WriteString("\n" + fence(text))
		default:
			b.WriteString("\n<details><summary>" + strings.Join(summary, ", ") + "</summary>\n\n" + fence(text) + "\n</details>\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// longest is the longest run of backticks in s.
func longest(s string) int {
	most, n := 0, 0
	for _, r := range s {
		if r == '`' {
			n++
			most = max(most, n)
		} else {
			n = 0
		}
	}
	return most
}

// fence puts lines into a code block.
func fence(lines []string) string {
	text := strings.Join(lines, "\n")
	ticks := strings.Repeat("`", max(3, longest(text)+1))
	return ticks + "text\n" + text + "\n" + ticks + "\n"
}

// code makes s, one line, a code span. A blank beside each fence, which the
// reader's engine takes away again, keeps backticks at the ends apart.
func code(s string) string {
	ticks := strings.Repeat("`", longest(s)+1)
	return ticks + " " + strings.TrimSpace(s) + " " + ticks
}
