// Package serving runs the service: its parts, from the configuration, for as long as
// it is to run.
//
//	service file --> open: state folder, sandbox, record, secret
//	             --> parts: feeds, watcher, sender, web, GitHub, worker --> bot/part
//
// It holds nothing but their order and wiring. When told to, it reads the file again
// and takes it over whole or not at all. What each part does is known in its own
// package.
package serving

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"patchbench/bot/eval"
	"patchbench/bot/github"
	"patchbench/bot/part"
	"patchbench/bot/watch"
	"patchbench/config/service"
	"patchbench/store"
)

// Options of a service.
type Options struct {
	File   string              // the service file
	Whole  bool                // all parts, not the worker alone
	Worker bool                // with a worker in this process
	Env    func(string) string // looks a variable of the environment up; required
	Log    *slog.Logger        // required
	HangUp <-chan os.Signal    // each is a request to read File again
	// Evaluate takes the place of eval.Run in tests, which then need no sandbox; nil
	// is eval.Run.
	Evaluate func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error)
}

// Error says that the configuration, or what it names, is not such that the service
// could run: it is the operator's to mend.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Service is a running service, or a worker of one.
type Service struct {
	Options
	cfg    atomic.Pointer[service.Config]
	st     *store.Store
	secret []byte
	github *github.Client
	watch  *watch.Watcher
	group  part.Group
}

// New makes a service that Run runs.
func New(o Options) *Service { return &Service{Options: o} }

// Status tells how each part is.
func (s *Service) Status() []part.Status { return s.group.Status() }

// Mails counts what became of the mails that came in, by outcome.
func (s *Service) Mails() map[string]int64 { return s.watch.Counts().Outcomes() }

// grace is how long parts may take to end.
const grace = 28 * time.Second

// Run starts all parts and keeps them going until ctx ends. The error is an *Error,
// sandbox.ErrNone where the code of strangers would not be held, or ours.
func (s *Service) Run(ctx context.Context) error {
	c, err := service.Load(s.File, s.Env)
	if err != nil {
		return &Error{err}
	}
	s.cfg.Store(c)
	end, err := s.open(ctx, c)
	if err != nil {
		return err
	}
	defer end()
	parts, err := s.parts(c)
	if err != nil {
		return &Error{err}
	}
	s.group.Log = s.Log
	s.group.Set(ctx, parts, nil)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-s.HangUp:
			if err := s.reload(ctx); err != nil {
				s.Log.Error("the service file is not taken over; all goes on as before", "file", s.File, "err", err)
			} else {
				s.Log.Info("the service file was read again", "file", s.File)
			}
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return s.group.Stop(ending)
}

// reload takes over the service file as it is now, or leaves all as it was.
func (s *Service) reload(ctx context.Context) error {
	old := s.cfg.Load()
	c, err := service.Load(s.File, s.Env)
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
