// Package counter counts what a program does exactly: bytes and blocks
// allocated, the peak of its heap, bytes copied, instructions executed. It makes
// the commands that run a program under valgrind and reads what valgrind wrote;
// bench/sample carries the commands out.
//
//	metrics of a suite --> Tools --> Tool.Command --> (the box) --> Collect --> Read --> Count
//
//	metric         unit  from                what
//	malloc         B     dhat                bytes asked of malloc and friends, all together
//	allocs         1     dhat                blocks
//	heap           B     dhat                most bytes alive at one time, of the largest process
//	copied         B     dhat --mode=copy    bytes through memcpy, memmove, strcpy and friends
//	instructions   1     cachegrind          executed in user mode
//
// Programs that look at the clock or at their process id may not do twice the same:
// bench/sample counts those again in rounds. Where the processor counts
// instructions (bench/sandbox/perf) valgrind is not asked for them.
//
// dhat counts instructions, too, but with its own allocator in the place of the
// program's. All processes that a program starts are counted. One that forks and does not
// execute another program begins with its parent's counters, which are taken out
// again: for instructions callgrind is used, which starts anew at each fork, and
// for the others the counters of each place in the program are compared. What the
// parent does after the fork in places that the child uses too is then counted
// once, so that the sum may be a little low, but never twice.
//
// Calls are seen by their names: malloc, also one that a program brings along in
// the place of the C library's, but not a pool of its own or what a compiler copies
// by single instructions. Nothing is seen of the memory of statically linked and Go
// programs; of these, and where nothing was seen at all, Count says so, and there is
// no figure.
package counter

import (
	"slices"
	"strconv"
	"strings"

	"patchbench/bench"
)

// Tool is a way to run a program under valgrind.
type Tool int

// The tools.
const (
	Heap Tool = iota
	Copies
	Instructions
	// Forks counts instructions of programs that fork, five times as slowly.
	Forks
)

// Metrics are the names of the counters, in the order of reports.
func Metrics() []string {
	return []string{"malloc", "allocs", "heap", "copied", "instructions"}
}

// Of gives the counters that a tool counts.
func (t Tool) Of() []string {
	switch t {
	case Heap:
		return []string{"malloc", "allocs", "heap"}
	case Copies:
		return []string{"copied"}
	}
	return []string{"instructions"}
}

// Tools gives the tools that count the counters among some metrics, each once.
func Tools(metrics []string) []Tool {
	var list []Tool
	for _, t := range []Tool{Heap, Copies, Instructions} {
		if slices.ContainsFunc(t.Of(), func(m string) bool { return slices.Contains(metrics, m) }) {
			list = append(list, t)
		}
	}
	return list
}

// Metric is a counter as bench knows it.
func Metric(name string) bench.Metric { return bench.MetricFor(name, "") }

// DirVariable names the folder of a program's files in the environment of
// commands: paths in the environment are known to the box, those in arguments
// are not.
const DirVariable = "PATCHBENCH_COUNTERS"

// Dir is where the files of a program lie, numbered in the run; Root is the folder
// above all of them.
func Dir(program int) string { return Root + "/" + strconv.Itoa(program) }

// Root is made in the private /tmp, which is emptied after the run.
const Root = "/tmp/.counters"

// start runs valgrind in the place of the shell. Programs do not see the variable,
// and what their authors left in .valgrindrc is not read.
const start = `d=$` + DirVariable + `; unset ` + DirVariable + `; mkdir -p "$d"; ` +
	`exec valgrind --command-line-only=yes -v --trace-children=yes --vgdb=no --log-file="$d/%p.log" `

// Command is what runs a program under the tool, with DirVariable set.
func (t Tool) Command(argv []string) []string {
	var options string
	switch t {
	case Heap:
		// Longer stacks tell the places in a program apart, but take time.
		options = `--tool=dhat --num-callers=8 --dhat-out-file="$d/%p.out" `
	case Copies:
		options = `--tool=dhat --mode=copy --num-callers=8 --dhat-out-file="$d/%p.out" `
	case Instructions:
		options = `--tool=cachegrind --cache-sim=no --branch-sim=no --cachegrind-out-file=/dev/null `
	case Forks:
		options = `--tool=callgrind --dump-before='*fork' --callgrind-out-file="$d/%p.out" `
	}
	return append([]string{"sh", "-c", start + options + `"$@"`, "sh"}, argv...)
}

// Version is a command that prints valgrind's version.
func Version() []string { return []string{"valgrind", "--version"} }

// files prints some files below the folder in DirVariable, each behind a line with its
// name, and of each the lines that matter.
func files(pattern, lines string) []string {
	return []string{"sh", "-c", `cd "$` + DirVariable + `" 2>/dev/null || exit 0
for f in ` + pattern + `; do
	if [ -f "$f" ] && [ ! -L "$f" ]; then
		echo "== $f"
		grep -aE '` + lines + `' "$f"
	fi
done
exit 0`}
}

// Collect is a command that prints what Read reads, with DirVariable set to Root.
func Collect() []string {
	return files("*/*.log", `^[-=]{2}[0-9]+[-=]{2} +(Command:|Parent PID:|Reading syms from|Total:|At t-gmax:|I +refs:|Collected)`)
}

// CollectSites is a command that prints what Run.Settle reads, of programs that
// forked.
func (t Tool) CollectSites() []string {
	if t == Forks {
		return files("*/*.out*", `^(pid|totals):`)
	}
	return files("*/*.out", `^`)
}

// File is a file that a command has printed.
type File struct {
	Program int // of the run, as in Dir
	PID     int
	Lines   []string
}

// split takes apart what files printed.
func split(out []byte) []File {
	var list []File
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			dir, base, _ := strings.Cut(name, "/")
			pid, _, _ := strings.Cut(base, ".")
			p, err1 := strconv.Atoi(dir)
			n, err2 := strconv.Atoi(pid)
			if err1 != nil || err2 != nil {
				p, n = -1, -1 // the program's own file
			}
			list = append(list, File{Program: p, PID: n})
			continue
		}
		if len(list) > 0 {
			f := &list[len(list)-1]
			f.Lines = append(f.Lines, line)
		}
	}
	return list
}
