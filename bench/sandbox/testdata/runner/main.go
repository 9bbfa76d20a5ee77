// Command runner is a bot that can do nothing but run programs in boxes: the
// tests measure with it, since a test binary is larger than a bot's runner.
package main

import "patchbench/bench/sandbox"

func main() {
	sandbox.Main()
}
