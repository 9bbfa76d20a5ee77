package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
)

type watchCommand struct {
	Config   string `required:"" placeholder:"FILE" help:"The service file."`
	NoWorker bool   `name:"no-worker" help:"Evaluate nothing in this process: bot worker does, in others."`
}

// Run serves mailing lists and pull requests until SIGTERM; SIGHUP reads the
// service file again.
func (c *watchCommand) Run(ctx context.Context, t *terminal) error {
	return serveUntil(ctx, t, &serving{file: c.Config, whole: true, worker: !c.NoWorker})
}

type workerCommand struct {
	Config string `required:"" placeholder:"FILE" help:"The service file, with the record of bot watch."`
}

// Run evaluates what bot watch has queued, until SIGTERM; SIGHUP reads the service
// file again.
func (c *workerCommand) Run(ctx context.Context, t *terminal) error {
	return serveUntil(ctx, t, &serving{file: c.Config, worker: true})
}

func serveUntil(ctx context.Context, t *terminal, s *serving) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	s.log, s.hangUp, s.env = newLog(t.stderr), hangUp, os.Getenv
	return s.run(ctx)
}

// newLog logs in logfmt; on a terminal without the day. slog quotes what a terminal
// would obey.
func newLog(w io.Writer) *slog.Logger {
	f, ok := w.(*os.File)
	terminal := ok && isatty.IsTerminal(f.Fd())
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if terminal && len(groups) == 0 && a.Key == slog.TimeKey {
			a.Value = slog.StringValue(a.Value.Time().Format("15:04:05"))
		}
		return a
	}}))
}

// lockState takes the state folder for this process: two services on one record
// would each send what the other sends.
func lockState(dir string) (unlock func(), err error) {
	path := dir + "/watch.lock"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		by, _ := io.ReadAll(io.LimitReader(f, 32))
		return nil, fmt.Errorf("another bot watch (process %s) serves %s already: end it, or name another folder as state", by, dir)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprint(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
