package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"patchbench/store/db"
)

// Claim takes a task for a worker until the lease passes: a queued one that is
// due, or a running one whose lease has passed: its worker is taken for dead. Its
// Fence is one higher then, and its Attempts or its Deaths. Any other task gives
// ErrNotQueued.
func (s *Store) Claim(ctx context.Context, id int64, worker string, lease time.Duration) (*Task, error) {
	var claimed *Task
	err := s.do(ctx, fmt.Sprintf("claim task %d", id), func(tx *sql.Tx) error {
		now := s.now()
		result, err := tx.ExecContext(ctx, `
			UPDATE tasks SET state = 'running', worker = $2, lease = $3, started = $4, ended = '', reason = '', progress = '',
				fence = fence + 1, attempts = attempts + CASE state WHEN 'running' THEN 0 ELSE 1 END,
				deaths = deaths + CASE state WHEN 'running' THEN 1 ELSE 0 END
			WHERE id = $1 AND (state = 'queued' AND (due <= $4 OR due > $5) OR state = 'running' AND (lease < $4 OR lease > $5))`,
			id, db.Text(worker), db.Time(now.Add(lease)), db.Time(now), db.Time(now.Add(db.Far)))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return err
		}
		if claimed, err = s.task(ctx, tx, `id = $1`, id); err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("%w: it is %s", ErrNotQueued, claimed.State)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// Beat renews the lease of a task that a worker claimed and says what he is
// doing. A fence that is not the task's gives ErrFence, as somebody else has
// claimed it. Otherwise it gives the task's state, and if that is not running
// the worker has to stop: the task was ended.
func (s *Store) Beat(ctx context.Context, id, fence int64, lease time.Duration, progress string) (State, error) {
	var state State
	err := s.do(ctx, fmt.Sprintf("renew the lease of task %d", id), func(tx *sql.Tx) error {
		t, err := s.locked(ctx, tx, id)
		if err != nil {
			return err
		}
		if state = t.State; t.Fence != fence {
			return ErrFence
		}
		if state != Running {
			return nil
		}
		_, err = tx.ExecContext(ctx, `UPDATE tasks SET lease = $2, progress = $3 WHERE id = $1`,
			id, db.Time(s.now().Add(lease)), db.Text(progress))
		return err
	})
	return state, err
}

// claimed does f to a task that is running under this fence.
func (s *Store) claimed(ctx context.Context, what string, id, fence int64, f func(*sql.Tx, *Task) error) error {
	return s.do(ctx, fmt.Sprintf("%s task %d", what, id), func(tx *sql.Tx) error {
		t, err := s.locked(ctx, tx, id)
		if err != nil {
			return err
		}
		if t.State != Running || t.Fence != fence {
			return fmt.Errorf("%w: it is %s", ErrFence, t.State)
		}
		return f(tx, t)
	})
}

// HandBack queues a running task again, to be taken after a delay. With no delay
// the worker had no trouble with it (he is going down), and the attempt does
// not count; with one, its job is put into the queue by Requeue.
func (s *Store) HandBack(ctx context.Context, id, fence int64, delay time.Duration, why string) error {
	return s.claimed(ctx, "hand back", id, fence, func(tx *sql.Tx, t *Task) error {
		if delay <= 0 {
			t.Attempts--
		}
		return s.queueAgain(ctx, tx, t, delay, why)
	})
}

// Bury queues a running task again, to be taken after a delay, whose worker is
// known to be dead: that attempt is counted among the Deaths.
func (s *Store) Bury(ctx context.Context, id, fence int64, delay time.Duration, why string) error {
	return s.claimed(ctx, "take up", id, fence, func(tx *sql.Tx, t *Task) error {
		t.Attempts--
		t.Deaths++
		return s.queueAgain(ctx, tx, t, delay, why)
	})
}

// queueAgain queues a task that was running, with the counts of t.
func (s *Store) queueAgain(ctx context.Context, tx *sql.Tx, t *Task, delay time.Duration, why string) error {
	due := ""
	if delay > 0 {
		due = db.Time(s.now().Add(delay))
	}
	_, err := tx.ExecContext(ctx, `
			UPDATE tasks SET state = 'queued', reason = $2, due = $3, attempts = $4, deaths = $5, worker = '', lease = '', progress = '', job = 0
			WHERE id = $1`, t.ID, db.Text(why), due, t.Attempts, t.Deaths)
	if err != nil || delay > 0 {
		return err
	}
	return s.enqueue(ctx, tx, t.ID, t.Class)
}

// Finish ends a running task and keeps, in the same transaction, the letters
// that it has to send and the notice that it has to put up, if any. A letter
// whose key is there already is passed over. It is done once: by the worker
// whose fence it is, while the task is running; else ErrFence.
func (s *Store) Finish(ctx context.Context, id, fence int64, to State, why, evaluation string, letters []Letter, notice *Notice) error {
	if !slices.Contains([]State{Done, Failed, Stopped, Ignored}, to) {
		return s.fail(fmt.Sprintf("finish task %d", id), fmt.Errorf("%w: it cannot end as %q", ErrState, to))
	}
	return s.claimed(ctx, "finish", id, fence, func(tx *sql.Tx, t *Task) error {
		_, err := tx.ExecContext(ctx, `
			UPDATE tasks SET state = $2, reason = $3, evaluation = $4, ended = $5, lease = '', progress = '' WHERE id = $1`,
			id, string(to), db.Text(why), db.Text(evaluation), db.Time(s.now()))
		if err != nil {
			return err
		}
		for _, l := range letters {
			if l.Key == "" {
				return errors.New("a letter has no key")
			}
			l.Task = id
			if _, err := s.Add(ctx, tx, l); err != nil {
				return fmt.Errorf("letter %s: %w", l.Key, err)
			}
		}
		if notice != nil {
			if err := s.AddNotice(ctx, tx, *notice); err != nil {
				return fmt.Errorf("notice for %s#%d: %w", notice.Repo, notice.Number, err)
			}
		}
		return nil
	})
}
