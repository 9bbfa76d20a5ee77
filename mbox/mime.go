package mbox

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// walker collects the leaves of a mail's MIME tree.
type walker struct {
	message  *Message
	parts    int
	stripped bool // one CR per line is off already
}

func (w *walker) walk(fields []field, body []byte, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("MIME parts nested deeper than %d", MaxDepth)
	}
	typ, params := contentType(fields)
	if boundary := params["boundary"]; strings.HasPrefix(typ, "multipart/") && boundary != "" {
		return w.multipart(typ, boundary, body, depth)
	}
	w.parts++
	if w.parts > MaxParts {
		return fmt.Errorf("more than %d MIME parts", MaxParts)
	}
	part := Part{Type: typ, Charset: params["charset"], Name: params["name"]}
	if disposition, p := parseValue(value(fields, "content-disposition")); disposition != "" {
		part.Attached = disposition == "attachment"
		if p["filename"] != "" {
			part.Name = p["filename"]
		}
	}
	part.Text = isText(part)
	if part.Text {
		var err error
		if part.Body, err = w.decode(fields, params, body); err != nil {
			return err
		}
	}
	w.message.Parts = append(w.message.Parts, part)
	return nil
}

func (w *walker) multipart(typ, boundary string, body []byte, depth int) error {
	delim := []byte("--" + boundary)
	start := -1 // of the open part
	first := len(w.message.Parts)
	for pos := 0; pos < len(body); {
		i := bytes.Index(body[pos:], delim)
		if i < 0 {
			break
		}
		i += pos
		end := lineEnd(body, i)
		rest := bytes.TrimRight(body[i+len(delim):end], " \t\r\n")
		closing := bytes.Equal(rest, []byte("--"))
		if i > 0 && body[i-1] != '\n' || len(rest) > 0 && !closing {
			pos = i + len(delim)
			continue
		}
		if start >= 0 {
			if err := w.part(body[start:i], depth); err != nil {
				return err
			}
		}
		if closing {
			w.pick(typ, first)
			return nil
		}
		start, pos = end, end
	}
	if depth > 0 && start >= 0 {
		// The parent is closed, so nothing is lost but this closing line.
		err := w.part(body[start:], depth)
		w.pick(typ, first)
		return err
	}
	return errors.New("unexpected EOF: the multipart's closing boundary is missing, the mail was cut off")
}

func (w *walker) part(b []byte, depth int) error {
	if len(b) == 0 {
		w.parts++
		if w.parts > MaxParts {
			return fmt.Errorf("more than %d MIME parts", MaxParts)
		}
		return nil
	}
	fields, rest, tooLong := parseHeader(b)
	if tooLong {
		return fmt.Errorf("header of a MIME part longer than %d KiB", MaxHeader>>10)
	}
	return w.walk(fields, rest, depth+1)
}

// pick keeps of a multipart/alternative the last plain text, and of a
// multipart/signed all but the signature.
func (w *walker) pick(typ string, first int) {
	if typ != "multipart/alternative" {
		return
	}
	best := -1
	parts := w.message.Parts
	for i := first; i < len(parts); i++ {
		if parts[i].Text && (best < 0 || parts[i].Type == "text/plain") {
			best = i
		}
	}
	for i := first; i < len(parts); i++ {
		if i != best && parts[i].Type != "text/x-patch" && parts[i].Type != "text/x-diff" {
			parts[i].Text = false
		}
	}
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
func (w *walker) decode(fields []field, params map[string]string, body []byte) ([]byte, error) {
	cte := strings.ToLower(strings.TrimSpace(string(unfold(value(fields, "content-transfer-encoding")))))
	cr := !w.stripped
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

// decodeQuotedPrintable follows RFC 2045 and keeps what is not encoded properly.
func decodeQuotedPrintable(in []byte) []byte {
	if bytes.IndexByte(in, '=') < 0 {
		return in
	}
	out := make([]byte, 0, len(in))
	for {
		i := bytes.IndexByte(in, '=')
		if i < 0 {
			return append(out, in...)
		}
		out = append(out, in[:i]...)
		in = in[i+1:]
		if len(in) >= 2 && unhex(in[0]) >= 0 && unhex(in[1]) >= 0 {
			out = append(out, byte(unhex(in[0])<<4|unhex(in[1])))
			in = in[2:]
			continue
		}
		end := lineEnd(in, 0)
		if len(bytes.TrimSpace(in[:end])) == 0 {
			in = in[end:] // soft line break
			continue
		}
		out = append(out, '=')
	}
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

// value is the first field of that name, still folded.
func value(fields []field, lower string) []byte {
	for _, f := range fields {
		if is(f.name, lower) {
			return f.value
		}
	}
	return nil
}

// contentType gives the media type, text/plain if there is none, and the parameters.
func contentType(fields []field) (string, map[string]string) {
	typ, params := parseValue(value(fields, "content-type"))
	if typ == "" || !strings.Contains(typ, "/") {
		typ = "text/plain"
	}
	return typ, params
}

// parseValue reads `main; key=value; key="value"` leniently. Keys are lower
// case; the extended form key*=charset”value of RFC 2231 is decoded and
// continuations key*0, key*1 are joined.
func parseValue(v []byte) (string, map[string]string) {
	if v == nil {
		return "", nil
	}
	s := string(unfold(v))
	main, rest, _ := strings.Cut(s, ";")
	main = strings.ToLower(strings.TrimSpace(main))
	var params map[string]string
	for rest != "" {
		var key, val string
		rest = strings.TrimLeft(rest, " \t;")
		i := strings.IndexAny(rest, "=;")
		if i < 0 {
			break
		}
		if rest[i] == ';' {
			rest = rest[i+1:]
			continue
		}
		key = strings.ToLower(strings.TrimSpace(rest[:i]))
		val, rest = paramValue(strings.TrimLeft(rest[i+1:], " \t"))
		if base, no, ok := strings.Cut(key, "*"); ok {
			key = base
			if no == "" || strings.HasSuffix(no, "*") {
				if parts := strings.SplitN(val, "'", 3); len(parts) == 3 {
					val = parts[2]
				}
				if dec, err := url.PathUnescape(val); err == nil {
					val = dec
				}
			}
			if no != "" && !strings.HasPrefix(no, "0") {
				val = params[key] + val
			}
		}
		if params == nil {
			params = make(map[string]string, 4)
		}
		if _, dup := params[key]; !dup || strings.HasPrefix(val, params[key]) {
			params[key] = val
		}
	}
	return main, params
}

// paramValue reads one value, quoted or not, and gives what follows it.
func paramValue(s string) (string, string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexByte(s, ';')
		if i < 0 {
			return strings.TrimSpace(s), ""
		}
		return strings.TrimSpace(s[:i]), s[i+1:]
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) {
				i++
				out.WriteByte(s[i])
			}
		case '"':
			_, rest, _ := strings.Cut(s[i+1:], ";")
			return out.String(), rest
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String(), ""
}
