package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"

	"patchbench/bench/sandbox"
	"patchbench/bot/serving"
)

type watchCommand struct {
	Config   string `required:"" placeholder:"FILE" help:"The service file."`
	NoWorker bool   `name:"no-worker" help:"Evaluate nothing in this process: bot worker does, in others."`
}

// Run serves mailing lists and pull requests until SIGTERM; SIGHUP reads the
// service file again.
func (c *watchCommand) Run(ctx context.Context, t *terminal) error {
	return serve(ctx, t, serving.Options{File: c.Config, Whole: true, Worker: !c.NoWorker})
}

type workerCommand struct {
	Config string `required:"" placeholder:"FILE" help:"The service file, with the record of bot watch."`
}

// Run evaluates what bot watch has queued, until SIGTERM; SIGHUP reads the service
// file again.
func (c *workerCommand) Run(ctx context.Context, t *terminal) error {
	return serve(ctx, t, serving.Options{File: c.Config, Worker: true})
}

func serve(ctx context.Context, t *terminal, o serving.Options) error {
	hangUp := make(chan os.Signal, 1)
	signal.Notify(hangUp, syscall.SIGHUP)
	defer signal.Stop(hangUp)
	o.Log, o.HangUp, o.Env = newLog(t.stderr), hangUp, os.Getenv
	return serviceError(serving.New(o).Run(ctx))
}

// serviceError gives an error of a service its exit status.
func serviceError(err error) error {
	var wrong *serving.Error
	switch {
	case errors.Is(err, sandbox.ErrNone):
		return &failure{statusUnsafe, err}
	case errors.As(err, &wrong):
		return usage(err)
	}
	return stageError(err)
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
