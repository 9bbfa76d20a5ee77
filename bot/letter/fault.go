package letter

import (
	"patchbench/bot/report/plain"
	"patchbench/store"
)

// Fault is a line of a mail that could not be obeyed, and why.
type Fault struct {
	Line, Why string
}

// Faults writes the letter that tells somebody which of his commands were not
// obeyed, and usage, the lines that say what commands there are. It goes to him
// alone. No line of it begins as a command does: a robot that answers with what it
// got must not command.
func Faults(list []Fault, usage []string, t store.Thread, mode string, o Options) (*store.Letter, error) {
	lines := []string{"Of your mail this was not done:", ""}
	for _, f := range list {
		lines = append(lines, "  "+plain.Cut(oneLine(f.Line), width-2))
		for _, line := range plain.Wrap(oneLine(f.Why), width-6, "  ") {
			lines = append(lines, "    "+line)
		}
	}
	lines = append(lines, "", "The commands are, at the start of a line in a reply:", "")
	for _, line := range usage {
		lines = append(lines, "  "+line)
	}
	return compose(t, mode, false, text(append(lines, signature...)), o)
}
