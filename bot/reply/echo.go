package reply

import (
	"context"
	"slices"
	"strings"
	"time"

	"patchbench/store"
)

// echoes are letters that went to a list and should come back through it.
type echoes struct {
	waiting []echo
	next    time.Time // look
}

type echo struct {
	messageID, channel string
	until              time.Time
}

// The most echoes that are waited for; one for each list is enough.
const mostEchoes = 20

// seen is the name under which the store keeps that a list gives us our own mail.
func seen(channel string) string { return "reply.seen:" + strings.ToLower(channel) }

// comesBack says whether a list is known to give us our own mail.
func (s *Sender) comesBack(ctx context.Context, channel string) (bool, error) {
	v, err := s.st.Value(ctx, seen(channel))
	return v != "", err
}

// expect waits for a letter to come back, if it went to its list.
func (s *Sender) expect(l *store.Letter) {
	toList := func(r store.Recipient) bool { return gotIt(r) && strings.EqualFold(r.Address, l.Channel) }
	if len(s.o.Find) == 0 || len(s.echoes.waiting) >= mostEchoes || !slices.ContainsFunc(l.To, toList) {
		return
	}
	s.echoes.waiting = append(s.echoes.waiting, echo{l.MessageID, l.Channel, s.o.Now().Add(time.Hour)})
}

// listen looks each minute whether something has come back.
func (s *Sender) listen(ctx context.Context) error {
	now := s.o.Now()
	if len(s.echoes.waiting) == 0 || now.Before(s.echoes.next) {
		return nil
	}
	s.echoes.next = now.Add(time.Minute)
	var left []echo
	for _, e := range s.echoes.waiting {
		known, err := s.comesBack(ctx, e.channel)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if found, _ := s.look(ctx, e.messageID); found {
			if err := s.st.SetValue(ctx, seen(e.channel), now.UTC().Format(time.RFC3339)); err != nil {
				return err
			}
		} else if now.Before(e.until) {
			left = append(left, e)
		}
	}
	s.echoes.waiting = left
	return nil
}
