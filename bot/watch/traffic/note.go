package traffic

import (
	"fmt"
	"strings"
	"time"
)

// Note is a mail in short. Its ids have no domain.
type Note struct {
	ID, Re, From, Subject, Body string
	Header                      string // more fields, each with its line end
	To                          string // fields; default: the list
	Forged                      bool   // no word of the own server
	Undated                     bool
}

// Domain is that of all Message-IDs.
const Domain = "x.test"

// Raw writes the mail down.
func (n Note) Raw(sent time.Time) []byte {
	var b strings.Builder
	if !n.Forged {
		domain := n.From[strings.LastIndexByte(n.From, '@')+1:]
		fmt.Fprintf(&b, "Authentication-Results: mx.test; dkim=pass header.d=%s\n", strings.TrimRight(domain, ">"))
	}
	fmt.Fprintf(&b, "From: %s\n", n.From)
	if n.To == "" {
		n.To = "To: dev@lists.test\nList-Id: <dev.lists.test>"
	}
	fmt.Fprintf(&b, "%s\nSubject: %s\n", n.To, n.Subject)
	if !n.Undated {
		fmt.Fprintf(&b, "Date: %s\n", sent.Format(time.RFC1123Z))
	}
	if n.ID != "" {
		fmt.Fprintf(&b, "Message-ID: <%s@%s>\n", n.ID, Domain)
	}
	if n.Re != "" {
		fmt.Fprintf(&b, "In-Reply-To: <%[1]s@%[2]s>\nReferences: <%[1]s@%[2]s>\n", n.Re, Domain)
	}
	b.WriteString(n.Header)
	b.WriteString("\n" + n.Body)
	return []byte(b.String())
}

// Diff changes a file's one line, "old".
func Diff(file, to string) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+%[2]s\n-- \n2.39\n", file, to)
}
