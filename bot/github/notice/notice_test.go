package notice

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"patchbench/bot/github/api"
	"patchbench/bot/github/githubtest"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/store"
	"patchbench/store/storetest"
)

func newBoard(t *testing.T, cfg *service.Config) *Board {
	t.Helper()
	access, err := api.NewAccess(func() *service.Config { return cfg }, api.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return New(access, storetest.Open(t), time.Now)
}

// An evaluation without a sandbox is not told to anybody.
func TestRenderUnsafe(t *testing.T) {
	b := newBoard(t, githubtest.New(t).Config(t.TempDir()))
	e := cases.All["one-improvement"]().Evaluation
	e.Unsafe = true
	if n, err := b.Render(e, store.PullPayload{Repo: "kit/kit", Number: 1}); err == nil {
		t.Errorf("%+v", n)
	}
}

// Where there are more comments than are looked through, and ours may be among the
// rest, none is written.
func TestTooManyComments(t *testing.T) {
	asked, written := 0, 0
	var hub *httptest.Server
	hub = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method != http.MethodGet:
			written++
		case strings.HasSuffix(req.URL.Path, "/user"):
			fmt.Fprint(w, `{"login":"bench-bot"}`)
		default:
			asked++
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, hub.URL, req.URL.Path, asked+1))
			fmt.Fprint(w, `[{"id":1,"body":"text","user":{"login":"stranger"}}]`)
		}
	}))
	defer hub.Close()
	b := newBoard(t, &service.Config{GitHub: &service.GitHub{
		Token: "ghp_0123456789", BaseURL: hub.URL, Repositories: map[string]service.Repository{"kit/kit": {}},
	}})
	n := &store.Notice{Repo: "kit/kit", Number: 1, Comment: "text", Seq: 1}
	if err := b.Deliver(t.Context(), n); err == nil || !strings.Contains(err.Error(), "there are more than 12000") {
		t.Errorf("%v, want that there are too many", err)
	}
	if asked != maxPages || written > 0 || n.Sent == n.Seq {
		t.Errorf("%d pages were read and %d comments written; notice %+v", asked, written, n)
	}
}

func TestWorst(t *testing.T) {
	until := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limit := &api.LimitError{Until: until}
	other := errors.New("no route")
	for _, c := range []struct {
		name  string
		err   error
		fault api.Fault
		until time.Time
	}{
		{"none", nil, api.None, time.Time{}},
		{"one", other, api.Temporary, time.Time{}},
		{"a limit behind another", errors.Join(other, fmt.Errorf("comment: %w", limit)), api.Limited, until},
		{"locked alone", &lockedError{other}, api.Refused, time.Time{}},
		{"locked, and no route", fmt.Errorf("deliver: %w", errors.Join(&lockedError{other}, other)), api.Temporary, time.Time{}},
	} {
		if fault, at := worst(c.err); fault != c.fault || !at.Equal(c.until) {
			t.Errorf("%s: fault %v until %v, want %v until %v", c.name, fault, at, c.fault, c.until)
		}
	}
}
