// Package operator shows a service's jobs and letters to who runs it: a line of a list,
// everything that is known of one, JSON for scripts, and the mail behind it. In go values
// of store; nothing is changed here.
package operator

import (
	"fmt"
	"strings"
	"time"

	"patchbench/bot/report/plain"
)

// card is a text of names and values.
type card struct {
	strings.Builder
	width int // of the names
}

// line adds a value if there is one.
func (c *card) line(name, value string) {
	if value != "" {
		fmt.Fprintf(c, "%-*s %s\n", c.width, name, plain.Clean(value))
	}
}

func (c *card) at(name string, t time.Time) {
	if !t.IsZero() {
		c.line(name, t.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

// utc is a time for JSON, nil for none.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
