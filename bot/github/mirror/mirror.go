// Package mirror brings a pull request's commits into a bare repository of the
// bot's own, for bot/github.
//
// In go the address of the repository, a number, the head that was approved and
// the base branch; out come the commits of the branch's tip and of the head,
// both on disk. The head is asked for as refs/pull/N/head, which is there for
// forks and after the author's branch is gone, and is refused unless it is the
// approved one: before anything is fetched, and by its content afterwards, as
// every object is named by its hash. No name that comes from the pull request is
// part of a reference, path or request. The token is held in memory alone. The
// branch is fetched first, so that what the pull request adds to it can be bounded.
//
//	state/github/owner/name.git    the mirror; refs/pull/N, refs/base/HASH
//	state/github/owner/name.lock   held while it is filled
package mirror

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/sys/unix"
)

// Errors that can be tested for: what is asked for is not there, and will not
// come back by asking again.
var (
	// ErrMoved says that the pull request has another head than the approved one.
	ErrMoved = errors.New("the pull request's head is another commit by now")
	// ErrNoBranch says that the repository has no such branch.
	ErrNoBranch = errors.New("there is no such branch")
	// ErrNoPull says that the repository has no such pull request.
	ErrNoPull = errors.New("there is no such pull request")
)

// Request is what to fetch.
type Request struct {
	URL    string // of the repository, without a password
	Token  string // "" for a public repository
	Number int    // of the pull request
	Head   string // the approved commit, in full
	Branch string // the base branch
	// Most bounds what the pull request may bring beside the base branch, in bytes
	// as it is sent; 0 for no bound. What it is when it is unpacked is bounded in
	// proportion. The base branch belongs to whoever owns the repository, and takes
	// what it takes.
	Most      int64
	Transport http.RoundTripper
}

const (
	keptPulls = 100  // references of pull requests that stay: more would be told to the server each time
	walk      = 64   // commits told to the server for each reference
	maxHaves  = 4096 // commits told to the server in all
	// manyPacks is how many packs, one for each fetch, slow every look-up so much
	// that fetching anew is better.
	manyPacks = 400
	// manyTimes is likewise how often Most what came after the history may take.
	manyTimes = 16
)

// Fetch fills the bare repository at dir, which it makes if it is not there, and
// gives the tip of the base branch. One fetch at a time is made into a
// repository, by whichever process.
func Fetch(ctx context.Context, dir string, r Request) (base string, err error) {
	if !plumbing.IsHash(r.Head) || r.Number <= 0 {
		return "", fmt.Errorf("fetch pull request %d of %s: %q is no commit", r.Number, r.URL, r.Head)
	}
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("fetch pull request %d of %s: %w", r.Number, r.URL, err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil { // what is in it may be private
		return fail(err)
	}
	unlock, err := lock(ctx, strings.TrimSuffix(dir, ".git")+".lock")
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if full(dir, r.Most) {
		if err := os.RemoveAll(dir); err != nil {
			return fail(err)
		}
	}
	base, err = fetch(ctx, dir, r)
	var broken *brokenError
	if errors.As(err, &broken) && ctx.Err() == nil {
		// What a full disk or a killed process left: the mirror is a copy, so take a new one.
		if err := os.RemoveAll(dir); err != nil {
			return fail(err)
		}
		base, err = fetch(ctx, dir, r)
	}
	if err != nil {
		return fail(err)
	}
	return base, nil
}

// full says whether the mirror at dir has grown so far that it is better made
// anew. The largest pack is the history.
func full(dir string, most int64) bool {
	packs, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	var all, largest int64
	for _, file := range packs {
		if info, err := os.Stat(file); err == nil {
			all, largest = all+info.Size(), max(largest, info.Size())
		}
	}
	return len(packs) > manyPacks || most > 0 && all-largest > manyTimes*most
}

// brokenError is a fault of the mirror itself.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// lockPause is between two looks at a lock that another has.
const lockPause = 100 * time.Millisecond

// lock waits for the file's lock.
func lock(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return func() { f.Close() }, nil
		case unix.EINTR, unix.EWOULDBLOCK:
		default:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", file, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for another fetch: %w", ctx.Err())
		case <-time.After(lockPause):
		}
	}
}

func fetch(ctx context.Context, dir string, r Request) (string, error) {
	repo, err := open(dir)
	if err != nil {
		return "", err
	}
	session, err := newSession(r)
	if err != nil {
		return "", err
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return "", ErrNoBranch
	} else if err != nil {
		return "", err
	}
	head, found := refs.References["refs/pull/"+strconv.Itoa(r.Number)+"/head"]
	switch {
	case !found:
		return "", ErrNoPull
	case head.String() != r.Head:
		return "", fmt.Errorf("%w: %.12s, not %.12s", ErrMoved, head, r.Head)
	}
	base, found := refs.References["refs/heads/"+r.Branch]
	if !found {
		return "", fmt.Errorf("%w: %q", ErrNoBranch, r.Branch)
	}
	f := filler{dir, repo, session, refs.Capabilities}
	if err := f.fill(ctx, base, branchName(r.Branch), 0); err != nil {
		return "", err
	}
	if err := f.fill(ctx, head, pullName(r.Number), r.Most); err != nil {
		return "", err
	}
	if err := forget(repo, r.Number); err != nil {
		return "", &brokenError{err}
	}
	return base.String(), nil
}

// open opens the mirror, or begins one.
func open(dir string) (*git.Repository, error) {
	sweep(dir)
	repo, err := git.PlainOpen(dir)
	if errors.Is(err, git.ErrRepositoryNotExists) {
		if err := os.RemoveAll(dir); err != nil { // an empty or half-made folder
			return nil, err
		}
		return git.PlainInit(dir, true)
	}
	if err != nil {
		return nil, &brokenError{err}
	}
	return repo, nil
}

func newSession(r Request) (transport.UploadPackSession, error) {
	end, err := transport.NewEndpoint(r.URL)
	if err != nil {
		return nil, err
	}
	if end.Protocol != "https" && end.Protocol != "http" {
		return nil, fmt.Errorf("%s is no address on the web", r.URL)
	}
	client := &http.Client{Transport: r.Transport}
	var auth transport.AuthMethod
	if r.Token != "" {
		auth = &githttp.BasicAuth{Username: "x-access-token", Password: r.Token}
	}
	return githttp.NewClient(client).NewUploadPackSession(end, auth)
}

// filler fetches commits into a mirror.
type filler struct {
	dir     string
	repo    *git.Repository
	session transport.UploadPackSession
	caps    *capability.List
}

// fill fetches a commit, if it is not there, in a pack of at most so many bytes,
// and points a reference at it, so that the next fetch can say what is there.
func (f *filler) fill(ctx context.Context, want plumbing.Hash, name plumbing.ReferenceName, most int64) error {
	if _, err := f.repo.CommitObject(want); err != nil {
		if err := f.fetch(ctx, want, most); err != nil {
			return err
		}
	}
	if err := f.repo.Storer.SetReference(plumbing.NewHashReference(name, want)); err != nil {
		return &brokenError{err}
	}
	return nil
}

func (f *filler) fetch(ctx context.Context, want plumbing.Hash, most int64) error {
	req := packp.NewUploadPackRequestFromCapabilities(f.caps)
	if f.caps.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return err
		}
	}
	req.Wants = []plumbing.Hash{want}
	var err error
	if req.Haves, err = haves(f.repo); err != nil {
		return &brokenError{err}
	}
	answer, err := f.session.UploadPack(ctx, req)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := take(f.dir, f.repo.Storer, demultiplex(req.Capabilities, answer), most); err != nil {
		return fmt.Errorf("take the pack: %w", err)
	}
	if _, err := f.repo.CommitObject(want); err != nil {
		return &brokenError{fmt.Errorf("commit %.12s is not in what the server sent: %w", want, err)}
	}
	return nil
}

func demultiplex(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// haves are commits that are there, for the server to leave out with all they
// are made of: some of the newest of each reference, as a branch that was forced
// back has none of its newest in common.
func haves(repo *git.Repository) ([]plumbing.Hash, error) {
	refs, err := repo.References()
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	var list []plumbing.Hash
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference {
			return nil
		}
		id := ref.Hash()
		for n := 0; n < walk && !seen[id] && len(list) < maxHaves; n++ {
			c, err := repo.CommitObject(id)
			if err != nil {
				return fmt.Errorf("%s: commit %.12s: %w", ref.Name(), id, err)
			}
			seen[id], list = true, append(list, id)
			if len(c.ParentHashes) == 0 {
				break
			}
			id = c.ParentHashes[0]
		}
		return nil
	})
	return list, err
}

// forget drops the references of old pull requests, but never that of number.
func forget(repo *git.Repository, number int) error {
	refs, err := repo.References()
	if err != nil {
		return err
	}
	var pulls []int
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if text, ok := strings.CutPrefix(string(ref.Name()), "refs/pull/"); ok {
			if n, err := strconv.Atoi(text); err == nil && n != number {
				pulls = append(pulls, n)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(pulls)
	for len(pulls) >= keptPulls { // the oldest go; their commits stay
		if err := repo.Storer.RemoveReference(pullName(pulls[0])); err != nil {
			return err
		}
		pulls = pulls[1:]
	}
	return nil
}

// branchName keeps a branch under its hash: its name is foreign.
func branchName(branch string) plumbing.ReferenceName {
	return plumbing.ReferenceName(fmt.Sprintf("refs/base/%x", sha256.Sum256([]byte(branch))))
}

func pullName(n int) plumbing.ReferenceName {
	return plumbing.ReferenceName("refs/pull/" + strconv.Itoa(n))
}
