package reply

import (
	"context"

	"patchbench/mbox"
	"patchbench/store"
)

// answered says that a letter answers what has an answer that is none of this
// outbox, and sets its state: what another bot under this address said is not said
// again unless somebody approves it, and what this bot said before its record was
// lost is sent.
func (s *Sender) answered(ctx context.Context, l *store.Letter) (bool, error) {
	m, err := mbox.ParseHeader(l.Body)
	if err != nil || len(m.InReplyTo) == 0 || l.Approved {
		return false, nil
	}
	by, err := s.st.Answered(ctx, m.InReplyTo[0])
	switch {
	case err != nil || by == "":
		return false, err
	case by == l.MessageID:
		markSent(l, "came in through the list")
		l.Reason = "it came in through the list already and was not sent again"
	default:
		l.State, l.Reason = store.LetterHeld, "another bot has answered under this address, by <"+by+">: drop it, or approve it"
	}
	return true, nil
}
