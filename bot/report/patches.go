package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
)

// An effect is a change that is laid to patch lo, or to somewhere in lo..hi, or
// (lo is 0) to no patch in particular.
type effect struct {
	lo, hi int
	row    row
	step   bench.Step
}

// effects are sorted by patch and, within one, as the rows are.
func (r *renderer) effects() []effect {
	var all []effect
	for _, w := range r.rows.told {
		steps := w.steps
		if len(steps) == 0 {
			steps = []bench.Step{w.Total}
		}
		for i, s := range steps {
			f := effect{s.N, s.N, w, s}
			if len(s.Group) == 2 {
				f.lo, f.hi = s.Group[0], s.Group[1]
			} else if len(w.steps) == 0 {
				f.lo, f.hi = 0, 0
			}
			if i > 0 && f.lo < f.hi && f.lo == all[len(all)-1].lo && f.hi == all[len(all)-1].hi {
				continue // each patch of a group carries the group's change
			}
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b effect) int {
		if (a.lo == 0) != (b.lo == 0) {
			return cmp.Compare(b.lo, a.lo)
		}
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
	return all
}

// patchByPatch is which patch changed what, in at most most lines.
func (r *renderer) patchByPatch(most int) []string {
	if r.patches() == 1 {
		return nil
	}
	var blocks [][]effect
	for _, f := range r.effects() {
		if n := len(blocks); n > 0 && blocks[n-1][0].lo == f.lo && blocks[n-1][0].hi == f.hi {
			blocks[n-1] = append(blocks[n-1], f)
		} else {
			blocks = append(blocks, []effect{f})
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	lines := []string{r.title("Patch by patch")}
	var body []string
	for _, each := range []int{math.MaxInt, 40, 30, 20, 15, 10, 7, 5, 4, 3, 2, 1} {
		least := len(blocks)
		for _, b := range blocks {
			least += min(each, len(b))
		}
		if least+1 > most {
			continue // not worth laying out
		}
		if body = r.blocks(blocks, each); len(body)+1 <= most {
			return append(lines, body...)
		}
	}
	// One row for each patch is still too much: the largest effects stay.
	largest := func(b []effect) float64 {
		size := 0.0
		for _, f := range b {
			size = max(size, magnitude(f.step.Change))
		}
		return size
	}
	byWeight := slices.Clone(blocks)
	slices.SortStableFunc(byWeight, func(a, b []effect) int { return cmp.Compare(largest(b), largest(a)) })
	for keep := max(1, min(len(blocks)-1, most/2)); keep > 0; keep-- {
		least := largest(byWeight[keep-1])
		var kept [][]effect
		var dropped []int
		alone := false
		for _, b := range blocks {
			if largest(b) >= least && len(kept) < keep {
				kept = append(kept, b)
			} else {
				for n := b[0].lo; n <= b[0].hi; n++ {
					dropped = append(dropped, n)
				}
				alone = alone || b[0].lo == 0
			}
		}
		body = r.blocks(kept, 1)
		dropped = slices.DeleteFunc(dropped, func(n int) bool { return n == 0 })
		text := "and more, none larger, by "
		if alone {
			text = "and more, none larger, in the whole series"
			if len(dropped) > 0 {
				text += " and by "
			}
		}
		more := plain.Wrap(text+r.names(dropped), r.inner-2, "  ")
		for _, line := range more {
			body = append(body, "  "+line)
		}
		if len(body)+1 <= most {
			break
		}
	}
	return append(lines, body...)
}

// blocks lays out effects under their patches, at most each to a patch.
func (r *renderer) blocks(blocks [][]effect, each int) []string {
	t := &plain.Table{Columns: []plain.Column{
		{}, {Gap: 2, Align: plain.Point}, {Gap: 1}, {Gap: 2},
	}}
	nameWidth := 0
	for _, b := range blocks {
		if b[0].lo > 0 {
			nameWidth = max(nameWidth, plain.Columns(r.between(b[0].lo, b[0].hi)))
		}
	}
	indent := strings.Repeat(" ", 2+nameWidth+2)
	room := r.inner - len(indent) - 44
	for _, b := range blocks {
		lo, hi := b[0].lo, b[0].hi
		switch {
		case lo == 0:
			t.Add(plain.Cut("  In the whole series, but by no single patch for certain", r.inner))
		case lo < hi:
			t.Add(plain.Cut("  "+plain.Pad(r.between(lo, hi), nameWidth)+"  by one of these patches, or by some of them together:", r.inner))
			for n := lo; n <= hi; n++ {
				if n == lo+4 && hi > lo+4 {
					t.Add(fmt.Sprintf("%sand %s", indent, count(hi-n+1, "more patch")))
					break
				}
				t.Add(r.heading(indent+r.patch(n)+" ", n))
			}
		default:
			t.Add(r.heading("  "+plain.Pad(r.patch(lo), nameWidth)+"  ", lo))
		}
		shown := b[:min(each, len(b))]
		if len(shown) < len(b) {
			// What gets worse, and what changes most, goes first.
			shown = slices.Clone(b)
			slices.SortStableFunc(shown, func(a, b effect) int {
				if x, y := a.step.Verdict == bench.Worse, b.step.Verdict == bench.Worse; x != y {
					if x {
						return -1
					}
					return 1
				}
				return cmp.Compare(magnitude(b.step.Change), magnitude(a.step.Change))
			})
			shown = shown[:each]
		}
		name := ""
		for i, f := range shown {
			label := f.row.name + " " + f.row.metric
			if plain.Columns(label) > room {
				if f.row.name != name {
					t.Add(indent + plain.Cut(f.row.name, r.inner-len(indent)))
				}
				label = "  " + plain.Cut(f.row.metric, 20)
			}
			name = f.row.name
			c := figure.ChangeOf(f.step.Change, f.step.Lo, f.step.Hi)
			verdict := r.verdict(f.step.Verdict)
			if more := len(b) - len(shown); more > 0 && i == len(shown)-1 {
				verdict += fmt.Sprintf("  (+%d more)", more)
			}
			t.Add(indent+label, c.Middle, interval(f.row, c), verdict)
		}
	}
	lines, _ := t.Render()
	return lines
}

// heading is a line with patch n's subject and, at the right, its size.
func (r *renderer) heading(before string, n int) string {
	size := r.size(n)
	subject := plain.Cut(r.subject(n), r.inner-plain.Columns(before)-plain.Columns(size)-2)
	return plain.Pad(before+subject, r.inner-plain.Columns(size)) + size
}
