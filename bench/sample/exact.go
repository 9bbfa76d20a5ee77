package sample

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/sample/counter"
	"patchbench/bench/sample/plan"
	"patchbench/bench/sandbox"
)

// How long a program may take under valgrind: so many times its own wall time, and
// so much more, but not for ever.
const (
	slowdown = 200
	headway  = time.Minute
	longest  = 2 * time.Hour
)

// notMalloc is the resident size, in bytes, from which on it is worth a word that
// next to nothing of it comes from malloc.
const notMalloc = 64 << 20

// Exact is what counting under valgrind gave.
type Exact struct {
	// Samples are lines for the record: one for each counter of each row and
	// version, with Failed where it could not be counted.
	Samples  []bench.Sample
	Warnings []string
}

// Exact counts what benchmark b's metrics name of exact counters: once on each
// version that works and twice on the base, whose twin is the second time if there
// is one, so that bench/compare sees whether a counter repeats. Without such metrics, and
// with instructions that are counted in every round, it does nothing. WarmUp comes
// first. The error is ctx's or our own failure.
func (s *Sampler) Exact(ctx context.Context, b int) (Exact, error) {
	bm, err := s.benchmark(b)
	if err != nil {
		return Exact{}, err
	}
	c, err := s.counting(b, bm.Metrics)
	if c == nil {
		return Exact{}, err
	}
	var turns []turn
	for i := range s.slots {
		turns = append(turns, turn{slot: i, round: 1})
	}
	if s.twin() < 0 {
		turns = append(turns, turn{slot: 0, round: 2})
	}
	return c.count(ctx, turns)
}

// Recount counts some metrics of benchmark b once more on each version that works,
// in random order, as round: for counters that do not repeat. Exact comes first, in
// this evaluation or in the one that is continued. The error is ctx's or our own failure.
func (s *Sampler) Recount(ctx context.Context, b, round int, metrics []string) (Exact, error) {
	c, err := s.counting(b, metrics)
	if c == nil {
		return Exact{}, err
	}
	var turns []turn
	for _, i := range s.order(b, round, 0) {
		turns = append(turns, turn{slot: i, round: round})
	}
	return c.count(ctx, turns)
}

// Counters gives the metrics of benchmark b that Exact counts; nil before WarmUp.
func (s *Sampler) Counters(b int) []string {
	st := s.states[b]
	if st == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(st.bm.Metrics), func(m string) bool {
		return !slices.Contains(counter.Metrics(), m) || m == instructions && st.perf
	})
}

// counting makes ready to count some of a benchmark's metrics, nil if there is
// nothing to count.
func (s *Sampler) counting(b int, metrics []string) (*counting, error) {
	bm, err := s.benchmark(b)
	if err != nil || len(counter.Tools(metrics)) == 0 {
		return nil, err
	}
	st := s.states[b]
	if st == nil {
		return nil, fmt.Errorf("sample: count %s: no warm-up was run before", bm.Key())
	}
	own := s.Counters(b)
	c := &counting{s: s, st: st, kinds: map[string]string{}}
	c.metrics = slices.DeleteFunc(slices.Clone(metrics), func(m string) bool { return !slices.Contains(own, m) })
	if st.upto[0] == 0 || len(c.metrics) == 0 {
		return nil, nil
	}
	return c, nil
}

// counting is a benchmark that is being counted.
type counting struct {
	s       *Sampler
	st      *state
	metrics []string
	*ground
	kinds map[string]string // of programs, by version and path
	out   Exact
}

// count takes the turns under all tools.
func (c *counting) count(ctx context.Context, turns []turn) (Exact, error) {
	turns = slices.DeleteFunc(turns, func(x turn) bool { return c.st.upto[x.slot] == 0 })
	if err := c.prepare(ctx); err != nil {
		return Exact{}, first(ctx.Err(), err)
	}
	for _, t := range counter.Tools(c.metrics) {
		if err := c.tool(ctx, t, turns); err != nil {
			return Exact{}, first(ctx.Err(), err)
		}
	}
	return c.out, nil
}

// ground is what is known of a benchmark before it is counted.
type ground struct {
	limit   time.Duration // of one program
	missing string        // why valgrind cannot be run; "" if it can
	rss     []int64       // of the base, by row
	// forks says that a version forks, so that its instructions take another tool.
	forks bool
}

// prepare finds out whether there is a valgrind, and how long the base takes
// without it.
func (c *counting) prepare(ctx context.Context) error {
	if c.ground = c.st.ground; c.ground != nil {
		return nil
	}
	c.ground = &ground{}
	res, err := c.s.slots[0].do(ctx, sandbox.Job{Command: sandbox.Command{Args: counter.Version(), Timeout: time.Minute}})
	if err != nil {
		return err
	}
	if !res[0].OK() {
		c.missing = "valgrind is not there: install the package valgrind"
		c.warn("%s", c.missing)
		c.st.ground = c.ground
		return nil
	}
	o, err := c.s.measure(ctx, 0, c.st, c.s.noPeaks == "")
	if err != nil {
		return err
	}
	c.limit = min(slowdown*o.wall+headway, longest).Round(time.Second)
	for _, f := range o.figures {
		c.rss = append(c.rss, f.RSS)
	}
	c.st.ground = c.ground
	return nil
}

func (c *counting) warn(format string, args ...any) {
	text := c.st.bm.Key() + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(c.out.Warnings, text) {
		c.out.Warnings = append(c.out.Warnings, text)
	}
}

// turn is one version's turn under a tool.
type turn struct {
	slot  int
	round int
	rows  []counter.Count
}

// tool takes the turns under a tool. If any forks, instructions are counted
// anew on all of them with the tool that can: figures of two tools differ.
func (c *counting) tool(ctx context.Context, t counter.Tool, turns []turn) error {
	if t == counter.Instructions && c.forks {
		t = counter.Forks
	}
	turns = slices.Clone(turns)
	for k := range turns {
		rows, forked, err := c.run(ctx, turns[k].slot, t)
		if err != nil {
			return err
		}
		if forked && t == counter.Instructions {
			c.forks = true
			return c.tool(ctx, t, turns)
		}
		turns[k].rows = rows
	}
	for _, x := range turns {
		c.samples(t, x)
	}
	if t == counter.Heap && turns[0].round == 1 {
		c.compareRSS(turns[0].rows) // the base's
	}
	return nil
}

// samples adds the lines of a turn to the record.
func (c *counting) samples(t counter.Tool, x turn) {
	sl := c.s.slots[x.slot]
	for row, n := range x.rows {
		for _, name := range t.Of() {
			if !slices.Contains(c.metrics, name) {
				continue
			}
			m := counter.Metric(name)
			l := bench.Sample{
				Round: x.round, Version: sl.N, Twin: sl.Twin, Benchmark: c.st.plan.Name(c.st.bm, row), Params: c.st.bm.Params,
				Metric: m.Name, Unit: m.Unit, Value: n.Values[name],
			}
			if n.Reason != "" {
				l.Failed = &bench.Failed{Status: -1, Reason: n.Reason}
			}
			c.out.Samples = append(c.out.Samples, l)
		}
	}
}

// compareRSS warns when malloc explains next to nothing of what is resident.
func (c *counting) compareRSS(rows []counter.Count) {
	for row, n := range rows {
		if row >= len(c.rss) || n.Reason != "" || !slices.Contains(c.metrics, "heap") {
			continue
		}
		if rss, heap := c.rss[row], n.Values["heap"]; rss > notMalloc && heap < float64(rss)/20 {
			c.warn("heap: of %d MiB resident %.1f MiB come from malloc; the rest, such as mapped files or an allocator of its own, is not counted",
				rss>>20, heap/(1<<20))
		}
	}
}

// run counts a version once. forked says that a program forked and went on without
// executing another.
func (c *counting) run(ctx context.Context, i int, t counter.Tool) (rows []counter.Count, forked bool, err error) {
	p := c.st.plan.Upto(c.st.upto[i])
	rows = make([]counter.Count, len(p.Rows))
	if c.missing != "" {
		return lost(rows, c.missing), false, nil
	}
	for _, take := range p.Takes {
		if !slices.ContainsFunc(take.Jobs, counted) {
			continue
		}
		programs, why, err := c.take(ctx, c.s.slots[i], take, t)
		if err != nil {
			return nil, false, err
		}
		if why != "" {
			return lost(rows, why), false, nil
		}
		for k, j := range take.Jobs {
			if !counted(j) {
				continue
			}
			forked = forked || programs[k].forked
			rows[j.Row] = plus(rows[j.Row], programs[k].Count, j.Use)
		}
	}
	return rows, forked, nil
}

// counted says that a program's counters are part of a row.
func counted(j plan.Job) bool { return j.Use == plan.Counted || j.Use == plan.Subtracted }

func lost(rows []counter.Count, why string) []counter.Count {
	for i := range rows {
		rows[i] = counter.Count{Reason: why}
	}
	return rows
}

// plus adds a program's counters to a row's: of copies the sum, of a baseline what is
// subtracted.
func plus(row, n counter.Count, use plan.Use) counter.Count {
	if row.Reason != "" {
		return row
	}
	if n.Reason != "" {
		return n
	}
	values := map[string]float64{}
	for name, v := range row.Values {
		values[name] = v
	}
	for name, v := range n.Values {
		if use == plan.Subtracted {
			v = -v
		}
		values[name] += v
	}
	return counter.Count{Values: values}
}

// program is what was counted of one program of a take.
type program struct {
	counter.Count
	forked bool
}

// take carries out a take with its measured programs under a tool. why says that it
// could not be counted, for a reason that is the program's.
func (c *counting) take(ctx context.Context, sl *slot, t plan.Take, tool counter.Tool) (list []program, why string, err error) {
	s := c.s
	if err := s.ready(ctx, sl); err != nil {
		return nil, "", err
	}
	var o outcome
	for _, p := range t.Prepare {
		if err := s.aside(ctx, sl, s.job(p), true, label(t, "prepare"), &o); err != nil {
			return nil, "", err
		}
		if o.failed != nil {
			return nil, o.failed.String(), nil
		}
	}
	var jobs []sandbox.Job
	for k, j := range t.Jobs {
		job := s.job(j.Program)
		job.Background, job.Together, job.Ready = j.Background, j.Together, j.Ready.Argv()
		job.Args = tool.Command(job.Args)
		job.Env = append(job.Env, counter.DirVariable+"="+counter.Dir(k))
		job.Timeout = max(c.limit, cmp.Or(job.Timeout, 0))
		job.KeepTmp = true
		jobs = append(jobs, job)
	}
	res, failed, err := s.part(ctx, sl, jobs...)
	if err != nil {
		return nil, "", err
	}
	if failed != nil {
		return nil, "under valgrind: " + failed.String(), nil
	}
	for _, r := range res {
		if !r.OK() {
			return nil, "under valgrind: " + failedOf(r).String(), nil
		}
	}
	if list, why, err = c.collect(ctx, sl, len(jobs), tool); err != nil {
		return nil, "", err
	}
	for k, p := range t.Cleanup {
		if err := s.aside(ctx, sl, s.job(p), k+1 < len(t.Cleanup), label(t, "cleanup"), &o); err != nil {
			return nil, "", err
		}
	}
	if why == "" && o.failed != nil {
		why = o.failed.String()
	}
	return list, why, nil
}

// collect fetches what valgrind wrote and adds it up.
func (c *counting) collect(ctx context.Context, sl *slot, programs int, tool counter.Tool) (list []program, why string, err error) {
	out, why, err := c.fetch(ctx, sl, counter.Collect())
	if err != nil || why != "" {
		return nil, why, err
	}
	runs := tool.Read(out)
	list = make([]program, programs)
	var sites []byte
	for k := range list {
		r := runs[k]
		if r == nil {
			list[k].Reason = "valgrind wrote nothing"
			continue
		}
		list[k].forked = r.Forked()
		if list[k].forked && tool != counter.Instructions || tool == counter.Forks {
			if sites == nil {
				if sites, why, err = c.fetch(ctx, sl, tool.CollectSites()); err != nil || why != "" {
					return nil, why, err
				}
			}
			if err := r.Settle(sites, k); err != nil {
				list[k].Reason = err.Error()
				continue
			}
		}
		list[k].Count = r.Count(func(file string) string { return c.kind(sl, file) })
	}
	return list, "", nil
}

// fetch runs one of counter's commands that print files.
func (c *counting) fetch(ctx context.Context, sl *slot, argv []string) (out []byte, why string, err error) {
	res, failed, err := c.s.part(ctx, sl, sandbox.Job{Command: sandbox.Command{
		Args: argv, Env: []string{counter.DirVariable + "=" + counter.Root}, Dir: "/tmp",
		Timeout: headway, KeepStdout: keepOutput, KeepTmp: true,
	}})
	switch {
	case err != nil:
		return nil, "", err
	case failed != nil:
		return nil, failed.String(), nil
	case !res[0].OK():
		return nil, "what valgrind wrote cannot be read: " + failedOf(res[0]).String(), nil
	case cutOff(res[0]):
		return nil, fmt.Sprintf("valgrind wrote more than %d MiB: too many processes", keepOutput>>20), nil
	}
	return res[0].Stdout, "", nil
}

// kind tells what an executable of the box is, by its headers on this machine.
func (c *counting) kind(sl *slot, file string) string {
	key := sl.Dir + "\x00" + file
	if k, ok := c.kinds[key]; ok {
		return k
	}
	var k string
	if f := c.openProgram(sl, file); f != nil {
		k = counter.Kind(f)
		f.Close()
	}
	c.kinds[key] = k
	return k
}

// openProgram opens a plain file that programs see under a path, nil if it cannot
// be found: below the version's folders without following a link out of them,
// and below /usr, which is the machine's own.
func (c *counting) openProgram(sl *slot, file string) *os.File {
	for inside, host := range map[string]string{srcDir: "src", outDir: "out"} {
		if rest, ok := strings.CutPrefix(file, inside+"/"); ok {
			return plainFile(filepath.Join(sl.Dir, host), rest)
		}
		// Without a sandbox programs see the host's own paths.
		if rest, ok := strings.CutPrefix(file, filepath.Join(sl.Dir, host)+"/"); ok {
			return plainFile(filepath.Join(sl.Dir, host), rest)
		}
	}
	if rest, ok := strings.CutPrefix(file, "/usr/"); ok {
		return plainFile("/usr", rest)
	}
	return nil
}

func plainFile(dir, name string) *os.File {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	// A pipe of that name would be waited for.
	if info, err := root.Stat(name); err != nil || info.Mode()&fs.ModeType != 0 {
		return nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil
	}
	return f
}
