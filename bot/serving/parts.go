package serving

import (
	"context"
	"errors"
	"path/filepath"

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
)

// parts are what runs by this configuration. Settings of a part are what it was
// made from; all else it reads anew from the configuration that holds.
func (s *Service) parts(c *service.Config) ([]part.Part, error) {
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
	if s.Whole {
		feeds, finders, err := feedsOf(c)
		if err != nil {
			return nil, err
		}
		for _, f := range feeds {
			add(f.Name(), f.settings, func(ctx context.Context, trouble func(error)) error {
				return watch.TakeIn(ctx, s.st, f, s.Log, func(e feed.Event) {
					if e.Change != feed.None {
						trouble(e.Err)
					}
				})
			})
		}
		if s.watch == nil {
			s.watch = watch.New(s.st, s.cfg.Load, watch.Options{Log: s.Log.With("part", "watcher"), Secret: s.secret, Dir: input.SpillDir()})
		}
		add("watcher", nil, quiet(s.watch.Run))
		if c.SMTP != nil || c.GitHub != nil {
			o := reply.Options{Find: finders, Log: s.Log.With("part", "sender"), Alone: s.alone(c)}
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
	if s.Worker {
		o := work.Options{Log: s.Log.With("part", "worker"), Secret: s.secret, Evaluate: s.Evaluate}
		if c.GitHub != nil {
			o.Pulls = s.github
		}
		add("worker", []any{c.Worker, c.GitHub != nil}, quiet(work.New(s.st, s.cfg.Load, o).Run))
	}
	return parts, nil
}

// openGitHub tries the settings of c, and makes the client when they come first: it
// reads its settings anew each time.
func (s *Service) openGitHub(c *service.Config) error {
	o := github.Options{Log: s.Log.With("part", "github")}
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
func (s *Service) alone(c *service.Config) bool {
	file, ok := sqliteFile(string(c.Store.URL))
	return ok && s.Whole && filepath.Dir(file) == filepath.Clean(c.State)
}

// listeners are the parts that others connect to, and the one that asks GitHub.
func (s *Service) listeners(c *service.Config, add func(string, any, func(context.Context, func(error)) error)) {
	if w := c.Web; w != nil && w.Listen != "" {
		h := web.Handler(s.st, s.cfg.Load, web.Options{Log: s.Log.With("part", "web"), Parts: s.group.Status, Mails: s.Mails})
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
