package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench/sandbox/probe"
)

// workDir is a temporary folder that the uid of programs can reach.
func workDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(runnerBinary), "work-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEnvironment(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		t.Setenv("PATCHBENCH_SECRET", "secret")
		dir := workDir(t)
		r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src"}}})
		res := do(t, r, Command{Args: []string{"env"}, KeepStdout: 1 << 16,
			Env: []string{"A=1", "LANG=de_DE", "LIBS=/build/src/lib:/build/src:x:/build/srcs", "A=2"}})
		got := strings.Split(strings.TrimSpace(string(res.Stdout)), "\n")
		slices.Sort(got)
		want := []string{
			"A=2",
			"HOME=" + r.Path("/tmp/home"),
			"LANG=de_DE",
			"LIBS=" + r.Path("/build/src") + "/lib:" + r.Path("/build/src") + ":x:/build/srcs",
			"PATH=" + s.Facts().Path,
			"TMPDIR=" + r.Path("/tmp"),
			"TZ=UTC",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if boxed := !s.Facts().Unsafe; boxed != (r.Path("/build/src") == "/build/src") {
			t.Errorf("/build/src is %s, boxed: %t", r.Path("/build/src"), boxed)
		}
	})
}

func TestInputAndOutput(t *testing.T) {
	modes(t, func(t *testing.T, s *Sandbox) {
		dir := workDir(t)
		text := strings.Repeat("0123456789abcde\n", 10000)
		if err := os.WriteFile(filepath.Join(dir, "in"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src"}}})
		sum := sha256.Sum256([]byte(text))
		for _, tt := range []struct {
			keep int64
			want string
		}{{0, ""}, {20, text[:20]}, {1 << 20, text}} {
			res := do(t, r, Command{Args: []string{"sh", "-c", "cat; echo wrong >&2"}, Dir: "/build/src", Stdin: "/build/src/in", KeepStdout: tt.keep})
			if diff := cmp.Diff(tt.want, string(res.Stdout)); diff != "" {
				t.Errorf("keep %d: %s", tt.keep, diff)
			}
			if res.StdoutSHA256 != hex.EncodeToString(sum[:]) {
				t.Errorf("keep %d: digest %s", tt.keep, res.StdoutSHA256)
			}
			if len(res.LogTail) != 8<<10 || !strings.Contains(res.LogTail, "wrong\n") {
				t.Errorf("keep %d: log tail of %d bytes ends in %q", tt.keep, len(res.LogTail), res.LogTail[len(res.LogTail)-20:])
			}
		}
	})
}

// TestNoWayOut has programs try what they must not be able to do.
func TestNoWayOut(t *testing.T) {
	s := openBoxed(t)
	secret := filepath.Join(workDir(t), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	out := workDir(t)
	if err := s.Own(out); err != nil {
		t.Fatal(err)
	}
	shown := filepath.Dir(runnerBinary)
	r, known := knownBox(t, s, Limits{})
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"signals are the default", []string{known, "signals"}},
		{"write to a mount for reading", []string{"sh", "-c", "touch /build/out/x && echo wrote"}},
		{"write to the system", []string{"sh", "-c", "for d in / /usr /etc /dev /var /build /sys/devices/system/cpu; do touch $d/x && echo wrote $d; done"}},
		{"reach the bot's files", []string{"sh", "-c", "ls " + secret + " /root /home /proc/1/root/ " + shown}},
		{"reach the network", []string{"sh", "-c", "grep -v -e Inter- -e face -e lo: /proc/net/dev"}},
		{"be another", []string{"sh", "-c", "su root -c id; setpriv --reuid 0 id; unshare -Ur id"}},
		{"see other processes", []string{"sh", "-c", "for p in /proc/[0-9]*; do case $p in /proc/1|/proc/$$) ;; *) echo $p;; esac; done"}},
		{"keep the mounts writable", []string{"sh", "-c", "mount -o remount,rw /usr && echo remounted; mount -t tmpfs x /tmp && echo mounted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res := do(t, r, Command{Args: tt.args, KeepStdout: 4096})
			if len(res.Stdout) != 0 || res.NotStarted != "" {
				t.Errorf("%s %s", res.Stdout, res.NotStarted)
			}
		})
	}
	if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
		t.Errorf("the runner is not itself any more: %+v", res)
	}
}

// TestNothingStays has a program leave all that it can and another look for it.
func TestNothingStays(t *testing.T) {
	r, known := knownBox(t, openBoxed(t), Limits{})
	for range 2 {
		if res := do(t, r, Command{Args: []string{known, "leave"}}); !res.OK() {
			t.Fatalf("%+v", res)
		}
		res := do(t, r, Command{Args: []string{known, "look"}, KeepStdout: 1 << 16})
		if !res.OK() || len(res.Stdout) > 0 {
			t.Fatalf("found %s%s", res.Stdout, res.LogTail)
		}
		if r.Worn() {
			t.Fatal("nothing stays, and yet the box is worn")
		}
	}
}

// TestWorn has programs change what cannot be set back: the box says so, and a new
// one knows nothing of it.
func TestWorn(t *testing.T) {
	s := openBoxed(t)
	for _, what := range []string{"attribute", "permissions", "terminals", "session", "port"} {
		t.Run(what, func(t *testing.T) {
			for range 2 {
				r, known := knownBox(t, s, Limits{})
				if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() || r.Worn() {
					t.Fatalf("worn %t before anything was done: %+v", r.Worn(), res)
				}
				res := do(t, r, Command{Args: []string{known, "wear", what}})
				if res.Status == 77 {
					t.Skip("this kernel has no such thing")
				}
				if !res.OK() || !r.Worn() {
					t.Fatalf("worn %t: %+v", r.Worn(), res)
				}
				if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() || !r.Worn() {
					t.Fatalf("worn no more: %+v", res)
				}
			}
		})
	}
}

// TestTooLargeToLoad runs a program that the kernel kills while it loads it, for
// want of what rlimits allow.
func TestTooLargeToLoad(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		lacking(t, "gcc is not there to compile a program")
	}
	dir := workDir(t)
	gcc := exec.Command("gcc", "-static", "-x", "c", "-o", filepath.Join(dir, "large"), "-")
	gcc.Stdin = strings.NewReader("char large[512 << 20]; int main(void) { return large[1]; }")
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	r := start(t, openUngrouped(t), Box{Mounts: []Mount{{Host: dir, Inside: "/build/out"}}, Limits: Limits{MemoryBytes: minMemoryBytes}})
	for _, peaks := range []bool{false, true} {
		res := do(t, r, Command{Args: []string{"/build/out/large"}, Peaks: peaks})
		if res.OK() || res.Signal == "" && res.NotStarted == "" {
			t.Errorf("peaks %t: %+v", peaks, res)
		}
	}
	if res := do(t, r, Command{Args: []string{"true"}, Peaks: true}); !res.OK() {
		t.Errorf("the next run is not unharmed: %+v", res)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	s := openBoxed(t)
	closed := workDir(t)
	inner := filepath.Join(closed, "inner")
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		mount Mount
		want  string
		root  bool
	}{
		{"not there", Mount{Host: "/nowhere", Inside: "/build"}, "start box: mount at /build: stat /nowhere: no such file or directory", false},
		{"relative", Mount{Host: "src", Inside: "/build"}, "start box: mount src at /build: both must be absolute and clean paths", false},
		{"in /tmp", Mount{Host: "/usr", Inside: "/tmp/x"}, "start box: mount /usr at /tmp/x: programs find their own /tmp there, which is emptied; choose another place", false},
		{"dots", Mount{Host: "/usr", Inside: "/build/../etc"}, "start box: mount /usr at /build/../etc: both must be absolute and clean paths", false},
		{"closed", Mount{Host: inner, Inside: "/build"},
			fmt.Sprintf("start box: mount %s at /build: uid %d cannot enter %s; choose a work folder whose parents everyone may enter (mode 0711)",
				inner, s.Facts().UID, closed), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("programs run as the user that owns the folder")
			}
			r, err := s.Start(context.Background(), Box{Mounts: []Mount{tt.mount}})
			if err == nil {
				r.Close()
				t.Fatal("started")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSelfTest puts something in bubblewrap's place that makes worse boxes.
func TestSelfTest(t *testing.T) {
	openBoxed(t)
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	self := "#!/bin/sh\ncase $1 in --version|--help) exec " + bwrap + " $1;; esac\n"
	for _, tt := range []struct {
		name, script, want string
	}{
		{"none", "", "bubblewrap (bwrap) is not installed; install the package bubblewrap"},
		{"broken", "#!/bin/sh\nexit 1\n", "--version: exit status 1"},
		{"old", "#!/bin/sh\necho bubblewrap 0.3.0\n", "bubblewrap 0.3.0 is too old"},
		{"cannot", self + "echo 'bwrap: No permissions to create new namespace' >&2; exit 1\n", "No permissions to create new namespace"},
		{"no box at all", self + "while [ $1 != -- ]; do shift; done; shift; exec \"$@\"\n", "not the first process of a box"},
		{"shares the network", self + weaken(bwrap, "--share-net"), "could reach the network"},
		{"shows the host", self + "bait=$(echo DIR/patchbench-*/bait); exec 9<$bait\n" + weaken(bwrap, "--file 9 $bait"), "could read a file of the host"},
		{"shows the host in /tmp", self + weaken(bwrap, "--ro-bind DIR DIR"), "is another file system"},
		{"root", self + weaken(bwrap, "--uid 0"), "could be root"},
		{"shows the cgroups", self + weaken(bwrap, "--ro-bind /sys /sys"), "set the machine up; install"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := workDir(t)
			if tt.script != "" {
				script := strings.ReplaceAll(tt.script, "DIR", dir)
				if err := os.WriteFile(filepath.Join(dir, "bwrap"), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, 0o755); err != nil { // for the script to look for the bait
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			t.Setenv("TMPDIR", dir)
			s, err := Open(context.Background(), Options{Executable: runnerBinary})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), whatIsLost) {
				t.Errorf("got %v, want ...%s...", err, tt.want)
			}
		})
	}
}

// weaken is a script that runs bubblewrap with more options at their end.
func weaken(bwrap, options string) string {
	return `n=$#
while [ $n -gt 0 ]; do
	a=$1; shift; n=$((n-1))
	if [ "$a" = -- ]; then set -- "$@" ` + options + ` --; else set -- "$@" "$a"; fi
done
exec ` + bwrap + ` "$@"
`
}

// TestProbe runs the self-test's program outside, where it must notice much.
func TestProbe(t *testing.T) {
	dir := workDir(t)
	b, err := probe.Lay(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	inherited, err := os.Open(b.Args()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	cmd := exec.Command(runnerBinary, append([]string{probe.Arg}, b.Args()...)...)
	cmd.Env = []string{"SECRET=1"}
	cmd.ExtraFiles = []*os.File{inherited}
	if os.Geteuid() == 0 {
		// Outside a box, root could do what it tries.
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: firstUID, Gid: firstUID}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, complete := probe.Could(string(out)); !complete {
		t.Errorf("not to its end: %s", out)
	}
	for _, want := range []string{
		"read the bot's environment", "read an inherited descriptor (3 " + b.Args()[0], "read a file of the host",
		"reach the network", "use key rings", "set the machine up", "have capabilities or gain privileges",
	} {
		if !slices.ContainsFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("not noticed: %s; got %s", want, out)
		}
	}
}

func TestOwn(t *testing.T) {
	s := openBoxed(t)
	outside := filepath.Join(workDir(t), "file")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := workDir(t)
	for _, f := range []struct {
		name string
		mode os.FileMode
	}{{"a", 0o444}, {"b/c", 0o755}, {"b/d/e", 0o600}} {
		name := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": outside, "b/dir": filepath.Dir(outside), "dangling": "/nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := s.Own(dir); err != nil {
		t.Fatal(err)
	}
	uid := func(name string) int {
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	for _, name := range []string{"", "a", "b", "b/c", "b/d", "b/d/e", "link", "b/dir", "dangling"} {
		if got := uid(filepath.Join(dir, name)); got != s.Facts().UID {
			t.Errorf("%s belongs to %d", name, got)
		}
	}
	for _, name := range []string{outside, filepath.Dir(outside)} {
		if got := uid(name); got != os.Geteuid() {
			t.Errorf("a link was followed: %s belongs to %d", name, got)
		}
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src", Write: true}}})
	res := do(t, r, Command{Args: []string{"sh", "-eu", "-c", "echo y >b/d/e; echo z >new; rm a; stat -c %a b/c; cat link || echo closed"}, Dir: "/build/src", KeepStdout: 100})
	if diff := cmp.Diff("755\nclosed\n", string(res.Stdout)); diff != "" || !res.OK() {
		t.Errorf("%s%+v", diff, res)
	}
	for _, name := range []string{filepath.Join(dir, "b/c"), filepath.Join(dir, "none")} {
		if err := s.Own(name); err == nil {
			t.Errorf("gave away %s", name)
		}
	}
}

// TestUnreachable looks at a folder from outside, by its owner, group and mode.
func TestUnreachable(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give folders away")
	}
	dir := filepath.Join(workDir(t), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		mode     os.FileMode
		uid, gid int
		want     bool // that firstUID may enter
	}{
		{0o711, 0, 0, true},
		{0o710, 0, 0, false},
		{0o710, 0, firstUID, true},
		{0o701, 0, firstUID, false},
		{0o700, firstUID, 0, true},
		{0o077, firstUID, firstUID, false},
	} {
		err := os.Chown(dir, tt.uid, tt.gid)
		if err == nil {
			err = os.Chmod(dir, tt.mode)
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := unreachable(dir, firstUID); (at == "") != tt.want || at != "" && at != dir {
			t.Errorf("%v of %d and group %d: cannot enter %q", tt.mode, tt.uid, tt.gid, at)
		}
	}
}
