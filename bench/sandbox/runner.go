package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"patchbench/bench/sandbox/cgroup"
	"patchbench/bench/sandbox/mark"
	"patchbench/bench/sandbox/output"
	"patchbench/bench/sandbox/runner"
)

const (
	defaultTimeout = 10 * time.Minute
	// patience is how long a runner may take beyond a run's own time, to start
	// it, to kill what is left and to empty /tmp.
	patience = time.Minute
)

// Runner is a started box with the runner in it. Commands run one at a time, in
// the order of the calls.
type Runner struct {
	mounts []Mount  // unsafe mode: how paths inside map to the host
	tmp    *os.File // unsafe mode: the folder that stands for /tmp
	mark   uint64   // of all that it starts

	group *cgroup.Group // nil where there are rlimits only
	// memory and processes are the group's bounds, in words.
	memory, processes string

	rooms []room // the writable mounts
	short *room  // the one because of which this run was ended

	cmd     *exec.Cmd
	orders  *os.File
	answers chan runner.Answer // closed when the runner's end of the pipe is closed; holds one that nobody waits for
	exited  chan struct{}      // closed when the process has been waited for and nothing of it is left
	stderr  output.Tail        // what bubblewrap and the runner complain of

	busy   sync.Mutex // held during a Do
	worn   atomic.Bool
	encode *json.Encoder
	closed sync.Once
	over   atomic.Pointer[error] // why there are no more results
}

// Start starts a box. It stays until Close, until the bot ends, or until ctx is
// cancelled while it starts. The error is ours: a mount that does not exist or
// that the uid cannot reach, or bubblewrap's complaint.
func (s *Sandbox) Start(ctx context.Context, b Box) (*Runner, error) {
	if err := s.checkMounts(b); err != nil {
		return nil, fmt.Errorf("start box: %w", err)
	}
	rooms, err := roomsOf(b)
	if err != nil {
		return nil, fmt.Errorf("start box: %w", err)
	}
	l := withDefaults(b.Limits)
	r := &Runner{answers: make(chan runner.Answer, 1), exited: make(chan struct{}), mark: mark.New(), rooms: rooms}
	set := runner.Setup{Boxed: !s.opts.Unsafe, Limits: l, Path: s.facts.Path, Tmp: "/tmp", Empty: []string{"/tmp", "/dev/shm"}, Mark: r.mark}
	if hasQueues() {
		set.Empty = append(set.Empty, "/dev/mqueue")
	}
	if s.opts.Unsafe {
		if r.tmp, err = tempDir(); err != nil {
			return nil, fmt.Errorf("start runner: %w", err)
		}
		dir := r.tmp.Name()
		r.mounts = append([]Mount{{Host: dir, Inside: "/tmp"}}, b.Mounts...)
		set.Tmp, set.Empty = dir, []string{dir}
	}
	if s.groups != nil {
		g, err := s.groups.New(s.facts.UID, cgroup.Bounds{MemoryBytes: l.MemoryBytes, Processes: l.Processes})
		if err != nil {
			return nil, fmt.Errorf("start box: %w", err)
		}
		r.group = g
		r.memory, r.processes = "out of memory: limit "+runner.Size(l.MemoryBytes), "process limit "+strconv.Itoa(l.Processes)
	}
	if err := s.launch(r, b, l, &set); err != nil {
		return nil, errors.Join(fmt.Errorf("start box: %w", err), r.removeTraces())
	}
	stop := context.AfterFunc(ctx, r.kill)
	defer stop()
	if _, err := r.ask(ctx, runner.Order{Setup: &set}, patience); err != nil {
		r.Close()
		return nil, fmt.Errorf("start box: %w", err)
	}
	return r, nil
}

// launch starts the process with its pipes and fills in set which of its
// descriptors are what.
func (s *Sandbox) launch(r *Runner, b Box, l Limits, set *runner.Setup) error {
	orderIn, orderOut, err := os.Pipe()
	if err != nil {
		return err
	}
	answerIn, answerOut, err := os.Pipe()
	if err != nil {
		orderIn.Close()
		orderOut.Close()
		return err
	}
	// The child's descriptors 3, 4, 5, ... in this order.
	files := []*os.File{orderIn, answerOut, s.exe}
	if r.group != nil {
		inside, enter := r.group.Inside()
		for i := range inside {
			if fd := 3 + len(files) + i; enter {
				set.Enter = append(set.Enter, fd)
			} else {
				set.Group = fd
			}
		}
		files = append(files, inside...)
	}
	kept := files[2:] // the others are the child's alone
	defer func() {
		for _, f := range files {
			if !slices.Contains(kept, f) {
				f.Close()
			}
		}
	}()
	exe := "/proc/self/fd/5"
	argv := []string{exe, runner.Arg}
	attr := &syscall.SysProcAttr{
		// A session of its own: Ctrl-C in the terminal reaches the bot alone.
		Setsid: true,
	}
	if !s.opts.Unsafe {
		attr.Pdeathsig = syscall.SIGKILL
		if s.drop {
			attr.Credential = &syscall.Credential{Uid: uint32(s.facts.UID), Gid: uint32(s.facts.UID)}
		}
		if r.group != nil && r.group.Runner() != nil {
			attr.UseCgroupFD, attr.CgroupFD = true, int(r.group.Runner().Fd())
		}
		firstData := 3 + len(files)
		for _, d := range s.madeUp() {
			f, err := pipeWith(d.text)
			if err != nil {
				orderOut.Close()
				answerIn.Close()
				return err
			}
			files = append(files, f)
		}
		argv = append(append([]string{s.bwrap}, s.boxArgs(b, l, firstData)...), append([]string{"--"}, argv...)...)
	}
	r.cmd = &exec.Cmd{
		Path: argv[0], Args: argv, Dir: "/",
		// Not nil: the environment is empty, not the bot's. --clearenv would
		// leave the bot's in /proc/1/environ.
		Env:         []string{},
		ExtraFiles:  files,
		Stderr:      &r.stderr,
		SysProcAttr: attr,
		WaitDelay:   2 * time.Second,
	}
	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the thread ends that started
		// the child, so this thread stays as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err == nil {
			// How it ended does not matter: what it said on stderr does.
			_ = r.cmd.Wait()
			if s.opts.Unsafe {
				// A runner that was killed leaves its programs behind.
				mark.Kill(r.mark)
			}
			close(r.exited)
		}
	}()
	if err := <-started; err != nil {
		orderOut.Close()
		answerIn.Close()
		return err
	}
	r.orders = orderOut
	r.encode = json.NewEncoder(orderOut)
	go func() {
		defer close(r.answers)
		defer answerIn.Close()
		dec := json.NewDecoder(answerIn)
		for {
			var a runner.Answer
			if dec.Decode(&a) != nil {
				return
			}
			r.answers <- a
		}
	}()
	return nil
}

// pipeWith gives the reading end of a pipe that holds text, which must be short.
func pipeWith(text string) (*os.File, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if _, err := io.WriteString(out, text); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// errClosed is what a Do returns that Close cuts short, or that comes after it.
var errClosed = errors.New("the box was closed")

// ask sends an order and waits for the answer. When ctx is cancelled the run is
// cancelled too and ctx.Err() returned; the runner can be used again.
func (r *Runner) ask(ctx context.Context, o runner.Order, wait time.Duration) (runner.Answer, error) {
	began := time.Now()
	err := r.enterBounds()
	var a runner.Answer
	if err == nil {
		a, err = r.exchange(ctx, o, wait)
	}
	r.worn.Store(a.Worn)
	if err == nil && len(a.Results) > 0 {
		err = r.nameLimit(blamed(a.Results), began)
	}
	// A runner that ends kills its program, and may still tell of that as if the
	// program had ended by itself.
	if over := r.over.Load(); over != nil && ctx.Err() == nil {
		return runner.Answer{}, *over
	}
	return a, err
}

func (r *Runner) exchange(ctx context.Context, o runner.Order, wait time.Duration) (runner.Answer, error) {
	if err := r.encode.Encode(o); err != nil {
		return runner.Answer{}, r.gone(err)
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	done := ctx.Done()
	var look <-chan time.Time
	if len(r.rooms) > 0 {
		ticker := time.NewTicker(lookInterval)
		defer ticker.Stop()
		look = ticker.C
	}
	cancel := func() {
		late.Reset(5 * time.Second)
		if r.encode.Encode(runner.Order{Cancel: true}) != nil {
			r.kill()
		}
	}
	for {
		select {
		case a, ok := <-r.answers:
			switch {
			case ctx.Err() != nil:
				return runner.Answer{}, ctx.Err()
			case !ok:
				return runner.Answer{}, r.gone(nil)
			case a.Error != "":
				return runner.Answer{}, errors.New(a.Error)
			}
			return a, nil
		case <-done:
			done = nil
			cancel()
		case <-look:
			if r.short = r.scarce(); r.short != nil {
				look = nil
				cancel()
			}
		case <-late.C:
			// It hangs: the process cannot be killed, or the machine stands still.
			err := fmt.Errorf("the runner did not answer within %s and was killed", wait)
			r.over.CompareAndSwap(nil, &err)
			r.kill()
			if ctx.Err() != nil {
				return runner.Answer{}, ctx.Err()
			}
			return runner.Answer{}, err
		}
	}
}

// gone explains the end of the runner with what it last said.
func (r *Runner) gone(err error) error {
	r.kill()
	<-r.exited
	text := strings.TrimSpace(r.stderr.String())
	switch {
	case text != "":
		return fmt.Errorf("the runner ended: %s", text)
	case err != nil && !errors.Is(err, os.ErrClosed):
		return fmt.Errorf("the runner ended: %w", err)
	}
	return errors.New("the runner ended")
}

// Do runs one command and waits for it. An error means that we could not do it;
// what the program did, be it a crash, is in the Result. Cancelling ctx kills
// the program and returns ctx.Err(). Afterwards none of the box's processes is
// left, and /tmp is empty unless the command says KeepTmp; see Worn for the rest.
func (r *Runner) Do(ctx context.Context, c Command) (Result, error) {
	results, err := r.DoAll(ctx, []Job{{Command: c}})
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// Worn says that the next program would not find the box as the first one did: of
// what runs have left, something is still there that nobody can take away. That is
// modes and attributes of the folders themselves that programs may write to, what
// they set of the session they share, and connections whose ports the kernel keeps
// for a minute. Whoever wants a box like new starts another.
func (r *Runner) Worn() bool { return r.worn.Load() }

// DoAll runs jobs in order on one state: /tmp is kept from job to job. After a job
// that fails, the rest is not started (NotStarted says after which). There is a
// Result for each job. The error is ours, as in Do.
func (r *Runner) DoAll(ctx context.Context, jobs []Job) ([]Result, error) {
	r.busy.Lock()
	defer r.busy.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(jobs) == 0 || len(jobs) > mark.MaxJobs {
		return nil, fmt.Errorf("run: %d commands; give 1 to %d", len(jobs), mark.MaxJobs)
	}
	jobs = slices.Clone(jobs)
	wait := patience
	for i := range jobs {
		j := &jobs[i]
		if len(j.Args) == 0 {
			return nil, errors.New("run: no command")
		}
		if j.Timeout <= 0 {
			j.Timeout = defaultTimeout
		}
		wait += j.Timeout
		j.Dir = r.Path(j.Dir)
		j.Stdin = r.Path(j.Stdin)
		j.Env = r.mapEnv(j.Env)
	}
	a, err := r.ask(ctx, runner.Order{Run: jobs}, wait)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("run %s: %w", jobs[0].Args[0], err)
	}
	if len(a.Results) != len(jobs) {
		return nil, fmt.Errorf("run %s: the runner gave %d results for %d commands", jobs[0].Args[0], len(a.Results), len(jobs))
	}
	return a.Results, nil
}

// mapEnv maps the paths in the values of an environment.
func (r *Runner) mapEnv(vars []string) []string {
	env := make([]string, len(vars))
	for i, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		parts := strings.Split(value, ":")
		for k := range parts {
			parts[k] = r.Path(parts[k])
		}
		env[i] = name + "=" + strings.Join(parts, ":")
	}
	return env
}

// Path gives the path under which programs see a path inside the box: itself,
// and in unsafe mode, where there is no box, the host's path by the Box's
// mounts. Command.Dir, Stdin and the values of Env (paths, also several with
// colons between) are mapped by Do; arguments are not.
func (r *Runner) Path(inside string) string {
	best := Mount{}
	for _, m := range r.mounts {
		if under(inside, m.Inside) && len(m.Inside) > len(best.Inside) {
			best = m
		}
	}
	if best.Inside == "" {
		return inside
	}
	return filepath.Join(best.Host, strings.TrimPrefix(inside, best.Inside))
}

// Close ends the box: nothing of it is left when Close returns. It can be called
// more than once and while a Do runs, which then returns an error.
func (r *Runner) Close() error {
	var err error
	r.closed.Do(func() {
		r.over.CompareAndSwap(nil, &errClosed)
		// The runner ends when its orders do, and with it the whole box.
		r.orders.Close()
		select {
		case <-r.exited:
		case <-time.After(10 * time.Second):
			r.kill()
			<-r.exited
		}
		err = r.removeTraces()
	})
	return err
}

// kill ends the box without ceremony.
func (r *Runner) kill() {
	select {
	case <-r.exited: // its number may belong to another process by now
	default:
		_ = r.cmd.Process.Kill()
	}
}

// removeTraces removes what there is of the box on the host.
func (r *Runner) removeTraces() error {
	if r.group != nil {
		if err := r.group.Remove(); err != nil {
			return err
		}
	}
	if r.tmp == nil {
		return nil
	}
	defer r.tmp.Close()
	if err := removeTemp(r.tmp.Name()); err != nil {
		return fmt.Errorf("remove %s: %w", r.tmp.Name(), err)
	}
	return nil
}
