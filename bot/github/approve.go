package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/api"
	"patchbench/bot/github/hint"
)

// goneSince is when the head was first seen as it is and its fork gone, by
// GitHub's clock, which says that it is now: nobody has pushed to it since.
func (c *Client) goneSince(ctx context.Context, p *pull, now string) (time.Time, error) {
	name := "github:gone:" + p.ref()
	text, err := c.st.Value(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	head, at, _ := strings.Cut(text, " ")
	if seen, err := http.ParseTime(at); err == nil && head == p.head() {
		return seen, nil
	}
	seen, err := http.ParseTime(now)
	if err != nil {
		return seen, fmt.Errorf("read pull request %s: the answer says no time: %w", p.ref(), err)
	}
	return seen, c.st.SetValue(ctx, name, p.head()+" "+now)
}

// approved says why the head may run without a command, "" if it may not.
func (c *Client) approved(ctx context.Context, p *pull) (why string, err error) {
	if p.trusted() {
		return "its author is trusted", nil
	}
	if p.set.Label == "" || !slices.ContainsFunc(p.Labels, func(l *github.Label) bool { return strings.EqualFold(l.GetName(), p.set.Label) }) {
		return "", nil
	}
	who, at, rebased, err := c.labelled(ctx, p)
	switch {
	case err != nil || at.IsZero():
		return "", err
	case p.pushedSince(at):
		c.o.Log.Info("github: pushed after the label", "pull", p.ref(), "head", p.head())
		return "", nil
	case !rebased.Before(at):
		c.o.Log.Info("github: another base branch since the label", "pull", p.ref(), "base", p.GetBase().GetRef())
		return "", nil
	}
	return "labelled by " + who, nil
}

// trusted says whether all who can push to the branch are trusted: anybody can
// open a pull request from anybody's fork, and what is pushed there is its head.
func (p *pull) trusted() bool {
	in := func(login string) bool {
		return slices.ContainsFunc(p.set.Trusted, func(t string) bool { return strings.EqualFold(t, login) })
	}
	author, owner := p.GetUser().GetLogin(), p.GetHead().GetUser().GetLogin()
	return in(author) && (p.own() || strings.EqualFold(owner, author) || in(owner))
}

// own says whether the branch is one of the repository itself.
func (p *pull) own() bool {
	id := p.GetHead().GetRepo().GetID()
	return id != 0 && id == p.GetBase().GetRepo().GetID()
}

// maxPages bounds how far back a list is read.
const maxPages = 30

// labelled tells who put the label on last, and when, and when the base branch
// became another one; zero if that is not known.
func (c *Client) labelled(ctx context.Context, p *pull) (who string, at, rebased time.Time, err error) {
	// The newest are on the last page. What came before the label does not matter.
	scan := func(events []*github.IssueEvent) {
		for _, e := range events {
			switch when := e.GetCreatedAt().Time; e.GetEvent() {
			case "labeled":
				if strings.EqualFold(e.GetLabel().GetName(), p.set.Label) && !when.Before(at) {
					who, at = e.GetActor().GetLogin(), when
				}
			case "base_ref_changed", "automatic_base_change_succeeded":
				if when.After(rebased) {
					rebased = when
				}
			}
		}
	}
	list := func(page int) ([]*github.IssueEvent, *github.Response, error) {
		events, res, err := p.client.Issues.ListIssueEvents(ctx, p.client.Owner, p.client.Name, p.GetNumber(), &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			err = fmt.Errorf("list the events of pull request %s: %w", p.ref(), err)
		}
		return events, res, err
	}
	first, res, err := list(1)
	if err != nil {
		return "", at, rebased, err
	}
	for page := res.LastPage; page > max(1, res.LastPage-maxPages) && at.IsZero(); page-- {
		events, _, err := list(page)
		if err != nil {
			return "", at, rebased, err
		}
		scan(events)
	}
	if at.IsZero() {
		scan(first)
	}
	return who, at, rebased, nil
}

// pushedSince says whether the head may have come after a time. Who can push to
// the repository itself could have approved as well.
func (p *pull) pushedSince(at time.Time) bool {
	from := p.GetHead().GetRepo()
	switch {
	case from == nil:
		return !p.gone.Before(at)
	case p.own():
		return false
	}
	return from.PushedAt == nil || !from.GetPushedAt().Before(at)
}

// refusedFor is how long somebody who has no write access is not looked up
// again: each time costs of GitHub's limit, and anybody can comment.
const refusedFor = time.Minute

func (c *Client) wasRefused(h hint.Hint) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.refused[h.Repo+" "+h.Login]
	return ok && c.o.Now().Sub(at) < refusedFor
}

func (c *Client) refuse(repo, login string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.o.Now()
	maps.DeleteFunc(c.refused, func(_ string, at time.Time) bool { return now.Sub(at) >= refusedFor })
	c.refused[repo+" "+login] = now
}

// may says whether what somebody asks for is to be done: he has write access, and
// it was not done before.
func (c *Client) may(ctx context.Context, h hint.Hint) (bool, error) {
	if h.Kind == hint.Commanded {
		if was, err := c.st.Value(ctx, outcome(h)); err != nil || was != "" {
			return false, err
		}
	}
	known := c.wasRefused(h)
	if !known {
		if may, err := c.mayWrite(ctx, h); err != nil || may {
			return may, err
		}
		c.refuse(h.Repo, h.Login)
	}
	c.o.Log.Info("github: command of somebody without write access", "pull", api.Ref(h.Repo, h.Number), "login", h.Login)
	if known || h.Kind != hint.Commanded {
		return false, nil
	}
	return false, c.st.SetValue(ctx, outcome(h), "refused")
}

// mayWrite asks GitHub whether somebody has write access.
func (c *Client) mayWrite(ctx context.Context, h hint.Hint) (bool, error) {
	a, g, err := c.access.API()
	if err != nil {
		return false, err
	}
	name, _, ours := api.Find(g, h.Repo)
	if !ours || !hint.IsLogin(h.Login) {
		return false, nil
	}
	r, err := a.Repo(ctx, name)
	if err != nil {
		return false, err
	}
	level, _, err := r.Repositories.GetPermissionLevel(ctx, r.Owner, r.Name, h.Login)
	if fault, _ := api.FaultOf(err); fault == api.Missing {
		return false, nil // nobody is told of who is not there
	} else if err == nil && level.GetPermission() == "" {
		err = errors.New("the answer says nothing")
	}
	if err != nil {
		return false, fmt.Errorf("ask for the rights of %s on %s: %w", h.Login, name, err)
	}
	return level.GetPermission() == "write" || level.GetPermission() == "admin", nil
}
