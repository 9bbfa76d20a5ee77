package github

import (
	"context"
	"testing"
	"time"
)

// Run does what the webhook took in before it and meanwhile, polls, and ends
// with its context.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.heard = make(chan struct{}, 10)
	open := func(name string) any { return w.repo.Open("friend", name, w.line(name, 1)).Changed("opened") }
	if status := w.post("pull_request", "before", open("a")); status != 202 {
		t.Fatal(status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.c.Run(ctx) }()
	<-w.heard
	if status := w.post("pull_request", "meanwhile", open("b")); status != 202 {
		t.Fatal(status)
	}
	<-w.heard
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.wantStates("queued queued")

	w.cfg.GitHub.Poll = time.Minute
	w.restart()
	w.c.Poll(t.Context()) // begins here
	w.hub.Advance(10 * time.Minute)
	open("c")
	ctx, cancel = context.WithCancel(t.Context())
	go func() { ended <- w.c.Run(ctx) }()
	<-w.heard
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.wantStates("queued queued queued")
}
