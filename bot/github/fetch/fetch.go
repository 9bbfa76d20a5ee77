// Package fetch is the worker's side of a pull request: it brings the commits in.
//
// In goes what was decided about a pull request; out come the repository and the
// range that bot/eval takes. What cannot be measured is refused before anybody
// spends an hour on it, with a reason that is told at the pull request.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/api"
	"patchbench/bot/github/mirror"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// Errors of Prepare that can be tested for. Others are of the network or the
// disk, and worth another try.
var (
	// ErrPull says that the pull request itself cannot be evaluated.
	ErrPull = errors.New("not evaluated")
	// ErrMoved is an ErrPull: the head is another commit than the approved one, or
	// the base branch another one.
	ErrMoved = mirror.ErrMoved
)

// pullError is an ErrPull with its reason.
type pullError struct{ err error }

func (e *pullError) Error() string        { return "not evaluated: " + e.err.Error() }
func (e *pullError) Unwrap() error        { return e.err }
func (e *pullError) Is(target error) bool { return target == ErrPull }

// rebasedError is an ErrMoved of the base branch.
type rebasedError struct{ now, was string }

func (e *rebasedError) Error() string {
	return fmt.Sprintf("the pull request's base branch is %q by now, not %q", e.now, e.was)
}
func (e *rebasedError) Is(target error) bool { return target == ErrMoved }

// SameBase says whether a pull request still has the base that was decided on. A
// branch that was renamed is the same one: only its commit is told anew when a
// pull request is given another base.
func SameBase(p store.PullPayload, now *github.PullRequest) bool {
	return now.GetBase().GetRef() == p.BaseRef || now.GetBase().GetSHA() == p.Base
}

const (
	// maxVersions is the most commits that are measured one by one.
	maxVersions = 100
	// fetchTime bounds a fetch; the first one takes in the whole history.
	fetchTime = 30 * time.Minute
)

// Fetcher prepares pull requests. It may be used by several goroutines.
type Fetcher struct{ access *api.Access }

// New makes a fetcher; nothing is sent.
func New(access *api.Access) *Fetcher { return &Fetcher{access} }

// Prepare brings a pull request's commits in and gives the repository and the
// range that bot/eval takes: its first-parent line from where that left the base
// branch to the approved head. The token stays in this process.
func (f *Fetcher) Prepare(ctx context.Context, p store.PullPayload) (repo, from, to string, err error) {
	a, g, err := f.access.API()
	if err != nil {
		return "", "", "", err
	}
	name, _, ours := api.Find(g, p.Repo)
	if !ours {
		return "", "", "", &pullError{fmt.Errorf("repository %s is no longer in the service's file", p.Repo)}
	}
	r, err := a.Repo(ctx, name)
	if err != nil {
		return "", "", "", err
	}
	token, err := r.GitToken(ctx)
	if err != nil {
		return "", "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	// What was decided on may be over, and nobody may have told us.
	live, err := now(ctx, r, p)
	if err != nil {
		return "", "", "", err
	}
	want := mirror.Request{URL: a.GitURL(name), Token: token, Number: p.Number, Head: p.Head, Branch: p.BaseRef, Most: g.MaxFetch, Transport: a.Transport()}
	if live != nil {
		want.Branch = live.GetBase().GetRef()
	}
	dir := filepath.Join(f.access.Config().State, "github", strings.ToLower(r.Owner), strings.ToLower(r.Name)+".git")
	base, err := mirror.Fetch(ctx, dir, want)
	if live != nil && (errors.Is(err, mirror.ErrMoved) || errors.Is(err, mirror.ErrNoPull)) {
		// GitHub's git servers come behind what its API says.
		return "", "", "", fmt.Errorf("wait for the head of pull request %s to reach GitHub's git servers: %v", api.Ref(p.Repo, p.Number), err)
	}
	switch {
	case errors.Is(err, mirror.ErrTooLarge):
		return "", "", "", &pullError{fmt.Errorf("%w; max_fetch in [github] of the service's file sets the limit", err)}
	case errors.Is(err, mirror.ErrMoved), errors.Is(err, mirror.ErrNoPull), errors.Is(err, mirror.ErrNoBranch):
		return "", "", "", &pullError{err}
	case err != nil:
		a.Forget(name) // its token may be one that was withdrawn
		return "", "", "", err
	}
	if err := measurable(ctx, dir, base, p.Head); err != nil {
		return "", "", "", err
	}
	return dir, base, p.Head, nil
}

// now asks for a pull request as it is now, which must have the head and base that
// were decided on; nil if GitHub does not show it.
func now(ctx context.Context, r *api.Repo, p store.PullPayload) (*github.PullRequest, error) {
	live, _, err := r.PullRequests.Get(ctx, r.Owner, r.Name, p.Number)
	if fault, _ := api.FaultOf(err); fault == api.Missing {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("ask for the head and base of pull request %s: %w", api.Ref(p.Repo, p.Number), err)
	}
	switch head := live.GetHead().GetSHA(); {
	case head == "" || live.GetBase().GetRef() == "":
		return nil, fmt.Errorf("ask for the head and base of pull request %s: the answer has none", api.Ref(p.Repo, p.Number))
	case head != p.Head:
		return nil, &pullError{fmt.Errorf("%w: %.12s, not %.12s", ErrMoved, head, p.Head)}
	case !SameBase(p, live):
		return nil, &pullError{&rebasedError{live.GetBase().GetRef(), p.BaseRef}}
	}
	return live, nil
}

// measurable looks at the commits before anybody spends an hour on them.
func measurable(ctx context.Context, dir, base, head string) error {
	repo, err := tree.Open(dir)
	if err != nil {
		return err
	}
	defer repo.Close()
	stack, err := repo.Range(ctx, base, head)
	var input *tree.InputError
	switch {
	case errors.As(err, &input):
		return &pullError{err}
	case err != nil:
		return err
	case len(stack.Steps) == 0:
		return &pullError{errors.New("it has no commits beside those of its base branch")}
	case len(stack.Steps) > maxVersions:
		return &pullError{fmt.Errorf("it has %d commits along the first parent; %d at most are measured one by one", len(stack.Steps), maxVersions)}
	}
	return nil
}
