// Package machines renders evaluations of one series on several machines side by
// side, as plain text.
//
// In go evaluations of the same commits; out come the verdict of each machine, the
// rows that changed on any of them with a column for each, the same patch by
// patch, and what else the report of each machine says. A comparison never
// crosses machines: nothing is tested between them and no figure of one stands
// against another's, only their changes do, each judged where it was measured.
//
//	bench1  worse: 2/5 makes hash 5.1 % slower (cpu)
//	arm1    no change: 4 benchmarks, all within 0.9 %
package machines

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/layout"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
	"patchbench/store"
)

// The widths of lines, and of tables and prose.
const width, inner = 78, 72

// mostRows is how many rows are told one by one in a table.
const mostRows = 50

// mostOfGroup is how many patches of a group are named.
const mostOfGroup = 4

// Check says why evaluations cannot stand side by side: they must be of the same
// commits on the same base.
func Check(evaluations []*store.Evaluation) error {
	if len(evaluations) == 0 {
		return fmt.Errorf("no evaluations")
	}
	seen := map[string]bool{}
	first := evaluations[0]
	for _, e := range evaluations {
		if seen[e.ID] {
			return fmt.Errorf("evaluation %s is named twice", e.ID)
		}
		seen[e.ID] = true
		if !slices.Equal(code(e), code(first)) {
			return fmt.Errorf("evaluations %s and %s are not of the same code: only one series on several machines stands side by side; see bot diff", first.ID, e.ID)
		}
	}
	return nil
}

// code names what an evaluation measured: the trees of its versions, or their
// commits where the trees are not known.
func code(e *store.Evaluation) []string {
	var all []string
	for _, v := range e.Versions {
		all = append(all, cmp.Or(v.Tree, v.Commit))
	}
	return all
}

type renderer struct {
	evaluations []*store.Evaluation
	views       []*rows.View
	index       []map[rowKey]*rows.Row // of each view
	names       []string               // of machines
	marked      bool                   // some change is none for certain
}

// Write writes evaluations of one series, the same bytes each time. It calls
// Check.
func Write(w io.Writer, evaluations []*store.Evaluation) error {
	if err := Check(evaluations); err != nil {
		return err
	}
	r := &renderer{evaluations: evaluations}
	for i, e := range evaluations {
		v := rows.Of(e)
		index := map[rowKey]*rows.Row{}
		for _, list := range [][]rows.Row{v.Missing, v.Same, v.Unclear, v.Changed} {
			for j := range list {
				index[keyOf(list[j])] = &list[j]
			}
		}
		r.views, r.index = append(r.views, v), append(r.index, index)
		r.names = append(r.names, plain.Cut(layout.MachineName(evaluations, i), 24))
	}
	parts := [][]string{r.headlines(), r.about(), r.whole(), r.patchByPatch()}
	parts = append(parts, r.others()...)
	var b bytes.Buffer
	for _, lines := range parts {
		if len(lines) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		for _, line := range lines {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// headlines are the verdicts, a machine below the other.
func (r *renderer) headlines() []string {
	wide := 0
	for _, name := range r.names {
		wide = max(wide, plain.Columns(name))
	}
	var lines []string
	for i, e := range r.evaluations {
		text := cmp.Or(e.Headline, string(e.Verdict))
		for _, s := range report.Sections(e, report.Options{Width: width}, report.Notes) {
			text += " " + strings.Join(s.Lines, " ")
		}
		name := r.names[i]
		for _, line := range plain.Wrap(plain.Cut(plain.Clean(text), 5*inner), width-wide-2, "") {
			lines = append(lines, plain.Pad(name, wide)+"  "+line)
			name = ""
		}
	}
	return lines
}

// about is what was evaluated, which is the same everywhere.
func (r *renderer) about() []string {
	for _, s := range report.Sections(r.evaluations[0], report.Options{Width: width}, report.About) {
		return s.Lines
	}
	return nil
}

// rowKey names a row on every machine.
type rowKey struct{ name, label string }

func keyOf(w rows.Row) rowKey { return rowKey{w.Name, w.Label} }

// changed are the rows that changed on some machine: in the order of the first
// on which they did.
func (r *renderer) changed() []rowKey {
	var all []rowKey
	seen := map[rowKey]bool{}
	for _, v := range r.views {
		for _, w := range v.Told {
			if k := keyOf(w); !seen[k] {
				seen[k] = true
				all = append(all, k)
			}
		}
	}
	return all
}

// whole is the table of the rows that changed, with a column for each machine.
func (r *renderer) whole() []string {
	list := r.changed()
	if len(list) == 0 {
		return nil
	}
	more := max(0, len(list)-mostRows)
	lines := r.lay("  ", []block{{list: list[:len(list)-more], step: func(w *rows.Row) *bench.Step { return &w.Total }}})
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more rows that changed", more))
	}
	if r.marked {
		lines = append(lines, "  (= the same within the margin, ? unclear)")
	}
	return append([]string{"Base against the whole series, by machine (changes at 95 %)"}, lines...)
}

// A block is some rows, and which of their steps is shown.
type block struct {
	head []string // lines above it
	list []rowKey
	step func(*rows.Row) *bench.Step
}

// lay makes one table of blocks, with a column for each machine: with intervals,
// with names above their rows if they leave too little room beside them, and
// without intervals if even that is too wide.
func (r *renderer) lay(indent string, blocks []block) []string {
	var lines []string
	for _, way := range []struct{ above, bare bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t := &plain.Table{Columns: []plain.Column{{}}}
		for _, name := range r.names {
			t.Columns = append(t.Columns, plain.Column{Head: name, Gap: 3, Align: plain.Point}, plain.Column{Gap: 1})
		}
		for _, b := range blocks {
			for _, line := range b.head {
				t.Add(line)
			}
			for _, k := range b.list {
				label := indent + k.name + " " + k.label
				if way.above {
					t.Add(plain.CutName(label, inner))
					label = indent + " "
				}
				cells := []string{label}
				for i := range r.evaluations {
					change, interval := "-", ""
					if w := r.index[i][k]; w != nil {
						change, interval = r.cell(w, b.step(w))
					}
					if way.bare {
						interval = ""
					}
					cells = append(cells, change, interval)
				}
				t.Add(cells...)
			}
		}
		var wide int
		if lines, wide = t.Render(); wide <= inner {
			break
		}
	}
	for i := range lines {
		lines[i] = plain.Cut(lines[i], width)
	}
	return lines
}

// cell is a change with its interval and, if it is none for certain, its mark.
func (r *renderer) cell(w *rows.Row, s *bench.Step) (change, interval string) {
	if s == nil || s.Verdict == bench.NotMeasured {
		return "-", ""
	}
	c := figure.ChangeOf(s.Change, s.Lo, s.Hi)
	change = c.Middle
	switch s.Verdict {
	case bench.Same:
		change, r.marked = change+"=", true
	case bench.Unclear:
		change, r.marked = change+"?", true
	}
	switch {
	case c.Lo != "":
		interval = "(" + c.Lo + " .. " + c.Hi + ")"
	case w.Exact && c.Middle != "-":
		interval = "(exact)"
	}
	return change, interval
}

// patchByPatch is which patch changed what on which machine.
func (r *renderer) patchByPatch() []string {
	v := r.views[0]
	if v.Patches() < 2 {
		return nil
	}
	type where struct{ lo, hi int }
	type told struct {
		where
		rowKey
	}
	effects, seen := map[where][]rowKey{}, map[told]bool{}
	var order []where
	for _, view := range r.views {
		for _, f := range view.Effects() {
			at := where{f.Lo, f.Hi}
			if effects[at] == nil {
				order = append(order, at)
			}
			if k := (told{at, keyOf(f.Row)}); !seen[k] {
				seen[k] = true
				effects[at] = append(effects[at], k.rowKey)
			}
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.SortStableFunc(order, func(a, b where) int {
		if (a.lo == 0) != (b.lo == 0) {
			return cmp.Compare(b.lo, a.lo)
		}
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	wide := 0
	for _, at := range order {
		wide = max(wide, plain.Columns(v.Between(at.lo, at.hi)))
	}
	indent := strings.Repeat(" ", wide+4)
	left := mostRows
	var blocks []block
	var dropped []int
	for _, at := range order {
		if left <= 0 {
			for n := at.lo; n <= at.hi; n++ {
				dropped = append(dropped, n)
			}
			continue
		}
		b := block{list: effects[at]}
		more := max(0, len(b.list)-left)
		b.list = b.list[:len(b.list)-more]
		left -= len(b.list)
		switch name := plain.Pad(v.Between(at.lo, at.hi), wide); {
		case at.lo == 0:
			b.head = []string{"  In the whole series, but by no single patch for certain"}
			b.step = func(w *rows.Row) *bench.Step { return &w.Total }
		case at.lo < at.hi:
			b.head = []string{"  " + name + "  by one of these patches, or by some of them together:"}
			for n := at.lo; n <= at.hi; n++ {
				if n == at.lo+mostOfGroup && at.hi > n {
					b.head = append(b.head, fmt.Sprintf("%sand %d more patches", indent, at.hi-n+1))
					break
				}
				b.head = append(b.head, heading(v, indent+v.Patch(n)+" ", n))
			}
		default:
			b.head = []string{heading(v, "  "+name+"  ", at.lo)}
		}
		if more > 0 {
			b.head = append(b.head, fmt.Sprintf("%sof %d rows:", indent, more+len(b.list)))
		}
		if b.step == nil {
			b.step = func(w *rows.Row) *bench.Step { return stepAt(w, at.lo) }
		}
		blocks = append(blocks, b)
	}
	lines := append([]string{"Patch by patch, by machine"}, r.lay(indent, blocks)...)
	if dropped = slices.DeleteFunc(dropped, func(n int) bool { return n == 0 }); len(dropped) > 0 {
		lines = append(lines, plain.Wrap("  and more by "+v.Names(dropped), inner, "  ")...)
	}
	return lines
}

// heading is a line with patch n's subject and, at the right, its size.
func heading(v *rows.View, before string, n int) string {
	size := v.Size(n)
	return plain.Pad(plain.Cut(before+v.Subject(n), inner-plain.Columns(size)-2), inner-plain.Columns(size)) + size
}

func stepAt(w *rows.Row, n int) *bench.Step {
	for i := range w.Steps {
		if w.Steps[i].N == n {
			return &w.Steps[i]
		}
	}
	return nil
}

// others are the parts of each machine's own report that are not in the tables;
// what several say alike is said once.
func (r *renderer) others() [][]string {
	kinds := []report.Kind{report.Failed, report.Builds, report.Doubts, report.Missing, report.Unchanged, report.Warnings, report.Facts}
	said := make([]map[report.Kind][]string, len(r.evaluations))
	for i, e := range r.evaluations {
		said[i] = map[report.Kind][]string{}
		for _, s := range report.Sections(e, report.Options{Width: width}, kinds...) {
			said[i][s.Kind] = s.Lines
		}
	}
	var parts [][]string
	for _, kind := range kinds {
		told := make([]bool, len(said))
		for i := range said {
			if told[i] || len(said[i][kind]) == 0 {
				continue
			}
			var names []string
			for j := i; j < len(said); j++ {
				if !told[j] && slices.Equal(said[i][kind], said[j][kind]) {
					told[j] = true
					names = append(names, r.names[j])
				}
			}
			lines := said[i][kind]
			if len(names) < len(said) {
				lines = append([]string{"On " + plain.Cut(strings.Join(names, ", "), inner-4) + ":"}, lines...)
			}
			parts = append(parts, lines)
		}
	}
	return parts
}
