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
// Memory is bounded for each process, not for all together.
package sandbox

import (
	"errors"
	"time"
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

// Facts say what kind of sandbox programs run in, for the record.
type Facts struct {
	Name   string // "bubblewrap 0.8.0", or "none"
	UID    int    // that programs run under
	Unsafe bool
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

// Limits bounds one box. A zero field means the default named.
type Limits struct {
	// MemoryBytes bounds the private writable memory of one process
	// (RLIMIT_DATA: heap, stacks of threads, private mappings; address space that
	// is only reserved does not count, so that Go and Java programs start); at
	// least 256 MiB, 0: three quarters of the machine's memory.
	MemoryBytes int64
	Processes   int   // processes and threads in the box; 0: 4096; not bounded in unsafe mode
	DiskBytes   int64 // size of /tmp; 0: 1 GiB
	OutputBytes int64 // what a program may print; 0: 64 MiB
}

// Box is the surroundings of programs. The system (/usr, /bin, /lib, parts of
// /etc, and toolchains on PATH) is there, read-only; /tmp is private and empty.
type Box struct {
	Mounts []Mount
	Limits Limits
}

// Command is one program to run in a box.
type Command struct {
	// Args is the program and its arguments, found on the box's PATH.
	Args []string
	// Env is the whole environment beside PATH, HOME, TMPDIR, LANG and TZ,
	// which are the same for every command; entries here win.
	Env []string
	Dir string // a path inside the box
	// Stdin is a file inside the box; "" means /dev/null.
	Stdin   string
	Timeout time.Duration // 0: 10 minutes
	// Peaks asks for RSSBytes and SizeBytes, by following the processes with ptrace.
	Peaks bool
	// KeepStdout is how many bytes of standard output to return, at most 16 MiB.
	KeepStdout int64
	// KeepTmp leaves /tmp as the program left it, for the next command of the
	// same run (prepare, run, cleanup); otherwise it is emptied afterwards.
	KeepTmp bool
}

// Result tells what a program did. Time and memory are those of the program and
// its descendants alone, neither the runner's nor the sandbox's.
type Result struct {
	// Status is the exit status, -1 if a signal or limit ended the program.
	Status int `json:"status"`
	// Signal is the name of the signal that ended it: "SIGSEGV"; else "". When a
	// shell (`sh -c`) ended with 128 + n for a signal n that kills programs, it is
	// that signal's name too, and Status stays as the shell gave it.
	Signal string `json:"signal,omitempty"`
	// Limit says which limit ended it, in words: "timed out after 600 s"; else "".
	Limit string `json:"limit,omitempty"`
	// NotStarted says why the program could not be started; else "".
	NotStarted string        `json:"not_started,omitempty"`
	Wall       time.Duration `json:"wall"`
	User       time.Duration `json:"user"`
	Sys        time.Duration `json:"sys"`
	// RSSBytes and SizeBytes are the peak resident and peak virtual size of the
	// largest process (VmHWM and VmPeak at its exit); 0 if Peaks was not asked
	// for. A process that replaces itself by exec counts with its last program.
	RSSBytes  int64 `json:"rss_bytes"`
	SizeBytes int64 `json:"size_bytes"`
	// RSSSumBytes is the sum of the peaks of all processes.
	RSSSumBytes int64 `json:"rss_sum_bytes"`
	Faults      int64 `json:"faults"` // minor page faults
	MajorFaults int64 `json:"major_faults"`
	// Switches, voluntary and not.
	Voluntary   int64 `json:"voluntary"`
	Involuntary int64 `json:"involuntary"`
	ReadBlocks  int64 `json:"read_blocks"`
	WriteBlocks int64 `json:"write_blocks"`
	// Processes is how many processes were followed, Stops how often the trace
	// stopped one of them; both 0 without Peaks. A stop adds some 50 us to wall
	// and 20 us to cpu, four or five of them for each process (BenchmarkTrace).
	Processes int `json:"processes"`
	Stops     int `json:"stops"`
	// Left counts processes that were still there when the program ended by
	// itself, and were killed.
	Left   int    `json:"left"`
	Stdout []byte `json:"stdout,omitempty"`
	// StdoutSHA256 is the hex digest of all of standard output.
	StdoutSHA256 string `json:"stdout_sha256"`
	// LogTail is the last 8 KiB of standard output and error together.
	LogTail string `json:"log_tail,omitempty"`
	// PressureNS is how long, in ns, some task waited for a CPU during the run
	// (PSI some), -1 if the kernel does not say.
	PressureNS int64 `json:"pressure_ns"`
}

// OK says that the program ended by itself with status 0.
func (r Result) OK() bool {
	return r.Status == 0 && r.Signal == "" && r.Limit == "" && r.NotStarted == ""
}
