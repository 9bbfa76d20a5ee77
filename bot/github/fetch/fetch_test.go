package fetch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"patchbench/bot/github/api"
	"patchbench/bot/github/githubtest"
	"patchbench/config/service"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// world is a GitHub with one repository, and a worker that serves it.
type world struct {
	hub  *githubtest.Server
	repo *githubtest.Repo
	cfg  *service.Config
	f    *Fetcher
}

func newWorld(t *testing.T) *world {
	w := &world{hub: githubtest.New(t)}
	w.repo = w.hub.Repo("kit/kit")
	w.cfg = w.hub.Config(t.TempDir())
	access, err := api.NewAccess(func() *service.Config { return w.cfg }, api.Options{Now: w.hub.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.f = New(access)
	return w
}

func TestPrepare(t *testing.T) {
	githubtest.NeedGit(t)
	for _, c := range []struct {
		name  string
		pull  func(w *world) (p *githubtest.Pull, head string) // head is the approved one
		want  []string                                         // subjects of the versions; nil if it is refused
		fault string                                           // a part of the refusal
		moved bool
	}{
		{name: "a line", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 3)
			return w.repo.Open("author", "t", head), head
		}, want: []string{"a: change 1", "a: change 2", "a: change 3"}},
		{name: "a base that has moved on", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 2)
			w.repo.Git.Branch("main", w.repo.Git.Line("m", 3))
			return w.repo.Open("author", "t", head), head
		}, want: []string{"a: change 1", "a: change 2"}},
		{name: "main merged into it", pull: func(w *world) (*githubtest.Pull, string) {
			g := w.repo.Git
			topic := w.repo.Git.Line("a", 1)
			w.repo.Git.Branch("main", w.repo.Git.Line("m", 2))
			merge := g.Commit(map[string]string{"README": "one\n", "a": "0", "m": "1"}, "Merge main", topic, g.Tip("main"))
			head := g.Commit(map[string]string{"README": "one\n", "a": "9", "m": "1"}, "a: after", merge)
			return w.repo.Open("author", "t", head), head
		}, want: []string{"a: change 1", "Merge main", "a: after"}},
		{name: "a side branch merged into it", pull: func(w *world) (*githubtest.Pull, string) {
			g := w.repo.Git
			topic := w.repo.Git.Line("a", 1)
			side := g.Commit(map[string]string{"README": "one\n", "a": "0", "s": "1"}, "side: one", topic)
			side = g.Commit(map[string]string{"README": "one\n", "a": "0", "s": "2"}, "side: two", side)
			head := g.Commit(map[string]string{"README": "one\n", "a": "0", "s": "2"}, "Merge side", topic, side)
			return w.repo.Open("author", "t", head), head
		}, want: []string{"a: change 1", "Merge side"}},
		{name: "a fork that is gone", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 1)
			p := w.repo.Open("author", "t", head)
			p.DropFork()
			return p, head
		}, want: []string{"a: change 1"}},
		{name: "a base branch that was renamed", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 1)
			p := w.repo.Open("author", "t", head)
			w.repo.Git.Branch("trunk", w.repo.Git.Tip("main"))
			w.repo.Git.DeleteBranch("main")
			p.Renamed("trunk")
			return p, head
		}, want: []string{"a: change 1"}},
		{name: "a base branch that is gone", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 1)
			p := w.repo.Open("author", "t", head)
			w.repo.Git.Branch("trunk", w.repo.Git.Tip("main"))
			w.repo.Git.DeleteBranch("main")
			return p, head
		}, fault: `no such branch: "main"`},
		{name: "pushed to", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 1)
			p := w.repo.Open("author", "t", head)
			p.Push(w.repo.Git.Line("evil", 1))
			return p, head
		}, fault: "another commit by now", moved: true},
		{name: "given another base", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 3)
			p := w.repo.Open("author", "t", head)
			w.repo.Git.Branch("next", w.repo.Git.Line("a", 2))
			p.Base("author", "next")
			return p, head
		}, fault: `base branch is "next" by now, not "main"`, moved: true},
		{name: "a base that was forced back", pull: func(w *world) (*githubtest.Pull, string) {
			g := w.repo.Git
			begin, head := g.Tip("main"), g.Line("a", 3)
			p := w.repo.Open("author", "t", head)
			g.Branch("main", g.Commit(map[string]string{"README": "two\n"}, "forced", begin))
			return p, head
		}, want: []string{"a: change 1", "a: change 2", "a: change 3"}},
		{name: "nothing of its own", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Tip("main")
			return w.repo.Open("author", "t", head), head
		}, fault: "no commits beside those of its base"},
		{name: "another history", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Commit(map[string]string{"x": "y"}, "unrelated")
			return w.repo.Open("author", "t", head), head
		}, fault: "no commit in common"},
		{name: "100 commits", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 100)
			return w.repo.Open("author", "t", head), head
		}, want: make([]string, 100)},
		{name: "101 commits", pull: func(w *world) (*githubtest.Pull, string) {
			head := w.repo.Git.Line("a", 101)
			return w.repo.Open("author", "t", head), head
		}, fault: "101 commits along the first parent; 100 at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			main := w.repo.Git.Tip("main")
			p, head := c.pull(w)
			payload := store.PullPayload{Repo: "kit/kit", Number: p.Number, Head: head, Base: main, BaseRef: "main"}
			dir, from, to, err := w.f.Prepare(t.Context(), payload)
			if c.want == nil {
				if !errors.Is(err, ErrPull) || !strings.Contains(err.Error(), c.fault) || errors.Is(err, ErrMoved) != c.moved {
					t.Fatalf("%v, want an ErrPull that says %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if to != head || dir != filepath.Join(w.cfg.State, "github", "kit", "kit.git") {
				t.Errorf("%s %s..%s", dir, from, to)
			}
			repo, err := tree.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer repo.Close()
			stack, err := repo.Range(t.Context(), from, to)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range stack.Steps {
				got = append(got, s.Subject)
			}
			if len(got) != len(c.want) || c.want[0] != "" && strings.Join(got, "|") != strings.Join(c.want, "|") {
				t.Errorf("versions %q, want %q", got, c.want)
			}
			clean(t, w)
		})
	}
}

// clean looks for the token in all that was written.
func clean(t *testing.T, w *world) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(w.cfg.State, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "ghs_") || strings.Contains(string(data), w.hub.Token) {
			t.Errorf("%s holds a token", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were read (%v)", files, err)
	}
}

// The head is known to the API before git serves it: that passes by itself.
func TestPrepareBehind(t *testing.T) {
	githubtest.NeedGit(t)
	w := newWorld(t)
	old, head := w.repo.Git.Line("a", 1), w.repo.Git.Line("b", 2)
	p := w.repo.Open("author", "t", head)
	payload := store.PullPayload{Repo: "kit/kit", Number: p.Number, Head: head, BaseRef: "main"}
	for name, behind := range map[string]func(){
		"another commit": func() { w.repo.Git.Pull(p.Number, old) },
		"none yet":       func() { w.repo.Git.DropPull(p.Number) },
	} {
		behind()
		if _, _, _, err := w.f.Prepare(t.Context(), payload); err == nil || errors.Is(err, ErrPull) || errors.Is(err, ErrMoved) {
			t.Errorf("%s: %v, want an error that passes", name, err)
		}
		w.repo.Git.Pull(p.Number, head)
		if _, _, to, err := w.f.Prepare(t.Context(), payload); err != nil || to != head {
			t.Errorf("%s, afterwards: %s, %v", name, to, err)
		}
	}
	// One that is not there at all is none to wait for.
	w.repo.Git.DropPull(p.Number)
	p.Vanish()
	if _, _, _, err := w.f.Prepare(t.Context(), payload); !errors.Is(err, ErrPull) {
		t.Errorf("%v of one that is gone, want an ErrPull", err)
	}
}

// A fork that brings more than is allowed is refused for good, and says so; what
// was there before stays.
func TestPrepareTooLarge(t *testing.T) {
	githubtest.NeedGit(t)
	w := newWorld(t)
	w.cfg.GitHub.MaxFetch = 64 << 10
	good := w.repo.Git.Line("a", 2)
	first := w.repo.Open("author", "t", good)
	payload := store.PullPayload{Repo: "kit/kit", Number: first.Number, Head: good, BaseRef: "main"}
	if _, _, _, err := w.f.Prepare(t.Context(), payload); err != nil {
		t.Fatal(err)
	}
	evil := w.repo.Git.Commit(map[string]string{"README": "one\n", "zeros": strings.Repeat("\x00", 1<<20)}, "a bomb", w.repo.Git.Tip("main"))
	p := w.repo.Open("stranger", "t", evil)
	_, _, _, err := w.f.Prepare(t.Context(), store.PullPayload{Repo: "kit/kit", Number: p.Number, Head: evil, BaseRef: "main"})
	const want = "it has a file of more than 65536 bytes; max_fetch in [github] of the service's file sets the limit"
	if !errors.Is(err, ErrPull) || errors.Is(err, ErrMoved) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want an ErrPull that says %q", err, want)
	}
	if _, _, to, err := w.f.Prepare(t.Context(), payload); err != nil || to != good {
		t.Errorf("what was there: %s, %v", to, err)
	}
}

// What the network does is no fault of the pull request, and over once it works.
func TestPrepareFaults(t *testing.T) {
	githubtest.NeedGit(t)
	w := newWorld(t)
	w.repo.Git.Branch("main", w.repo.Git.Line("m", 10)) // no answer is as short as what comes before a hang-up
	head := w.repo.Git.Line("a", 2)
	p := w.repo.Open("author", "t", head)
	payload := store.PullPayload{Repo: "kit/kit", Number: p.Number, Head: head, BaseRef: "main"}
	for _, f := range []githubtest.Fault{
		{Path: "/installation", Status: 502},
		{Path: "/access_tokens", HangUp: true},
		{Method: "GIT", Status: 503},
		{Method: "GIT", Path: "git-upload-pack", HangUp: true, After: true},
		{Method: "GIT", Status: 429},
	} {
		w.hub.Fail(f)
		_, _, _, err := w.f.Prepare(t.Context(), payload)
		if err == nil || errors.Is(err, ErrPull) {
			t.Errorf("%+v: %v, want an error that is no ErrPull", f, err)
		}
		if strings.Contains(err.Error(), "ghs_") {
			t.Errorf("the error holds a token: %v", err)
		}
	}
	if _, _, _, err := w.f.Prepare(t.Context(), payload); err != nil {
		t.Error(err)
	}
	w.cfg.GitHub.Repositories = nil
	if _, _, _, err := w.f.Prepare(t.Context(), payload); !errors.Is(err, ErrPull) {
		t.Errorf("%v for a repository that is taken out, want an ErrPull", err)
	}
}
