package service

import (
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Secret is text that no log, page or message may show: whatever prints it, also
// as a part of something else, prints (secret) or, for "", nothing. The text
// itself is string(s).
type Secret string

const hidden = "(secret)"

// String gives (secret), or "" if there is none.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format does the same for every verb, %x, %d and %#v too.
func (s Secret) Format(f fmt.State, verb rune) {
	if verb == 'q' || f.Flag('#') {
		fmt.Fprintf(f, "%q", s.String())
		return
	}
	fmt.Fprint(f, s.String())
}

// MarshalText does the same for JSON and TOML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue does the same for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Kept is an error of a login as user, without the secret in its text: some servers
// repeat what they did not understand. It wraps err.
func (s Secret) Kept(err error, user string) error {
	if err == nil || s == "" {
		return err
	}
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	text := strings.NewReplacer( // as it is, and as SASL's PLAIN and LOGIN have it
		string(s), hidden, encoded("\x00"+user+"\x00"+string(s)), hidden, encoded(string(s)), hidden,
	).Replace(err.Error())
	if text == err.Error() {
		return err
	}
	return &keptError{text, err}
}

type keptError struct {
	text string
	err  error
}

func (e *keptError) Error() string { return e.text }
func (e *keptError) Unwrap() error { return e.err }

// What holds a secret formats itself for every verb: where fmt meets a verb that
// a part cannot have, as %s for a pointer, it shows what lies behind it and asks
// no method.

// String gives the URL without the password.
func (s Store) String() string {
	if strings.HasPrefix(string(s.URL), sqlite) {
		return string(s.URL)
	}
	u, err := url.Parse(string(s.URL))
	if err != nil {
		return s.URL.String()
	}
	// The query may hold a password too, and paths of key files.
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if name := u.User.Username(); name != "" {
		shown.User = url.User(name)
	}
	return shown.String()
}

// sqlite begins the URL of a store that is a file.
const sqlite = "sqlite:"

// String gives the mailbox without the password: imap:USER@HOST:PORT/FOLDER.
func (m IMAP) String() string { return "imap:" + m.User + "@" + m.Address + "/" + m.Folder }

// String gives the server and the bot's address.
func (m SMTP) String() string { return "smtp:" + m.Address + " from " + m.From.Email }

// String gives what is served.
func (g GitHub) String() string {
	return "github:" + strings.Join(slices.Sorted(maps.Keys(g.Repositories)), ",")
}

// String gives the service in one line, for a log: what is served and where from,
// and nothing secret.
func (c Config) String() string {
	parts := []string{c.File, "store " + c.Store.String()}
	for _, p := range c.Projects {
		parts = append(parts, "project "+p.Name)
	}
	if c.IMAP != nil {
		parts = append(parts, c.IMAP.String())
	}
	if c.Maildir != nil {
		parts = append(parts, "maildir:"+c.Maildir.Path)
	}
	for _, m := range c.Inboxes {
		parts = append(parts, "inbox:"+m.Path)
	}
	for _, l := range c.Lists {
		parts = append(parts, "list "+l.Address+" ("+l.Mode+")")
	}
	if c.SMTP != nil {
		parts = append(parts, c.SMTP.String())
	}
	if c.GitHub != nil {
		parts = append(parts, c.GitHub.String())
	}
	if w := c.Web; w != nil && w.Listen != "" {
		parts = append(parts, "web "+w.Listen)
	}
	return strings.Join(parts, ", ")
}

// Format gives String for every verb.
func (s Store) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue gives String to slog.
func (s Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format gives String for every verb.
func (m IMAP) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// LogValue gives String to slog.
func (m IMAP) LogValue() slog.Value { return slog.StringValue(m.String()) }

// Format gives String for every verb.
func (m SMTP) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// LogValue gives String to slog.
func (m SMTP) LogValue() slog.Value { return slog.StringValue(m.String()) }

// Format gives String for every verb.
func (g GitHub) Format(f fmt.State, _ rune) { fmt.Fprint(f, g.String()) }

// LogValue gives String to slog.
func (g GitHub) LogValue() slog.Value { return slog.StringValue(g.String()) }

// Format gives String for every verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue gives String to slog.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
