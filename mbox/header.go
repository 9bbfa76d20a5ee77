package mbox

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
)

// field is one header field; both slices point into the raw message and value
// is still folded.
type field struct {
	name  []byte
	value []byte
}

// parseHeader reads fields from the start of b and gives them with the rest,
// which begins behind the blank line. A line that is no field is passed over if
// a field follows it; otherwise the body begins there, as for git mailinfo.
// tooLong is set when no end came within MaxHeader bytes.
func parseHeader(b []byte) (fields []field, rest []byte, tooLong bool) {
	pos := 0
	for pos < len(b) {
		if pos > MaxHeader {
			return fields, nil, true
		}
		end := lineEnd(b, pos)
		line := chomp(b[pos:end])
		if len(line) == 0 {
			return fields, b[end:], false
		}
		n := fieldName(line)
		if n == 0 {
			if next := lineEnd(b, end); next > end && fieldName(b[end:next]) > 0 && len(fields) > 0 {
				pos = end
				continue
			}
			return fields, b[pos:], false
		}
		stop := end
		for stop < len(b) && (b[stop] == ' ' || b[stop] == '\t') && stop-pos <= MaxHeader {
			stop = lineEnd(b, stop)
		}
		if n > 0 && n < len(line) && line[n] == ':' {
			fields = append(fields, field{name: bytes.TrimRight(b[pos:pos+n], " \t"), value: b[pos+n+1 : stop]})
		}
		pos = stop
	}
	return fields, nil, pos > MaxHeader
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

// unfold joins a folded value: each line break and the blank behind it become
// one blank, as in git mailinfo.
func unfold(v []byte) []byte {
	v = bytes.TrimSpace(v)
	if bytes.IndexByte(v, '\n') < 0 {
		return v
	}
	out := make([]byte, 0, len(v))
	for pos := 0; pos < len(v); {
		end := lineEnd(v, pos)
		line := v[pos:end]
		if pos > 0 {
			out = append(out, ' ')
			line = line[1:]
		}
		out = append(out, bytes.TrimRight(line, " \t\r\n")...)
		pos = end
	}
	return out
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
// charset, the decoded bytes and the length read, 0 if it is none.
func encodedWord(v []byte) (charset string, text []byte, n int) {
	i := bytes.IndexByte(v[2:], '?')
	if i < 0 || len(v) < 2+i+3 || v[2+i+2] != '?' {
		return "", nil, 0
	}
	cs := string(v[2 : 2+i])
	if j := strings.IndexByte(cs, '*'); j >= 0 {
		cs = cs[:j]
	}
	enc := v[2+i+1]
	start := 2 + i + 3
	j := bytes.Index(v[start:], []byte("?="))
	if j < 0 {
		return "", nil, 0
	}
	raw := v[start : start+j]
	switch enc {
	case 'b', 'B':
		text = decodeBase64(raw)
	case 'q', 'Q':
		text = decodeQ(raw)
	default:
		return "", nil, 0
	}
	return cs, text, start + j + 2
}

// decodeQ is the Q encoding of RFC 2047.
func decodeQ(in []byte) []byte {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case c == '_':
			out = append(out, ' ')
		case c == '=' && i+2 < len(in) && unhex(in[i+1]) >= 0 && unhex(in[i+2]) >= 0:
			out = append(out, byte(unhex(in[i+1])<<4|unhex(in[i+2])))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return out
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// decodeBase64 decodes what it can: clean input at once; otherwise line by line,
// where a line with foreign characters (a list's footer) is left out.
func decodeBase64(in []byte) []byte {
	in = bytes.TrimSpace(in)
	out := make([]byte, base64.StdEncoding.DecodedLen(len(in)))
	if n, err := base64.StdEncoding.Decode(out, in); err == nil {
		return out[:n]
	}
	out = out[:0]
	var quad []byte
	for pos := 0; pos < len(in); {
		end := lineEnd(in, pos)
		line := bytes.TrimSpace(in[pos:end])
		pos = end
		body := bytes.TrimRight(line, "=")
		if bytes.ContainsFunc(body, func(r rune) bool { return !isBase64(r) }) {
			continue
		}
		quad = append(quad, body...)
		full := len(quad) / 4 * 4
		if len(body) < len(line) || pos >= len(in) {
			full = len(quad)
		}
		dst := make([]byte, base64.RawStdEncoding.DecodedLen(full)+3)
		n, _ := base64.RawStdEncoding.Decode(dst, quad[:full])
		out = append(out, dst[:n]...)
		quad = quad[:copy(quad, quad[full:])]
	}
	return out
}

func isBase64(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '+' || r == '/'
}

// ToUTF8 converts text of the named charset. An empty, unknown or wrongly named
// charset is UTF-8 if the bytes are that, else Windows-1252, so the result is
// always UTF-8. It must not be used on diffs.
func ToUTF8(b []byte, charset string) string { return toUTF8(b, charset) }

func toUTF8(b []byte, charset string) string {
	cs := strings.ToLower(strings.Trim(charset, " \t\"'"))
	switch cs {
	case "", "utf-8", "utf8", "us-ascii", "ascii", "none", "unknown-8bit", "x-unknown", "8bit":
		if utf8.Valid(b) {
			return string(b)
		}
	default:
		if isASCII(b) && !statefulCharset(cs) {
			return string(b)
		}
		if enc := lookupCharset(cs); enc != nil {
			if out, err := enc.NewDecoder().Bytes(b); err == nil {
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

func lookupCharset(cs string) encoding.Encoding {
	if enc, err := htmlindex.Get(cs); err == nil {
		return enc
	}
	if enc, err := ianaindex.MIME.Encoding(cs); err == nil && enc != nil {
		return enc
	}
	return nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
