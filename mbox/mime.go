package mbox

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/emersion/go-message"
)

// readParts decodes the body of a mail into its parts. stripped says that one CR
// of each line is off already.
func (m *Message) readParts(body []byte, stripped bool) error {
	s, err := split(m.header, body)
	if err != nil {
		return err
	}
	for i, l := range s.leaves {
		if p := &s.parts[i]; p.Text {
			if p.Body, err = decode(l.header, l.params, body[l.start:l.end:l.end], stripped); err != nil {
				return err
			}
		}
	}
	m.Parts = s.parts
	return nil
}

// isText says whether a part may hold words or a diff.
func isText(p Part) bool {
	name := strings.ToLower(p.Name)
	if strings.HasSuffix(name, ".patch") || strings.HasSuffix(name, ".diff") || strings.HasSuffix(name, ".mbox") {
		return true
	}
	switch p.Type {
	case "text/html", "text/calendar", "text/vcard", "text/x-vcard", "text/rtf", "text/enriched":
		return false
	case "application/octet-stream", "application/x-patch", "application/x-diff", "application/mbox":
		return true
	}
	return strings.HasPrefix(p.Type, "text/")
}

// decode undoes transfer encoding, CRs and format=flowed.
func decode(h message.Header, params map[string]string, body []byte, stripped bool) ([]byte, error) {
	cte := strings.ToLower(h.Get("Content-Transfer-Encoding"))
	cr := !stripped
	switch cte {
	case "", "7bit", "8bit", "binary", "8-bit", "7-bit":
	case "base64":
		body, cr = decodeBase64(body), true
	case "quoted-printable":
		body, cr = decodeQuotedPrintable(body), true
	default:
		// A bad name for what is plain text anyway does no harm.
		if !isASCII(body) {
			return nil, fmt.Errorf("unknown Content-Transfer-Encoding %q", cte)
		}
	}
	if cr && everyLineCR(body) {
		body = stripCR(body)
	}
	if strings.EqualFold(params["format"], "flowed") {
		body = unflow(body, strings.EqualFold(params["delsp"], "yes"))
	}
	return body, nil
}

// transferDecoded has go-message undo a transfer encoding, as far as it comes. It
// is told no Content-Type, so that it leaves the charset alone.
func transferDecoded(encoding string, body []byte) []byte {
	var h message.Header
	h.Set("Content-Transfer-Encoding", encoding)
	entity, err := message.New(h, bytes.NewReader(body))
	if err != nil {
		return body
	}
	out, _ := io.ReadAll(entity.Body)
	return out
}

// decodeBase64 has go-message decode what is base64. go-message stops at a
// foreign character and behind padding, and drops the last bytes if padding is
// missing; so lines with foreign characters (a list's footer) are left out, what
// follows padding is decoded by itself, as in git mailinfo, and padding is added.
func decodeBase64(in []byte) []byte {
	var out []byte
	clean := make([]byte, 0, len(in)+3)
	decode := func() {
		clean = append(clean, "==="[:-len(clean)&3]...)
		out = append(out, transferDecoded("base64", clean)...)
		clean = clean[:0]
	}
	padded := 0
	for pos := 0; pos < len(in) && padded < maxPadded; {
		end := lineEnd(in, pos)
		line := bytes.TrimSpace(in[pos:end])
		pos = end
		body := bytes.TrimRight(line, "=")
		if bytes.ContainsFunc(body, func(r rune) bool { return !isBase64(r) }) {
			continue
		}
		clean = append(clean, body...)
		if len(body) < len(line) {
			decode()
			padded++
		}
	}
	decode()
	return out
}

// maxPadded bounds the pieces of one base64 text that end in padding: each has
// its cost, and a mail has room for millions of them.
const maxPadded = 1000

func isBase64(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '+' || r == '/'
}

// decodeQuotedPrintable has go-message decode it after encoding what a sloppy
// sender left as it was. git mailinfo keeps that, where go-message stops at
// control characters, at a = that begins no code and in lines longer than its
// buffer, and drops blanks at a line's end, which may be a diff's.
func decodeQuotedPrintable(in []byte) []byte {
	const hex = "0123456789ABCDEF"
	clean := make([]byte, 0, len(in)+len(in)/16)
	column := 0
	for i := 0; i < len(in); i++ {
		if column++; column > 1000 {
			clean, column = append(clean, "=\n"...), 0
		}
		c, after := in[i], in[i+1:]
		escape := false
		switch {
		case c == '\n':
			column = 0
		case c == '=' && len(after) >= 2 && isHex(after[0]) && isHex(after[1]):
			clean = append(clean, c, after[0], after[1])
			i += 2
			continue
		case c == '=':
			if blanks := bytes.TrimLeft(after, " \t\r"); len(blanks) == 0 || blanks[0] == '\n' {
				clean, column = append(clean, "=\n"...), 0
				i += len(after) - len(blanks) + min(len(blanks), 1)
				continue
			}
			escape = true
		case c == ' ' || c == '\t':
			escape = len(after) == 0 || after[0] == '\n' || after[0] == '\r'
		case c == '\r':
			escape = len(after) == 0 || after[0] != '\n'
		default:
			escape = c < ' ' || c > '~'
		}
		if escape {
			clean = append(clean, '=', hex[c>>4], hex[c&15])
		} else {
			clean = append(clean, c)
		}
	}
	return transferDecoded("quoted-printable", clean)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// unflow undoes format=flowed (RFC 3676) as git mailinfo does: one blank is
// taken from the front of each line, soft breaks are joined, and the signature
// mark is kept.
func unflow(in []byte, delSp bool) []byte {
	out := make([]byte, 0, len(in))
	for pos := 0; pos < len(in); {
		end := lineEnd(in, pos)
		line := chomp(in[pos:end])
		ending := in[pos+len(line) : end]
		pos = end
		if string(line) == "-- " {
			if n := len(out); n > 0 && out[n-1] != '\n' {
				out = append(out, '\n')
			}
			out = append(append(out, line...), ending...)
			continue
		}
		if len(line) > 0 && line[0] == ' ' {
			line = line[1:]
		}
		if n := len(line); n > 0 && line[n-1] == ' ' {
			if delSp {
				line = line[:n-1]
			}
			out = append(out, line...)
			continue
		}
		out = append(append(out, line...), ending...)
	}
	return out
}

// contentType gives the media type, text/plain if there is none, and the parameters.
func contentType(h message.Header) (string, map[string]string) {
	typ, params := parameters(h.Get("Content-Type"), h.ContentType)
	if !strings.Contains(typ, "/") {
		typ = "text/plain"
	}
	return typ, params
}

// parameters gives what parse makes of a value, main; key=value; key="value", or
// a lenient reading if parse refuses: for one unquoted blank or =, as in a file
// name or a boundary, it would lose all parameters.
func parameters(value string, parse func() (string, map[string]string, error)) (string, map[string]string) {
	if main, params, err := parse(); err == nil {
		return main, params
	}
	main, rest, _ := strings.Cut(value, ";")
	params := map[string]string{}
	for param := range strings.SplitSeq(rest, ";") {
		key, val, ok := strings.Cut(param, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if _, twice := params[key]; ok && !twice {
			val = strings.TrimSpace(val)
			if quoted, ok := strings.CutPrefix(val, `"`); ok {
				val, _, _ = strings.Cut(quoted, `"`)
			}
			params[key] = val
		}
	}
	return strings.ToLower(strings.TrimSpace(main)), params
}
