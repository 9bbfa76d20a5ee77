// Package runner is what lives inside the box: it starts a program when it is
// told to, times it, follows its processes, and kills and removes what is left.
//
//	orders in  {"setup":{...}}  {"run":[{"Args":["sort","big"],...}]}  {"cancel":true}
//	answers    {}               {"results":[{"status":0,"wall":51200000,...}]}
//
// It is the bot's own binary, entered by Main before anything else, so that it
// is small and does nothing of its own while a program runs. The box around it
// is made by package sandbox, which alone speaks to it.
package runner

import (
	"time"

	"patchbench/bench/sandbox/perf"
)

// Limits bounds one box. A zero field means the default named.
type Limits struct {
	// MemoryBytes bounds the memory of all processes of the box together, files in
	// /tmp and /dev/shm included. Where no cgroup is to be had it bounds the private
	// writable memory of each process (RLIMIT_DATA: heap, stacks of threads, private
	// mappings; address space that is only reserved does not count, so that Go and
	// Java programs start). At least 256 MiB, 0: three quarters of the machine's
	// memory; rounded down to a MiB.
	MemoryBytes int64
	Processes   int   // processes and threads in the box; 0: 4096; not bounded in unsafe mode
	DiskBytes   int64 // size of /tmp; 0: 1 GiB
	OutputBytes int64 // what a program may print; 0: 64 MiB
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
	// Count asks for Counted, by perf_event_open; nil for nothing. The program is
	// held at its first instruction until it is counted, which no time counts. It
	// takes 3 % of the cpu time of a program that does nothing, and of a shell that
	// starts 200 programs (BenchmarkCount).
	Count *perf.Event
	// KeepStdout is how many bytes of standard output to return, at most 16 MiB.
	KeepStdout int64
	// KeepTmp leaves /tmp as the program left it, for the next command of the
	// same run (prepare, run, cleanup); otherwise it is emptied afterwards. Of
	// several jobs the last one's counts.
	KeepTmp bool
}

// Job is a command among others on one state of the box.
type Job struct {
	Command
	// Background says that the next jobs start while it runs: a server. It is
	// ended (SIGTERM to all its processes, after a grace of 2 s SIGKILL) when the
	// foreground job or group after it has ended, and measured like the others; an
	// end by that signal is no failure. A server that detaches itself with status 0
	// goes on until then. Timeout bounds it until it is ready only.
	Background bool
	// Ready is run again and again after a background job started until it
	// succeeds, within the job's timeout; zero for none. It runs in the job's
	// folder and environment, and counts with no job.
	Ready []string
	// Together says that it starts at the same moment as the job before it.
	Together bool
}

// Result tells what a program did. Time and memory are those of the program and
// its descendants alone, neither the runner's nor the sandbox's.
// CPU time, faults, switches and blocks of a process are known once it was waited
// for; those of children that a program never waits for, since it ignores SIGCHLD,
// are lost, as they are for time(1).
type Result struct {
	// Status is the exit status, -1 if a signal or limit ended the program.
	Status int `json:"status"`
	// Signal is the name of the signal that ended it: "SIGSEGV"; else "". When a
	// shell (`sh -c`) ended with 128 + n for a signal n that kills programs, it is
	// that signal's name too, and Status stays as the shell gave it.
	Signal string `json:"signal,omitempty"`
	// Limit says which limit ended it, in words: "timed out after 600 s"; else "".
	Limit string `json:"limit,omitempty"`
	// NotStarted says why the program was not started: it is not there, or a job
	// before it failed; else "".
	NotStarted string        `json:"not_started,omitempty"`
	Wall       time.Duration `json:"wall"`
	User       time.Duration `json:"user"`
	Sys        time.Duration `json:"sys"`
	// RSSBytes and SizeBytes are the peak resident and peak virtual size of the
	// largest process (VmHWM and VmPeak at its exit); 0 if Peaks was not asked
	// for. A process that replaces itself by exec counts with its last program, and
	// one that resets its peak (/proc/self/clear_refs) with what it reached since.
	RSSBytes  int64 `json:"rss_bytes"`
	SizeBytes int64 `json:"size_bytes"`
	// RSSSumBytes is the peak over the tree: the largest sum of the peaks of
	// processes that were there at the same time.
	RSSSumBytes int64 `json:"rss_sum_bytes"`
	Faults      int64 `json:"faults"` // minor page faults
	MajorFaults int64 `json:"major_faults"`
	// Switches, voluntary and not.
	Voluntary   int64 `json:"voluntary"`
	Involuntary int64 `json:"involuntary"`
	// ReadBlocks and WriteBlocks are blocks of 512 bytes that a disk had to read
	// and write.
	ReadBlocks  int64 `json:"read_blocks"`
	WriteBlocks int64 `json:"write_blocks"`
	// ReadBytes and WrittenBytes are what went through read, write and the like
	// (rchar and wchar of /proc/PID/io): files from the page cache or a disk, pipes
	// and terminals, also what the loader reads of libraries; neither sockets'
	// recv and send nor what is mapped. -1 if that cannot be known: only the trace
	// can read it, with Peaks, or root.
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	// Processes is how many processes were followed, Stops how often the trace
	// stopped one of them; both 0 without Peaks. A program stops twice, and five
	// times for each process that it starts. A stop adds 20 to 40 us to cpu and as
	// much to wall, on a busy machine up to 1 ms: a shell that starts 200 programs
	// took 1.1 times as long with a trace at a load of 9, 2.7 times at a load of 20
	// on two processors (BenchmarkTrace).
	Processes int `json:"processes"`
	Stops     int `json:"stops"`
	// Untraced says why Processes and the peaks are 0 though Peaks was asked for:
	// this machine does not allow ptrace; else "".
	Untraced string `json:"untraced,omitempty"`
	// Counted is how often Command.Count happened in the program and its
	// descendants, in user mode; Uncounted says why that is not known, else "".
	Counted   int64  `json:"counted,omitempty"`
	Uncounted string `json:"uncounted,omitempty"`
	// Left counts processes that were still there when the program ended by
	// itself, and were killed; of a background job those that had to be killed
	// after their grace.
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
