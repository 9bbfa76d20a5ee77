package work

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"patchbench/bot/eval"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/storetest"
)

// world is a store, a configuration and what happens, in order.
type world struct {
	t    *testing.T
	st   *store.Store
	cfg  *service.Config
	poll time.Duration // of workers
	mu   sync.Mutex
	told []string
	// evaluate is what Evaluate does after it was noted; nil gives an evaluation
	// that found a change.
	evaluate func(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error)
	options  []eval.Options // of each call
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, storetest.Open(t))
}

func newWorldOn(t *testing.T, st *store.Store) *world {
	t.Helper()
	w := &world{t: t, st: st, poll: 4 * time.Second}
	w.cfg = &service.Config{
		Projects: []service.Project{{Name: "kit", Repo: "/nowhere/kit.git", Branch: "main", Budget: 4 * time.Minute, Margin: 0.02, Class: "x86",
			Suite: "/etc/kit.toml", SuiteText: []byte("[[benchmark]]\n")}},
		Worker: service.Worker{Class: "x86", Slots: 1, WorkDir: filepath.Join(t.TempDir(), "work"),
			Limits: service.Limits{Memory: 1 << 30, Disk: 2 << 30, Output: 3 << 20, Processes: 99, Timeout: 5 * time.Minute}},
		Web:  &service.Web{URL: "https://bench.example.org"},
		SMTP: &service.SMTP{From: mbox.Address{Name: "Patchbench", Email: "bench@example.org"}},
	}
	return w
}

func (w *world) add(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, fmt.Sprintf(format, args...))
}

func (w *world) happened() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.told...)
}

// worker starts one; the function ends it and gives what Run returned.
func (w *world) worker(name string, pulls Pulls) (end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	o := Options{Name: name, Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)), Secret: []byte("a secret for tests"), Evaluate: w.run, Pulls: pulls}
	ended := make(chan error, 1)
	worker := New(w.st, func() *service.Config { return w.cfg }, o)
	worker.poll = w.poll
	go func() { ended <- worker.Run(ctx) }()
	return func() error { cancel(); return <-ended }
}

// run stands in for eval.Run.
func (w *world) run(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
	what := in.From + ".." + in.To
	if in.Series != nil {
		what = in.Series.MessageID
	}
	verb := "begins"
	if o.Resume != "" {
		verb = "goes on"
	}
	w.add("%s %s", what, verb)
	w.mu.Lock()
	w.options = append(w.options, o)
	w.mu.Unlock()
	if w.evaluate != nil {
		return w.evaluate(ctx, in, o)
	}
	return w.keep(in, o, store.StoppedDecided)
}

// keep gives an evaluation that found a change, and keeps it as eval.Run does.
func (w *world) keep(in eval.Input, o eval.Options, stopped string) (*store.Evaluation, error) {
	e := cases.All["regression-of-13"]().Evaluation
	if before, err := w.st.Evaluation(context.Background(), o.Resume); err == nil {
		e.Created = before.Created
	} else {
		e.Created = o.Now().UTC().Truncate(time.Second)
	}
	e.ID, e.Seed, e.Stopped = o.ID+o.Resume, o.Seed, stopped
	return e, w.st.Save(context.Background(), e)
}

// untilEnd is an evaluation that measures until its context ends.
func (w *world) untilEnd(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
	o.Progress.Stage("measure", 80)
	o.Progress.Done(12, "hash", time.Minute)
	<-ctx.Done()
	w.add("%s is interrupted", in.Series.MessageID)
	return w.keep(in, o, store.StoppedInterrupted)
}

// decide queues a series.
func (w *world) decide(key string, supersede ...string) *store.Task {
	w.t.Helper()
	p := store.MailPayload{Mode: "list", Series: mbox.Series{MessageID: key, Subject: "hash: faster", Complete: true}, Branch: "next",
		Benchmarks: []string{"hash", "a.b"}, Base: "v1.0",
		Thread: store.Thread{MessageID: key + "@example.org", Subject: "[PATCH] hash: faster",
			Author: mbox.Address{Name: "Some Author", Email: "one@example.org"}, List: "kit@lists.example.org", Date: time.Now()}}
	return w.queue(store.KindMail, key, store.EncodePayload(p), supersede...)
}

func (w *world) queue(kind, key string, payload []byte, supersede ...string) *store.Task {
	w.t.Helper()
	k := store.Task{Key: key, Kind: kind, Project: "kit", Class: "x86", List: "kit@lists.example.org", Ref: key, Title: "hash: faster",
		Author: mbox.Address{Name: "Some Author", Email: "one@example.org"}, Version: 1, Content: key, Payload: payload,
		State: store.Queued, Created: time.Now().UTC()}
	task, _, err := w.st.Decide(context.Background(), store.Decision{Task: k, Supersede: supersede})
	if err != nil {
		w.t.Fatal(err)
	}
	return task
}

// state gives a task as it is now.
func (w *world) state(id int64) *store.Task {
	w.t.Helper()
	k, err := w.st.Task(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) letters() []store.Letter {
	w.t.Helper()
	l, err := w.st.Letters(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// after lets some time pass, and what it brings about happen.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// noWorkFolders checks that nothing of an evaluation is left on disk.
func (w *world) noWorkFolders() {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.cfg.Worker.WorkDir, "slot-*", "*"))
	if err != nil || len(left) > 0 {
		w.t.Errorf("left after the evaluation: %v, %v", left, err)
	}
}

// isFolder says that there is an empty folder.
func isFolder(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}
