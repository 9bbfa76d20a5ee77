package api

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"patchbench/config/service"
)

// Access is the API by the service's file as it is now. It may be used by
// several goroutines.
type Access struct {
	cfg func() *service.Config
	o   Options

	mu  sync.Mutex
	api *API
	of  credentials // of api
}

// credentials are what an API is made with.
type credentials struct {
	app        int64
	key, token service.Secret
	base       string
}

// ErrOff says that GitHub is no part of the service any more.
var ErrOff = errors.New("github: not in the service's file")

// NewAccess tries the access that cfg names; nothing is sent. A changed access or
// repository counts at once.
func NewAccess(cfg func() *service.Config, o Options) (*Access, error) {
	a := &Access{cfg: cfg, o: o}
	_, _, err := a.API()
	return a, err
}

// API is the access of now, and the settings that it is by; an error is ErrOff
// or a fault of these.
func (a *Access) API() (*API, *service.GitHub, error) {
	g := a.cfg().GitHub
	if g == nil {
		return nil, nil, ErrOff
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := (credentials{g.AppID, g.Key, g.Token, g.BaseURL}); a.api == nil || a.of != of {
		api, err := New(*g, a.o)
		if err != nil {
			return nil, nil, err
		}
		a.api, a.of = api, of
	}
	return a.api, g, nil
}

// Config is the service's file as it is now.
func (a *Access) Config() *service.Config { return a.cfg() }

// Forget drops what is known of a repository after GitHub knew neither it nor us:
// the App may have been installed anew, or its token withdrawn.
func (a *Access) Forget(repo string, fault Fault) {
	if fault != Missing && fault != Denied {
		return
	}
	if api, _, err := a.API(); err == nil {
		api.Forget(repo)
	}
}

// Find finds a repository of the service's file, under the name that it has
// there.
func Find(g *service.GitHub, repo string) (name string, r service.Repository, ok bool) {
	for name, r := range g.Repositories {
		if strings.EqualFold(name, repo) {
			return name, r, true
		}
	}
	return "", r, false
}

// Ref names a pull request, as it stands in tasks.
func Ref(repo string, number int) string { return fmt.Sprintf("%s#%d", repo, number) }

// TriesMissing is how often to ask for what GitHub refuses or does not show us.
const TriesMissing = 3

// firstPause is the pause after one attempt in vain.
const firstPause = 5 * time.Second

// Pause is what to wait after n attempts in vain, longest at most.
func Pause(n int, longest time.Duration) time.Duration {
	return min(firstPause<<min(max(n-1, 0), 20), longest)
}
