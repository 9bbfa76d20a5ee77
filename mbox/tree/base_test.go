package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

// TestRevisions names a base as users do.
func TestRevisions(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": "1\n"})
	first := commit(t, dir, "first")
	git(t, dir, "tag", "-a", "-m", "one", "v1")
	put(t, dir, map[string]string{"a": "2\n"})
	second := commit(t, dir, "second")
	git(t, dir, "branch", "topic/x", first)
	git(t, dir, "branch", "cafe", first)
	git(t, dir, "pack-refs", "--all")
	r := open(t, dir)
	for rev, want := range map[string]string{
		"HEAD": second, "main": second, "refs/heads/main": second, "v1": first, "topic/x": first, "cafe": first,
		"HEAD~1": first, "main^": first, first: first, first[:9]: first, second[:7]: second, "v1^{commit}": first,
	} {
		if got, err := r.Base(nil, rev, ""); err != nil || got.Commit != want {
			t.Errorf("%s: %+v, %v; want %s", rev, got, err, want)
		}
	}
	for _, rev := range []string{"none", "--all", "deadbeef", strings.Repeat("1", 40), "HEAD~9", "v1:a", "a b"} {
		_, err := r.Base(nil, rev, "")
		if err == nil || !strings.Contains(err.Error(), "unknown base") || !strings.Contains(err.Error(), "no such branch, tag or commit in "+dir) {
			t.Errorf("%q: %v", rev, err)
		}
	}
}

func TestBase(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": "1\n", "b": lines(9)})
	first := commit(t, dir, "first")
	put(t, dir, map[string]string{"a": "2\n"})
	second := commit(t, dir, "second")
	put(t, dir, map[string]string{"b": lines(8)})
	third := commit(t, dir, "third")
	git(t, dir, "checkout", "-q", "-b", "topic", second)
	put(t, dir, map[string]string{"b": lines(10), "new": "new\n"})
	commit(t, dir, "topic")
	diff := git(t, dir, "format-patch", "--stdout", "-1")
	git(t, dir, "checkout", "-q", "main")
	s := series(t, []byte(diff+"\n"))
	r := open(t, dir)
	named := func(commit string) *mbox.Series {
		n := *s
		n.Base = &mbox.Base{Commit: commit, How: mbox.HowBaseCommit}
		return &n
	}
	for _, c := range []struct {
		name         string
		s            *mbox.Series
		flag, branch string
		want         mbox.Base
	}{
		{"flag", named(second), first[:8], "", mbox.Base{Commit: first, How: "flag", Reason: "named as " + first[:8]}},
		{"base-commit", named(third), "", "", mbox.Base{Commit: third, How: "base-commit", Reason: "the series names it as its base"}},
		{"abbreviated", named(third[:12]), "", "", mbox.Base{Commit: third, How: "base-commit", Reason: "the series names it as its base"}},
		{"blobs", s, "", "", mbox.Base{Commit: second, How: "blobs", Reason: "the newest commit of HEAD that holds the file as the series was made against it, 1 behind its tip"}},
		{"base-commit is missing", named(strings.Repeat("ab", 20)), "", "main", mbox.Base{Commit: second, How: "blobs",
			Reason: "the newest commit of main that holds the file as the series was made against it, 1 behind its tip; the base abababababab that the series names is not in the repository"}},
		{"only new files", one(addHello), "", "", mbox.Base{Commit: third, How: "branch", Reason: "the tip of HEAD"}},
		{"blobs nowhere", one(strings.Replace(addHello, "0000000..ce01362", "1234567..ce01362", 1), "diff --git a/b b/b\nindex 7654321..1234567 100644\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n"), "", "topic",
			mbox.Base{Commit: git(t, dir, "rev-parse", "topic"), How: "branch", Reason: "the tip of topic; none of its last 3 commits holds all files as the series was made against them"}},
		{"no series", nil, "", "", mbox.Base{Commit: third, How: "branch", Reason: "the tip of HEAD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.Base(c.s, c.flag, c.branch)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for _, c := range [][2]string{{"none", ""}, {"", "none"}} {
		if _, err := r.Base(s, c[0], c[1]); err == nil || !strings.Contains(err.Error(), `unknown base "none"`) {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestRange(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": lines(5)})
	first := commit(t, dir, "first")
	put(t, dir, map[string]string{"a": lines(8)})
	second := commit(t, dir, "second: more\n lines\n\nbody")
	git(t, dir, "checkout", "-q", "-b", "side", first)
	put(t, dir, map[string]string{"s": "side\n"})
	side := commit(t, dir, "side")
	git(t, dir, "checkout", "-q", "main")
	git(t, dir, "merge", "-q", "--no-ff", "-m", "merge side", "side")
	merge := git(t, dir, "rev-parse", "HEAD")
	r := open(t, dir)
	type row struct {
		n              int
		subject        string
		commit         string
		added, deleted int
	}
	for _, c := range []struct {
		from, to, base, how string
		want                []row
	}{
		{first, "main", first, "range", []row{{1, "second: more lines", second, 3, 0}, {2, "merge side", merge, 1, 0}}},
		// Main holds side through a merge's second parent only.
		{"side", "", first, "merge-base", []row{{1, "second: more lines", second, 3, 0}, {2, "merge side", merge, 1, 0}}},
		{second, side, first, "merge-base", []row{{1, "side", side, 1, 0}}},
		{"main", first, first, "merge-base", nil},
	} {
		t.Run(c.from+".."+c.to, func(t *testing.T) {
			st, err := r.Range(t.Context(), c.from, c.to)
			if err != nil {
				t.Fatal(err)
			}
			var got []row
			for _, s := range st.Steps {
				got = append(got, row{s.N, s.Subject, s.Commit, s.Added, s.Deleted})
				if want := git(t, dir, "log", "-1", "--format=%B", s.Commit); s.Message != want {
					t.Errorf("message %q, want %q", s.Message, want)
				}
				if s.Tree != git(t, dir, "rev-parse", s.Commit+"^{tree}") || s.How != tree.HowCommit || s.Author.Email != "ada@example.com" {
					t.Errorf("step %+v", s)
				}
			}
			if d := cmp.Diff(c.want, got, cmp.AllowUnexported(row{})); d != "" || st.Base.Commit != c.base || st.Base.How != c.how {
				t.Errorf("base %+v, want %s %s; steps (-want +got):\n%s", st.Base, c.base, c.how, d)
			}
			for _, id := range []string{first, second, side} {
				if strings.Contains(st.Base.Reason, id) {
					t.Errorf("a commit stands in full in %q", st.Base.Reason)
				}
			}
		})
	}
	git(t, dir, "checkout", "-q", "--orphan", "other")
	commit(t, dir, "alone")
	if _, err := r.Range(t.Context(), "main", "other"); err == nil || !strings.Contains(err.Error(), "no commit in common") {
		t.Errorf("unrelated: %v", err)
	}
	if _, err := r.Range(t.Context(), "none", "main"); err == nil || !strings.Contains(err.Error(), "unknown base") {
		t.Errorf("unknown: %v", err)
	}
}

// TestOpen opens a repository in every form that git keeps one in.
func TestOpen(t *testing.T) {
	dir := newRepo(t)
	put(t, dir, map[string]string{"a": lines(300), "sub/b": "b\n"})
	commit(t, dir, "first")
	put(t, dir, map[string]string{"a": lines(301)})
	id := commit(t, dir, "second")
	out := t.TempDir()
	bare, linked, packed := filepath.Join(out, "bare"), filepath.Join(out, "linked"), filepath.Join(out, "packed")
	shared, shallow := filepath.Join(out, "shared"), filepath.Join(out, "shallow")
	git(t, dir, "clone", "-q", "--bare", dir, bare)
	git(t, dir, "worktree", "add", "-q", "--detach", linked)
	git(t, dir, "clone", "-q", dir, packed)
	git(t, packed, "gc", "-q")
	git(t, packed, "multi-pack-index", "write")
	git(t, dir, "clone", "-q", "--shared", dir, shared)
	git(t, dir, "clone", "-q", "--depth=1", "file://"+dir, shallow)
	for name, path := range map[string]string{"work tree": dir, "subfolder": filepath.Join(dir, "sub"), "git folder": filepath.Join(dir, ".git"),
		"bare": bare, "linked worktree": linked, "packed": packed, "alternates": shared, "shallow": shallow} {
		t.Run(name, func(t *testing.T) {
			r := open(t, path)
			if got, err := r.Base(nil, "HEAD", ""); err != nil || got.Commit != id {
				t.Errorf("HEAD: %+v, %v", got, err)
			}
			if data, err := r.Files(id, "a"); err != nil || string(data) != lines(301) {
				t.Errorf("a: %d bytes, %v", len(data), err)
			}
			if _, err := r.Base(one(addHello), "", ""); err != nil {
				t.Error(err)
			}
		})
	}

	sha256, partial, empty := filepath.Join(out, "sha256"), filepath.Join(out, "partial"), filepath.Join(out, "empty")
	git(t, out, "init", "-q", "--object-format=sha256", sha256)
	git(t, dir, "config", "uploadpack.allowFilter", "true")
	git(t, out, "clone", "-q", "--bare", "--filter=blob:none", "file://"+dir, partial)
	git(t, partial, "config", "core.repositoryFormatVersion", "1")
	git(t, partial, "config", "extensions.partialClone", "origin")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(out, "none"): "there is no such folder; name a git repository",
		filepath.Join(dir, "a"):    "it is a file",
		sha256:                     "sha256",
		partial:                    "it is a partial clone, which lacks objects; run git fetch --refetch",
	} {
		_, err := tree.Open(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := tree.Open(empty); err == nil || !strings.Contains(err.Error(), "no repository at "+empty) {
		t.Errorf("empty folder: %v", err)
	}
	// A repository without a commit has no base.
	fresh := newRepo(t)
	if _, err := open(t, fresh).Base(nil, "", ""); err == nil || !strings.Contains(err.Error(), "no commit at HEAD") {
		t.Errorf("no commit: %v", err)
	}
}
