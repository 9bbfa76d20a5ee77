package imap

import (
	"errors"
	"fmt"
	"io"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"patchbench/mbox"
	"patchbench/mbox/source/feed"
)

// mail is what the server gave of one mail.
type mail struct {
	received time.Time
	size     int64 // as the server says, or as it sent if that is more
	raw      []byte
}

// answer is what the server gave of several.
type answer struct {
	mails   map[goimap.UID]*mail
	refused map[goimap.UID]bool // there, but not given
	bytes   int64               // of all raw
}

// errFull says that the mails are larger than the server said beforehand. What
// came is in the answer; the connection is given up, as the rest is on its way.
var errFull = fmt.Errorf("%w: mails are larger than the server said", errLost)

// single is how many mails that were not given with others are asked for alone.
const single = 20

// fetch gets what options say of some mails, ascending. Mails that are no longer
// there are missing from the answer. With an error the answer holds what came
// before it.
//
// A server may leave a mail out though it is there: because one before it cannot
// be read, because another program has expunged something (NO), or because its
// answer was taken for that to a change of flags. So what is missing is asked for
// again, at last alone.
func (c *conn) fetch(uids []goimap.UID, options *goimap.FetchOptions, limit int64) (*answer, error) {
	a := &answer{mails: map[goimap.UID]*mail{}, refused: map[goimap.UID]bool{}}
	if err := c.ask(a, uids, options, limit); err != nil {
		return a, err
	}
	missing := a.missing(uids)
	if len(missing) == 0 {
		return a, nil
	}
	there, err := c.search(&goimap.SearchCriteria{UID: []goimap.UIDSet{goimap.UIDSetNum(missing...)}})
	if err != nil {
		return a, err
	}
	var asked goimap.UIDSet
	for _, uid := range missing {
		if there.Contains(uid) {
			asked.AddNum(uid)
		}
	}
	if missing = first(asked, 1, len(missing)); len(missing) == 0 {
		return a, nil
	}
	if err := c.ask(a, missing, options, limit); err != nil {
		return a, err
	}
	for i, uid := range a.missing(missing) {
		if i < single {
			if err := c.ask(a, []goimap.UID{uid}, options, limit); err != nil {
				return a, err
			}
		}
		if a.mails[uid] == nil {
			a.refused[uid] = true
		}
	}
	return a, nil
}

func (a *answer) missing(uids []goimap.UID) []goimap.UID {
	var list []goimap.UID
	for _, uid := range uids {
		if a.mails[uid] == nil {
			list = append(list, uid)
		}
	}
	return list
}

// ask sends one FETCH. A refusal (NO, BAD) is no error: what is missing says it.
func (c *conn) ask(a *answer, uids []goimap.UID, options *goimap.FetchOptions, limit int64) error {
	c.link.expect(fetchAnswer)
	cmd := c.Fetch(goimap.UIDSetNum(uids...), options)
	for {
		msg := cmd.Next()
		if msg == nil {
			break
		}
		if err := a.read(msg, len(options.BodySection) > 0, limit, c.link.Conn); err != nil {
			return err // and no cmd.Close: it would read on in the literal
		}
	}
	err := cmd.Close()
	var said *goimap.Error
	if err == nil || errors.As(err, &said) {
		return nil
	}
	return c.lost("fetch", err)
}

// read takes one mail in, if all that was asked for is there. After an error the
// connection is of no use.
//
// A literal must be read up to its first error, for which the client waits, and
// never after it: the client goes on reading from the same buffer then.
func (a *answer) read(msg *imapclient.FetchMessageData, body bool, limit int64, conn io.Closer) error {
	giveUp := func(literal io.Reader) error {
		conn.Close()
		io.Copy(io.Discard, literal) // what is in the buffer
		return errFull
	}
	m := &mail{size: -1}
	var uid goimap.UID
	var full bool
	for item := msg.Next(); item != nil; item = msg.Next() {
		switch item := item.(type) {
		case imapclient.FetchItemDataUID:
			uid = item.UID
		case imapclient.FetchItemDataInternalDate:
			m.received = item.Time.UTC()
		case imapclient.FetchItemDataRFC822Size:
			m.size = max(m.size, item.Size)
		case imapclient.FetchItemDataBodySection:
			if item.Literal == nil || m.raw != nil {
				continue
			}
			size := item.Literal.Size()
			if a.bytes > 0 && a.bytes+min(size, mbox.MaxMail) > limit {
				return giveUp(item.Literal)
			}
			n := size
			if size > mbox.MaxMail {
				n, full = feed.CutAt, true
			}
			m.raw = make([]byte, n)
			// A connection cut in a literal gives fewer bytes and no other error.
			if _, err := io.ReadFull(item.Literal, m.raw); err != nil {
				conn.Close()
				return fmt.Errorf("%w: in a mail of %d bytes: %w", errLost, size, err)
			}
			m.size = max(m.size, size)
			a.bytes += n
			if full {
				a.add(uid, m, body)
				return giveUp(item.Literal)
			}
		}
	}
	a.add(uid, m, body)
	return nil
}

func (a *answer) add(uid goimap.UID, m *mail, body bool) {
	if uid != 0 && !m.received.IsZero() && m.size >= 0 && (m.raw != nil) == body {
		a.mails[uid] = m
	}
}
