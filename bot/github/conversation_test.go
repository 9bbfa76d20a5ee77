package github

import (
	"errors"
	"slices"
	"testing"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/report/cases"
	"patchbench/store"
)

// converse is a whole conversation at a pull request. Its end is the same
// whatever stands in the way.
func converse(w *world) {
	t := w.t
	t.Helper()
	first := w.line("a", 3)
	p := w.repo.Open("author", "a title", first)
	w.event("pull_request", p.Changed("opened"))
	if list := p.Comments(w.me); len(list) > 0 {
		t.Fatalf("nobody asked, and yet: %+v", list)
	}
	w.wantStates("")

	p.Label("maintainer", "bench")
	w.event("pull_request", p.Changed("labeled"))
	w.says(p, "**Queued.**", first[:12])
	w.wantStates("queued")

	task, payload := w.claim()
	w.progress(task, payload, "measure: 3 of 9")
	w.settle()
	w.says(p, "**Running.**", "measure: 3 of 9")

	second := w.line("b", 2)
	p.Push(second)
	w.event("pull_request", p.Changed("synchronize"))
	w.says(p, "**Waits for approval.**", second[:12])
	w.wantStates("superseded held")
	if w.progress(task, payload, "measure: 4 of 9") == store.Running {
		t.Error("the worker of the older head is not told to stop")
	}
	if err := w.finish(task, payload, cases.All["one-improvement"]()); !errors.Is(err, store.ErrFence) {
		t.Errorf("the run of the older head ends with %v, want ErrFence", err)
	}
	w.settle()

	c := p.Say("stranger", "/bench")
	w.event("issue_comment", p.Said(c))
	w.wantStates("superseded held")
	c = p.Say("reader", "please\n/bench\n")
	w.event("issue_comment", p.Said(c))
	w.wantStates("superseded held")
	w.says(p, "**Waits for approval.**")

	c = p.Say("maintainer", "looks good\r\n\r\n/bench\r\n")
	w.event("issue_comment", p.Said(c))
	w.wantStates("superseded queued")
	w.says(p, "**Queued.**", second[:12])
	if got := w.evaluate("one-improvement"); got.Head != second || got.Benchmarks != nil {
		t.Errorf("evaluated %s with %q, want %s with all benchmarks", got.Head, got.Benchmarks, second)
	}
	w.says(p, "**Better.**", second[:12])

	c = p.Say("maintainer", "/bench hash table{n=1}")
	w.event("issue_comment", p.Said(c)) // no names
	c = p.Say("maintainer", "/bench hash table")
	w.event("issue_comment", p.Said(c))
	if got := w.evaluate("regression-of-13"); !slices.Equal(got.Benchmarks, []string{"hash", "table"}) || got.Head != second {
		t.Errorf("evaluated %s with %q", got.Head, got.Benchmarks)
	}
	w.says(p, "**Worse.**", second[:12], "Earlier:", "better")

	c = p.Say("maintainer", "/bench")
	w.event("issue_comment", p.Said(c))
	w.says(p, "**Queued.**")
	w.claim()
	c = p.Say("maintainer", "/bench stop")
	w.event("issue_comment", p.Said(c))
	w.says(p, "**Stopped.**", "stopped by maintainer")
	w.wantStates("superseded done done stopped")

	c = p.Say("maintainer", "/bench")
	w.event("issue_comment", p.Said(c))
	w.wantStates("superseded done done stopped queued")
	p.Close(false)
	w.event("pull_request", p.Changed("closed"))
	w.says(p, "**Stopped.**", "closed", "Earlier:", "worse", "better")
	w.wantStates("superseded done done stopped stopped")
}

func TestConversation(t *testing.T) {
	limit := map[string]string{"Retry-After": "120"}
	used := map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1796043900"}
	for i, c := range []struct {
		name   string
		faults []githubtest.Fault // before each event
		other  func(w *world)     // before each event
	}{
		{name: "undisturbed"},
		{name: "unwell", faults: []githubtest.Fault{{Status: 500}, {Path: "/comments", Status: 502}, {Method: "PATCH", Status: 503}}},
		{name: "no answer", faults: []githubtest.Fault{{HangUp: true}, {Method: "POST", Path: "/comments", HangUp: true}, {Path: "check-runs", HangUp: true}}},
		{name: "done, and no answer", faults: []githubtest.Fault{
			{Method: "POST", Path: "/comments", HangUp: true, After: true}, {Method: "PATCH", HangUp: true, After: true},
			{Method: "POST", Path: "/check-runs", HangUp: true, After: true}}},
		{name: "done, and unwell", faults: []githubtest.Fault{
			{Method: "POST", Path: "/comments", Status: 500, After: true}, {Method: "POST", Path: "/check-runs", Status: 504, After: true}}},
		{name: "bad credentials", faults: []githubtest.Fault{{Status: 401, Times: 2}, {Path: "/comments", Status: 401}}},
		{name: "forbidden", faults: []githubtest.Fault{{Status: 403}, {Method: "PATCH", Status: 403}}},
		{name: "forbidden for a while", faults: []githubtest.Fault{{Status: 403, Header: limit}, {Path: "/comments", Status: 403, Header: limit}}},
		{name: "too many", faults: []githubtest.Fault{{Status: 429, Header: limit}, {Method: "PATCH", Status: 429, Header: limit}, {Path: "check-runs", Status: 429}}},
		{name: "limit used up", faults: []githubtest.Fault{{Status: 403, Header: used}, {Method: "POST", Status: 403, Header: used}}},
		{name: "limit by text", faults: []githubtest.Fault{{Status: 403, Body: `{"message":"You have exceeded a secondary rate limit."}`}}},
		{name: "no JSON", faults: []githubtest.Fault{{Status: 200, Body: "<html>"}, {Path: "/comments", Status: 502, Body: "<html>"},
			{Method: "POST", Path: "/comments", Status: 201, Body: `{"id": 7, "bo`, After: true}, {Path: "check-runs", Status: 200, Body: `{"total_count": 1, "che`}}},
		{name: "tokens revoked", other: func(w *world) { w.hub.Revoke() }},
		{name: "restarts", other: func(w *world) { w.restart() }},
		{name: "comment deleted", other: func(w *world) {
			w.hub.Fail(githubtest.Fault{Method: "PATCH", Path: "/issues/comments/", Status: 404, Do: func() {
				for _, c := range w.repo.At(1).Comments(w.me) {
					w.repo.Delete(c.ID)
				}
			}})
		}},
	} {
		ways := []string{"webhook", "polling"}
		if c.other == nil && len(c.faults) != 1 {
			ways = append(ways, "token")
		}
		if testing.Short() { // each fault once, and the ways in turn
			ways = ways[i%len(ways):][:1]
		}
		for _, way := range ways {
			t.Run(c.name+" by "+way, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.polls = way == "polling"
				if way == "token" {
					w.token()
				}
				if w.polls {
					w.c.Poll(t.Context()) // begins here
				}
				w.before = func() {
					w.hub.Fail(c.faults...)
					if c.other != nil {
						c.other(w)
					}
				}
				converse(w)
				if way == "token" {
					return
				}
				tasks, err := w.st.Tasks(t.Context(), store.TaskFilter{})
				if err != nil {
					t.Fatal(err)
				}
				w.wantChecks(tasks[len(tasks)-1].Content, "completed cancelled")
				w.wantChecks(tasks[0].Content, "completed success, completed failure, completed cancelled, completed cancelled")
			})
		}
	}
}
