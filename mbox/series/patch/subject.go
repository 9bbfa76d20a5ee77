package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Subject is a mail's subject, taken apart.
type Subject struct {
	// Text has no tags, numbers or reply marks, on one line.
	Text string
	// Tags are the words of the brackets other than PATCH, version and number,
	// as written.
	Tags []string
	// Version is 1 unless the subject says another, which HasVersion tells.
	// Minor is the 1 of v5.1, a replacement within version 5.
	Version    int
	Minor      int
	HasVersion bool
	// N of Total, when Numbered; N is 0 for a cover. `[PATCH 3/2]` has N 3 and
	// Total 2. Total is 0 for `3/n`.
	N, Total int
	Numbered bool
	Patch    bool // a PATCH tag
	Pull     bool // `[GIT PULL]`, `[PULL n/m]`
	Resend   bool
	Reply    bool // Re:, AW: and the like before the tag
}

// Identity is the subject without what lists add, as a key.
func (s Subject) Identity() string {
	return fmt.Sprintf("%d.%d %d/%d %t %s", s.Version, s.Minor, s.N, s.Total, s.Resend, s.Text)
}

// maxNumber bounds versions and patch numbers; what is larger is a plain word.
const maxNumber = 9999

// ParseSubject reads a decoded subject by the rules of patch mail:
//
//	[PATCH v2 3/7] x    [PATCH v6,19/24] x    [PATCHv3] x     [v3PATCH1/8] x
//	[PATCH 1 of 2 V2 STABLE] x    [list] Re: [RFC/PATCH] x    [PATCH v5.1 10/12] x
//
// Brackets behind the one with PATCH or the number belong to the text unless
// they hold only flags of that kind, as git am --keep-non-patch has it.
func ParseSubject(s string) Subject {
	out := Subject{Version: 1}
	s = strings.Join(strings.Fields(s), " ")
	tagged := false // a bracket with PATCH or a number went by
	var loose []string
	looseText := ""
	for {
		s = strings.TrimLeft(s, " :")
		if s == "" {
			break
		}
		if s[0] == '[' {
			inner, rest, ok := bracket(s)
			if !ok {
				break
			}
			t := parseTag(inner)
			marked := t.patch || t.numbered || t.pull
			if tagged && !marked && len(t.tags) > 0 {
				// [PATCH] [a-z] regex: the text begins here.
				if known := onlyFlags(t.tags); known {
					out.Tags = append(out.Tags, t.tags...)
				}
				break
			}
			if !tagged && !marked && !t.hasVersion && !onlyFlags(t.tags) {
				// [foo] x: a list's tag if PATCH follows, else part of the text.
				if loose == nil {
					looseText = s
				}
				loose = append(loose, t.tags...)
				s = rest
				continue
			}
			out.Tags = append(out.Tags, loose...)
			loose = nil
			out.take(t)
			tagged = tagged || marked || t.hasVersion || onlyFlags(t.tags)
			s = rest
			continue
		}
		if n := replyMark(s); n > 0 && (!tagged || strings.EqualFold(s[:3], "re:")) {
			if !tagged {
				out.Reply = true
			}
			s = s[n:]
			continue
		}
		if v, n := roundVersion(s); n > 0 && !tagged && strings.Contains(s[n:], "[") {
			if !out.HasVersion {
				out.Version, out.HasVersion = v, true
			}
			s = s[n:]
			continue
		}
		break
	}
	if !tagged && loose != nil {
		// No PATCH came: the bracket is text, but it is still worth naming.
		out.Tags = append(out.Tags, loose...)
		s = looseText
	}
	out.Text = strings.TrimLeft(strings.TrimSpace(s), " :")
	return out
}

// take merges what one bracket says; the first number and version win.
func (s *Subject) take(t tag) {
	s.Tags = append(s.Tags, t.tags...)
	s.Patch = s.Patch || t.patch
	s.Pull = s.Pull || t.pull
	if t.numbered && !s.Numbered {
		s.N, s.Total, s.Numbered = t.n, t.total, true
	}
	if t.hasVersion && !s.HasVersion {
		s.Version, s.Minor, s.HasVersion = t.version, t.minor, true
	}
	s.Resend = s.Resend || slices.ContainsFunc(t.tags, isResend)
}

func isResend(w string) bool {
	switch strings.ToUpper(w) {
	case "RESEND", "RESENT", "REPOST", "RE-SEND":
		return true
	}
	return false
}

// onlyFlags says that all words are flags of patch mail and no list's or
// subsystem's name.
func onlyFlags(tags []string) bool {
	for _, w := range tags {
		if !isResend(w) && !strings.EqualFold(w, "RFC") && !strings.EqualFold(w, "WIP") {
			return false
		}
	}
	return true
}

// bracket splits s, which begins with [, into the bracket's inside and the rest;
// brackets may nest, and one that is never closed ends at the first ].
func bracket(s string) (inner, rest string, ok bool) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return s[1:i], s[i+1:], true
			}
		}
	}
	if i := strings.IndexByte(s, ']'); i > 0 {
		return s[1:i], s[i+1:], true
	}
	return "", "", false
}

// replyMark gives the length of a reply's or forward's mark at the start of s.
func replyMark(s string) int {
	i := strings.IndexByte(s, ':')
	if wide := strings.Index(s, "："); wide >= 0 && (i < 0 || wide < i) {
		switch s[:wide] {
		case "回复", "答复", "转发":
			return wide + len("：")
		}
	}
	if i < 2 || i > 10 {
		return 0
	}
	word := strings.TrimSpace(s[:i])
	// Re[2]: and Re(2): count the replies.
	if j := strings.IndexAny(word, "[(^"); j > 0 && strings.Trim(word[j:], "[]()^0123456789") == "" {
		word = word[:j]
	}
	switch strings.ToLower(word) {
	case "re", "aw", "sv", "vs", "antw", "fw", "fwd", "wg", "odp", "ynt", "回复", "答复":
		return i + 1
	}
	return 0
}

// roundVersion reads (vN) at the start of s and gives the length read.
func roundVersion(s string) (version, n int) {
	end := strings.IndexByte(s, ')')
	if s[0] != '(' || end < 3 {
		return 0, 0
	}
	v, minor, rest, ok := versionWord(s[1:end])
	if !ok || minor != 0 || rest != "" {
		return 0, 0
	}
	return v, end + 1
}

// tag is what one bracket says.
type tag struct {
	tags           []string
	patch, pull    bool
	numbered       bool
	n, total       int
	hasVersion     bool
	version, minor int
}

func parseTag(inner string) tag {
	var t tag
	words := strings.FieldsFunc(inner, func(r rune) bool {
		return r == ' ' || r == ',' || r == '\t' || r == '[' || r == ']' || r == ';'
	})
	for i := 0; i < len(words); i++ {
		w := words[i]
		// N of M, also PATCH1 of 8
		if i+2 < len(words) && strings.EqualFold(words[i+1], "of") {
			pre, num := splitDigits(w)
			n, ok1 := number(num)
			m, ok2 := number(words[i+2])
			if ok1 && (ok2 || len(words[i+2]) == 1) && (pre == "" || t.word(pre)) {
				t.setNumber(n, m)
				i += 2
				continue
			}
		}
		if !t.word(w) {
			t.tags = append(t.tags, w)
		}
	}
	if len(words) == 2 && strings.EqualFold(words[0], "git") && t.pull {
		t.tags = nil
	}
	return t
}

func (t *tag) setNumber(n, total int) {
	if !t.numbered {
		t.n, t.total, t.numbered = n, total, true
	}
}

// word reads PATCH, a version, a number, or these joined without blanks; false
// if w is something else.
func (t *tag) word(w string) bool {
	probe := *t
	rest := w
	for rest != "" {
		trimmed := strings.TrimLeft(rest, "-_:.")
		if trimmed == "" || (trimmed != rest && len(rest)-len(trimmed) > 1) {
			return false
		}
		rest = trimmed
		switch {
		case hasPrefixFold(rest, "PATCH"):
			rest = rest[5:]
			probe.patch = true
			if rest != "" && isLetter(rest[0]) && rest[0] != 'v' && rest[0] != 'V' {
				return false // PATCHES, patchwork
			}
			if len(rest) > 1 && rest[0] == '/' && isLetter(rest[1]) {
				if !probe.flags(rest[1:]) { // PATCH/RFC
					return false
				}
				rest = ""
			}
			continue
		case strings.EqualFold(rest, "PULL"):
			probe.pull = true
			rest = ""
			continue
		case hasPrefixFold(rest, "RFC") && len(rest) > 3 && rest[3] == '/':
			if !probe.flags(rest[:3]) {
				return false
			}
			rest = rest[4:]
			continue
		case hasPrefixFold(rest, "RFC") && len(rest) > 3:
			// RFCv2
			if _, _, _, ok := versionWord(rest[3:]); !ok {
				return false
			}
			probe.tags = append(slices.Clip(probe.tags), rest[:3])
			rest = rest[3:]
			continue
		}
		if v, minor, after, ok := versionWord(rest); ok {
			if !probe.hasVersion {
				probe.version, probe.minor, probe.hasVersion = v, minor, true
			}
			rest = after
			continue
		}
		n, total, after, ok := fraction(rest)
		if !ok {
			return false
		}
		probe.setNumber(n, total)
		rest = after
	}
	*t = probe
	return true
}

// flags keeps the words of PATCH/RFC and RFC/PATCH as tags.
func (t *tag) flags(s string) bool {
	for _, w := range strings.Split(s, "/") {
		if !onlyFlags([]string{w}) || w == "" {
			return false
		}
		t.tags = append(slices.Clip(t.tags), w)
	}
	return true
}

// versionWord reads vN or vN.M. What follows must be nothing, PATCH, RFC or a
// separator: V4L is no version, nor is v2.6.32.
func versionWord(s string) (v, minor int, rest string, ok bool) {
	if len(s) < 2 || s[0] != 'v' && s[0] != 'V' {
		return 0, 0, "", false
	}
	i := digits(s, 1)
	v, good := number(s[1:i])
	if !good || v == 0 {
		return 0, 0, "", false
	}
	if i+1 < len(s) && s[i] == '.' {
		j := digits(s, i+1)
		if minor, good = number(s[i+1 : j]); good {
			i = j
		}
	}
	rest = s[i:]
	if rest != "" && !hasPrefixFold(rest, "PATCH") && rest[0] != '-' && rest[0] != '_' && rest[0] != ':' {
		return 0, 0, "", false
	}
	return v, minor, rest, true
}

// fraction reads n/m, and n/n and n/x for a total that is not known.
func fraction(s string) (n, total int, rest string, ok bool) {
	i := digits(s, 0)
	n, ok = number(s[:i])
	if !ok || i+1 >= len(s) || s[i] != '/' {
		return 0, 0, "", false
	}
	j := digits(s, i+1)
	if j == i+1 {
		if c := s[j] | 0x20; len(s) == j+1 && (c == 'n' || c == 'm' || c == 'x') {
			return n, 0, "", true
		}
		return 0, 0, "", false
	}
	total, ok = number(s[i+1 : j])
	rest = s[j:]
	if rest != "" && rest[0] != 'v' && rest[0] != 'V' && !hasPrefixFold(rest, "PATCH") && rest[0] != ':' {
		return 0, 0, "", false
	}
	return n, total, rest, ok
}

func digits(s string, from int) int {
	for from < len(s) && s[from] >= '0' && s[from] <= '9' {
		from++
	}
	return from
}

func splitDigits(w string) (pre, num string) {
	i := len(w)
	for i > 0 && w[i-1] >= '0' && w[i-1] <= '9' {
		i--
	}
	return w[:i], w[i:]
}

func number(s string) (int, bool) {
	if s == "" || digits(s, 0) != len(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= maxNumber
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
