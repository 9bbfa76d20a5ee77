package claims

import (
	"slices"
	"strconv"
	"strings"

	"patchbench/bench/late"
)

var (
	benchmarkRE = late.Regexp(`^\s*Benchmark\s+#?(\d+):\s*(.*)$`)
	meanRE      = late.Regexp(`^\s*Time\s+\(.*?\):\s+(` + quantity + `)`)
	rangeRE     = late.Regexp(`^\s*Range\s+\(`)
)

// A hyperfineRun is one benchmark of hyperfine.
type hyperfineRun struct {
	number, line int
	name         string
	mean         amount
	measured     bool
}

// hyperfine reads its output: a group of benchmarks is what stands between one
// "Benchmark 1" and the next.
func (t *reader) hyperfine() {
	var group []hyperfineRun
	flush := func() {
		t.group(slices.DeleteFunc(group, func(b hyperfineRun) bool { return !b.measured }))
		group = nil
	}
	summary, ran := 0, ""
	for i, line := range t.lines {
		trimmed := strings.TrimSpace(line)
		switch m := benchmarkRE().FindStringSubmatch(line); {
		case m != nil:
			n, _ := strconv.Atoi(m[1])
			if len(group) > 0 && n <= group[len(group)-1].number {
				flush()
			}
			name := m[2]
			if name == "" {
				name = t.heading(i)
			}
			group = append(group, hyperfineRun{number: n, line: i, name: name})
			summary = 0
		case len(group) > 0 && meanRE().MatchString(line):
			b := &group[len(group)-1]
			b.mean, b.measured = parse(meanRE().FindStringSubmatch(line)[1])
		case rangeRE().MatchString(line):
		case trimmed == "Summary" || trimmed == "Summary:":
			summary = 1
		case summary == 1 && trimmed != "": // "NAME ran", or the name alone
			summary, ran = 2, strings.TrimSuffix(trimmed, " ran")
			if len(group) > 0 {
				break
			}
			summary = 3
			continue // the ratio below is all there is of it
		case summary == 3 && strings.Contains(trimmed, "times faster than"):
			t.onlySummary(i, ran, trimmed)
		case summary == 2 && strings.Contains(trimmed, "times faster than"):
		default:
			if trimmed != "" {
				summary = 0
			}
			continue
		}
		t.lines[i] = ""
	}
	flush()
}

var summaryRE = late.Regexp(`(` + number + `).*times faster than\s+(.*)$`)

// onlySummary reads hyperfine's summary where the runs above it were left out.
func (t *reader) onlySummary(i int, ran, line string) {
	m := summaryRE().FindStringSubmatch(line)
	if m == nil {
		return
	}
	ratio, ok := parse(m[1])
	if !ok || ratio.value <= 0 {
		return
	}
	slow, fast := ratio, amount{value: 1}
	if sideOf(ran) < 0 && sideOf(m[2]) >= 0 {
		slow, fast = fast, slow
	}
	change := fast.value/slow.value - 1
	t.ratio(i, ran+" ran "+line, keyOf(ran), "time", change)
}

// group pairs the benchmarks of one call of hyperfine.
func (t *reader) group(list []hyperfineRun) {
	if len(list) < 2 {
		return
	}
	claim := func(a, b hyperfineRun) {
		subject := keyOf(b.name)
		if h := t.heading(list[0].line); h != "" && h != subject {
			subject += " (" + h + ")"
		}
		t.pair(a.line, a.name+": "+strings.TrimSpace(meanOf(t.whole, a.line))+"; "+b.name+": "+strings.TrimSpace(meanOf(t.whole, b.line)),
			subject, "wall", a.mean, b.mean)
	}
	if len(list) == 2 {
		a, b := list[0], list[1]
		x, y := sideOf(a.name), sideOf(b.name)
		switch {
		case x > 0 && y > 0, x == y && isSetting(a.name, b.name), x == 0 && y == 0 && !sameCommand(a.name, b.name),
			(x == 0) != (y == 0) && strings.Contains(keyOf(a.name), " ") && strings.Contains(keyOf(b.name), " ") && !sharesWords(a.name, b.name):
			// Two settings of the same code, or two programs.
		case x > 0 && y <= 0 || y < 0 && x >= 0:
			claim(b, a)
		default:
			claim(a, b)
		}
		return
	}
	var befores, others []hyperfineRun
	for _, b := range list {
		if sideOf(b.name) < 0 {
			befores = append(befores, b)
		} else {
			others = append(others, b)
		}
	}
	for _, b := range others {
		i := slices.IndexFunc(befores, func(a hyperfineRun) bool { return keyOf(a.name) == keyOf(b.name) })
		if i >= 0 {
			claim(befores[i], b)
		}
	}
}

// meanOf is the figure below the benchmark on line i.
func meanOf(lines []string, i int) string {
	for _, line := range lines[i:min(i+4, len(lines))] {
		if m := meanRE().FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return ""
}

// sameCommand says that two command lines differ in the program only.
func sameCommand(a, b string) bool {
	_, x, _ := strings.Cut(a, " ")
	_, y, _ := strings.Cut(b, " ")
	return x != "" && x == y
}

// sharesWords says that half of the words of each name stand in the other: a name
// with HEAD among its arguments is no label of another command.
func sharesWords(a, b string) bool {
	x, y := words(keyOf(a)), words(keyOf(b))
	both := 0
	for w := range x {
		if y[w] {
			both++
		}
	}
	return 2*both >= len(x) && 2*both >= len(y)
}

var settingRE = late.Regexp(`(?i)\b(?:true|false|on|off|enabled|disabled|yes|no)\b`)

// isSetting says that two names differ in a switch only.
func isSetting(a, b string) bool {
	return a != b && settingRE().MatchString(a) && settingRE().MatchString(b) &&
		settingRE().ReplaceAllString(a, "") == settingRE().ReplaceAllString(b, "")
}

var (
	timeLineRE = late.Regexp(`^\s*(real|user|system|sys|elapsed|wall|cpu)\s*:?\s+(` + quantity + `)\s*$`)
	promptRE   = late.Regexp(`^(?:\[[^\]]*\]|[\w.@-]+:[\w~/.-]*)?[$] `)
	pathRE     = late.Regexp(`(^\$ |\btime )[^ ]*/`)
	timeTailRE = late.Regexp(`(` + quantity + `)\s?(real|user|system|sys|elapsed|wall|cpu)\b`)
)

// timings reads the output of time(1): blocks of real, user and sys, the first
// labelled as before and the next as after.
func (t *reader) timings() {
	type block struct {
		from, to int
		side     int
		command  string // the line above it, if it is one
		values   map[string]amount
	}
	var blocks []block
	last := 0
	for i := 0; i < len(t.lines); i++ {
		b := block{from: i, values: map[string]amount{}}
		for ; i < len(t.lines); i++ {
			if m := timeLineRE().FindStringSubmatch(t.lines[i]); m != nil {
				if a, ok := parse(m[2]); ok {
					b.values[m[1]], _ = agree(a, amount{unit: "s", scale: 1})
				}
				continue
			}
			if all := timeTailRE().FindAllStringSubmatch(t.lines[i], -1); len(all) >= 2 {
				for _, m := range all {
					if a, ok := parse(m[1]); ok {
						b.values[m[2]], _ = agree(a, amount{unit: "s", scale: 1})
					}
				}
				continue
			}
			break
		}
		if len(b.values) == 0 {
			continue
		}
		b.to = i
		b.side, b.command = t.labels(max(last, b.from-7), b.from)
		if b.side == 0 && len(blocks) > 0 {
			b.side = blocks[len(blocks)-1].side
		}
		last = b.to
		blocks = append(blocks, b)
	}
	used := make([]bool, len(blocks))
	// The same command is looked for first, and then one much like it right below.
	for pass, same := range []func(a, b string) bool{alike, sharesWords} {
		for i, a := range blocks {
			if used[i] || a.side > 0 && blocks[0].side <= 0 {
				continue
			}
			for j := i + 1; j < len(blocks) && !used[i]; j++ {
				b := blocks[j]
				switch {
				case used[j] || pass == 1 && j > i+1 || b.from-a.to > 25 || a.command != "" && b.command != "" && !same(a.command, b.command):
					continue
				case a.side == 0 && (b.side <= 0 || a.command == "" || !alike(a.command, b.command)):
					continue // what has no label is before only where the same command is run again
				case a.side != 0 && b.side != -a.side:
					continue
				}
				used[i], used[j] = true, true
				before, after := a, b
				if a.side > 0 {
					before, after = b, a
				}
				for _, name := range []string{"real", "elapsed", "wall", "cpu", "user", "system", "sys"} {
					x, has := before.values[name]
					y, had := after.values[name]
					if has && had {
						t.pair(a.from, name+" "+show(x)+" before, "+show(y)+" after", strings.TrimLeft(a.command, "$ "), name+" time", x, y)
					}
				}
				t.blank(a.from, a.to)
				t.blank(b.from, b.to)
			}
		}
	}
}

// alike says that two command lines have the same words: git-diff is git diff.
func alike(a, b string) bool {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '-' || r == '$' })
	}
	return slices.Equal(split(a), split(b))
}

// labels reads the lines from..to-1 above a block: which side they speak of, the
// nearest first, and the command that was timed.
func (t *reader) labels(from, to int) (side int, command string) {
	for i := to - 1; i >= max(from, 0); i-- {
		line := strings.TrimSpace(t.whole[i])
		if at := promptRE().FindStringIndex(line); at != nil {
			if command == "" {
				command = pathRE().ReplaceAllString(line[at[1]-2:], "$1")
			}
			continue
		}
		if side == 0 {
			side = sideOf(line)
		}
	}
	return side, command
}

func show(a amount) string { return strconv.FormatFloat(a.value, 'g', 5, 64) + " s" }
