// Package sandbox is the only place that starts foreign programs: it puts them
// in a box, bounds what they may use, and measures what they did.
//
//	host                          box (bubblewrap, own namespaces, other uid)
//	Runner.Do(Command) --pipe-->  runner (this binary, re-executed, pid 1)
//	Result            <--pipe--     starts the program, times it, follows its
//	                                processes, reads peaks, kills what is left
//
// In go a Box and Commands; out come Results. What is run, and what the figures
// mean, is not known here.
//
// In a box there are /usr and little of /etc, read-only, the mounts asked for, and
// a /tmp and /dev/shm of limited size that are emptied after each run. There is no
// network but a loopback of its own, no privilege to be gained, and some system
// calls are refused (AF_VSOCK, key rings, io_uring, perf events and others).
// The runner itself may count events of a program (Command.Count), which cannot
// reach the counter.
// Memory and processes are bounded for all of the box together by a cgroup; where
// none is to be had rlimits bound them, memory for each process alone. Of the
// host's file systems with writable mounts a reserve is kept free.
//
// What it costs: a box takes some 16 ms to start and as much to end, 27 bare
// starts of a program each, once for many runs and in no figure. In a running box
// a program's own start, as it shows in Wall, takes 1.04 times a bare fork, exec
// and wait (0.6 ms), and 1.2 times with Peaks; with all that the bot waits for, the
// cleaning included, 1.8 to 1.9 times. (BenchmarkStart, the best twentieth on a busy
// machine; the bounds make no difference.)
package sandbox

import (
	"errors"
	"os"
	"time"

	"patchbench/bench/sandbox/runner"
)

// ErrNone is returned by Open when there is no working sandbox on this machine.
// Its message says what to install.
var ErrNone = errors.New("no sandbox")

// ErrTemp is returned by Open and Start when TMPDIR, or /tmp where it is not set,
// is no folder that can be written to.
var ErrTemp = errors.New("no temporary folder")

// Options choose the sandbox. The zero value looks for bubblewrap.
type Options struct {
	// UID under which programs run when the bot is root; 0 means 64000 + Slot.
	// Never used when the bot is an ordinary user: programs then keep its uid.
	UID  int
	Slot int
	// Unsafe runs programs without a sandbox, as the bot's own user, with the
	// bot's file system. Mounts are then only a mapping of paths.
	Unsafe bool
	// Executable is the bot's binary, which is the runner too; "" means the
	// running program itself. It is handed to the box as an open descriptor, so
	// it may lie in a folder that UID cannot reach.
	Executable string
	// Path lists the folders, separated by colons, in which toolchains outside
	// /usr are looked for; "" means the bot's own PATH.
	Path string
}

// RunsAs is the uid that programs run under, and when the bot is root the number of
// their only group too.
func (o Options) RunsAs() int {
	switch {
	case os.Geteuid() != 0 || o.Unsafe:
		return os.Geteuid()
	case o.UID != 0:
		return o.UID
	}
	return firstUID + o.Slot
}

// Facts say what kind of sandbox programs run in, for the record.
type Facts struct {
	Name   string // "bubblewrap 0.8.0, cgroup v2"; "none"
	UID    int    // that programs run under
	Unsafe bool
	// Bounds is how memory and processes are bounded: "cgroup v2", "cgroup v1" or
	// "rlimits"; "" in unsafe mode.
	Bounds string
	// Lost says what rlimits do not bound, why there is no cgroup and what to do;
	// "" when there is one.
	Lost string
	// StartCost is how long the start of a box took in the self-test, until the
	// runner in it answered. It is never part of a Result.
	StartCost time.Duration
	// Path is the PATH of programs.
	Path string
	// Hidden lists the folders of the bot's PATH that programs do not see, each
	// with the reason: "/srv/tools/bin: not a toolchain known".
	Hidden []string
}

// Mount shows a file or folder of the host inside the box.
type Mount struct {
	Host, Inside string
	Write        bool
}

// Box is the surroundings of programs. The system (/usr, /bin, /lib, parts of
// /etc, and toolchains on PATH) is there, read-only; /tmp is private and empty.
type Box struct {
	Mounts []Mount
	Limits Limits
	// Network leaves the host's network to the box, for what its owner wrote
	// himself: never for the code of strangers.
	Network bool
}

// What is said to the runner in the box and what it answers.
type (
	// Limits bounds one box.
	Limits = runner.Limits
	// Command is one program to run in a box.
	Command = runner.Command
	// Job is a command among others on one state of the box.
	Job = runner.Job
	// Result tells what a program did.
	Result = runner.Result
)
