// Package html renders a stored evaluation as one page that needs nothing else:
// no script, no font, no image, no request.
//
// In go a store.Evaluation and its samples; out comes HTML that opens from a
// file years later, in light and dark, on paper, with a keyboard and with a
// screen reader. It shows what the text of bot/report tells, and beside it a plot
// of each row over the versions, the course of the changed rows over the series,
// the samples of each round, and the logs. Nothing is judged here.
//
// Foreign text is cleaned as in every format and escaped by html/template; a
// Content-Security-Policy in the page forbids all but its own style sheet.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bot/report"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
	"patchbench/store"
)

//go:embed page.tmpl
var pageText string

//go:embed style.css
var style string

var page = template.Must(template.New("page").Parse(pageText))

// Write writes the page of an evaluation, the same bytes each time. Without
// samples the page has none to show.
func Write(w io.Writer, e *store.Evaluation, samples []bench.Sample) error {
	r := &renderer{e: e, samples: group(samples, e.Rounds*(len(e.Versions)+1)), logs: map[string]string{}, written: map[*bench.Comparison]written{}}
	var b bytes.Buffer
	b.Grow(64<<10 + 12*len(samples))
	if err := page.Execute(&b, r.page()); err != nil {
		return fmt.Errorf("render evaluation %s: %w", e.ID, err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

type renderer struct {
	e       *store.Evaluation
	samples map[rowKey][]*bench.Sample
	logs    map[string]string // cleaned, by what they were
	written map[*bench.Comparison]written
	plots   int // drawn so far, for their ids
}

// What the template shows. Text is clean and not yet escaped.
type (
	pageView struct {
		Style               template.CSS
		Title, Headline     string
		Verdict, Word       string // class and word
		Facts, Measured     []fact
		Notes               []string
		Total               []rowLine
		Before, After       string // what Total sets beside each other
		Steps               string // what leads from one to the other
		Course              *figureView
		Patches             []patchView
		Claims              []claimView
		Doubts              []rowLine
		Unchanged           string
		Missing, Warnings   []string
		Changed, Undecided  []rowView
		Same                []rowView
		Shown               []shownView
		ShownVersions       []string
		Command, ID, Footer string
	}
	fact    struct{ Name, Text string }
	rowLine struct {
		Benchmark, Metric, Base, Patched, Change, Interval string
		Rounds                                             int
		Verdict, Word                                      string
		Scope, Note                                        string
		Anchor                                             string
	}
	patchView struct {
		ID, Name, Subject, Size, Commit, State string
		Bad                                    []string // what does not work
		Effects                                []rowLine
		More                                   int // rows that it changes too
		Logs                                   []logView
		Conflict                               []string
	}
	logView struct {
		Title, Text string
		Open        bool // not said before
	}
	claimView struct {
		Scope, Text, Row, Claimed, Measured, Interval, Verdict, Word string
	}
	rowView struct {
		ID, Benchmark, Metric, Summary string
		Verdict, Word                  string
		Plot                           *figureView
		Values                         template.HTML
		Raw                            *rawView
	}
	shownView struct {
		Name, Unit string
		Values     []string
	}
	figureView struct {
		SVG     template.HTML
		Caption string
		Legend  []legend
	}
	legend struct {
		Class, Text string
		Key         template.HTML
	}
	rawView struct {
		Label string
		SVG   template.HTML
		Text  string
	}
)

func (r *renderer) page() *pageView {
	e := r.e
	p := &pageView{Style: template.CSS(style), Verdict: class(e.Verdict), ID: plain.Clean(e.ID)}
	p.Word, p.Headline = report.Lead(e)
	if r.unbuilt() {
		p.Verdict = "worse"
	}
	for _, s := range report.Sections(e, report.Options{Width: 200}, report.Notes, report.Builds, report.Missing, report.Unchanged, report.Warnings) {
		text := strings.Join(s.Lines, " ")
		switch s.Kind {
		case report.Notes:
			p.Notes = append(p.Notes, text)
		case report.Unchanged:
			p.Unchanged = text
		case report.Builds:
			p.Notes = append(p.Notes, s.Lines...)
		case report.Missing:
			p.Missing = s.Lines[1:]
		case report.Warnings:
			p.Warnings = s.Lines[1:]
		}
	}
	p.Before, p.After, p.Steps = "Base", "Patched", "Patch by patch"
	if e.CompareParam != "" {
		p.Before, p.After, p.Steps = r.patch(0), r.patch(len(e.Versions)-1), "Value by value"
	}
	p.Title = p.Word + ": " + p.Headline
	p.Headline, p.Unchanged = together(p.Headline), together(p.Unchanged)
	r.facts(p)
	view := rows.Of(e)
	p.Changed = r.rows(view.Changed)
	p.Undecided = r.rows(view.Unclear)
	p.Same = r.rows(view.Same)
	anchors := map[*bench.Comparison]string{}
	for i, c := range view.Changed {
		anchors[c.Comparison] = p.Changed[i].ID
		line := r.between(r.line(c.Comparison, c.Total), c.Comparison, 0, c.Total.N)
		line.Anchor = p.Changed[i].ID
		p.Total = append(p.Total, line)
	}
	for i, c := range view.Unclear {
		anchors[c.Comparison] = p.Undecided[i].ID
	}
	for _, d := range view.Doubts() {
		line := r.line(d.Row.Comparison, d.Step)
		line.Scope = "series"
		if d.Lo > 0 {
			line.Scope = view.Between(d.Lo, d.Hi)
		}
		if d.More > 0 {
			line.Scope += " and " + patches(d.More)
		}
		line.Anchor = anchors[d.Row.Comparison]
		p.Doubts = append(p.Doubts, line)
	}
	p.Course = r.course(view.Changed)
	p.Patches = r.patches(view, p.Changed)
	if !view.NothingBuilt() {
		p.Claims = r.claims()
	}
	r.shown(p)
	return p
}

// patches counts them: "1 patch", "3 patches".
func patches(n int) string {
	if n == 1 {
		return "1 patch"
	}
	return strconv.Itoa(n) + " patches"
}

// together keeps a number and its per cent sign on one line.
func together(s string) string { return strings.ReplaceAll(s, " %", "\u00a0%") }

// unbuilt says that some version does not build.
func (r *renderer) unbuilt() bool {
	return slices.ContainsFunc(r.e.Versions, func(v bench.Version) bool { return v.State == bench.BuildFailed })
}

func (r *renderer) facts(p *pageView) {
	e := r.e
	add := func(list *[]fact, name, text string) {
		if text = strings.TrimSpace(plain.Clean(text)); text != "" {
			*list = append(*list, fact{name, text})
		}
	}
	if s := e.Series; s != nil {
		kind := patches(s.Total)
		if s.Version > 1 {
			kind = fmt.Sprintf("v%d, %s", s.Version, kind)
		}
		add(&p.Facts, "Series", s.Subject+" ("+kind+")")
		if s.Author.Name != "" || s.Author.Email != "" {
			add(&p.Facts, "Author", s.Author.String())
		}
	} else if n := len(e.Versions); n > 0 {
		commits := fmt.Sprintf(" (%d commits)", n-1)
		if n == 2 {
			commits = " (1 commit)"
		}
		add(&p.Facts, "Range", short(e.Base.Commit)+".."+short(e.Versions[n-1].Commit)+commits)
	}
	base := short(e.Base.Commit)
	if e.Base.How != "" {
		base += " (" + e.Base.How + ")"
	}
	if e.Base.Reason != "" {
		base += ": " + e.Base.Reason
	}
	add(&p.Facts, "Base", base)
	if !e.Created.IsZero() {
		add(&p.Facts, "Measured", e.Created.UTC().Format(time.RFC3339))
	}
	for _, f := range report.Measured(e) {
		add(&p.Measured, f.Name, f.Text)
	}
	p.Command = plain.Clean(e.Command)
}

func short(commit string) string { return commit[:min(12, len(commit))] }

// class is a verdict as a class of the style sheet.
func class(v bench.Verdict) string {
	switch v {
	case bench.Better, bench.Worse, bench.Same, bench.Unclear, bench.Mixed, bench.NotMeasured:
		return string(v)
	case bench.FailedSeries:
		return "worse"
	}
	return "shown"
}

// stepWord is the verdict on one row.
func stepWord(v bench.Verdict) string {
	switch v {
	case bench.NotMeasured:
		return "not measured"
	case bench.Shown:
		return ""
	}
	return plain.Clean(string(v))
}

// A lineTable is a table of rows: with verdicts and the figures before and after, or
// by where. What answers the question stands first: on a narrow screen the rest is
// scrolled to.
type lineTable struct {
	Label, Before, After string
	Scoped               bool
	Lines                []rowLine
}

// Noted says that some line has a note.
func (t lineTable) Noted() bool {
	return slices.ContainsFunc(t.Lines, func(l rowLine) bool { return l.Note != "" })
}

// Body are the lines of the table. There may be thousands in a page, which the
// template would take too long for: every text is escaped here.
func (t lineTable) Body() template.HTML {
	var b strings.Builder
	write := func(parts ...string) {
		for i, text := range parts {
			if i%2 == 1 {
				text = template.HTMLEscapeString(text)
			}
			b.WriteString(text)
		}
	}
	noted := t.Noted()
	for _, l := range t.Lines {
		write("\n<tr><th scope=\"row\"><a href=\"#", l.Anchor, `">`, l.Benchmark+" "+l.Metric, "</a></th>")
		if t.Scoped {
			write("<td>", l.Scope, "</td>")
		} else {
			write(`<td><span class="v `, l.Verdict, `">`, l.Word, "</span></td>")
		}
		write(`<td class="n">`, l.Change, `</td><td class="i">`, l.Interval, "</td>")
		if !t.Scoped {
			write(`<td class="n">`, l.Base, `</td><td class="n">`, l.Patched, "</td>")
		}
		write(`<td class="n">`, strconv.Itoa(l.Rounds), "</td>")
		if noted {
			write(`<td class="note">`, l.Note, "</td>")
		}
		b.WriteString("</tr>")
	}
	return template.HTML(b.String())
}

// TotalTable is base against the last version.
func (p *pageView) TotalTable() lineTable {
	return lineTable{Label: p.Before + " against the last version", Before: p.Before, After: p.After, Lines: p.Total}
}

// DoubtsTable are the rows that are not decided.
func (p *pageView) DoubtsTable() lineTable {
	return lineTable{Label: "Neither changed nor the same for certain", Scoped: true, Lines: p.Doubts}
}

// EffectsTable is what a patch changes.
func (p patchView) EffectsTable() lineTable {
	return lineTable{Label: "Changed by " + p.Name, Before: "Before", After: "After", Lines: p.Effects}
}

// HasRows says whether anything was measured.
func (p *pageView) HasRows() bool {
	return len(p.Changed)+len(p.Undecided)+len(p.Same)+len(p.Shown) > 0
}
