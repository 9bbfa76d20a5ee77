package runner

import (
	"fmt"
	"os"
	"syscall"

	"patchbench/bench/sandbox/mark"
	"patchbench/bench/sandbox/sweep"
)

// others lists the live processes that stem from the runner.
func (h *host) others() []int {
	if h.Boxed {
		return mark.All()
	}
	return mark.Descendants(os.Getpid())
}

// killAll kills every process of every job.
func (h *host) killAll() {
	if h.Boxed {
		// From the first process of a PID name space this reaches all others in
		// it and nothing else; also those that are being forked now.
		_ = syscall.Kill(-1, syscall.SIGKILL) // ESRCH: there is none
		return
	}
	mark.Signal(h.others(), syscall.SIGKILL)
}

// killDescendants ends everything that stems from the runner, which is about to
// end itself, in unsafe mode.
func (h *host) killDescendants() {
	for range 1000 {
		pids := h.others()
		if len(pids) == 0 {
			return
		}
		mark.Signal(pids, syscall.SIGKILL)
	}
}

// clean takes away what a run left outside its processes.
func (h *host) clean() error {
	for _, dir := range h.Empty {
		if err := sweep.Empty(dir, h.mode()); err != nil {
			return fmt.Errorf("empty %s after the run: %w", dir, err)
		}
	}
	if !h.Boxed {
		return nil
	}
	h.box.touch()
	return sweep.IPC()
}

// mode is that of the folders that programs may write to. Those of a box are
// seen by nobody else.
func (h *host) mode() os.FileMode {
	if h.Boxed {
		return 0o777 | os.ModeSticky
	}
	return 0o700
}
