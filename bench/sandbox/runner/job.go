package runner

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/mark"
	"patchbench/bench/sandbox/output"
	"patchbench/bench/sandbox/perf"
)

// job is one program, from its order until nothing of it is left.
type job struct {
	Job
	n      int // its place among the jobs of the order, from 0
	mark   uint64
	res    Result
	halted bool // it was stopped at its first instruction
	traced bool

	path  string
	env   []string
	stdin *os.File
	out   *output.Output
	// counter counts from the program's first instruction on; nil for none.
	counter *perf.Counter

	pid      int
	begin    time.Time     // of the program, or its release from the barrier
	before   time.Duration // what it took up to the barrier
	pressure int64
	timer    *time.Timer
	usage    usage
	lives    []life
	swept    bool   // what it left was killed once already
	notReady string // what the ready command printed last

	// Guarded by host.mu.
	started  bool
	ended    bool   // the program itself; what it left may still be there
	over     bool   // nothing is left
	limit    string // who ended it early says why: the words for Result.Limit
	stopping bool   // a background job that has been told to end
	patient  bool   // and still has its grace
}

// usage is what a job's processes used, as their parents learn it by waiting.
type usage struct {
	user, sys             time.Duration
	faults, majorFaults   int64
	voluntary, unasked    int64
	readBlocks, outBlocks int64
	read, written         int64 // bytes
	noBytes               bool  // of some process the bytes are not known
}

// prepare looks up all that a job needs. What is not there is an outcome.
func (h *host) prepare(j *job) {
	j.res = Result{Status: -1, PressureNS: -1}
	if j.Dir == "" {
		j.Dir = h.Tmp
	}
	j.env = h.environment(j.Env)
	stdin, err := openStdin(j.Stdin)
	if err == nil {
		j.stdin = stdin
		j.path, err = find(j.Args[0], j.Dir, j.env)
	}
	if err != nil {
		j.res.NotStarted = err.Error()
	}
}

// fork starts a job's program. With hold it does not get to its first
// instruction before it is released. When it cannot be executed, that is an
// outcome and said in NotStarted.
func (b *batch) fork(j *job, hold bool) error {
	var err error
	j.out, err = output.New(b.buffer(), b.Limits.OutputBytes, min(j.KeepStdout, maxKeep), func() {
		b.end(j, "printed more than "+Size(b.Limits.OutputBytes))
	})
	if err != nil {
		return err
	}
	if err := mark.Set(j.mark); err != nil {
		return err
	}
	stdout, stderr := j.out.Ends()
	attr := &syscall.ProcAttr{
		Dir: j.Dir, Env: j.env,
		Files: []uintptr{j.stdin.Fd(), stdout, stderr},
		// A group of its own: `kill 0` in a script must not reach the runner.
		Sys: &syscall.SysProcAttr{Setpgid: true, Ptrace: j.Peaks || hold || j.Count != nil, UseCgroupFD: b.Group > 0, CgroupFD: b.Group},
	}
	if !b.Boxed {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if !j.Background {
		// Before the program starts, since a new timer wakes threads of ours.
		j.timer = time.AfterFunc(j.Timeout, func() { b.end(j, "timed out after "+seconds(j.Timeout)) })
	}
	j.pressure = pressure()
	j.begin = time.Now()
	j.pid, err = syscall.ForkExec(j.path, j.Args, attr)
	if err == syscall.EPERM && attr.Sys.Ptrace {
		// Either the program or the trace is not allowed.
		attr.Sys.Ptrace = false
		j.begin = time.Now()
		if j.pid, err = syscall.ForkExec(j.path, j.Args, attr); err == nil && j.Peaks {
			j.res.Untraced = cannotTrace(syscall.EPERM)
		}
		if j.Count != nil {
			j.res.Uncounted = cannotTrace(syscall.EPERM)
		}
	}
	j.out.Started()
	j.stdin.Close()
	switch {
	case err == nil:
	case slices.Contains([]error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EIO}, err):
		j.out.Close()
		return fmt.Errorf("start %s: %w", j.path, err)
	default:
		j.out.Close()
		j.res.NotStarted = fmt.Sprintf("%s: %v", j.path, err)
		if err == syscall.ENOENT {
			j.res.NotStarted = fmt.Sprintf("%s: it or its interpreter is not there", j.path)
		}
		return nil
	}
	b.mains[j.pid] = j
	b.mu.Lock()
	b.live = append(b.live, j)
	b.mu.Unlock()
	if attr.Sys.Ptrace {
		err = b.halt(j)
	}
	if hold {
		j.before = time.Since(j.begin)
	}
	return err
}

// buffer gives one of an earlier job, or a new one: to touch new memory takes
// longer than all the rest of a small run.
func (h *host) buffer() []byte {
	if n := len(h.buffers); n > 0 {
		buf := h.buffers[n-1]
		h.buffers = h.buffers[:n-1]
		return buf
	}
	return make([]byte, output.BufferBytes)
}

// release lets a job's program run from its first instruction.
func (b *batch) release(j *job, held bool) {
	if held {
		j.begin = time.Now()
	}
	// These fail only if it was killed, which the next wait tells.
	switch {
	case j.ended:
	case j.traced:
		_ = ptrace(unix.PTRACE_CONT, j.pid, 0)
	case j.halted:
		_ = ptrace(unix.PTRACE_DETACH, j.pid, 0)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	j.started = true
	if b.cancelled && j.limit == "" {
		j.limit = "cancelled" // before it was among the live ones
	}
	if j.limit != "" {
		b.killJob(j)
	}
}

// fill completes the result once nothing of the job is alive.
func (b *batch) fill(j *job) {
	res, u := &j.res, &j.usage
	res.User, res.Sys = u.user, u.sys
	res.Faults, res.MajorFaults = u.faults, u.majorFaults
	res.Voluntary, res.Involuntary = u.voluntary, u.unasked
	res.ReadBlocks, res.WriteBlocks = u.readBlocks, u.outBlocks
	res.ReadBytes, res.WrittenBytes = u.read, u.written
	if u.noBytes {
		res.ReadBytes, res.WrittenBytes = -1, -1
	}
	if p := pressure(); p >= 0 && j.pressure >= 0 {
		res.PressureNS = p - j.pressure
	}
	b.trace.fill(j)
	j.stopCounting()
	j.out.Wait()
	b.buffers = append(b.buffers, j.out.Buffer())
	b.mu.Lock()
	defer b.mu.Unlock()
	if j.out.TooMuch() && j.limit == "" {
		j.limit = "printed more than " + Size(b.Limits.OutputBytes)
	}
	if j.limit == "" && !res.OK() {
		j.limit = b.full()
	}
	if j.limit != "" {
		res.Limit, res.Status, res.Signal = j.limit, -1, ""
	}
	res.Stdout = j.out.Stdout()
	res.StdoutSHA256 = j.out.SHA256()
	res.LogTail = j.out.Log() + j.notReady
}
