package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/github/notice"
	"patchbench/bot/report/cases"
	"patchbench/store"
)

// started is a world with a trusted author's pull request that waits in the
// queue, shown at GitHub.
func started(t *testing.T) (*world, *githubtest.Pull) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 2))
	w.event("pull_request", p.Changed("opened"))
	w.says(p, "**Queued.**")
	return w, p
}

// A process that is killed after it told GitHub and before it kept that tells
// nothing twice.
func TestKilledBeforeSettling(t *testing.T) {
	w := newWorld(t)
	head := w.line("a", 2)
	p := w.repo.Open("friend", "title", head)
	if status := w.post("pull_request", "d", p.Changed("opened")); status != 202 {
		t.Fatal(status)
	}
	if err := w.c.WorkOff(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n, err := w.st.NextNotice(t.Context(), w.hub.Now())
		if err != nil || n == nil {
			t.Fatalf("notice %v, %v", n, err)
		}
		if err := w.c.Deliver(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		w.restart() // and n is not settled
		w.hub.Advance(3 * time.Minute)
	}
	w.settle()
	w.says(p, "**Queued.**")
	w.wantChecks(head, "queued")
}

// Two comments of ours, as two bots on one store would make them, become one;
// what others wrote with our marker stays.
func TestSecondComment(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 2))
	marker := "<!-- patchbench: kept up to date here, do not edit -->\ntext"
	p.Say("stranger", marker)
	p.Say(w.me, marker)
	p.Say(w.me, marker)
	p.Say(w.me, "another text of ours")
	w.event("pull_request", p.Changed("opened"))
	list := p.Comments(w.me)
	if len(list) != 2 || !strings.Contains(list[0].Body, "**Queued.**") || list[1].Body != "another text of ours" {
		t.Errorf("comments %+v", list)
	}
	if list := p.Comments("stranger"); len(list) != 1 || list[0].Body != marker {
		t.Errorf("the stranger's comments are %+v", list)
	}
}

// More comments than a page before ours: it is found, not made again.
func TestCommentFarBack(t *testing.T) {
	w, p := started(t)
	for i := range 3100 {
		p.Say("author", fmt.Sprint(i))
	}
	n, err := w.st.NextNotice(t.Context(), w.hub.Now())
	if err != nil || n != nil {
		t.Fatalf("%+v, %v", n, err)
	}
	// The store is one of yesterday, in which the comment is not known.
	if err := w.st.PutNotice(t.Context(), store.Notice{Repo: "kit/kit", Number: 1, Head: "x", Comment: "y"}); err != nil {
		t.Fatal(err)
	}
	if n, err = w.st.NextNotice(t.Context(), w.hub.Now()); err != nil {
		t.Fatal(err)
	}
	n.CommentID, n.CheckID, n.CheckHead = 0, 0, ""
	if err := w.c.Deliver(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	w.says(p, "**Queued.**")
	if n.Sent != n.Seq || n.CommentID == 0 || n.CheckID == 0 {
		t.Errorf("notice %+v", n)
	}
	w.wantChecks(p.Head(), "queued")
}

// In a locked conversation there is no comment, but a check run; nothing is
// tried again.
func TestLocked(t *testing.T) {
	w := newWorld(t)
	head := w.line("a", 2)
	p := w.repo.Open("friend", "title", head)
	p.Lock()
	w.event("pull_request", p.Changed("opened"))
	if list := p.Comments(w.me); len(list) > 0 {
		t.Errorf("comments %+v", list)
	}
	w.wantChecks(head, "queued")
	if !strings.Contains(w.log.String(), "the conversation is locked") {
		t.Error("the log does not say so")
	}
	w.evaluate("one-improvement")
	w.wantChecks(head, "completed success")
}

// A conversation that is locked later keeps its comment as it is, and the check
// run goes on; nothing is tried for days.
func TestLockedLater(t *testing.T) {
	w, p := started(t)
	p.Lock()
	before := w.hub.Now()
	w.evaluate("one-improvement")
	w.says(p, "**Queued.**")
	w.wantChecks(p.Head(), "completed success")
	if took := w.hub.Now().Sub(before); took > time.Hour {
		t.Errorf("given up after %v", took)
	}
}

// Under another name than before, as when a token is replaced by an App, the
// comment of the old one is not ours any more.
func TestAnotherName(t *testing.T) {
	w, p := started(t)
	old := w.me
	w.token()
	w.evaluate("one-improvement")
	w.says(p, "**Better.**")
	if list := p.Comments(old); len(list) != 1 || list[0].Edits != 0 {
		t.Errorf("comments of before: %+v", list)
	}
}

// What is refused is tried twice more, as GitHub also refuses what comes too
// quickly; then it is given up, and the check run is there all the same.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		times int
		says  string
		tries int // at least one of them in vain
	}{{1, "**Better.**", 2}, {2, "**Better.**", 3}, {9, "**Queued.**", 3}} {
		w, p := started(t)
		task, payload := w.claim()
		w.hub.Requests()
		w.hub.Fail(githubtest.Fault{Method: "PATCH", Path: "/issues/comments/", Status: 422, Times: c.times})
		if err := w.finish(task, payload, cases.All["one-improvement"]()); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.says(p, c.says)
		w.wantChecks(p.Head(), "completed success")
		tries := 0
		for _, r := range w.hub.Requests() {
			if strings.HasPrefix(r, "PATCH /repos/kit/kit/issues/comments/") {
				tries++
			}
		}
		if tries != c.tries {
			t.Errorf("refused %d times: %d tries, want %d", c.times, tries, c.tries)
		}
	}
}

// Progress is told now and then, not each time.
func TestProgressIsPaced(t *testing.T) {
	w, p := started(t)
	task, payload := w.claim()
	before := p.Comments(w.me)[0].Edits
	for i := range 40 {
		w.progress(task, payload, fmt.Sprintf("measure: %d of 40", i+1))
		w.deliver()
		w.hub.Advance(5 * time.Second)
	}
	edits := p.Comments(w.me)[0].Edits - before
	if edits < 4 || edits > 8 {
		t.Errorf("%d edits in 200 s, want one each 30 s", edits)
	}
	if err := w.finish(task, payload, cases.All["one-improvement"]()); err != nil {
		t.Fatal(err)
	}
	w.hub.Advance(notice.BetweenProgress)
	w.deliver()
	w.says(p, "**Better.**")
}

// What a worker says late of an older state does not undo a newer one.
func TestLateProgress(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(w *world, p *githubtest.Pull, task *store.Task, payload store.PullPayload)
		says string
	}{
		{"stopped", func(w *world, p *githubtest.Pull, _ *store.Task, _ store.PullPayload) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench stop")))
		}, "**Stopped.**"},
		{"pushed", func(w *world, p *githubtest.Pull, _ *store.Task, _ store.PullPayload) {
			p.Push(w.line("b", 1))
			w.event("pull_request", p.Changed("synchronize"))
		}, "**Queued.**"},
		{"closed", func(w *world, p *githubtest.Pull, _ *store.Task, _ store.PullPayload) {
			p.Close(true)
			w.event("pull_request", p.Changed("closed"))
		}, "**Stopped.**"},
		{"done", func(w *world, p *githubtest.Pull, task *store.Task, payload store.PullPayload) {
			if err := w.finish(task, payload, cases.All["one-improvement"]()); err != nil {
				t.Fatal(err)
			}
			w.settle()
		}, "**Better.**"},
		{"failed", func(w *world, p *githubtest.Pull, task *store.Task, payload store.PullPayload) {
			why := "no room on `disk` @all"
			if err := w.st.Finish(t.Context(), task.ID, task.Fence, store.Failed, why, "", nil, w.c.Failed(payload, why)); err != nil {
				t.Fatal(err)
			}
			w.settle()
		}, "no room on `disk` @all"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, p := started(t)
			task, payload := w.claim()
			late := *w.c.Running(payload, "measure: 80 of 80")
			c.then(w, p, task, payload)
			w.says(p, c.says)
			if err := w.st.PutNotice(t.Context(), late); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.says(p, c.says)
			heads := w.checks(payload.Head)
			if strings.Contains(heads, "in_progress") || c.name != "pushed" && strings.Contains(heads, "queued") {
				t.Errorf("check runs of the older run: %s", heads)
			}
		})
	}
}

// The pull request is gone: given up after a few tries, not for ever.
func TestPullGone(t *testing.T) {
	w, p := started(t)
	p.Vanish()
	task, payload := w.claim()
	if err := w.finish(task, payload, cases.All["one-improvement"]()); err != nil {
		t.Fatal(err)
	}
	w.repo.Delete(p.Comments(w.me)[0].ID)
	w.settle()
	if list := p.Comments(w.me); len(list) > 0 {
		t.Errorf("comments %+v", list)
	}
}

// GitHub is away for hours: the last state is told when it is back, once.
func TestLongOutage(t *testing.T) {
	w, p := started(t)
	w.hub.Fail(githubtest.Fault{Method: "PATCH", Status: 503, Times: 12})
	w.evaluate("one-improvement")
	w.says(p, "**Better.**")
	if n := w.hub.Waiting(); n > 0 {
		t.Errorf("%d tries fewer than expected", n)
	}
}

// A rate limit holds for all requests, until it has passed.
func TestLimitHolds(t *testing.T) {
	w, _ := started(t)
	w.hub.Requests()
	w.hub.Fail(githubtest.Fault{Status: 403, Header: map[string]string{"Retry-After": "600"}})
	p := w.repo.Open("friend", "title", w.line("b", 2))
	if status := w.post("pull_request", "second", p.Changed("opened")); status != 202 {
		t.Fatal(status)
	}
	for range 50 {
		if err := w.c.WorkOff(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.deliver()
		w.hub.Advance(10 * time.Second)
	}
	if got := w.hub.Requests(); len(got) != 1 {
		t.Errorf("%d requests in 500 s of a limit of 600: %q", len(got), got)
	}
	w.settle()
	w.says(p, "**Queued.**")
}
