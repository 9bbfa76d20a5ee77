package claims

import (
	"regexp"
	"slices"
	"strings"

	"patchbench/bench"
	"patchbench/bench/late"
)

// A pattern is a regular expression that can match only where one of the words
// (in lower case) stands.
type pattern struct {
	words []string
	re    func() *regexp.Regexp
}

const about = `(?:(?:about|around|roughly|approximately|approx\.?|almost|nearly|just|over|under|more than|less than|up to|only|~)\s*)*`

var (
	// Each gives before as its first and after as its second group. Its words are
	// looked for first, which is much quicker than the pattern.
	forward = []pattern{
		{[]string{"from"}, late.Regexp(`(?i)\bfrom\s+` + about + `(` + quantity + `)(?:\s+[a-z(][\w()/%-]*){0,4}?\s+(?:down\s+|up\s+)?to\s+(?:[a-z]+\s+)?` + about + `(` + quantity + `)`)},
		{[]string{"->", "=>", "→", "..>"}, late.Regexp(`(` + quantity + `)\s*(?:--?>|=>|→|\.\.\.>)\s*` + `~?(` + quantity + `)`)},
		{[]string{"before", "old", "base", "without", "master", "unpatched", "parent", "head"}, late.Regexp(`(?i)\b(?:before|old|baseline|base|without|master|unpatched|parent|HEAD[~^]1?)\b[^:=\n.]{0,30}[:=]\s*` + about + `(` + quantity + `)[^:=]{0,60}?\b(?:after|new|with|patched|now|HEAD|this)\b[^:=\n.]{0,30}[:=]\s*` + about + `(` + quantity + `)`)},
		{[]string{"before", "without", "parent", "master", "unpatched"}, late.Regexp(`(?i)(` + quantity + `)\s+(?:before|without|for\s+the\s+parent|on\s+master|with\s+master|unpatched)\b[^.0-9]{0,40}?(?:\band|\bbut|,|;|\bvs\.?|\bto)\s+` + about + `(` + quantity + `)\s+(?:after|with|for\s+this|on\s+this|patched|now)`)},
		{[]string{"took", "used to take"}, late.Regexp(`(?i)\b(?:took|used to take)\s+` + about + `(` + quantity + `)[^.0-9]{0,50}?\b(?:now|after|takes)\b[^.0-9]{0,30}?` + about + `(` + quantity + `)`)},
		{[]string{"before"}, late.Regexp(`(?i)\bbefore\b[^.0-9]{0,50}?\b(?:took|takes)\s+` + about + `(` + quantity + `)[^.0-9]{0,60}?\b(?:after|now)\b[^.0-9]{0,40}?` + about + `(` + quantity + `)`)},
	}
	// These give after first.
	backward = []pattern{
		{[]string{"instead", "rather", "from", "where"}, late.Regexp(`(?i)(` + quantity + `)\s*,?\s+(?:instead of|rather than|down from|up from|where it (?:was|took))\s+(?:the\s+|previous\s+)*` + about + `(` + quantity + `)`)},
	}

	gainWords = `faster|quicker|speed-?\s?ups?|(?:performance |speed |run-?time |overall )?improvements?|(?:performance )?boost|better performance`
	lessWords = `reductions?|less|fewer|smaller|savings?|drop|decrease|lower|shorter`
	moreWords = `slower|larger|bigger|more|increase|overhead|longer|higher`

	factorRE   = late.Regexp(`(?i)(` + number + `)(?:\s?(?:±|\+-)\s?` + number + `)?\s?(?:x|×|times|-fold|fold)\s+(?:as\s+|is\s+)?(?:(` + gainWords + `)|(` + lessWords + `)|(` + moreWords + `))\b`)
	percentRE  = late.Regexp(`(?i)(` + number + `)\s?(?:%|percent|per cent)\s+(?:(?:performance|speed|cpu|memory|time|of a|wall)\s+)?(?:(` + gainWords + `)|(` + lessWords + `)|(` + moreWords + `))\b`)
	byRE       = late.Regexp(`(?i)\b(?:(faster|speeds?(?:\s+[\w/'-]+){0,6}?\s+up|sped(?:\s+[\w/'-]+){0,6}?\s+up|speed-?\s?ups?|improv\w+)|(reduc\w+|decreas\w+|sav\w+|drop\w*|shrink\w*|cuts?|lower\w*)|(slow\w*|increas\w+|grow\w*|regress\w*))\b(?:\s+[\w/'()-]+){0,8}?\s+(?:by|of|is)\s+` + about + `(?:a\s+)?(?:(` + number + `)\s?(%|percent|per cent|x\b|×|times\b)|factor\s+of\s+` + about + `(` + number + `))`)
	signedRE   = late.Regexp(`(?:^|[\s(:,])([-+−]\s?` + number + `)\s?%`)
	citedRE    = late.Regexp(`\b[0-9a-f]{7,40}\s+\([^)]*\d{4}-\d\d-\d\d\)`)
	notClaimRE = late.Regexp(`(?i)\b(?:would|could|might|unless|no (?:measurable|noticeable)|not (?:any )?(?:faster|slower)|expected|theoretical(?:ly)?)\b`)
	grievance  = late.Regexp(`(?i)\b(?:regress\w*|slow-?downs?|caus\w+|increased)\b`)
	countedRE  = late.Regexp(`(?i)\bnumber of (?:[\w/-]+ )*?(steps|calls|syscalls|allocations|instructions|cycles|comparisons|lookups|faults|misses|reads|writes)\b`)
	asFastRE   = late.Regexp(`(?i)\b(twice|(?:\d+(?:\.\d+)?|three|four|five|ten)(?: times|x)) as fast\b`)
	ofPatchRE  = late.Regexp(`(?i)\b(?:now|makes?|made|becomes?|before|master|was|patch|commit|change)\b`)
	breakRE    = late.Regexp(`[,;]\s|\s(?:while|but|whereas)\s`)
	sentenceRE = late.Regexp(`[.!?]["')]?\s+`)
	labelRE    = late.Regexp(`^\s*(?:[-*]\s+)?([^:]{1,60}):\s`)
	listedRE   = late.Regexp(`^(?:\s{2,}|\s*[-*]\s|\t)`)
)

// prose reads what is left, sentence by sentence. An indented line is a
// sentence of its own.
func (t *reader) prose() {
	for i := 0; i < len(t.lines); i++ {
		line := t.lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "$ ") || strings.Count(line, "|") > 2 {
			continue
		}
		from := i
		var b strings.Builder
		b.WriteString(line)
		listed := listedRE().MatchString(line)
		for i+1 < len(t.lines) && strings.TrimSpace(t.lines[i+1]) != "" && (!listedRE().MatchString(t.lines[i+1]) || listed && continues(t.lines[i], t.lines[i+1])) {
			i++
			b.WriteString("\n" + t.lines[i])
		}
		t.paragraph(from, b.String())
	}
}

// continues says that a listed line goes on below: with the second half of a
// pair, or hanging under a bullet.
func continues(line, next string) bool {
	depth := func(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(strings.TrimSpace(next), "- "), strings.HasPrefix(strings.TrimSpace(next), "* "):
		return false
	case strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "):
		return depth(next) == depth(line)+2
	}
	token, _, _ := strings.Cut(trimmed, ":")
	under, _, _ := strings.Cut(strings.TrimSpace(next), ":")
	return len(token) < 30 && len(under) < 30 && sideOf(token) < 0 && sideOf(under) > 0
}

func (t *reader) paragraph(from int, text string) {
	at := 0
	for at < len(text) {
		end := len(text)
		if m := sentenceRE().FindStringIndex(text[at:]); m != nil {
			end = at + m[1]
		}
		t.sentence(from+strings.Count(text[:at], "\n"), text[at:end])
		at = end
	}
}

// mostSentence is how many bytes a sentence may have: one that is longer is
// none, and reading it would take long.
const mostSentence = 1000

func (t *reader) sentence(line int, s string) {
	if len(s) > mostSentence || !strings.ContainsAny(s, "0123456789") && !asFastRE().MatchString(s) || citedRE().MatchString(s) {
		return
	}
	subject := ""
	if m := labelRE().FindStringSubmatch(s); m != nil && sideOf(m[1]) == 0 && !strings.ContainsAny(m[1], ",;\n") && !strings.Contains(m[1], ". ") {
		subject = strings.TrimSpace(m[1])
	} else if listedRE().MatchString(s) {
		subject = t.heading(line)
	}
	found := false
	taken := make([]bool, len(s))
	lower := strings.ToLower(s)
	each := func(p pattern, swap bool) {
		if !slices.ContainsFunc(p.words, func(w string) bool { return strings.Contains(lower, w) }) {
			return
		}
		for _, m := range p.re().FindAllStringSubmatchIndex(s, -1) {
			if slices.Contains(taken[m[0]:m[1]], true) || notClaimRE().MatchString(clause(s, m[0], m[1])) {
				continue
			}
			a, okA := parse(s[m[2]:m[3]])
			b, okB := parse(s[m[4]:m[5]])
			if swap {
				a, b = b, a
			}
			a, b = agree(a, b)
			if noun := countedRE().FindStringSubmatch(s[:m[0]]); a.unit == "" && b.unit == "" && noun != nil {
				a.unit, a.noun, b.unit, b.noun = bench.Count, noun[1], bench.Count, noun[1]
			}
			if !okA || !okB || a.unit == "" || b.unit != a.unit || a.value > 0 && b.value > a.value && grievance().MatchString(s) {
				continue
			}
			for i := m[0]; i < m[1]; i++ {
				taken[i] = true
			}
			found = true
			t.pair(line+strings.Count(s[:m[0]], "\n"), s, subject, said(s, a, m[0], m[1]), a, b)
		}
	}
	for _, p := range forward {
		each(p, false)
	}
	for _, p := range backward {
		each(p, true)
	}
	if found || notClaimRE().MatchString(s) {
		return
	}
	t.ratios(line, s, subject)
}

// clause is the part of a sentence around bytes from..to that no comma or
// semicolon divides.
func clause(s string, from, to int) string {
	start := 0
	if all := breakRE().FindAllStringIndex(s[:from], -1); len(all) > 0 {
		start = all[len(all)-1][1]
	}
	end := len(s)
	if at := breakRE().FindStringIndex(s[to:]); at != nil {
		end = to + at[0]
	}
	return s[start:end]
}

// said are the words that tell which quantity a number is of: those of its clause,
// or of the whole sentence where these do not.
func said(s string, a amount, from, to int) string {
	if part := clause(s, from, to); quantityOf(amount{unit: a.unit}, part) != quantityOf(amount{unit: a.unit}, "") {
		return part
	}
	return s
}

// ratios reads a sentence that gives no pair: "1.45x faster", "-12 %".
func (t *reader) ratios(line int, s, subject string) {
	rate := quantityOf(amount{}, s) == "throughput"
	say := func(m []int, change float64) {
		t.ratio(line+strings.Count(s[:m[0]], "\n"), s, subject, quantityOf(amount{}, said(s, amount{}, m[0], m[1])), change)
	}
	n := len(t.claims)
	for _, m := range factorRE().FindAllStringSubmatchIndex(s, -1) {
		v, ok := parse(s[m[2]:m[3]])
		switch {
		case !ok || v.value <= 0:
		case m[8] >= 0 || rate:
			say(m, v.value-1)
		default:
			say(m, 1/v.value-1)
		}
	}
	for _, m := range asFastRE().FindAllStringSubmatchIndex(s, -1) {
		if v, ok := parse(inDigits(s[m[2]:m[3]])); ok && v.value > 1 && ofPatchRE().MatchString(clause(s, m[0], m[1])) {
			say(m, 1/v.value-1)
		}
	}
	for _, m := range percentRE().FindAllStringSubmatchIndex(s, -1) {
		if v, ok := parse(s[m[2]:m[3]]); ok {
			say(m, percent(v.value, m[4] >= 0, m[8] >= 0, rate))
		}
	}
	if len(t.claims) == n {
		for _, m := range byRE().FindAllStringSubmatchIndex(s, -1) {
			more, number, unit := m[6] >= 0, "", "x"
			if m[8] >= 0 {
				number, unit = s[m[8]:m[9]], s[m[10]:m[11]]
			} else {
				number = s[m[12]:m[13]]
			}
			v, ok := parse(number)
			switch {
			case !ok || v.value <= 0:
			case unit == "%" || strings.HasPrefix(unit, "per"):
				say(m, percent(v.value, m[2] >= 0, more, rate))
			case more || rate:
				say(m, v.value-1)
			default:
				say(m, 1/v.value-1)
			}
		}
	}
	if len(t.claims) > n {
		return
	}
	for _, m := range signedRE().FindAllStringSubmatchIndex(s, -1) {
		raw := s[m[2]:m[3]]
		if v, ok := parse(strings.TrimLeft(raw, "-+− ")); ok {
			if raw[0] == '+' {
				say(m, v.value/100)
			} else {
				say(m, -v.value/100)
			}
		}
	}
}

// inDigits writes the number before "as fast".
func inDigits(s string) string {
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(s, "x")), " ")
	if n, ok := map[string]string{"twice": "2", "three": "3", "four": "4", "five": "5", "ten": "10"}[first]; ok {
		return n
	}
	return first
}

// percent is the change that p per cent mean. A gain of 100 % and more can only
// be one of speed.
func percent(p float64, gain, more, rate bool) float64 {
	switch {
	case more, gain && rate:
		return p / 100
	case gain && p >= 100:
		return 1/(1+p/100) - 1
	}
	return -min(p/100, 1)
}

func (t *reader) ratio(line int, text, subject, quantity string, change float64) {
	if change <= -1 {
		return
	}
	t.add(bench.Claim{Line: line + 1, Text: text, Subject: subject, Quantity: quantity, Change: change})
}
