// Package history renders what was measured of a base branch over time, with the
// points at which its level changed.
//
// In go the Points of store.History; out come Tracks, one for each row and
// machine, and their text:
//
//	hash cpu on bench1 (Example EX-2650), 12 evaluations
//	  date        base          ms
//	  2026-01-02  3f9a2c1d0b7e  412.3 +-2.1  |   o        |
//	  2026-03-01  77c0ffee1234  433.1 +-1.9  |          o |  +5.1 %
//
// A figure of one machine is never held against another's. Within a track the
// evaluations are far apart in time, so that a change may come from the machine
// as well as from the code; where kernel, compiler or sandbox are other ones
// than before, that is said.
package history

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// A Track is one row on one machine, the oldest point first.
type Track struct {
	Benchmark string        `json:"benchmark"` // as bench.RowName, cleaned
	Metric    string        `json:"metric"`    // cleaned
	Machine   string        `json:"machine"`   // name and CPU, cleaned
	Unit      string        `json:"unit"`
	Better    string        `json:"better"`
	Exact     bool          `json:"exact"`
	Points    []store.Point `json:"points"`
	Changes   []Change      `json:"changes"` // ascend by At; never nil
}

// A Change is a point of a track at which its level differs from the level
// before.
type Change struct {
	At       int           `json:"at"`     // index of the first point of the new level
	Before   float64       `json:"before"` // median of the points since the change before
	After    float64       `json:"after"`  // median of the points up to the next
	Relative float64       `json:"change"` // After/Before - 1, 0 if Before is 0
	Verdict  bench.Verdict `json:"verdict"`
}

// Telling leaves of the points of all metrics those of cpu or, where it was not
// measured, those of every tested metric. The slice is used again.
func Telling(points []store.Point) []store.Point {
	cpu := func(p store.Point) bool { return p.Metric == bench.CPU.Name }
	points = slices.DeleteFunc(points, func(p store.Point) bool { return !p.Tested })
	if slices.ContainsFunc(points, cpu) {
		points = slices.DeleteFunc(points, func(p store.Point) bool { return !cpu(p) })
	}
	return points
}

// Tracks sorts points into tracks, by row and then by machine, and marks their
// changes. margin is the relative change below which none is marked; 0 means 1 %.
func Tracks(points []store.Point, margin float64) []Track {
	if margin == 0 {
		margin = 0.01
	}
	type key struct{ benchmark, metric, machine string }
	var order []key
	all := map[key]*Track{}
	for _, p := range points {
		if p.Value.Median == nil || math.IsNaN(*p.Value.Median) || math.IsInf(*p.Value.Median, 0) {
			continue
		}
		machine := plain.Clean(p.Host.Name)
		if p.Host.CPU != "" {
			machine += " (" + plain.Clean(p.Host.CPU) + ")"
		}
		k := key{plain.Clean(bench.RowName(p.Benchmark, p.Params)), plain.Clean(p.Metric), machine}
		if all[k] == nil {
			all[k] = &Track{Benchmark: k.benchmark, Metric: k.metric, Machine: machine, Unit: p.Unit, Better: p.Better, Exact: p.Exact}
			order = append(order, k)
		}
		all[k].Points = append(all[k].Points, p)
	}
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.benchmark, b.benchmark), cmp.Compare(a.metric, b.metric), cmp.Compare(a.machine, b.machine))
	})
	var tracks []Track
	for _, k := range order {
		t := *all[k]
		t.Changes = t.changes(margin)
		tracks = append(tracks, t)
	}
	return tracks
}

// What a change must have: so small a chance of a false alarm in a stretch, and
// so many points on either side.
const (
	alpha    = 0.01
	leastRun = 3
	draws    = 2000
)

// changes splits the track where its level changes, and the parts again: the
// stretch with the largest difference of mean ranks is taken if fewer than alpha
// of random orders of the same figures have one as large. Of an exact row every
// difference is a change.
func (t *Track) changes(margin float64) []Change {
	values := make([]float64, len(t.Points))
	for i, p := range t.Points {
		values[i] = *p.Value.Median
	}
	var cuts []int
	if t.Exact {
		for i := 1; i < len(values); i++ {
			if values[i] != values[i-1] {
				cuts = append(cuts, i)
			}
		}
	} else {
		cuts = split(values, 0, rand.New(rand.NewPCG(1, uint64(len(values)))))
		slices.Sort(cuts)
		refine(values, cuts)
	}
	all := []Change{}
	bounds := append(append([]int{0}, cuts...), len(values))
	for i := 1; i+1 < len(bounds); i++ {
		c := Change{At: bounds[i], Before: median(values[bounds[i-1]:bounds[i]]), After: median(values[bounds[i]:bounds[i+1]])}
		if c.Before != 0 {
			c.Relative = c.After/c.Before - 1
		}
		switch {
		case math.Abs(c.Relative) < margin && c.Before != 0:
			continue
		case (c.After > c.Before) == (t.Better != bench.Higher):
			c.Verdict = bench.Worse
		default:
			c.Verdict = bench.Better
		}
		all = append(all, c)
	}
	return all
}

func split(values []float64, offset int, random *rand.Rand) []int {
	if len(values) < 2*leastRun {
		return nil
	}
	ranks := ranksOf(values)
	from, to, size := best(ranks)
	larger := 1
	shuffled := slices.Clone(ranks)
	for range draws {
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if _, _, s := best(shuffled); s >= size*(1-1e-12) {
			larger++
			if float64(larger) > alpha*(draws+1) {
				return nil
			}
		}
	}
	var cuts []int
	bounds := slices.Compact([]int{0, from, to, len(values)})
	for i := 0; i+1 < len(bounds); i++ {
		if i > 0 {
			cuts = append(cuts, offset+bounds[i])
		}
		cuts = append(cuts, split(values[bounds[i]:bounds[i+1]], offset+bounds[i], random)...)
	}
	return cuts
}

// refine puts each cut where it parts its neighbours best: ranks over more than
// two levels, by which it was found, are too flat to say where.
func refine(values []float64, cuts []int) {
	bounds := append(append([]int{0}, cuts...), len(values))
	// Moved cuts move their neighbours; a few turns settle them.
	for range len(cuts) + 2 {
		moved := false
		for i := 1; i+1 < len(bounds); i++ {
			from, to := bounds[i-1], bounds[i+1]
			if at := from + parting(ranksOf(values[from:to]), bounds[i]-from); at != bounds[i] {
				bounds[i], moved = at, true
			}
		}
		if !moved {
			break
		}
	}
	copy(cuts, bounds[1:])
}

// parting is the place that parts ranks into two with the largest difference of
// their means; at is where they are parted now, and stays unless another is better.
func parting(ranks []float64, at int) int {
	n, total := len(ranks), 0.0
	for _, r := range ranks {
		total += r
	}
	size := func(k int, sum float64) float64 {
		d := sum/float64(k) - (total-sum)/float64(n-k)
		return d * d * float64(k) * float64(n-k)
	}
	var most, sum float64
	for _, r := range ranks[:at] {
		sum += r
	}
	most, sum = size(at, sum)*(1+1e-12), 0
	for k := 1; k < n; k++ {
		sum += ranks[k-1]
		if s := size(k, sum); k >= leastRun && n-k >= leastRun && s > most {
			at, most = k, s
		}
	}
	return at
}

// best is the stretch from..to-1 whose mean rank differs most from that of all
// other points (circular binary segmentation, Olshen and others 2004), so that a
// level that comes and goes is found as well as one that stays.
func best(ranks []float64) (from, to int, size float64) {
	n := len(ranks)
	sums := make([]float64, n+1)
	for i, r := range ranks {
		sums[i+1] = sums[i] + r
	}
	for i := 0; i <= n-leastRun; i++ {
		if i > 0 && i < leastRun {
			continue
		}
		for j := i + leastRun; j <= n; j++ {
			k := j - i
			if n-k < leastRun || j < n && n-j < leastRun {
				continue
			}
			in := sums[j] - sums[i]
			d := in/float64(k) - (sums[n]-in)/float64(n-k)
			if s := d * d / (1/float64(k) + 1/float64(n-k)); s > size {
				from, to, size = i, j, s
			}
		}
	}
	return from, to, size
}

// ranksOf gives equal values the mean of their ranks.
func ranksOf(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	ranks := make([]float64, len(values))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && values[order[j]] == values[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			ranks[k] = float64(i+j-1) / 2
		}
		i = j
	}
	return ranks
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n%2 == 1 {
		return s[n/2]
	}
	return (s[n/2-1] + s[n/2]) / 2
}

// Note says what is another one at point i than at the point before: kernel,
// compiler or sandbox. "" if all is the same.
func (t *Track) Note(i int) string {
	if i == 0 {
		return ""
	}
	a, b := t.Points[i-1].Host, t.Points[i].Host
	var parts []string
	for _, p := range []struct{ name, before, now string }{
		{"kernel", a.Kernel, b.Kernel}, {"compiler", a.Compiler, b.Compiler}, {"sandbox", a.Sandbox, b.Sandbox}, {"governor", a.Governor, b.Governor},
	} {
		if p.before != p.now {
			parts = append(parts, p.name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "other " + strings.Join(parts, ", ")
}

// Change is the change at point i, nil for none.
func (t *Track) Change(i int) *Change {
	for j := range t.Changes {
		if t.Changes[j].At == i {
			return &t.Changes[j]
		}
	}
	return nil
}

// Scale is the unit in which the track is shown, and the decimals of its figures.
func (t *Track) Scale() (s figure.Scale, decimals int) {
	largest, spread := 0.0, 0.0
	for _, p := range t.Points {
		largest = max(largest, math.Abs(*p.Value.Median))
		spread = max(spread, half(p.Value))
	}
	s = figure.ScaleFor(t.Unit, largest)
	return s, figure.Decimals(t.Exact && s.Factor == 1, spread/s.Factor, largest/s.Factor)
}

func half(v bench.Value) float64 {
	if !figure.Finite(v.Lo) || !figure.Finite(v.Hi) {
		return 0
	}
	return max(*v.Hi-*v.Median, *v.Median-*v.Lo, 0)
}

// Title names a track in a line.
func (t *Track) Title() string {
	title := t.Benchmark + " " + t.Metric
	if t.Machine != "" {
		title += " on " + t.Machine
	}
	noun := "evaluations"
	if len(t.Points) == 1 {
		noun = "evaluation"
	}
	return fmt.Sprintf("%s, %d %s", title, len(t.Points), noun)
}

// The width of a line of text, and of the drawing at its end.
const (
	width   = 78
	drawing = 16
)

// Text writes the tracks one after the other, in lines of at most 78 columns.
func Text(w io.Writer, tracks []Track) error {
	var b bytes.Buffer
	for i := range tracks {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range tracks[i].lines() {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (t *Track) lines() []string {
	s, d := t.Scale()
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range t.Points {
		lo, hi = min(lo, *p.Value.Median), max(hi, *p.Value.Median)
	}
	head := s.Unit
	if head == "" {
		head = "count"
	}
	g := &plain.Table{Columns: []plain.Column{
		{Head: "  date"}, {Head: "base", Gap: 2}, {Head: head, Gap: 2, Align: plain.Point}, {Gap: 1},
		{Head: ends(figure.Number(lo/s.Factor, d), figure.Number(hi/s.Factor, d)), Gap: 2}, {Gap: 1, Align: plain.Point}, {Gap: 1},
	}}
	for i, p := range t.Points {
		spread := ""
		if h := half(p.Value); h > 0 && !t.Exact {
			spread = "+-" + figure.Number(h/s.Factor, d)
		}
		change, verdict := "", ""
		if c := t.Change(i); c != nil {
			change, verdict = figure.ChangeOf(&c.Relative, nil, nil).Middle, string(c.Verdict)
		}
		if note := t.Note(i); note != "" {
			g.Add("  " + note + " from here on")
		}
		commit := plain.Clean(p.Base.Commit)
		g.Add("  "+p.Created.Format("2006-01-02"), commit[:min(12, len(commit))], figure.Number(*p.Value.Median/s.Factor, d), spread,
			"|"+draw(*p.Value.Median, lo, hi)+"|", change, verdict)
	}
	body, _ := g.Render()
	for i, line := range body {
		body[i] = plain.Cut(line, width)
	}
	title := t.Title()
	if len(t.Changes) == 0 && len(t.Points) > 1 {
		title += ", no change seen"
	}
	return append([]string{plain.Cut(title, width)}, body...)
}

// ends are the least and the largest figure of a drawing, above its ends.
func ends(lo, hi string) string {
	gap := 2 + drawing - len(lo) - len(hi)
	if lo == hi || gap < 1 {
		return ""
	}
	return lo + strings.Repeat(" ", gap) + hi
}

// draw puts a mark where v lies between lo and hi.
func draw(v, lo, hi float64) string {
	at := drawing / 2
	if hi > lo {
		at = int(math.Round((v - lo) / (hi - lo) * (drawing - 1)))
	}
	at = min(max(at, 0), drawing-1)
	return strings.Repeat(" ", at) + "o" + strings.Repeat(" ", drawing-1-at)
}
