package patch

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"patchbench/mbox"
)

// info is a mail's body taken apart as by git mailinfo: the lines at its start
// that stand for headers, the commit message, and the rest from the line on that
// ends the message.
type info struct {
	from       mbox.Address
	hasFrom    bool
	subject    string
	hasSubject bool
	date       time.Time
	log        string
	rest       []byte
	charset    string // of the part in which rest begins
	scissors   bool   // a scissors line was heeded

	hg           bool // `# HG changeset patch` was read
	hgMail       bool // hg email sent it, with that line or (--plain) without
	node, parent string
}

// readInfo follows git mailinfo line by line; scissors says whether a scissors
// line restarts the message, hgMail whether hg email sent it.
func readInfo(segs []segment, scissors, hgMail bool) info {
	out := info{hgMail: hgMail}
	var log strings.Builder
	inHeader := true
	var folded []byte // in-body header still open
	flush := func(charset string) {
		if folded != nil {
			out.header(folded, charset)
			folded = nil
		}
	}
	for k, seg := range segs {
		b := seg.body
		out.charset = seg.charset
		logStart := 0
		keep := func(end int) {
			if end > logStart {
				log.WriteString(toUTF8(b[logStart:end], seg.charset))
			}
		}
		if inHeader {
			logStart = len(b)
		}
		for pos := 0; pos < len(b); {
			end := lineEnd(b, pos)
			line := b[pos:end]
			if inHeader {
				text := chomp(line)
				if len(text) == 0 {
					if folded != nil {
						flush(seg.charset)
						inHeader, logStart = false, end
					}
					pos = end
					continue
				}
				if folded != nil && (text[0] == ' ' || text[0] == '\t') && !(scissors && isScissors(text)) {
					folded = append(append(folded, ' '), bytes.TrimSpace(text)...)
					pos = end
					continue
				}
				flush(seg.charset)
				if isQuotedFormatPatchLine(text) {
					pos = end
					continue
				}
				if bytes.HasPrefix(text, []byte("[PATCH]")) && len(text) > 7 && (text[7] == ' ' || text[7] == '\t') {
					out.subject, out.hasSubject = toUTF8(text, seg.charset), true
					pos = end
					continue
				}
				if out.opens(text) {
					folded = bytes.Clone(text)
					pos = end
					continue
				}
				inHeader, logStart = false, pos
				if bytes.HasPrefix(text, hgMark) {
					pos = out.hgHeader(b, end)
					logStart = pos
					continue
				}
			}
			if scissors && isScissors(chomp(line)) {
				out = info{charset: seg.charset, scissors: true, hgMail: hgMail}
				log.Reset()
				inHeader, logStart = true, len(b)
				pos = end
				continue
			}
			if out.breaks(b, pos, line) {
				keep(pos)
				out.log = log.String()
				out.rest = b[pos:]
				if k+1 < len(segs) {
					out.rest = bytes.Clone(out.rest)
					for _, s := range segs[k+1:] {
						if n := len(out.rest); n > 0 && out.rest[n-1] != '\n' {
							out.rest = append(out.rest, '\n')
						}
						out.rest = append(out.rest, s.body...)
					}
				}
				return out
			}
			pos = end
		}
		keep(len(b))
		if n := log.Len(); n > 0 && k+1 < len(segs) && log.String()[n-1] != '\n' {
			log.WriteByte('\n')
		}
	}
	flush(out.charset)
	out.log = log.String()
	return out
}

// opens says that the line begins an in-body header that was not seen yet.
func (o *info) opens(line []byte) bool {
	name, _, ok := bytes.Cut(line, []byte(":"))
	if !ok || len(name) > 7 {
		return false
	}
	switch strings.ToLower(string(name)) {
	case "from":
		return !o.hasFrom
	case "subject":
		return !o.hasSubject
	case "date":
		return o.date.IsZero()
	}
	return false
}

// header takes in one complete in-body header.
func (o *info) header(line []byte, charset string) {
	name, v, _ := bytes.Cut(line, []byte(":"))
	text := mbox.DecodeHeader([]byte(toUTF8(bytes.TrimSpace(v), charset)))
	switch strings.ToLower(string(name)) {
	case "from":
		// One without an address is somebody's prose.
		if a := mbox.ParseAddress(text); a.Email != "" {
			o.from, o.hasFrom = a, true
		}
	case "subject":
		o.subject, o.hasSubject = text, true
	case "date":
		o.date = mbox.ParseDate(text)
	}
}

// breaks says that the commit message ends before this line: git's rule, or
// Mercurial's, for which a bare --- is text.
func (o *info) breaks(b []byte, pos int, line []byte) bool {
	hg := o.hg || o.hgMail
	switch line[0] {
	case 'd':
		return bytes.HasPrefix(line, []byte("diff -"))
	case 'I':
		return bytes.HasPrefix(line, []byte("Index: "))
	case '-':
		if !bytes.HasPrefix(line, []byte("---")) || len(line) < 4 {
			return false
		}
		if line[3] == ' ' && len(line) > 4 && !isSpace(line[4]) {
			return !hg || bytes.HasPrefix(b[lineEnd(b, pos):], []byte("+++ "))
		}
		return !hg && len(bytes.TrimSpace(line[3:])) == 0
	}
	return false
}

// hgHeader reads the lines behind `# HG changeset patch` and gives the offset of
// the message.
func (o *info) hgHeader(b []byte, pos int) int {
	o.hg = true
	for pos < len(b) && b[pos] == '#' {
		end := lineEnd(b, pos)
		line := string(chomp(b[pos:end]))
		switch {
		case strings.HasPrefix(line, "# User "):
			text := toUTF8([]byte(line[len("# User "):]), "")
			a := mbox.ParseAddress(text)
			if a == (mbox.Address{}) {
				// Mercurial allows any text as a user.
				a.Name = strings.TrimSpace(text)
			}
			o.from, o.hasFrom = a, true
		case strings.HasPrefix(line, "# Date "):
			o.date = hgDate(line[len("# Date "):])
		case strings.HasPrefix(line, "# Node ID "):
			o.node = strings.TrimSpace(line[len("# Node ID "):])
		case strings.HasPrefix(line, "# Parent ") && o.parent == "":
			o.parent = strings.TrimSpace(line[len("# Parent "):])
		}
		pos = end
	}
	return pos
}

// isFormatPatchLine says that the line is the separator that git format-patch
// writes: From, 40 or 64 hex digits, and a date that never changes.
func isFormatPatchLine(line []byte) bool {
	rest, ok := bytes.CutPrefix(chomp(line), []byte("From "))
	if !ok {
		return false
	}
	id, date, ok := bytes.Cut(rest, []byte(" "))
	return ok && (len(id) == 40 || len(id) == 64) && isHex(string(id)) && string(date) == "Mon Sep 17 00:00:00 2001"
}

func isQuotedFormatPatchLine(line []byte) bool {
	return line[0] == '>' && isFormatPatchLine(line[1:])
}

// isScissors is git's rule for a line that says "cut here": dashes and scissors
// make up more than a third of it.
func isScissors(line []byte) bool {
	if bytes.IndexByte(line, '-') < 0 && bytes.IndexByte(line, '8') < 0 && bytes.IndexByte(line, '%') < 0 {
		return false
	}
	scissors, gap, perforation := 0, 0, 0
	first, last := -1, -1
	in := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		if isSpace(c) {
			if in {
				perforation++
				gap++
			}
			continue
		}
		last = i
		if first < 0 {
			first = i
		}
		if c == '-' {
			in = true
			perforation++
			continue
		}
		if i+1 < len(line) {
			switch string(line[i : i+2]) {
			case ">8", "8<", ">%", "%<":
				in = true
				perforation += 2
				scissors += 2
				i++
				last = i
				continue
			}
		}
		in = false
	}
	visible := 0
	if first >= 0 {
		visible = last - first + 1
	}
	return scissors > 0 && visible >= 8 && visible < perforation*3 && gap*2 < perforation
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'
}

func integer(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}
