package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/github"
	"patchbench/bot/input"
	"patchbench/bot/part"
	"patchbench/bot/reply"
	"patchbench/bot/watch"
	"patchbench/bot/web"
	"patchbench/bot/work"
	"patchbench/config/service"
	"patchbench/mbox/source/feed"
	"patchbench/mbox/source/imap"
	"patchbench/mbox/source/inbox"
	"patchbench/mbox/source/maildir"
	"patchbench/store"
)

// serving is a running service, or a worker of one.
type serving struct {
	file   string
	whole  bool // all parts, not the worker alone
	worker bool
	env    func(string) string
	log    *slog.Logger
	hangUp <-chan os.Signal
	// evaluate takes the place of eval.Run in tests, which then need no sandbox.
	evaluate func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error)

	cfg    atomic.Pointer[service.Config]
	st     *store.Store
	secret []byte
	github *github.Client
	watch  *watch.Watcher
	group  part.Group
}

// grace is how long parts may take to end.
const grace = 28 * time.Second

// run starts all parts and keeps them going until ctx ends.
func (s *serving) run(ctx context.Context) error {
	c, err := service.Load(s.file, s.env)
	if err != nil {
		return usage(err)
	}
	s.cfg.Store(c)
	end, err := s.open(ctx, c)
	if err != nil {
		return err
	}
	defer end()
	parts, err := s.parts(c)
	if err != nil {
		return usage(err)
	}
	s.group.Log = s.log
	s.group.Set(ctx, parts, nil)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.hangUp:
			if err := s.reload(ctx); err != nil {
				s.log.Error("the service file is not taken over; all goes on as before", "file", s.file, "err", err)
			} else {
				s.log.Info("the service file was read again", "file", s.file)
			}
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return s.group.Stop(ending)
}

// open prepares what all parts stand on: the state folder, the sandbox, the record,
// the secret.
func (s *serving) open(ctx context.Context, c *service.Config) (end func(), err error) {
	var ends []func()
	end = func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // for the way of other uids to the work folders
	}
	if err := os.MkdirAll(c.State, mode); err != nil {
		return end, usage(fmt.Errorf("state: %w; make the folder, or name another one", err))
	}
	if s.whole {
		unlock, err := lockState(c.State)
		if err != nil {
			return end, err
		}
		ends = append(ends, unlock)
	}
	if s.worker && s.evaluate == nil {
		if err := trySandbox(ctx, c); err != nil {
			return end, err
		}
	}
	if file, ok := sqliteFile(string(c.Store.URL)); ok {
		if err := keepPrivate(file); err != nil {
			return end, err
		}
	}
	if s.st, err = store.Open(ctx, string(c.Store.URL)); err != nil {
		return end, err
	}
	ends = append(ends, func() { s.st.Close() })
	s.secret, err = s.readSecret(ctx)
	return end, err
}

// keepPrivate makes the record's file, if it is not there, such that only its owner
// can read it: it holds what letters are signed with. SQLite gives the files beside
// it the same mode.
func keepPrivate(file string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err != nil {
		return usage(fmt.Errorf("[store] url: %w", err))
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return usage(fmt.Errorf("[store] url: %w", err))
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// trySandbox refuses to start where the code of strangers would not be held.
func trySandbox(ctx context.Context, c *service.Config) error {
	box, err := sandbox.Open(ctx, work.Sandbox(c.Worker, 0))
	switch {
	case errors.Is(err, sandbox.ErrNone):
		return &failure{statusUnsafe, err}
	case err != nil:
		return stageError(err)
	}
	return box.Close()
}

// secretName is where the store keeps what letters are signed with.
const secretName = "secret"

// readSecret reads the secret, which the service makes when it starts first.
func (s *serving) readSecret(ctx context.Context) ([]byte, error) {
	text, err := s.st.Value(ctx, secretName)
	if err != nil {
		return nil, err
	}
	if text == "" && !s.whole {
		return nil, errors.New("this record has never been served: start bot watch on it first")
	}
	if text == "" {
		b := make([]byte, 32)
		rand.Read(b)
		text = hex.EncodeToString(b)
		if err := s.st.SetValue(ctx, secretName, text); err != nil {
			return nil, err
		}
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 16 {
		return nil, fmt.Errorf("store: the value %q, with which letters are signed, is damaged: restore it from a copy of the record", secretName)
	}
	return secret, nil
}

// reload takes over the service file as it is now, or leaves all as it was.
func (s *serving) reload(ctx context.Context) error {
	old := s.cfg.Load()
	c, err := service.Load(s.file, s.env)
	if err != nil {
		return err
	}
	if c.State != old.State || c.Store.URL != old.Store.URL {
		return errors.New("state and [store] url cannot change while the service runs: start it anew")
	}
	parts, err := s.parts(c)
	if err != nil {
		return err
	}
	s.group.Set(ctx, parts, func() { s.cfg.Store(c) })
	return nil
}

// parts are what runs by this configuration. Settings of a part are what it was
// made from; all else it reads anew from the configuration that holds.
func (s *serving) parts(c *service.Config) ([]part.Part, error) {
	var parts []part.Part
	add := func(name string, settings any, run func(context.Context, func(error)) error) {
		parts = append(parts, part.Part{Name: name, Settings: settings, Run: run})
	}
	quiet := func(run func(context.Context) error) func(context.Context, func(error)) error {
		return func(ctx context.Context, _ func(error)) error { return run(ctx) }
	}
	if c.GitHub != nil {
		if err := s.openGitHub(c); err != nil {
			return nil, err
		}
	}
	if s.whole {
		feeds, finders, err := feedsOf(c)
		if err != nil {
			return nil, err
		}
		for _, f := range feeds {
			add(f.Name(), f.settings, func(ctx context.Context, trouble func(error)) error {
				return watch.TakeIn(ctx, s.st, f, s.log, func(e feed.Event) {
					if e.Change != feed.None {
						trouble(e.Err)
					}
				})
			})
		}
		if s.watch == nil {
			s.watch = watch.New(s.st, s.cfg.Load, watch.Options{Log: s.log.With("part", "watcher"), Secret: s.secret, Dir: input.SpillDir()})
		}
		add("watcher", nil, quiet(s.watch.Run))
		if c.SMTP != nil || c.GitHub != nil {
			o := reply.Options{Find: finders, Log: s.log.With("part", "sender"), Alone: s.alone(c)}
			if c.SMTP != nil {
				o.LookFor = c.SMTP.LookFor
			}
			if c.GitHub != nil {
				o.GitHub = s.github
			}
			add("sender", []any{c.SMTP, c.IMAP, c.Maildir, c.Inboxes, c.GitHub != nil}, quiet(reply.New(s.st, s.cfg.Load, o).Run))
		}
		s.listeners(c, add)
	}
	if s.worker {
		o := work.Options{Log: s.log.With("part", "worker"), Secret: s.secret, Evaluate: s.evaluate}
		if c.GitHub != nil {
			o.Pulls = s.github
		}
		add("worker", []any{c.Worker, c.GitHub != nil}, quiet(work.New(s.st, s.cfg.Load, o).Run))
	}
	return parts, nil
}

// openGitHub tries the settings of c, and makes the client when they come first: it
// reads its settings anew each time.
func (s *serving) openGitHub(c *service.Config) error {
	o := github.Options{Log: s.log.With("part", "github")}
	if _, err := github.New(func() *service.Config { return c }, s.st, o); err != nil || s.github != nil {
		return err
	}
	client, err := github.New(func() *service.Config {
		if now := s.cfg.Load(); now.GitHub != nil {
			return now
		}
		return c // not in force yet, or not any more
	}, s.st, o)
	s.github = client
	return err
}

// alone says that nobody else sends from the record: it is a file in the state
// folder, which this process has taken for itself.
func (s *serving) alone(c *service.Config) bool {
	file, ok := sqliteFile(string(c.Store.URL))
	return ok && s.whole && filepath.Dir(file) == filepath.Clean(c.State)
}

// listeners are the parts that others connect to, and the one that asks GitHub.
func (s *serving) listeners(c *service.Config, add func(string, any, func(context.Context, func(error)) error)) {
	if w := c.Web; w != nil && w.Listen != "" {
		h := web.Handler(s.st, s.cfg.Load, web.Options{Log: s.log.With("part", "web"), Parts: s.group.Status,
			Mails: func() map[string]int64 { return s.watch.Counts().Outcomes() }})
		add("web", w.Listen, func(ctx context.Context, _ func(error)) error { return web.Serve(ctx, w.Listen, h) })
	}
	if c.GitHub == nil {
		return
	}
	add("github", nil, func(ctx context.Context, _ func(error)) error { return s.github.Run(ctx) })
	if w := c.Web; w != nil && w.WebhookListen != "" && c.GitHub.WebhookSecret != "" {
		add("webhook", w.WebhookListen, func(ctx context.Context, _ func(error)) error {
			return web.Serve(ctx, w.WebhookListen, s.github.Webhook())
		})
	}
}

// followed is a feed and what it was made from.
type followed struct {
	feed.Feed
	settings any
}

// feedsOf gives the sources of mail, and where own mail can be looked for.
func feedsOf(c *service.Config) (feeds []followed, finders []feed.Finder, err error) {
	type both interface {
		feed.Feed
		feed.Finder
	}
	add := func(f both, err2 error, settings any) {
		if err2 != nil {
			err = errors.Join(err, err2)
			return
		}
		feeds, finders = append(feeds, followed{f, settings}), append(finders, f)
	}
	if m := c.IMAP; m != nil {
		f, err := imap.New(imap.Options{Address: m.Address, TLS: m.TLS, AllowPlaintext: m.AllowPlaintext, CAFile: m.CAFile,
			User: m.User, Password: string(m.Password), Folder: m.Folder})
		add(f, err, *m)
	}
	if m := c.Maildir; m != nil {
		f, err := maildir.New(m.Path)
		add(f, err, *m)
	}
	for _, m := range c.Inboxes {
		f, err := inbox.New(m.Path, m.Poll)
		add(f, err, m)
	}
	return feeds, finders, err
}
