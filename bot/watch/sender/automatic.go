package sender

import (
	"bytes"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"strings"

	"patchbench/mbox"
)

// Automatic says that no person sent the mail, and by what that is seen; "" if a
// person may have. Nothing automatic is answered or obeyed.
func Automatic(m *mbox.Message) string {
	if v := word(m.Header("Auto-Submitted")); v != "" && v != "no" {
		return "Auto-Submitted: " + v
	}
	for _, f := range fields(m.Raw) {
		if f.name == "return-path" {
			if strings.ReplaceAll(f.value, " ", "") == "<>" {
				return "Return-Path: <>"
			}
			break // those below are of earlier ways
		}
	}
	if isReport(m) {
		return "a report of a mail server"
	}
	if mark := m.Header("X-Patchbench"); len(mark) == 40 {
		return "a letter of another Patchbench"
	}
	for _, name := range []string{"X-Autoreply", "X-Autorespond", "X-Auto-Response-Suppress-Reply", "X-Vacation"} {
		if m.Header(name) != "" {
			return name
		}
	}
	switch v := word(m.Header("Precedence")); v {
	case "auto_reply":
		return "Precedence: " + v
	case "bulk", "junk":
		if len(m.Lists) == 0 { // lists say bulk as well
			return "Precedence: " + v
		}
	}
	local, _, _ := strings.Cut(strings.ToLower(m.From.Email), "@")
	if local == "mailer-daemon" || local == "postmaster" {
		return "sent by " + local
	}
	return ""
}

// word is the first word of a value, lower case.
func word(v string) string {
	v, _, _ = strings.Cut(strings.ToLower(v), ";")
	if f := strings.Fields(v); len(f) > 0 {
		return f[0]
	}
	return ""
}

func isReport(m *mbox.Message) bool {
	return word(m.Header("Content-Type")) == "multipart/report"
}

// Bounce says which mail a delivery report (RFC 3464) is about, by its Message-ID
// without <>, and what it says of it, in one line. It is "" for what is no report
// that a mail could not be delivered: one of a delay is none.
func Bounce(m *mbox.Message) (id, why string) {
	if !isReport(m) {
		return "", ""
	}
	failed := false
	for typ, body := range reportParts(m) {
		switch typ {
		case "message/delivery-status":
			// Fields for the mail, then some for each recipient.
			for block := range bytes.SplitSeq(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
				action, text := "", ""
				for _, f := range fields(block) {
					switch f.name {
					case "action":
						action = word(f.value)
					case "diagnostic-code":
						text = f.value
					}
				}
				if action == "failed" && !failed {
					failed, why = true, text
				}
			}
		case "message/rfc822", "text/rfc822-headers", "message/rfc822-headers", "message/global", "message/global-headers":
			if h, err := mbox.ParseHeader(body); err == nil && id == "" {
				id = h.ID
			}
		}
	}
	if !failed || id == "" {
		return "", ""
	}
	if len(why) > 200 {
		why = why[:200]
	}
	return id, strings.ToValidUTF8("returned as undeliverable: "+why, "\ufffd")
}

// maxReport bounds the parts of a report that are read, and each of them; RFC 3462
// has three.
const (
	maxReport     = 10
	maxReportPart = 1 << 20
)

// reportParts goes through the parts of a report, each with its media type. mbox
// reads only those that may hold a patch.
func reportParts(m *mbox.Message) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_, params, err := mime.ParseMediaType(m.Header("Content-Type"))
		_, body, ok := bytes.Cut(bytes.ReplaceAll(m.Raw, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
		if err != nil || !ok || params["boundary"] == "" {
			return
		}
		r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
		for range maxReport {
			part, err := r.NextPart()
			if err != nil {
				return
			}
			typ, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
			// What could be read of one that is cut off is still of use.
			text, _ := io.ReadAll(io.LimitReader(part, maxReportPart))
			if !yield(typ, text) {
				return
			}
		}
	}
}
