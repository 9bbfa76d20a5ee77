package intake

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"patchbench/bot/github/api"
	"patchbench/bot/github/githubtest"
	"patchbench/bot/github/hint"
	"patchbench/config/service"
	"patchbench/store"
	"patchbench/store/storetest"
)

// world is a GitHub with one repository, and what is taken in from it.
type world struct {
	hub   *githubtest.Server
	repo  *githubtest.Repo
	cfg   *service.Config
	st    *store.Store
	queue *hint.Queue
	in    *Intake
	log   bytes.Buffer
}

func newWorld(t testing.TB) *world {
	w := &world{hub: githubtest.New(t), st: storetest.Open(t)}
	w.repo = w.hub.Repo("kit/kit")
	w.cfg = w.hub.Config(t.TempDir())
	access, err := api.NewAccess(func() *service.Config { return w.cfg }, api.Options{Now: w.hub.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.queue = hint.NewQueue(w.st)
	w.in = New(access, w.st, w.queue, Options{Log: slog.New(slog.NewTextHandler(&w.log, nil))})
	return w
}

// send sends a request to the webhook and gives the status of the answer.
func (w *world) send(req *http.Request) int {
	rec := httptest.NewRecorder()
	w.in.Webhook().ServeHTTP(rec, req)
	return rec.Code
}
