package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/cgroup"
)

// bounds runs a test in boxes that a group bounds, if this machine has groups,
// and in boxes that rlimits bound.
func bounds(t *testing.T, test func(*testing.T, *Sandbox)) {
	t.Run("group", func(t *testing.T) {
		s := openBoxed(t)
		if s.groups == nil {
			t.Skip(s.Facts().Lost)
		}
		test(t, s)
	})
	t.Run("rlimits", func(t *testing.T) {
		test(t, openUngrouped(t))
	})
}

// openUngrouped gives a sandbox whose boxes rlimits bound.
func openUngrouped(t testing.TB) *Sandbox {
	t.Helper()
	s := openBoxed(t)
	if s.groups != nil {
		if err := s.groups.Close(); err != nil {
			t.Fatal(err)
		}
		s.groups = nil
	}
	return s
}

// TestLimits has programs take all that they can get, beside a program in
// another box that goes on as if nothing were (S10 and S11 of the bad inputs).
func TestLimits(t *testing.T) {
	bounds(t, func(t *testing.T, s *Sandbox) {
		grouped := s.groups != nil
		small, known := knownBox(t, s, Limits{MemoryBytes: minMemoryBytes, Processes: 64, DiskBytes: 8 << 20, OutputBytes: 1 << 20})
		large, _ := knownBox(t, s, Limits{MemoryBytes: minMemoryBytes, OutputBytes: 1 << 20})
		sh := func(line string) Command { return Command{Args: []string{"sh", "-c", line}} }
		timed := func(c Command) Command { c.Timeout = 2 * time.Second; return c }
		for _, tt := range []struct {
			name  string
			r     *Runner
			c     Command
			group string // the Limit with a group; A|B is either, by what the kernel grants
			other string // the Limit with rlimits; - is that these do not bound it
			says  string // the output has where no limit is named
		}{
			{"100 GB at once", small, Command{Args: []string{known, "resident", "100000000000"}, Peaks: true}, "|out of memory: limit 256 MiB", "", "mmap: Cannot allocate memory"},
			{"memory bit by bit", small, Command{Args: []string{known, "hog"}}, "out of memory: limit 256 MiB", "", "mmap: Cannot allocate memory"},
			{"memory bit by bit, followed", small, Command{Args: []string{known, "hog"}, Peaks: true}, "out of memory: limit 256 MiB", "", "mmap: Cannot allocate memory"},
			{"memory below a shell that goes on", small, sh(known + " hog; true"), "out of memory: limit 256 MiB", "", "mmap: Cannot allocate memory"},
			{"many that are small", small, Command{Args: []string{known, "herd", "50", "8000000"}}, "out of memory: limit 256 MiB", "-", ""},
			{"memory in files", large, sh("exec cat /dev/zero >/tmp/x"), "out of memory: limit 256 MiB", "-", ""},
			{"a fork bomb", small, timed(sh("b() { b | b & }; b; sleep 100")), "process limit 64|process limit 64, then timed out after 2 s", "|timed out after 2 s", "fork"},
			{"too many processes, then the end", small, sh("i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done"), "process limit 64", "", "fork"},
			{"disk", small, sh("exec cat /dev/zero >/tmp/x"), "disk full: no more than 8 MiB in /tmp", "disk full: no more than 8 MiB in /tmp", ""},
			{"shared memory", small, sh("exec cat /dev/zero >/dev/shm/x"), "disk full: no more than 64 MiB in /dev/shm", "disk full: no more than 64 MiB in /dev/shm", ""},
			{"disk, of no consequence", small, sh("cat /dev/zero 2>&1 >/tmp/x; stat -c %s /tmp/x"), "", "", "No space left on device\n8388608\n"},
			{"core", small, sh("ulimit -c"), "", "", "0\n"},
			{"endless output", small, Command{Args: []string{"yes"}}, "printed more than 1 MiB", "printed more than 1 MiB", ""},
			{"deaf and in sessions of its own", small, timed(sh("trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM; sleep 1000' & (setsid sleep 1000 &); sleep 1000")),
				"timed out after 2 s", "timed out after 2 s", ""},
		} {
			t.Run(tt.name, func(t *testing.T) {
				want := tt.other
				if grouped {
					want = tt.group
				}
				if want == "-" {
					t.Skip("rlimits bound each process alone")
				}
				unharmed := neighbour(t, s)
				res := do(t, tt.r, tt.c)
				if !slices.Contains(strings.Split(want, "|"), res.Limit) {
					t.Errorf("limit %q, want %q: %+v", res.Limit, want, res)
				}
				if res.Limit != "" && (res.OK() || res.Status != -1 || res.Signal != "") {
					t.Errorf("a limit, and yet: %+v", res)
				}
				if res.Limit == "" && !strings.Contains(res.LogTail, tt.says) {
					t.Errorf("%q is not said: %+v", tt.says, res)
				}
				unharmed()
				if res := do(t, tt.r, sh("exec 2>&1; ls /tmp/* /dev/shm/*; for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$$) ;; *) echo $p; exit 1;; esac; done")); !res.OK() {
					t.Errorf("the next run is not unharmed: %+v", res)
				}
			})
		}
	})
}

// TestRoom has programs fill a file system of the host.
func TestRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	s := openBoxed(t)
	disk := workDir(t)
	if err := unix.Mount("small", disk, "tmpfs", 0, "size=8m,nr_inodes=5000,mode=711"); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }) // all that can be done
	dir := filepath.Join(disk, "src")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	up := pipeFile(t, dir, "up")
	if err := s.Own(dir); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src", Write: true}}})
	// A fiftieth must be left of 8 MiB.
	const full = "disk full: less than 167772 bytes left in /build/src"
	const many = "disk full: less than room for 100 files left in /build/src"
	remove := func(t *testing.T, pattern string) {
		files, err := filepath.Glob(filepath.Join(disk, pattern))
		if err != nil || len(files) == 0 {
			t.Errorf("nothing was written: %v", err)
		}
		for _, f := range files {
			if err := os.RemoveAll(f); err != nil {
				t.Error(err)
			}
		}
		if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
			t.Errorf("the next run is not unharmed: %+v", res)
		}
	}
	for _, tt := range []struct{ name, line, limit string }{
		{"and it fails", "cat /dev/zero >x", full},
		{"and it goes on", "cat /dev/zero >x; sleep 100000", full},
		{"in many files", "i=0; while head -c 100000 /dev/zero >x$i; do i=$((i+1)); done; sleep 100000", full},
		{"in empty files", "mkdir x; cd x; seq 5000 | xargs touch", many},
		{"in folders, and it goes on", "mkdir x; cd x; seq 5000 | xargs mkdir || sleep 100000", many},
		{"nearly", "head -c 8000000 /dev/zero >x", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			unharmed := neighbour(t, s)
			res := do(t, r, Command{Dir: "/build/src", Args: []string{"sh", "-c", tt.line}})
			if diff := cmp.Diff(tt.limit, res.Limit); diff != "" || res.OK() != (tt.limit == "") {
				t.Errorf("%s%+v", diff, res)
			}
			unharmed()
			remove(t, "src/x*")
		})
	}
	t.Run("by others", func(t *testing.T) {
		errs := make(chan error)
		go func() {
			_, err := r.Do(context.Background(), Command{Dir: "/build/src", Args: []string{"sh", "-c", "echo up >up; sleep 100000"}})
			errs <- err
		}()
		waitFor(t, up)
		if err := os.WriteFile(filepath.Join(disk, "x"), make([]byte, 8300000), 0o600); err != nil {
			t.Fatal(err)
		}
		want := "run sh: the file system of " + dir + " is full, and not by this program; make room there"
		if err := <-errs; err == nil || err.Error() != want {
			t.Errorf("during a run: %v, want %s", err, want)
		}
		want = "run true: less than 167772 bytes is left on the file system of " + dir + "; make room there"
		if _, err := r.Do(context.Background(), Command{Args: []string{"true"}}); err == nil || err.Error() != want {
			t.Errorf("before a run: %v, want %s", err, want)
		}
		remove(t, "x")
	})
}

// neighbour starts a program in another box that takes memory, processes and
// disk now and then; unharmed ends it, and says whether it got them all.
func neighbour(t *testing.T, s *Sandbox) (unharmed func()) {
	t.Helper()
	dir := workDir(t)
	up := pipeFile(t, dir, "up")
	if err := s.Own(dir); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/out", Write: true}}, Limits: Limits{MemoryBytes: minMemoryBytes, Processes: 64, DiskBytes: 8 << 20}})
	type outcome struct {
		res Result
		err error
	}
	done := make(chan outcome)
	go func() {
		res, err := r.Do(context.Background(), Command{Dir: "/build/out", Args: []string{"sh", "-eu", "-c", `
			echo up >up
			while [ ! -e enough ]; do
				(head -c 4000000 /dev/zero >/tmp/x; sort /tmp/x | wc -c >/tmp/y)
				[ $(cat /tmp/y) = 4000001 ]
				sleep 0.05
			done`}})
		done <- outcome{res, err}
	}()
	waitFor(t, up)
	return func() {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "enough"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.err != nil || !got.res.OK() {
			t.Errorf("the program in another box: %+v, %v", got.res, got.err)
		}
	}
}

// TestNoGroup opens sandboxes where groups cannot be had: the boxes are bounded
// by rlimits, and the facts say why.
func TestNoGroup(t *testing.T) {
	openBoxed(t)
	find := findGroups
	t.Cleanup(func() { findGroups = find })
	for _, tt := range []struct {
		name string
		find func() (*cgroup.Host, error)
		lost string
	}{
		{"none", func() (*cgroup.Host, error) { return nil, errors.New("there is no cgroup") }, "there is no cgroup"},
		{"none in which a box starts", func() (*cgroup.Host, error) {
			h, err := find()
			if err == nil {
				err = h.Close() // New fails, as its folder is gone
			}
			return h, err
		}, "bound the box"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := find(); err != nil && tt.name != "none" {
				t.Skip(err)
			}
			findGroups = tt.find
			s := openBoxed(t)
			f := s.Facts()
			if f.Bounds != "rlimits" || !strings.HasSuffix(f.Name, ", rlimits (memory of each process alone)") || !strings.Contains(f.Lost, tt.lost) || !strings.HasPrefix(f.Lost, "memory is bounded for each process") {
				t.Errorf("%+v", f)
			}
			if res := do(t, start(t, s, Box{}), Command{Args: []string{"true"}}); !res.OK() {
				t.Errorf("%+v", res)
			}
		})
	}
}
