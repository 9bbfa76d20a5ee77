package mbox

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/charset"
	"github.com/emersion/go-message/textproto"
	"golang.org/x/text/encoding/charmap"
)

// readHeader reads the header at the start of b with go-message and gives it
// with the rest, which begins behind the blank line. tooLong is set, and nothing
// read, when no end came within MaxHeader bytes.
func readHeader(b []byte) (h message.Header, rest []byte, tooLong bool) {
	block, rest, tooLong := headerBlock(b)
	if tooLong {
		return h, rest, true
	}
	// headerBlock has left nothing in that ReadHeader refuses.
	h.Header, _ = textproto.ReadHeader(bufio.NewReaderSize(bytes.NewReader(block), min(len(block), 4096)))
	return h, rest, false
}

// headerBlock gives the header at the start of b without its blank line and
// without what makes go-message refuse a whole header: a line that is no field.
// Such a line is passed over if a field follows it; otherwise the body begins
// there, as for git mailinfo.
func headerBlock(b []byte) (block, rest []byte, tooLong bool) {
	pos, from := 0, 0 // b[from:pos] is good and not yet in block
	take := func() []byte {
		if block == nil {
			return b[from:pos]
		}
		return append(block, b[from:pos]...)
	}
	drop := func(end int) {
		if block == nil {
			block = make([]byte, 0, 1024)
		}
		block = append(block, b[from:pos]...)
		from = end
	}
	for pos < len(b) {
		if pos > MaxHeader {
			return take(), nil, true
		}
		end := lineEnd(b, pos)
		line := chomp(b[pos:end])
		if len(line) == 0 {
			return take(), b[end:], false
		}
		n := fieldName(line)
		if n == 0 {
			if next := lineEnd(b, end); next > end && fieldName(b[end:next]) > 0 && pos > 0 {
				drop(end)
				pos = end
				continue
			}
			return take(), b[pos:], false
		}
		stop := end
		for stop < len(b) && (b[stop] == ' ' || b[stop] == '\t') && stop-pos <= MaxHeader {
			stop = lineEnd(b, stop)
		}
		if n == len(line) { // a separator
			drop(stop)
		}
		pos = stop
	}
	return take(), nil, pos > MaxHeader
}

// fieldName gives the length of the field's name at the start of the line, 0 if
// it is no field. An mbox separator that strayed into the header counts as one.
func fieldName(line []byte) int {
	for i, c := range line {
		if c == ':' {
			return i
		}
		if c == ' ' || c == '\t' {
			// Blanks before the colon are obsolete but legal.
			if rest := bytes.TrimLeft(line[i:], " \t"); i > 0 && len(rest) > 0 && rest[0] == ':' {
				return i + len(line[i:]) - len(rest)
			}
			if bytes.HasPrefix(line, []byte("From ")) || bytes.HasPrefix(line, []byte(">From ")) {
				return len(line)
			}
			return 0
		}
		if c < 33 || c > 126 {
			return 0
		}
	}
	return 0
}

// lineEnd is the offset behind the line that begins at pos.
func lineEnd(b []byte, pos int) int {
	if pos >= len(b) {
		return len(b)
	}
	if i := bytes.IndexByte(b[pos:], '\n'); i >= 0 {
		return pos + i + 1
	}
	return len(b)
}

// chomp takes LF or CRLF from the end of a line.
func chomp(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
	}
	return line
}

// DecodeHeader gives the text of an unfolded header value: encoded words (RFC
// 2047) are decoded wherever they stand, as git does, and what is neither
// encoded nor UTF-8 is read as Windows-1252. Line breaks that hide in encoded
// words become blanks and NUL becomes U+FFFD.
func DecodeHeader(v []byte) string {
	if !bytes.Contains(v, []byte("=?")) {
		return cleanHeader(toUTF8(v, ""))
	}
	var out strings.Builder
	// Neighbouring words of one charset are decoded together, since some
	// mailers cut in the middle of a character.
	var piece []byte
	var charset string
	flush := func() {
		if len(piece) > 0 {
			out.WriteString(toUTF8(piece, charset))
			piece = piece[:0]
		}
	}
	afterWord := false
	for len(v) > 0 {
		i := bytes.Index(v, []byte("=?"))
		if i < 0 {
			break
		}
		cs, text, n := encodedWord(v[i:])
		if n == 0 {
			flush()
			out.WriteString(toUTF8(v[:i+2], ""))
			v = v[i+2:]
			afterWord = false
			continue
		}
		if !afterWord || len(bytes.TrimSpace(v[:i])) > 0 {
			flush()
			out.WriteString(toUTF8(v[:i], ""))
		}
		if !strings.EqualFold(cs, charset) {
			flush()
			charset = cs
		}
		piece = append(piece, text...)
		v = v[i+n:]
		afterWord = true
	}
	flush()
	out.WriteString(toUTF8(v, ""))
	return cleanHeader(out.String())
}

func cleanHeader(s string) string {
	if strings.ContainsAny(s, "\r\n\x00") {
		s = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ", "\x00", "\ufffd").Replace(s)
	}
	return s
}

// encodedWord reads =?charset?encoding?text?= at the start of v and gives the
// charset, the decoded bytes and the length read, 0 if it is none. Words that
// mime.WordDecoder refuses are common, and git reads them: a ? or a raw byte in
// the text, no padding, a character cut in two between words of one charset.
func encodedWord(v []byte) (charset string, text []byte, n int) {
	i := bytes.IndexByte(v[2:], '?')
	if i < 0 || len(v) < 2+i+3 || v[2+i+2] != '?' {
		return "", nil, 0
	}
	start := 2 + i + 3
	j := bytes.Index(v[start:], []byte("?="))
	if j < 0 {
		return "", nil, 0
	}
	raw := v[start : start+j]
	switch v[2+i+1] {
	case 'b', 'B':
		text = decodeBase64(raw)
	case 'q', 'Q':
		text = decodeQuotedPrintable(bytes.ReplaceAll(raw, []byte("_"), []byte(" ")))
	default:
		return "", nil, 0
	}
	charset, _, _ = strings.Cut(string(v[2:2+i]), "*") // a language may follow
	return charset, text, start + j + 2
}

// ToUTF8 converts text of the named charset. An empty, unknown or wrongly named
// charset is UTF-8 if the bytes are that, else Windows-1252, so the result is
// always UTF-8. It must not be used on diffs.
func ToUTF8(b []byte, charset string) string { return toUTF8(b, charset) }

func toUTF8(b []byte, name string) string {
	cs := strings.ToLower(strings.Trim(name, " \t\"'"))
	switch cs {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "none", "unknown-8bit", "x-unknown", "8bit":
		if utf8.Valid(b) {
			return string(b)
		}
	case "iso-8859-1", "iso8859-1", "latin1":
		// Windows-1252 under a wrong name, or the same: only the former puts
		// quotes and dashes where the latter has control characters.
	default:
		if isASCII(b) && !statefulCharset(cs) {
			return string(b)
		}
		if r, err := charset.Reader(cs, bytes.NewReader(b)); err == nil {
			if out, err := io.ReadAll(r); err == nil {
				return string(out)
			}
		}
		if utf8.Valid(b) {
			return string(b)
		}
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(b)
	if err != nil {
		return strings.ToValidUTF8(string(b), "\ufffd")
	}
	return string(out)
}

// statefulCharset says that ASCII bytes may stand for something else.
func statefulCharset(cs string) bool {
	return strings.HasPrefix(cs, "iso-2022") || strings.HasPrefix(cs, "utf-16") || strings.HasPrefix(cs, "hz-")
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
