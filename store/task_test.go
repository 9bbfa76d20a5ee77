package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/riverqueue/river"

	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/storetest"
)

// clock is a time that a test sets.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

// at gives the store a clock that stands at noon.
func at(s *store.Store) *clock {
	c := &clock{noon}
	s.SetClock(c.now)
	return c
}

// decide has a task decided on.
func decide(t testing.TB, s *store.Store, task store.Task, supersede ...string) *store.Task {
	t.Helper()
	kept, fresh, err := s.Decide(context.Background(), store.Decision{Task: task, Supersede: supersede})
	if err != nil || !fresh {
		t.Fatalf("decide %s: fresh %v, %v", task.Key, fresh, err)
	}
	return kept
}

// jobs counts the jobs that are there to be taken for a class.
func jobs(t *testing.T, s *store.Store, class string) int {
	t.Helper()
	var n int
	err := s.DB().QueryRowContext(t.Context(), `SELECT count(*) FROM river_job WHERE state = 'available' AND queue = $1 AND kind = 'evaluate'`, class).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lose marks all jobs as if workers had taken them and died.
func lose(t *testing.T, s *store.Store) {
	t.Helper()
	if _, err := s.DB().ExecContext(t.Context(), `UPDATE river_job SET state = 'running', attempted_at = CURRENT_TIMESTAMP`); err != nil {
		t.Fatal(err)
	}
}

func stateOf(t *testing.T, s *store.Store, id int64) store.State {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task.State
}

func TestDecide(t *testing.T) { storetest.Each(t, testDecide) }

func testDecide(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	payload := store.EncodePayload(store.MailPayload{Mode: "list"})
	task := store.Task{
		Key: "v1", Kind: store.KindMail, Project: "kit", Class: "x86", List: "kit@lists.example.org", Ref: "cover@example.org",
		Title: "a \xffb\x00", Author: mbox.Address{Name: "Ada", Email: "Ada@Example.org"}, Version: 1, Content: "c1", Payload: payload,
		State: store.Incomplete, Reason: "2/3 is missing",
	}
	got := decide(t, s, task)
	want := task
	want.ID, want.Title, want.Author.Email, want.Created, want.Ended = got.ID, "a \ufffdb", "ada@example.org", noon, noon
	if d := cmp.Diff(&want, got); d != "" {
		t.Errorf("task (-want +got):\n%s", d)
	}
	if n := jobs(t, s, "x86"); n != 0 {
		t.Errorf("%d jobs of an incomplete series", n)
	}
	// The same again, the missing patch, and the same decision after a restart.
	if _, fresh, err := s.Decide(ctx, store.Decision{Task: task}); fresh || err != nil {
		t.Errorf("the same again: %v, %v", fresh, err)
	}
	c.Time = noon.Add(time.Hour)
	task.Content, task.State, task.Reason, task.Title = "c2", store.Queued, "", "whole"
	complete, fresh, err := s.Decide(ctx, store.Decision{Task: task})
	if err != nil || !fresh || complete.ID != got.ID || complete.State != store.Queued || complete.Title != "whole" || !complete.Ended.IsZero() {
		t.Errorf("completed: %v, %v, %+v", fresh, err, complete)
	}
	if n := jobs(t, s, "x86"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	task.Content, task.State = "c3", store.Held
	if again, fresh, err := s.Decide(ctx, store.Decision{Task: task}); fresh || err != nil || again.State != store.Queued || again.Content != "c2" {
		t.Errorf("once it is queued nothing changes it: %v, %v, %+v", fresh, err, again)
	}
	if n := jobs(t, s, "x86"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	if byKey, err := s.TaskByKey(ctx, "v1"); err != nil || byKey.ID != got.ID || string(byKey.Payload) != string(payload) {
		t.Errorf("by key: %+v, %v", byKey, err)
	}
	for _, bad := range []store.Task{
		{State: store.Queued}, {Key: "r", State: store.Running}, {Key: "d", State: store.Done}, {Key: "e"}, {Key: "n", State: "nonsense"},
		{Key: "c", State: store.Queued, Class: "X86"}, {Key: "c", State: store.Queued, Class: "a b"}, {Key: "c", State: store.Queued, Class: strings.Repeat("a", 65)},
	} {
		if kept, fresh, err := s.Decide(ctx, store.Decision{Task: bad}); err == nil || fresh || kept != nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	for _, err := range []error{
		func() error { _, err := s.Task(ctx, 999); return err }(),
		func() error { _, err := s.TaskByKey(ctx, "none"); return err }(),
		func() error { _, err := s.Claim(ctx, 999, "w", time.Minute); return err }(),
		func() error { _, err := s.Beat(ctx, 999, 1, time.Minute, ""); return err }(),
		s.Release(ctx, 999, ""), s.Retry(ctx, 999), s.End(ctx, 999, store.Stopped, ""), s.HandBack(ctx, 999, 1, 0, ""),
		s.Finish(ctx, 999, 1, store.Done, "", "", nil, nil),
	} {
		if !errors.Is(err, store.ErrNoTask) {
			t.Errorf("of a task that is not there: %v", err)
		}
	}
}

func TestSupersede(t *testing.T) { storetest.Each(t, testSupersede) }

func testSupersede(t *testing.T, s *store.Store) {
	ctx := t.Context()
	at(s)
	ids := map[string]int64{}
	for _, state := range []store.State{store.Held, store.Queued, store.Ignored, store.Incomplete, store.Failed, store.Stopped} {
		ids[string(state)] = decide(t, s, store.Task{Key: string(state), State: state}).ID
	}
	running := decide(t, s, store.Task{Key: "running", State: store.Queued})
	claimed, err := s.Claim(ctx, running.ID, "w", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ids["running"] = running.ID
	older := []string{"running", "held", "queued", "ignored", "incomplete", "failed", "stopped", "v2", "nobody", "held"}
	v2 := decide(t, s, store.Task{Key: "v2", State: store.Queued, Supersedes: "held"}, older...)
	if v2.State != store.Queued {
		t.Errorf("it superseded itself: %s", v2.State)
	}
	want := map[string]store.State{
		"running": store.Superseded, "held": store.Superseded, "queued": store.Superseded,
		"ignored": store.Ignored, "incomplete": store.Incomplete, "failed": store.Failed, "stopped": store.Stopped,
	}
	for key, id := range ids {
		task, err := s.Task(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if task.State != want[key] || task.Ended.IsZero() || want[key] == store.Superseded && task.Reason != "by v2" {
			t.Errorf("%s is %s (%s), ended %v", key, task.State, task.Reason, task.Ended)
		}
	}
	// The worker learns of it with his next beat, and cannot write any more.
	if state, err := s.Beat(ctx, running.ID, claimed.Fence, time.Hour, "1/2"); state != store.Superseded || err != nil {
		t.Errorf("beat: %s, %v", state, err)
	}
	letter := store.Letter{Key: "l", To: []store.Recipient{{Address: "a@example.org"}}}
	if err := s.Finish(ctx, running.ID, claimed.Fence, store.Done, "", "e", []store.Letter{letter}, nil); !errors.Is(err, store.ErrFence) {
		t.Errorf("finish: %v", err)
	}
	if letters, err := s.Letters(ctx); err != nil || len(letters) != 0 {
		t.Errorf("letters of a superseded task: %v, %v", letters, err)
	}
	// Taken again by hand, it is not superseded by the old decision once more.
	if err := s.Retry(ctx, ids["stopped"]); err != nil {
		t.Fatal(err)
	}
	if _, fresh, err := s.Decide(ctx, store.Decision{Task: store.Task{Key: "v2", State: store.Queued}, Supersede: older}); fresh || err != nil {
		t.Errorf("the same decision: %v, %v", fresh, err)
	}
	if got := stateOf(t, s, ids["stopped"]); got != store.Queued {
		t.Errorf("retried and then %s", got)
	}
}

// TestTaskMoves has every operation tried in every state.
func TestTaskMoves(t *testing.T) { storetest.Each(t, testTaskMoves) }

func testTaskMoves(t *testing.T, s *store.Store) {
	ctx := t.Context()
	at(s)
	const fence = 1
	type operation struct {
		name  string
		do    func(id int64) error
		moves map[store.State]store.State // where it is allowed, and what comes of it
		error error                       // elsewhere
	}
	operations := []operation{
		{"release", func(id int64) error { return s.Release(ctx, id, "by hand") }, map[store.State]store.State{store.Held: store.Queued}, store.ErrState},
		{"stop", func(id int64) error { return s.End(ctx, id, store.Stopped, "by hand") },
			map[store.State]store.State{store.Held: store.Stopped, store.Queued: store.Stopped, store.Running: store.Stopped}, store.ErrState},
		{"end as done", func(id int64) error { return s.End(ctx, id, store.Done, "") }, nil, store.ErrState},
		{"retry", func(id int64) error { return s.Retry(ctx, id) },
			map[store.State]store.State{store.Failed: store.Queued, store.Stopped: store.Queued}, store.ErrState},
		{"claim", func(id int64) error { _, err := s.Claim(ctx, id, "w", time.Minute); return err },
			map[store.State]store.State{store.Queued: store.Running}, store.ErrNotQueued},
		{"hand back", func(id int64) error { return s.HandBack(ctx, id, fence, 0, "going down") },
			map[store.State]store.State{store.Running: store.Queued}, store.ErrFence},
		{"finish", func(id int64) error { return s.Finish(ctx, id, fence, store.Failed, "no disk", "", nil, nil) },
			map[store.State]store.State{store.Running: store.Failed}, store.ErrFence},
		{"finish as superseded", func(id int64) error { return s.Finish(ctx, id, fence, store.Superseded, "", "", nil, nil) }, nil, store.ErrState},
	}
	states := []store.State{store.Held, store.Queued, store.Running, store.Done, store.Failed, store.Stopped, store.Superseded, store.Ignored, store.Incomplete}
	for _, op := range operations {
		for _, from := range states {
			name := fmt.Sprintf("%s %s", op.name, from)
			start := from
			if from == store.Running || from == store.Done {
				start = store.Queued
			}
			id := decide(t, s, store.Task{Key: name, State: start, Class: "moves"}).ID
			if start != from {
				if _, err := s.Claim(ctx, id, "w", time.Minute); err != nil {
					t.Fatal(err)
				}
			}
			if from == store.Done {
				if err := s.Finish(ctx, id, fence, store.Done, "", "e", nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			before := jobs(t, s, "moves")
			err := op.do(id)
			to, legal := op.moves[from]
			switch {
			case legal && err != nil:
				t.Errorf("%s: %v", name, err)
			case !legal && !errors.Is(err, op.error):
				t.Errorf("%s: %v, want %v", name, err, op.error)
			case !legal:
				to = from
			}
			if got := stateOf(t, s, id); got != to {
				t.Errorf("%s: it is %s, want %s", name, got, to)
			}
			want := 0
			if legal && to == store.Queued {
				want = 1
			}
			if got := jobs(t, s, "moves") - before; got != want {
				t.Errorf("%s: %d new jobs, want %d", name, got, want)
			}
		}
	}
}

func TestLease(t *testing.T) { storetest.Each(t, testLease) }

func testLease(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	id := decide(t, s, store.Task{Key: "k", State: store.Queued}).ID
	first, err := s.Claim(ctx, id, "one", time.Minute)
	if err != nil || first.Fence != 1 || first.Attempts != 1 || first.Worker != "one" || !first.Lease.Equal(noon.Add(time.Minute)) || !first.Started.Equal(noon) {
		t.Fatalf("claim: %+v, %v", first, err)
	}
	if _, err := s.Claim(ctx, id, "two", time.Minute); !errors.Is(err, store.ErrNotQueued) {
		t.Errorf("claimed twice: %v", err)
	}
	c.Time = noon.Add(50 * time.Second)
	if state, err := s.Beat(ctx, id, 1, time.Minute, "round 3"); state != store.Running || err != nil {
		t.Errorf("beat: %s, %v", state, err)
	}
	c.Time = noon.Add(100 * time.Second) // past the first lease, not past the renewed one
	if _, err := s.Claim(ctx, id, "two", time.Minute); !errors.Is(err, store.ErrNotQueued) {
		t.Errorf("claimed before the lease has passed: %v", err)
	}
	if task, err := s.Task(ctx, id); err != nil || task.Progress != "round 3" {
		t.Errorf("progress: %+v, %v", task, err)
	}
	c.Time = noon.Add(10 * time.Minute) // the first is silent
	second, err := s.Claim(ctx, id, "two", time.Minute)
	if err != nil || second.Fence != 2 || second.Attempts != 1 || second.Deaths != 1 || second.Worker != "two" || second.Progress != "" {
		t.Fatalf("claim of a lost task: %+v, %v", second, err)
	}
	// The first comes back: whatever he does has no effect.
	if _, err := s.Beat(ctx, id, 1, time.Hour, "round 9"); !errors.Is(err, store.ErrFence) {
		t.Errorf("beat of the first: %v", err)
	}
	letters := []store.Letter{{Key: "k", To: []store.Recipient{{Address: "a@example.org"}}, Body: []byte("first")}}
	if err := s.Finish(ctx, id, 1, store.Done, "", "e1", letters, &store.Notice{Repo: "o/r", Number: 1}); !errors.Is(err, store.ErrFence) {
		t.Errorf("finish of the first: %v", err)
	}
	if err := s.HandBack(ctx, id, 1, 0, ""); !errors.Is(err, store.ErrFence) {
		t.Errorf("hand back of the first: %v", err)
	}
	letters[0].Body = []byte("second")
	if err := s.Finish(ctx, id, 2, store.Done, "as measured", "e2", letters, nil); err != nil {
		t.Error(err)
	}
	if err := s.Finish(ctx, id, 2, store.Done, "", "e2", letters, nil); !errors.Is(err, store.ErrFence) {
		t.Errorf("finished twice: %v", err)
	}
	task, err := s.Task(ctx, id)
	if err != nil || task.State != store.Done || task.Evaluation != "e2" || task.Reason != "as measured" || !task.Ended.Equal(c.Time) {
		t.Errorf("in the end: %+v, %v", task, err)
	}
	l, err := s.NextLetter(ctx, c.Time)
	if err != nil || l == nil || string(l.Body) != "second" || l.Task != id {
		t.Errorf("letter: %+v, %v", l, err)
	}
	if n, err := s.NextNotice(ctx, c.Time); n != nil || err != nil {
		t.Errorf("notice of the first: %+v, %v", n, err)
	}
}

func TestHandBack(t *testing.T) { storetest.Each(t, testHandBack) }

func testHandBack(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	id := decide(t, s, store.Task{Key: "k", State: store.Queued}).ID
	claim := func() int64 {
		t.Helper()
		task, err := s.Claim(ctx, id, "w", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return task.Fence
	}
	if err := s.HandBack(ctx, id, claim(), 0, "going down"); err != nil {
		t.Fatal(err)
	}
	task, err := s.Task(ctx, id)
	if err != nil || task.Attempts != 0 || task.State != store.Queued || task.Worker != "" || !task.Lease.IsZero() || task.Reason != "going down" {
		t.Errorf("after a shutdown: %+v, %v", task, err)
	}
	if n := jobs(t, s, "default"); n != 2 {
		t.Errorf("%d jobs, want the old one and a new one", n)
	}
	if err := s.HandBack(ctx, id, claim(), time.Hour, "mirror is away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(ctx, id, "w", time.Minute); !errors.Is(err, store.ErrNotQueued) {
		t.Errorf("claimed before it is due: %v", err)
	}
	if ids, err := s.Requeue(ctx, noon.Add(59*time.Minute)); err != nil || len(ids) != 0 {
		t.Errorf("queued before it is due: %v, %v", ids, err)
	}
	c.Time = noon.Add(time.Hour)
	if ids, err := s.Requeue(ctx, c.Time); err != nil || !slices.Equal(ids, []int64{id}) {
		t.Errorf("queued when it is due: %v, %v", ids, err)
	}
	if task, err := s.Claim(ctx, id, "w", time.Minute); err != nil || task.Attempts != 2 {
		t.Errorf("the attempt with a fault counts: %+v, %v", task, err)
	}
}

func TestBury(t *testing.T) { storetest.Each(t, testBury) }

func testBury(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	id := decide(t, s, store.Task{Key: "k", State: store.Queued}).ID
	for n := 1; n <= 3; n++ {
		task, err := s.Claim(ctx, id, "w", time.Hour)
		if err != nil || task.Attempts != 1 || task.Deaths != n-1 {
			t.Fatalf("claim %d: %+v, %v", n, task, err)
		}
		if err := s.Bury(ctx, id, task.Fence-1, 0, "another's"); !errors.Is(err, store.ErrFence) {
			t.Errorf("buried under another fence: %v", err)
		}
		delay := time.Duration(n-1) * time.Minute
		if err := s.Bury(ctx, id, task.Fence, delay, "its worker was killed"); err != nil {
			t.Fatal(err)
		}
		if delay > 0 {
			if _, err := s.Claim(ctx, id, "w", time.Minute); !errors.Is(err, store.ErrNotQueued) {
				t.Errorf("claimed before it is due: %v", err)
			}
		}
		c.Time = c.Time.Add(delay)
	}
	task, err := s.Task(ctx, id)
	if err != nil || task.State != store.Queued || task.Attempts != 0 || task.Deaths != 3 || task.Reason != "its worker was killed" || task.Worker != "" {
		t.Errorf("after three deaths: %+v, %v", task, err)
	}
	if _, err := s.Claim(ctx, id, "w", time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := s.End(ctx, id, store.Stopped, "by hand"); err != nil {
		t.Fatal(err)
	}
	if err := s.Retry(ctx, id); err != nil {
		t.Fatal(err)
	}
	if task, err := s.Task(ctx, id); err != nil || task.Deaths != 0 {
		t.Errorf("retried: %+v, %v", task, err)
	}
}

func TestRequeue(t *testing.T) { storetest.Each(t, testRequeue) }

func testRequeue(t *testing.T, s *store.Store) {
	ctx := t.Context()
	real := time.Now() // the queue's own times are the machine's
	again := func(now time.Time, want ...int64) {
		t.Helper()
		if ids, err := s.Requeue(ctx, now); err != nil || !slices.Equal(ids, want) {
			t.Errorf("queued again: %v, %v, want %v", ids, err, want)
		}
	}
	queued := decide(t, s, store.Task{Key: "queued", State: store.Queued}).ID
	running := decide(t, s, store.Task{Key: "running", State: store.Queued}).ID
	held := decide(t, s, store.Task{Key: "held", State: store.Held}).ID
	if _, err := s.Claim(ctx, running, "w", time.Hour); err != nil {
		t.Fatal(err)
	}
	again(real) // all have jobs
	lose(t, s)
	again(real.Add(time.Second))            // may be claimed in a moment
	again(real.Add(10*time.Minute), queued) // its worker died before he claimed it
	again(real.Add(10 * time.Minute))       // once
	again(real.Add(2*time.Hour), running)   // its worker died with it
	again(real.Add(2 * time.Hour))          // once
	if _, err := s.DB().ExecContext(ctx, `DELETE FROM river_job`); err != nil {
		t.Fatal(err)
	}
	again(real.Add(time.Second), queued)               // an administrator emptied the queue
	again(real.Add(2*time.Hour), running)              //
	if got := stateOf(t, s, held); got != store.Held { // nobody starts that
		t.Errorf("held is %s", got)
	}
}

// Of several workers who want the same tasks each task has exactly one.
func TestClaimAtOnce(t *testing.T) { storetest.EachURL(t, testClaimAtOnce) }

func testClaimAtOnce(t *testing.T, url string) {
	const tasks, workers = 20, 4
	s := storetest.OpenURL(t, url)
	var ids []int64
	for i := range tasks {
		ids = append(ids, decide(t, s, store.Task{Key: fmt.Sprint(i), State: store.Queued}).ID)
	}
	var mu sync.Mutex
	claimed := map[int64]int{}
	var wg sync.WaitGroup
	for w := range workers {
		own := storetest.OpenURL(t, url)
		wg.Go(func() {
			for _, id := range ids {
				_, err := own.Claim(t.Context(), id, fmt.Sprint(w), time.Hour)
				switch {
				case err == nil:
					mu.Lock()
					claimed[id]++
					mu.Unlock()
				case !errors.Is(err, store.ErrNotQueued):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if claimed[id] != 1 {
			t.Errorf("task %d has %d workers", id, claimed[id])
		}
		if task, err := s.Task(t.Context(), id); err != nil || task.Fence != 1 {
			t.Errorf("%+v, %v", task, err)
		}
	}
}

// Two versions that supersede each other at once do not lock each other out.
func TestDecideAtOnce(t *testing.T) { storetest.EachURL(t, testDecideAtOnce) }

func testDecideAtOnce(t *testing.T, url string) {
	const n = 8
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprint("k", i))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	fresh := map[string]int{}
	for w := range 4 {
		s := storetest.OpenURL(t, url)
		wg.Go(func() {
			for i := range n {
				key := keys[(i*(w+1)+w)%n]
				if w%2 == 1 {
					key = keys[n-1-i]
				}
				_, ok, err := s.Decide(t.Context(), store.Decision{Task: store.Task{Key: key, State: store.Queued}, Supersede: keys})
				if err != nil {
					t.Error(err)
				}
				if ok {
					mu.Lock()
					fresh[key]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for key, n := range fresh {
		if n != 1 {
			t.Errorf("%s was new %d times", key, n)
		}
	}
	tasks, err := storetest.OpenURL(t, url).Tasks(t.Context(), store.TaskFilter{})
	if err != nil || len(tasks) != n {
		t.Errorf("%d tasks, %v", len(tasks), err)
	}
}

func TestTasks(t *testing.T) { storetest.Each(t, testTasks) }

func testTasks(t *testing.T, s *store.Store) {
	c := at(s)
	for i, task := range []store.Task{
		{Key: "a", Kind: store.KindMail, Project: "p", List: "l@x", Ref: "a@x", Author: mbox.Address{Email: "Ada@x"}, State: store.Held},
		{Key: "b", Kind: store.KindPull, Project: "p", Ref: "o/r#1", Author: mbox.Address{Email: "bob"}, State: store.Queued, Payload: []byte("large")},
		{Key: "c", Kind: store.KindMail, Project: "q", List: "l@x", Ref: "c@x", Author: mbox.Address{Email: "ada@X"}, State: store.Ignored},
		{Key: "d", Kind: store.KindMail, Project: "q", List: "m@x", Ref: "it's\x00", Author: mbox.Address{Email: "eve@x"}, State: store.Queued},
	} {
		c.Time = noon.Add(time.Duration(i) * time.Hour)
		decide(t, s, task)
	}
	all, err := s.Tasks(t.Context(), store.TaskFilter{})
	if err != nil || len(all) != 4 {
		t.Fatal(all, err)
	}
	for _, tc := range []struct {
		name   string
		filter store.TaskFilter
		want   string
	}{
		{"all", store.TaskFilter{}, "d c b a"},
		{"states", store.TaskFilter{States: []store.State{store.Held, store.Queued}}, "d b a"},
		{"kind", store.TaskFilter{Kind: store.KindPull}, "b"},
		{"project", store.TaskFilter{Project: "q"}, "d c"},
		{"author", store.TaskFilter{Author: "ADA@x"}, "c a"},
		{"list", store.TaskFilter{List: "m@x"}, "d"},
		{"ref", store.TaskFilter{Ref: "it's\x00"}, "d"},
		{"since", store.TaskFilter{Since: noon.Add(2 * time.Hour)}, "d c"},
		{"limit", store.TaskFilter{Limit: 2}, "d c"},
		{"before", store.TaskFilter{Before: all[1].ID}, "b a"},
		{"together", store.TaskFilter{Kind: store.KindMail, Project: "p", States: []store.State{store.Held}, Since: noon, Author: "ada@x", Before: all[0].ID, Limit: 9}, "a"},
		{"none", store.TaskFilter{Project: "'; DROP TABLE tasks; --"}, ""},
	} {
		tasks, err := s.Tasks(t.Context(), tc.filter)
		var keys []string
		for _, task := range tasks {
			keys = append(keys, task.Key)
			if task.Payload != nil {
				t.Errorf("%s: %s has a payload", tc.name, task.Key)
			}
		}
		if got := strings.Join(keys, " "); got != tc.want || err != nil {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
}

func TestPayload(t *testing.T) {
	mail := store.MailPayload{
		Series:     mbox.Series{MessageID: "a@x", Patches: []mbox.Patch{{N: 1, Subject: "s", Diff: []byte("diff\x00\xff")}}, Supersedes: ptr("b@x"), Base: &mbox.Base{Commit: "c"}},
		AtHand:     []mbox.Series{{MessageID: "b@x"}},
		Thread:     store.Thread{MessageID: "a@x", References: []string{"r@x"}, Date: noon, Author: mbox.Address{Name: "A", Email: "a@x"}},
		Benchmarks: []string{"sort"}, Mode: "list", Quiet: true, Previous: "k",
	}
	var mailBack store.MailPayload
	if err := store.DecodePayload(store.EncodePayload(mail), &mailBack); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(mail, mailBack, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("mail (-want +got):\n%s", d)
	}
	pull := store.PullPayload{Repo: "o/r", Number: 12, Head: "h", Base: "b", BaseRef: "main", Installation: 9, Benchmarks: []string{"x"}}
	var pullBack store.PullPayload
	if err := store.DecodePayload(store.EncodePayload(pull), &pullBack); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(pull, pullBack); d != "" {
		t.Errorf("pull (-want +got):\n%s", d)
	}
	whole := store.EncodePayload(mail)
	for name, bad := range map[string][]byte{"nil": nil, "text": []byte("hello"), "cut": whole[:len(whole)/2], "empty gzip": store.EncodePayload(0)} {
		if err := store.DecodePayload(bad, new(store.MailPayload)); err == nil {
			t.Errorf("%s was decoded", name)
		}
	}
}

// FuzzDecodePayload has damaged payloads give an error and nothing worse.
func FuzzDecodePayload(f *testing.F) {
	f.Add(store.EncodePayload(store.MailPayload{Mode: "list", Series: mbox.Series{Patches: []mbox.Patch{{Diff: []byte("x")}}}}))
	f.Add(store.EncodePayload(store.PullPayload{Repo: "o/r"}))
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, b []byte) {
		var p store.MailPayload
		if err := store.DecodePayload(b, &p); err == nil {
			var again store.MailPayload
			if err := store.DecodePayload(store.EncodePayload(p), &again); err != nil {
				t.Errorf("decoded, but not again: %v", err)
			}
		}
	})
}

// evaluator hands the tasks of its jobs to a channel.
type evaluator struct {
	river.WorkerDefaults[store.EvaluateArgs]
	tasks chan int64
}

func (e *evaluator) Work(ctx context.Context, job *river.Job[store.EvaluateArgs]) error {
	e.tasks <- job.Args.Task
	return nil
}

// A task that was decided on reaches the worker of its class, and no other.
func TestQueue(t *testing.T) { storetest.Each(t, testQueue) }

func testQueue(t *testing.T, s *store.Store) {
	ctx := t.Context()
	other := decide(t, s, store.Task{Key: "other", State: store.Queued, Class: "arm"}).ID
	mine := decide(t, s, store.Task{Key: "mine", State: store.Queued, Class: "x86"}).ID
	e := &evaluator{tasks: make(chan int64, 9)}
	workers := river.NewWorkers()
	river.AddWorker(workers, e)
	client, err := s.River(&river.Config{
		Queues: map[string]river.QueueConfig{"x86": {MaxWorkers: 1}}, Workers: workers, FetchPollInterval: 100 * time.Millisecond, LeaderElectionDisabled: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	later := decide(t, s, store.Task{Key: "later", State: store.Queued, Class: "x86"}).ID
	got := []int64{<-e.tasks, <-e.tasks}
	if want := []int64{mine, later}; !slices.Equal(got, want) {
		t.Errorf("tasks %v came, want %v and not %d", got, want, other)
	}
	if err := client.Stop(context.WithoutCancel(ctx)); err != nil {
		t.Error(err)
	}
	if n := jobs(t, s, "arm"); n != 1 {
		t.Errorf("%d jobs for the other class", n)
	}
}

// BenchmarkClaimFinish has tasks decided on, claimed and finished with a letter.
func BenchmarkClaimFinish(b *testing.B) {
	each(b, func(b *testing.B, open func() *store.Store) {
		ctx := context.Background()
		s := open()
		body := []byte(strings.Repeat("a line of the report\n", 200))
		n := 0
		for b.Loop() {
			key := fmt.Sprint(n)
			n++
			task := decide(b, s, store.Task{Key: key, State: store.Queued})
			claimed, err := s.Claim(ctx, task.ID, "w", time.Minute)
			if err != nil {
				b.Fatal(err)
			}
			letter := store.Letter{Key: key, To: []store.Recipient{{Address: "a@example.org"}}, Body: body}
			if err := s.Finish(ctx, task.ID, claimed.Fence, store.Done, "", "e", []store.Letter{letter}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
