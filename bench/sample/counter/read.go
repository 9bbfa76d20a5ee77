package counter

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"patchbench/bench/late"
)

// Run is what valgrind tells of one program and all that it started.
type Run struct {
	tool      Tool
	processes map[int]*process
}

// process is one process: a program that was executed, or one that forked from
// another process and executes no other.
type process struct {
	pid, parent int
	command     string // with its arguments
	path        string // of the file; "" for one that forked
	preloaded   bool   // valgrind's library is in it, so that its calls are seen
	done        bool   // it ended so that valgrind could write its totals

	bytes, blocks, peak, refs float64
}

var (
	logLine = late.Regexp(`^[-=]{2}(\d+)[-=]{2} +(.*)$`)
	inBlock = late.Regexp(`^([\d,]+) bytes in ([\d,]+) blocks$`)
)

// Read reads what Collect printed: by program of the run. A program of which there
// is no file is not in it.
func (t Tool) Read(out []byte) map[int]*Run {
	runs := map[int]*Run{}
	for _, f := range split(out) {
		if f.PID < 0 {
			continue
		}
		r := runs[f.Program]
		if r == nil {
			r = &Run{tool: t, processes: map[int]*process{}}
			runs[f.Program] = r
		}
		r.processes[f.PID] = readLog(f)
	}
	return runs
}

func readLog(f File) *process {
	p := &process{pid: f.PID}
	for _, line := range f.Lines {
		m := logLine().FindStringSubmatch(line)
		if m == nil || m[1] != strconv.Itoa(f.PID) {
			continue
		}
		if file, ok := strings.CutPrefix(m[2], "Reading syms from "); ok {
			if p.path == "" {
				p.path = file
			}
			if strings.HasPrefix(path.Base(file), "vgpreload_dhat") {
				p.preloaded = true
			}
			continue
		}
		key, rest, _ := strings.Cut(m[2], ":")
		rest = strings.TrimSpace(rest)
		switch strings.Join(strings.Fields(key), " ") {
		case "Command":
			p.command = rest
		case "Parent PID":
			p.parent = int(whole(rest))
		case "Total":
			p.bytes, p.blocks = blocks(rest)
			p.done = true
		case "At t-gmax":
			p.peak, _ = blocks(rest)
		case "I refs", "Collected":
			p.refs, p.done = whole(rest), true
		}
	}
	return p
}

func blocks(s string) (bytes, number float64) {
	m := inBlock().FindStringSubmatch(s)
	if m == nil {
		return 0, 0
	}
	return whole(m[1]), whole(m[2])
}

// whole reads a number with commas between thousands.
func whole(s string) float64 {
	n, err := strconv.ParseUint(strings.ReplaceAll(s, ",", ""), 10, 53)
	if err != nil {
		return 0
	}
	return float64(n)
}

// Forked says that a process went on without executing another program, so that
// the figures are right only after Settle.
func (r *Run) Forked() bool {
	for _, p := range r.processes {
		if p.path == "" {
			return true
		}
	}
	return false
}

// Settle takes out of processes that forked what they had from their parents. In go
// what CollectSites printed of the same run, and the program's number in it.
func (r *Run) Settle(out []byte, program int) error {
	var list []File
	for _, f := range split(out) {
		if f.Program == program {
			list = append(list, f)
		}
	}
	if r.tool == Forks {
		return r.settleParts(list)
	}
	sites := map[int]map[string]site{}
	for pid, p := range r.processes {
		if p.path != "" || !p.done {
			continue
		}
		for _, n := range []int{pid, p.parent} {
			if sites[n] != nil || r.processes[n] == nil || !r.processes[n].done {
				continue
			}
			var err error
			if sites[n], err = sitesOf(list, n); err != nil {
				return err
			}
		}
		p.bytes, p.blocks = 0, 0
		for where, s := range sites[pid] {
			had := sites[p.parent][where]
			p.bytes += max(0, s.bytes-had.bytes)
			p.blocks += max(0, s.blocks-had.blocks)
		}
	}
	return nil
}

// settleParts adds up the parts that callgrind wrote, between forks.
func (r *Run) settleParts(list []File) error {
	sum := map[int]float64{}
	for _, f := range list {
		for _, line := range f.Lines {
			if rest, ok := strings.CutPrefix(line, "totals:"); ok {
				sum[f.PID] += whole(strings.TrimSpace(rest))
			}
		}
	}
	for pid, p := range r.processes {
		if _, ok := sum[pid]; !ok && p.done {
			return fmt.Errorf("callgrind wrote nothing of process %d", pid)
		}
		p.refs = sum[pid]
	}
	return nil
}

// site is what was counted at one place of a program.
type site struct{ bytes, blocks float64 }

// sitesOf reads a file of dhat: places by the addresses that lead to them, which are
// the same in parent and child.
func sitesOf(list []File, pid int) (map[string]site, error) {
	i := slices.IndexFunc(list, func(f File) bool { return f.PID == pid })
	if i < 0 {
		return nil, fmt.Errorf("dhat wrote nothing of process %d", pid)
	}
	var doc struct {
		Pps []struct {
			TB, TBK float64
			FS      []int
		}
		Ftbl []string
	}
	if err := json.Unmarshal([]byte(strings.Join(list[i].Lines, "\n")), &doc); err != nil {
		return nil, fmt.Errorf("read what dhat wrote of process %d: %w", pid, err)
	}
	sites := map[string]site{}
	for _, p := range doc.Pps {
		var where strings.Builder
		for _, f := range p.FS {
			if f >= 0 && f < len(doc.Ftbl) {
				where.WriteString(doc.Ftbl[f] + "\n")
			}
		}
		if !(p.TB >= 0 && p.TB <= 1<<53 && p.TBK >= 0 && p.TBK <= 1<<53) {
			return nil, fmt.Errorf("read what dhat wrote of process %d: %v bytes in %v blocks", pid, p.TB, p.TBK)
		}
		s := sites[where.String()]
		sites[where.String()] = site{s.bytes + p.TB, s.blocks + p.TBK}
	}
	return sites, nil
}

// Count is what a program did, or why that is not known.
type Count struct {
	Values map[string]float64 // by counter
	Reason string             // why there are none; "" if there are
}

// Count adds up a run. kind says what a file of the box is (Kind), for programs that
// valgrind may not see into; nil knows of none.
func (r *Run) Count(kind func(file string) string) Count {
	var c Count
	c.Values = map[string]float64{}
	name := "the program"
	var sum float64
	for _, pid := range slices.Sorted(maps.Keys(r.processes)) {
		p := r.processes[pid]
		if !p.done {
			return Count{Reason: fmt.Sprintf("%s ended before valgrind had counted it: it was killed", r.name(p))}
		}
		if why := r.unseen(p, kind); why != "" {
			return Count{Reason: why}
		}
		if name == "the program" {
			name = r.name(p)
		}
		switch r.tool {
		case Heap:
			c.Values["malloc"] += p.bytes
			c.Values["allocs"] += p.blocks
			c.Values["heap"] = max(c.Values["heap"], p.peak)
			sum += p.blocks
		case Copies:
			c.Values["copied"] += p.bytes
			sum += p.bytes
		default:
			c.Values["instructions"] += p.refs
			sum += p.refs
		}
	}
	if sum == 0 {
		return Count{Reason: fmt.Sprintf("valgrind saw no %s in %s: it does that by other means than the C library's, or not at all", r.tool.what(), name)}
	}
	return c
}

func (t Tool) what() string {
	switch t {
	case Heap:
		return "allocation"
	case Copies:
		return "copy"
	}
	return "instruction"
}

// unseen says why valgrind cannot count what happens in a process, "" if it can.
func (r *Run) unseen(p *process, kind func(string) string) string {
	if r.tool == Instructions || r.tool == Forks || p.path == "" {
		return ""
	}
	k := ""
	if kind != nil {
		k = kind(p.path)
	}
	switch {
	case k == GoProgram:
		return r.name(p) + " is a Go program: valgrind does not see its memory"
	case !p.preloaded:
		return r.name(p) + " is statically linked: valgrind does not see its memory"
	}
	return ""
}

// name is how messages call a process: by the file that it executes.
func (r *Run) name(p *process) string {
	file := p.path
	if file == "" {
		file, _, _ = strings.Cut(p.command, " ")
	}
	if file = path.Base(file); file == "." || file == "/" {
		return "a program"
	}
	return file
}
