package intake

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"patchbench/bot/github/api"
	"patchbench/bot/github/comment"
	"patchbench/bot/github/hint"
	"patchbench/config/service"
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

// A repository's first poll begins by GitHub's clock, whatever ours says.
func TestPollBegins(t *testing.T) {
	w := newWorld(t)
	access, err := api.NewAccess(func() *service.Config { return w.cfg }, api.Options{
		Now: func() time.Time { return w.hub.Now().Add(24 * time.Hour) }, // ours is a day ahead
	})
	if err != nil {
		t.Fatal(err)
	}
	w.in = New(access, w.st, w.queue, Options{Log: slog.New(slog.DiscardHandler)})
	w.in.Poll(t.Context())
	w.hub.Advance(time.Second)
	w.repo.Open("friend", "title", w.repo.Git.Line("a", 1)).Say("maintainer", "/bench")
	w.in.Poll(t.Context())
	if got := w.queue.Waiting(); len(got) != 2 {
		t.Errorf("%d hints, want that of the pull request and of the command: %+v", len(got), got)
	}
}

// More comments than a page of one second: those behind them are seen, though the
// first page stays as it is.
func TestPollFullPage(t *testing.T) {
	w := newWorld(t)
	w.in.Poll(t.Context())
	p := w.repo.Open("author", "title", w.repo.Git.Line("a", 1))
	for i := range 150 {
		p.Say("author", fmt.Sprint("text ", i))
		w.hub.Advance(-time.Second)
	}
	w.in.Poll(t.Context())
	w.in.Poll(t.Context())
	w.hub.Advance(time.Minute)
	p.Say("maintainer", "/bench")
	w.in.Poll(t.Context())
	for _, h := range w.queue.Waiting() {
		if h.Kind == hint.Commanded {
			return
		}
	}
	t.Errorf("the command was not seen: %+v", w.queue.Waiting())
}

// Commands are those of persons, as they were written, at pull requests that are
// ours to answer; our own comments hold the text of others.
func TestCommentHint(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name              string
		number            int
		id                int64
		body, login, kind string
		at                time.Time
		want              bool
	}{
		{"a command", 1, 2, "/bench", "maintainer", "User", at, true},
		{"of a robot", 1, 2, "/bench", "helper[bot]", "Bot", at, false},
		{"of a robot by its kind", 1, 2, "/bench", "helper", "Bot", at, false},
		{"of our own with a token", 1, 2, comment.Marker + "\ntext\n/bench stop\n", "bench-bot", "User", at, false},
		{"no number", 0, 2, "/bench", "maintainer", "User", at, false},
		{"no id", 1, 0, "/bench", "maintainer", "User", at, false},
		{"no time", 1, 2, "/bench", "maintainer", "User", time.Time{}, false},
		{"a login that steers", 1, 2, "/bench", "../../user", "User", at, false},
		{"a login that looks like another", 1, 2, "/bench", "m\u0430intainer", "User", at, false},
	} {
		if got := commentHint("kit/kit", c.number, c.id, c.body, c.login, c.kind, c.at); (len(got) == 1) != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
