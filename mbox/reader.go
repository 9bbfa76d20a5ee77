package mbox

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Format says how a mailbox quotes lines that look like its separators.
type Format int

// The formats. Auto reads separators by git's rule, heeds a Content-Length that
// leads to a separator or the end, and unquotes only what Write has written;
// MboxRD takes one > off every line of the form >>From.
const (
	Auto Format = iota
	MboxRD
)

// Reader takes the messages of a mailbox one after another. Its memory is
// bounded by the size of a message.
//
//	From mboxrd@z Thu Jan  1 00:00:00 1970
//	From: A U Thor <author@example.com>
//	Subject: [PATCH] shorten the loop
//
//	The text; >From at a line's start is quoted.
//
// Bytes that begin with no separator are one mail, and those that begin with
// `# HG changeset patch` are one patch for each such line.
type Reader struct {
	// Format is Auto unless set before the first Next.
	Format Format

	src        io.Reader
	name       string
	buf        []byte
	start      int   // of the next message in buf
	offset     int64 // of buf[0] in the input
	eof        bool
	err        error
	began      bool
	mark       []byte // what begins a message: "From ", an hg mark, nil for one mail
	count      int
	searchedTo int // no separator lies between start and here
	ahead      closings
}

// NewReader reads a mailbox; name stands in positions and is not opened.
func NewReader(r io.Reader, name string) *Reader {
	return &Reader{src: r, name: name}
}

const chunk = 256 << 10

// window bounds what is held: a mail, its separator, and a line behind it.
const window = MaxMail + 4096

// fill reads more; it gives false at the end of the input.
func (r *Reader) fill() bool {
	if r.eof {
		return false
	}
	if r.start > 0 && (r.start > len(r.buf)/2 || len(r.buf) == cap(r.buf)) {
		n := copy(r.buf, r.buf[r.start:])
		r.buf = r.buf[:n]
		r.offset += int64(r.start)
		r.searchedTo -= r.start
		r.start = 0
	}
	if cap(r.buf)-len(r.buf) < chunk/2 {
		grown := make([]byte, len(r.buf), max(2*cap(r.buf), chunk))
		copy(grown, r.buf)
		r.buf = grown
	}
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	if err != nil {
		r.eof = true
		if err != io.EOF {
			r.err = err
		}
	}
	return n > 0 || !r.eof
}

// Next gives the next message, or a Problem for one that could not be read, or
// an error: io.EOF at the end, else what the underlying reader said. After a
// Problem the following message can be read.
func (r *Reader) Next() (*Message, *Problem, error) {
	if !r.began {
		r.begin()
	}
	if !r.skipBlank() {
		if r.err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", r.name, r.err)
		}
		return nil, nil, io.EOF
	}
	r.count++
	position := r.name + ": message " + strconv.Itoa(r.count) + " at byte " + strconv.FormatInt(r.offset+int64(r.start), 10)
	end, ok := r.findEnd()
	if r.err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", r.name, r.err)
	}
	raw := r.buf[r.start:end]
	if !ok {
		p := r.problem(raw, position, "mail larger than 8 MiB")
		r.discard()
		return nil, p, nil
	}
	raw = r.clean(raw)
	r.start, r.searchedTo = end, end
	m, err := ParseMessage(raw, position)
	if err != nil {
		return nil, r.problem(raw, position, err.Error()), nil
	}
	return m, nil, nil
}

func (r *Reader) problem(raw []byte, position, text string) *Problem {
	if bytes.HasPrefix(raw, fromMark) {
		raw = raw[lineEnd(raw, 0):]
	}
	h, _, _ := readHeader(raw[:min(len(raw), MaxHeader)])
	p := &Problem{Position: position, Error: text}
	if l := ids(h.Get("Message-Id")); len(l) > 0 {
		p.MessageID = l[0]
	}
	return p
}

// begin looks at the first bytes to learn what kind of input this is.
func (r *Reader) begin() {
	r.began = true
	for len(r.buf) < 4096 && r.fill() {
	}
	if bytes.HasPrefix(r.buf, []byte("\xef\xbb\xbf")) {
		r.start = 3
	}
	for r.skipBlank() && (r.buf[r.start] == ' ' || r.buf[r.start] == '\t') {
		r.start++
	}
	if r.start >= len(r.buf) {
		return
	}
	line := r.buf[r.start:lineEnd(r.buf, r.start)]
	switch {
	case isFromLine(line):
		r.mark = fromMark
	case isHgExport(line):
		r.mark = hgMark
	}
}

var fromMark = []byte("From ")

// skipBlank passes over empty lines; false at the end of the input.
func (r *Reader) skipBlank() bool {
	for {
		for r.start < len(r.buf) && (r.buf[r.start] == '\n' || r.buf[r.start] == '\r') {
			r.start++
		}
		if r.start < len(r.buf) {
			r.searchedTo = max(r.searchedTo, r.start)
			return true
		}
		if !r.fill() {
			return false
		}
	}
}

// findEnd gives the end in buf of the message at start, and false if it is
// larger than MaxMail.
func (r *Reader) findEnd() (int, bool) {
	if r.mark == nil {
		for len(r.buf)-r.start <= window && r.fill() {
		}
		return len(r.buf), len(r.buf)-r.start <= MaxMail
	}
	if end, ok := r.byContentLength(); ok {
		return end, true
	}
	checked := false
	var closing []byte
	pos := r.searchedTo
	for {
		next, ok := r.separator(pos)
		if !ok {
			return len(r.buf), len(r.buf)-r.start <= MaxMail
		}
		if next-r.start > window {
			return next, false
		}
		if !checked {
			closing, checked = r.closing(), true
		}
		if closing == nil || bytes.Contains(r.buf[r.start:next], closing) {
			return next, next-r.start <= window
		}
		// The mail's multipart is still open: this is a line of a part, unless
		// the end of the multipart got lost.
		rel := next - r.start
		after, found := r.closedBehind(next, closing[1:])
		if !found {
			return r.start + rel, true
		}
		pos, closing = after, nil
	}
}

// separator gives the offset in buf of the first separator at or behind pos that
// begins a line, reading on as needed but never past window by much.
func (r *Reader) separator(pos int) (int, bool) {
	rel := pos - r.start
	for {
		pos = r.start + rel
		i := bytes.Index(r.buf[pos:], r.mark)
		if i < 0 {
			rel = max(rel, len(r.buf)-r.start-len(r.mark))
			if len(r.buf)-r.start > window || !r.fill() {
				return 0, false
			}
			continue
		}
		i += pos
		if i > r.start && r.buf[i-1] == '\n' {
			rel = i - r.start
			for bytes.IndexByte(r.buf[r.start+rel:], '\n') < 0 && len(r.buf)-r.start-rel < 1024 && r.fill() {
			}
			i = r.start + rel
			line := r.buf[i:lineEnd(r.buf, i)]
			if r.mark[0] == '#' || isFromLine(line) {
				return i, true
			}
		}
		rel = i - r.start + len(r.mark)
	}
}

// byContentLength gives the message's end if its Content-Length leads to a
// separator or to the end of the input (mboxcl).
func (r *Reader) byContentLength() (int, bool) {
	if r.mark[0] != 'F' {
		return 0, false
	}
	for len(r.buf)-r.start < 16<<10 && r.fill() {
	}
	head := r.buf[r.start:]
	blank := bytes.Index(head, []byte("\n\n"))
	if i := bytes.Index(head[:max(blank, 0)], []byte("\nContent-Length:")); i < 0 {
		return 0, false
	}
	h, _, _ := readHeader(head[lineEnd(head, 0) : blank+2])
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Content-Length")))
	if err != nil || n < 0 || n > MaxMail {
		return 0, false
	}
	rel := blank + 2 + n
	for len(r.buf)-r.start < rel+1024 && r.fill() {
	}
	end := r.start + rel
	if end > len(r.buf) {
		return 0, false
	}
	for end < len(r.buf) && (r.buf[end] == '\n' || r.buf[end] == '\r') {
		end++
	}
	if end == len(r.buf) && r.eof || end < len(r.buf) && r.buf[end-1] == '\n' && isFromLine(r.buf[end:lineEnd(r.buf, end)]) {
		return end, true
	}
	return 0, false
}

// closing is the line that ends the multipart of the message at start, nil if it
// is none.
func (r *Reader) closing() []byte {
	head := r.buf[lineEnd(r.buf, r.start):]
	head = head[:min(len(head), MaxHeader)]
	h, _, tooLong := readHeader(head)
	if tooLong {
		return nil
	}
	typ, params := contentType(h)
	if len(typ) < 10 || typ[:10] != "multipart/" || params["boundary"] == "" {
		return nil
	}
	return []byte("\n--" + params["boundary"] + "--")
}

// discard passes over the rest of a mail that is too large.
func (r *Reader) discard() {
	r.start = min(r.start+MaxMail, len(r.buf))
	for {
		if r.mark != nil {
			if next, ok := r.separator(max(r.start, 0)); ok {
				r.start, r.searchedTo = next, next
				return
			}
		}
		if r.eof {
			r.start = len(r.buf)
			r.searchedTo = r.start
			return
		}
		// A separator may be cut by the end of the buffer.
		r.start = max(r.start, len(r.buf)-1024)
		r.searchedTo = r.start
		r.fill()
	}
}

// clean copies a message out of the buffer, without the separator and the blank
// line that ends it, and unquoted if it was quoted.
func (r *Reader) clean(raw []byte) []byte {
	rd := r.Format == MboxRD
	if r.mark != nil && r.mark[0] == 'F' {
		rd = rd || bytes.HasPrefix(raw, []byte(writtenBy))
		raw = raw[lineEnd(raw, 0):]
		if n := len(raw); n > 1 && raw[n-1] == '\n' && raw[n-2] == '\n' {
			raw = raw[:n-1]
		} else if bytes.HasSuffix(raw, []byte("\r\n\r\n")) {
			raw = raw[:n-2]
		}
	}
	if rd && bytes.Contains(raw, []byte(">From ")) {
		return unquote(raw)
	}
	return bytes.Clone(raw)
}

// unquote takes one > off each line of the form >From, >>From and so on.
func unquote(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for pos := 0; pos < len(raw); {
		end := lineEnd(raw, pos)
		line := raw[pos:end]
		if line[0] == '>' && bytes.HasPrefix(bytes.TrimLeft(line, ">"), fromMark) {
			line = line[1:]
		}
		out = append(out, line...)
		pos = end
	}
	return out
}

// isFromLine is git's rule for the line between two messages of a mailbox: it
// begins with "From " and ends with a time and a year after 1990.
func isFromLine(line []byte) bool {
	if len(line) < 20 || !bytes.HasPrefix(line, fromMark) {
		return false
	}
	line = chomp(line)
	colon := bytes.LastIndexByte(line, ':')
	if colon < 9 || colon+3 > len(line) {
		return false
	}
	for _, i := range []int{-4, -2, -1, 1, 2} {
		if c := line[colon+i]; c < '0' || c > '9' {
			return false
		}
	}
	rest := bytes.TrimLeft(line[colon+3:], " \t")
	year := 0
	for i := 0; i < len(rest) && i < 6 && rest[i] >= '0' && rest[i] <= '9'; i++ {
		year = year*10 + int(rest[i]-'0')
	}
	return year > 90
}
