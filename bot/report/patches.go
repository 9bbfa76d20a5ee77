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
	"patchbench/bot/report/rows"
)

// patchByPatch is which patch changed what, in at most most lines.
func (r *renderer) patchByPatch(most int) []string {
	if r.Patches() == 1 {
		return nil
	}
	var blocks [][]rows.Effect
	for _, f := range r.Effects() {
		if n := len(blocks); n > 0 && blocks[n-1][0].Lo == f.Lo && blocks[n-1][0].Hi == f.Hi {
			blocks[n-1] = append(blocks[n-1], f)
		} else {
			blocks = append(blocks, []rows.Effect{f})
		}
	}
	if len(blocks) == 0 {
		return nil
	}
	lines := []string{r.title("Patch by patch")}
	if r.Values() != "" {
		lines[0] = r.title("Value by value") + " (each against the one before it)"
	}
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
	largest := func(b []rows.Effect) float64 {
		size := 0.0
		for _, f := range b {
			size = max(size, rows.Magnitude(f.Step.Change))
		}
		return size
	}
	byWeight := slices.Clone(blocks)
	slices.SortStableFunc(byWeight, func(a, b []rows.Effect) int { return cmp.Compare(largest(b), largest(a)) })
	for keep := max(1, min(len(blocks)-1, most/2)); keep > 0; keep-- {
		least := largest(byWeight[keep-1])
		var kept [][]rows.Effect
		var dropped []int
		alone := false
		for _, b := range blocks {
			if largest(b) >= least && len(kept) < keep {
				kept = append(kept, b)
			} else {
				for n := b[0].Lo; n <= b[0].Hi; n++ {
					dropped = append(dropped, n)
				}
				alone = alone || b[0].Lo == 0
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
		more := plain.Wrap(text+r.Names(dropped), r.inner-2, "  ")
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
func (r *renderer) blocks(blocks [][]rows.Effect, each int) []string {
	t := &plain.Table{Columns: []plain.Column{
		{}, {Gap: 2, Align: plain.Point}, {Gap: 1}, {Gap: 2},
	}}
	nameWidth := 0
	for _, b := range blocks {
		if b[0].Lo > 0 {
			nameWidth = max(nameWidth, plain.Columns(r.Between(b[0].Lo, b[0].Hi)))
		}
	}
	indent := strings.Repeat(" ", 2+nameWidth+2)
	if r.Values() != "" {
		indent = "    " // nothing stands behind the names
	}
	room := r.inner - len(indent) - 44
	for _, b := range blocks {
		lo, hi := b[0].Lo, b[0].Hi
		switch {
		case lo == 0:
			t.Add(plain.Cut("  In the whole series, but by no single patch for certain", r.inner))
		case lo < hi:
			t.Add(plain.Cut("  "+plain.Pad(r.Between(lo, hi), nameWidth)+"  by one of these patches, or by some of them together:", r.inner))
			for n := lo; n <= hi; n++ {
				if n == lo+4 && hi > lo+4 {
					t.Add(fmt.Sprintf("%sand %s", indent, count(hi-n+1, "more patch")))
					break
				}
				t.Add(r.heading(indent+r.Patch(n)+" ", n))
			}
		default:
			t.Add(r.heading("  "+plain.Pad(r.Patch(lo), nameWidth)+"  ", lo))
		}
		shown := b[:min(each, len(b))]
		if len(shown) < len(b) {
			// What gets worse, and what changes most, goes first.
			shown = slices.Clone(b)
			slices.SortStableFunc(shown, func(a, b rows.Effect) int {
				if x, y := a.Step.Verdict == bench.Worse, b.Step.Verdict == bench.Worse; x != y {
					if x {
						return -1
					}
					return 1
				}
				return cmp.Compare(rows.Magnitude(b.Step.Change), rows.Magnitude(a.Step.Change))
			})
			shown = shown[:each]
		}
		name := ""
		for i, f := range shown {
			label := f.Row.Name + " " + f.Row.Label
			if plain.Columns(label) > room {
				if f.Row.Name != name {
					t.Add(indent + plain.CutName(f.Row.Name, r.inner-len(indent)))
				}
				label = "  " + plain.Cut(f.Row.Label, 20)
			}
			name = f.Row.Name
			c := figure.ChangeOf(f.Step.Change, f.Step.Lo, f.Step.Hi)
			verdict := r.verdict(f.Step.Verdict)
			if more := len(b) - len(shown); more > 0 && i == len(shown)-1 {
				verdict += fmt.Sprintf("  (+%d more)", more)
			}
			t.Add(indent+label, c.Middle, interval(f.Row, c), verdict)
		}
	}
	lines, _ := t.Render()
	return lines
}

// heading is a line with patch n's subject and, at the right, its size.
func (r *renderer) heading(before string, n int) string {
	size := r.Size(n)
	subject := plain.Cut(r.Subject(n), r.inner-plain.Columns(before)-plain.Columns(size)-2)
	return plain.Pad(before+subject, r.inner-plain.Columns(size)) + size
}
