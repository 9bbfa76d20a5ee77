package letter

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"

	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

// markField is the field by which own mail is known.
const markField = "X-Patchbench"

const (
	idPrefix = "patchbench." // of Message-IDs
	keyBytes = 20            // of what keyed gives
)

// Bounds on what others have written.
const (
	maxSubject    = 400 // bytes of a subject
	maxName       = 60  // characters of a display name
	maxID         = 250 // bytes of a Message-ID
	lastIDs       = 20  // of References that are kept behind the first
	preferredLine = 76
)

// keyed is a hash that only the holder of the secret can make.
func keyed(secret []byte, purpose, text string) string {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(purpose + "\x00" + text))
	return hex.EncodeToString(h.Sum(nil)[:keyBytes])
}

func messageID(o Options) string {
	_, domain, _ := strings.Cut(strings.ToLower(o.From.Email), "@")
	return idPrefix + keyed(o.Secret, "message-id", o.Key) + "@" + domain
}

// header gives the fields of a letter in their order.
func header(l *store.Letter, t store.Thread, list string, o Options) []string {
	fields := []string{
		field("From", person(mbox.Address{Name: o.From.Name, Email: l.From})),
		field("To", person(mbox.Address{Name: t.Author.Name, Email: l.To[0].Address})),
	}
	if list != "" {
		fields = append(fields, field("Cc", list))
	}
	fields = append(fields,
		field("Subject", encoded(l.Subject)),
		field("Date", o.Now.UTC().Format(time.RFC1123Z)),
		field("Message-ID", "<"+l.MessageID+">"),
		field("In-Reply-To", "<"+t.MessageID+">"),
		field("References", references(t)))
	if o.AutoSubmitted {
		fields = append(fields, field("Auto-Submitted", "auto-replied"))
	}
	return append(fields, field(markField, keyed(o.Secret, "mark", l.MessageID)))
}

// assemble puts fields before a text in UTF-8, whose lines end in LF, and encodes it.
func assemble(fields []string, text string) ([]byte, error) {
	encoding := "7bit"
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		encoding = "quoted-printable"
	}
	fields = append(fields, field("MIME-Version", "1.0"),
		field("Content-Type", "text/plain; charset=utf-8"), field("Content-Transfer-Encoding", encoding))
	var h textproto.Header
	for _, f := range slices.Backward(fields) { // each is put before those that are there
		h.AddRaw([]byte(f))
	}
	var b bytes.Buffer
	w, err := message.CreateWriter(&b, message.Header{Header: h})
	if err != nil {
		return nil, fmt.Errorf("compose a letter: %w", err)
	}
	if _, err := w.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		return nil, fmt.Errorf("compose a letter: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compose a letter: %w", err)
	}
	return b.Bytes(), nil
}

// field folds a value at its blanks into lines of 76 columns where it can. Words
// are never broken: an id or encoded word stays whole.
func field(name, value string) string {
	var b strings.Builder
	b.WriteString(name + ":")
	column := len(name) + 1
	for i, word := range strings.Fields(value) {
		if i > 0 && column+1+len(word) > preferredLine {
			b.WriteString("\r\n")
			column = 0
		}
		b.WriteString(" " + word)
		column += 1 + len(word)
	}
	b.WriteString("\r\n")
	return b.String()
}

// subject is that of an answer to a mail with this one.
func subject(of string) string {
	s := oneLine(of)
	for len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		s = strings.TrimSpace(s[3:])
	}
	if len(s) > maxSubject {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:maxSubject-2], "")) + ".."
	}
	if s == "" {
		s = "(no subject)"
	}
	return "Re: " + s
}

// oneLine makes foreign text a line without controls.
func oneLine(s string) string {
	return strings.Join(strings.Fields(plain.Clean(strings.Join(strings.Fields(s), " "))), " ")
}

// encoded is a text as it stands in a field: as it is, or as encoded words (RFC
// 2047) when it is no ASCII or when a reader would take it for encoded words.
func encoded(s string) string {
	if !strings.Contains(s, "=?") && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		return s
	}
	const open, end = "=?utf-8?q?", "?="
	var b strings.Builder
	b.WriteString(open)
	column := len(open)
	for _, r := range s {
		var c string
		switch {
		case r == ' ':
			c = "_"
		case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', strings.ContainsRune("!*+-/", r):
			c = string(r)
		default:
			for _, x := range []byte(string(r)) {
				c += fmt.Sprintf("=%02X", x)
			}
		}
		// Encoded words are at most 75 long, and no character is in two.
		if column+len(c)+len(end) > 72 {
			b.WriteString(end + " " + open)
			column = len(open)
		}
		b.WriteString(c)
		column += len(c)
	}
	b.WriteString(end)
	return b.String()
}

// person is a name and address as they stand in a field. A name that could be
// taken for an address is left out.
func person(a mbox.Address) string {
	name := oneLine(a.Name)
	if name == "" || strings.ContainsAny(name, "@<>") || utf8.RuneCountInString(name) > maxName {
		return a.Email
	}
	atom := func(r rune) bool { return r == ' ' || atext(r) }
	if e := encoded(name); e != name {
		name = e
	} else if strings.IndexFunc(name, func(r rune) bool { return !atom(r) }) >= 0 {
		name = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
	}
	return name + " <" + a.Email + ">"
}

// atext says that a character may stand in an atom (RFC 5322, 3.2.3).
func atext(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
}

// plainAddress says that an address is one that letters are written to: a
// dot-atom before the @, and a host name behind it.
func plainAddress(a string) bool {
	local, domain, ok := strings.Cut(a, "@")
	if !ok || len(a) > 254 || len(local) > 64 {
		return false
	}
	for atom := range strings.SplitSeq(local, ".") {
		if atom == "" || strings.IndexFunc(atom, func(r rune) bool { return !atext(r) }) >= 0 {
			return false
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "-") != label ||
			strings.IndexFunc(label, func(r rune) bool { return r != '-' && (!atext(r) || strings.ContainsRune("!#$%&'*+/=?^_`{|}~", r)) }) >= 0 {
			return false
		}
	}
	return true
}

// validID says that an id without <> can stand in a field: printable ASCII, with
// something on both sides of an @.
func validID(id string) bool {
	at := strings.LastIndexByte(id, '@')
	return at > 0 && at < len(id)-1 && len(id) <= maxID &&
		strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }) < 0
}

// references are those of the mail that is answered, and it: valid ids, each once,
// the first and the last 20.
func references(t store.Thread) string {
	var ids []string
	seen := map[string]bool{t.MessageID: true}
	for _, id := range t.References {
		if validID(id) && !seen[id] {
			seen[id] = true
			ids = append(ids, "<"+id+">")
		}
	}
	ids = append(ids, "<"+t.MessageID+">")
	if len(ids) > 1+lastIDs {
		ids = append(ids[:1:1], ids[len(ids)-lastIDs:]...)
	}
	return strings.Join(ids, " ")
}
