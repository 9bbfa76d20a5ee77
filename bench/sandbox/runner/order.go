package runner

// What the bot and its runner say to each other: JSON values one after the
// other, orders on the runner's descriptor 3 and answers on 4. Both are closed
// on exec, so a measured program never has them.

// Descriptors of a runner beside 0, 1 and 2; no program has them.
const (
	OrderFD  = 3
	AnswerFD = 4
)

// maxKeep bounds what a runner holds of a program's output.
const maxKeep = 16 << 20

// Arg is the first argument that makes the bot's binary a runner. The
// environment is empty, so an argument has to say it.
const Arg = "sandbox-runner"

// Order is one message to the runner; one field is set.
type Order struct {
	Setup *Setup `json:"setup,omitempty"`
	// Run is the jobs of one state, at most mark.MaxJobs.
	Run    []Job `json:"run,omitempty"`
	Cancel bool  `json:"cancel,omitempty"`
}

// Setup is the first order.
type Setup struct {
	Boxed  bool
	Limits Limits
	Path   string // the PATH of programs
	// Mark is what all processes started by this runner bear and no others on the
	// machine; its lower 16 bits are 0. See package mark.
	Mark uint64
	// Tmp is /tmp, or in unsafe mode the folder that stands for it.
	Tmp string
	// Empty lists the folders that are emptied after each run.
	Empty []string
	// Enter lists descriptors of cgroup files, of version 1. The thread that
	// starts programs writes 0 to each, to be in these groups itself.
	Enter []int
	// Group is the descriptor of the cgroup folder, of version 2, in which
	// programs are started; 0 is none.
	Group int
}

// bounded says that a group bounds memory and processes, so that no rlimit has to.
func (s Setup) bounded() bool { return len(s.Enter) > 0 || s.Group > 0 }

// Answer is one message from the runner: to a Setup, and to each Run.
type Answer struct {
	// Results are those of the jobs, in their order.
	Results []Result `json:"results,omitempty"`
	// Worn says that the runs so far have left something in the box that cannot be
	// taken away.
	Worn bool `json:"worn,omitempty"`
	// Error is set when the run could not be carried out for a reason that is
	// not the program's.
	Error string `json:"error,omitempty"`
}
