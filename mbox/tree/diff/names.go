package diff

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// isSpace is what git takes for white space, in any locale.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isDevNull says that a --- or +++ line (without the mark) means no file.
func isDevNull(v []byte) bool {
	rest, ok := bytes.CutPrefix(v, []byte("/dev/null"))
	return ok && len(rest) > 0 && isSpace(rest[0])
}

// squash makes one slash of several.
func squash(name string) string {
	for strings.Contains(name, "//") {
		name = strings.ReplaceAll(name, "//", "/")
	}
	return name
}

// findName reads a name, quoted or up to a line end (or a tab), and strips
// leading parts; "" if there are not so many.
func findName(v []byte, strip int, tab bool) string {
	if len(v) > 0 && v[0] == '"' {
		if name, ok := quotedName(v, strip); ok {
			return name
		}
		if isOpen(v) {
			return string(v)
		}
	}
	end := bytes.IndexFunc(v, func(r rune) bool { return r == '\n' || r == '\r' || tab && r == '\t' })
	if end < 0 {
		end = len(v)
	}
	return cutParts(v[:end], strip, "")
}

// cutParts strips leading parts. The name of the other side is preferred if this
// one is only that with more behind it, as in "file.orig".
func cutParts(v []byte, strip int, other string) string {
	start := -1
	if strip == 0 {
		start = 0
	}
	for i, c := range v {
		if c == '/' {
			if strip--; strip == 0 {
				start = i + 1
			}
		}
	}
	if start < 0 || start == len(v) {
		return squash(other)
	}
	name := string(v[start:])
	if other != "" && len(other) < len(name) && strings.HasPrefix(name, other) {
		return squash(other)
	}
	return squash(name)
}

// isOpen knows a quoted name whose end is not on its line. Git reads on in the
// lines behind it; we hand the name on with its newline, and so it is refused.
func isOpen(v []byte) bool {
	line, ended := bytes.CutSuffix(v, []byte("\n"))
	_, rest, ok := unquote(append(line[:len(line):len(line)], '"'))
	return ended && ok && len(rest) == 0
}

func quotedName(v []byte, strip int) (string, bool) {
	name, _, ok := unquote(v)
	if !ok {
		return "", false
	}
	for ; strip > 0; strip-- {
		if _, name, ok = strings.Cut(name, "/"); !ok {
			return "", false
		}
	}
	return squash(name), true
}

// stamp is a date behind a name, as diff -u and others write it: one tab or some
// blanks, a year of two or four digits, and a time and a zone if they are there.
var stamp = regexp.MustCompile(`(\t| +)(\d\d)?\d\d-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d+)?)?( [-+](\d{4}|\d\d:\d\d))?$`)

// plainName reads the name of a --- or +++ line of a diff without `diff --git`.
func plainName(v []byte, other string, strip int) string {
	if len(v) > 0 && v[0] == '"' {
		if name, ok := quotedName(v, strip); ok {
			return name
		}
		if isOpen(v) {
			return string(v)
		}
	}
	line := bytes.TrimSuffix(v, []byte("\n"))
	if loc := stamp.FindIndex(line); loc != nil {
		return cutParts(line[:loc[0]], strip, other)
	}
	if end := bytes.IndexAny(line, "\t\r"); end >= 0 {
		line = line[:end]
	}
	return cutParts(line, strip, other)
}

// guessStrip is 0 for a name without a slash, else -1 for unknown.
func guessStrip(v []byte) int {
	if isDevNull(v) {
		return -1
	}
	if name := plainName(v, "", 0); name != "" && !strings.Contains(name, "/") {
		return 0
	}
	return -1
}

var epoch = regexp.MustCompile(`^(1969-12-31|1970-01-01) ([0-2][0-9]):([0-5][0-9]):00(?:\.0+)? ([-+])([0-2][0-9]):?([0-5][0-9])\n`)

// isEpoch says that the date behind a name is the start of 1970, which stands
// for a file that is not there.
func isEpoch(v []byte) bool {
	i := bytes.LastIndexByte(v, '\t')
	if i < 0 {
		return false
	}
	m := epoch.FindSubmatch(v[i+1:])
	if m == nil {
		return false
	}
	n := func(i int) int { n, _ := strconv.Atoi(string(m[i])); return n }
	at, zone := n(2)*60+n(3), n(5)*60+n(6)
	if m[4][0] == '-' {
		zone = -zone
	}
	if string(m[1]) == "1969-12-31" {
		at -= 24 * 60
	}
	return at == zone
}

// skipParts cuts leading parts off a name in a `diff --git` line.
func skipParts(s string, strip int) (string, bool) {
	if strip == 0 {
		return s, s != "" && s[0] != '/'
	}
	for i := range len(s) {
		if s[i] == '/' {
			if strip--; strip <= 0 {
				return s[i+1:], i > 0
			}
		}
	}
	return "", false
}

// headerName finds the one name that a `diff --git` line gives twice; "" if the
// two differ or cannot be told apart. v is what stands behind `diff --git `.
func headerName(v []byte, strip int) string {
	s := strings.TrimSuffix(string(v), "\n")
	if s != "" && s[0] == '"' {
		first, rest, ok := unquote(v)
		if !ok {
			return ""
		}
		name, ok := skipParts(first, strip)
		second := strings.TrimLeft(strings.TrimSuffix(string(rest), "\n"), " \t\r")
		if !ok {
			return ""
		}
		if second != "" && second[0] == '"' {
			if second, _, ok = unquote([]byte(second)); !ok {
				return ""
			}
		}
		if again, ok := skipParts(second, strip); !ok || again != name {
			return ""
		}
		return name
	}
	name, ok := skipParts(s, strip)
	if !ok {
		return ""
	}
	if q := strings.IndexByte(name, '"'); q >= 0 {
		second, _, ok := unquote([]byte(name[q:]))
		if !ok {
			return ""
		}
		again, ok := skipParts(second, strip)
		if ok && len(again) < q && strings.HasPrefix(name, again) && isSpace(name[len(again)]) {
			return again
		}
		return ""
	}
	for i := range len(name) {
		if name[i] != ' ' && name[i] != '\t' {
			continue
		}
		if again, ok := skipParts(name[i+1:], strip); ok && again == name[:i] {
			return again
		}
	}
	return ""
}

// unquote reads a C string as git quotes names, and gives what stands behind it.
func unquote(v []byte) (string, []byte, bool) {
	if len(v) == 0 || v[0] != '"' {
		return "", nil, false
	}
	var out []byte
	for i := 1; i < len(v); i++ {
		switch c := v[i]; c {
		case '"':
			return string(out), v[i+1:], true
		case '\n':
			return "", nil, false
		case '\\':
			i++
			if i == len(v) {
				return "", nil, false
			}
			switch c := v[i]; {
			case strings.IndexByte(`abfnrtv"\`, c) >= 0:
				out = append(out, "\a\b\f\n\r\t\v\"\\"[strings.IndexByte(`abfnrtv"\`, c)])
			case c >= '0' && c <= '3' && i+2 < len(v) && v[i+1]&^7 == '0' && v[i+2]&^7 == '0':
				out = append(out, (c-'0')<<6|(v[i+1]-'0')<<3|(v[i+2]-'0'))
				i += 2
			default:
				return "", nil, false
			}
		default:
			out = append(out, c)
		}
	}
	return "", nil, false
}

// SameHeaders says that every `diff --git` line of a patch, and there is one,
// names the same path twice without a/ and b/, as --no-prefix writes it; or, for
// a patch without such lines, that each pair of --- and +++ names is the same.
func SameHeaders(text []byte) bool {
	git, pairs := false, 0
	var before []byte
	var two, from string // a header with two names, until rename lines explain it
	for line := range bytes.Lines(text) {
		if v, ok := bytes.CutPrefix(line, []byte("diff --git ")); ok {
			if git = true; two != "" {
				return false
			}
			if headerName(v, 0) == "" {
				two = strings.TrimSuffix(string(v), "\n")
			}
		}
		if two != "" {
			if v, ok := cutEither(line, "rename from ", "copy from "); ok {
				from = strings.TrimSuffix(string(v), "\n")
			}
			if v, ok := cutEither(line, "rename to ", "copy to "); ok && two == from+" "+strings.TrimSuffix(string(v), "\n") {
				two = ""
			}
		}
		if v, ok := bytes.CutPrefix(line, []byte("+++ ")); ok && bytes.HasPrefix(before, []byte("--- ")) && !git {
			if a := before[4:]; !isDevNull(a) && !isDevNull(v) {
				if plainName(a, "", 0) != plainName(v, "", 0) {
					return false
				}
				pairs++
			}
		}
		before = line
	}
	return two == "" && (git || pairs > 0)
}
