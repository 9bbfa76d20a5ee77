package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/store"
)

// What comes of one happening at a pull request of a stranger's fork.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		author string // "" a stranger
		do     func(w *world, p *githubtest.Pull)
		states string
		says   string // "" no comment
	}{
		{name: "opened by a stranger", do: func(w *world, p *githubtest.Pull) {
			w.event("pull_request", p.Changed("opened"))
		}},
		{name: "opened by somebody trusted", author: "Friend", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			w.event("pull_request", p.Changed("opened"))
		}},
		{name: "pushed to by somebody trusted", author: "friend", states: "superseded queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			w.event("pull_request", p.Changed("opened"))
			p.Push(w.line("b", 1))
			w.event("pull_request", p.Changed("synchronize"))
		}},
		{name: "another label", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "documentation")
			w.event("pull_request", p.Changed("labeled"))
		}},
		{name: "the label in other letters", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "Bench")
			w.event("pull_request", p.Changed("labeled"))
		}},
		// The push comes between the label and the time at which it is acted upon:
		// what was seen by who put the label on is not what would run.
		{name: "pushed to behind a label", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			e := p.Changed("labeled")
			p.Push(w.line("evil", 1))
			w.event("pull_request", e)
		}},
		{name: "pushed to in the second of a label", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			w.hub.Advance(-time.Second) // the next change is in the same second
			p.Push(w.line("evil", 1))
			w.event("pull_request", p.Changed("synchronize"))
		}},
		{name: "pushed to behind a command", states: "held", says: "pushed to after maintainer approved it", do: func(w *world, p *githubtest.Pull) {
			c := p.Say("maintainer", "/bench")
			p.Push(w.line("evil", 1))
			w.event("issue_comment", p.Said(c))
		}},
		{name: "and approved once more", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			c := p.Say("maintainer", "/bench")
			p.Push(w.line("b", 1))
			w.event("issue_comment", p.Said(c))
			c = p.Say("maintainer", "/bench")
			w.event("issue_comment", p.Said(c))
		}},
		{name: "and labelled once more", states: "superseded queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
			p.Push(w.line("b", 1))
			w.event("pull_request", p.Changed("synchronize"))
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
		}},
		{name: "a push to a branch of the repository itself", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.Own()
			c := p.Say("maintainer", "/bench")
			p.Push(w.line("b", 1))
			w.event("issue_comment", p.Said(c))
		}},
		// Nobody can push any more, but who has pushed before cannot be asked: only
		// what is said after it was seen so is about this head.
		{name: "pushed to behind a command, and the fork deleted", states: "held", says: "deleted", do: func(w *world, p *githubtest.Pull) {
			c := p.Say("maintainer", "/bench")
			p.Push(w.line("evil", 1))
			p.DropFork()
			w.event("issue_comment", p.Said(c))
		}},
		{name: "pushed to behind a label, and the fork deleted", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			e := p.Changed("labeled")
			p.Push(w.line("evil", 1))
			p.DropFork()
			w.event("pull_request", e)
		}},
		{name: "a fork that is gone, and approved once more", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			c := p.Say("maintainer", "/bench")
			p.DropFork()
			w.event("issue_comment", p.Said(c))
			w.wantStates("held")
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
		}},
		{name: "a fork that is gone, and labelled afterwards", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.DropFork()
			w.event("pull_request", p.Changed("edited"))
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
		}},
		// Anybody may open a pull request from any fork; who can push there decides
		// what runs.
		{name: "opened by somebody trusted from another's fork", author: "friend", do: func(w *world, p *githubtest.Pull) {
			p.From("stranger")
			w.event("pull_request", p.Changed("opened"))
			p.Push(w.line("evil", 1))
			w.event("pull_request", p.Changed("synchronize"))
			p.DropFork()
			w.event("pull_request", p.Changed("edited"))
		}},
		{name: "opened by somebody trusted from another trusted one's fork", author: "friend", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.From("Friends-Org")
			w.event("pull_request", p.Changed("opened"))
		}},
		{name: "opened by somebody trusted, whose fork is gone", author: "friend", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.DropFork()
			w.event("pull_request", p.Changed("opened"))
		}},
		{name: "opened by somebody trusted from the repository itself", author: "friend", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.Own()
			w.event("pull_request", p.Changed("opened"))
		}},
		{name: "a comment that is edited into a command", do: func(w *world, p *githubtest.Pull) {
			c := p.Say("maintainer", "text")
			w.repo.Edit(c.ID, "/bench")
			c.Body = "/bench"
			e := p.Said(c).(map[string]any)
			e["action"] = "edited"
			w.event("issue_comment", e)
		}},
		{name: "a command in an issue", do: func(w *world, p *githubtest.Pull) {
			e := p.Said(p.Say("maintainer", "/bench")).(map[string]any)
			delete(e["issue"].(map[string]any), "pull_request")
			w.event("issue_comment", e)
		}},
		{name: "a command of a stranger", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("stranger", "/bench")))
		}},
		{name: "a command of the author", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("author", "/bench")))
		}},
		{name: "a command of who may read", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("reader", "/bench")))
		}},
		{name: "a command of a robot", do: func(w *world, p *githubtest.Pull) {
			w.repo.Allow("robot[bot]", "write")
			w.event("issue_comment", p.Said(p.Say("robot[bot]", "/bench")))
		}},
		{name: "a command of a name that leaves the path", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("../../../user", "/bench")))
		}},
		{name: "stop by a stranger", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			w.event("issue_comment", p.Said(p.Say("stranger", "/bench stop")))
		}},
		{name: "stop before anything", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench stop")))
		}},
		{name: "the same command twice", states: "queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
		}},
		{name: "another command in place of the first", states: "superseded queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench hash")))
		}},
		{name: "a command on a closed pull request", do: func(w *world, p *githubtest.Pull) {
			p.Close(true)
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
		}},
		{name: "merged", states: "stopped", says: "merged", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			p.Close(true)
			w.event("pull_request", p.Changed("closed"))
		}},
		{name: "opened again", states: "stopped queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
			p.Close(false)
			w.event("pull_request", p.Changed("closed"))
			p.Reopen()
			w.event("pull_request", p.Changed("reopened"))
		}},
		{name: "stopped, and opened again", states: "stopped", says: "stopped by maintainer", do: func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench stop")))
			p.Close(false)
			w.event("pull_request", p.Changed("closed"))
			p.Reopen()
			w.event("pull_request", p.Changed("reopened"))
		}},
		{name: "asked for, closed, and opened again", states: "stopped", says: "closed", do: func(w *world, p *githubtest.Pull) {
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			p.Close(false)
			w.event("pull_request", p.Changed("closed"))
			p.Reopen()
			w.event("pull_request", p.Changed("reopened"))
		}},
		{name: "forced back to an approved commit", states: "superseded superseded queued", says: "**Queued.**", do: func(w *world, p *githubtest.Pull) {
			first := w.line("a", 2)
			p.Label("maintainer", "bench")
			w.event("pull_request", p.Changed("labeled"))
			p.Push(w.line("b", 1))
			w.event("pull_request", p.Changed("synchronize"))
			p.Push(first)
			w.event("pull_request", p.Changed("synchronize"))
			w.wantStates("superseded superseded held")
			w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			author := c.author
			if author == "" {
				author = "author"
			}
			p := w.repo.Open(author, "title", w.line("a", 2))
			c.do(w, p)
			w.wantStates(c.states)
			if c.says == "" {
				if list := p.Comments(w.me); len(list) > 0 {
					t.Errorf("comments, want none: %+v", list)
				}
			} else {
				w.says(p, c.says)
			}
		})
	}
}

// Events that come in another order, late, and more than once end in the same.
func TestOutOfOrder(t *testing.T) {
	type told struct {
		kind    string
		payload any
	}
	for seed := range 6 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t)
			p := w.repo.Open("author", "title", w.line("a", 2))
			var all []told
			tell := func(kind string, payload any) { all = append(all, told{kind, payload}) }
			tell("pull_request", p.Changed("opened"))
			p.Label("maintainer", "bench")
			tell("pull_request", p.Changed("labeled"))
			p.Push(w.line("b", 1))
			tell("pull_request", p.Changed("synchronize"))
			last := w.line("c", 3)
			p.Push(last)
			tell("pull_request", p.Changed("synchronize"))
			tell("issue_comment", p.Said(p.Say("maintainer", "/bench")))
			for i := range all { // a rotation and, for odd ones, backwards
				k := (i + seed) % len(all)
				if seed%2 == 1 {
					k = len(all) - 1 - k
				}
				for n := range 2 {
					if status := w.post(all[k].kind, fmt.Sprintf("d-%d-%d", k, n), all[k].payload); status != 202 {
						t.Fatalf("status %d", status)
					}
				}
				if seed%3 == 0 {
					w.settle()
				}
			}
			w.settle()
			task, payload := w.claim()
			if payload.Head != last {
				t.Errorf("head %s runs, want the last one, %s", payload.Head, last)
			}
			if err := w.finish(task, payload, cases.All["one-improvement"]()); err != nil {
				t.Fatal(err)
			}
			w.settle()
			w.says(p, "**Better.**", last[:12])
			w.wantChecks(last, "completed success")
		})
	}
}

// The check run can be asked for once more, by who may.
func TestRerequest(t *testing.T) {
	for _, fork := range []bool{true, false} {
		t.Run(fmt.Sprintf("fork %v", fork), func(t *testing.T) {
			w := newWorld(t)
			head := w.line("a", 2)
			p := w.repo.Open("friend", "title", head)
			if !fork {
				p.Own()
			}
			w.event("pull_request", p.Changed("opened"))
			w.evaluate("regression-of-13")
			w.wantChecks(head, "completed failure")
			run := w.repo.Checks(head)[0]
			w.event("check_run", p.Rerequested("stranger", run))
			w.wantStates("done")
			w.event("check_run", p.Rerequested("maintainer", run))
			w.wantStates("done queued")
			w.wantChecks(head, "completed failure, queued")
			w.evaluate("one-improvement")
			// The same once more, under another id, which nobody has signed.
			w.event("check_run", p.Rerequested("maintainer", run))
			w.wantStates("done done")
			w.wantChecks(head, "completed failure, completed success")
			w.says(p, "**Better.**", "Earlier:", "worse")

			// All checks at once: the event is another.
			w.event("check_suite", p.RerequestedAll("maintainer", run))
			w.evaluate("one-improvement")
			w.wantStates("done done done")

			// Of another App's check run we are told nothing, but if we were: no.
			other := p.Rerequested("maintainer", run).(map[string]any)
			other["check_run"].(map[string]any)["app"] = map[string]any{"id": w.hub.AppID + 1}
			w.event("check_run", other)
			w.wantStates("done done done")

			// Of a commit that is not the head any more, it is not run.
			p.Push(w.line("b", 1))
			w.event("check_run", p.Rerequested("maintainer", run))
			w.wantStates("done done done")
		})
	}
}

// The payload is what a worker needs, and nothing in it is the branch's name.
func TestPayload(t *testing.T) {
	w := newWorld(t)
	head := w.line("a", 2)
	p := w.repo.Open("friend", strings.Repeat("ä", 400), head)
	w.event("pull_request", p.Changed("opened"))
	task, got := w.claim()
	if task.Key != "kit/kit#1@"+head || task.Kind != store.KindPull || task.Project != "kit" || task.Author.Name != "friend" || task.Content != head {
		t.Errorf("task %+v", task)
	}
	if got.Repo != "kit/kit" || got.Number != 1 || got.Head != head || got.BaseRef != "main" || got.Base != w.repo.Git.Tip("main") || got.Installation == 0 {
		t.Errorf("payload %+v", got)
	}
	if len(got.Title) > 500 || strings.ContainsRune(got.Title, '\ufffd') {
		t.Errorf("title %q", got.Title)
	}
	if strings.Contains(fmt.Sprintf("%+v %+v", task, got), "upload-pack") {
		t.Error("the name of the branch is in the task")
	}
}

// A repository that polling begins with is not read back, and asking for nothing
// new costs nothing of the limit.
func TestPoll(t *testing.T) {
	w := newWorld(t)
	w.polls = true
	old := w.repo.Open("friend", "old", w.line("a", 1))
	old.Say("maintainer", "/bench")
	w.hub.Advance(time.Hour)
	w.c.Poll(t.Context())
	w.settle()
	w.wantStates("")
	w.hub.Requests()
	w.c.Poll(t.Context())
	if got, want := w.hub.Requests(), []string{"GET /repos/kit/kit/pulls, not modified", "GET /repos/kit/kit/issues/comments, not modified"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	// An old comment that is edited is none that was written now.
	later := w.repo.Open("author", "new", w.line("a", 1))
	c := later.Say("maintainer", "text")
	w.c.Poll(t.Context())
	w.settle()
	w.hub.Advance(time.Minute)
	w.repo.Edit(c.ID, "/bench")
	for range 3 {
		w.c.Poll(t.Context())
		w.settle()
	}
	w.wantStates("")
	later.Say("maintainer", "/bench")
	w.c.Poll(t.Context())
	w.settle()
	w.wantStates("queued")
}

// Who may not write can have us ask GitHub for that once a minute, no more.
func TestFloodOfCommands(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("author", "title", w.line("a", 1))
	w.hub.Requests()
	for i := range 50 {
		if status := w.post("issue_comment", fmt.Sprint("flood-", i), p.Said(p.Say("stranger", "/bench"))); status != 202 {
			t.Fatal(status)
		}
	}
	w.settle()
	w.wantStates("")
	if got := len(w.hub.Requests()); got > 5 {
		t.Errorf("%d requests for 50 comments of a stranger", got)
	}
	w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
	w.wantStates("queued")
	w.hub.Advance(2 * time.Minute)
	w.repo.Allow("stranger", "write")
	w.event("issue_comment", p.Said(p.Say("stranger", "/bench stop")))
	w.wantStates("stopped")
}

// Commands at issues, which are no pull requests, cost who may not write as little,
// and one of somebody who may holds nobody up.
func TestFloodAtIssues(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("author", "title", w.line("a", 1))
	at := func(login string, number int) any {
		e := p.Said(p.Say(login, "/bench")).(map[string]any)
		e["issue"] = map[string]any{"number": number, "pull_request": map[string]any{"url": "x"}}
		return e
	}
	w.hub.Requests()
	for i := range 60 {
		if status := w.post("issue_comment", fmt.Sprint("flood-", i), at("stranger", 100+i)); status != 202 {
			t.Fatal(status)
		}
	}
	w.settle()
	if got := w.hub.Requests(); len(got) > 5 {
		t.Errorf("%d requests for 60 comments of a stranger: %q", len(got), got)
	}
	w.event("issue_comment", at("maintainer", 500))
	w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
	w.wantStates("queued")
}

// A label is found behind any number of events before it.
func TestManyEvents(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("author", "title", w.line("a", 1))
	for range 3200 {
		p.Label("maintainer", "other")
	}
	p.Label("maintainer", "bench")
	w.hub.Requests()
	w.event("pull_request", p.Changed("labeled"))
	w.wantStates("queued")
	events := 0
	for _, r := range w.hub.Requests() {
		if strings.HasSuffix(r, "/events") {
			events++
		}
	}
	if events == 0 || events > 4 {
		t.Errorf("%d requests for 3,201 events, want those for the first and the last page", events)
	}
}

// An answer without the right is none: the command waits for a better one.
func TestRightsUnsaid(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("author", "title", w.line("a", 1))
	w.hub.Fail(githubtest.Fault{Path: "/permission", Status: 200, Body: `{}`}, githubtest.Fault{Path: "/permission", Status: 200, Body: `{"permission":"wri`})
	w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
	w.wantStates("queued")
}

// A command is found in a restart's midst too: its task is made once.
func TestCommandOnce(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("author", "title", w.line("a", 1))
	c := p.Say("maintainer", "/bench stop")
	w.event("issue_comment", p.Said(c))
	run := p.Say("maintainer", "/bench")
	w.event("issue_comment", p.Said(run))
	// The old command is told of again, by polling and under new ids.
	for i := range 3 {
		if status := w.post("issue_comment", fmt.Sprint("again-", i), p.Said(c)); status != 202 {
			t.Fatal(status)
		}
		w.settle()
	}
	w.wantStates("queued")
	w.evaluate("one-improvement")
	if status := w.post("issue_comment", "again-run", p.Said(run)); status != 202 {
		t.Fatal(status)
	}
	w.settle()
	w.wantStates("done")
}

// Repositories that are not ours any more are left alone.
func TestRepositoryTakenOut(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	if status := w.post("pull_request", "d-1", p.Changed("opened")); status != 202 {
		t.Fatal(status)
	}
	g := *w.cfg.GitHub
	g.Repositories = map[string]service.Repository{}
	next := *w.cfg
	next.GitHub = &g
	w.cfg = &next
	w.settle()
	w.wantStates("")
	if got := w.hub.Requests(); len(got) > 0 {
		t.Errorf("requests %q", got)
	}
}

// A token that has run out is replaced before it is refused.
func TestTokenRenewed(t *testing.T) {
	w := newWorld(t)
	w.hub.Lifetime(45 * time.Second) // less than a minute: no token is used twice
	p := w.repo.Open("friend", "title", w.line("a", 1))
	for i := range 3 {
		w.hub.Advance(time.Minute)
		w.event("pull_request", p.Changed("opened"))
		if n := slices.Index(w.hub.Requests(), fmt.Sprintf("POST /app/installations/%d/access_tokens", w.repo.ID)); n < 0 {
			t.Errorf("event %d: no new token", i)
		}
	}
	w.says(p, "**Queued.**")
	if strings.Contains(w.log.String(), "401") {
		t.Error("an old token was used")
	}
}

// While the App is not installed, or the pull request is not there, nothing
// hangs on it: the event is given up, others go on.
func TestNotInstalled(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	w.repo.Install(false)
	w.event("pull_request", p.Changed("opened"))
	w.wantStates("")
	w.repo.Install(true)
	if status := w.post("installation_repositories", "i-1", map[string]any{
		"action": "added", "repositories_added": []any{map[string]any{"full_name": "kit/kit"}},
	}); status != 202 {
		t.Fatal(status)
	}
	w.event("pull_request", p.Changed("edited"))
	w.wantStates("queued")
	w.says(p, "**Queued.**")
}
