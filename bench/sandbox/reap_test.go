package sandbox

import (
	"os/exec"
	"syscall"
	"testing"
)

func TestReap(t *testing.T) {
	dir := t.TempDir()
	start := func(name, folder string) *exec.Cmd {
		cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{name, "-c", "read x; exit 3", "sh", "--bind", folder + "/work", "/build"}}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	ours := start("/usr/bin/bwrap", dir+"/slot-1")
	others := []*exec.Cmd{start("/usr/bin/bwrap", dir+"/slot-11"), start("ls", dir+"/slot-1")}
	Reap(dir + "/slot-1")
	ours.Wait()
	if s := ours.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGKILL {
		t.Errorf("what was left ended with %v", ours.ProcessState)
	}
	for _, cmd := range others {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		cmd.Wait()
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGTERM {
			t.Errorf("%q ended with %v", cmd.Args, cmd.ProcessState)
		}
	}
}
