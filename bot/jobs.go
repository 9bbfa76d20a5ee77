package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"patchbench/bot/operator"
	"patchbench/store"
)

// states reads --state: all are those that there are.
func states[S ~string](names []string, all []S) ([]S, error) {
	var list []S
	for _, name := range names {
		if !slices.Contains(all, S(name)) {
			var words []string
			for _, s := range all {
				words = append(words, string(s))
			}
			return nil, usage(fmt.Errorf("--state %s: no such state; there are %s", name, strings.Join(words, ", ")))
		}
		list = append(list, S(name))
	}
	return list, nil
}

// each does the same to everything that is named, and goes on behind what it cannot be
// done to.
func each(ids []int64, f func(id int64) error) error {
	var failed []error
	status := statusUsage
	for _, id := range ids {
		err := f(id)
		if errors.Is(err, context.Canceled) {
			return err
		}
		if err != nil {
			if wrong := (*failure)(nil); !errors.As(err, &wrong) {
				status = statusOurs
			}
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return &failure{status, errors.Join(failed...)}
	}
	return nil
}

type jobsCommand struct {
	List    jobsList    `cmd:"" default:"withargs" help:"List jobs, the newest first."`
	Show    jobsShow    `cmd:"" help:"Show one job."`
	Release jobsRelease `cmd:"" help:"Approve jobs that are held: they are evaluated."`
	Cancel  jobsCancel  `cmd:"" help:"Stop jobs that are held, queued or running."`
	Retry   jobsRetry   `cmd:"" help:"Queue failed or stopped jobs again."`
}

type jobsList struct {
	recordFlags
	State   []string `placeholder:"STATES" help:"Only those: held, queued, running, done, failed, stopped, superseded, ignored, incomplete."`
	Project string   `placeholder:"NAME" help:"Only those of this project."`
	Limit   int      `default:"50" placeholder:"N" help:"At most this many. Default: 50."`
	JSON    bool     `help:"Print JSON."`
}

var taskStates = []store.State{store.Held, store.Queued, store.Running, store.Done, store.Failed,
	store.Stopped, store.Superseded, store.Ignored, store.Incomplete}

func (c *jobsList) Run(ctx context.Context, t *terminal) error {
	f := store.TaskFilter{Project: c.Project, Limit: c.Limit}
	if c.Limit < 1 {
		return usage(fmt.Errorf("--limit %d: must be above 0", c.Limit))
	}
	var err error
	if f.States, err = states(c.State, taskStates); err != nil {
		return err
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	list, err := st.Tasks(ctx, f)
	if err != nil {
		return err
	}
	if c.JSON {
		all := []operator.Job{}
		for i := range list {
			all = append(all, operator.JobOf(&list[i]))
		}
		return writeJSON(t.stdout, all)
	}
	if len(list) == 0 {
		fmt.Fprintln(t.stderr, "no jobs")
	}
	for i := range list {
		fmt.Fprintln(t.stdout, operator.JobLine(&list[i]))
	}
	return operator.Aside(ctx, t.stderr, st)
}

// jobArgs name jobs.
type jobArgs struct {
	IDs []int64 `arg:"" name:"id" help:"The job's number, as bot jobs lists it."`
	recordFlags
}

type jobsShow struct {
	ID int64 `arg:"" help:"The job's number, as bot jobs lists it."`
	recordFlags
	JSON bool `help:"Print JSON."`
	Mail bool `help:"Print the mails of its series, as an mbox, and nothing else."`
}

func (c *jobsShow) Run(ctx context.Context, t *terminal) error {
	if c.JSON && c.Mail {
		return usage(errors.New("--json and --mail are two forms: choose one"))
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	k, err := st.Task(ctx, c.ID)
	if err != nil {
		return jobError(c.ID, err)
	}
	switch {
	case c.JSON:
		return writeJSON(t.stdout, operator.JobOf(k))
	case c.Mail:
		err := operator.Mail(ctx, t.stdout, st, k)
		if none := (*operator.Error)(nil); errors.As(err, &none) {
			return usage(err)
		}
		return err
	}
	return operator.JobText(t.stdout, k)
}

// change does the same to each job that is named.
func (c *jobArgs) change(ctx context.Context, t *terminal, done string, f func(*store.Store, int64) error) error {
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	return each(c.IDs, func(id int64) error {
		err := jobError(id, f(st, id))
		if err == nil {
			fmt.Fprintf(t.stdout, "%d %s\n", id, done)
		}
		return err
	})
}

// jobError says which job it is that cannot be changed or is not there.
func jobError(id int64, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoTask), errors.Is(err, store.ErrState):
		return usage(fmt.Errorf("job %d: %w; bot jobs lists them", id, err))
	}
	return fmt.Errorf("job %d: %w", id, err)
}

type jobsRelease struct{ jobArgs }

func (c *jobsRelease) Run(ctx context.Context, t *terminal) error {
	return c.change(ctx, t, "queued", func(st *store.Store, id int64) error { return st.Release(ctx, id, "approved by hand") })
}

type jobsCancel struct {
	jobArgs
	Reason string `default:"stopped by hand" placeholder:"TEXT" help:"Why, for the record."`
}

func (c *jobsCancel) Run(ctx context.Context, t *terminal) error {
	return c.change(ctx, t, "stopped", func(st *store.Store, id int64) error { return st.End(ctx, id, store.Stopped, c.Reason) })
}

type jobsRetry struct{ jobArgs }

func (c *jobsRetry) Run(ctx context.Context, t *terminal) error {
	return c.change(ctx, t, "queued", func(st *store.Store, id int64) error { return st.Retry(ctx, id) })
}
