// Package github answers pull requests: it decides which of them are evaluated,
// brings their commits in, and keeps one comment and one check run at each up to
// date.
//
//	webhook, polling -> intake -> hint (kept in the store)
//	hint -> what GitHub says now -> store.Decide
//	store.Task -> fetch, mirror -> a repository and the range base..head -> bot/eval
//	store.Evaluation -> notice, comment -> store.Notice -> notice -> GitHub
//
// This package decides; the ones below it are its parts, and api is their way to
// GitHub.
//
// What comes in is a hint and no more: that something happened at a pull
// request. What is done follows from what GitHub's API says of it when the hint
// is worked off, so hints may come twice, late, or in any order. They are kept
// in the store until then; the webhook itself asks nobody.
//
// A commit is evaluated when somebody who may approve has approved exactly it:
//
//   - its author is trusted in the service's file, and so is the owner of the
//     fork that it comes from, where everybody may push who that owner lets;
//   - the repository's label was put on the pull request, by whoever may do that;
//   - somebody with write access wrote a line "/bench", with or without names of
//     benchmarks, or asked for the check run once more.
//
// A label or a command counts for the commit that was the head at that time. For
// forks this is known by the time of their last push, by GitHub's clock: when it
// is not before the label or command, the head may be one that nobody has seen,
// and waits. Once a fork is deleted GitHub does not tell any more; then what was
// said before the bot saw that it is gone waits too.
//
// A later push ends the run of the older head, and another base branch that
// against the older base; the new one waits for an approval of its own, unless the
// author is trusted. "/bench stop" and closing the pull request end a run.
//
// By polling alone, requests to run a check again are not seen: GitHub tells of
// them by the webhook only.
package github

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"patchbench/bot/github/api"
	"patchbench/bot/github/fetch"
	"patchbench/bot/github/hint"
	"patchbench/bot/github/intake"
	"patchbench/bot/github/notice"
	"patchbench/config/service"
	"patchbench/store"
)

// Errors of Prepare that can be tested for.
var (
	ErrPull  = fetch.ErrPull
	ErrMoved = fetch.ErrMoved
)

// Options of a Client. The zero value works.
type Options struct {
	Now       func() time.Time  // nil means time.Now
	Log       *slog.Logger      // nil is silent
	Transport http.RoundTripper // to GitHub; nil means http.DefaultTransport
}

// Client is the bot's part in GitHub. It may be used by several goroutines.
type Client struct {
	*intake.Intake // Webhook, Poll
	*fetch.Fetcher // Prepare
	*notice.Board  // Running, Failed, Render, Deliver

	access *api.Access
	st     *store.Store
	o      Options
	queue  *hint.Queue
	wake   chan struct{}

	mu sync.Mutex
	// refused is when somebody was last found to have no write access, by
	// repository and login.
	refused map[string]time.Time
}

// New makes a client; nothing is sent. cfg gives the service's file as it is
// now, whose GitHub must not be nil: a changed access or repository counts at
// once.
func New(cfg func() *service.Config, st *store.Store, o Options) (*Client, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	access, err := api.NewAccess(cfg, api.Options{Now: o.Now, Transport: o.Transport})
	if err != nil {
		return nil, err
	}
	c := &Client{
		access: access, st: st, o: o, queue: hint.NewQueue(st), wake: make(chan struct{}, 1), refused: map[string]time.Time{},
		Fetcher: fetch.New(access), Board: notice.New(access, st, o.Now),
	}
	c.Intake = intake.New(access, st, c.queue, intake.Options{Log: o.Log, Woken: func() {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}})
	return c, nil
}

// Run works off what the webhook took in and, if the service's file says so,
// asks GitHub itself what is new. It ends with ctx.
func (c *Client) Run(ctx context.Context) error {
	if err := c.queue.Load(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var polled time.Time
	for {
		if g := c.access.Config().GitHub; g != nil {
			if now := c.o.Now(); g.Poll > 0 && now.Sub(polled) >= g.Poll {
				polled = now
				c.Poll(ctx)
			}
			if err := c.WorkOff(ctx); err != nil && ctx.Err() == nil {
				c.o.Log.Error("github: the hints cannot be kept", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-c.wake:
		}
	}
}

// How often a hint is tried when GitHub cannot tell, and the longest pause
// between.
const (
	maxAttempts  = 40
	longestPause = 30 * time.Minute
)

// WorkOff does what the waiting hints ask for, in their order for each pull
// request. What GitHub refuses is tried again later; an error is one of the store.
func (c *Client) WorkOff(ctx context.Context) error {
	if err := c.queue.Load(ctx); err != nil {
		return err
	}
	blocked := map[string]bool{} // an earlier hint for it waits
	for _, h := range c.queue.Waiting() {
		at := api.Ref(h.Repo, h.Number)
		if blocked[at] {
			continue
		}
		if h.Next.After(c.o.Now()) {
			blocked[at] = true
			continue
		}
		c.queue.Begin(h)
		err := c.handle(ctx, h)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		log := c.o.Log.With("pull", at, "hint", string(h.Kind))
		fault, until := api.FaultOf(err)
		h.Attempts++
		give := maxAttempts
		switch fault {
		case api.None:
			give = 0
		case api.Limited:
			h.Attempts--
			h.Next = until
		case api.Missing, api.Refused:
			give = api.TriesMissing
		}
		c.access.Forget(h.Repo, fault)
		if fault != api.None && fault != api.Limited {
			h.Next = c.o.Now().Add(api.Pause(h.Attempts, longestPause))
		}
		again := err != nil && h.Attempts < give
		if err != nil {
			log.Warn("github: event not worked off", "error", err, "attempt", h.Attempts, "again", again)
		}
		if err := c.queue.Settle(ctx, h, again); err != nil {
			return err
		}
		if again {
			blocked[at] = true
		}
		if fault == api.Limited {
			return nil // for every other as well
		}
	}
	return nil
}
