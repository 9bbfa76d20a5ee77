package githubtest

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Git is a repository on disk, served by git's own program.
type Git struct {
	Dir string

	t    testing.TB
	repo *git.Repository
	when time.Time
}

func newGit(t testing.TB) *Git {
	dir := filepath.Join(t.TempDir(), "r.git")
	repo, err := git.PlainInit(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return &Git{Dir: dir, t: t, repo: repo, when: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (g *Git) write(encode func(plumbing.EncodedObject) error) plumbing.Hash {
	g.t.Helper()
	o := g.repo.Storer.NewEncodedObject()
	if err := encode(o); err != nil {
		g.t.Fatal(err)
	}
	id, err := g.repo.Storer.SetEncodedObject(o)
	if err != nil {
		g.t.Fatal(err)
	}
	return id
}

// Commit writes a commit of these files, at the top of the tree.
func (g *Git) Commit(files map[string]string, subject string, parents ...string) string {
	g.t.Helper()
	var tree object.Tree
	for name, text := range files {
		id := g.write(func(o plumbing.EncodedObject) error {
			o.SetType(plumbing.BlobObject)
			w, err := o.Writer()
			if err != nil {
				return err
			}
			defer w.Close()
			_, err = w.Write([]byte(text))
			return err
		})
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: id})
	}
	slices.SortFunc(tree.Entries, func(a, b object.TreeEntry) int { return strings.Compare(a.Name, b.Name) })
	g.when = g.when.Add(time.Minute)
	who := object.Signature{Name: "Some Author", Email: "one@example.org", When: g.when}
	c := object.Commit{Author: who, Committer: who, Message: subject + "\n", TreeHash: g.write(tree.Encode)}
	for _, p := range parents {
		c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(p))
	}
	return g.write(c.Encode).String()
}

func (g *Git) set(name, commit string) {
	g.t.Helper()
	if err := g.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.ReferenceName(name), plumbing.NewHash(commit))); err != nil {
		g.t.Fatal(err)
	}
}

// Branch points a branch at a commit.
func (g *Git) Branch(name, commit string) { g.set("refs/heads/"+name, commit) }

// DeleteBranch deletes a branch.
func (g *Git) DeleteBranch(name string) {
	if err := g.repo.Storer.RemoveReference(plumbing.ReferenceName("refs/heads/" + name)); err != nil {
		g.t.Fatal(err)
	}
}

// Pull points a pull request's head at a commit.
func (g *Git) Pull(n int, commit string) { g.set("refs/pull/"+strconv.Itoa(n)+"/head", commit) }

// DropPull takes the reference of a pull request's head away.
func (g *Git) DropPull(n int) {
	if err := g.repo.Storer.RemoveReference(plumbing.ReferenceName("refs/pull/" + strconv.Itoa(n) + "/head")); err != nil {
		g.t.Fatal(err)
	}
}

// Tip is the commit of a branch.
func (g *Git) Tip(branch string) string {
	ref, err := g.repo.Storer.Reference(plumbing.ReferenceName("refs/heads/" + branch))
	if err != nil {
		g.t.Fatal(err)
	}
	return ref.Hash().String()
}

// Has says whether there is such a commit.
func (g *Git) Has(commit string) bool {
	_, err := g.repo.CommitObject(plumbing.NewHash(commit))
	return err == nil
}

// Backend is git's program for serving over HTTP, "" if it is missing.
func Backend() string {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return ""
	}
	file := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

// NeedGit skips a test where git cannot serve, unless it runs in CI.
func NeedGit(t testing.TB) {
	t.Helper()
	if Backend() != "" {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("git's http-backend is missing, and CI must run this test")
	}
	t.Skip("git's http-backend is missing: install git")
}

// git serves /owner/name.git to whoever has a token.
func (s *Server) git(w http.ResponseWriter, req *http.Request) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), ".git/")
	s.mu.Lock()
	repo := s.repos[strings.ToLower(name)]
	who := s.who(req.Header.Get("Authorization"))
	s.requests = append(s.requests, "GIT "+req.URL.RequestURI())
	fault := s.fault("GIT", req.URL.Path)
	s.mu.Unlock()
	switch {
	case fault != nil && fault.HangUp && !fault.After:
		panic(http.ErrAbortHandler)
	case fault != nil && !fault.After:
		w.WriteHeader(fault.Status)
		return
	case who == "" || who == "jwt":
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	case !ok || repo == nil:
		http.NotFound(w, req)
		return
	}
	if fault != nil && fault.HangUp {
		w = &short{ResponseWriter: w, left: 300}
	}
	req.URL.Path = "/" + filepath.Base(repo.Git.Dir) + "/" + rest
	handler := cgi.Handler{Path: Backend(), Env: []string{
		"GIT_PROJECT_ROOT=" + filepath.Dir(repo.Git.Dir), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	handler.ServeHTTP(w, req)
}

// short hangs up in the middle of an answer.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(b []byte) (int, error) {
	if len(b) > s.left {
		s.ResponseWriter.Write(b[:s.left])
		s.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	s.left -= len(b)
	return s.ResponseWriter.Write(b)
}
