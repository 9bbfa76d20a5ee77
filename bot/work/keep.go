package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"patchbench/bot/eval"
	"patchbench/store"
)

// Why the context of an evaluation ends, besides its parent's end.
var (
	// errLease says that the lease could not be renewed: another worker may have the task.
	errLease = errors.New("the lease could not be renewed in time")
	// errTimeout says that the worker's time for one evaluation is over.
	errTimeout = errors.New("the evaluation took too long")
)

// endedError says that the task was ended by somebody else.
type endedError struct{ state store.State }

func (e *endedError) Error() string { return "the task is " + string(e.state) }

// keep watches over a claimed task while it is evaluated: it renews the lease, and
// ends the context that it gives when the task is not this worker's to evaluate any
// more. tell is told the progress each time that the lease is renewed. The returned
// function ends the watching.
func (w *Worker) keep(ctx context.Context, t *store.Task, progress func() string, tell func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		cancel(w.watch(ctx, t, progress, tell))
	})
	return ctx, func() {
		cancel(nil)
		done.Wait()
	}
}

// watch gives the reason to end the evaluation, nil when ctx ended.
func (w *Worker) watch(ctx context.Context, t *store.Task, progress func() string, tell func(string)) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	renewed := w.o.Now()
	for tried := renewed; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := w.o.Now()
		if now.Sub(tried) >= beat {
			tried = now
			text := progress()
			err := w.beat(ctx, t, text)
			switch {
			case err == nil:
				renewed = now
				tell(text)
			case lost(err):
				return err
			case ctx.Err() == nil:
				w.o.Log.Warn("the lease of a job could not be renewed; tried again", "job", t.ID, "err", err)
			}
		} else if err := w.stillOurs(ctx, t); lost(err) {
			return err
		}
		if now.Sub(renewed) > lease {
			return errLease
		}
	}
}

// lost says that an error means that the task is another's, or nobody's.
func lost(err error) bool {
	var ended *endedError
	return errors.As(err, &ended) || errors.Is(err, store.ErrFence) || errors.Is(err, store.ErrNoTask)
}

func (w *Worker) beat(ctx context.Context, t *store.Task, text string) error {
	ctx, cancel := context.WithTimeout(ctx, beat)
	defer cancel()
	state, err := w.st.Beat(ctx, t.ID, t.Fence, lease, text)
	if (err == nil || errors.Is(err, store.ErrFence)) && state != "" && state != store.Running {
		return &endedError{state}
	}
	return err
}

// stillOurs looks at the task without writing: the store is not written to each
// second beside a benchmark.
func (w *Worker) stillOurs(ctx context.Context, t *store.Task) error {
	list, err := w.st.Tasks(ctx, store.TaskFilter{Before: t.ID + 1, Limit: 1})
	switch {
	case err != nil:
		return err // told when the lease cannot be renewed either
	case len(list) == 0 || list[0].ID != t.ID:
		return store.ErrNoTask
	case list[0].State != store.Running:
		return &endedError{list[0].State}
	case list[0].Fence != t.Fence:
		return store.ErrFence
	}
	return nil
}

// progress is the newest of what an evaluation says of itself.
type progress struct {
	note func(string)

	mu    sync.Mutex
	stage string
	n     int
	total int
}

var _ eval.Progress = (*progress)(nil)

// Stage begins a stage.
func (p *progress) Stage(name string, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.n, p.total = name, 0, total
}

// Done says how far the stage is.
func (p *progress) Done(n int, _ string, _ time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n = n
}

// Note is for the log.
func (p *progress) Note(text string) { p.note(text) }

// text is "measure: 12 of 80".
func (p *progress) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total == 0 {
		return p.stage
	}
	return fmt.Sprintf("%s: %d of %d", p.stage, p.n, p.total)
}
