package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/github/mirror"
	"patchbench/mbox/tree"
)

type world struct {
	t    *testing.T
	hub  *githubtest.Server
	repo *githubtest.Repo
	dir  string
}

func newWorld(t *testing.T) *world {
	githubtest.NeedGit(t)
	hub := githubtest.New(t)
	return &world{t, hub, hub.Repo("kit/kit"), filepath.Join(t.TempDir(), "kit", "kit.git")}
}

func (w *world) request(n int, head, branch string) mirror.Request {
	return mirror.Request{URL: w.hub.URL + "/kit/kit.git", Token: w.hub.Token, Number: n, Head: head, Branch: branch}
}

// line makes n commits on top of a branch, with content that does not compress away.
func (w *world) line(branch, name string, n int) (head string) {
	head = w.repo.Git.Tip(branch)
	for i := range n {
		head = w.repo.Git.Commit(map[string]string{"README": "one\n", name: strings.Repeat(fmt.Sprintf("%s %d %d\n", name, i, i*i), 50)}, fmt.Sprint(name, i), head)
	}
	return head
}

// fetch fetches and wants the tip of the branch and n commits behind it.
func (w *world) fetch(r mirror.Request, n int) {
	w.t.Helper()
	base, err := mirror.Fetch(w.t.Context(), w.dir, r)
	if err != nil {
		w.t.Fatal(err)
	}
	if tip := w.repo.Git.Tip(r.Branch); base != tip {
		w.t.Errorf("base %s, want %s", base, tip)
	}
	w.holds(base, r.Head, n)
}

func (w *world) holds(base, head string, n int) {
	w.t.Helper()
	repo, err := tree.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer repo.Close()
	stack, err := repo.Range(w.t.Context(), base, head)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(stack.Steps) != n {
		w.t.Errorf("%d commits in %.12s..%.12s, want %d", len(stack.Steps), base, head, n)
	}
}

// sent are the requests for objects since the last call.
func (w *world) sent() (n int) {
	for _, r := range w.hub.Requests() {
		if strings.HasSuffix(r, "/git-upload-pack") {
			n++
		}
	}
	return n
}

func TestFetch(t *testing.T) {
	w := newWorld(t)
	one := w.line("main", "a", 3)
	w.repo.Git.Pull(1, one)
	w.fetch(w.request(1, one, "main"), 3)
	if n := w.sent(); n != 2 {
		t.Errorf("%d requests for objects, want 2: of the base and of what is added", n)
	}
	w.fetch(w.request(1, one, "main"), 3)
	if n := w.sent(); n != 0 {
		t.Errorf("%d requests for objects that are there", n)
	}

	// Another head, on a base branch that has moved on and on one that was forced back.
	main := w.repo.Git.Tip("main")
	w.repo.Git.Branch("main", w.line("main", "m", 5))
	two := w.line("main", "b", 2)
	w.repo.Git.Pull(2, two)
	w.fetch(w.request(2, two, "main"), 2)
	w.repo.Git.Branch("main", main)
	w.fetch(w.request(1, one, "main"), 3)
	w.fetch(w.request(2, two, "main"), 7)
	w.repo.Git.Branch("main", w.repo.Git.Commit(map[string]string{"README": "two\n"}, "forced", main))
	w.fetch(w.request(2, two, "main"), 7)

	// Nothing of what only the request knows is on disk.
	err := filepath.WalkDir(filepath.Dir(w.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), w.hub.Token) || strings.Contains(string(data), w.hub.URL) {
			t.Errorf("%s holds the token or the address", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What was fetched holds no more than it must: the second fetch of a base with
// much history sends the new commits alone.
func TestFetchIsSmall(t *testing.T) {
	w := newWorld(t)
	w.repo.Git.Branch("main", w.line("main", "m", 80))
	one := w.line("main", "a", 1)
	w.repo.Git.Pull(1, one)
	w.fetch(w.request(1, one, "main"), 1)
	first := size(t, w.dir)
	w.repo.Git.Branch("main", w.line("main", "n", 2))
	two := w.line("main", "b", 1)
	w.repo.Git.Pull(2, two)
	w.fetch(w.request(2, two, "main"), 1)
	if more := size(t, w.dir) - first; more > first/4 {
		t.Errorf("3 commits more took %d bytes, the first 82 took %d", more, first)
	}
}

func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no packs in %s (%v)", dir, err)
	}
	for _, p := range packs {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

func TestFetchRefused(t *testing.T) {
	w := newWorld(t)
	one, two := w.line("main", "a", 1), w.line("main", "b", 1)
	w.repo.Git.Pull(1, two)
	private := w.request(1, two, "main")
	private.Token = "ghp_wrong"
	for _, c := range []struct {
		name string
		r    mirror.Request
		want error  // that it is
		text string // that it holds
	}{
		{"moved", w.request(1, one, "main"), mirror.ErrMoved, "pull request 1"},
		{"no such pull request", w.request(2, two, "main"), mirror.ErrNoPull, ""},
		{"no such branch", w.request(1, two, "gone"), mirror.ErrNoBranch, `"gone"`},
		{"a branch that is an option", w.request(1, two, "--upload-pack=touch /tmp/p"), mirror.ErrNoBranch, ""},
		{"a branch that leaves", w.request(1, two, "../../config"), mirror.ErrNoBranch, ""},
		{"no commit", w.request(1, "main", "main"), nil, "is no commit"},
		{"wrong token", private, nil, "authentication required"},
		{"no web address", mirror.Request{URL: "file://" + w.repo.Git.Dir, Number: 1, Head: two, Branch: "main"}, nil, "no address on the web"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mirror.Fetch(t.Context(), w.dir, c.r)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("%v, want %v and %q", err, c.want, c.text)
			}
			if c.r.Token != "" && strings.Contains(err.Error(), c.r.Token) {
				t.Errorf("the error shows the token: %v", err)
			}
			if n := w.sent(); n != 0 {
				t.Errorf("%d requests for objects of what is refused", n)
			}
		})
	}
}

// The token goes to the address that was given, and nowhere that it sends us.
func TestFetchRedirected(t *testing.T) {
	w := newWorld(t)
	one := w.line("main", "a", 1)
	w.repo.Git.Pull(1, one)
	var asked, told int
	elsewhere := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		asked++
		if req.Header.Get("Authorization") != "" {
			told++
		}
		rw.WriteHeader(http.StatusUnauthorized)
	}))
	defer elsewhere.Close()
	here := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		// Another name than an address, so that it is another host than ours.
		http.Redirect(rw, req, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+req.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	defer here.Close()
	r := w.request(1, one, "main")
	r.URL = here.URL + "/kit/kit.git"
	if base, err := mirror.Fetch(t.Context(), w.dir, r); err == nil || strings.Contains(err.Error(), r.Token) {
		t.Errorf("%s, %v, want an error without the token", base, err)
	}
	if asked == 0 || told > 0 {
		t.Errorf("%d of %d requests to the other host have the token, want none of at least one", told, asked)
	}
}

func TestFetchAfterFaults(t *testing.T) {
	w := newWorld(t)
	w.repo.Git.Branch("main", w.line("main", "m", 10))
	one := w.line("main", "a", 3)
	w.repo.Git.Pull(1, one)
	r := w.request(1, one, "main")
	// On a connection that was used before, an answer that does not come is asked
	// for once more by net/http itself.
	r.Transport = &http.Transport{DisableKeepAlives: true}
	for _, f := range []githubtest.Fault{
		{Method: "GIT", Status: 500},
		{Method: "GIT", HangUp: true},
		{Method: "GIT", Path: "info/refs", HangUp: true, After: true},
		{Method: "GIT", Path: "git-upload-pack", HangUp: true},
		{Method: "GIT", Path: "git-upload-pack", HangUp: true, After: true},
	} {
		w.hub.Fail(f)
		if base, err := mirror.Fetch(t.Context(), w.dir, r); err == nil {
			t.Errorf("%+v: no error, base %s", f, base)
		}
		if n := w.hub.Waiting(); n != 0 {
			t.Errorf("%+v was not met", f)
		}
	}
	w.fetch(r, 3)
}

// What a hostile fork brings ends with a message, and leaves the mirror as it was
// but for the base branch.
func TestFetchTooLarge(t *testing.T) {
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	few := map[string]string{"README": "one\n"}
	for i := range 40 {
		few[fmt.Sprint("f", i)] = fmt.Sprint(i) + strings.Repeat("\x00", 60<<10)
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"much":          {map[string]string{"README": "one\n", "noise": string(noise)}, "more than 65536 bytes that its base branch has not"},
		"a bomb":        {map[string]string{"README": "one\n", "zeros": strings.Repeat("\x00", 2<<20)}, "a file of more than 65536 bytes"},
		"several bombs": {few, "more than 1 MiB of files"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := w.line("main", "a", 2)
			w.repo.Git.Pull(1, one)
			good := w.request(1, one, "main")
			good.Most = 64 << 10
			w.fetch(good, 2)
			before := files(t, w.dir)

			evil := w.request(2, w.repo.Git.Commit(c.files, "evil", w.repo.Git.Tip("main")), "main")
			evil.Most = good.Most
			w.repo.Git.Pull(2, evil.Head)
			_, err := mirror.Fetch(t.Context(), w.dir, evil)
			if !errors.Is(err, mirror.ErrTooLarge) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an ErrTooLarge that says %q", err, c.want)
			}
			if d := cmp.Diff(before, files(t, w.dir)); d != "" {
				t.Errorf("the mirror (-before +after):\n%s", d)
			}
			w.holds(w.repo.Git.Tip("main"), one, 2)
			w.repo.Git.Branch("main", w.line("main", "m", 3))
			w.fetch(good, 2)
			// The history of the base branch is the owner's, and not bounded.
			w.repo.Git.Branch("main", w.repo.Git.Commit(map[string]string{"noise": string(noise)}, "much", w.repo.Git.Tip("main")))
			two := w.line("main", "b", 1)
			w.repo.Git.Pull(3, two)
			next := w.request(3, two, "main")
			next.Most = good.Most
			w.fetch(next, 1)
		})
	}
}

// A mirror in which pull requests have left much is made anew.
func TestFetchFull(t *testing.T) {
	w := newWorld(t)
	one := w.line("main", "a", 2)
	w.repo.Git.Pull(1, one)
	r := w.request(1, one, "main")
	r.Most = 64 << 10
	w.fetch(r, 2)
	for _, name := range []string{"history", "left"} {
		write(t, filepath.Join(w.dir, "objects", "pack", name+".pack"), strings.Repeat("x", 2<<20))
	}
	w.fetch(r, 2)
	if n := size(t, w.dir); n > 1<<20 {
		t.Errorf("the mirror still has %d bytes", n)
	}
}

// files are those of a folder with their contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A mirror that lost something is made anew.
func TestFetchBroken(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"packs lost": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "objects", "pack", "*")) },
		"pack cut": func(t *testing.T, dir string) {
			for _, file := range glob(t, filepath.Join(dir, "objects", "pack", "*.pack")) {
				if err := os.Chmod(file, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, 40); err != nil {
					t.Fatal(err)
				}
			}
		},
		"half a folder": func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "config"))
			remove(t, filepath.Join(dir, "HEAD"))
		},
		"config destroyed": func(t *testing.T, dir string) { write(t, filepath.Join(dir, "config"), "[core\n\x00") },
		"reference to nothing": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "refs", "pull", "9"), strings.Repeat("1", 40)+"\n")
		},
		"left by a killed process": func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "objects", "pack", "tmp_pack_1"), "PACK")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			one := w.line("main", "a", 2)
			w.repo.Git.Pull(1, one)
			w.fetch(w.request(1, one, "main"), 2)
			spoil(t, w.dir)
			two := w.line("main", "b", 3)
			w.repo.Git.Pull(1, two)
			w.fetch(w.request(1, two, "main"), 3)
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("nothing at %s (%v)", pattern, err)
	}
	return list
}

func remove(t *testing.T, pattern string) {
	t.Helper()
	for _, file := range glob(t, pattern) {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFetchAtOnce(t *testing.T) {
	w := newWorld(t)
	var heads []string
	for n := 1; n <= 4; n++ {
		head := w.line("main", fmt.Sprint("f", n), n)
		w.repo.Git.Pull(n, head)
		heads = append(heads, head)
	}
	var wg sync.WaitGroup
	for i, head := range heads {
		wg.Go(func() {
			if _, err := mirror.Fetch(t.Context(), w.dir, w.request(i+1, head, "main")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, head := range heads {
		w.holds(w.repo.Git.Tip("main"), head, i+1)
	}
}

// The references of old pull requests go, their commits stay.
func TestFetchForgets(t *testing.T) {
	w := newWorld(t)
	one := w.line("main", "a", 1)
	w.repo.Git.Pull(1, one)
	w.fetch(w.request(1, one, "main"), 1)
	repo, err := git.PlainOpen(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for n := 2; n < 120; n++ {
		name := plumbing.ReferenceName(fmt.Sprintf("refs/pull/%d", n))
		if err := repo.Storer.SetReference(plumbing.NewHashReference(name, plumbing.NewHash(one))); err != nil {
			t.Fatal(err)
		}
	}
	two := w.line("main", "b", 1)
	w.repo.Git.Pull(200, two)
	w.fetch(w.request(200, two, "main"), 1)
	left := glob(t, filepath.Join(w.dir, "refs", "pull", "*"))
	if len(left) != 100 {
		t.Errorf("%d references of pull requests, want 100", len(left))
	}
	w.holds(w.repo.Git.Tip("main"), one, 1)
}

// Who waits for another's fetch can be called off.
func TestFetchCalledOff(t *testing.T) {
	w := newWorld(t)
	head := w.line("main", "a", 1)
	w.repo.Git.Pull(1, head)
	w.fetch(w.request(1, head, "main"), 1)
	f, err := os.OpenFile(strings.TrimSuffix(w.dir, ".git")+".lock", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mirror.Fetch(ctx, w.dir, w.request(1, head, "main")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was called off", err)
	}
}
