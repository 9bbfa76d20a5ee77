package sandbox

// What the bot and its runner say to each other: JSON values one after the
// other, orders on the runner's descriptor 3 and answers on 4. Both are closed
// on exec, so a measured program never has them.

// Descriptors of a runner beside 0, 1 and 2.
const (
	orderFD  = 3
	answerFD = 4
)

// maxKeep bounds what a runner holds of a program's output.
const maxKeep = 16 << 20

// Arguments that make this binary a runner or the self-test's program instead
// of the bot. The environment is empty, so an argument has to say it.
const (
	runnerArg = "sandbox-runner"
	probeArg  = "sandbox-probe"
)

// order is one message to the runner; one field is set.
type order struct {
	Setup  *setup   `json:"setup,omitempty"`
	Run    *Command `json:"run,omitempty"`
	Cancel bool     `json:"cancel,omitempty"`
}

// setup is the first order.
type setup struct {
	Boxed  bool
	Limits Limits
	Path   string
	// Tmp is /tmp, or in unsafe mode the folder that stands for it.
	Tmp string
	// Empty lists the folders that are emptied after each run.
	Empty []string
}

// answer is one message from the runner: to setup, and to each run.
type answer struct {
	Result *Result `json:"result,omitempty"`
	// Error is set when the run could not be carried out for a reason that is
	// not the program's.
	Error string `json:"error,omitempty"`
}
