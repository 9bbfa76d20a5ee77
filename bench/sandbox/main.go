package sandbox

import (
	"os"

	"patchbench/bench/sandbox/probe"
	"patchbench/bench/sandbox/runner"
	"patchbench/bench/sandbox/seccomp"
)

// Main must be the first thing that the bot's main does. It returns at once,
// unless this process was started as a runner (or as the program of the
// self-test); then it does that work and never returns.
func Main() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case runner.Arg:
		runner.Main(seccomp.Restrict)
	case probe.Arg:
		probe.Main(os.Args[2:])
	}
}
