package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the sessions of testdata with the built command. They say
// `status N bot ...` where the exit status matters, and `[!sandbox] skip` where
// one is needed, `[!tool:NAME] skip` where a program is: a machine without it
// skips, and fails in CI.
func TestScripts(t *testing.T) {
	for _, tool := range []string{"git", "sh"} {
		needTool(t, tool)
	}
	bin := filepath.Dir(buildBot(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("BIN", bin)
			e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".home"))
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				e.Setenv("GIT_"+who+"_NAME", "A Tester")
				e.Setenv("GIT_"+who+"_EMAIL", "tester@example.org")
				e.Setenv("GIT_"+who+"_DATE", "2026-11-02T09:00:00+0000")
			}
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			return os.Mkdir(filepath.Join(e.WorkDir, ".home"), 0o755)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status": status,
			"small":  smallDisk,
		},
		Condition: func(cond string) (bool, error) {
			tool, named := strings.CutPrefix(cond, "tool:")
			if cond == "sandbox" {
				tool, named = "bwrap", true
			}
			switch {
			case named:
				_, err := exec.LookPath(tool)
				// In CI the script goes on, and fails for want of it.
				return err == nil || os.Getenv("CI") == "true", nil
			case cond == "root":
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// status runs a command that must end with the exit status named first.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v ended with status %d, want %d\n%s%s", args[1:], got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// smallDisk mounts a tmpfs of the size named at the folder named, as root only.
func smallDisk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: small SIZE DIR")
	}
	dir := ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(dir, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+args[0], "none", dir).CombinedOutput(); err != nil {
		ts.Fatalf("mount: %v\n%s", err, out)
	}
	ts.Defer(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			fmt.Fprintln(os.Stderr, "umount", dir, err)
		}
	})
}
