package main

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"patchbench/bench"
	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/input"
	"patchbench/bot/out"
	"patchbench/bot/plan"
	"patchbench/bot/progress"
	"patchbench/bot/workfolder"
	"patchbench/config"
	"patchbench/mbox"
	"patchbench/store"
)

// seed is the one asked for, or a new one.
func (f *measureFlags) seed() uint64 {
	if f.Seed != nil {
		return *f.Seed
	}
	var b [8]byte
	crand.Read(b[:])
	// Short enough to be typed again.
	return binary.LittleEndian.Uint64(b[:]) % 1_000_000
}

type evalCommand struct {
	mailFlags
	repoFlags
	measureFlags
	withFlag
	fuzzFlag
	storeFlag
	formatFlag
	Suite  string `placeholder:"FILE" help:"The suite file. Default: .patchbench.toml, bench.toml or suite.toml of the base."`
	Out    string `placeholder:"DIR" help:"Also write report.txt, .md, .html and .json and samples.jsonl there."`
	DryRun bool   `help:"Apply, build base, run each benchmark once, and say what an evaluation would take."`
	Resume string `placeholder:"ID" help:"Go on with this interrupted evaluation, or with the last one of the same input: last. Give the same input again."`
	Values string `name:"compare-param" placeholder:"NAME" help:"Compare the values of this build parameter of the suite, each built of the last version of the input (A..A is A itself), instead of patches."`
	Ends   bool   `name:"ends-first" help:"Measure base and the last patch first, and all patches only of the benchmarks in which these differ."`
	FailOn string `enum:",worse" default:"" placeholder:"worse" help:"Exit with status 5 if anything is worse."`
}

// Help is what stands below the summary of bot eval --help.
func (*evalCommand) Help() string {
	return "In the place of files, A..B is the commits of B along the first parent since it left A."
}

func (c *evalCommand) Run(ctx context.Context, t *terminal) error {
	if err := c.check(); err != nil {
		return err
	}
	o := eval.Options{Repo: c.Repo, Base: c.Base, Branch: c.Branch, Fuzz: int(c.Fuzz), Resume: c.Resume, EndsFirst: c.Ends, CompareParam: c.Values,
		Rounds: int(c.Rounds), Budget: time.Duration(c.Budget), Seed: c.seed(), Margin: c.Margin / 100}
	if c.Resume != "" && c.Seed == nil {
		o.Seed = 0 // the record's
	}
	var err error
	if o.Benchmarks, err = pattern(c.Benchmarks); err != nil {
		return err
	}
	if err := readSuite(c.Suite, &o); err != nil {
		return err
	}
	in, err := c.input(ctx, t)
	if err != nil {
		return err
	}
	if o.With, err = c.extras(ctx, t, c.mailFlags); err != nil {
		return err
	}
	o.Command = func(base mbox.Base) string { return c.again(o.Seed, in, base) }
	return c.evaluate(ctx, t, in, o)
}

// readSuite reads the suite that the flag names, if any.
func readSuite(file string, o *eval.Options) (err error) {
	if file == "" {
		return nil
	}
	o.SuiteName = file
	f, err := os.Open(file)
	if err != nil {
		return usage(fmt.Errorf("suite: %w", err))
	}
	defer f.Close()
	// It may be a device that never ends; what is too long is refused later.
	if o.SuiteText, err = io.ReadAll(io.LimitReader(f, config.MaxBytes+1)); err != nil {
		return usage(fmt.Errorf("suite: %w", err))
	}
	return nil
}

func (c *evalCommand) input(ctx context.Context, t *terminal) (eval.Input, error) {
	if len(c.Files) == 1 {
		if from, to, ok := input.Range(c.Files[0]); ok {
			if c.Patches != "" || c.Series != 0 || c.Scissor || c.Fuzz > 0 {
				return eval.Input{}, usage(fmt.Errorf("-P, --version, --scissors and --fuzz are for mail; %s are commits", c.Files[0]))
			}
			return eval.Input{From: from, To: to}, nil
		}
	}
	s, err := c.mail(t).Series(ctx)
	return eval.Input{Series: s.Series, AtHand: s.AtHand}, stageError(err)
}

// again is the command that evaluates the same once more, on the same base.
func (c *evalCommand) again(seed uint64, in eval.Input, base mbox.Base) string {
	words := append([]string{"bot", "eval"}, c.Files...)
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, value)
		}
	}
	set := func(flag string, on bool) {
		if on {
			words = append(words, flag)
		}
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	add("-P", c.Patches)
	add("--version", number(c.Series))
	set("--scissors", c.Scissor)
	add("--archive", c.Archive)
	if c.Repo != "." {
		add("--repo", c.Repo)
	}
	if in.Series != nil {
		add("--base", base.Commit[:min(12, len(base.Commit))])
	}
	for _, f := range c.With {
		add("--with", f)
	}
	add("--fuzz", number(int(c.Fuzz)))
	add("--suite", c.Suite)
	add("--compare-param", c.Values)
	add("--benchmarks", c.Benchmarks)
	add("--rounds", number(int(c.Rounds)))
	if c.Budget > 0 {
		add("--budget", shortDuration(time.Duration(c.Budget)))
	}
	if c.Margin != 1 {
		add("--margin", strconv.FormatFloat(c.Margin, 'g', -1, 64))
	}
	set("--ends-first", c.Ends)
	add("--sandbox-uid", number(c.SandboxUID))
	set("--unsafe-no-sandbox", c.Unsafe)
	add("--seed", strconv.FormatUint(seed, 10))
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// shortDuration is 4m, not 4m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// shellWord quotes a word for a shell if it needs that.
func shellWord(w string) string {
	if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=@+~^") == "" {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// evaluate runs the evaluation, prints and keeps its report, and says how it ended.
func (c *evalCommand) evaluate(ctx context.Context, t *terminal, in eval.Input, o eval.Options) error {
	if c.Out != "" {
		if err := out.Check(c.Out); err != nil {
			return usage(fmt.Errorf("--out %s: %w; name another folder", c.Out, err))
		}
	}
	st, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	o.Store = st
	remove, err := c.place(&o)
	if err != nil {
		return err
	}
	defer remove()

	var end func()
	o.Progress, end = progress.New(t.stderr)
	if c.DryRun {
		p, err := eval.Plan(ctx, in, o)
		end()
		if err != nil {
			return stageError(err)
		}
		if err := plan.Text(t.stdout, p); err != nil {
			return err
		}
		return planOutcome(p)
	}
	e, err := eval.Run(ctx, in, o)
	end()
	if err != nil {
		return stageError(noSpace(err, o.WorkDir))
	}
	// The files first: a terminal that is gone takes no report. And the report even
	// if a file could not be written: it may have taken an hour.
	if c.Out != "" {
		err = out.Write(context.WithoutCancel(ctx), c.Out, e, st)
	}
	if err := errors.Join(err, c.write(t.stdout, e)); err != nil {
		return err
	}
	return c.outcome(e)
}

// place prepares the folder for checkouts and builds, and the sandbox's options.
// The returned function removes the folder.
func (f *placeFlags) place(o *eval.Options) (func(), error) {
	w, err := workfolder.New(f.WorkDir)
	if err != nil {
		return nil, usage(fmt.Errorf("--work-dir: %w", err))
	}
	o.WorkDir = w.Work
	if !f.Unsafe { // what no box protects is not kept
		o.Fixtures = filepath.Join(filepath.Dir(w.Dir), "patchbench-fixtures-"+strconv.Itoa(os.Geteuid()))
	}
	o.Sandbox = sandbox.Options{UID: f.SandboxUID, Unsafe: f.Unsafe}
	if err := w.Admit(o.Sandbox.RunsAs()); err != nil {
		w.Remove()
		return nil, err
	}
	return w.Remove, nil
}

// noSpace adds what to do to an error that means a full disk.
func noSpace(err error, dir string) error {
	if !strings.Contains(err.Error(), "no space left") {
		return err
	}
	return fmt.Errorf("%w; checkouts and builds go below %s: make room there or name another folder with --work-dir", err, filepath.Dir(filepath.Dir(dir)))
}

// outcome gives an evaluation's exit status, nil for 0.
func (c *evalCommand) outcome(e *store.Evaluation) error {
	switch {
	case e.Stopped == store.StoppedInterrupted:
		return &failure{statusInterrupted, fmt.Errorf("go on with it: the same command, and --resume %s", e.ID)}
	case e.Conflict != nil, e.Series != nil && !e.Series.Complete, noneBuilds(e.Versions):
		return &failure{status: statusSeries, err: incomplete(e.Series)}
	case len(e.Versions) > 1 && noneBuilds(e.Versions[1:]):
		return &failure{status: statusSeries, err: errors.New("no patch of the series builds: the report says why")}
	case e.Verdict == bench.FailedSeries:
		return usage(errors.New("nothing was measured: the report says why; see to the suite and the budget"))
	case c.FailOn == "worse" && anyWorse(e):
		return &failure{status: statusWorse}
	}
	return nil
}

// planOutcome gives the exit status of a plan, nil for 0.
func planOutcome(p *eval.Planned) error {
	switch {
	case p.Versions[0].State == bench.BuildFailed:
		return &failure{status: statusSeries, err: errors.New("base does not build")}
	case p.Conflict != nil, p.Series != nil && !p.Series.Complete:
		return &failure{status: statusSeries, err: incomplete(p.Series)}
	}
	return nil
}

// noneBuilds says that none of some versions builds, or that none was tried because
// the series was refused.
func noneBuilds(versions []bench.Version) bool {
	return !slices.ContainsFunc(versions, func(v bench.Version) bool {
		return v.State == bench.Built || v.State == bench.SameBuild
	})
}

// anyWorse says that the series makes something worse, be it that a step of some
// row does which a later one makes good.
func anyWorse(e *store.Evaluation) bool {
	if e.Verdict == bench.Worse || e.Verdict == bench.Mixed {
		return true
	}
	for _, r := range e.Results {
		for _, s := range append(r.Steps, r.Total) {
			if s.Verdict == bench.Worse {
				return true
			}
		}
	}
	return false
}

// colourful says that w is a terminal whose user wants colours.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && isatty.IsTerminal(f.Fd())
}
