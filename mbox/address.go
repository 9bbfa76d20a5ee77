package mbox

import (
	"strings"
	"time"
)

// ParseAddress reads the first address of a decoded header value by git
// mailinfo's loose rule: what stands around the first @ is the email, all else
// is the name, with quotes taken off and comments kept. A name that is shorter
// than three bytes, longer than 60 or looks like an address is replaced by the
// email. Without an @ it takes Name <x>; otherwise the result is zero.
func ParseAddress(v string) Address {
	f := unquotePairs(v)
	at := strings.IndexByte(f, '@')
	if at < 0 {
		bra := strings.IndexByte(v, '<')
		if bra < 0 {
			return Address{}
		}
		ket := strings.IndexByte(v[bra:], '>')
		if ket < 0 {
			return Address{}
		}
		email := v[bra+1 : bra+ket]
		return Address{Name: saneName(strings.TrimSpace(v[:bra]), email), Email: email}
	}
	start := at
	for start > 0 && !isSpace(f[start-1]) && f[start-1] != '<' {
		start--
	}
	end := at
	for end < len(f) && !isSpace(f[end]) && f[end] != '>' {
		end++
	}
	email := f[start:end]
	before := f[:start]
	if start > 0 && f[start-1] == '<' {
		before = f[:start-1] + " "
	}
	after := ""
	if end < len(f) {
		after = f[end+1:]
	}
	name := cleanSpace(before + after)
	if len(name) > 1 && name[0] == '(' && name[len(name)-1] == ')' {
		name = name[1 : len(name)-1]
	}
	return Address{Name: saneName(name, email), Email: email}
}

// ParseAddresses reads a decoded header value with several addresses, separated
// by commas that stand outside quotes and comments.
func ParseAddresses(v string) []Address {
	var out []Address
	start, depth, quoted := 0, 0, false
	add := func(s string) {
		if a := ParseAddress(s); a != (Address{}) {
			out = append(out, a)
		}
	}
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '\\' && (quoted || depth > 0):
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0:
			add(v[start:i])
			start = i + 1
		}
	}
	add(v[start:])
	return out
}

func saneName(name, email string) string {
	if len(name) < 3 || len(name) > 60 || strings.ContainsAny(name, "@<>") {
		return email
	}
	return name
}

// unquotePairs takes off quotes and backslashes; comments keep their brackets.
func unquotePairs(s string) string {
	if !strings.ContainsAny(s, "\"(\\") {
		return s
	}
	var out strings.Builder
	quoted, depth, literal := false, 0, false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case literal:
			literal = false
		case (quoted || depth > 0) && c == '\\':
			literal = true
			continue
		case quoted:
			if c == '"' {
				quoted = false
				continue
			}
		case depth > 0:
			if c == '(' {
				depth++
			} else if c == ')' {
				depth--
			}
		case c == '"':
			quoted = true
			continue
		case c == '(':
			depth = 1
		}
		out.WriteByte(c)
	}
	return out.String()
}

// cleanSpace makes each run of white space one blank and trims both ends.
func cleanSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

var dateLayouts = []string{
	"2 Jan 2006 15:04:05 -0700",
	"2 Jan 2006 15:04 -0700",
	"2 Jan 06 15:04:05 -0700",
	"2 Jan 2006 15:04:05 MST",
	"2 Jan 06 15:04:05 MST",
	"2 Jan 2006 15:04:05",
	"Jan 2 15:04:05 2006 -0700",
	"Jan 2 15:04:05 2006",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02 15:04:05",
	"2006-01-02",
}

// ParseDate reads the date of a header or of a body's first lines: RFC 5322,
// what git log prints, or ISO 8601. The offset is kept. Zero if it is none of
// these, or of a year that RFC 3339 cannot write. An offset of a day or more is
// taken for none, as in git.
func ParseDate(v string) time.Time {
	if i := strings.IndexByte(v, '('); i >= 0 {
		v = v[:i]
	}
	v = cleanSpace(v)
	if i := strings.IndexByte(v, ','); i >= 0 && i <= 9 {
		v = strings.TrimSpace(v[i+1:])
	} else if len(v) > 4 && v[3] == ' ' && isWeekday(v[:3]) {
		v = v[4:]
	}
	if n := len(v) - 5; n > 0 && (v[n] == '+' || v[n] == '-') && digitsOnly(v[n+1:]) && (v[n+1:n+3] > "23" || v[n+3:] > "59") {
		v = v[:n] + "+0000"
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, v); err == nil {
			// The year may differ by one in UTC.
			if y := t.Year(); y < 1970 || y > 9998 {
				return time.Time{}
			}
			if name, off := t.Zone(); off == 0 && name != "UTC" {
				if h, ok := zoneHours[name]; ok {
					y, m, d := t.Date()
					zone := time.FixedZone("", h*3600)
					return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), 0, zone)
				}
			}
			return inOffset(t)
		}
	}
	return time.Time{}
}

// inOffset gives the time a nameless fixed zone, whatever zone this machine is
// in: time.Parse takes the local zone when the offsets agree.
func inOffset(t time.Time) time.Time {
	if _, off := t.Zone(); off != 0 {
		return t.In(time.FixedZone("", off))
	}
	return t.UTC()
}

// zoneHours are the obsolete zone names of RFC 5322 section 4.3.
var zoneHours = map[string]int{"GMT": 0, "UT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "CET": 1, "CEST": 2}

func digitsOnly(s string) bool { return strings.Trim(s, "0123456789") == "" }

func isWeekday(s string) bool {
	switch strings.ToLower(s) {
	case "mon", "tue", "wed", "thu", "fri", "sat", "sun":
		return true
	}
	return false
}

// ids gives the message ids of a header value, without <>, in order. A value
// without any <> is one id if it has no blanks.
func ids(s string) []string {
	var out []string
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			break
		}
		j := strings.IndexByte(s[i:], '>')
		if j < 0 {
			break
		}
		if id := strings.Join(strings.Fields(s[i+1:i+j]), ""); id != "" {
			out = append(out, id)
		}
		s = s[i+j+1:]
	}
	if out == nil {
		if id := strings.Trim(strings.TrimSpace(s), "<>"); id != "" && !strings.ContainsAny(id, " \t\r\n") {
			out = append(out, id)
		}
	}
	return out
}
