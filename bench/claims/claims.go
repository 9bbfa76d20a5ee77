// Package claims reads the numbers that authors give for their patches, and
// sets them beside what was measured.
//
// In goes the text of a cover letter or a commit message; out come bench.Claims,
// which Match holds against the comparisons once they are there. It is a step of
// the evaluation after bench/compare, and knows neither mail nor reports. It
// reads by patterns and understands nothing: a number that it does not
// recognise is passed over, and one that belongs to a setting rather than to
// the patch may be taken for a claim, which is why the text is always kept.
//
// These are the shapes that it knows:
//
//	Benchmark 1: HEAD~                      hyperfine's output
//	  Time (mean ± σ):  192.9 ms ± 0.6 ms
//	Test        HEAD^            HEAD       tables with columns before and after
//	1: add      1.21(0.9+0.3)    1.02(0.8+0.2) -15.7%
//	real 0m1.204s                           blocks of time(1), each under its label
//	before: 5:42 CPU time, after: 4:34      pairs in prose, also "from 3.1 s to
//	pull-viz: 3.4s -> 2.8s                  2.2 s", "2.2 s instead of 3.1 s"
//	1.45x faster, 12 % less memory, -12 %   ratios, where there is no pair
package claims

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"patchbench/bench"
)

// The bounds of what is read and kept of one text.
const (
	mostBytes  = 32 << 10
	mostClaims = 60
	mostText   = 200 // bytes of Claim.Text and Claim.Subject
)

// Read gives the claims of a text in the order of their lines. n is recorded as
// Claim.N. Every claim has Change and Verdict bench.ClaimUnmeasured.
func Read(text string, n int) []bench.Claim {
	if len(text) > mostBytes {
		text = text[:mostBytes]
	}
	t := &reader{lines: strings.Split(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\u00a0", " "), "\n")}
	for i, line := range t.lines {
		t.lines[i] = strings.TrimRight(line, " \t\r")
	}
	t.whole = slices.Clone(t.lines)
	t.hyperfine()
	t.tables()
	t.timings()
	t.prose()
	slices.SortStableFunc(t.claims, func(a, b bench.Claim) int { return cmp.Compare(a.Line, b.Line) })
	t.claims = t.claims[:min(len(t.claims), mostClaims)]
	for i := range t.claims {
		t.claims[i].N, t.claims[i].Verdict = n, bench.ClaimUnmeasured
	}
	return t.claims
}

// A reader takes the text apart: what one pass has read is blanked for the next.
type reader struct {
	lines  []string
	whole  []string // as lines, with nothing blanked
	claims []bench.Claim
}

// blank keeps lines from..to-1 from being read again.
func (t *reader) blank(from, to int) {
	for i := from; i < to; i++ {
		t.lines[i] = ""
	}
}

// pair records that a became b; line counts from 0.
func (t *reader) pair(line int, text, subject, context string, a, b amount) {
	a, b = agree(a, b)
	if a.unit != b.unit || a.value <= 0 || b.value <= 0 {
		return
	}
	t.add(bench.Claim{Line: line + 1, Text: text, Subject: subject, Unit: a.unit, Quantity: quantityOf(a, subject+" "+context),
		Before: &a.value, After: &b.value, Change: b.value/a.value - 1})
}

func (t *reader) add(c bench.Claim) {
	c.Text, c.Subject = squeeze(c.Text), squeeze(c.Subject)
	t.claims = append(t.claims, c)
}

// heading is the label above line i: the text before it that ends with a colon
// or stands alone, with at most one empty line between.
func (t *reader) heading(i int) string {
	for back := 1; back <= 2 && i-back >= 0; back++ {
		line := strings.TrimSpace(t.whole[i-back])
		switch {
		case line == "":
			continue
		case strings.HasSuffix(line, ":"):
			return strings.TrimSuffix(line, ":")
		}
		break
	}
	return ""
}

// squeeze makes text one line of single blanks, cut at mostText bytes.
func squeeze(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= mostText {
		return s
	}
	n := mostText - 2
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ".."
}
