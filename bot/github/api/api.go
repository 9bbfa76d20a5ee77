// Package api is the way to GitHub: who we are there, which address that is, and
// what its refusals mean. It knows no pull request and decides nothing.
//
// In go the access that the service's file names; out come clients of
// google/go-github for one repository each, authenticated as an installation of
// the App or with the token, and the address and token for git. Requests end
// after half a minute, answers are bounded, and after a rate limit nothing is
// sent until it has passed: such requests fail at once with *LimitError. Nothing
// is tried again here: whoever asks has a queue of his own.
//
//	a, err := api.New(cfg, api.Options{})
//	r, err := a.Repo(ctx, "owner/name")
//	pull, _, err := r.PullRequests.Get(ctx, r.Owner, r.Name, 12)
//	switch fault, until := api.FaultOf(err); fault { ... }
//
// The token is sent to GitHub's own host alone: a redirect to another one is
// refused.
package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v62/github"

	"patchbench/config/service"
)

// Options of an API. The zero value works.
type Options struct {
	Now       func() time.Time  // nil means time.Now
	Transport http.RoundTripper // nil means http.DefaultTransport
}

// timeout is that of one request, from dialling to the last byte.
const timeout = 30 * time.Second

// userAgent is what GitHub wants every client to name itself with.
const userAgent = "patchbench"

// API is the access to one GitHub. It may be used by several goroutines.
type API struct {
	cfg  service.GitHub
	o    Options
	base *url.URL // of the API, with a slash at its end
	git  string   // of the repositories, without one

	self  *github.Client // as the App itself, or with the token
	mu    sync.Mutex
	login string
	repos map[string]*Repo // by name in lower case
	gates map[int64]*gate  // by installation, whose limit all its repositories share
}

// Repo is a client for one repository.
type Repo struct {
	*github.Client
	Owner, Name  string
	Installation int64    // of the App; 0 with a token
	Events       []string // that the App's webhook is told of
	token        func(context.Context) (string, error)
}

// permissions are all that a token of ours may do, whatever the App may.
var permissions = github.InstallationPermissions{
	Checks: github.String("write"), Contents: github.String("read"),
	Metadata: github.String("read"), PullRequests: github.String("write"),
}

// New reads the access; nothing is sent.
func New(cfg service.GitHub, o Options) (*API, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	a := &API{cfg: cfg, o: o, repos: map[string]*Repo{}, gates: map[int64]*gate{}}
	if err := a.address(cfg.BaseURL); err != nil {
		return nil, err
	}
	switch {
	case cfg.AppID != 0:
		t, err := a.app(a.newGate())
		if err != nil {
			return nil, err
		}
		a.self = a.client(t)
	case cfg.Token != "":
		a.self = a.client(&bearer{string(cfg.Token), a.newGate()})
	default:
		return nil, errors.New("github: neither an App nor a token: set app_id and key_file, or token_file")
	}
	return a, nil
}

// address finds where the API and the repositories are.
func (a *API) address(base string) error {
	if base == "" {
		base = "https://api.github.com"
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("github: base_url is no address such as https://github.example.org")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return fmt.Errorf("github: base_url %s: the token would cross the network in clear: use https", u.Redacted())
	}
	// The repositories of an Enterprise server are at its root, those of a host
	// for the API alone beside it.
	git := *u
	git.Host = strings.TrimPrefix(u.Host, "api.")
	git.Path = strings.TrimSuffix(strings.TrimSuffix(git.Path, "/"), "/api/v3")
	a.git = strings.TrimSuffix(git.String(), "/")
	c, err := github.NewClient(nil).WithEnterpriseURLs(base, base)
	if err != nil {
		return fmt.Errorf("github: base_url: %w", err)
	}
	a.base = c.BaseURL
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (a *API) newGate() *gate { return &gate{now: a.o.Now, next: a.o.Transport} }

// gateOf is the gate of an installation.
func (a *API) gateOf(installation int64) *gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.gates[installation]
	if g == nil {
		g = a.newGate()
		a.gates[installation] = g
	}
	return g
}

// app authenticates as the App itself.
func (a *API) app(g *gate) (*ghinstallation.AppsTransport, error) {
	t, err := ghinstallation.NewAppsTransport(&clock{g}, a.cfg.AppID, []byte(a.cfg.Key))
	if err != nil {
		// What the parser says may quote the key.
		return nil, errors.New("github: key_file holds no RSA private key in PEM, as the App's page gives it")
	}
	t.BaseURL = strings.TrimSuffix(a.base.String(), "/")
	return t, nil
}

func (a *API) client(t http.RoundTripper) *github.Client {
	c := github.NewClient(&http.Client{
		Transport: t, Timeout: timeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Host != a.base.Host || req.URL.Scheme != a.base.Scheme {
				return fmt.Errorf("refused: a redirect from %s to another host, %s", a.base.Host, req.URL.Host)
			}
			if len(via) > 5 {
				return errors.New("refused: more than 5 redirects")
			}
			return nil
		},
	})
	c.BaseURL, c.UserAgent = a.base, userAgent
	return c
}

// SplitRepo takes owner/name apart; ok is false if it is not of that form.
func SplitRepo(repo string) (owner, name string, ok bool) {
	owner, name, ok = strings.Cut(repo, "/")
	return owner, name, ok && part(owner) && part(name)
}

// part says whether GitHub would have s as the name of an owner or repository.
func part(s string) bool {
	if s == "" || s == "." || s == ".." || len(s) > 100 {
		return false
	}
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.') {
			return false
		}
	}
	return true
}

// Repo gives the client for owner/name. With an App, the installation is asked
// for once.
func (a *API) Repo(ctx context.Context, repo string) (*Repo, error) {
	owner, name, ok := SplitRepo(repo)
	if !ok {
		return nil, fmt.Errorf("github: %q is no owner/name", repo)
	}
	key := strings.ToLower(repo)
	a.mu.Lock()
	r := a.repos[key]
	a.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r = &Repo{Client: a.self, Owner: owner, Name: name, token: func(context.Context) (string, error) { return string(a.cfg.Token), nil }}
	if a.cfg.AppID != 0 {
		in, _, err := a.self.Apps.FindRepositoryInstallation(ctx, owner, name)
		if err != nil {
			return nil, fmt.Errorf("find the App's installation on %s: %w", repo, err)
		}
		apps, err := a.app(a.gateOf(in.GetID()))
		if err != nil {
			return nil, err
		}
		t := ghinstallation.NewFromAppsTransport(apps, in.GetID())
		t.InstallationTokenOptions = &github.InstallationTokenOptions{Repositories: []string{name}, Permissions: &permissions}
		r.Client, r.Installation, r.Events, r.token = a.client(t), in.GetID(), in.Events, t.Token
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.repos[key] = r
	return r, nil
}

// Forget drops what is known of a repository, as after the App was installed anew.
func (a *API) Forget(repo string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.repos, strings.ToLower(repo))
}

// Login is the name under which we write comments.
func (a *API) Login(ctx context.Context) (string, error) {
	a.mu.Lock()
	login := a.login
	a.mu.Unlock()
	if login != "" {
		return login, nil
	}
	if a.cfg.AppID != 0 {
		app, _, err := a.self.Apps.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("ask GitHub for the App's name: %w", err)
		}
		login = app.GetSlug() + "[bot]"
	} else {
		user, _, err := a.self.Users.Get(ctx, "")
		if err != nil {
			return "", fmt.Errorf("ask GitHub whose token this is: %w", err)
		}
		login = user.GetLogin()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.login = login
	return login, nil
}

// IsApp says whether we are an App, which alone may make check runs.
func (a *API) IsApp() bool { return a.cfg.AppID != 0 }

// AppID is the App's number, 0 with a token.
func (a *API) AppID() int64 { return a.cfg.AppID }

// GitURL is the address of owner/name for git, without a token in it.
func (a *API) GitURL(repo string) string { return a.git + "/" + repo + ".git" }

// PullURL is the address of a pull request's page.
func (a *API) PullURL(repo string, number int) string {
	return fmt.Sprintf("%s/%s/pull/%d", a.git, repo, number)
}

// GitToken gives the password for GitURL; the user is x-access-token.
func (r *Repo) GitToken(ctx context.Context) (string, error) {
	token, err := r.token(ctx)
	if err != nil {
		return "", fmt.Errorf("get a token for %s/%s: %w", r.Owner, r.Name, err)
	}
	return token, nil
}

// Transport is what requests go through, for git.
func (a *API) Transport() http.RoundTripper { return a.o.Transport }
