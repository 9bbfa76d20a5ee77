package patch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/cases"
)

// decided are the shared cases whose answer differs from ours on purpose, with
// the reason. There are no others, in mbox/series neither. Each must fail, so that
// the list stays honest.
var decided = map[string]string{
	"git-subject:Re: Re: AW: [PATCH] x": "AW: before the tag is dropped as Re: is",
	"git-subject:(v2) [PATCH] x":        "(vN) before the tag is dropped, and is the version",
	"git-t5100:0015--no-inbody-headers": "nothing asks for a mail whose body has no say",
	"git-t5100:0018--no-inbody-headers": "nothing asks for a mail whose body has no say",
	"b4-subject:08":                     "the total is what the subjects say; an extra patch joins the series and does not make it longer",
}

// caseMail is what git mailinfo reads from a mail.
type caseMail struct {
	AuthorName    *string `json:"author_name"`
	AuthorEmail   *string `json:"author_email"`
	Subject       *string
	Date          string
	MessageSHA256 string `json:"message_sha256"`
	PatchSHA256   string `json:"patch_sha256"`
	PatchBytes    *int   `json:"patch_bytes"`
	MessageBytes  *int   `json:"message_bytes"`
	Info          string
	Error         string
	Option        string
	Number        int `json:"message_number"`
}

// caseMessage is how one mail of a case must be read.
type caseMessage struct {
	Raw       string
	N, Total  *int
	Version   int
	IsReply   bool   `json:"is_reply"`
	HasDiff   bool   `json:"has_diff"`
	MessageID string `json:"message_id"`
	Mailinfo  *caseMail
}

func TestSharedCases(t *testing.T) {
	cases.Run(t, map[string]cases.Check{
		"series-assembly": checkEach,
		"patch-content":   checkContent,
		"mailinfo":        checkMailinfo,
		"mailsplit":       checkMailsplit,
		"subject":         checkSubject,
		"author":          checkAuthor,
		"hard-mail":       checkHard,
	}, decided)
}

// oneOf says that the text has the hash, or would have with the blank line that a
// mailbox puts behind a mail and with the CRs that git mailinfo leaves to git
// mailsplit.
func oneOf(hash, text string) bool {
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	for _, s := range []string{text, text + "\n", crlf, crlf + "\n", crlf + "\r\n", "\r\n" + crlf} {
		if sum := sha256.Sum256([]byte(s)); hex.EncodeToString(sum[:]) == hash {
			return true
		}
	}
	return false
}

// readings compares a mail with what git mailinfo reads.
func readings(m *mbox.Message, want caseMail) []string {
	var bad []string
	miss := func(what string, got, want any) {
		if d := cmp.Diff(want, got); d != "" {
			bad = append(bad, fmt.Sprintf("%s (-want +got):\n%s", what, d))
		}
	}
	var segs []segment
	for _, p := range m.Parts {
		if !p.Text {
			// git appends HTML and signatures, which nobody wants.
			want.MessageSHA256, want.PatchSHA256 = "", ""
		} else {
			segs = append(segs, segment{p.Body, p.Charset})
		}
	}
	i := readInfo(segs, false, false)
	author, subject, date := Author(m), ParseSubject(m.Subject).Text, m.Date
	if len(i.rest) > 0 { // git heeds the body's headers in a patch alone
		if i.hasFrom {
			author = i.from
		}
		if i.hasSubject {
			subject = ParseSubject(i.subject).Text
		}
		if !i.date.IsZero() {
			date = i.date
		}
	}
	if i.hg {
		// What hg import reads is not what git mailinfo reads.
		return nil
	}
	if want.AuthorName != nil {
		miss("author name", author.Name, *want.AuthorName)
	}
	if want.AuthorEmail != nil {
		miss("author email", author.Email, *want.AuthorEmail)
	}
	if want.Subject != nil {
		miss("subject", subject, *want.Subject)
	}
	if want.Date != "" {
		miss("date", date.UTC(), mbox.ParseDate(want.Date).UTC())
	}
	if want.Option == "--message-id" {
		i.log += "Message-ID: <" + m.ID + ">\n"
	}
	if want.MessageSHA256 != "" {
		if !oneOf(want.MessageSHA256, i.log) {
			bad = append(bad, fmt.Sprintf("message of %d bytes, want %d:\n%q", len(i.log), *want.MessageBytes, i.log))
		}
	}
	if want.PatchSHA256 != "" {
		if !oneOf(want.PatchSHA256, string(i.rest)) {
			bad = append(bad, fmt.Sprintf("patch of %d bytes, want %s:\n%q", len(i.rest), want.PatchSHA256, i.rest))
		}
	}
	return bad
}

// checkEach holds every mail of a series against what must be read from it.
func checkEach(c cases.Case) []string {
	var want struct {
		EachMessage []caseMessage `json:"each_message"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	messages, _, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	return each(messages, want.EachMessage)
}

// each compares single mails with what they must be read as.
func each(messages []*mbox.Message, want []caseMessage) []string {
	var bad []string
	for _, w := range want {
		i := slices.IndexFunc(messages, func(m *mbox.Message) bool {
			return m.ID == strings.Trim(w.MessageID, "<>")
		})
		if i < 0 {
			bad = append(bad, "no message "+w.MessageID)
			continue
		}
		m := messages[i]
		s := ParseSubject(m.Subject)
		if w.N != nil && (*w.N != s.N || !s.Numbered) || w.Total != nil && *w.Total != s.Total {
			bad = append(bad, fmt.Sprintf("%q read as %d/%d", w.Raw, s.N, s.Total))
		}
		if w.Version != s.Version || w.IsReply != s.Reply {
			bad = append(bad, fmt.Sprintf("%q read as version %d, reply %t", w.Raw, s.Version, s.Reply))
		}
		if got := len(Find(m, Options{}).Patches) > 0; w.HasDiff && !got {
			bad = append(bad, fmt.Sprintf("%q: no diff found", w.Raw))
		}
		if w.Mailinfo != nil && w.Mailinfo.Error == "" {
			for _, b := range readings(m, *w.Mailinfo) {
				bad = append(bad, w.Raw+": "+b)
			}
		}
	}
	return bad
}

func checkContent(c cases.Case) []string {
	var want struct {
		HasDiff       *bool  `json:"has_diff"`
		IsPatch       *bool  `json:"is_patch"`
		IsComment     *bool  `json:"is_comment"`
		DiffStarts    string `json:"diff_starts"`
		HTMLInDiff    *bool  `json:"html_in_diff"`
		HTMLInMessage *bool  `json:"html_in_message"`
		Files         *int
		BasedOn       any           `json:"based_on"`
		EachMessage   []caseMessage `json:"each_message"`
		Mailinfo      *caseMail
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	messages, problems, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	for _, p := range problems {
		bad = append(bad, p.Position+": "+p.Error)
	}
	if len(messages) == 0 {
		return append(bad, "no message")
	}
	m := messages[0]
	content := Find(m, Options{})
	found := len(content.Patches) > 0
	for _, w := range []*bool{want.HasDiff, want.IsPatch} {
		if w != nil && *w != found {
			bad = append(bad, fmt.Sprintf("patch found: %t, want %t", found, *w))
		}
	}
	if want.IsComment != nil && found {
		bad = append(bad, "a comment was taken for a patch")
	}
	if found {
		p := content.Patches[0].Patch
		if !bytes.HasPrefix(p.Diff, []byte(want.DiffStarts)) {
			bad = append(bad, fmt.Sprintf("diff starts with %.60q, want %q", p.Diff, want.DiffStarts))
		}
		if want.HTMLInDiff != nil && bytes.Contains(p.Diff, []byte("<html")) {
			bad = append(bad, "HTML in the diff")
		}
		if want.HTMLInMessage != nil && strings.Contains(p.Message, "<html") {
			bad = append(bad, "HTML in the message")
		}
		if want.Files != nil && len(p.Files) != *want.Files {
			bad = append(bad, fmt.Sprintf("%d files, want %d: %v", len(p.Files), *want.Files, p.Files))
		}
	}
	if want.HTMLInMessage != nil && strings.Contains(content.Text, "<html") {
		bad = append(bad, "HTML in the text")
	}
	if id, ok := want.BasedOn.(string); ok && !slices.Contains(content.Hints.Prerequisites, mbox.Prerequisite{MessageID: id}) {
		bad = append(bad, fmt.Sprintf("prerequisites %v, want %s", content.Hints.Prerequisites, id))
	}
	if want.Mailinfo != nil && want.Mailinfo.Error == "" {
		bad = append(bad, readings(m, *want.Mailinfo)...)
	}
	return append(bad, each(messages, want.EachMessage)...)
}

func checkMailinfo(c cases.Case) []string {
	var want caseMail
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	messages, problems, err := c.Messages(mbox.Auto)
	if err != nil {
		return []string{err.Error()}
	}
	n := max(want.Number, 1)
	if n > len(messages) {
		return []string{fmt.Sprintf("%d messages and %d problems, want number %d: %v", len(messages), len(problems), n, problems)}
	}
	m := messages[n-1]
	for _, line := range strings.Split(want.Info, "\n") {
		key, v, _ := strings.Cut(line, ": ")
		switch key {
		case "Author":
			want.AuthorName = &v
		case "Email":
			want.AuthorEmail = &v
		case "Subject":
			want.Subject = &v
		}
	}
	return readings(m, want)
}

func checkMailsplit(c cases.Case) []string {
	var want struct {
		Messages int
		SHA256   []string `json:"message_sha256"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	messages, problems, err := c.Messages(mbox.MboxRD)
	if err != nil {
		return []string{err.Error()}
	}
	if len(messages) != want.Messages || len(problems) > 0 {
		return []string{fmt.Sprintf("%d messages, want %d; problems %v", len(messages), want.Messages, problems)}
	}
	var bad []string
	for i, m := range messages {
		log := readInfo([]segment{{m.Parts[0].Body, m.Parts[0].Charset}}, false, false).log
		if !oneOf(want.SHA256[i], log) {
			bad = append(bad, fmt.Sprintf("message %d: %q", i+1, log))
		}
	}
	return bad
}

func checkSubject(c cases.Case) []string {
	var want struct {
		Input         *string
		Prefixes      []string
		Clean, Name   *string
		N, Total      *int
		Version       any
		Reply         *bool
		CommitSubject *string `json:"commit_subject_with_-b"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	var input string
	switch {
	case want.Input != nil:
		input = *want.Input
	case want.Name != nil && len(want.Prefixes) == 0:
		input = *want.Name
	default:
		input = "[" + strings.Join(want.Prefixes, ",") + "] x"
		want.Prefixes = nil
	}
	s := ParseSubject(input)
	var bad []string
	if want.N != nil && (!s.Numbered || s.N != *want.N) && (*want.N != 1 || s.Numbered) {
		bad = append(bad, fmt.Sprintf("n %d, want %d", s.N, *want.N))
	}
	if want.Total != nil && s.Numbered && s.Total != *want.Total {
		bad = append(bad, fmt.Sprintf("total %d, want %d", s.Total, *want.Total))
	}
	if v, ok := want.Version.(float64); ok && s.Version != int(v) {
		bad = append(bad, fmt.Sprintf("version %d, want %v", s.Version, v))
	}
	if v, ok := want.Version.(string); ok && !strings.HasPrefix(v, fmt.Sprintf("%d.%d", s.Version, s.Minor)) {
		bad = append(bad, fmt.Sprintf("version %d.%d, want %v", s.Version, s.Minor, v))
	}
	if want.Reply != nil && s.Reply != *want.Reply {
		bad = append(bad, fmt.Sprintf("reply %t", s.Reply))
	}
	for _, text := range []*string{want.Clean, want.CommitSubject} {
		if text != nil && s.Text != *text {
			bad = append(bad, fmt.Sprintf("text %q, want %q", s.Text, *text))
		}
	}
	for _, tag := range want.Prefixes {
		if !slices.Contains(s.Tags, tag) {
			bad = append(bad, fmt.Sprintf("tags %q, want %q among them", s.Tags, tag))
		}
	}
	return bad
}

func checkAuthor(c cases.Case) []string {
	var want struct {
		Input struct {
			From     string
			Original string `json:"x_original_from"`
		}
		Name  string `json:"author_name"`
		Email string `json:"author_email"`
		Error bool
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	raw := "From: " + strings.ReplaceAll(want.Input.From, "LIST", "list@lists.example.com") + "\n"
	if want.Input.Original != "" {
		raw += "X-Original-From: " + want.Input.Original + "\n"
	}
	m, err := mbox.ParseMessage([]byte(raw+"Subject: x\n\ny\n"), c.ID)
	if err != nil {
		return []string{err.Error()}
	}
	if d := cmp.Diff(mbox.Address{Name: want.Name, Email: want.Email}, Author(m)); d != "" {
		return []string{"author (-want +got):\n" + d}
	}
	return nil
}

func checkHard(c cases.Case) []string {
	var want struct {
		Input       string
		PatchesRead [][]string `json:"patches_read"`
	}
	if err := c.Want(&want); err != nil {
		return []string{err.Error()}
	}
	m, err := mbox.ParseMessage([]byte(want.Input), c.ID)
	if err != nil {
		return []string{err.Error()}
	}
	var got [][]string
	for _, f := range Find(m, Options{}).Patches {
		got = append(got, []string{f.Patch.Subject, f.Patch.Author.Email})
	}
	if d := cmp.Diff(want.PatchesRead, got); d != "" {
		return []string{"patches (-want +got):\n" + d}
	}
	return nil
}
