package github

import (
	"errors"
	"testing"
	"time"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/report/cases"
	"patchbench/store"
)

// A run is for a head and a base branch: what comes of a pull request whose base
// becomes another one, and of a base branch to which something happens.
func TestRebase(t *testing.T) {
	label := func(w *world, p *githubtest.Pull) {
		p.Label("maintainer", "bench")
		w.event("pull_request", p.Changed("labeled"))
	}
	command := func(w *world, p *githubtest.Pull) {
		w.event("issue_comment", p.Said(p.Say("maintainer", "/bench")))
	}
	next := func(w *world, p *githubtest.Pull) {
		p.Base("author", "next")
		w.event("pull_request", p.Changed("edited"))
	}
	for _, c := range []struct {
		name   string
		author string // "" a stranger
		do     []func(w *world, p *githubtest.Pull)
		states string
		says   string // "" no comment
		base   string // of the task that is queued
	}{
		{name: "asked for by nobody", do: []func(*world, *githubtest.Pull){next}},
		{name: "of somebody trusted", author: "friend", do: []func(*world, *githubtest.Pull){
			func(w *world, p *githubtest.Pull) { w.event("pull_request", p.Changed("opened")) }, next,
		}, states: "superseded queued", says: "**Queued.**", base: "next"},
		{name: "labelled before", do: []func(*world, *githubtest.Pull){label, next},
			states: "superseded held", says: `the base branch was changed to "next"; approve it once more`},
		{name: "labelled before, seen late", do: []func(*world, *githubtest.Pull){func(w *world, p *githubtest.Pull) {
			p.Label("maintainer", "bench")
			p.Base("author", "next")
			w.event("pull_request", p.Changed("edited"))
		}}},
		{name: "labelled again", do: []func(*world, *githubtest.Pull){label, next, label}, states: "superseded queued", says: "**Queued.**", base: "next"},
		{name: "asked for before", do: []func(*world, *githubtest.Pull){command, next}, states: "superseded held", says: "**Waits for approval.**"},
		{name: "asked for again", do: []func(*world, *githubtest.Pull){command, next, command}, states: "superseded queued", says: "**Queued.**", base: "next"},
		{name: "there and back", do: []func(*world, *githubtest.Pull){command, next, func(w *world, p *githubtest.Pull) {
			p.Base("author", "main")
			w.event("pull_request", p.Changed("edited"))
		}, command}, states: "superseded superseded queued", says: "**Queued.**", base: "main"},
		{name: "measured before", do: []func(*world, *githubtest.Pull){label, func(w *world, p *githubtest.Pull) { w.evaluate("one-improvement") }, next},
			states: "done held", says: "against ` 3f9a2c1d0b7e `: ` better `, [report]"},
		{name: "measured before, and asked for again", do: []func(*world, *githubtest.Pull){
			label, func(w *world, p *githubtest.Pull) { w.evaluate("one-improvement") }, next, command,
		}, states: "done queued", says: "**Queued.**", base: "next"},
		{name: "asked for, the change seen with it", do: []func(*world, *githubtest.Pull){command, func(w *world, p *githubtest.Pull) {
			p.Base("author", "next")
			command(w, p)
		}}, states: "superseded queued", says: "**Queued.**", base: "next"},
		{name: "the base branch renamed", do: []func(*world, *githubtest.Pull){label, func(w *world, p *githubtest.Pull) {
			p.Renamed("trunk")
			w.event("pull_request", p.Changed("edited"))
		}}, states: "queued", says: "**Queued.**", base: "main"},
		{name: "the base branch moved on", do: []func(*world, *githubtest.Pull){label, func(w *world, p *githubtest.Pull) {
			w.repo.Git.Branch("main", w.line("m", 2))
			w.event("pull_request", p.Changed("edited"))
		}}, states: "queued", says: "**Queued.**", base: "main"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.repo.Git.Branch("next", w.line("n", 1))
			author := c.author
			if author == "" {
				author = "author"
			}
			p := w.repo.Open(author, "title", w.line("a", 2))
			for _, do := range c.do {
				do(w, p)
			}
			w.wantStates(c.states)
			if c.says != "" {
				w.says(p, c.says)
			} else if list := p.Comments(w.me); len(list) > 0 {
				t.Errorf("comments, want none: %+v", list)
			}
			if c.base != "" {
				if _, payload := w.claim(); payload.BaseRef != c.base {
					t.Errorf("the run is against %q, want %q", payload.BaseRef, c.base)
				}
			}
		})
	}
}

// The base becomes another one while a worker is at it: what he finds out is not
// told, and what is told names the base that it was measured against.
func TestRebaseMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.repo.Git.Branch("next", w.line("n", 1))
	head := w.line("a", 2)
	p := w.repo.Open("friend", "title", head)
	w.event("pull_request", p.Changed("opened"))
	task, payload := w.claim()
	w.progress(task, payload, "measure: 3 of 9")
	w.settle()
	w.hub.Advance(time.Minute)

	p.Base("maintainer", "next")
	w.event("pull_request", p.Changed("edited"))
	if w.progress(task, payload, "measure: 4 of 9") == store.Running {
		t.Error("the worker is not told to stop")
	}
	if err := w.finish(task, payload, cases.All["regression-of-13"]()); !errors.Is(err, store.ErrFence) {
		t.Errorf("the run against the old base ends with %v, want ErrFence", err)
	}
	w.settle()
	w.says(p, "**Queued.**")
	w.wantChecks(head, "completed cancelled, queued")

	if got := w.evaluate("one-improvement"); got.BaseRef != "next" {
		t.Errorf("evaluated against %q", got.BaseRef)
	}
	w.says(p, "**Better.**", "against ` 3f9a2c1d0b7e `, where it left ` next `.")
	w.wantChecks(head, "completed cancelled, completed success")

	// Told again, by a restored store, the comment still knows its base.
	if err := w.st.PutNotice(t.Context(), store.Notice{Repo: "kit/kit", Number: p.Number, Head: head, Comment: "older"}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.says(p, "**Better.**", "where it left ` next `.")
}
