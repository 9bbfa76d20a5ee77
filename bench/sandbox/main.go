package sandbox

import (
	"os"

	"patchbench/bench/sandbox/runner"
)

// probeArg makes this binary the self-test's program instead of the bot.
const probeArg = "sandbox-probe"

// Main must be the first thing that the bot's main does. It returns at once,
// unless this process was started as a runner (or as the program of the
// self-test); then it does that work and never returns.
func Main() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case runner.Arg:
		runner.Main(restrict)
	case probeArg:
		probe(os.Args[2:])
		os.Exit(0)
	}
}
