// Package patch reads one mail: what its subject says of a series, and the patches
// in its body. In goes an mbox.Message, out comes Content: each patch with commit
// message, author, date and the bytes of its diff, and what the text says of the
// base and of other series. It is the part of mbox/series that knows one mail
// alone; which patches belong together is decided there.
//
//	Subject: [PATCH v2 3/7] table: hash once      version 2, number 3 of 7
//
//	From: A U Thor <author@example.com>           the author, before the header's
//
//	Why it is done.                               the commit message
//	---
//	 table.c | 2 +-                               kept as notes
//
//	diff --git a/table.c b/table.c                the diff, byte for byte
//
// It agrees with git mailinfo where that has an answer, and with hg import for
// the mails of Mercurial. Nothing here checks whether a diff applies.
package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"patchbench/mbox"
)

// Found is one patch of a mail before it has a place in a series.
type Found struct {
	// Patch has N 0 where the subject gives no number.
	Patch   mbox.Patch
	Subject Subject
	// Scissors and InBody say what in the mail's body marked it as a patch: a
	// scissors line, or a From, Subject or [PATCH] line.
	Scissors, InBody bool
}

// Content is what one mail holds.
type Content struct {
	Patches []Found
	// Text is the mail's text as UTF-8 without a diff and without the signature.
	Text  string
	Hints Hints
	// First is the Message-ID of the series' first patch, as hg email writes it
	// into all others; "" if not said.
	First string

	cut bool // heed scissors everywhere
}

// Hints are what a mail's text says of its base and of other series.
type Hints struct {
	BaseCommit    string // hex, "" if not said
	Prerequisites []mbox.Prerequisite
	Supersedes    string // a Message-ID
}

// Options of Find. The zero value works.
type Options struct {
	// Scissors heeds scissors lines in every mail, as git mailinfo --scissors; they
	// are always heeded in a reply that holds a diff.
	Scissors bool
}

// Find finds the patches of a mail: commit message, author and date as git am
// would record them (git mailinfo, with the first brackets up to the one with
// PATCH taken off the subject), or as hg import for a Mercurial patch; the diff's
// bytes are those of the mail. It gives no patch for a mail without a diff.
// Attached patch files with a header of their own are patches of their own.
func Find(m *mbox.Message, o Options) Content {
	out := Content{cut: o.Scissors}
	header := ParseSubject(m.Subject)
	var main []segment
	for _, p := range m.Parts {
		if !p.Text {
			continue
		}
		if own, ok := ownPatch(m, p, header); ok {
			out.Patches = append(out.Patches, own...)
			continue
		}
		main = append(main, segment{p.Body, p.Charset})
	}
	if len(main) > 0 {
		fromMain := out.fromText(m, header, main)
		// With attached patches the text is their introduction.
		out.Patches = append(fromMain, out.Patches...)
	}
	for i := range out.Patches {
		f := &out.Patches[i]
		f.Patch.MessageID = m.ID
		if f.Subject.Numbered {
			f.Patch.N = f.Subject.N
		}
	}
	out.takeMercurial(m)
	return out
}

// takeMercurial reads the fields that hg email adds; they say more than the
// subject, which may be folded or changed on its way.
func (c *Content) takeMercurial(m *mbox.Message) {
	index, ok1 := number(strings.TrimSpace(m.Header("X-Mercurial-Series-Index")))
	total, ok2 := number(strings.TrimSpace(m.Header("X-Mercurial-Series-Total")))
	if !ok1 || !ok2 || index < 1 || len(c.Patches) != 1 {
		return
	}
	s := &c.Patches[0].Subject
	s.N, s.Total, s.Numbered = index, total, true
	c.Patches[0].Patch.N = index
	if p := &c.Patches[0].Patch; p.Node == "" {
		if node := strings.TrimSpace(m.Header("X-Mercurial-Node")); isHex(node) {
			p.Node = node
		}
	}
	if first := strings.Trim(m.Header("X-Mercurial-Series-Id"), "<> \t"); first != m.ID {
		c.First = first
	}
}

// segment is a text in one charset.
type segment struct {
	body    []byte
	charset string
}

// ownPatch reads an attached file that is a patch by itself: of git
// format-patch with its mail header, or of hg export.
func ownPatch(m *mbox.Message, p mbox.Part, header Subject) ([]Found, bool) {
	body := bytes.TrimLeft(p.Body, "\r\n")
	if bytes.HasPrefix(body, hgMark) && len(m.Parts) > 1 {
		var c Content
		return c.fromText(m, header, []segment{{body, p.Charset}}), true
	}
	if !isFormatPatchLine(body[:lineEnd(body, 0)]) {
		return nil, false
	}
	var found []Found
	r := mbox.NewReader(bytes.NewReader(body), m.Position)
	for {
		inner, problem, err := r.Next()
		if err != nil {
			if len(found) == 1 && header.Numbered && !found[0].Subject.Numbered {
				text := found[0].Subject.Text
				found[0].Subject = header
				found[0].Subject.Text = text
			}
			return found, len(found) > 0
		}
		if problem != nil {
			continue
		}
		found = append(found, Find(inner, Options{}).Patches...)
	}
}

var hgMark = []byte("# HG changeset patch")

// fromText reads the patches of a text and keeps its words and hints.
func (c *Content) fromText(m *mbox.Message, header Subject, segs []segment) []Found {
	if pieces := splitHg(segs); len(pieces) > 1 {
		var found []Found
		for _, piece := range pieces {
			found = append(found, c.fromText(m, header, []segment{piece})...)
		}
		return found
	}
	hgMail := m.Header("X-Mercurial-Node") != ""
	info := readInfo(segs, false, hgMail)
	d, ok := findDiff(info.rest)
	if ok && (header.Reply || c.cut) {
		if cut := readInfo(segs, true, hgMail); cut.scissors {
			if cd, cok := findDiff(cut.rest); cok {
				info, d, ok = cut, cd, true
			}
		}
	}
	if !ok && info.hg && info.node != "" && !header.Reply {
		// A changeset of which the diff shows nothing: a mode or an empty file
		// without diff.git. It has its place in the series all the same.
		d.start, d.end, d.style, ok = len(info.rest), len(info.rest), mbox.StyleHg, true
	}
	text := info.log
	if !ok {
		text += toUTF8(info.rest, segs[len(segs)-1].charset)
		c.hints(text)
		c.Text += cutSignature(text)
		return nil
	}
	notes := string(mbox.ToUTF8(info.rest[:d.start], info.charset))
	c.hints(text)
	c.hints(notes)
	c.hints(toUTF8(info.rest[d.end:], info.charset))
	c.Text += text

	f := Found{Subject: header, Scissors: info.scissors, InBody: info.hasFrom || info.hasSubject}
	f.Patch = mbox.Patch{
		Author: Author(m),
		Date:   m.Date,
		Style:  d.style,
		Files:  append([]string{}, unique(d.files)...),
		Diff:   info.rest[d.start:d.end:d.end],
		Notes:  strings.TrimPrefix(trimSeparator(notes), "\n"),
	}
	sum := sha256.Sum256(f.Patch.Diff)
	f.Patch.DiffSHA256 = hex.EncodeToString(sum[:])
	if info.hasFrom {
		f.Patch.Author = info.from
	}
	if !info.date.IsZero() {
		f.Patch.Date = info.date
	}
	title := header.Text
	if info.hasSubject {
		in := ParseSubject(info.subject)
		title = in.Text
		if info.scissors && header.Reply || in.Numbered || in.HasVersion {
			f.Subject = in
			f.Subject.Reply = header.Reply
		}
		f.Subject.Text = title
	} else if info.scissors && header.Reply {
		f.Subject = Subject{Text: title, Version: 1, Reply: true}
	}
	if info.hg {
		f.Patch.Style = mbox.StyleHg
		f.Patch.Node, f.Patch.Parent = info.node, info.parent
		if log := stripSpace(info.log); log != "" {
			title, info.log, _ = strings.Cut(log, "\n")
		}
	}
	f.Patch.Message = stripSpace(title + "\n\n" + info.log)
	f.Patch.Subject, _, _ = strings.Cut(f.Patch.Message, "\n")
	return []Found{f}
}

// splitHg cuts a text with several `# HG changeset patch` lines before each of
// them; words before the first are dropped.
func splitHg(segs []segment) []segment {
	if len(segs) != 1 {
		return nil
	}
	b := segs[0].body
	var starts []int
	for pos := 0; ; {
		i := bytes.Index(b[pos:], hgMark)
		if i < 0 {
			break
		}
		if i += pos; i == 0 || b[i-1] == '\n' {
			starts = append(starts, i)
		}
		pos = i + len(hgMark)
	}
	var out []segment
	for i, start := range starts {
		end := len(b)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		out = append(out, segment{b[start:end:end], segs[0].charset})
	}
	return out
}

// trimSeparator takes the --- line from the front of the notes.
func trimSeparator(notes string) string {
	line, rest, _ := strings.Cut(notes, "\n")
	if strings.TrimRight(line, " \t\r") == "---" {
		return rest
	}
	return notes
}

// cutSignature ends a text before its last signature mark.
func cutSignature(s string) string {
	if i := strings.LastIndex(s, "\n-- \n"); i >= 0 {
		s = s[:i+1]
	}
	return strings.Trim(s, "\r\n") + "\n"
}

func toUTF8(b []byte, charset string) string { return mbox.ToUTF8(b, charset) }

// stripSpace cleans a commit message as git stripspace does: no blanks at line
// ends, no blank lines at both ends, one at most between paragraphs.
func stripSpace(s string) string {
	var out strings.Builder
	out.Grow(len(s) + 1)
	blank := false
	for len(s) > 0 {
		var line string
		line, s, _ = strings.Cut(s, "\n")
		line = strings.TrimRight(line, " \t\r\v\f")
		if line == "" {
			blank = true
			continue
		}
		if blank && out.Len() > 0 {
			out.WriteByte('\n')
		}
		blank = false
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.String()
}

// Author is who sent the mail as its header tells: From, or where a mailing list
// put itself there (`Foo via list <list@...>`) the X-Original-From, Reply-To or Cc
// of that name.
func Author(m *mbox.Message) mbox.Address {
	if v := m.Header("X-Original-From"); v != "" {
		if a := mbox.ParseAddress(v); a.Email != "" {
			a.Name = strings.Trim(a.Name, "'")
			return a
		}
	}
	name := strings.TrimSpace(m.From.Name)
	i := strings.Index(strings.ToLower(name), " via ")
	if i < 0 {
		return m.From
	}
	name = strings.Trim(strings.TrimSpace(name[:i]), "'\"")
	others := m.ReplyTo
	for _, v := range m.Headers("Cc") {
		others = append(others[:len(others):len(others)], mbox.ParseAddresses(v)...)
	}
	for _, a := range others {
		if strings.EqualFold(strings.Trim(a.Name, "'"), name) && !strings.EqualFold(a.Email, m.From.Email) {
			return mbox.Address{Name: name, Email: a.Email}
		}
	}
	for _, a := range m.ReplyTo {
		if !strings.EqualFold(a.Email, m.From.Email) {
			return mbox.Address{Name: name, Email: a.Email}
		}
	}
	return mbox.Address{Name: name, Email: m.From.Email}
}

// hints reads the lines of a text that name a base or other series.
func (c *Content) hints(text string) {
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		key, val, ok := strings.Cut(line, ":")
		if !ok || len(key) < 8 || len(key) > 24 {
			continue
		}
		val = strings.TrimSpace(val)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "base-commit":
			if h := strings.Fields(val); c.Hints.BaseCommit == "" && len(h) > 0 && isHex(h[0]) {
				c.Hints.BaseCommit = strings.ToLower(h[0])
			}
		case "prerequisite-patch-id":
			if isHex(val) {
				c.Hints.Prerequisites = append(c.Hints.Prerequisites, mbox.Prerequisite{PatchID: strings.ToLower(val)})
			}
		case "depends-on", "based-on", "prerequisite-message-id":
			if id := messageID(val); id != "" {
				c.Hints.Prerequisites = append(c.Hints.Prerequisites, mbox.Prerequisite{MessageID: id})
			}
		case "supersedes":
			if id := messageID(val); id != "" {
				c.Hints.Supersedes = id
			}
		}
	}
}

// messageID reads <id>, a bare id, or an archive's URL that ends in one.
func messageID(v string) string {
	if i := strings.IndexByte(v, '<'); i >= 0 {
		v, _, _ = strings.Cut(v[i+1:], ">")
	}
	if strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") {
		v = strings.TrimRight(v, "/")
		v = v[strings.LastIndexByte(v, '/')+1:]
	}
	if strings.ContainsAny(v, " \t") || !strings.Contains(v, "@") {
		return ""
	}
	return v
}

func isHex(s string) bool {
	if len(s) < 7 || len(s) > 64 {
		return false
	}
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// hgDate reads Mercurial's `SECONDS OFFSET`; the offset is in seconds west.
func hgDate(v string) time.Time {
	f := strings.Fields(v)
	if len(f) != 2 {
		return time.Time{}
	}
	sec, ok1 := integer(f[0])
	west, ok2 := integer(f[1])
	if !ok1 || !ok2 || west <= -86400 || west >= 86400 {
		return time.Time{}
	}
	t := time.Unix(sec, 0).UTC()
	if offset := int(-west / 60 * 60); offset != 0 {
		t = t.In(time.FixedZone("", offset))
	}
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{} // RFC 3339 has no such year
	}
	return t
}
