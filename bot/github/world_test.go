package github

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/store"
	"patchbench/store/storetest"
)

// world is a GitHub with one repository, and a bot that serves it.
type world struct {
	t    *testing.T
	hub  *githubtest.Server
	repo *githubtest.Repo
	st   *store.Store
	cfg  *service.Config
	c    *Client
	me   string // our login

	log      bytes.Buffer
	logMu    sync.Mutex
	delivery int
	polls    bool // no webhook: what happens is asked for
	before   func()
	through  http.RoundTripper // to GitHub, nil for the usual
	heard    chan struct{}     // gets one for each decision in the log, unless it is nil
}

const secret = githubtest.Secret

func (w *world) Write(b []byte) (int, error) {
	if w.heard != nil && bytes.Contains(b, []byte("github: decided")) {
		w.heard <- struct{}{}
	}
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(b)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, hub: githubtest.New(t), st: storetest.Open(t), me: "patchbench-test[bot]"}
	w.repo = w.hub.Repo("Kit/kit")
	w.repo.Allow("maintainer", "write")
	w.repo.Allow("reader", "read")
	w.cfg = w.hub.Config(t.TempDir())
	w.restart()
	t.Cleanup(func() {
		w.logMu.Lock()
		defer w.logMu.Unlock()
		for _, s := range []string{w.hub.Token, "ghs_", secret, "PRIVATE KEY"} {
			if strings.Contains(w.log.String(), s) {
				t.Errorf("the log holds a secret (%.10s...):\n%s", s, w.log.String())
			}
		}
		if t.Failed() {
			t.Logf("log:\n%s", w.log.String())
		}
	})
	return w
}

// token makes the bot one that has a token and is no App.
func (w *world) token() {
	w.cfg.GitHub.AppID, w.cfg.GitHub.Key, w.cfg.GitHub.Token = 0, "", service.Secret(w.hub.Token)
	w.me = w.hub.Login
	w.restart()
}

// restart is the end of the process and a new one.
func (w *world) restart() {
	w.t.Helper()
	c, err := New(func() *service.Config { return w.cfg }, w.st, Options{Now: w.hub.Now, Log: slog.New(slog.NewTextHandler(w, nil)), Transport: w.through})
	if err != nil {
		w.t.Fatal(err)
	}
	w.c = c
}

// post sends an event to the webhook and gives the status of the answer.
func (w *world) post(kind, delivery string, payload any) int {
	w.t.Helper()
	return w.send(githubtest.Event("http://bot.example/", secret, kind, delivery, payload))
}

func (w *world) send(req *http.Request) int {
	rec := httptest.NewRecorder()
	w.c.Webhook().ServeHTTP(rec, req)
	io.Copy(io.Discard, rec.Body)
	return rec.Code
}

// event tells of something new: the webhook, twice, or the next poll.
func (w *world) event(kind string, payload any) {
	w.t.Helper()
	if w.before != nil {
		w.before()
	}
	if w.polls {
		for range 6 { // past faults
			w.c.Poll(w.t.Context())
			w.hub.Advance(10 * time.Minute)
		}
	} else {
		w.delivery++
		for range 2 {
			if status := w.post(kind, fmt.Sprintf("d-%d", w.delivery), payload); status != http.StatusAccepted {
				w.t.Fatalf("event %s: status %d", kind, status)
			}
		}
	}
	w.settle()
}

// settle lets the bot do all that there is to do, however often it has to try.
func (w *world) settle() {
	w.t.Helper()
	for range 60 {
		if err := w.c.WorkOff(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		w.deliver()
		if len(w.c.queue.Waiting()) == 0 && !w.due() {
			return
		}
		w.hub.Advance(10 * time.Minute)
	}
	w.t.Fatalf("not at rest after 60 tries: hints %+v", w.c.queue.Waiting())
}

// deliver delivers what is due now.
func (w *world) deliver() {
	w.t.Helper()
	for range 20 {
		n, err := w.st.NextNotice(w.t.Context(), w.hub.Now())
		if err != nil {
			w.t.Fatal(err)
		}
		if n == nil {
			return
		}
		if err := w.c.Deliver(w.t.Context(), n); err != nil {
			fmt.Fprintln(w, "deliver:", err)
		}
		if err := w.st.SettleNotice(w.t.Context(), n); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("a notice is due again and again")
}

// due says whether a notice waits for its time.
func (w *world) due() bool {
	w.t.Helper()
	n, err := w.st.NextNotice(w.t.Context(), w.hub.Now().Add(1000*time.Hour))
	if err != nil {
		w.t.Fatal(err)
	}
	if n == nil {
		return false
	}
	n.Next, n.Attempts = w.hub.Now(), n.Attempts-1
	if err := w.st.SettleNotice(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// claim takes the task that is queued, which must be the only one.
func (w *world) claim() (*store.Task, store.PullPayload) {
	w.t.Helper()
	queued, err := w.st.Tasks(w.t.Context(), store.TaskFilter{States: []store.State{store.Queued}})
	if err != nil || len(queued) != 1 {
		w.t.Fatalf("%d tasks are queued, want 1 (%v)", len(queued), err)
	}
	t, err := w.st.Claim(w.t.Context(), queued[0].ID, "worker", time.Minute)
	if err != nil {
		w.t.Fatal(err)
	}
	var p store.PullPayload
	if err := store.DecodePayload(t.Payload, &p); err != nil {
		w.t.Fatal(err)
	}
	return t, p
}

// progress tells how far a task is, as a worker does.
func (w *world) progress(t *store.Task, p store.PullPayload, text string) store.State {
	w.t.Helper()
	state, err := w.st.Beat(w.t.Context(), t.ID, t.Fence, time.Minute, text)
	if err != nil {
		w.t.Fatal(err)
	}
	if state == store.Running {
		if err := w.st.PutNotice(w.t.Context(), *w.c.Running(p, text)); err != nil {
			w.t.Fatal(err)
		}
	}
	return state
}

var evaluations atomic.Int64

// finish ends a task with an evaluation.
func (w *world) finish(t *store.Task, p store.PullPayload, build cases.Builder) error {
	w.t.Helper()
	build.ID = fmt.Sprintf("20261130-%06x", evaluations.Add(1))
	e := build.Commits().Evaluation
	if err := w.st.Save(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
	n, err := w.c.Render(e, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.st.Finish(w.t.Context(), t.ID, t.Fence, store.Done, "", e.ID, nil, n)
}

// evaluate does a worker's part: claim, progress, finish.
func (w *world) evaluate(name string) store.PullPayload {
	w.t.Helper()
	t, p := w.claim()
	w.progress(t, p, "measure: 3 of 9")
	w.deliver()
	if err := w.finish(t, p, cases.All[name]()); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	return p
}

// comment is the text of our comment, which must be the only one.
func (w *world) comment(p *githubtest.Pull) string {
	w.t.Helper()
	list := p.Comments(w.me)
	if len(list) != 1 {
		w.t.Fatalf("%d comments of ours, want 1: %+v", len(list), list)
	}
	return list[0].Body
}

func (w *world) says(p *githubtest.Pull, want ...string) {
	w.t.Helper()
	got := w.comment(p)
	for _, s := range want {
		if !strings.Contains(got, s) {
			w.t.Errorf("the comment does not say %q:\n%s", s, got)
		}
	}
}

// checks are the check runs of a commit in short.
func (w *world) checks(head string) string {
	var list []string
	for _, c := range w.repo.Checks(head) {
		list = append(list, strings.TrimSuffix(c.Status+" "+c.Conclusion, " "))
	}
	return strings.Join(list, ", ")
}

func (w *world) wantChecks(head, want string) {
	w.t.Helper()
	if got := w.checks(head); got != want {
		w.t.Errorf("check runs of %.12s: %q, want %q", head, got, want)
	}
}

// states are those of all tasks, the oldest first.
func (w *world) states() string {
	w.t.Helper()
	tasks, err := w.st.Tasks(w.t.Context(), store.TaskFilter{})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for i := range tasks {
		list = append(list, string(tasks[len(tasks)-1-i].State))
	}
	return strings.Join(list, " ")
}

func (w *world) wantStates(want string) {
	w.t.Helper()
	if got := w.states(); got != want {
		w.t.Errorf("tasks: %q, want %q", got, want)
	}
}

// line makes n commits on top of main.
func (w *world) line(name string, n int) (head string) { return w.repo.Git.Line(name, n) }
