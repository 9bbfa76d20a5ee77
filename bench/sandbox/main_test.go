package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// runnerBinary is testdata/runner, built once for all tests.
var runnerBinary string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // the uid of programs goes through it
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	runnerBinary = filepath.Join(dir, "runner")
	build := exec.Command("go", "build", "-o", runnerBinary, "./testdata/runner")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the runner: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// lacking skips a test for want of something, or fails it in CI.
func lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI must have it: %s", what)
	}
	t.Skip(what)
}

// modes runs a test in a box and without one.
func modes(t *testing.T, test func(*testing.T, *Sandbox)) {
	t.Run("boxed", func(t *testing.T) { test(t, openBoxed(t)) })
	t.Run("unsafe", func(t *testing.T) { test(t, openUnsafe(t)) })
}

func openBoxed(t testing.TB) *Sandbox {
	t.Helper()
	s, err := Open(context.Background(), Options{Executable: runnerBinary})
	if errors.Is(err, ErrNone) {
		lacking(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openUnsafe(t testing.TB) *Sandbox {
	t.Helper()
	s, err := Open(context.Background(), Options{Executable: runnerBinary, Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func start(t testing.TB, s *Sandbox, b Box) *Runner {
	t.Helper()
	r, err := s.Start(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func do(t testing.TB, r *Runner, c Command) Result {
	t.Helper()
	res, err := r.Do(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
