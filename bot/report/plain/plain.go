// Package plain makes foreign text fit for lines of plain text: printable, cut
// and wrapped by the columns of a terminal.
//
// In goes text that anybody may have written; out come lines that neither steer
// a terminal nor hide anything. It is the lowest part of bot/report.
package plain

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Clean makes foreign text safe for one line: what is not printable is spelled
// out (\x1b, \u202e), so that it neither steers a terminal nor hides.
func Clean(s string) string {
	var b strings.Builder
	marks := 0
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		mark := unicode.In(r, unicode.Mn, unicode.Me)
		if !mark {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r < 0x80 && r != 0x7f && r >= ' ':
			b.WriteByte(s[0])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case mark && marks >= 2:
			// A pile of accents would run over the lines above and below.
			fmt.Fprintf(&b, `\u%04x`, r)
		case unicode.Is(unicode.Zs, r):
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteString(s[:n])
			if mark {
				marks++
			}
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// Columns is how many columns of a terminal s takes. Our own colour sequences
// take none; foreign ones never get this far.
func Columns(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			if end := strings.IndexByte(s[i:], 'm'); end >= 0 {
				i += end + 1
				continue
			}
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		n += runeColumns(r)
		i += size
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x80:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if r >= 0x1f000 { // pictographs
		return 2
	}
	return 1
}

// Cut shortens uncoloured text to at most w columns, with ".." at its end. It
// leaves no part of a number, which would be another number.
func Cut(s string, w int) string {
	if Columns(s) <= w {
		return s
	}
	end := head(s, w-2)
	return strings.TrimRight(s[:end], " ") + ".."
}

// CutName shortens uncoloured text to at most w columns as Cut does, but in its
// middle: what tells names apart, as the parameters of a benchmark, stands at their
// ends.
func CutName(s string, w int) string {
	if Columns(s) <= w {
		return s
	}
	end := head(s, (w-2)/2)
	rest := s[end:]
	for left := w - 2 - Columns(s[:end]); Columns(rest) > left; {
		_, n := utf8.DecodeRuneInString(rest)
		rest = rest[n:]
	}
	// Neither a part of a number nor an accent without its letter.
	if whole := strings.TrimLeft(rest, "0123456789."); isNumber(s[:len(s)-len(rest)], rest) && whole != "" {
		rest = whole
	}
	rest = strings.TrimLeftFunc(rest, func(r rune) bool { return runeColumns(r) == 0 })
	return strings.TrimRight(s[:end], " ") + ".." + strings.TrimLeft(rest, " ")
}

// head is where the first w columns of a longer text end, or the number before
// them begins that they would part.
func head(s string, w int) int {
	n, end := 0, 0
	for i, r := range s {
		if n+runeColumns(r) > w {
			end = i
			break
		}
		n += runeColumns(r)
	}
	if whole := strings.TrimRight(s[:end], "0123456789."); isNumber(s[:end], s[end:]) && whole != "" {
		return len(whole)
	}
	return end
}

// isNumber says that a number is parted between a and b.
func isNumber(a, b string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	if a == "" || b == "" {
		return false
	}
	last, first := a[len(a)-1], b[0]
	return digit(last) && (digit(first) || first == '.' && len(b) > 1 && digit(b[1])) || last == '.' && len(a) > 1 && digit(a[len(a)-2]) && digit(first)
}

// Pad fills s with blanks to w columns.
func Pad(s string, w int) string {
	return s + strings.Repeat(" ", max(0, w-Columns(s)))
}

// Wrap breaks text at blanks into lines of at most w columns; lines after the
// first begin with indent. Words that are too long are cut, and a per cent sign
// stays with its number.
func Wrap(s string, w int, indent string) []string {
	var lines []string
	line, start := "", ""
	words := strings.Fields(s)
	for i := len(words) - 1; i > 0; i-- {
		if words[i][0] == '%' {
			words[i-1] += " " + words[i]
			words = slices.Delete(words, i, i+1)
		}
	}
	for _, word := range words {
		word = Cut(word, w-Columns(indent))
		switch {
		case line == start:
			line += word
		case Columns(line)+1+Columns(word) > w:
			lines = append(lines, line)
			start = indent
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// Tail gives the last n lines of a log, each cleaned and at most w columns wide.
// The same line several times in a row is one, with their number.
func Tail(log string, n, w int) []string {
	var lines []string
	times, before := 1, ""
	for line := range strings.SplitSeq(log, "\n") {
		// What a terminal would have overwritten is not worth a reader's time.
		line = strings.TrimRight(line, "\r ")
		if i := strings.LastIndexByte(line, '\r'); i >= 0 {
			line = line[i+1:]
		}
		line = strings.TrimRight(Clean(strings.ReplaceAll(line, "\t", "    ")), " ")
		switch {
		case line == "":
		case line == before:
			times++
			again := fmt.Sprintf(" (%d times)", times)
			lines[len(lines)-1] = Cut(line, w-len(again)) + again
		default:
			lines = append(lines, Cut(line, w))
			times, before = 1, line
		}
	}
	return lines[max(0, len(lines)-n):]
}

// Command breaks a shell command into lines of at most w columns that can be
// pasted as they stand: at blanks outside quotes, and inside a word if need be.
func Command(s string, w int, indent string) []string {
	s = Clean(s)
	var lines []string
	line := ""
	var quote rune
	escaped := false
	blank := -1 // where line may be broken
	for _, r := range s {
		if quote == 0 && r == ' ' && !escaped {
			blank = len(line)
		}
		if Columns(line)+runeColumns(r) > w-2 {
			switch {
			case blank > 0:
				lines = append(lines, line[:blank]+` \`)
				line, blank = indent+strings.TrimLeft(line[blank:], " "), -1
			case quote == '\'':
				// A backslash is no continuation between these quotes.
				lines = append(lines, line+`'\`)
				line = "'"
			case !escaped:
				lines = append(lines, line+`\`)
				line = ""
			}
		}
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		line += string(r)
	}
	return append(lines, line)
}
