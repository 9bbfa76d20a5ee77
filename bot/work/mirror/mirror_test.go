package mirror

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A Tester", "GIT_AUTHOR_EMAIL=tester@example.org",
		"GIT_COMMITTER_NAME=A Tester", "GIT_COMMITTER_EMAIL=tester@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// Branches follow the remote's, also where its history was rewritten; none is lost.
func TestFetch(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	remote, copied := filepath.Join(dir, "remote"), filepath.Join(dir, "copy.git")
	runGit(t, dir, "init", "-q", "-b", "main", remote)
	runGit(t, remote, "commit", "-q", "--allow-empty", "-m", "one")
	runGit(t, remote, "branch", "gone")
	runGit(t, dir, "clone", "-q", "--mirror", remote, copied)
	same := func(branch string) {
		t.Helper()
		if want, got := runGit(t, remote, "rev-parse", branch), runGit(t, copied, "rev-parse", branch); got != want {
			t.Errorf("%s is %s, want %s", branch, got, want)
		}
	}
	fetch := func() {
		t.Helper()
		if err := Fetch(t.Context(), copied, remote); err != nil {
			t.Fatal(err)
		}
	}
	fetch() // nothing to do
	runGit(t, remote, "commit", "-q", "--allow-empty", "-m", "two")
	runGit(t, remote, "branch", "topic")
	gone := runGit(t, remote, "rev-parse", "gone")
	runGit(t, remote, "branch", "-D", "gone")
	fetch()
	same("main")
	same("topic")
	runGit(t, remote, "commit", "-q", "--amend", "--allow-empty", "-m", "two, again")
	fetch()
	same("main")
	if got := runGit(t, copied, "rev-parse", "gone"); got != gone {
		t.Errorf("a branch that the remote has no more is %s, want %s", got, gone)
	}
}

func TestFetchFails(t *testing.T) {
	needGit(t)
	dir := t.TempDir()
	checkout, bare := filepath.Join(dir, "checkout"), filepath.Join(dir, "bare.git")
	runGit(t, dir, "init", "-q", "-b", "main", checkout)
	runGit(t, dir, "init", "-q", "--bare", bare)
	if err := Fetch(t.Context(), checkout, bare); !errors.Is(err, ErrNotBare) {
		t.Errorf("into a checkout: %v, want %v", err, ErrNotBare)
	}
	if err := Fetch(t.Context(), filepath.Join(dir, "none"), bare); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("into no repository: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Fetch(ctx, bare, checkout); err == nil {
		t.Error("with a context that has ended: no error")
	}
	err := Fetch(t.Context(), bare, "http://user:hidden@127.0.0.1:1/none.git")
	if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("from nobody: %v, want an error without the password", err)
	}
}
