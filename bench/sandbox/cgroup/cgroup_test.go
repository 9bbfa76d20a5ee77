package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOwnFolders(t *testing.T) {
	for _, tt := range []struct {
		name, mounts, cgroup string
		want                 map[string]string
	}{
		{"version 2", `
22 27 0:21 / /proc rw,nosuid shared:13 - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`, "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope\n",
			map[string]string{"unified": "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-7.scope"}},
		{"version 1 beside 2", `
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`, "8:pids:/x\n4:memory:/a/b\n2:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
			map[string]string{"memory": "/sys/fs/cgroup/memory/a/b", "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct", "unified": "/sys/fs/cgroup/unified"}},
		{"a container that sees its part", `
35 31 0:32 /docker/17 /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory
36 31 0:33 /docker/17 /sys/fs/cgroup/a\040b ro,relatime - cgroup cgroup rw,pids
`, "4:memory:/docker/17\n5:pids:/docker/17/sub\n",
			map[string]string{"memory": "/sys/fs/cgroup/memory", "pids": "/sys/fs/cgroup/a b/sub"}},
		{"a group out of sight", `
30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
35 31 0:32 /docker/17 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
`, "0::/../other\n4:memory:/docker/18\n", map[string]string{}},
		{"none", "22 27 0:21 / /proc rw - proc proc rw\n", "", map[string]string{}},
		{"not to be read", "nothing - \n1 2 3 - cgroup2\n\n", "0::\n:::\n", map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ownFolders(tt.mounts, tt.cgroup)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClimb(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		"m/cgroup.procs": "", "m/memory.limit_in_bytes": "9223372036854771712\n",
		"m/free/cgroup.procs": "", "m/free/memory.limit_in_bytes": "9223372036854771712\n",
		"m/free/bound/cgroup.procs": "", "m/free/bound/memory.limit_in_bytes": "1073741824\n",
		"m/free/bound/free/cgroup.procs": "", "m/free/bound/free/memory.limit_in_bytes": "9223372036854771712\n",
		"p/cgroup.procs":      "", // the first group of pids has no bound
		"p/free/cgroup.procs": "", "p/free/pids.max": "max\n",
		"p/bound/cgroup.procs": "", "p/bound/pids.max": "100\n",
	} {
		name = filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ from, file, want string }{
		{"m", "memory.limit_in_bytes", "m"},
		{"m/free", "memory.limit_in_bytes", "m"},
		{"m/free/bound", "memory.limit_in_bytes", "m/free/bound"},
		{"m/free/bound/free", "memory.limit_in_bytes", "m/free/bound"},
		{"p", "pids.max", "p"},
		{"p/free", "pids.max", "p"},
		{"p/bound", "pids.max", "p/bound"},
		{"none", "pids.max", "none"},
	} {
		if got := climb(filepath.Join(top, tt.from), tt.file); got != filepath.Join(top, tt.want) {
			t.Errorf("from %s to %s, want %s", tt.from, got, tt.want)
		}
	}
}

func TestCounter(t *testing.T) {
	const text = "low 0\nmax 7\noom 3\noom_kill 12\noom_group_kill 1\n"
	for name, want := range map[string]int64{"oom_kill": 12, "max": 7, "low": 0, "kill": 0} {
		if got := counter(text, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// find makes a Host, or skips where this user can make no groups.
func find(t *testing.T) *Host {
	t.Helper()
	h, err := Find()
	if err != nil {
		t.Skip(err)
	}
	return h
}

// sleeper starts a program in a group, and says whether a signal has ended it.
func sleeper(t *testing.T, group string) (killed func() bool) {
	t.Helper()
	cmd := exec.Command("sleep", "100000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // ended already, if all went well
	if err := write(strconv.Itoa(cmd.Process.Pid), group, "cgroup.procs"); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		_ = cmd.Wait() // which says that it was killed
		return cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
}

func TestRemove(t *testing.T) {
	h := find(t)
	folders := []string{}
	for _, f := range h.folders {
		folders = append(folders, f.Name())
	}
	g, err := h.New(os.Geteuid(), Bounds{MemoryBytes: 1 << 28, Processes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Begin(); err != nil {
		t.Fatal(err)
	}
	if e, err := g.End(); err != nil || e != (Events{}) {
		t.Errorf("nothing was run, and yet %+v, %v", e, err)
	}
	killed := sleeper(t, g.memory)
	// The folders stay as long as there is a group.
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	done := make(chan bool)
	go func() { done <- killed() }() // what is not waited for stays in the group
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
	if !<-done {
		t.Error("a program is left")
	}
	for _, dir := range folders {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

// TestSweep leaves a folder as a process does that was killed.
func TestSweep(t *testing.T) {
	h := find(t)
	lock, err := folder(filepath.Dir(h.folders[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	dead := lock.Name()
	if err := os.Mkdir(filepath.Join(dead, "1"), 0o755); err != nil {
		t.Fatal(err)
	}
	killed := sleeper(t, filepath.Join(dead, "1"))
	done := make(chan bool)
	go func() { done <- killed() }()
	lock.Close()
	other := find(t)
	if !<-done {
		t.Error("the dead one's program is left")
	}
	if _, err := os.Lstat(dead); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dead, err)
	}
	// The first one lives.
	if _, err := os.Lstat(h.folders[0].Name()); err != nil {
		t.Error(err)
	}
	for _, h := range []*Host{other, h} {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFindSaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name string
		find func() (*Host, error)
		want string
	}{
		{"no cgroups", func() (*Host, error) { return find1("", "") }, "neither cgroup v2 nor v1"},
		{"no version 2", func() (*Host, error) { return find2("") }, "there is no cgroup v2"},
		{"no group", func() (*Host, error) { return find2("/usr") }, "/usr is no cgroup"},
		{"not for this user", func() (*Host, error) { return find1("/proc/self", "/proc/self") }, "only root may make groups there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := tt.find()
			if h != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}
