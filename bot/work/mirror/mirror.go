// Package mirror brings a bare git repository up to date with the remote that it
// is a copy of. In goes its folder and the remote's address; branches are moved to
// where the remote's are, none is removed.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"golang.org/x/sys/unix"
)

// ErrNotBare says that the repository has files checked out: to move its branches
// would leave these behind.
var ErrNotBare = errors.New("it is not a bare repository: make the mirror by git clone --mirror, or leave remote out and keep it fresh yourself")

// Fetch brings all branches of remote into the bare repository at dir. Others that
// fetch into it, in other processes too, are waited for.
func Fetch(ctx context.Context, dir, remote string) error {
	fail := func(err error) error { return fmt.Errorf("fetch %s into %s: %w", Printable(remote), dir, err) }
	repo, err := git.PlainOpen(dir)
	if err != nil {
		return fail(err)
	}
	c, err := repo.Config()
	if err != nil {
		return fail(err)
	}
	if !c.Core.IsBare {
		return fail(ErrNotBare)
	}
	unlock, err := lock(dir)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	from := git.NewRemote(repo.Storer, &config.RemoteConfig{Name: "patchbench", URLs: []string{remote}})
	err = from.FetchContext(ctx, &git.FetchOptions{
		RefSpecs: []config.RefSpec{"+refs/heads/*:refs/heads/*"}, Tags: git.NoTags, Force: true,
	})
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return fail(err)
	}
	return nil
}

// Printable is the address without a password.
func Printable(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil {
		return remote
	}
	return u.Redacted()
}

// lock is held on the folder itself, which no other program locks.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
