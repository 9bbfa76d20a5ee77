package imap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	goimap "github.com/emersion/go-imap/v2"
)

// cursor is where to go on in a folder.
type cursor struct {
	Validity uint32     `json:"uidvalidity"`
	Next     goimap.UID `json:"next"` // the lowest UID that was not given
	// Newest is the latest INTERNALDATE that was given, and no later than now.
	Newest time.Time `json:"newest,omitzero"`
	// Old is the latest INTERNALDATE that was in the folder at the first start:
	// mails of that time or before it are not given when UIDs mean nothing.
	Old time.Time `json:"old,omitzero"`
	// Until is set while a folder that was numbered anew is gone through: of the
	// UIDs below it only mails received since Since are given.
	Until goimap.UID `json:"until,omitempty"`
	Since time.Time  `json:"since,omitzero"`
	// Aside are mails that the server did not give, ascending.
	Aside []Aside `json:"aside,omitempty"`
}

// overlap is how much before the newest known mail a folder that was numbered
// anew is searched. SEARCH SINCE knows days only, in the server's time zone.
const overlap = 48 * time.Hour

func parseCursor(s string) (cursor, error) {
	var c cursor
	if s == "" {
		return c, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if err == nil {
		if _, tail := d.Token(); tail != io.EOF {
			err = errors.New("text behind it")
		}
	}
	if err == nil && (c.Validity == 0 || c.Next == 0) {
		err = errors.New("uidvalidity or next is missing")
	}
	if err != nil {
		return cursor{}, fmt.Errorf("cursor %q is none of an IMAP folder: %w", s, err)
	}
	return c, nil
}

func (c cursor) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers and times that were read as such
	}
	return string(b)
}

// saw takes note of a mail's date. A date in the future would hide mails when the
// folder is numbered anew.
func (c *cursor) saw(received, now time.Time) {
	if received.After(now) {
		received = now
	}
	if received.After(c.Newest) {
		c.Newest = received.UTC().Truncate(time.Second)
	}
}

// renumbered makes c the cursor of a folder whose UIDs mean nothing any more.
func (c *cursor) renumbered(validity uint32, next goimap.UID) {
	since := c.Newest
	if c.Old.After(since) {
		since = c.Old
	}
	if !since.IsZero() {
		since = since.Add(-overlap)
	}
	*c = cursor{Validity: validity, Next: 1, Newest: c.Newest, Old: c.Old, Until: next, Since: since}
}
