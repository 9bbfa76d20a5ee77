package mbox

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-message"
)

// blanks may follow a boundary on its line.
var blanks = []byte(" \t\r\n")

// splitter takes a mail's MIME tree apart in one pass over its lines, however
// deep the tree is, and copies nothing. It keeps what go-message's readers would
// give up a mail for and git mailinfo reads: a bad line in a part's header, a line
// that goes on behind a boundary ("--b-1" in a diff, or the boundary of a multipart
// inside), line ends that change, and the newline before a boundary, which a
// diff's last line needs.
type splitter struct {
	body   []byte
	parts  []Part
	leaves []leaf // of each of parts
	count  int
	open   []multipart    // from the outermost in
	levels map[string]int // where in open a boundary is; the outermost of equal ones
	leaf   bool           // the last of parts has not ended
}

// leaf is a part before its body is decoded.
type leaf struct {
	header     message.Header
	params     map[string]string
	start, end int
}

// multipart is a multipart whose last boundary has not come.
type multipart struct {
	typ      string
	boundary string
	first    int  // of its leaves
	any      bool // it has a part
}

var (
	errCutOff = errors.New("unexpected EOF: the multipart's closing boundary is missing, the mail was cut off")
	errParts  = fmt.Errorf("more than %d MIME parts", MaxParts)
	errDepth  = fmt.Errorf("MIME parts nested deeper than %d", MaxDepth)
)

// split finds the leaves of a body with that header.
func split(h message.Header, body []byte) (*splitter, error) {
	s := &splitter{body: body}
	if err := s.begin(h, 0); err != nil || len(s.open) == 0 {
		if err == nil {
			s.end(len(body))
		}
		return s, err
	}
	for pos := 0; pos < len(body) && len(s.open) > 0; {
		level, closing, end := s.boundary(pos)
		if level < 0 {
			pos = nextDashes(body, end)
			continue
		}
		s.end(pos)
		if err := s.closeTo(level + 1); err != nil {
			return nil, err
		}
		pos = end
		if closing {
			s.pop()
			pos = nextDashes(body, pos)
			continue
		}
		s.open[level].any = true
		h, rest, err := s.partHeader(pos)
		if err != nil {
			return nil, err
		}
		if err := s.begin(h, rest); err != nil {
			return nil, err
		}
		pos = nextDashes(body, rest)
	}
	s.end(len(body))
	return s, s.closeTo(0)
}

// nextDashes is the offset of the first line at or behind pos, which begins a
// line, that may be a boundary.
func nextDashes(b []byte, pos int) int {
	if bytes.HasPrefix(b[pos:], []byte("--")) {
		return pos
	}
	if i := bytes.Index(b[pos:], []byte("\n--")); i >= 0 {
		return pos + i + 1
	}
	return len(b)
}

// boundary says which open multipart the line at pos is a boundary of, -1 if none,
// whether it closes that, and where the line ends. Of several the outermost counts:
// what is inside it ends with it.
func (s *splitter) boundary(pos int) (level int, closing bool, end int) {
	end = lineEnd(s.body, pos)
	line, dashes := bytes.CutPrefix(s.body[pos:end], []byte("--"))
	level = -1
	if !dashes {
		return level, false, end
	}
	for n := len(line); n > 0 && line[n-1] <= ' ' && bytes.IndexByte(blanks, line[n-1]) >= 0; n-- {
		line = line[:n-1]
	}
	if len(line) == 0 {
		return level, false, end
	}
	if i, ok := s.levels[string(line)]; ok {
		level = i
	}
	if line, ok := bytes.CutSuffix(line, []byte("--")); ok {
		if i, ok := s.levels[string(line)]; ok && (level < 0 || i < level) {
			level, closing = i, true
		}
	}
	return level, closing, end
}

// partHeader reads the header of the part that begins at pos, and gives where its
// body begins. The header is within the part: a boundary ends it too.
func (s *splitter) partHeader(pos int) (h message.Header, rest int, err error) {
	limit := pos
	for limit < len(s.body) && limit-pos <= 2*MaxHeader {
		level, _, end := s.boundary(limit)
		if level >= 0 {
			break
		}
		blank := len(chomp(s.body[limit:end])) == 0
		limit = end
		if blank {
			break
		}
	}
	h, after, tooLong := readHeader(s.body[pos:limit])
	if tooLong {
		return h, 0, fmt.Errorf("header of a MIME part longer than %d KiB", MaxHeader>>10)
	}
	return h, limit - len(after), nil
}

// begin opens the part with that header whose body begins at start.
func (s *splitter) begin(h message.Header, start int) error {
	typ, params := contentType(h)
	boundary := strings.TrimRight(params["boundary"], string(blanks))
	if s.count++; s.count > MaxParts+1 { // the mail itself is none
		return errParts
	}
	if strings.HasPrefix(typ, "multipart/") && boundary != "" {
		if len(s.open) == MaxDepth {
			return errDepth
		}
		if s.levels == nil {
			s.levels = make(map[string]int)
		}
		if _, outer := s.levels[boundary]; !outer {
			s.levels[boundary] = len(s.open)
		}
		s.open = append(s.open, multipart{typ: typ, boundary: boundary, first: len(s.parts)})
		return nil
	}
	part := Part{Type: typ, Charset: params["charset"], Name: params["name"]}
	if disposition, p := parameters(h.Get("Content-Disposition"), h.ContentDisposition); disposition != "" {
		part.Attached = disposition == "attachment"
		if p["filename"] != "" {
			part.Name = p["filename"]
		}
	}
	part.Text = isText(part)
	s.parts = append(s.parts, part)
	s.leaves = append(s.leaves, leaf{header: h, params: params, start: start})
	s.leaf = true
	return nil
}

// end ends the open leaf, if there is one. A part of a multipart with neither
// header nor body is none.
func (s *splitter) end(pos int) {
	if !s.leaf {
		return
	}
	s.leaf = false
	last := len(s.leaves) - 1
	l := &s.leaves[last]
	if l.end = max(pos, l.start); l.end == l.start && l.header.Len() == 0 && len(s.open) > 0 {
		s.parts, s.leaves = s.parts[:last], s.leaves[:last]
	}
}

// closeTo ends the multiparts from a level in whose closing boundary is missing.
// Inside, where the parent goes on, nothing is lost but that line.
func (s *splitter) closeTo(level int) error {
	for len(s.open) > level {
		if n := len(s.open) - 1; n == 0 || !s.open[n].any {
			return errCutOff
		}
		s.pop()
	}
	return nil
}

// pop ends the innermost multipart.
func (s *splitter) pop() {
	n := len(s.open) - 1
	m := s.open[n]
	s.open = s.open[:n]
	if s.levels[m.boundary] == n {
		delete(s.levels, m.boundary)
	}
	if m.typ == "multipart/alternative" {
		s.pick(m.first)
	}
}

// pick keeps of a multipart/alternative the last plain text and what names itself
// a diff.
func (s *splitter) pick(first int) {
	best := -1
	for i, p := range s.parts[first:] {
		if p.Text && (best < 0 || p.Type == "text/plain") {
			best = first + i
		}
	}
	for i := first; i < len(s.parts); i++ {
		if p := &s.parts[i]; i != best && p.Type != "text/x-patch" && p.Type != "text/x-diff" {
			p.Text = false
		}
	}
}
