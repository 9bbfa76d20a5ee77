package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"patchbench/mbox"
	"patchbench/store/db"
	"patchbench/store/outbox"
)

// State says where a task stands.
type State string

// The states of a task.
const (
	Held       State = "held"       // waits for somebody's approval
	Queued     State = "queued"     // waits for a worker
	Running    State = "running"    // a worker has it, until its lease passes
	Done       State = "done"       // ended with an evaluation, whatever its verdict
	Failed     State = "failed"     // we could not find out
	Stopped    State = "stopped"    // ended by somebody
	Superseded State = "superseded" // a newer version took its place
	Ignored    State = "ignored"    // the policy wants nothing done
	Incomplete State = "incomplete" // parts of the series never came
)

// Task is what was decided about a version of a series or a pull request's head.
type Task struct {
	ID       int64
	Key      string // unique: what has one is evaluated once
	Kind     string // KindMail or KindPull
	Project  string
	Class    string // the machines that may run it, and the queue's name: a-z, 0-9, - and _; "" becomes "default"
	List     string // address
	Ref      string // Message-ID of the series' head, or owner/repo#12
	Title    string
	Author   mbox.Address // the address in lower case
	Version  int
	Content  string // hash of what is in it
	Payload  []byte // EncodePayload of a MailPayload or PullPayload
	State    State
	Reason   string // why it is in its state
	Created  time.Time
	Started  time.Time // zero before the first claim
	Ended    time.Time // zero until it ended
	Worker   string
	Fence    int64     // counts claims; a worker's writes need its own
	Lease    time.Time // until when the worker is believed
	Attempts int       // begun, but for those that handed it back or died
	// Deaths counts the workers that were killed while they had it.
	Deaths   int
	Progress string // what the worker is doing
	// Evaluation is the id of the evaluation made, "" if none.
	Evaluation string
	Supersedes string // key of an older task
}

// The kinds of tasks.
const (
	KindMail = "mail"
	KindPull = "pull"
)

// Decision is a task and what it puts an end to.
type Decision struct {
	Task Task
	// Supersede are keys of tasks that become superseded if they are queued, held or running.
	Supersede []string
}

// TaskFilter chooses tasks; zero fields choose all.
type TaskFilter struct {
	States                           []State
	Kind, Project, Author, List, Ref string // Author is an address
	Since                            time.Time
	Limit                            int   // 100 if it is 0
	Before                           int64 // ids below this one; the next page
}

// Errors of tasks that can be tested for.
var (
	// ErrNoTask says that there is no such task.
	ErrNoTask = errors.New("no such task")
	// ErrNotQueued says that a task cannot be claimed: another worker has it or it has ended.
	ErrNotQueued = errors.New("not queued")
	// ErrFence says that a task was claimed again or ended since the worker claimed it.
	ErrFence = errors.New("the task is not this worker's any more")
	// ErrState says that a task or letter is in a state from which it cannot be moved as wanted.
	ErrState = outbox.ErrState
)

const taskColumns = `id, task_key, kind, project, class, list, ref, title, author_name, author, version, content, state, reason,
	created, started, ended, worker, fence, lease, attempts, deaths, progress, evaluation, supersedes`

func scanTask(r db.Row, more ...any) (*Task, error) {
	var t Task
	var created, started, ended, lease string
	err := r.Scan(append([]any{&t.ID, &t.Key, &t.Kind, &t.Project, &t.Class, &t.List, &t.Ref, &t.Title, &t.Author.Name, &t.Author.Email,
		&t.Version, &t.Content, &t.State, &t.Reason, &created, &started, &ended, &t.Worker, &t.Fence, &lease, &t.Attempts, &t.Deaths, &t.Progress,
		&t.Evaluation, &t.Supersedes}, more...)...)
	if err != nil {
		return nil, err
	}
	for _, c := range []struct {
		text string
		time *time.Time
	}{{created, &t.Created}, {started, &t.Started}, {ended, &t.Ended}, {lease, &t.Lease}} {
		if *c.time, err = db.ParseTime(c.text); err != nil {
			return nil, fmt.Errorf("task %d: %w", t.ID, err)
		}
	}
	return &t, nil
}

// Task gives the task with this id, or ErrNoTask.
func (s *Store) Task(ctx context.Context, id int64) (*Task, error) {
	t, err := s.task(ctx, s.db, `id = $1`, id)
	if err != nil {
		return nil, s.fail(fmt.Sprintf("read task %d", id), err)
	}
	return t, nil
}

// TaskByKey gives the task with this key, or ErrNoTask.
func (s *Store) TaskByKey(ctx context.Context, key string) (*Task, error) {
	t, err := s.task(ctx, s.db, `task_key = $1`, db.Text(key))
	if err != nil {
		return nil, s.fail("read task "+key, err)
	}
	return t, nil
}

func (s *Store) task(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}, where string, args ...any) (*Task, error) {
	var payload []byte
	t, err := scanTask(q.QueryRowContext(ctx, `SELECT `+taskColumns+`, payload FROM tasks WHERE `+where, args...), &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoTask
	}
	if err != nil {
		return nil, err
	}
	t.Payload = payload
	return t, nil
}

// Tasks gives tasks without their payloads, the newest first.
func (s *Store) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	var where []string
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if len(f.States) > 0 {
		var marks []string
		for _, state := range f.States {
			args = append(args, string(state))
			marks = append(marks, fmt.Sprint("$", len(args)))
		}
		where = append(where, `state IN (`+strings.Join(marks, ", ")+`)`)
	}
	for _, c := range []struct{ column, value string }{
		{"kind", f.Kind}, {"project", f.Project}, {"author", strings.ToLower(f.Author)}, {"list", f.List}, {"ref", f.Ref},
	} {
		if c.value != "" {
			add(c.column+` = $%d`, db.Text(c.value))
		}
	}
	if !f.Since.IsZero() {
		add(`created >= $%d`, db.Time(f.Since))
	}
	if f.Before > 0 {
		add(`id < $%d`, f.Before)
	}
	text := `SELECT ` + taskColumns + ` FROM tasks`
	if len(where) > 0 {
		text += ` WHERE ` + strings.Join(where, ` AND `)
	}
	if f.Limit == 0 {
		f.Limit = 100
	}
	var all []Task
	err := db.Query(ctx, s.db, func(r db.Row) error {
		t, err := scanTask(r)
		if err == nil {
			all = append(all, *t)
		}
		return err
	}, text+fmt.Sprintf(` ORDER BY id DESC LIMIT %d`, f.Limit), args...)
	if err != nil {
		return nil, s.fail("list tasks", err)
	}
	return all, nil
}
