// Package github answers pull requests: it decides which of them are evaluated,
// brings their commits in, and keeps one comment and one check run at each up to
// date.
//
//	webhook, polling -> hints (in the store) -> what GitHub says now -> store.Decide
//	store.Task -> Prepare -> a repository and the range base..head -> bot/eval
//	store.Evaluation -> Render -> store.Notice -> Deliver
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
// said before the bot saw that it is gone waits too. A later push ends the run of the older head; the new one waits for
// an approval of its own, unless its author is trusted. "/bench stop" and closing
// the pull request end a run.
//
// By polling alone, requests to run a check again are not seen: GitHub tells of
// them by the webhook only.
package github

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"patchbench/bot/github/api"
	"patchbench/config/service"
	"patchbench/store"
)

// Options of a Client. The zero value works.
type Options struct {
	Now       func() time.Time  // nil means time.Now
	Log       *slog.Logger      // nil is silent
	Transport http.RoundTripper // to GitHub; nil means http.DefaultTransport
}

// Client is the bot's part in GitHub. It may be used by several goroutines.
type Client struct {
	cfg func() *service.Config
	st  *store.Store
	o   Options

	mu     sync.Mutex
	access *api.API
	of     credentials      // of access
	shown  map[string]shown // by pull request, what runs there
	// refused is when somebody was last found to have no write access, by
	// repository and login.
	refused map[string]time.Time

	queue queue
	wake  chan struct{}
}

// credentials are what a connection is made with.
type credentials struct {
	app        int64
	key, token service.Secret
	base       string
}

func credentialsOf(g *service.GitHub) credentials {
	return credentials{g.AppID, g.Key, g.Token, g.BaseURL}
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
	c := &Client{cfg: cfg, st: st, o: o, wake: make(chan struct{}, 1), shown: map[string]shown{}, refused: map[string]time.Time{}}
	c.queue.st = st
	if _, _, err := c.api(); err != nil {
		return nil, err
	}
	return c, nil
}

// errOff says that GitHub is no part of the service any more.
var errOff = errors.New("github: not in the service's file")

// api gives the access of now.
func (c *Client) api() (*api.API, *service.GitHub, error) {
	g := c.cfg().GitHub
	if g == nil {
		return nil, nil, errOff
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.access == nil || c.of != credentialsOf(g) {
		a, err := api.New(*g, api.Options{Now: c.o.Now, Transport: c.o.Transport})
		if err != nil {
			return nil, nil, err
		}
		c.access, c.of = a, credentialsOf(g)
	}
	return c.access, g, nil
}

// forget drops what is known of a repository after GitHub knew neither it nor us:
// the App may have been installed anew, or its token withdrawn.
func (c *Client) forget(repo string, fault api.Fault) {
	if fault != api.Missing && fault != api.Denied {
		return
	}
	if a, _, err := c.api(); err == nil {
		a.Forget(repo)
	}
}

// repository finds a repository of the service's file, under the name that it
// has there.
func repository(g *service.GitHub, repo string) (name string, r service.Repository, ok bool) {
	for name, r := range g.Repositories {
		if strings.EqualFold(name, repo) {
			return name, r, true
		}
	}
	return "", r, false
}

// ref names a pull request, as it stands in tasks.
func ref(repo string, number int) string { return fmt.Sprintf("%s#%d", repo, number) }

// Run works off what the webhook took in and, if the service's file says so,
// asks GitHub itself what is new. It ends with ctx.
func (c *Client) Run(ctx context.Context) error {
	if err := c.queue.load(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var polled time.Time
	for {
		if g := c.cfg().GitHub; g != nil {
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
