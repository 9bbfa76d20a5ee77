package work

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"patchbench/bench"
	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/eval/resume"
	"patchbench/bot/github"
	"patchbench/bot/work/slot"
	"patchbench/config/service"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// outcome is how a task ends.
type outcome struct {
	state      store.State
	why        string
	evaluation string
	letters    []store.Letter
	notice     *store.Notice
}

// finalError is a fault that no second attempt can mend: it is the owner's, or of
// what the task asks for.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func final(format string, args ...any) error { return &finalError{fmt.Errorf(format, args...)} }

// job is one attempt at a task.
type job struct {
	*Worker
	task     *store.Task
	slot     *slot.Slot
	cfg      *service.Config
	project  *service.Project
	log      *slog.Logger
	progress *progress
	kind     kind
}

// kind is what mail and pull requests differ in.
type kind interface {
	// input says what is evaluated, by which repository, base and benchmarks.
	input(ctx context.Context, o *eval.Options) (eval.Input, error)
	// answer fills in what is said of the evaluation.
	answer(ctx context.Context, e *store.Evaluation, out *outcome) error
	// failed fills in what is said of a failure.
	failed(err error, out *outcome)
	// running tells the progress.
	running(ctx context.Context, progress string)
}

// do evaluates the task, if it is there to be taken.
func (w *Worker) do(ctx context.Context, id int64, s *slot.Slot) error {
	t, err := w.st.Claim(ctx, id, w.at(s), lease)
	switch {
	case errors.Is(err, store.ErrNotQueued), errors.Is(err, store.ErrNoTask):
		return nil // another job was quicker, or it is not wanted any more
	case err != nil:
		w.o.Log.Error("a job could not be taken; tried again", "job", id, "err", err)
		return err
	}
	j := &job{Worker: w, task: t, slot: s, cfg: w.cfg(), log: w.o.Log.With("job", t.ID, "key", t.Key)}
	j.progress = &progress{note: func(text string) { j.log.Info(text) }}
	j.log.Info("evaluation begins", "title", t.Title, "attempt", t.Attempts)
	if err := j.open(); err != nil {
		return j.end(ctx, nil, err, nil)
	}
	if t.Deaths >= deaths {
		return j.end(ctx, nil, final("the bot ended %d times while it evaluated this", t.Deaths), nil)
	}
	j.kind.running(ctx, "")
	run, stop := w.keep(ctx, t, j.progress.text, func(text string) { j.kind.running(ctx, text) })
	out, err := j.timed(run)
	cause := context.Cause(run)
	stop()
	return j.end(ctx, out, err, cause)
}

// timed makes an attempt in the time that the configuration gives.
func (j *job) timed(ctx context.Context) (*outcome, error) {
	limit := j.cfg.Worker.Timeout
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
	}
	out, err := j.try(ctx)
	if errors.Is(err, errTimeout) {
		err = final("%w: it was ended after %v, which [worker] timeout sets", errTimeout, limit)
	}
	return out, err
}

// end keeps how the attempt ended. cause is why the evaluation was to stop, nil if
// it was not.
func (j *job) end(ctx context.Context, out *outcome, err, cause error) error {
	// What was found out is kept, also while the process ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	t := j.task
	switch {
	case err == nil:
	case cause != nil && (lost(cause) || errors.Is(cause, errLease)):
		j.log.Info("evaluation ended without a result", "why", cause)
		return nil
	case cause != nil: // the process ends
		j.log.Info("evaluation handed back, to be continued")
		return j.settled(j.st.HandBack(ctx, t.ID, t.Fence, 0, "handed back by "+j.name+", which was stopped"))
	case errors.Is(err, github.ErrMoved):
		// What replaced it is told of by itself, unless nobody tells the bot of it.
		out = &outcome{state: store.Stopped, why: err.Error()}
		j.kind.failed(err, out)
	case !isFinal(err) && t.Attempts < attempts:
		delay := backoff(t.Attempts)
		j.log.Warn("evaluation failed; tried again later", "err", err, "delay", delay)
		return j.settled(j.st.HandBack(ctx, t.ID, t.Fence, delay, fmt.Sprintf("attempt %d: %v", t.Attempts, err)))
	default:
		j.log.Error("evaluation failed", "err", err)
		out = &outcome{state: store.Failed, why: err.Error()}
		if j.kind != nil {
			j.kind.failed(err, out)
		}
	}
	err = j.st.Finish(ctx, t.ID, t.Fence, out.state, out.why, out.evaluation, out.letters, out.notice)
	if err == nil {
		j.log.Info("evaluation ended", "state", out.state, "evaluation", out.evaluation, "why", out.why)
	}
	return j.settled(err)
}

// settled is nil if the store took it, or if the task is another's by now.
func (j *job) settled(err error) error {
	if lost(err) {
		j.log.Info("the task was ended or taken by somebody else meanwhile", "err", err)
		return nil
	}
	if err != nil {
		j.log.Error("the end of an evaluation could not be kept; the task is taken up again when its lease passes", "err", err)
	}
	return err
}

// backoff is the pause behind the nth attempt: a minute, four, ...
func backoff(n int) time.Duration {
	d := time.Minute
	for range n - 1 {
		d *= 4
	}
	return d
}

func isFinal(err error) bool {
	var own *finalError
	var input *eval.InputError
	var repo *tree.InputError
	return errors.As(err, &own) || errors.As(err, &input) || errors.As(err, &repo) || errors.Is(err, github.ErrPull)
}

// try makes one attempt, a panic in it being an error of ours.
func (j *job) try(ctx context.Context) (out *outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			j.log.Error("panic", "what", fmt.Sprint(p), "stack", string(debug.Stack()))
			out, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	e, err := j.evaluation(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return nil, err
	}
	if e.Stopped == store.StoppedInterrupted {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, errors.New("the evaluation was interrupted")
	}
	out = &outcome{state: store.Done, why: e.Headline, evaluation: e.ID}
	return out, j.kind.answer(ctx, e, out)
}

// open reads the task's payload.
func (j *job) open() error {
	if j.project = j.cfg.ProjectOf(j.task.Project); j.project == nil {
		return final("project %q is not in the configuration any more", j.task.Project)
	}
	switch j.task.Kind {
	case store.KindMail:
		m := &mail{job: j}
		if err := store.DecodePayload(j.task.Payload, &m.p); err != nil {
			return &finalError{err}
		}
		j.kind = m
	case store.KindPull:
		if j.o.Pulls == nil {
			return final("pull requests are not configured: there is no [github]")
		}
		p := &pull{job: j}
		if err := store.DecodePayload(j.task.Payload, &p.p); err != nil {
			return &finalError{err}
		}
		j.kind = p
	default:
		return final("jobs of kind %q are not known to this program", j.task.Kind)
	}
	return nil
}

// evaluation gives the task's evaluation: the one that is there, if it is complete,
// the interrupted one continued, or a new one.
func (j *job) evaluation(ctx context.Context) (*store.Evaluation, error) {
	for n := uint64(0); ; n++ {
		id := j.id(n)
		before, err := j.st.Evaluation(ctx, id)
		var none *store.IDError
		switch {
		case errors.As(err, &none):
			return j.measure(ctx, id, "")
		case err != nil:
			return nil, err
		case before.Seed != seedOf(j.task.Key)%seeds:
			continue // the id is another's
		case before.Stopped != store.StoppedInterrupted:
			return before, nil
		}
		e, err := j.measure(ctx, "", id)
		var other *resume.Error
		if !errors.As(err, &other) {
			return e, err
		}
		j.log.Info("begun anew", "why", other)
	}
}

// id is the nth that the task's evaluation may have.
func (j *job) id(n uint64) string {
	return store.NewID(j.task.Created, rand.New(rand.NewPCG(seedOf(j.task.Key), n)))
}

// seeds is the number of seeds, short enough to be typed.
const seeds = 1_000_000

// seedOf follows from the task's key, so that a second worker draws the same.
func seedOf(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.LittleEndian.Uint64(sum[:])
}

// measure evaluates in a folder of its own, which is removed in the end.
func (j *job) measure(ctx context.Context, id, resume string) (*store.Evaluation, error) {
	o := eval.Options{
		Repo: j.project.Repo, SuiteName: j.project.Suite, SuiteText: j.project.SuiteText,
		Budget: j.project.Budget, Margin: j.project.Margin, Seed: seedOf(j.task.Key) % seeds,
		Sandbox: Sandbox(j.cfg.Worker, j.slot.N), ID: id, Resume: resume,
		Store: j.st, Progress: j.progress, Now: j.o.Now,
	}
	l := j.cfg.Worker.Limits
	o.Most = bench.Limits{MemoryBytes: l.Memory, Processes: l.Processes, DiskBytes: l.Disk, OutputBytes: l.Output, Timeout: l.Timeout}
	in, err := j.kind.input(ctx, &o)
	if err != nil {
		return nil, err
	}
	remove, err := j.place(&o)
	if err != nil {
		return nil, err
	}
	defer remove()
	return j.o.Evaluate(ctx, in, o)
}

// Sandbox says under whom the programs of a slot run: each slot has a user of its
// own.
func Sandbox(c service.Worker, slot int) sandbox.Options {
	o := sandbox.Options{UID: c.SandboxUID, Slot: slot}
	if o.UID != 0 {
		o.UID += slot
	}
	return o
}
