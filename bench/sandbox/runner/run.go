package runner

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run is one program, from its order until nothing of it is left.
type run struct {
	Command
	res   Result
	trace *trace // nil without Peaks

	// Guarded by host.mu.
	started bool
	ended   bool
	limit   string // who ended it early says why: the words for Result.Limit

	out      *output
	children syscall.Rusage // what the runner had waited for before
	pressure int64
	begin    time.Time
	pid      int
}

// end kills a run and says why. It does nothing to a run that has ended, so that
// a late timer never hits the next one.
func (h *host) end(r *run, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.ended || r.limit != "" {
		return
	}
	r.limit = why
	if r.started {
		h.killAll()
	}
}

// run carries out a command on the runner's own thread, the only one that forks
// and waits.
func (h *host) run(r *run) (Result, error) {
	if err := os.Mkdir(filepath.Join(h.Tmp, "home"), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return Result{}, fmt.Errorf("make the home folder: %w", err)
	}
	err := h.carryOut(r)
	if err == nil && r.KeepTmp {
		return r.res, nil
	}
	// Also after an error, so that nothing passes to the next run.
	if e := h.clean(); err == nil {
		err = e
	}
	return r.res, err
}

func (h *host) carryOut(r *run) error {
	r.res = Result{Status: -1, PressureNS: -1}
	if r.Dir == "" {
		r.Dir = h.Tmp
	}
	env := h.environment(r.Env)
	var path string
	stdin, err := openStdin(r.Stdin)
	if err == nil {
		defer stdin.Close()
		path, err = find(r.Args[0], r.Dir, env)
	}
	if err != nil {
		r.res.NotStarted = err.Error()
		return nil
	}
	r.out, err = newOutput(h.Limits.OutputBytes, min(r.KeepStdout, maxKeep), func() {
		h.end(r, "printed more than "+size(h.Limits.OutputBytes))
	})
	if err != nil {
		return err
	}
	started, err := h.start(r, path, env, stdin)
	if !started {
		r.out.close()
		return err
	}
	timer := time.AfterFunc(r.Timeout, func() { h.end(r, "timed out after "+seconds(r.Timeout)) })
	defer timer.Stop()
	if err := h.wait(r); err != nil {
		return err
	}
	return h.fill(r)
}

// start forks the program. When it cannot be executed, that is an outcome:
// started is false and so is the error.
func (h *host) start(r *run, path string, env []string, stdin *os.File) (started bool, err error) {
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r.children); err != nil {
		return false, fmt.Errorf("read resource usage: %w", err)
	}
	attr := &syscall.ProcAttr{
		Dir: r.Dir, Env: env,
		Files: []uintptr{stdin.Fd(), r.out.write[0], r.out.write[1]},
		// A group of its own: `kill 0` in a script must not reach the runner.
		Sys: &syscall.SysProcAttr{Setpgid: true, Ptrace: r.Peaks},
	}
	if !h.Boxed {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	r.pressure = pressure()
	r.begin = time.Now()
	r.pid, err = syscall.ForkExec(path, r.Args, attr)
	if err == nil && r.Peaks {
		var died *syscall.WaitStatus
		r.trace, died, err = follow(r.pid)
		if err != nil {
			h.killAll()
			h.reap()
			return false, err
		}
		if died != nil {
			r.res.Wall = time.Since(r.begin)
			h.programEnded(r, *died)
		}
	}
	r.out.started()
	switch {
	case err == nil:
	case slices.Contains([]error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EPERM, syscall.EIO}, err):
		return false, fmt.Errorf("start %s: %w", path, err)
	case err == syscall.ENOENT:
		r.res.NotStarted = fmt.Sprintf("%s: it or its interpreter is not there", path)
		return false, nil
	default:
		r.res.NotStarted = fmt.Sprintf("%s: %v", path, err)
		return false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.started = true
	if r.limit != "" {
		h.killAll()
	}
	return true, nil
}

// wait waits for the program, then kills and waits for whatever it left behind.
func (h *host) wait(r *run) error {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, unix.WALL, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			if !r.ended {
				return errors.New("wait for the program: it is no child any more")
			}
			return nil
		case err != nil:
			return fmt.Errorf("wait for the program: %w", err)
		case ws.Stopped():
			if r.trace != nil {
				r.trace.stopped(pid, ws)
			}
		default:
			if r.trace != nil {
				r.trace.gone(pid)
			}
			if pid == r.pid && !r.ended {
				r.res.Wall = time.Since(r.begin)
				h.programEnded(r, ws)
			} else if r.ended && !h.Boxed {
				h.killAll() // what was forked while the last kill looked around
			}
		}
	}
}

func (h *host) programEnded(r *run, ws syscall.WaitStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.ended = true
	if r.limit == "" {
		r.res.Status, r.res.Signal = ending(r.Args, ws)
	}
	// Everything left is a child of ours by now, or a descendant of one.
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil); err == syscall.ECHILD {
		return
	}
	if r.limit == "" {
		r.res.Left = len(h.others())
	}
	h.killAll()
}

// reap waits for every child there is.
func (h *host) reap() {
	for {
		_, err := syscall.Wait4(-1, nil, unix.WALL, nil)
		if err != nil && err != syscall.EINTR {
			return
		}
	}
}

// fill completes the result once nothing of the program is alive.
func (h *host) fill(r *run) error {
	res := &r.res
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &now); err != nil {
		return fmt.Errorf("read resource usage: %w", err)
	}
	before := &r.children
	res.User = time.Duration(now.Utime.Nano() - before.Utime.Nano())
	res.Sys = time.Duration(now.Stime.Nano() - before.Stime.Nano())
	res.Faults = now.Minflt - before.Minflt
	res.MajorFaults = now.Majflt - before.Majflt
	res.Voluntary = now.Nvcsw - before.Nvcsw
	res.Involuntary = now.Nivcsw - before.Nivcsw
	res.ReadBlocks = now.Inblock - before.Inblock
	res.WriteBlocks = now.Oublock - before.Oublock
	if p := pressure(); p >= 0 && r.pressure >= 0 {
		res.PressureNS = p - r.pressure
	}
	if r.trace != nil {
		r.trace.fill(res)
	}
	r.out.wait()
	if r.out.tooMuch() && r.limit == "" {
		r.limit = "printed more than " + size(h.Limits.OutputBytes)
	}
	if r.limit != "" {
		res.Limit, res.Status, res.Signal = r.limit, -1, ""
	}
	res.Stdout = r.out.kept.Bytes()
	res.StdoutSHA256 = hex.EncodeToString(r.out.sum.Sum(nil))
	res.LogTail = r.out.log.String()
	return nil
}

// ending reads a wait status. A shell that ends with 128 + n tells of a signal
// that killed what it ran, if n is one that kills programs.
func ending(args []string, ws syscall.WaitStatus) (status int, signal string) {
	if ws.Signaled() {
		return -1, signalName(ws.Signal())
	}
	status = ws.ExitStatus()
	if n := syscall.Signal(status - 128); status > 128 && isShell(args) && slices.Contains(fatal, n) {
		signal = signalName(n)
	}
	return status, signal
}

var fatal = []syscall.Signal{
	syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE,
	syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGPIPE, syscall.SIGTERM, syscall.SIGSYS,
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// isShell recognises `sh -c LINE` with any options before it.
func isShell(args []string) bool {
	switch filepath.Base(args[0]) {
	case "sh", "dash", "bash", "ash", "ksh", "mksh", "zsh":
	default:
		return false
	}
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			return false
		}
		if !strings.HasPrefix(a, "--") && strings.Contains(a, "c") {
			return true
		}
	}
	return false
}

// environment is the whole environment of a program; of two entries with one
// name the later wins.
func (h *host) environment(own []string) []string {
	env := []string{"PATH=" + h.Path, "HOME=" + filepath.Join(h.Tmp, "home"), "TMPDIR=" + h.Tmp, "LANG=C.UTF-8", "TZ=UTC"}
	for _, v := range own {
		name, _, _ := strings.Cut(v, "=")
		at := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if at >= 0 {
			env[at] = v
		} else {
			env = append(env, v)
		}
	}
	return env
}

// find looks a program up as a shell in dir would.
func find(name, dir string, env []string) (string, error) {
	if !isDir(dir) {
		return "", fmt.Errorf("folder %s: not there", dir)
	}
	if strings.Contains(name, "/") {
		return name, nil // execve says what is wrong with it
	}
	var path string
	for _, v := range env {
		if p, ok := strings.CutPrefix(v, "PATH="); ok {
			path = p
		}
	}
	for _, d := range filepath.SplitList(path) {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d)
		}
		p := filepath.Join(d, name)
		if isFile(p) && unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: not found on PATH (%s)", name, path)
}

// openStdin opens a plain file, without waiting if it is something else: the
// name may be a link or pipe that the program's authors put there.
func openStdin(name string) (*os.File, error) {
	if name == "" {
		return os.Open(os.DevNull)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	var fs unix.Statfs_t
	info, err := f.Stat()
	if err == nil {
		err = unix.Fstatfs(int(f.Fd()), &fs)
	}
	// A link into /proc would open what is the runner's own.
	if err != nil || !info.Mode().IsRegular() || fs.Type == unix.PROC_SUPER_MAGIC {
		f.Close()
		return nil, fmt.Errorf("standard input: %s is not a plain file", name)
	}
	return f, nil
}

// size writes a number of bytes for people: "64 MiB", "1000 bytes".
func size(bytes int64) string {
	if bytes >= 1<<20 && bytes%(1<<20) == 0 {
		return strconv.FormatInt(bytes>>20, 10) + " MiB"
	}
	return strconv.FormatInt(bytes, 10) + " bytes"
}

// seconds writes a duration for people: "600 s", "1.5 s".
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
