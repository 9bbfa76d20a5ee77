package mbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/emersion/go-message"
)

// Limits on one mail. What exceeds one is refused with an error that names it.
const (
	MaxMail   = 8 << 20  // bytes of a mail
	MaxHeader = 64 << 10 // bytes of a header block
	MaxLine   = 1 << 20  // bytes of a line
	MaxDepth  = 20       // multiparts inside each other
	MaxParts  = 200      // parts of a mail
)

// ErrNoHeader is given for bytes that do not begin with a mail header.
var ErrNoHeader = errors.New("no mail header")

// Message is one mail, decoded. The raw bytes are kept; a part's Body may share
// them, so neither may be written to.
type Message struct {
	// ID is the Message-ID without <>, empty if there is none.
	ID string
	// Raw is the mail without the mbox separator, unquoted.
	Raw []byte
	// Position says where the mail was: file, number and first byte.
	Position string
	From     Address
	ReplyTo  []Address
	// Subject is decoded, on one line, with its tags.
	Subject string
	// Date keeps the sender's offset; zero if missing or unreadable.
	Date time.Time
	// InReplyTo and References are ids without <>, oldest first.
	InReplyTo  []string
	References []string
	// Lists are the List-Id values without description and <>.
	Lists []string
	// Received is when the mail came in, set by a source that knows; else zero.
	Received time.Time
	// Parts are the leaves of the MIME tree in order; a plain mail has one.
	Parts []Part

	header message.Header
}

// Part is a leaf of a mail's MIME tree.
type Part struct {
	Type    string // "text/plain", lower case
	Charset string // as declared; "" for none
	Name    string // file name, "" for none
	// Attached says that Content-Disposition is attachment.
	Attached bool
	// Text says that the part may hold a message or a diff: no HTML, no
	// signature, no picture, no bundle.
	Text bool
	// Body has the transfer encoding and format=flowed undone and one CR per
	// line taken off where every line had one. The charset is untouched.
	Body []byte
}

// ParseMessage decodes one mail, which may begin with an mbox separator, or one
// patch of `hg export`, which has no header. Position is put into the message
// and is not part of the errors. It fails for what is no mail, exceeds a limit,
// or cannot be decoded; ErrNoHeader can be tested for.
func ParseMessage(raw []byte, position string) (*Message, error) {
	if len(raw) > MaxMail {
		return nil, errors.New("mail larger than 8 MiB")
	}
	for bytes.HasPrefix(raw, fromMark) && fieldName(chomp(raw[:lineEnd(raw, 0)])) == len(chomp(raw[:lineEnd(raw, 0)])) {
		raw = raw[lineEnd(raw, 0):]
	}
	m := &Message{Raw: raw, Position: position}
	body := raw
	if !isHgExport(raw) {
		h, rest, tooLong := readHeader(raw)
		if tooLong {
			return nil, errLongHeader
		}
		if h.Len() == 0 {
			return nil, ErrNoHeader
		}
		m.header, body = h, rest
	}
	if err := checkLines(raw); err != nil {
		return nil, err
	}
	m.readHeader()
	stripped := hasTransportCR(raw, body)
	if stripped {
		body = stripCR(body)
	}
	if err := m.readParts(body, stripped); err != nil {
		return nil, err
	}
	return m, nil
}

// ParseHeader reads the header of a mail and no more: the message has neither Raw
// nor Parts. raw may end anywhere behind the header. It fails with ErrNoHeader, or
// for a header longer than MaxHeader.
func ParseHeader(raw []byte) (*Message, error) {
	h, _, tooLong := readHeader(raw)
	if tooLong {
		return nil, errLongHeader
	}
	if h.Len() == 0 {
		return nil, ErrNoHeader
	}
	m := &Message{header: h}
	m.readHeader()
	return m, nil
}

var errLongHeader = fmt.Errorf("header longer than %d KiB", MaxHeader>>10)

func (m *Message) readHeader() {
	for fields := m.header.Fields(); fields.Next(); {
		switch v := fields.Value(); fields.Key() {
		case "Message-Id":
			if l := ids(v); len(l) > 0 && m.ID == "" {
				m.ID = l[0]
			}
		case "From":
			if m.From == (Address{}) {
				m.From = ParseAddress(DecodeHeader([]byte(v)))
			}
		case "Reply-To":
			m.ReplyTo = append(m.ReplyTo, ParseAddresses(DecodeHeader([]byte(v)))...)
		case "Subject":
			if m.Subject == "" {
				m.Subject = cleanSpace(DecodeHeader([]byte(v)))
			}
		case "Date":
			if m.Date.IsZero() {
				m.Date = ParseDate(v)
			}
		case "In-Reply-To":
			if m.InReplyTo == nil {
				// Some mailers write prose with several ids; only <> counts then.
				m.InReplyTo = ids(v)
			}
		case "References":
			m.References = append(m.References, ids(v)...)
		case "List-Id":
			id := DecodeHeader([]byte(v))
			if i, j := strings.LastIndexByte(id, '<'), strings.LastIndexByte(id, '>'); i >= 0 && j > i {
				id = id[i+1 : j]
			}
			if id = strings.TrimSpace(id); id != "" {
				m.Lists = append(m.Lists, id)
			}
		}
	}
}

// Header is the decoded first field of that name, in any case; "" if there is none.
func (m *Message) Header(name string) string {
	return DecodeHeader([]byte(m.header.Get(name)))
}

// Headers are all decoded fields of that name, in order.
func (m *Message) Headers(name string) []string {
	values := m.header.Values(name)
	for i, v := range values {
		values[i] = DecodeHeader([]byte(v))
	}
	return values
}

// Key names the message: its ID, or the hash of its bytes if it has none.
func (m *Message) Key() string {
	if m.ID != "" {
		return m.ID
	}
	sum := sha256.Sum256(m.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Text is the readable text of the mail as UTF-8, attachments left out.
func (m *Message) Text() string {
	var out strings.Builder
	for _, p := range m.Parts {
		if p.Text && !p.Attached {
			out.WriteString(toUTF8(p.Body, p.Charset))
		}
	}
	return out.String()
}

var hgMark = []byte("# HG changeset patch")

// isHgExport says that the bytes are a patch of `hg export` without a mail header.
func isHgExport(b []byte) bool { return bytes.HasPrefix(b, hgMark) }

// checkLines refuses lines longer than MaxLine.
func checkLines(b []byte) error {
	if len(b) <= MaxLine {
		return nil
	}
	for n := 1; len(b) > 0; n++ {
		end := lineEnd(b, 0)
		if end > MaxLine {
			return fmt.Errorf("line %d longer than 1 MiB", n)
		}
		b = b[end:]
	}
	return nil
}

// hasTransportCR says that CRLF ends this mail's lines because of its way here:
// every header line, the blank line and the body's first line have it. A saved
// mail with LF whose diff is of a CRLF file keeps its CRs.
func hasTransportCR(raw, body []byte) bool {
	head := raw[:len(raw)-len(body)]
	n := bytes.Count(head, []byte("\n"))
	if n == 0 || n != bytes.Count(head, []byte("\r\n")) {
		return false
	}
	first := body[:lineEnd(body, 0)]
	return len(first) == 0 || bytes.HasSuffix(first, []byte("\r\n")) || !bytes.HasSuffix(first, []byte("\n"))
}

// stripCR takes one CR from before each LF.
func stripCR(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// everyLineCR says that all lines of b end in CRLF.
func everyLineCR(b []byte) bool {
	i := bytes.IndexByte(b, '\n')
	if i < 1 || b[i-1] != '\r' {
		return false
	}
	return bytes.Count(b, []byte("\n")) == bytes.Count(b, []byte("\r\n"))
}
