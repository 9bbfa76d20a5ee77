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
	"fmt"
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
	_, err := io.WriteString(w, join(blocks(e)))
	return err
}

// Within gives the report in at most limit bytes, and whether that took leaving
// something out: first whole details blocks, from the end, then the ends of the
// longest tables, each with the number of its lines that are missing. What is
// left is as well formed as the whole. A limit below 4,000 may not be kept.
func Within(e *store.Evaluation, limit int) (md string, cut bool) {
	list := blocks(e)
	for md = join(list); len(md) > limit; md = join(list) {
		i := drop(list)
		switch {
		case i < 0:
			return md, true
		case list[i].summary != "" || len(list[i].lines) < 2:
			list = slices.Delete(list, i, i+1)
		default:
			b := &list[i]
			keep := len(b.lines) / 2
			b.missing += len(b.lines) - keep
			b.lines = b.lines[:keep]
		}
		cut = true
	}
	return md, cut
}

// drop is the block to shorten next, -1 if none is left.
func drop(list []block) int {
	at := -1
	for i, b := range list {
		switch {
		case b.lines == nil:
		case at < 0, b.summary != "", list[at].summary == "" && b.size() >= list[at].size():
			at = i
		}
	}
	return at
}

// block is what stands between blank lines: a text, or a fence, or a fence in a
// details block.
type block struct {
	text    string
	summary string // of the details block, "" for none
	lines   []string
	missing int // lines left out at the end
}

func (b block) size() (n int) {
	for _, line := range b.lines {
		n += len(line) + 1
	}
	return n
}

func (b block) String() string {
	if b.lines == nil {
		return b.text
	}
	lines := b.lines
	if b.missing > 0 {
		lines = append(slices.Clip(lines), fmt.Sprintf("... %d more lines", b.missing))
	}
	if b.summary == "" {
		return Fence(lines)
	}
	return "<details><summary>" + b.summary + "</summary>\n\n" + Fence(lines) + "\n</details>\n"
}

func join(list []block) string {
	parts := make([]string, len(list))
	for i, b := range list {
		parts[i] = b.String()
	}
	return strings.Join(parts, "\n")
}

// maxNotes bounds what is said in notes, in columns.
const maxNotes = 2000

// blocks are all of a report.
func blocks(e *store.Evaluation) []block {
	sections := report.Sections(e, report.Options{Width: width})
	word, headline := report.Lead(e)
	list := []block{{text: "**" + word + ".** " + Code(plain.Cut(headline, 4*width)) + "\n"}}
	for _, s := range sections {
		if s.Kind == report.Notes {
			notes := strings.Fields(strings.Join(s.Lines, " ")) // text wraps and indents them
			list = append(list, block{text: Code(plain.Cut(strings.Join(notes, " "), maxNotes)) + "\n"})
		}
	}
	for _, p := range parts(e) {
		var lines, summary []string
		for _, s := range sections {
			for _, k := range p.kinds {
				if s.Kind != k {
					continue
				}
				summary = append(summary, folded[k])
				if len(lines) > 0 {
					lines = append(lines, "")
				}
				lines = append(lines, s.Lines...)
			}
		}
		switch {
		case len(lines) == 0:
		case p.open:
			list = append(list, block{lines: lines})
		default:
			list = append(list, block{lines: lines, summary: strings.Join(summary, ", ")})
		}
	}
	return list
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

// Fence puts lines, which hold nothing unprintable, into a code block.
func Fence(lines []string) string {
	text := strings.Join(lines, "\n")
	ticks := strings.Repeat("`", max(3, longest(text)+1))
	return ticks + "text\n" + text + "\n" + ticks + "\n"
}

// Code makes s, one line of nothing unprintable, a code span. A blank beside each fence, which the
// reader's engine takes away again, keeps backticks at the ends apart.
func Code(s string) string {
	ticks := strings.Repeat("`", longest(s)+1)
	return ticks + " " + strings.TrimSpace(s) + " " + ticks
}
