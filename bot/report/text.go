package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
	"patchbench/store"
)

// The longest text, in lines. What matters most is told and the rest counted.
const mostLines = 200

type renderer struct {
	e     *store.Evaluation
	color bool
	width int // of a line
	inner int // of tables and prose
	*rows.View
}

// Text writes the report as plain text: UTF-8 without control characters, lines
// of at most o.Width columns, 200 lines at most. Everything but foreign names
// and texts is ASCII. An evaluation without ID is a comparison of samples alone,
// of which neither series nor machine are told.
func Text(w io.Writer, e *store.Evaluation, o Options) error {
	var b bytes.Buffer
	for i, section := range Sections(e, o) {
		if i > 0 && section.Kind != Notes {
			b.WriteByte('\n')
		}
		for _, line := range section.Lines {
			b.WriteString(line + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// A Section is a part of the text that stands between empty lines.
type Section struct {
	Kind  Kind
	Lines []string // without blanks at their ends; clean and short enough
}

// Kind says what a section tells.
type Kind int

// The kinds, in the order in which their sections come.
const (
	Headline  Kind = iota // the verdict
	Notes                 // on the evaluation as a whole; no empty line before them
	About                 // what was evaluated
	Whole                 // base against the last version
	Patches               // patch by patch
	Failed                // what does not apply, build or run
	Claims                // the author's numbers
	Builds                // versions that were not measured
	Doubts                // unclear rows
	Missing               // rows without figures
	Unchanged             // and what stands beside the figures
	Warnings
	Facts // machine, rounds, how to reproduce
)

// Sections gives the text of Text in its parts; those that are empty are left out.
// With kinds, only these are made.
func Sections(e *store.Evaluation, o Options, kinds ...Kind) []Section {
	if o.Width == 0 {
		o.Width = 78
	}
	r := &renderer{e: e, color: o.Color, width: max(o.Width, 60), View: rows.Of(e)}
	r.inner = r.width - 6
	wanted := func(k Kind) bool { return len(kinds) == 0 || slices.Contains(kinds, k) }
	tables := wanted(Whole) || wanted(Patches)

	lines := map[Kind][]string{}
	left := mostLines - 4
	if o.Lines > 0 {
		left = max(o.Lines, 100) - 4
	}
	for kind, make := range map[Kind]func() []string{
		Headline: r.headline, Notes: r.notes, About: r.about, Failed: r.failures, Claims: r.claims, Builds: r.sameBuilds,
		Doubts: r.unclear, Missing: r.missing, Warnings: r.warnings, Facts: r.facts,
		Unchanged: func() []string { return slices.Concat(r.unchanged(), r.beside(), r.waiting()) },
	} {
		if tables || wanted(kind) {
			lines[kind] = make()
			left -= len(lines[kind])
			if kind >= Failed && kind < Facts {
				left--
			}
		}
	}
	if tables {
		// The tables get what room the others leave.
		steps := r.patchByPatch(left / 2)
		lines[Whole] = r.wholeSeries(left - len(steps))
		lines[Patches] = r.patchByPatch(left - len(lines[Whole]))
	}
	var all []Section
	for kind := Headline; kind <= Facts; kind++ {
		if len(lines[kind]) == 0 || !wanted(kind) {
			continue
		}
		for i, line := range lines[kind] {
			lines[kind][i] = strings.TrimRight(line, " ")
		}
		all = append(all, Section{kind, lines[kind]})
	}
	return all
}

// SGR colours.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (r *renderer) paint(s, code string) string {
	if !r.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (r *renderer) verdict(v bench.Verdict) string {
	switch v {
	case bench.Worse:
		return r.paint("worse", red)
	case bench.Better:
		return r.paint("better", green)
	case bench.Unclear:
		return r.paint("unclear", yellow)
	case bench.NotMeasured:
		return "not measured"
	}
	return plain.Clean(string(v))
}

// title is the first line of a section.
func (r *renderer) title(s string) string { return r.paint(s, bold) }

// labelled is how far the text behind a label is indented.
const labelled = 10

// fact is a labelled paragraph.
func (r *renderer) fact(label, text string) []string {
	if text == "" {
		return nil
	}
	lines := plain.Wrap(text, r.inner-labelled, "")
	for i := range lines {
		lines[i] = plain.Pad(label, labelled) + lines[i]
		label = ""
	}
	return lines
}

// line is a labelled line, cut to fit.
func (r *renderer) line(label, text string) string {
	return plain.Pad(label, labelled) + plain.Cut(text, r.inner-labelled)
}

// headline is the verdict.
func (r *renderer) headline() []string {
	e := r.e
	headline := e.Headline
	if headline == "" {
		headline = "Verdict: " + string(e.Verdict)
	}
	lines := plain.Wrap(plain.Cut(plain.Clean(headline), 4*r.inner), r.width, "  ")
	for i := range lines {
		lines[i] = r.paint(lines[i], bold)
	}
	return lines
}

// notes are what a reader must know before he trusts the headline.
func (r *renderer) notes() []string {
	e := r.e
	var lines []string
	if e.Stopped == store.StoppedInterrupted {
		text := fmt.Sprintf("Measuring was interrupted after %s", count(e.Rounds, "round"))
		if e.Rounds > 0 {
			text += "; the figures are from these"
		}
		text += "."
		if e.ID != "" {
			text += " To go on, add --resume " + plain.Clean(e.ID) + " to the command."
		}
		for _, line := range plain.Wrap(text, r.width, "  ") {
			lines = append(lines, r.paint(line, yellow))
		}
	}
	if s := e.Series; s != nil && !s.Complete {
		text := fmt.Sprintf("Incomplete: %d of %d patches came", s.Received, s.Total)
		if len(s.Missing) > 0 {
			text += "; missing: " + r.Names(s.Missing)
		}
		lines = append(lines, plain.Wrap(text+".", r.inner, "  ")...)
	}
	if e.Unsafe {
		lines = append(lines, r.paint("Measured without a sandbox.", yellow))
	}
	return lines
}

// about is what was evaluated.
func (r *renderer) about() []string {
	e := r.e
	if e.ID == "" {
		return nil
	}
	var lines []string
	if r.Values() != "" {
		built := ""
		if n := len(e.Versions); n > 0 {
			built = ", built from " + short(e.Versions[0].Commit)
		}
		lines = append(lines, r.line("Values", "of the build parameter "+r.Values()+built))
	} else if s := e.Series; s != nil {
		kind := count(s.Total, "patch")
		if s.Version > 1 {
			kind = "v" + strconv.Itoa(s.Version) + ", " + kind
		}
		size := r.Size(1)
		if s.Total == 1 && size != "" {
			kind += ", " + size
		}
		kind = " (" + kind + ")"
		lines = append(lines, r.line("Series", plain.Cut(plain.Clean(s.Subject), r.inner-labelled-plain.Columns(kind))+kind))
		if author := plain.Clean(s.Author.String()); author != "<>" {
			lines = append(lines, r.line("Author", author))
		}
	} else {
		last := ""
		if n := len(e.Versions); n > 0 {
			last = short(e.Versions[n-1].Commit)
		}
		lines = append(lines, r.line("Range", fmt.Sprintf("%s..%s (%s)", short(e.Base.Commit), last, count(r.Patches(), "commit"))))
		if r.Patches() == 1 {
			lines = append(lines, r.heading("Commit    ", 1))
		}
	}
	base := short(e.Base.Commit)
	if e.Base.How != "" {
		base += " (" + plain.Clean(e.Base.How) + ")"
	}
	if e.Base.Reason != "" {
		base += ": " + plain.Cut(plain.Clean(e.Base.Reason), 3*r.inner)
	}
	return append(lines, r.fact("Base", base)...)
}

// short is a commit in twelve digits.
func short(commit string) string {
	commit = plain.Clean(commit)
	return commit[:min(12, len(commit))]
}

// count is a number with its noun: "1 round", "3 patches".
func count(n int, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "h"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// facts is where and how it was measured, and how to do it again.
func (r *renderer) facts() []string {
	e := r.e
	most := map[string]int{"Machine": 5, "Suite": 1} // lines
	var lines []string
	for _, f := range measured(r.View) {
		lines = append(lines, r.fact(f.Name, plain.Cut(f.Text, max(2, most[f.Name])*(r.inner-labelled)))...)
	}
	if e.ID != "" && e.Command != "" {
		lines = append(lines, "Reproduce:")
		for i, line := range plain.Command(e.Command, r.width-2, "    ") {
			if i == 0 {
				line = "  " + line
			}
			lines = append(lines, line)
		}
	}
	return lines
}
