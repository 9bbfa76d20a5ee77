package intake

import (
	"fmt"
	"testing"
	"time"

	"patchbench/bot/github/hint"
)

// More than a page of pull requests and comments since the last poll.
func TestPollPages(t *testing.T) {
	w := newWorld(t)
	w.in.Poll(t.Context())
	p := w.repo.Open("author", "first", w.repo.Git.Line("a", 1))
	p.Say("maintainer", "/bench")
	for i := range 130 {
		w.repo.Open("friend", "more", w.repo.Git.Line("a", 1)).Say("author", fmt.Sprint("text ", i))
	}
	w.in.Poll(t.Context())
	hints := w.queue.Waiting()
	count := map[hint.Kind]int{}
	for _, h := range hints {
		count[h.Kind]++
	}
	if count[hint.Changed] != 131 || count[hint.Commanded] != 1 {
		t.Errorf("hints %v, want 131 changed and 1 command", count)
	}
}

// More changed at once than is worked off in one go, as when a robot closes old
// pull requests: nothing is lost, and polling does not stand still.
func TestPollMuch(t *testing.T) {
	w := newWorld(t)
	w.in.Poll(t.Context())
	head := w.repo.Git.Line("a", 1)
	for range 2*maxPolled + 300 {
		w.hub.Advance(time.Second)
		w.repo.Open("author", "more", head)
	}
	seen := map[int]bool{}
	for n := range 4 {
		w.in.Poll(t.Context())
		got := w.queue.Waiting()
		if len(got) == 0 || len(got) > maxPolled {
			t.Fatalf("poll %d: %d hints, want 1 to %d", n, len(got), maxPolled)
		}
		for _, h := range got {
			seen[h.Number] = true
			if err := w.queue.Settle(t.Context(), h, false); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) == 2*maxPolled+300 {
			return
		}
	}
	t.Errorf("%d pull requests were seen, want %d", len(seen), 2*maxPolled+300)
}
