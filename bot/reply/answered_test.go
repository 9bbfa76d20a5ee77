package reply

import (
	"strings"
	"testing"
	"time"

	"patchbench/config/service"
	"patchbench/store"
)

// TestAnswered: what another bot under the same address has answered is held, what
// this one has is not sent again, and what somebody approves leaves all the same.
func TestAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		by, of  string // who has answered, and what
		approve bool
		want    store.LetterState
		reason  string // in it
		copies  int
	}{
		"by nobody":            {want: store.LetterSent, copies: 1},
		"by another":           {by: "patchbench.9@example.org", of: "cover@example.org", want: store.LetterHeld, reason: "another bot has answered under this address, by <patchbench.9@example.org>"},
		"another mail":         {by: "patchbench.9@example.org", of: "other@example.org", want: store.LetterSent, copies: 1},
		"by this one":          {by: "patchbench.1@example.org", of: "cover@example.org", want: store.LetterSent, reason: "was not sent again"},
		"by another, approved": {by: "patchbench.9@example.org", of: "cover@example.org", approve: true, want: store.LetterSent, copies: 1},
	} {
		t.Run(name, func(t *testing.T) {
			st, at := newStore(t), newClock()
			srv := serve(t, nil, faults{})
			cfg := plainServer(srv)
			if c.by != "" {
				if err := st.SetAnswered(t.Context(), c.of, c.by); err != nil {
					t.Fatal(err)
				}
			}
			l := letter(1, at.now(), author, list)
			l.Body = []byte(strings.Replace(string(l.Body), "Message-ID:", "In-Reply-To: <cover@example.org>\r\nMessage-ID:", 1))
			id := put(t, st, l)
			s := New(st, func() *service.Config { return cfg }, Options{Now: at.now})
			got := drive(t, s, at, id, 1)
			if c.approve {
				if err := st.MoveLetter(t.Context(), id, []store.LetterState{store.LetterHeld}, store.LetterQueued, "approved by hand"); err != nil {
					t.Fatal(err)
				}
				at.pass(time.Minute)
				got = drive(t, s, at, id, 1)
			}
			if got.State != c.want || !strings.Contains(got.Reason, c.reason) || srv.got(list) != c.copies || srv.got(author) != c.copies {
				t.Errorf("%s: %s; %d copies to the list, %d to the author", got.State, got.Reason, srv.got(list), srv.got(author))
			}
		})
	}
}
