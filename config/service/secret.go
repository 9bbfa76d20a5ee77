package service

import (
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

// GoString does the same for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format does the same for every other verb, %x and %d too.
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

// LogValue gives the same to slog.
func (s Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// sqlite begins the URL of a store that is a file.
const sqlite = "sqlite:"

// String gives the service in one line, for a log: what is served and where from,
// and nothing secret.
func (c *Config) String() string {
	parts := []string{c.File, "store " + c.Store.String()}
	for _, p := range c.Projects {
		parts = append(parts, "project "+p.Name)
	}
	if m := c.IMAP; m != nil {
		parts = append(parts, "imap "+m.User+" at "+m.Address+" "+m.Folder)
	}
	if m := c.Maildir; m != nil {
		parts = append(parts, "maildir "+m.Path)
	}
	for _, m := range c.Inboxes {
		parts = append(parts, "inbox "+m.Path)
	}
	for _, l := range c.Lists {
		parts = append(parts, "list "+l.Address+" ("+l.Mode+")")
	}
	if m := c.SMTP; m != nil {
		parts = append(parts, "smtp "+m.Address+" from "+m.From.Email)
	}
	if g := c.GitHub; g != nil {
		parts = append(parts, "github "+strings.Join(slices.Sorted(maps.Keys(g.Repositories)), " "))
	}
	if w := c.Web; w != nil && w.Listen != "" {
		parts = append(parts, "web "+w.Listen)
	}
	return strings.Join(parts, ", ")
}

// LogValue gives the same to slog.
func (c *Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
