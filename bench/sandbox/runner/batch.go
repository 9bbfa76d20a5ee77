package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"patchbench/bench/sandbox/mark"
)

const (
	// grace is what a background job has between SIGTERM and SIGKILL.
	grace = 2 * time.Second
	// retry is the pause between two runs of a ready command.
	retry = 20 * time.Millisecond
)

// batch is the jobs of one order, from the order until nothing of them is left.
type batch struct {
	*host
	jobs  []*job
	bad   *job         // the first that could not be started
	mains map[int]*job // by the process id of the program
	trace *trace
	spent syscall.Rusage // by all children waited for, ever
	// unsettled says that processes have ended of jobs whose program has.
	unsettled bool

	// Changed under host.mu.
	live      []*job // that are started and not over
	cancelled bool
}

func newBatch(h *host, jobs []Job) *batch {
	b := &batch{host: h, mains: map[int]*job{}, trace: newTrace()}
	for i, j := range jobs {
		b.jobs = append(b.jobs, &job{Job: j, n: i, mark: h.Mark | uint64(i+1)})
	}
	return b
}

// end kills a job and says why. It does nothing to a job that has ended, so that
// a late timer never hits the next one.
func (b *batch) end(j *job, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endLocked(j, why)
}

func (b *batch) endLocked(j *job, why string) {
	if j.over || j.limit != "" || j.ended && !j.Background {
		return
	}
	j.limit = why
	if j.started {
		b.killJob(j)
	}
}

// cancel ends all jobs.
func (b *batch) cancel() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cancelled = true
	for _, j := range b.live {
		b.endLocked(j, "cancelled")
	}
}

// killJob kills all processes of a job that are there now. Those being forked
// are found when the others' ends are booked.
func (b *batch) killJob(j *job) {
	if len(b.live) == 1 {
		b.killAll()
		return
	}
	live, _ := mark.List(j.mark, 0)
	mark.Signal(live, syscall.SIGKILL)
}

// run carries out the jobs of an order on the runner's own thread, the only one
// that forks and waits.
func (h *host) run(b *batch) ([]Result, error) {
	if err := os.Mkdir(filepath.Join(h.Tmp, "home"), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make the home folder: %w", err)
	}
	err := b.carryOut()
	b.sweep()
	if err == nil && b.jobs[len(b.jobs)-1].KeepTmp {
		return b.results(), nil
	}
	// Also after an error, so that nothing passes to the next run.
	if e := h.clean(); err == nil {
		err = e
	}
	return b.results(), err
}

func (b *batch) results() []Result {
	all := make([]Result, len(b.jobs))
	for i, j := range b.jobs {
		all[i] = j.res
	}
	return all
}

// carryOut starts one group of jobs after the other: those that start together.
func (b *batch) carryOut() error {
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &b.spent); err != nil {
		return fmt.Errorf("read resource usage: %w", err)
	}
	for first := 0; first < len(b.jobs); {
		after := first + 1
		for after < len(b.jobs) && b.jobs[after].Together {
			after++
		}
		group := b.jobs[first:after]
		first = after
		if bad := b.failed(); bad != nil || b.isCancelled() {
			for _, j := range group {
				j.notStarted(bad)
			}
			continue
		}
		if err := b.runGroup(group); err != nil {
			return err
		}
	}
	return b.stopBackground()
}

// runGroup starts jobs together. When some of them are in the foreground it waits
// for these and ends the background; otherwise it waits until all are ready.
func (b *batch) runGroup(group []*job) error {
	if err := b.start(group); err != nil {
		return err
	}
	foreground := func(j *job) bool { return !j.Background }
	if !slices.ContainsFunc(group, foreground) {
		for _, j := range group {
			if err := b.awaitReady(j); err != nil {
				return err
			}
		}
		return nil
	}
	if err := b.waitUntil(func() bool { return !slices.ContainsFunc(b.live, foreground) }); err != nil {
		return err
	}
	return b.stopBackground()
}

// start starts jobs from a barrier, so that none has a lead: either all or none.
func (b *batch) start(group []*job) error {
	var bad *job
	for _, j := range group {
		b.prepare(j)
		if j.res.NotStarted != "" && bad == nil {
			bad = j
		}
	}
	hold := len(group) > 1
	for i := 0; i < len(group) && bad == nil; i++ {
		if err := b.fork(group[i], hold); err != nil {
			return err
		}
		if group[i].res.NotStarted != "" {
			bad = group[i]
		}
	}
	if bad == nil {
		for _, j := range group {
			b.release(j, hold)
		}
		return nil
	}
	for _, j := range group {
		if j.stdin != nil {
			j.stdin.Close()
		}
		if j.timer != nil {
			j.timer.Stop()
		}
		if j.pid > 0 {
			_ = syscall.Kill(j.pid, syscall.SIGKILL) // before its first instruction
		}
	}
	err := b.waitUntil(func() bool {
		return !slices.ContainsFunc(group, func(j *job) bool { return slices.Contains(b.live, j) })
	})
	for _, j := range group {
		if j.res.NotStarted == "" {
			j.notStarted(bad)
		}
	}
	b.bad = bad
	return err
}

func (j *job) notStarted(after *job) {
	j.res = Result{Status: -1, PressureNS: -1, NotStarted: "the run was cancelled"}
	if after != nil {
		j.res.NotStarted = fmt.Sprintf("job %d (%s) failed before", after.n+1, after.Args[0])
	}
}

// failed gives the first job that failed, nil if none did.
func (b *batch) failed() *job {
	for _, j := range b.jobs {
		if j.over && j.started && !j.res.OK() {
			return j
		}
	}
	return b.bad
}

func (b *batch) isCancelled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancelled
}

// awaitReady runs the ready command of a background job until it succeeds.
func (b *batch) awaitReady(j *job) error {
	if len(j.Ready) == 0 {
		return nil
	}
	deadline := time.Now().Add(j.Timeout)
	j.timer = time.AfterFunc(j.Timeout, func() { b.end(j, "not ready after "+seconds(j.Timeout)) })
	for !j.over {
		probe := &job{n: len(b.jobs), mark: b.Mark | uint64(len(b.jobs)+1)}
		probe.Command = Command{Args: j.Ready, Env: j.Env, Dir: j.Dir, Timeout: max(time.Millisecond, time.Until(deadline))}
		if err := b.start([]*job{probe}); err != nil {
			return err
		}
		if err := b.waitUntil(func() bool {
			if j.over {
				b.end(probe, "its server has ended")
			}
			return !slices.Contains(b.live, probe)
		}); err != nil {
			return err
		}
		switch {
		case j.over:
		case probe.res.NotStarted != "":
			b.end(j, "its ready command could not be started: "+probe.res.NotStarted)
			return b.waitUntil(func() bool { return j.over })
		case probe.res.OK():
			j.timer.Stop()
			return nil
		}
		j.notReady = ""
		if said := strings.TrimSpace(probe.res.LogTail); said != "" {
			j.notReady = "\nready command: " + said + "\n"
		}
		// What happens meanwhile to traced processes must not wait for us.
		for again := time.Now().Add(retry); time.Now().Before(again) && !j.over; {
			switch happened, err := b.next(true); {
			case err == errNoChild: // it is over
			case err != nil:
				return err
			case !happened:
				time.Sleep(time.Millisecond)
			}
		}
	}
	if j.res.OK() {
		j.res.Limit, j.res.Status = "ended before it was ready", -1
	}
	return nil
}

// stopBackground ends the background jobs that are still there.
func (b *batch) stopBackground() error {
	b.mu.Lock()
	for _, j := range b.live {
		if j.timer != nil {
			j.timer.Stop()
		}
		j.stopping, j.patient = true, true
		j.timer = time.AfterFunc(grace, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if j.patient = false; !j.over {
				live, _ := mark.List(j.mark, 0)
				j.res.Left = len(live)
				mark.Signal(live, syscall.SIGKILL)
			}
		})
		live, _ := mark.List(j.mark, 0)
		mark.Signal(live, syscall.SIGTERM)
	}
	b.mu.Unlock()
	return b.waitUntil(func() bool { return len(b.live) == 0 })
}

// waitUntil books what happens to processes until done.
func (b *batch) waitUntil(done func() bool) error {
	for !done() {
		if _, err := b.next(false); err == errNoChild {
			return errors.New("wait for the program: it is no child any more")
		} else if err != nil {
			return err
		}
	}
	return nil
}

// sweep kills and waits for what no job owns any more: after an error, or what
// took off its mark.
func (b *batch) sweep() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err == syscall.ECHILD {
			break
		}
		b.killAll()
		_, _ = syscall.Wait4(-1, nil, unix.WALL, nil)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range b.jobs {
		if j.stdin != nil {
			j.stdin.Close() // again, but for what was never started
		}
		j.closeCounter()
		if j.timer != nil {
			j.timer.Stop()
		}
	}
	for _, j := range b.live { // only after an error
		j.over = true
		j.out.Close()
	}
	b.live = nil
}
