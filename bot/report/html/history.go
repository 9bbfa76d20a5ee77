package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"time"

	"patchbench/bot/report/figure"
	"patchbench/bot/report/history"
	"patchbench/bot/report/plain"
)

//go:embed history.tmpl
var historyText string

var historyPage = template.Must(template.New("history").Parse(historyText))

type (
	historyView struct {
		Style  template.CSS
		Title  string
		Tracks []trackView
	}
	trackView struct {
		ID, Title string
		SVG       template.HTML
		Changes   []changeView
		Points    []pointView
	}
	changeView struct{ Date, Base, Before, After, Change, Verdict, Note string }
	pointView  struct{ Date, Base, Median, Interval, Change, Verdict, Note, Evaluation string }
)

// History writes the page of a benchmark's history: for each track a plot over
// time with its changes marked, and all figures as a table. title names what was
// asked for.
func History(w io.Writer, title string, tracks []history.Track) error {
	v := historyView{Style: template.CSS(style), Title: "History of " + plain.Clean(title)}
	for i := range tracks {
		t := &tracks[i]
		id := "track" + strconv.Itoa(i+1)
		view := trackView{ID: id, Title: t.Title(), SVG: overTime(t, id)}
		s, d := t.Scale()
		number := func(v float64) string { return figure.Number(v/s.Factor, d) + unit(s.Unit) }
		for j, p := range t.Points {
			commit := plain.Clean(short(p.Base.Commit))
			point := pointView{Date: p.Created.Format(time.DateOnly), Base: commit, Median: number(*p.Value.Median), Note: t.Note(j), Evaluation: plain.Clean(p.Evaluation)}
			if figure.Finite(p.Value.Lo) && figure.Finite(p.Value.Hi) && !t.Exact {
				point.Interval = number(*p.Value.Lo) + " .. " + number(*p.Value.Hi)
			}
			if c := t.Change(j); c != nil {
				point.Change, point.Verdict = figure.ChangeOf(&c.Relative, nil, nil).Middle, class(c.Verdict)
				view.Changes = append(view.Changes, changeView{point.Date, commit, number(c.Before), number(c.After), point.Change, point.Verdict, point.Note})
			}
			view.Points = append(view.Points, point)
		}
		v.Tracks = append(v.Tracks, view)
	}
	var b bytes.Buffer
	if err := historyPage.Execute(&b, v); err != nil {
		return fmt.Errorf("render history: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// overTime draws a track: dots and intervals by day, levels between its changes.
func overTime(t *history.Track, id string) template.HTML {
	p := &canvas{}
	var values []float64
	for _, point := range t.Points {
		values = append(values, *point.Value.Median)
		if figure.Finite(point.Value.Lo) && figure.Finite(point.Value.Hi) && !t.Exact {
			values = append(values, *point.Value.Lo, *point.Value.Hi)
		}
	}
	if !p.span(values...) {
		return ""
	}
	s, _ := t.Scale()
	first, last := t.Points[0].Created, t.Points[len(t.Points)-1].Created
	whole := last.Sub(first).Seconds()
	x := func(at time.Time) float64 {
		if whole <= 0 {
			return roomLeft + innerWide/2
		}
		return roomLeft + 8 + (innerWide-16)*at.Sub(first).Seconds()/whole
	}
	p.open(id+"-p", t.Title(), fmt.Sprintf("From %s to %s with %d changes; the same figures stand in the table.", first.Format(time.DateOnly), last.Format(time.DateOnly), len(t.Changes)))
	p.axes(s.Factor, func(v float64) string { return tick(v/s.Factor) + unit(s.Unit) })
	fmt.Fprintf(p, `<text class="tick" x="%s" y="%s">%s</text>`, f(roomLeft), f(frameBottom+15), first.Format(time.DateOnly))
	if whole > 0 {
		fmt.Fprintf(p, `<text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`, f(frameRight), f(frameBottom+15), last.Format(time.DateOnly))
	}
	level := func(v float64, from, to int) {
		y := f(p.y(v))
		fmt.Fprintf(p, `<path class="baseline" d="M%s %sH%s"/>`, f(x(t.Points[from].Created)), y, f(x(t.Points[to].Created)))
	}
	for i, c := range t.Changes {
		if i == 0 {
			level(c.Before, 0, c.At-1)
		}
		end := len(t.Points) - 1
		if i+1 < len(t.Changes) {
			end = t.Changes[i+1].At - 1
		}
		level(c.After, c.At, end)
	}
	for i, point := range t.Points {
		at := x(point.Created)
		if figure.Finite(point.Value.Lo) && figure.Finite(point.Value.Hi) && !t.Exact {
			fmt.Fprintf(p, `<path class="whisker" d="M%s %sV%s"/>`, f(at), f(p.y(*point.Value.Lo)), f(p.y(*point.Value.Hi)))
		}
		var kind int8
		up := false
		if c := t.Change(i); c != nil {
			kind, up = better, c.After > c.Before
			if class(c.Verdict) == "worse" {
				kind = worse
			}
		}
		p.mark(at, p.y(*point.Value.Median), up, kind)
	}
	p.WriteString(`</svg>`)
	return template.HTML(p.String())
}
