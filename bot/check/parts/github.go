package parts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"patchbench/bot/github/api"
	"patchbench/config/service"
)

func (c *checker) github(ctx context.Context) {
	const name = "github"
	g := c.cfg.GitHub
	if g == nil {
		return
	}
	transport := c.o.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	a, err := api.New(*g, api.Options{Now: c.o.Now, Transport: &dates{c: c, who: "GitHub", next: transport}})
	if err != nil {
		c.say(name, Wrong, "", "%v", err)
		return
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	login, err := a.Login(ctx)
	if err != nil {
		do := "check token_file: the token may have been revoked or have expired"
		if g.AppID != 0 {
			do = "check app_id and key_file, and this machine's clock"
		}
		c.githubFailed(name, do, err)
		return
	}
	how := "asks every " + g.Poll.String()
	switch {
	case g.WebhookSecret != "" && g.Poll > 0:
		how = "is told by a webhook, and " + how
	case g.WebhookSecret != "":
		how = "is told by a webhook"
	}
	c.say(name, OK, "", "writes as %s, %s", login, how)
	if !a.IsApp() {
		c.say(name, Note, "register a GitHub App if you want checks", "with a token there are comments and no check runs: GitHub takes those from Apps alone")
	}
	for _, repo := range slices.Sorted(maps.Keys(g.Repositories)) {
		c.repository(ctx, a, repo, g.Repositories[repo])
	}
}

func (c *checker) repository(ctx context.Context, a *api.API, repo string, conf service.Repository) {
	const name = "github"
	r, err := a.Repo(ctx, repo)
	do := "check its name, and that the token may read it"
	if a.IsApp() {
		do = "install the App on it, with read access to contents and issues, and write access to pull requests and checks"
	}
	if err != nil {
		c.githubFailed(name, do, err)
		return
	}
	if a.IsApp() && c.cfg.GitHub.WebhookSecret != "" {
		for _, e := range []struct{ event, page, without string }{
			{"pull_request", "Pull request", "labels and pushes are not seen"},
			{"issue_comment", "Issue comment", "/bench is not seen"},
			{"check_run", "Check run", "nobody can ask for a check once more"},
		} {
			if !slices.Contains(r.Events, e.event) {
				c.say(name, Wrong, "subscribe to "+e.page+" on the App's page, under permissions and events", "%s: the webhook is not told of %s: %s", repo, e.event, e.without)
			}
		}
	}
	got, _, err := r.Repositories.Get(ctx, r.Owner, r.Name)
	if err != nil {
		c.githubFailed(name, do, fmt.Errorf("%s: %w", repo, err))
		return
	}
	switch {
	case got.GetArchived():
		c.say(name, Wrong, "take it out of github.repositories", "%s is archived: nobody can comment there", repo)
	default:
		_, _, err := r.Issues.GetLabel(ctx, r.Owner, r.Name, conf.Label)
		if fault, _ := api.FaultOf(err); fault == api.Missing {
			c.say(name, Note, "make the label on its page of labels", "%s has no label %q: only /bench and trusted authors start evaluations", repo, conf.Label)
			return
		}
		c.say(name, OK, "", "%s: %s, label %q, project %s", repo, map[bool]string{true: "private", false: "public"}[got.GetPrivate()], conf.Label, conf.Project)
	}
}

// githubFailed tells of an error of a request.
func (c *checker) githubFailed(name, do string, err error) {
	switch fault, until := api.FaultOf(err); {
	case fault == api.Limited:
		c.say(name, Away, "try again then", "%v (GitHub wants silence until %s)", err, until.UTC().Format(time.RFC3339))
	case fault == api.Temporary && (silent(err) || errors.Is(err, context.Canceled)):
		c.failed(name, do, err)
	case fault == api.Temporary:
		c.say(name, Away, "try again later", "%v", err)
	default:
		c.say(name, Wrong, do, "%v", err)
	}
}
