package github

import (
	"net/http"
	"testing"

	"patchbench/bot/github/githubtest"
)

// A replay is taken and does nothing, also after the first was worked off and
// in another process.
func TestWebhookReplay(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	event := func() *http.Request {
		return githubtest.Event("http://bot.example/", secret, "pull_request", "d-1", p.Changed("opened"))
	}
	for i := range 3 {
		if got := w.send(event()); got != http.StatusAccepted {
			t.Errorf("status %d at try %d", got, i)
		}
	}
	if n := len(w.c.queue.Waiting()); n != 1 {
		t.Errorf("%d hints of one delivery, want 1", n)
	}
	w.settle()
	w.restart()
	w.hub.Requests()
	if got := w.send(event()); got != http.StatusAccepted {
		t.Errorf("status %d of a replay", got)
	}
	w.settle()
	if got := w.hub.Requests(); len(got) > 0 {
		t.Errorf("a replay asks the API: %q", got)
	}
	// The same under another id does no harm either.
	if got := w.post("pull_request", "d-2", p.Changed("opened")); got != http.StatusAccepted {
		t.Errorf("status %d", got)
	}
	w.settle()
	w.wantStates("queued")
}

// What was taken in is not lost with the process.
func TestWebhookRestart(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	if got := w.post("pull_request", "d-1", p.Changed("opened")); got != http.StatusAccepted {
		t.Fatalf("status %d", got)
	}
	w.restart()
	w.settle()
	w.wantStates("queued")
	w.says(p, "**Queued.**")
}
