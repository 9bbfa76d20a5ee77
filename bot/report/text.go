package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
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

// roundsOf words the rounds behind the rows: "20 rounds", "10 to 40 rounds".
func (r *renderer) roundsOf() string {
	if r.Fewest == r.Most {
		return count(r.Most, "round")
	}
	return fmt.Sprintf("%d to %s", r.Fewest, count(r.Most, "round"))
}

// wholeSeries is the table of the rows that changed, base against the last
// version, in at most most lines.
func (r *renderer) wholeSeries(most int) []string {
	var list []rows.Row
	last := -1
	for _, w := range r.Told {
		if w.Total.Change == nil && w.Total.Verdict == bench.NotMeasured {
			continue // what became of it stands among the failures
		}
		list = append(list, w)
		if last < 0 {
			last = w.Total.N
		} else if last != w.Total.N {
			last = 0
		}
	}
	if len(list) == 0 {
		return nil
	}
	what := "the whole series"
	switch {
	case r.Patches() == 1:
		what = "patched"
	case last == 0:
		what = "the last version measured"
	case last != r.Patches():
		what = r.Patch(last) + ", the last version measured"
	case r.e.Series == nil:
		what = "the whole range"
	}
	from := "Base"
	if r.Values() != "" {
		from, what = r.Patch(0), r.Patch(max(last, 1))
	}
	title := fmt.Sprintf("%s against %s (medians +- 95 %%, %s)", from, what, count(list[0].Rounds, "round"))
	if apart(list) {
		title = fmt.Sprintf("%s against %s (medians +- 95 %%, n rounds)", from, what)
	}
	lines := []string{r.title(plain.Cut(title, r.inner))}
	shown := len(list)
	body := r.totalTable(list)
	for len(body)+2 > most && shown > 1 {
		shown = max(1, shown-max(1, (len(body)+2-most)/2))
		body = r.totalTable(list[:shown])
	}
	lines = append(lines, body...)
	if rest := list[shown:]; len(rest) > 0 {
		lines = append(lines, "  "+r.counted(rest))
	}
	if n := len(r.Changed) - len(r.Told); n > 0 {
		lines = append(lines, fmt.Sprintf("  and wall time, which follows cpu time in %s", count(n, "row")))
	}
	return lines
}

// apart says that not all rows have as many rounds.
func apart(list []rows.Row) bool {
	return slices.ContainsFunc(list, func(w rows.Row) bool { return w.Rounds != list[0].Rounds })
}

// counted words the rows for which there was no room.
func (r *renderer) counted(rest []rows.Row) string {
	worse := 0
	for _, w := range rest {
		if is, _ := w.Weight(); w.Total.Verdict == bench.Worse || is && w.Total.Verdict != bench.Better {
			worse++
		}
	}
	return fmt.Sprintf("and %s that changed (%d worse, %d better)", count(len(rest), "more row"), worse, len(rest)-worse)
}

// How a table names its rows.
const (
	inline  = iota // "hash cpu" in the row
	grouped        // "hash" above the rows, "cpu" in each
	above          // "hash cpu" above each row
)

// totalTable lays rows out under their verdicts, in the first way that fits.
func (r *renderer) totalTable(list []rows.Row) []string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b rows.Row) int { return cmp.Compare(place(a.Total), place(b.Total)) })
	several := false // rows to a benchmark
	for i := 1; i < len(list); i++ {
		several = several || list[i].Name == list[i-1].Name
	}
	from, to := "base", "patched"
	if param := r.Values(); param != "" {
		value := func(n int) string { return plain.Cut(strings.TrimPrefix(r.Patch(n), param+"="), 12) }
		from, to = value(0), value(list[0].Total.N)
	}
	var lines []string
	for _, way := range []struct {
		label int
		gap   int // before values
		bare  bool
	}{{inline, 3, false}, {inline, 2, false}, {grouped, 3, false}, {grouped, 2, false}, {grouped, 1, false}, {above, 2, false}, {above, 1, false}, {above, 1, true}} {
		// A name repeated down the page is noise, a name above a single row too.
		if way.label == grouped && !several || way.label == inline && several && len(list) > 6 {
			continue
		}
		t := &plain.Table{Columns: []plain.Column{
			{}, {Head: from, Gap: way.gap, Align: plain.Point}, {Gap: 1},
			{Head: to, Gap: way.gap, Align: plain.Point}, {Gap: 1}, {Gap: 1},
			{Head: "change", Gap: way.gap, Align: plain.Point}, {Gap: 1}, {Head: "n", Gap: 2},
		}}
		name, verdict := "", bench.Verdict("none")
		for _, w := range list {
			if w.Total.Verdict != verdict {
				name, verdict = "", w.Total.Verdict
				t.Add(r.totalVerdict(verdict))
			}
			label := "  " + w.Label
			switch way.label {
			case inline:
				label = "  " + w.Name + " " + w.Label
			case grouped:
				if w.Name != name {
					t.Add("  " + plain.Cut(w.Name, r.inner-2))
				}
				label = "  " + label
			case above:
				t.Add("  " + plain.Cut(w.Name, r.inner-4-min(20, plain.Columns(w.Label))) + " " + plain.Cut(w.Label, 20))
				label = "    "
			}
			name = w.Name
			f := r.figures(w)
			if way.bare {
				f.baseSpread, f.patchedSpread = "", ""
			}
			c := figure.ChangeOf(w.Total.Change, w.Total.Lo, w.Total.Hi)
			rounds := ""
			if apart(list) {
				rounds = strconv.Itoa(w.Rounds)
			}
			t.Add(label, f.base, f.baseSpread, f.patched, f.patchedSpread, f.unit, c.Middle, interval(w, c), rounds)
		}
		var width int
		if lines, width = t.Render(); width <= r.inner {
			break
		}
	}
	return lines
}

// place orders verdicts of a table.
func place(s bench.Step) int {
	return slices.Index([]bench.Verdict{bench.NotMeasured, bench.Same, bench.Unclear, bench.Better, bench.Worse}, s.Verdict) * -1
}

// totalVerdict is the heading of rows with this verdict on the whole series.
func (r *renderer) totalVerdict(v bench.Verdict) string {
	switch v {
	case bench.Same:
		return "same as a whole, but not at every patch"
	case bench.Unclear:
		return r.verdict(v) + " as a whole"
	}
	return r.verdict(v)
}

// interval stands behind a change in a table.
func interval(w rows.Row, c figure.Change) string {
	switch {
	case w.Exact && c.Middle != "-":
		return "(exact)"
	case c.Lo != "":
		return "(" + c.Lo + " .. " + c.Hi + ")"
	}
	return ""
}

// facts is where and how it was measured, and how to do it again.
func (r *renderer) facts() []string {
	e, h := r.e, r.e.Host
	var machine []string
	add := func(list *[]string, s string) {
		if s != "" {
			*list = append(*list, s)
		}
	}
	add(&machine, plain.Clean(h.Name))
	add(&machine, plain.Clean(h.CPU))
	if h.Cores > 0 {
		add(&machine, count(h.Cores, "core"))
	}
	if h.Memory > 0 {
		s := figure.ScaleFor(bench.Byte, float64(h.Memory))
		add(&machine, figure.Plain(float64(h.Memory)/s.Factor, 1)+" "+s.Unit)
	}
	add(&machine, plain.Clean(h.Kernel))
	add(&machine, plain.Clean(h.Scheduling()))
	add(&machine, plain.Clean(h.Compiler))
	load := fmt.Sprintf("%.2f before, %.2f after", h.LoadBefore, h.LoadAfter)
	if h.PressureBefore >= 0 && h.PressureAfter >= 0 {
		load += fmt.Sprintf("; CPU pressure %s, %s", figure.Share(h.PressureBefore), figure.Share(h.PressureAfter))
	}
	sandbox := plain.Clean(h.Sandbox)
	if e.Unsafe {
		sandbox = "none (unsafe)"
	}

	var rounds []string
	if r.Most > 0 {
		add(&rounds, strings.TrimSuffix(strings.TrimSuffix(r.roundsOf(), "s"), " round")+" a row")
	} else {
		add(&rounds, "none")
	}
	switch e.Stopped {
	case store.StoppedDecided:
		switch {
		case e.FixedRounds > 0:
			add(&rounds, "as many as asked for")
		case r.Most > 0:
			add(&rounds, "until decided")
		}
	case store.StoppedBudget:
		add(&rounds, "ended by the time budget")
	case store.StoppedInterrupted:
		add(&rounds, "interrupted")
	}
	add(&rounds, "seed "+strconv.FormatUint(e.Seed, 10))
	add(&rounds, "margin "+figure.Share(e.Margin))
	suite := plain.Clean(e.Suite.Name)
	if e.Suite.Digest != "" {
		suite += " (" + short(e.Suite.Digest) + ")"
	}

	if e.ID == "" {
		return r.fact("Rounds", strings.Join(rounds, ", "))
	}
	var lines []string
	lines = append(lines, r.fact("Machine", plain.Cut(strings.Join(machine, ", "), 5*r.inner))...)
	lines = append(lines, r.fact("Load", load)...)
	lines = append(lines, r.fact("Sandbox", plain.Cut(sandbox, 2*r.inner))...)
	lines = append(lines, r.line("Suite", suite))
	lines = append(lines, r.fact("Rounds", strings.Join(rounds, ", "))...)
	lines = append(lines, r.fact("Time", "builds "+figure.Elapsed(e.BuildSeconds)+", measuring "+figure.Elapsed(e.MeasureSeconds))...)
	lines = append(lines, r.line("Report", plain.Clean(e.ID)))
	if e.Command != "" {
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
