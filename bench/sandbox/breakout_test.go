package sandbox

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBreakingOut has a program try each way out of a box. Each must give the
// error that testdata/breakout.txt names, whether the bot is root or not (S13 of
// the bad inputs).
func TestBreakingOut(t *testing.T) {
	openBoxed(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		lacking(t, "gcc is not there to compile testdata/breakout.c")
	}
	program := filepath.Join(workDir(t), "breakout")
	if out, err := exec.Command("gcc", "-O1", "-static", "-o", program, "testdata/breakout.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile("testdata/breakout.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := attempts(t, string(text))
	for _, tt := range []struct {
		name string
		uid  int
	}{{"root", 0}, {"an ordinary user", 65432}} {
		t.Run(tt.name, func(t *testing.T) {
			if os.Geteuid() != 0 && tt.uid == 0 {
				t.Skip("the test does not run as root")
			}
			got := attempts(t, tryOut(t, program, tt.uid))
			// Of the errors allowed, the one that came.
			for name, err := range got {
				if slices.Contains(strings.Split(want[name], "|"), err) {
					got[name] = want[name]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// attempts reads lines of NAME, a tab, and ERROR.
func attempts(t *testing.T, text string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, err, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, twice := all[name]; !ok || twice {
			t.Fatalf("line %q", line)
		}
		all[name] = err
	}
	return all
}

// tryOut runs the program in a box of a bot of its own, which is root's or
// another user's, and gives what it printed.
func tryOut(t *testing.T, program string, uid int) string {
	t.Helper()
	secret := filepath.Join(workDir(t), "secret")
	dir := workDir(t)
	copied := filepath.Join(dir, "breakout")
	text, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(copied, text, 0o755)
	}
	if err == nil {
		err = os.WriteFile(secret, []byte("secret\n"), 0o644)
	}
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(dir, uid, uid)
	}
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	abstract := "patchbench-" + filepath.Base(dir)
	unix, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()

	_, port, _ := net.SplitHostPort(tcp.Addr().String()) // a listener's own address
	line := strings.Join([]string{"exec /build/out/breakout", secret, strconv.Itoa(os.Getpid()), port, abstract}, " ")
	bot := exec.Command(runnerBinary, "hold", "boxed", dir, line)
	var stdout, stderr bytes.Buffer
	bot.Stdout, bot.Stderr = &stdout, &stderr
	bot.Env = append(os.Environ(), "PATCHBENCH_SECRET=secret", "TMPDIR="+dir)
	if os.Geteuid() == 0 && uid != 0 {
		bot.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	if err := bot.Run(); err != nil {
		if strings.Contains(stderr.String(), ErrNone.Error()) {
			lacking(t, stderr.String())
		}
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var res Result
	if err := json.Unmarshal(stdout.Bytes(), &res); err != nil || !res.OK() {
		t.Fatalf("%v\n%+v", err, res)
	}
	return string(res.Stdout)
}

// TestForgedResults writes what looks like results to every place that a program
// may write to. None is read by anyone: results come over the runner's pipe (S07
// of the bad inputs).
func TestForgedResults(t *testing.T) {
	s := openBoxed(t)
	dir := workDir(t)
	if err := s.Own(dir); err != nil {
		t.Fatal(err)
	}
	r := start(t, s, Box{Mounts: []Mount{{Host: dir, Inside: "/build/src", Write: true}}})
	const forged = `{"results":[{"status":0,"wall":1,"user":1,"sys":1}]}`
	res := do(t, r, Command{Dir: "/build/src", KeepStdout: 1 << 10, Args: []string{"sh", "-c", `
		for d in /build/src /tmp /dev/shm $HOME; do echo '` + forged + `' >$d/results.json || exit 1; done
		echo '` + forged + `' | tee /proc/self/fd/3 /proc/self/fd/4 /proc/1/fd/4 2>/dev/null
		exit 3`}})
	want := Result{Status: 3, Stdout: []byte(forged + "\n")}
	if diff := cmp.Diff(want, Result{Status: res.Status, Signal: res.Signal, Limit: res.Limit, NotStarted: res.NotStarted, Stdout: res.Stdout}); diff != "" || res.Wall <= 1 {
		t.Errorf("wall %s\n%s", res.Wall, diff)
	}
}

// TestTooManyArguments starts programs with more than the kernel hands on.
func TestTooManyArguments(t *testing.T) {
	r := start(t, openBoxed(t), Box{})
	long := strings.Repeat("x", 100<<10)
	for name, c := range map[string]Command{
		"one argument":   {Args: []string{"true", long + long}},
		"many arguments": {Args: slices.Repeat([]string{"true", long}, 40)},
		"one variable":   {Args: []string{"true"}, Env: []string{"X=" + long + long}},
		"many variables": {Args: []string{"true"}, Env: slices.Collect(func(yield func(string) bool) {
			for i := 0; i < 40 && yield("X"+strconv.Itoa(i)+"="+long); i++ {
			}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			res := do(t, r, c)
			if !strings.HasSuffix(res.NotStarted, "argument list too long") {
				t.Errorf("%+v", res)
			}
			if res := do(t, r, Command{Args: []string{"true"}}); !res.OK() {
				t.Errorf("the next run is not unharmed: %+v", res)
			}
		})
	}
}
