package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"patchbench/store/db"
)

// EvaluateArgs is the queue's job that tells workers of a task.
type EvaluateArgs struct {
	Task int64 `json:"task"`
}

// Kind names the job.
func (EvaluateArgs) Kind() string { return "evaluate" }

// A class names a queue, of which River wants this.
var classPattern = regexp.MustCompile(`^[a-z0-9]+([_-]?[a-z0-9]+)*$`)

// Decide keeps a decision in one transaction and gives the task as it stands
// then, and whether it is new or changed. A task with the key that is there
// already stays as it is and supersedes nothing, unless it is incomplete or
// ignored and its Content differs: then the decision takes its place. A queued
// task gets its job in the queue.
//
// Of the task's fields State, Reason, Payload and those that describe it are
// taken; what workers write is the store's. Created is the present if it is zero.
func (s *Store) Decide(ctx context.Context, d Decision) (*Task, bool, error) {
	t := d.Task
	what := "keep the decision on " + t.Key
	if t.Class == "" {
		t.Class = "default"
	}
	switch {
	case t.Key == "":
		return nil, false, s.fail(what, errors.New("it has no key"))
	case !slices.Contains([]State{Held, Queued, Ignored, Incomplete, Superseded, Stopped, Failed}, t.State):
		return nil, false, s.fail(what, fmt.Errorf("%w: a task does not begin as %q", ErrState, t.State))
	case !classPattern.MatchString(t.Class) || len(t.Class) > 64:
		return nil, false, s.fail(what, fmt.Errorf("class %q: write it with a-z, 0-9, - and _", t.Class))
	}
	key := db.Text(t.Key)
	var kept *Task
	var changed bool
	err := s.do(ctx, what, func(tx *sql.Tx) error {
		now := s.now()
		if t.Created.IsZero() {
			t.Created = now
		}
		ended := ""
		if t.State != Held && t.State != Queued {
			ended = db.Time(now)
		}
		payload := t.Payload
		if payload == nil {
			payload = []byte{}
		}
		var id int64
		err := tx.QueryRowContext(ctx, `
			INSERT INTO tasks (task_key, kind, project, class, list, ref, title, author_name, author, version, content, state, reason,
				created, started, ended, worker, fence, lease, attempts, deaths, progress, evaluation, supersedes, due, job, payload)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, '', $15, '', 0, '', 0, 0, '', '', $16, '', 0, $17)
			ON CONFLICT (task_key) DO UPDATE SET kind = excluded.kind, project = excluded.project, class = excluded.class,
				list = excluded.list, ref = excluded.ref, title = excluded.title, author_name = excluded.author_name,
				author = excluded.author, version = excluded.version, content = excluded.content, state = excluded.state,
				reason = excluded.reason, created = excluded.created, ended = excluded.ended, supersedes = excluded.supersedes,
				payload = excluded.payload
			WHERE tasks.state IN ('incomplete', 'ignored') AND tasks.content <> excluded.content
			RETURNING id`,
			key, db.Text(t.Kind), db.Text(t.Project), t.Class, db.Text(t.List), db.Text(t.Ref), db.Text(t.Title), db.Text(t.Author.Name),
			strings.ToLower(db.Text(t.Author.Email)), t.Version, db.Text(t.Content), string(t.State), db.Text(t.Reason),
			db.Time(t.Created), ended, db.Text(t.Supersedes), payload).Scan(&id)
		if changed, err = db.Found(err); err != nil {
			return err
		}
		if changed {
			if t.State == Queued {
				if err := s.enqueue(ctx, tx, id, t.Class); err != nil {
					return err
				}
			}
			// In one order, so that two decisions do not wait for each other.
			older := slices.Compact(slices.Sorted(slices.Values(d.Supersede)))
			for _, other := range older {
				if other = db.Text(other); other == key {
					continue
				}
				_, err := tx.ExecContext(ctx, `
					UPDATE tasks SET state = 'superseded', reason = $2, ended = $3
					WHERE task_key = $1 AND state IN ('held', 'queued', 'running')`, other, "by "+key, db.Time(now))
				if err != nil {
					return err
				}
			}
		}
		kept, err = s.task(ctx, tx, `task_key = $1`, key)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return kept, changed, nil
}

// enqueue puts a job for a task into the queue.
func (s *Store) enqueue(ctx context.Context, tx *sql.Tx, id int64, class string) error {
	r, err := s.queue.InsertTx(ctx, tx, EvaluateArgs{Task: id}, &river.InsertOpts{Queue: class})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE tasks SET job = $2 WHERE id = $1`, id, r.Job.ID)
	return err
}

// locked gives a task without its payload, which nobody else changes before tx ends.
func (s *Store) locked(ctx context.Context, tx *sql.Tx, id int64) (*Task, error) {
	t, err := scanTask(tx.QueryRowContext(ctx, `SELECT `+taskColumns+` FROM tasks WHERE id = $1`+s.db.ForUpdate, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNoTask
	}
	return t, err
}

// change does f to a task that is in one of some states.
func (s *Store) change(ctx context.Context, what string, id int64, from []State, f func(*sql.Tx, *Task) error) error {
	return s.do(ctx, fmt.Sprintf("%s task %d", what, id), func(tx *sql.Tx) error {
		t, err := s.locked(ctx, tx, id)
		if err != nil {
			return err
		}
		if !slices.Contains(from, t.State) {
			return fmt.Errorf("%w: it is %s", ErrState, t.State)
		}
		return f(tx, t)
	})
}

// Release queues a held task.
func (s *Store) Release(ctx context.Context, id int64, why string) error {
	return s.change(ctx, "release", id, []State{Held}, func(tx *sql.Tx, t *Task) error {
		if _, err := tx.ExecContext(ctx, `UPDATE tasks SET state = 'queued', reason = $2, due = '' WHERE id = $1`, id, db.Text(why)); err != nil {
			return err
		}
		return s.enqueue(ctx, tx, id, t.Class)
	})
}

// End ends a task that is held, queued or running: it becomes stopped,
// superseded or ignored. A worker learns of it with his next Beat.
func (s *Store) End(ctx context.Context, id int64, to State, why string) error {
	if to != Stopped && to != Superseded && to != Ignored {
		return s.fail(fmt.Sprintf("end task %d", id), fmt.Errorf("%w: it cannot be ended as %q", ErrState, to))
	}
	return s.change(ctx, "end", id, []State{Held, Queued, Running}, func(tx *sql.Tx, t *Task) error {
		_, err := tx.ExecContext(ctx, `UPDATE tasks SET state = $2, reason = $3, ended = $4 WHERE id = $1`, id, string(to), db.Text(why), db.Time(s.now()))
		return err
	})
}

// Retry queues a failed or stopped task again, with no attempts and deaths counted.
func (s *Store) Retry(ctx context.Context, id int64) error {
	return s.change(ctx, "retry", id, []State{Failed, Stopped}, func(tx *sql.Tx, t *Task) error {
		if _, err := tx.ExecContext(ctx, `
			UPDATE tasks SET state = 'queued', reason = '', ended = '', progress = '', attempts = 0, deaths = 0, due = '' WHERE id = $1`, id); err != nil {
			return err
		}
		return s.enqueue(ctx, tx, id, t.Class)
	})
}

// fetched is how long a job may be with a worker before its task is claimed.
const fetched = time.Minute

// Requeue puts a job into the queue for each running task whose lease has
// passed and each queued one that is due and has no job to be taken: the job was
// lost with a worker, or was to come later. It gives the ids of these tasks. It
// is to be called every few seconds.
func (s *Store) Requeue(ctx context.Context, now time.Time) ([]int64, error) {
	type lost struct {
		id, job      int64
		class, state string
		fetched      bool // the job is with a worker, or was
	}
	var ids []int64
	err := s.do(ctx, "queue tasks again", func(tx *sql.Tx) error {
		ids = nil
		if err := s.db.Serialise(ctx, tx, "requeue"); err != nil {
			return err
		}
		var all []lost
		err := db.Query(ctx, tx, func(r db.Row) error {
			var l lost
			err := r.Scan(&l.id, &l.job, &l.class, &l.state, &l.fetched)
			all = append(all, l)
			return err
		}, `
			SELECT t.id, t.job, t.class, t.state, coalesce(j.state IN ('running', 'retryable'), FALSE)
			FROM tasks AS t LEFT JOIN river_job AS j ON j.id = t.job
			WHERE (t.state = 'running' AND (t.lease < $1 OR t.lease > $2) OR t.state = 'queued' AND (t.due <= $1 OR t.due > $2))
				AND (j.id IS NULL OR j.state NOT IN ('available', 'scheduled', 'pending'))
			ORDER BY t.id`, db.Time(now), db.Time(now.Add(db.Far)))
		if err != nil {
			return err
		}
		for _, l := range all {
			if l.fetched && l.state == string(Queued) {
				job, err := s.queue.JobGetTx(ctx, tx, l.job)
				if err != nil && !errors.Is(err, rivertype.ErrNotFound) {
					return err
				}
				if err == nil && job.AttemptedAt != nil && now.Sub(*job.AttemptedAt) < fetched {
					continue
				}
			}
			if err := s.enqueue(ctx, tx, l.id, l.class); err != nil {
				return err
			}
			ids = append(ids, l.id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
