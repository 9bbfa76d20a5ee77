package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/cgroup"
	"patchbench/bench/sandbox/probe"
)

// firstUID is the uid of slot 0; it lies above the ranges that distributions
// give to people and services.
const firstUID = 64000

// whatIsLost ends every message that refuses to go on without a sandbox.
const whatIsLost = "without it the code under test could read and change everything that this user can"

// Sandbox starts boxes. It may be used by several goroutines at once.
type Sandbox struct {
	opts  Options
	facts Facts
	// bwrap is the path of bubblewrap, "" in unsafe mode.
	bwrap string
	// groups bound boxes as a whole; nil where rlimits must do.
	groups *cgroup.Host
	// exe is this binary, opened once: a later upgrade of the file on disk
	// does not mix two versions of the runner.
	exe *os.File
	// drop says that the bot is root and programs run under facts.UID.
	drop  bool
	tools []string // toolchain folders outside /usr
}

// Open finds the sandbox of this machine and tries it: a box is started and a
// program in it tries to write to the system, to read the bot's environment,
// descriptors and files, to reach the network and to be root. If there is no
// bubblewrap, or it does not start, or one of these succeeds, the error wraps
// ErrNone and says what happened and what to do. With Options.Unsafe nothing is
// looked for or tried.
func Open(ctx context.Context, o Options) (*Sandbox, error) {
	s := &Sandbox{opts: o, facts: Facts{UID: os.Geteuid(), Unsafe: o.Unsafe, Name: "none"}}
	exe := o.Executable
	if exe == "" {
		exe = "/proc/self/exe"
	}
	f, err := os.Open(exe)
	if err != nil {
		return nil, fmt.Errorf("sandbox: open the runner's binary: %w", err)
	}
	s.exe = f
	s.findTools()
	sweepTemp()
	if o.Unsafe {
		return s, nil
	}
	if err := s.openBox(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Sandbox) openBox(ctx context.Context) error {
	if os.Geteuid() == 0 {
		s.drop = true
		s.facts.UID = s.opts.RunsAs()
		if s.facts.UID < 1 {
			return fmt.Errorf("%w: programs cannot run under uid %d; give another one", ErrNone, s.facts.UID)
		}
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("%w: bubblewrap (bwrap) is not installed; install the package bubblewrap; %s", ErrNone, whatIsLost)
	}
	s.bwrap = bwrap
	version, err := exec.CommandContext(ctx, bwrap, "--version").Output()
	if err != nil {
		return fmt.Errorf("%w: %s --version: %w; install the package bubblewrap again; %s", ErrNone, bwrap, err, whatIsLost)
	}
	s.facts.Name = strings.TrimSpace(string(version))
	help, err := exec.CommandContext(ctx, bwrap, "--help").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s --help: %w; install the package bubblewrap again; %s", ErrNone, bwrap, err, whatIsLost)
	}
	for _, option := range []string{"--as-pid-1", "--perms", "--size", "--disable-userns"} {
		if !slices.Contains(strings.Fields(string(help)), option) {
			return fmt.Errorf("%w: %s is too old: it lacks %s; install bubblewrap 0.8 or newer; %s", ErrNone, s.facts.Name, option, whatIsLost)
		}
	}
	if err := s.ensureExecutable(); err != nil {
		return err
	}
	return s.testBounds(ctx)
}

// testBounds runs the self-test with a group, and with rlimits where there is no
// group or no box starts in one.
func (s *Sandbox) testBounds(ctx context.Context) error {
	groups, missing := findGroups()
	if missing == nil {
		s.groups = groups
		s.facts.Bounds = groups.Name()
		if missing = s.selfTest(ctx); missing == nil {
			s.facts.Name += ", " + s.facts.Bounds
			return nil
		}
		s.groups = nil
		if err := errors.Join(groups.Close(), ctx.Err()); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	s.facts.Bounds = "rlimits"
	if err := s.selfTest(ctx); err != nil {
		return err
	}
	s.facts.Name += ", rlimits (memory of each process alone)"
	s.facts.Lost = "memory is bounded for each process and not for the box, and results do not say that memory or processes ran out: " + missing.Error()
	return nil
}

// findGroups is a variable for tests.
var findGroups = cgroup.Find

// ensureExecutable makes sure that the uid may execute the binary: one that only
// its owner may execute is copied into memory, under open permissions.
func (s *Sandbox) ensureExecutable() error {
	info, err := s.exe.Stat()
	if err != nil {
		return fmt.Errorf("sandbox: the runner's binary: %w", err)
	}
	if !s.drop || info.Mode().Perm()&0o005 == 0o005 {
		return nil
	}
	fd, err := unix.MemfdCreate("patchbench", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3 do not know MFD_EXEC
		fd, err = unix.MemfdCreate("patchbench", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return fmt.Errorf("sandbox: copy the runner's binary: %w", err)
	}
	mem := os.NewFile(uintptr(fd), "patchbench")
	defer mem.Close()
	if _, err := s.exe.WriteTo(mem); err != nil {
		return fmt.Errorf("sandbox: copy the runner's binary: %w", err)
	}
	if err := mem.Chmod(0o755); err != nil {
		return fmt.Errorf("sandbox: copy the runner's binary: %w", err)
	}
	// A file that is open for writing anywhere cannot be executed.
	ro, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return fmt.Errorf("sandbox: copy the runner's binary: %w", err)
	}
	s.exe.Close()
	s.exe = ro
	return nil
}

// Facts tells which sandbox this is.
func (s *Sandbox) Facts() Facts { return s.facts }

// Close lets go of the binary and the groups. Runners that are still open are
// not touched.
func (s *Sandbox) Close() error {
	err := s.exe.Close()
	if s.groups != nil {
		err = errors.Join(err, s.groups.Close())
	}
	return err
}

// selfTest starts a box and has a program try to get out of it.
func (s *Sandbox) selfTest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	dir, err := tempDir()
	if err != nil {
		return fmt.Errorf("sandbox: prepare the self-test: %w", err)
	}
	defer dir.Close()
	bait, err := probe.Lay(dir.Name())
	if err != nil {
		return fmt.Errorf("sandbox: prepare the self-test: %w", err)
	}
	defer bait.Close()

	begin := time.Now()
	r, err := s.Start(ctx, Box{Limits: Limits{DiskBytes: 1 << 20}})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s does not start a box: %w; if user namespaces are forbidden on this machine, "+
			"allow them (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, user.max_user_namespaces); %s",
			ErrNone, s.facts.Name, err, whatIsLost)
	}
	s.facts.StartCost = time.Since(begin)
	defer r.Close()
	res, err := r.Do(ctx, Command{
		Args:       append([]string{"/proc/self/exe", probe.Arg}, bait.Args()...),
		Timeout:    30 * time.Second,
		KeepStdout: 64 << 10,
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: self-test of %s: %w; %s", ErrNone, s.facts.Name, err, whatIsLost)
	}
	could, complete := probe.Could(string(res.Stdout))
	if !res.OK() || !complete {
		return fmt.Errorf("%w: self-test of %s did not run to its end (status %d%s%s%s): %s; %s", ErrNone, s.facts.Name,
			res.Status, res.Signal, res.Limit, res.NotStarted, strings.TrimSpace(res.LogTail), whatIsLost)
	}
	if could != "" {
		return fmt.Errorf("%w: self-test of %s: a program in the box could %s; install a current bubblewrap, or repair its set-up; %s",
			ErrNone, s.facts.Name, could, whatIsLost)
	}
	return nil
}
