package operator

import (
	"fmt"
	"io"
	"strings"
	"time"

	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

// Letter is a letter as scripts read it.
type Letter struct {
	ID        int64             `json:"id"`
	Key       string            `json:"key"`
	Job       int64             `json:"job,omitempty"`
	List      string            `json:"list,omitempty"`
	MessageID string            `json:"message_id"`
	From      string            `json:"from"`
	To        []store.Recipient `json:"to"`
	Subject   string            `json:"subject"`
	State     string            `json:"state"`
	Reason    string            `json:"reason,omitempty"`
	Attempts  int               `json:"attempts"`
	Next      *time.Time        `json:"next,omitempty"`
	Created   time.Time         `json:"created"`
	Started   *time.Time        `json:"started,omitempty"`
	Ended     *time.Time        `json:"ended,omitempty"`
	// Body is the whole mail, header and text; not in lists.
	Body string `json:"body,omitempty"`
}

// LetterOf is a letter for scripts.
func LetterOf(l *store.Letter) Letter {
	j := Letter{ID: l.ID, Key: l.Key, Job: l.Task, List: l.Channel, MessageID: l.MessageID, From: l.From, To: append([]store.Recipient{}, l.To...),
		Subject: l.Subject, State: string(l.State), Reason: l.Reason, Attempts: l.Attempts, Created: l.Created.UTC(),
		Started: utc(l.Started), Ended: utc(l.Ended), Body: string(l.Body)}
	if l.State == store.LetterQueued {
		j.Next = utc(l.Next)
	}
	return j
}

// LetterLine is a letter in a list of them.
func LetterLine(l *store.Letter) string {
	line := fmt.Sprintf("%d  %s  %s  %s  %s", l.ID, l.State, l.Created.UTC().Format("2006-01-02 15:04"), Addressees(l), l.Subject)
	if l.Reason != "" {
		line += ": " + l.Reason
	}
	return plain.Clean(line)
}

// Addressees are those that a letter goes to, as one word.
func Addressees(l *store.Letter) string {
	var all []string
	for _, r := range l.To {
		all = append(all, r.Address)
	}
	return strings.Join(all, ",")
}

// LetterText shows a letter to people: what became of it, and its text.
func LetterText(w io.Writer, l *store.Letter) error {
	c := card{width: 10}
	c.line("letter", fmt.Sprint(l.ID))
	c.line("state", string(l.State))
	c.line("reason", l.Reason)
	if l.Task != 0 {
		c.line("job", fmt.Sprint(l.Task))
	}
	c.at("created", l.Created)
	if l.Attempts > 0 {
		c.line("attempts", fmt.Sprint(l.Attempts))
	}
	c.at("last", l.Started)
	if l.State == store.LetterQueued {
		c.at("next", l.Next)
	}
	c.at("ended", l.Ended)
	for _, r := range l.To {
		what := r.Address
		if r.State != "" {
			what += ": " + r.State
		}
		if r.Reply != "" {
			what += ": " + r.Reply
		}
		c.line("recipient", what)
	}
	c.WriteByte('\n')
	m, err := mbox.ParseMessage(l.Body, "")
	if err != nil {
		return fmt.Errorf("letter %d: read what is to be sent: %w", l.ID, err)
	}
	for _, name := range []string{"From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To"} {
		if v := m.Header(name); v != "" {
			fmt.Fprintf(&c, "%s: %s\n", name, plain.Clean(v))
		}
	}
	c.WriteByte('\n')
	for text := range strings.Lines(m.Text()) {
		c.WriteString(plain.Clean(strings.TrimRight(text, "\r\n")) + "\n")
	}
	_, err = io.WriteString(w, c.String())
	return err
}
