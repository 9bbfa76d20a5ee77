package claims

import (
	"strings"

	"patchbench/bench/late"
)

var (
	gapRE     = late.Regexp(`\t+| {2,}`)
	ruleRE    = late.Regexp(`^[\s|+:=-]+$`)
	inUnitsRE = late.Regexp(`[(\[,]\s*(?:in )?(` + units + `)\s*[)\]]`)
	perfRowRE = late.Regexp(`^\s*(.*?)\s{2,}(\d+\.\d+\(\d+\.\d+\+\d+\.\d+\)).*?\s(\d+\.\d+\(\d+\.\d+\+\d+\.\d+\))`)
)

// cells takes a table's line apart, at bars or at gaps.
func cells(line string) []string {
	var all []string
	if strings.Contains(line, "|") {
		all = strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	} else {
		all = gapRE().Split(strings.TrimSpace(line), -1)
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// tables reads tables that have a column for before and one for after.
func (t *reader) tables() {
	for i := 0; i < len(t.lines); i++ {
		if m := perfRowRE().FindStringSubmatch(t.lines[i]); m != nil && !strings.Contains(t.lines[i], "->") {
			a, ok := parse(m[2])
			b, ok2 := parse(m[3])
			if ok && ok2 {
				t.pair(i, t.lines[i], m[1], "wall", a, b)
				t.lines[i] = ""
			}
			continue
		}
		head := cells(t.lines[i])
		before, after := columnsOf(head)
		if before < 0 || strings.HasSuffix(t.lines[i], ".") {
			continue
		}
		i += t.table(i, head, before, after)
	}
}

// columnsOf finds the columns of a header; before is -1 if it is none.
func columnsOf(head []string) (before, after int) {
	before, after = -1, -1
	if len(head) < 2 {
		return -1, -1
	}
	for i, cell := range head {
		if len(cell) > 40 || perfLike(cell) {
			return -1, -1
		}
		switch sideOf(cell) {
		case -1:
			if after < 0 || before < 0 {
				before = i
			}
		case 1:
			if after < 0 {
				after = i
			}
		}
	}
	if after < 0 {
		return -1, -1
	}
	return before, after
}

// perfLike says that a cell is a figure, so that its line is no header.
func perfLike(cell string) bool {
	m := atStart().FindString(cell)
	a, ok := parse(m)
	return ok && a.unit != ""
}

// table reads the rows below the header on line h, and says how many lines
// they are.
func (t *reader) table(h int, head []string, before, after int) int {
	title := t.heading(h)
	read, i := 0, h+1
	for ; i < len(t.lines); i++ {
		line := t.lines[i]
		if strings.TrimSpace(line) == "" {
			// A blank line may follow the header, and nothing else.
			if i == h+1 {
				continue
			}
			break
		}
		if ruleRE().MatchString(line) {
			continue
		}
		row := cells(line)
		shift := 0
		if len(row) == len(head)+1 || len(row) > len(head) && before == 0 {
			shift = 1
		}
		if max(before, after)+shift >= len(row) {
			if read == 0 && i > h+2 {
				break
			}
			continue
		}
		first := min(before, after) + shift
		label := strings.Join(row[:first], " ")
		words := title + " " + label + " " + strings.Join(head, " ")
		a, okA := cell(row[before+shift], head[before], label+" "+title)
		b, okB := cell(row[after+shift], head[after], label+" "+title)
		if !okA || !okB {
			continue
		}
		subject := label
		if title != "" {
			subject += " (" + title + ")"
		}
		a, b = agree(a, b)
		n := len(t.claims)
		t.pair(i, line, subject, words, a, b)
		if len(t.claims) > n {
			read++
		}
	}
	if read == 0 {
		return 0
	}
	t.blank(h, i)
	return i - h - 1
}

// cell reads a figure, whose unit may stand in the head or the label instead.
func cell(s, head, label string) (amount, bool) {
	m := atStart().FindString(s)
	if m == "" {
		return amount{}, false
	}
	a, ok := parse(m)
	if !ok || a.unit != "" {
		return a, ok
	}
	if rest := strings.TrimSpace(s[len(m):]); rest != "" && !strings.HasPrefix(rest, "(") {
		return amount{}, false // a word that is no unit, or a version
	}
	for _, where := range []string{head, label} {
		if u := inUnitsRE().FindStringSubmatch(where); u != nil {
			if sc, ok := scaleOf(u[1]); ok {
				a.value, a.unit, a.scale = exact(a.value*sc.factor), sc.unit, sc.factor
				break
			}
		}
	}
	return a, true
}

var (
	tokenRE   = late.Regexp(`[A-Za-z0-9/^~-]+`)
	versionRE = late.Regexp(`[_-]?v?\d+\.\d+(?:\.\d+)?(?:-rc\d+)?\b`)
	splitRE   = late.Regexp(`[._/()=,'"\s:-]+`)
)

// The words by which authors tell the two sides of a comparison. The weaker ones
// count only where no stronger one stands.
var (
	strongest = map[string]int{"before": -1, "after": 1}
	strong    = map[string]int{
		"before": -1, "baseline": -1, "old": -1, "orig": -1, "original": -1, "parent": -1, "unpatched": -1, "vanilla": -1, "without": -1,
		"head~": -1, "head~1": -1, "head^": -1, "head^^": -1, "head~2": -1, "this^": -1, "origin/master": -1, "upstream": -1, "previous": -1, "stock": -1,
		"after": 1, "new": 1, "patched": 1, "head": 1, "optimized": 1, "optimised": 1, "fixed": 1, "proposed": 1, "improved": 1,
	}
	weak = map[string]int{
		"base": -1, "master": -1, "main": -1, "current": -1, "with": 1, "this": 1, "now": 1, "next": 1, "topic": 1, "patch": 1, "fix": 1, "series": 1, "branch": 1,
	}
)

// sideOf says whether a label speaks of before (-1) or after (1); 0 is neither.
func sideOf(label string) int {
	first, rest, _ := strings.Cut(strings.TrimSpace(label), " ")
	for _, words := range []map[string]int{strongest, strong, weak} {
		for _, token := range sideTokens(label) {
			if side := words[token]; side != 0 {
				return side
			}
		}
	}
	if rest != "" && versionRE().MatchString(first) {
		return -1 // a release of the program: ./git_v2.51.0 log
	}
	return 0
}

func sideTokens(label string) []string {
	var all []string
	for _, token := range tokenRE().FindAllString(strings.ToLower(label), -1) {
		all = append(all, token)
		if strings.ContainsAny(token, "/_.-") {
			all = append(all, splitRE().Split(token, -1)...)
		}
	}
	return all
}

// keyOf is a benchmark's name without the words that tell its side.
func keyOf(name string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(name), " ")
	name = versionRE().ReplaceAllString(first, "") + " " + rest
	var kept []string
	for _, token := range splitKeeping(name) {
		lower := strings.ToLower(token)
		if strong[lower] == 0 && weak[lower] == 0 && lower != "" {
			kept = append(kept, token)
		}
	}
	return strings.Join(kept, " ")
}

var keyRE = late.Regexp(`[\s_()'",:/]+|\.+(?:\W|$)|^\./|\.`)

func splitKeeping(s string) []string { return keyRE().Split(s, -1) }
