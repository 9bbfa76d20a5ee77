package store

import (
	"context"
	"errors"
	"time"

	"patchbench/mbox"
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
	Class    string // the machines that may run it, and the queue's name
	List     string // address
	Ref      string // Message-ID of the series' head, or owner/repo#12
	Title    string
	Author   mbox.Address
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
	Attempts int
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
	ErrState = errors.New("not possible in this state")
)

// EvaluateArgs is the queue's job that tells workers of a task.
type EvaluateArgs struct {
	Task int64 `json:"task"`
}

// Kind names the job.
func (EvaluateArgs) Kind() string { return "evaluate" }

// Decide keeps a decision.
func (s *Store) Decide(ctx context.Context, d Decision) (*Task, bool, error) {
	return nil, false, errNotYet
}

// Task gives the task with this id, or ErrNoTask.
func (s *Store) Task(ctx context.Context, id int64) (*Task, error) { return nil, errNotYet }

// TaskByKey gives the task with this key, or ErrNoTask.
func (s *Store) TaskByKey(ctx context.Context, key string) (*Task, error) { return nil, errNotYet }

// Tasks gives tasks without their payloads, the newest first.
func (s *Store) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) { return nil, errNotYet }

// Release queues a held task.
func (s *Store) Release(ctx context.Context, id int64, why string) error { return errNotYet }

// End ends a task that is held, queued or running.
func (s *Store) End(ctx context.Context, id int64, to State, why string) error { return errNotYet }

// Retry queues a failed or stopped task again.
func (s *Store) Retry(ctx context.Context, id int64) error { return errNotYet }

// Claim takes a task for a worker.
func (s *Store) Claim(ctx context.Context, id int64, worker string, lease time.Duration) (*Task, error) {
	return nil, errNotYet
}

// Beat renews a lease.
func (s *Store) Beat(ctx context.Context, id, fence int64, lease time.Duration, progress string) (State, error) {
	return "", errNotYet
}

// HandBack queues a running task again, to be taken after delay.
func (s *Store) HandBack(ctx context.Context, id, fence int64, delay time.Duration, why string) error {
	return errNotYet
}

// Finish ends a running task and keeps what it has to say.
func (s *Store) Finish(ctx context.Context, id, fence int64, to State, why, evaluation string, letters []Letter, notice *Notice) error {
	return errNotYet
}

// Requeue gives the tasks for which a new job was put into the queue.
func (s *Store) Requeue(ctx context.Context, now time.Time) ([]int64, error) { return nil, errNotYet }
