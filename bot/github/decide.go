package github

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/api"
	"patchbench/bot/github/fetch"
	"patchbench/bot/github/hint"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
)

// pull is a pull request as GitHub shows it now, with what we know of it.
type pull struct {
	*github.PullRequest
	client  *api.Repo
	repo    string // as in the service's file
	set     service.Repository
	project *service.Project
	tasks   []store.Task // the newest first
	at      *store.Task  // the newest task for this head on this base, nil for none
	gone    time.Time    // when the head's fork was first seen to be gone; zero: it is there
}

func (p *pull) ref() string { return api.Ref(p.repo, p.GetNumber()) }

func (p *pull) head() string { return p.GetHead().GetSHA() }

// newest is the newest task for a commit, nil for none.
func (p *pull) newest(head string) *store.Task {
	for i := range p.tasks {
		if p.tasks[i].Content == head {
			return &p.tasks[i]
		}
	}
	return nil
}

// live are the keys of tasks that have not ended.
func (p *pull) live() (keys []string) {
	for _, t := range p.tasks {
		if isLive(t.State) {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

func isLive(s store.State) bool { return s == store.Held || s == store.Queued || s == store.Running }

// handle does what a hint asks for.
func (c *Client) handle(ctx context.Context, h hint.Hint) error {
	// Who asks is looked at first: anybody may comment, anywhere and often.
	if h.Kind != hint.Changed {
		if may, err := c.may(ctx, h); err != nil || !may {
			return err
		}
	}
	p, err := c.pull(ctx, h)
	if err != nil || p == nil {
		return err
	}
	if p.GetState() == "closed" {
		err = c.close(ctx, p)
	} else {
		switch h.Kind {
		case hint.Changed:
			err = c.changed(ctx, p)
		case hint.Commanded:
			err = c.command(ctx, p, h)
		case hint.Rerun:
			err = c.rerun(ctx, p, h)
		}
	}
	if err != nil {
		return err
	}
	return c.show(ctx, p.ref())
}

// pull asks GitHub for the pull request of a hint; nil if it is not ours any more.
func (c *Client) pull(ctx context.Context, h hint.Hint) (*pull, error) {
	a, g, err := c.access.API()
	if err != nil {
		return nil, err
	}
	name, set, ours := api.Find(g, h.Repo)
	if !ours {
		return nil, nil
	}
	p := &pull{repo: name, set: set, project: c.access.Config().ProjectOf(set.Project)}
	if p.project == nil {
		return nil, fmt.Errorf("github: repository %s: no project %s in the service's file", name, set.Project)
	}
	if p.client, err = a.Repo(ctx, name); err != nil {
		return nil, err
	}
	var res *github.Response
	p.PullRequest, res, err = p.client.PullRequests.Get(ctx, p.client.Owner, p.client.Name, h.Number)
	if err != nil {
		return nil, fmt.Errorf("read pull request %s: %w", api.Ref(name, h.Number), err)
	}
	if p.GetNumber() != h.Number || !isCommit(p.head()) {
		return nil, fmt.Errorf("read pull request %s: the answer is none: number %d, head %.50q", api.Ref(name, h.Number), p.GetNumber(), p.head())
	}
	if p.GetHead().GetRepo() == nil {
		if p.gone, err = c.goneSince(ctx, p, res.Header.Get("Date")); err != nil {
			return nil, err
		}
	}
	if p.tasks, err = c.st.Tasks(ctx, store.TaskFilter{Kind: store.KindPull, Ref: p.ref(), Limit: 100}); err != nil {
		return nil, err
	}
	at := p.newest(p.head())
	if at == nil {
		return p, nil
	}
	before, err := c.payload(ctx, at)
	if err != nil {
		return nil, err
	}
	if fetch.SameBase(before, p.PullRequest) {
		p.at = at
	}
	return p, nil
}

// payload is that of a task.
func (c *Client) payload(ctx context.Context, t *store.Task) (p store.PullPayload, err error) {
	full, err := c.st.Task(ctx, t.ID)
	if err != nil {
		return p, err
	}
	return p, store.DecodePayload(full.Payload, &p)
}

func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// whyClosed is the reason of a run that ended with its pull request.
const whyClosed = "the pull request was closed"

// close ends what runs for a pull request that is closed.
func (c *Client) close(ctx context.Context, p *pull) error {
	why := whyClosed
	if p.GetMerged() {
		why = "the pull request was merged"
	}
	return c.end(ctx, p, store.Stopped, why)
}

// end ends all that runs for a pull request.
func (c *Client) end(ctx context.Context, p *pull, to store.State, why string) error {
	for _, t := range p.tasks {
		if !isLive(t.State) {
			continue
		}
		if err := c.st.End(ctx, t.ID, to, why); err != nil {
			return err
		}
		c.o.Log.Info("github: run ended", "pull", p.ref(), "job", t.ID, "why", why)
	}
	return nil
}

// changed looks whether the head may run, and puts an end to the runs of others,
// and of the head on another base.
func (c *Client) changed(ctx context.Context, p *pull) error {
	at := p.at
	reopened := at != nil && at.State == store.Stopped && at.Reason == whyClosed
	if at != nil && at.State != store.Superseded && at.State != store.Held && !reopened {
		return c.endOthers(ctx, p)
	}
	why, err := c.approved(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case why != "" && at != nil && at.State == store.Held:
		if err := c.st.Release(ctx, at.ID, why); err != nil {
			return err
		}
		return c.endOthers(ctx, p)
	case why == "" && (reopened || at != nil && at.State == store.Held):
		return c.endOthers(ctx, p)
	case why != "":
		return c.decide(ctx, p, run{state: store.Queued, why: why})
	case len(p.tasks) == 0:
		return nil // nobody asked
	}
	why = "pushed after what was approved"
	if p.newest(p.head()) != nil {
		why = p.rebased() + "; approve it once more"
	}
	return c.decide(ctx, p, run{state: store.Held, why: why})
}

// rebased says that the base branch is another one than before.
func (p *pull) rebased() string {
	return fmt.Sprintf("the base branch was changed to %q", p.GetBase().GetRef())
}

// endOthers supersedes what runs beside the task of now, which is there.
func (c *Client) endOthers(ctx context.Context, p *pull) error {
	others := *p
	others.tasks = slices.DeleteFunc(slices.Clone(p.tasks), func(t store.Task) bool { return t.ID == p.at.ID })
	return c.end(ctx, &others, store.Superseded, "a newer commit is the head")
}

// run is what to decide about the head.
type run struct {
	state      store.State
	why        string
	benchmarks []string
	suffix     string // of the key, where the head has a task already
}

// decide makes the head's task, which supersedes what else runs for the pull
// request.
func (c *Client) decide(ctx context.Context, p *pull, r run) error {
	head := p.head()
	key := p.ref() + "@" + head
	if r.suffix == "" && p.newest(head) != nil {
		r.suffix = strconv.FormatInt(p.tasks[0].ID, 10)
	}
	if r.suffix != "" {
		key += "!" + r.suffix
	}
	supersede := p.live()
	before := ""
	if len(p.tasks) > 0 {
		before = p.tasks[0].Key
	}
	title := p.GetTitle()
	if len(title) > 500 {
		title = strings.ToValidUTF8(title[:500], "")
	}
	author := p.GetUser().GetLogin()
	t, fresh, err := c.st.Decide(ctx, store.Decision{
		Supersede: slices.DeleteFunc(supersede, func(k string) bool { return k == key }),
		Task: store.Task{
			Key: key, Kind: store.KindPull, Project: p.project.Name, Class: p.project.Class, Ref: p.ref(),
			Title: title, Author: mbox.Address{Name: author}, Content: head, State: r.state, Reason: r.why,
			Created: c.o.Now().UTC(), Supersedes: before,
			Payload: store.EncodePayload(store.PullPayload{
				Repo: p.repo, Number: p.GetNumber(), Head: head, Base: p.GetBase().GetSHA(), BaseRef: p.GetBase().GetRef(),
				Title: title, Author: author, URL: p.GetHTMLURL(), Benchmarks: r.benchmarks,
				Installation: p.client.Installation, Supersedes: before,
			}),
		},
	})
	if err != nil {
		return err
	}
	if fresh {
		c.o.Log.Info("github: decided", "pull", p.ref(), "head", head, "job", t.ID, "state", string(t.State), "why", r.why)
	}
	return nil
}

// command does what somebody wrote who may.
func (c *Client) command(ctx context.Context, p *pull, h hint.Hint) (err error) {
	if h.Command.Stop {
		err = c.end(ctx, p, store.Stopped, "stopped by "+h.Login)
	} else {
		err = c.ask(ctx, p, h, "c"+h.ID)
	}
	if err != nil {
		return err
	}
	return c.st.SetValue(ctx, outcome(h), "done")
}

// outcome is the name of what became of a command, which is kept, as the task that
// it made may be superseded when it comes again.
func outcome(h hint.Hint) string { return "github:command:" + h.Repo + ":" + h.ID }

// rerun runs the head again for somebody who may ask for that.
func (c *Client) rerun(ctx context.Context, p *pull, h hint.Hint) error {
	if h.Head != p.head() {
		c.o.Log.Info("github: asked to run a commit that is not the head", "pull", p.ref(), "commit", h.Head)
		return nil
	}
	return c.ask(ctx, p, h, "r"+h.ID)
}

// ask runs the head for somebody who may approve it; suffix is that of the key
// if it ran before.
func (c *Client) ask(ctx context.Context, p *pull, h hint.Hint, suffix string) error {
	at := p.at
	if h.Kind == hint.Commanded && p.pushedSince(h.At) {
		if at != nil && isLive(at.State) {
			return c.endOthers(ctx, p) // held, or approved otherwise
		}
		why := "the branch was pushed to after " + h.Login + " approved it; approve it once more"
		if !p.gone.IsZero() {
			why = "the branch's fork is deleted, and may have been pushed to after " + h.Login + " approved it; approve it once more"
		}
		return c.decide(ctx, p, run{state: store.Held, why: why})
	}
	why := "asked for by " + h.Login
	if at == nil {
		return c.decide(ctx, p, run{state: store.Queued, why: why, benchmarks: h.Command.Benchmarks})
	}
	if isLive(at.State) {
		before, err := c.payload(ctx, at)
		if err != nil {
			return err
		}
		if slices.Equal(before.Benchmarks, h.Command.Benchmarks) {
			if at.State == store.Held {
				if err := c.st.Release(ctx, at.ID, why); err != nil {
					return err
				}
			}
			return c.endOthers(ctx, p)
		}
	}
	return c.decide(ctx, p, run{state: store.Queued, why: why, benchmarks: h.Command.Benchmarks, suffix: suffix})
}

// show puts the state of the newest task into the outbox, unless that is an
// evaluation, which the worker put there with its report.
func (c *Client) show(ctx context.Context, ref string) error {
	t, err := c.latest(ctx, ref)
	if err != nil || t == nil || t.State == store.Done || t.State == store.Failed {
		return err
	}
	n, err := c.Standing(t)
	if err != nil {
		return err
	}
	return c.st.PutNotice(ctx, *n)
}

// latest is the newest task of a pull request with its payload, nil for none.
func (c *Client) latest(ctx context.Context, ref string) (*store.Task, error) {
	tasks, err := c.st.Tasks(ctx, store.TaskFilter{Kind: store.KindPull, Ref: ref, Limit: 1})
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	return c.st.Task(ctx, tasks[0].ID)
}
