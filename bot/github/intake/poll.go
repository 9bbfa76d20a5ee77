package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/api"
	"patchbench/bot/github/hint"
)

// place is how far polling has come in a repository.
type place struct {
	Pulls        time.Time `json:"pulls"` // all that changed before is known
	PullsETag    string    `json:"pulls_etag,omitempty"`
	Comments     time.Time `json:"comments"` // likewise
	CommentsETag string    `json:"comments_etag,omitempty"`
}

// maxPages bounds how far back a list is read.
const maxPages = 30

// maxPolled is how many pull requests and comments of a repository one poll takes
// up; the next goes on from there.
const maxPolled = 500

// Poll asks GitHub once what is new in each repository. A repository that cannot
// be asked is asked again the next time, from the same place; a new one begins
// now: what was there before is not looked at.
func (in *Intake) Poll(ctx context.Context) {
	a, g, err := in.access.API()
	if err != nil {
		in.o.Log.Error("github: not polled", "error", err)
		return
	}
	names := make([]string, 0, len(g.Repositories))
	for name := range g.Repositories {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		err := in.poll(ctx, a, name)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		in.o.Log.Warn("github: not polled", "repository", name, "error", err)
		fault, _ := api.FaultOf(err)
		in.access.Forget(name, fault)
		if fault == api.Limited {
			return
		}
	}
}

func (in *Intake) poll(ctx context.Context, a *api.API, repo string) error {
	key := "github:poll:" + repo
	text, err := in.st.Value(ctx, key)
	if err != nil {
		return err
	}
	r, err := a.Repo(ctx, repo)
	if err != nil {
		return err
	}
	var at place
	if text == "" {
		if at, err = begin(ctx, r); err != nil {
			return fmt.Errorf("ask what time it is in %s: %w", repo, err)
		}
	} else if err := json.Unmarshal([]byte(text), &at); err != nil {
		return fmt.Errorf("read how far polling came in %s: %w", repo, err)
	}
	pulls, err := in.changedPulls(ctx, r, repo, &at)
	if err != nil {
		return fmt.Errorf("list the pull requests of %s: %w", repo, err)
	}
	commands, err := in.newComments(ctx, r, repo, &at)
	if err != nil {
		return fmt.Errorf("list the comments of %s: %w", repo, err)
	}
	if err := in.queue.Add(ctx, "", append(pulls, commands...)...); err != nil {
		return err
	}
	after, err := json.Marshal(at)
	if err != nil || string(after) == text {
		return err
	}
	return in.st.SetValue(ctx, key, string(after))
}

// begin is the place of a repository that was not polled before: now, by GitHub's
// clock, by which all that is compared with it happens.
func begin(ctx context.Context, r *api.Repo) (place, error) {
	var none []struct{}
	res, err := r.Get(ctx, fmt.Sprintf("repos/%s/%s/pulls?per_page=1", r.Owner, r.Name), "", &none)
	if err != nil {
		return place{}, err
	}
	now, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return place{}, fmt.Errorf("the answer says no time: %w", err)
	}
	return place{Pulls: now, Comments: now}, nil
}

// changedPulls lists the pull requests, closed ones too, that changed since.
func (in *Intake) changedPulls(ctx context.Context, r *api.Repo, repo string, at *place) (hints []hint.Hint, err error) {
	newest, etag := at.Pulls, at.PullsETag
	var times []time.Time // of hints
	for page := 1; page <= maxPages; page++ {
		var list []*github.PullRequest
		q := url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"desc"}, "per_page": {"100"}, "page": {strconv.Itoa(page)}}
		if page > 1 {
			etag = ""
		}
		res, err := r.Get(ctx, fmt.Sprintf("repos/%s/%s/pulls?%s", r.Owner, r.Name, q.Encode()), etag, &list)
		if api.NotModified(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if page == 1 {
			at.PullsETag = res.Header.Get("ETag")
		}
		for _, p := range list {
			when := p.GetUpdatedAt().Time
			if when.Before(at.Pulls) {
				page = maxPages
				break
			}
			if when.After(newest) {
				newest = when
			}
			if p.GetNumber() > 0 {
				hints, times = append(hints, hint.Hint{Kind: hint.Changed, Repo: repo, Number: p.GetNumber()}), append(times, when)
			}
		}
		if res.NextPage == 0 {
			break
		}
	}
	if more := len(hints) - maxPolled; more > 0 { // the oldest first
		hints, newest, at.PullsETag = hints[more:], times[more], ""
	}
	slices.Reverse(hints)
	at.Pulls = newest
	return hints, nil
}

// newComments lists the commands in comments written since.
func (in *Intake) newComments(ctx context.Context, r *api.Repo, repo string, at *place) (hints []hint.Hint, err error) {
	newest, etag := at.Comments, at.CommentsETag
	for page := 1; page <= maxPages; page++ {
		var list []*github.IssueComment
		q := url.Values{"since": {at.Comments.Format(time.RFC3339)}, "sort": {"updated"}, "direction": {"asc"},
			"per_page": {"100"}, "page": {strconv.Itoa(page)}}
		if page > 1 {
			etag = ""
		}
		res, err := r.Get(ctx, fmt.Sprintf("repos/%s/%s/issues/comments?%s", r.Owner, r.Name, q.Encode()), etag, &list)
		if api.NotModified(err) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if page == 1 {
			at.CommentsETag = res.Header.Get("ETag")
		}
		if res.NextPage != 0 {
			at.CommentsETag = "" // the first page may stay as it is while others follow
		}
		for _, m := range list {
			if when := m.GetUpdatedAt().Time; when.After(newest) {
				newest = when
			}
			// An edited comment is no command: it may be old, and another's edit.
			if m.GetCreatedAt().Before(at.Comments) || !m.GetUpdatedAt().Equal(m.GetCreatedAt()) {
				continue
			}
			number, err := strconv.Atoi(path.Base(m.GetIssueURL()))
			if err != nil {
				continue
			}
			hints = append(hints, commentHint(repo, number, m.GetID(), m.GetBody(), m.GetUser().GetLogin(), m.GetUser().GetType(), m.GetCreatedAt().Time)...)
		}
		if res.NextPage == 0 || len(hints) >= maxPolled {
			break
		}
	}
	at.Comments = newest
	return hints, nil
}
