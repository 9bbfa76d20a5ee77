package report

import (
	"strings"

	"patchbench/bench"
	"patchbench/bot/report/figure"
	"patchbench/bot/report/plain"
	"patchbench/bot/report/rows"
)

// The most claims that are told: those that a row answers, and the others.
const (
	mostClaims   = 10
	mostUnbacked = 3
)

// claims are the numbers that the series gives for itself, beside what was
// measured of them.
func (r *renderer) claims() []string {
	var answered, others []bench.Claim
	for _, c := range r.e.Claims {
		if c.Verdict == bench.ClaimUnmeasured {
			others = append(others, c)
		} else {
			answered = append(answered, c)
		}
	}
	if len(answered)+len(others) == 0 || r.NothingBuilt() {
		return nil
	}
	wide := len("cover")
	for _, c := range r.e.Claims {
		wide = max(wide, plain.Columns(r.scope(c)))
	}
	indent := strings.Repeat(" ", wide+4)
	quote := func(c bench.Claim) string {
		return "  " + plain.Pad(r.scope(c), wide) + "  " + plain.Cut(`"`+plain.Clean(c.Text)+`"`, r.inner-len(indent))
	}
	var lines []string
	for _, bare := range []bool{false, true} {
		t := &plain.Table{Columns: []plain.Column{
			{}, {Head: "claimed", Gap: 2, Align: plain.Point}, {Head: "measured", Gap: 2, Align: plain.Point}, {Gap: 1}, {Gap: 2},
		}}
		told := ""
		for i, c := range answered {
			if i == mostClaims && len(answered) > mostClaims+1 {
				t.Add("  and " + count(len(answered)-i, "more claim"))
				break
			}
			// Several rows may answer one claim.
			if q := quote(c); q != told {
				t.Add(q)
				told = q
			}
			label := plain.Clean(c.Benchmark) + " " + plain.Clean(c.Metric)
			if plain.Columns(label) > r.inner-len(indent)-46 {
				t.Add(indent + plain.CutName(label, r.inner-len(indent)))
				label = ""
			}
			m := figure.ChangeOf(c.Measured, c.Lo, c.Hi)
			within := ""
			if m.Lo != "" && !bare {
				within = "(" + m.Lo + " .. " + m.Hi + ")"
			}
			t.Add(indent+label, figure.ChangeOf(&c.Change, nil, nil).Middle, m.Middle, within, r.claimVerdict(c.Verdict))
		}
		var width int
		if lines, width = t.Render(); width <= r.inner {
			break
		}
	}
	lines = append([]string{r.title("Claims of the series, and what was measured")}, lines...)
	if len(answered) == 0 {
		lines = lines[:1]
	}
	if len(others) > 0 {
		lines = append(lines, "  these name no row that has figures:")
		for i, c := range others {
			if i == mostUnbacked && len(others) > mostUnbacked+1 {
				lines = append(lines, "  and "+count(len(others)-i, "more claim"))
				break
			}
			lines = append(lines, quote(c))
		}
	}
	return lines
}

// scope says which text makes a claim.
func (r *renderer) scope(c bench.Claim) string {
	if c.N == 0 {
		return "cover"
	}
	return r.Patch(c.N)
}

func (r *renderer) claimVerdict(v bench.ClaimVerdict) string {
	switch v {
	case bench.Confirmed:
		return r.paint("confirmed", green)
	case bench.Opposite:
		return r.paint("opposite", red)
	case bench.NotSeen:
		return r.paint("not seen", yellow)
	case bench.Smaller, bench.Undecided:
		return r.paint(string(v), yellow)
	}
	return plain.Clean(string(v))
}

// The share of a run's wall time from which on waiting is worth telling, and for
// how many benchmarks it is told.
const (
	muchWaiting = 1.0 / 3
	mostWaiting = 5
)

// waiting says of the benchmarks whose wall time is far above their cpu time
// which share of it they waited, since no patch can make that share compute
// less.
func (r *renderer) waiting() []string {
	share := func(wall, cpu rows.Row, n int) (float64, bool) {
		w, c := r.Value(wall, n), r.Value(cpu, n)
		if w.Median == nil || c.Median == nil || !(*w.Median > 0) {
			return 0, false
		}
		return 1 - *c.Median / *w.Median, true
	}
	var parts []string
	more := 0
	for i := range r.e.Results {
		w := rows.Row{Comparison: &r.e.Results[i]}
		if w.Metric != bench.Wall.Name {
			continue
		}
		for j := range r.e.Results {
			c := rows.Row{Comparison: &r.e.Results[j]}
			if c.Metric != bench.CPU.Name || bench.RowName(c.Benchmark, c.Params) != bench.RowName(w.Benchmark, w.Params) {
				continue
			}
			a, ok := share(w, c, 0)
			if b, has := share(w, c, w.Total.N); ok && has && max(a, b) >= muchWaiting {
				if len(parts) == mostWaiting {
					more++
					break
				}
				text := plain.CutName(plain.Clean(bench.RowName(w.Benchmark, w.Params)), 30) + " " + figure.Share(max(a, 0))
				if b = max(b, 0); b-a > 0.01 || a-b > 0.01 {
					text += " (patched " + figure.Share(b) + ")"
				}
				parts = append(parts, text)
			}
			break
		}
	}
	if len(parts) == 0 {
		return nil
	}
	text := "Share of the wall time spent waiting, not computing: " + strings.Join(parts, ", ")
	if more > 0 {
		text += ", and " + count(more, "more benchmark")
	}
	return plain.Wrap(text+".", r.inner, "  ")
}
