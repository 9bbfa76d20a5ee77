package html

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// The size of a plot and the room around its frame, in its own units.
const (
	plotWide, plotHigh             = 640.0, 180.0
	roomLeft, roomRight            = 66.0, 14.0
	roomTop, roomBottom            = 12.0, 24.0
	innerWide, innerHigh           = plotWide - roomLeft - roomRight, plotHigh - roomTop - roomBottom
	mostVersions, mostCourses      = 400, 6
	frameRight, frameBottom        = plotWide - roomRight, plotHigh - roomBottom
	better, worse             int8 = 1, 2
)

// A canvas is an SVG being drawn. Only our own numbers and escaped text go in.
type canvas struct {
	strings.Builder
	lo, hi   float64 // of the vertical axis
	versions int     // on the horizontal axis, from 0
}

func (c *canvas) x(n float64) float64 {
	if c.versions <= 1 {
		return roomLeft + innerWide/2
	}
	// Half a step stays free at both ends.
	return roomLeft + innerWide*(n+0.5)/float64(c.versions)
}

func (c *canvas) y(v float64) float64 {
	return roomTop + innerHigh*(1-(v-c.lo)/(c.hi-c.lo))
}

// f writes a coordinate.
func f(v float64) string { return string(appendCoordinate(nil, v)) }

func appendCoordinate(b []byte, v float64) []byte {
	n := int(math.Round(min(max(v, -1e6), 1e6) * 10))
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, int64(n/10), 10)
	if n%10 != 0 {
		b = append(b, '.', byte('0'+n%10))
	}
	return b
}

// put writes an element: text and coordinates in turn.
func (c *canvas) put(parts ...any) {
	var b [24]byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			c.WriteString(p)
		case float64:
			c.Write(appendCoordinate(b[:0], p))
		}
	}
}

// open starts the drawing with its name and description for those who do not
// see it.
func (c *canvas) open(id, title, desc string) {
	fmt.Fprintf(c, `<svg viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		f(plotWide), f(plotHigh), id, id, id, template.HTMLEscapeString(title), id, template.HTMLEscapeString(desc))
}

// axes draws frame, ticks and labels; label writes a value of the vertical axis,
// whose ticks are round numbers in the unit of factor.
func (c *canvas) axes(factor float64, label func(float64) string) {
	step := niceStep((c.hi-c.lo)/factor/4) * factor
	for v := math.Ceil(c.lo/step) * step; v <= c.hi && step > 0; v += step {
		if math.Abs(v) < step/2 {
			v = 0 // and not what is left of a sum
		}
		y := f(c.y(v))
		fmt.Fprintf(c, `<path class="grid" d="M%s %sH%s"/><text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`,
			f(roomLeft), y, f(frameRight), f(roomLeft-6), f(c.y(v)+3.5), template.HTMLEscapeString(label(v)))
	}
	every := 1 + (c.versions-1)/16
	for n := 0; n < c.versions; n += every {
		name := strconv.Itoa(n)
		if n == 0 {
			name = "base"
		}
		fmt.Fprintf(c, `<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, f(c.x(float64(n))), f(frameBottom+15), name)
	}
	fmt.Fprintf(c, `<path class="axis" d="M%s %sV%sH%s"/>`, f(roomLeft), f(roomTop), f(frameBottom), f(frameRight))
}

// niceStep is 1, 2 or 5 times a power of ten, at least v.
func niceStep(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*0.999999 {
			return m * p
		}
	}
	return 10 * p
}

// span makes the vertical axis fit, with air above and below.
func (c *canvas) span(values ...float64) bool {
	c.lo, c.hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		c.lo, c.hi = min(c.lo, v), max(c.hi, v)
	}
	if math.IsInf(c.lo, 0) || math.IsInf(c.hi, 0) || math.IsNaN(c.lo+c.hi) || math.IsInf(c.hi-c.lo, 0) {
		return false
	}
	air := (c.hi - c.lo) * 0.08
	// A row that does not move must not look as if it did: at least 2 % are shown.
	if least := max(math.Abs(c.hi), math.Abs(c.lo)) * 0.01; c.hi-c.lo < 2*least {
		air = least
	}
	if air == 0 {
		air = 1
	}
	c.lo, c.hi = c.lo-air, c.hi+air
	return c.hi > c.lo
}

// mark draws a dot, or an arrow where the step to this version is a change: the
// shape tells what the colour does.
func (c *canvas) mark(x, y float64, up bool, kind int8) {
	switch {
	case kind == 0:
		c.put(`<circle class="dot" cx="`, x, `" cy="`, y, `" r="3.5"/>`)
	default:
		name, d := "worse", 6.0
		if kind == better {
			name = "better"
		}
		if !up {
			d = -d
		}
		fmt.Fprintf(c, `<path class="%s" d="M%s %sL%s %sL%s %sZ"/>`, name, f(x), f(y-d), f(x+6), f(y+d*0.8), f(x-6), f(y+d*0.8))
	}
}

// plot is the dot-and-interval plot of a row over the versions.
func (r *renderer) plot(c *bench.Comparison, w written, id string) *figureView {
	p := &canvas{}
	var values []float64
	missing := 0
	for _, v := range r.e.Versions {
		if v.N < 0 || v.N >= mostVersions {
			continue
		}
		p.versions = max(p.versions, v.N+1)
		value := rows.Value(r.e, c, v.N)
		if !figure.Finite(value.Median) {
			missing++
			continue
		}
		values = append(values, *value.Median)
		if figure.Finite(value.Lo) && figure.Finite(value.Hi) {
			values = append(values, *value.Lo, *value.Hi)
		}
	}
	if !p.span(values...) {
		return nil
	}
	name := plain.Clean(bench.RowName(c.Benchmark, c.Params) + " " + c.Metric)
	p.Grow(6<<10 + 220*len(values)/3)
	p.open(id, name+" by version", r.describe(c, w))
	p.axes(w.Factor, func(v float64) string { return tick(v/w.Factor) + unit(w.Unit) })
	base := rows.Value(r.e, c, 0)
	if figure.Finite(base.Median) {
		y := f(p.y(*base.Median))
		fmt.Fprintf(p, `<path class="baseline" d="M%s %sH%s"/>`, f(roomLeft), y, f(frameRight))
	}
	kinds, ups := r.stepsOf(c)
	for _, v := range r.e.Versions {
		if v.N < 0 || v.N >= mostVersions {
			continue
		}
		x := p.x(float64(v.N))
		value := rows.Value(r.e, c, v.N)
		if !figure.Finite(value.Median) {
			fmt.Fprintf(p, `<text class="none" x="%s" y="%s" text-anchor="middle">x</text>`, f(x), f(frameBottom-4))
			continue
		}
		if figure.Finite(value.Lo) && figure.Finite(value.Hi) && !c.Exact {
			lo, hi := p.y(*value.Lo), p.y(*value.Hi)
			p.put(`<path class="whisker" d="M`, x, " ", lo, "V", hi, "M", x-4, " ", lo, "h8M", x-4, " ", hi, `h8"/>`)
		}
		p.mark(x, p.y(*value.Median), ups[v.N], kinds[v.N])
	}
	p.WriteString(`</svg>`)
	view := &figureView{SVG: template.HTML(p.String()), Caption: "Median and its 95 % interval by version; the dashed line is base."}
	if c.Exact {
		view.Caption = "Exact count by version; the dashed line is base."
	}
	if missing > 0 {
		view.Caption += " x: not measured."
	}
	return view
}

// stepsOf says at which versions a row changes, and whether it rises there.
func (r *renderer) stepsOf(c *bench.Comparison) (kinds map[int]int8, ups map[int]bool) {
	kinds, ups = map[int]int8{}, map[int]bool{}
	for _, s := range c.Steps {
		switch s.Verdict {
		case bench.Better:
			kinds[s.N] = better
		case bench.Worse:
			kinds[s.N] = worse
		}
		if figure.Finite(s.Change) {
			ups[s.N] = *s.Change > 0
			continue
		}
		// From nothing to something there is no share.
		before, after := rows.Value(r.e, c, s.N-1).Median, rows.Value(r.e, c, s.N).Median
		ups[s.N] = figure.Finite(before) && figure.Finite(after) && *after > *before
	}
	return kinds, ups
}

// describe tells a plot in words.
func (r *renderer) describe(c *bench.Comparison, w written) string {
	text := "Base " + w.value(rows.Value(r.e, c, 0)) + ", last version " + w.value(rows.Value(r.e, c, c.Total.N)) + "."
	for _, s := range c.Steps {
		if s.Verdict.Changed() {
			text += fmt.Sprintf(" %s at %s: %s.", stepWord(s.Verdict), r.patch(s.N), figure.ChangeOf(s.Change, nil, nil).Middle)
		}
	}
	return text
}

// tick writes a value of an axis, without noise.
func tick(v float64) string {
	return strings.Replace(strconv.FormatFloat(v, 'g', 4, 64), "e+0", "e", 1)
}

// scatter draws every sample of a row: within a version from left to right by round.
func (r *renderer) scatter(c *bench.Comparison, w written, samples []*bench.Sample, id string) template.HTML {
	p := &canvas{}
	var values []float64
	rounds := 1
	for _, s := range samples {
		if s.Version < 0 || s.Version >= mostVersions {
			continue
		}
		values = append(values, s.Value)
		p.versions, rounds = max(p.versions, s.Version+1), max(rounds, s.Round)
	}
	if !p.span(values...) {
		return ""
	}
	p.open(id+"-s", "Samples of "+plain.Clean(bench.RowName(c.Benchmark, c.Params)+" "+c.Metric), "Every sample by version and, within a version, by round; the same numbers stand below.")
	p.axes(w.Factor, func(v float64) string { return tick(v/w.Factor) + unit(w.Unit) })
	path := make([]byte, 0, 14*len(samples))
	for _, twin := range []bool{false, true} {
		if twin {
			p.WriteString(`<path class="twin" d="`)
		} else {
			p.WriteString(`<path class="samples" d="`)
		}
		for _, s := range samples {
			if s.Twin != twin || s.Version < 0 || s.Version >= mostVersions {
				continue
			}
			at := float64(s.Version) + 0.7*((float64(s.Round)-0.5)/float64(rounds)-0.5)
			// A line of no length with round ends is a dot.
			path = appendCoordinate(append(path, 'M'), p.x(at))
			path = appendCoordinate(append(path, ' '), p.y(s.Value))
			path = append(path, "h0"...)
		}
		p.Write(path)
		path = path[:0]
		p.WriteString(`"/>`)
	}
	p.WriteString(`</svg>`)
	return template.HTML(p.String())
}

// course draws how far the changed rows are from base after each patch.
func (r *renderer) course(changed []rows.Row) *figureView {
	type line struct {
		c  *bench.Comparison
		at map[int]float64
	}
	p := &canvas{}
	var lines []line
	values := []float64{0}
	for _, row := range changed {
		c := row.Comparison
		base := rows.Value(r.e, c, 0)
		if len(lines) == mostCourses || !figure.Finite(base.Median) || *base.Median <= 0 {
			continue
		}
		l := line{c, map[int]float64{}}
		for _, v := range r.e.Versions {
			value := rows.Value(r.e, c, v.N)
			if v.N < 0 || v.N >= mostVersions || !figure.Finite(value.Median) {
				continue
			}
			p.versions = max(p.versions, v.N+1)
			change := (*value.Median / *base.Median - 1) * 100
			l.at[v.N] = change
			values = append(values, change)
		}
		lines = append(lines, l)
	}
	if len(lines) == 0 || p.versions < 3 || !p.span(values...) {
		return nil
	}
	p.open("course", "Cumulative course of the changed rows", "Change against base in per cent after each patch; the same figures stand in the tables of the rows.")
	p.axes(1, func(v float64) string {
		s := tick(v)
		if v > 0 {
			s = "+" + s
		}
		return s + " %"
	})
	fmt.Fprintf(p, `<path class="baseline" d="M%s %sH%s"/>`, f(roomLeft), f(p.y(0)), f(frameRight))
	view := &figureView{Caption: "Change of the medians against base after each patch."}
	for i, l := range lines {
		var d strings.Builder
		pen := "M"
		for n := range p.versions {
			v, ok := l.at[n]
			if !ok {
				continue
			}
			fmt.Fprintf(&d, "%s%s %s", pen, f(p.x(float64(n))), f(p.y(v)))
			pen = "L"
		}
		fmt.Fprintf(p, `<path class="line c%d" d="%s"/>`, i, d.String())
		for n := range p.versions {
			if v, ok := l.at[n]; ok {
				fmt.Fprintf(p, `<circle class="at c%d" cx="%s" cy="%s" r="2.5"/>`, i, f(p.x(float64(n))), f(p.y(v)))
			}
		}
		view.Legend = append(view.Legend, legend{
			Text: plain.Clean(bench.RowName(l.c.Benchmark, l.c.Params)+" "+l.c.Metric) + " " + r.line(l.c, l.c.Total).Change,
			Key:  template.HTML(fmt.Sprintf(`<svg class="key" viewBox="0 0 36 10" aria-hidden="true"><path class="line c%d" d="M1 5H35"/></svg>`, i)),
		})
	}
	if more := len(changed) - len(lines); more > 0 {
		view.Caption += fmt.Sprintf(" Changed rows that are not drawn here: %d.", more)
	}
	p.WriteString(`</svg>`)
	view.SVG = template.HTML(p.String())
	return view
}
