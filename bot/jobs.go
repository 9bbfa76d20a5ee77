package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"patchbench/bot/serving"
	"patchbench/config/service"
	"patchbench/store"
)

// recordFlags name the service's record: by its configuration, or as it stands.
type recordFlags struct {
	Config string `placeholder:"FILE" help:"The service file, which names the record."`
	Store  string `placeholder:"FILE" help:"The record itself, where there is no service file at hand."`
}

// open opens the record, which must be there.
func (f *recordFlags) open(ctx context.Context) (*store.Store, error) {
	st, _, err := f.record(ctx)
	return st, err
}

// record opens the record, and gives the service file if it was named by that.
func (f *recordFlags) record(ctx context.Context) (st *store.Store, c *service.Config, err error) {
	url := f.Store
	switch {
	case f.Config != "" && f.Store != "":
		return nil, nil, usage(errors.New("--config names the record already: leave --store out"))
	case f.Config != "":
		if c, err = service.Load(f.Config, os.Getenv); err != nil {
			return nil, nil, usage(err)
		}
		url = string(c.Store.URL)
	case f.Store == "":
		return nil, nil, usage(errors.New("name the service's file with --config, or its record with --store"))
	}
	if st, err = serving.OpenRecord(ctx, url); err != nil {
		return nil, nil, usage(err)
	}
	return st, c, nil
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
	for _, s := range c.State {
		known := false
		for _, k := range taskStates {
			known = known || string(k) == s
		}
		if !known {
			return usage(fmt.Errorf("--state %s: no such state; there are %s", s, joined(taskStates)))
		}
		f.States = append(f.States, store.State(s))
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
		all := []jobJSON{}
		for i := range list {
			all = append(all, asJSON(&list[i]))
		}
		return writeJSON(t.stdout, all)
	}
	if len(list) == 0 {
		fmt.Fprintln(t.stderr, "no jobs")
	}
	for i := range list {
		k := &list[i]
		line := fmt.Sprintf("%d  %s  %s  %s  %s", k.ID, k.State, k.Created.UTC().Format("2006-01-02 15:04"), k.Project, k.Title)
		if k.State == store.Running && k.Progress != "" {
			line += ": " + k.Progress
		} else if k.Reason != "" {
			line += ": " + k.Reason
		}
		fmt.Fprintln(t.stdout, printable(line))
	}
	return tellAside(ctx, t.stderr, st)
}

func joined(states []store.State) string {
	var words []string
	for _, s := range states {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// jobJSON is a task as scripts read it.
type jobJSON struct {
	ID         int64      `json:"id"`
	Key        string     `json:"key"`
	Kind       string     `json:"kind"`
	Project    string     `json:"project"`
	Class      string     `json:"class"`
	List       string     `json:"list,omitempty"`
	Ref        string     `json:"ref"`
	Title      string     `json:"title"`
	Author     authorJSON `json:"author"`
	Version    int        `json:"version,omitempty"`
	State      string     `json:"state"`
	Reason     string     `json:"reason,omitempty"`
	Created    time.Time  `json:"created"`
	Started    *time.Time `json:"started,omitempty"`
	Ended      *time.Time `json:"ended,omitempty"`
	Worker     string     `json:"worker,omitempty"`
	Attempts   int        `json:"attempts"`
	Progress   string     `json:"progress,omitempty"`
	Evaluation string     `json:"evaluation,omitempty"`
	Supersedes string     `json:"supersedes,omitempty"`
}

type authorJSON struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

func asJSON(k *store.Task) jobJSON {
	at := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		t = t.UTC()
		return &t
	}
	return jobJSON{ID: k.ID, Key: k.Key, Kind: k.Kind, Project: k.Project, Class: k.Class, List: k.List, Ref: k.Ref, Title: k.Title,
		Author: authorJSON{k.Author.Name, k.Author.Email}, Version: k.Version, State: string(k.State), Reason: k.Reason,
		Created: k.Created.UTC(), Started: at(k.Started), Ended: at(k.Ended), Worker: k.Worker, Attempts: k.Attempts,
		Progress: k.Progress, Evaluation: k.Evaluation, Supersedes: k.Supersedes}
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
		return writeJSON(t.stdout, asJSON(k))
	case c.Mail:
		return writeMail(ctx, t.stdout, st, k)
	}
	return showJob(t.stdout, k)
}

func showJob(w io.Writer, k *store.Task) error {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name, printable(value))
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			line(name, t.UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	}
	line("job", fmt.Sprint(k.ID))
	line("state", string(k.State))
	line("reason", k.Reason)
	line("progress", k.Progress)
	line("title", k.Title)
	line("author", strings.TrimSpace(k.Author.Name+" <"+cmp.Or(k.Author.Email, "-")+">"))
	line("project", k.Project)
	line("class", k.Class)
	line("list", k.List)
	line("ref", k.Ref)
	line("key", k.Key)
	line("supersedes", k.Supersedes)
	at("created", k.Created)
	at("started", k.Started)
	at("ended", k.Ended)
	line("worker", k.Worker)
	if k.Attempts > 0 {
		line("attempts", fmt.Sprint(k.Attempts))
	}
	line("evaluation", k.Evaluation)
	_, err := io.WriteString(w, b.String())
	return err
}

// change does the same to each job that is named, and goes on behind one that
// cannot be changed.
func (c *jobArgs) change(ctx context.Context, t *terminal, done string, f func(*store.Store, int64) error) error {
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	var failed []error
	status := statusUsage
	for _, id := range c.IDs {
		switch err := jobError(id, f(st, id)); {
		case err == nil:
			fmt.Fprintf(t.stdout, "%d %s\n", id, done)
		default:
			var wrong *failure
			if !errors.As(err, &wrong) {
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
