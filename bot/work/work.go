// Package work evaluates tasks: it takes them from the queue, one for each slot of
// this machine, and ends each with what the store keeps of it.
//
//	River job -> slot -> store.Claim -> eval.Run -> letter.Compose -> store.Finish
//	                        |  lease, renewed while it runs
//	                        |  the task's state, looked at each second
//
// A job of the queue is no more than a call to look at a task: who may evaluate it
// is decided by the task's lease and fence, which a killed worker loses and a
// second one can take. An evaluation has an id that follows from its task, so
// that whoever takes a task up goes on with what was measured, or uses the
// evaluation that is complete.
//
// What is at fault in a series is a result, and is kept and told. What is at fault
// here (disk, network, repository) is tried again, three times in all. That the bot
// is killed is no fault of the task, until it happens again and again. Nothing is
// sent here: letters and notices are put into the outbox.
package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/riverqueue/river"

	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/work/slot"
	"patchbench/bot/workfolder"
	"patchbench/config/service"
	"patchbench/store"
)

// How long things take. A worker that was killed is missed after lease.
const (
	lease    = 60 * time.Second
	beat     = 10 * time.Second // how often the lease is renewed
	look     = time.Second      // how often a running task's state is looked at
	sweep    = 30 * time.Second // how often lost tasks are looked for
	patience = 30 * time.Second // of a job that waits for a slot
	stopping = 25 * time.Second // for running evaluations to end and be handed back
)

const (
	// attempts is how often an evaluation is begun that fails by our fault.
	attempts = 3
	// deaths is how often the bot may be killed while it evaluates a task, with
	// the pauses of mourning in two hours. A machine that is restarted again and
	// again must not cost the tasks that it has; one task that ends the bot must
	// not cost all others.
	deaths = 10
)

// forget is when River believes that a job's process is gone. The tasks' leases
// tell that much earlier.
const forget = 7 * 24 * time.Hour

// Options of a Worker. The zero value works.
type Options struct {
	// Name of this worker among all; "" is that of its work folder.
	Name string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log is told what happens; nil is silent.
	Log *slog.Logger
	// Secret signs letters.
	Secret []byte
	// Evaluate evaluates; nil means eval.Run.
	Evaluate func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error)
	// Pulls knows pull requests; without it their tasks fail.
	Pulls Pulls
}

// Pulls are the pull requests of a forge, as bot/github knows them.
type Pulls interface {
	// Prepare fetches the commits of a pull request into a repository on disk and
	// gives its folder and the range to evaluate. An error that wraps github.ErrPull is
	// not ours, and not tried again.
	Prepare(ctx context.Context, p store.PullPayload) (repo, from, to string, err error)
	// Running, Failed and Render make what should stand at the pull request: while it
	// is evaluated ("" is its beginning), when that failed, and in the end.
	Running(p store.PullPayload, progress string) *store.Notice
	Failed(p store.PullPayload, why string) *store.Notice
	Render(e *store.Evaluation, p store.PullPayload) (*store.Notice, error)
}

// Worker evaluates the tasks of one class, on this machine.
type Worker struct {
	o    Options
	st   *store.Store
	cfg  func() *service.Config
	name string        // known when it runs
	poll time.Duration // how often the queue is asked
}

// New makes a worker on a store, with a configuration that may change between
// tasks; its class and number of slots are those at the time of Run.
func New(st *store.Store, cfg func() *service.Config, o Options) *Worker {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Evaluate == nil {
		o.Evaluate = eval.Run
	}
	return &Worker{o: o, st: st, cfg: cfg, poll: time.Second}
}

// Run takes and evaluates tasks until ctx ends. Evaluations that run then are
// ended, and their tasks handed back with what was measured: nil is returned when
// that was done in time.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.takeUp(ctx); err != nil {
		return err
	}
	client, err := w.client()
	if err != nil {
		return err
	}
	if err := w.requeue(ctx); err != nil {
		return err
	}
	// Not by ctx's end: running jobs are told to stop, and waited for.
	whole := context.WithoutCancel(ctx)
	if err := client.Start(whole); err != nil {
		return fmt.Errorf("start the queue's worker: %w", err)
	}
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if err := w.requeue(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Warn("lost tasks could not be looked for; tried again", "err", err)
			}
		}
	}
	end, cancel := context.WithTimeout(whole, stopping)
	defer cancel()
	if err := client.StopAndCancel(end); err != nil {
		return fmt.Errorf("stop the queue's worker: evaluations still run; another worker takes their tasks when the lease passes: %w", err)
	}
	return nil
}

func (w *Worker) client() (*river.Client[*sql.Tx], error) {
	workers := river.NewWorkers()
	if err := river.AddWorkerSafely(workers, &evaluator{w: w}); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	c := w.cfg().Worker
	client, err := w.st.River(&river.Config{
		ID:      fmt.Sprintf("%s-%d", w.name, os.Getpid()),
		Queues:  map[string]river.QueueConfig{c.Class: {MaxWorkers: max(c.Slots, 1)}},
		Workers: workers, PollOnly: true, FetchPollInterval: w.poll,
		JobTimeout: forget, RescueStuckJobsAfter: forget + time.Hour,
		Logger: slog.New(warnings{w.o.Log.Handler()}),
	})
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	return client, nil
}

// takeUp hands back at once what a killed process of this machine has left: whoever
// holds a slot knows that nobody evaluates in it.
func (w *Worker) takeUp(ctx context.Context) (err error) {
	c := w.cfg().Worker
	if w.name = w.o.Name; w.name == "" {
		if w.name, err = slot.Name(c.WorkDir); err != nil {
			return err
		}
	}
	free, err := slot.Free(c.WorkDir, c.Slots)
	defer func() {
		for _, s := range free {
			s.Release()
		}
	}()
	if err != nil {
		return err
	}
	for _, s := range free {
		// It may be long until somebody evaluates there.
		sandbox.Reap(s.Folder)
		workfolder.Sweep(s.Folder)
	}
	running, err := w.st.Tasks(ctx, store.TaskFilter{States: []store.State{store.Running}, Limit: 1000})
	if err != nil {
		return err
	}
	for _, t := range running {
		if !slices.ContainsFunc(free, func(s *slot.Slot) bool { return t.Worker == w.at(s) }) {
			continue
		}
		err := w.st.Bury(ctx, t.ID, t.Fence, mourning(t.Deaths+1), "its worker was killed")
		if err != nil && !lost(err) {
			return err
		}
		w.o.Log.Warn("a job whose worker was killed is queued again", "job", t.ID)
	}
	return nil
}

// mourning is the pause behind the nth death. The first ones have none: they will
// not have been the task's fault.
func mourning(n int) time.Duration {
	if n <= 2 {
		return 0
	}
	return time.Minute << min(n-3, 6)
}

// at is the worker's name in a slot.
func (w *Worker) at(s *slot.Slot) string { return fmt.Sprintf("%s/%d", w.name, s.N) }

// requeue puts tasks back into the queue whose worker, or job, is gone.
func (w *Worker) requeue(ctx context.Context) error {
	ids, err := w.st.Requeue(ctx, w.o.Now())
	for _, id := range ids {
		w.o.Log.Warn("a job whose worker is gone is queued again", "job", id)
	}
	return err
}

// evaluator is the queue's view of a Worker.
type evaluator struct {
	river.WorkerDefaults[store.EvaluateArgs]
	w *Worker
}

// Work evaluates one task. The queue's own retries are for a store that fails:
// all else is decided by the task.
func (e *evaluator) Work(ctx context.Context, job *river.Job[store.EvaluateArgs]) error {
	c := e.w.cfg().Worker
	s, err := slot.Take(ctx, c.WorkDir, c.Slots, patience)
	switch {
	case errors.Is(err, slot.ErrBusy), err != nil && ctx.Err() != nil:
		// Not held for long: a job that is kept looks like one whose process is gone.
		return river.JobSnooze(time.Second)
	case err != nil:
		e.w.o.Log.Error("no slot to evaluate in", "job", job.Args.Task, "err", err)
		return err
	}
	defer s.Release()
	return e.w.do(ctx, job.Args.Task, s)
}

// warnings leaves out what the queue says of its daily life.
type warnings struct{ slog.Handler }

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{h.Handler.WithAttrs(a)} }
func (h warnings) WithGroup(g string) slog.Handler      { return warnings{h.Handler.WithGroup(g)} }
