// Bot tells what a patch series does to performance, patch by patch.
//
//	bot eval series.mbox --repo DIR    apply, build, measure, report
//	bot demo                           the same on a small project of its own
//	bot init | check                   start a suite, try it on the base alone
//	bot show | apply | compare | diff | report
//	bot watch | worker | jobs | outbox the service: lists and pull requests, answered by themselves
//
// This package is the command: it reads flags and the environment, wires the
// stages together, and turns their outcomes into exit statuses. One file holds one
// subcommand. What commands read and show beside reports has packages of its own:
// bot/input and bot/samples, bot/listing, bot/plan, bot/progress, bot/operator, and
// bot/out for files; bot/serving is what bot watch and bot worker run.
//
// # Dependencies
//
// The modules that the program is made of, and why each was taken:
//
//	alecthomas/kong           flags and subcommands as struct tags; small, no generated code
//	BurntSushi/toml           TOML with positions
//	emersion/go-message       mail: header fields, MIME parts, transfer encodings
//	emersion/go-imap          mail in; go-sasl for servers that refuse LOGIN
//	emersion/go-smtp, go-sasl replies out
//	emersion/go-msgauth       results of authentication that servers write; DKIM
//	google/go-github          GitHub's API; bradleyfalzon/ghinstallation is an App's part of it
//	go-git/go-git, go-billy   references, configuration and revisions of git repositories
//	modernc.org/sqlite        SQLite without cgo, so the bot stays one static binary
//	jackc/pgx                 PostgreSQL through database/sql
//	pressly/goose             schema migrations, as plain SQL files
//	riverqueue/river          the queue, in the same database and the same transactions as the record
//	vbauerster/mpb            progress bars; mattn/go-isatty tells a terminal
//	prometheus/client_golang  metrics of the service
//	prometheus/procfs         /proc: CPU, load, pressure
//	golang.org/x/perf         reads and scales Go benchmark output as benchstat does
//	gonum.org/v1/gonum        distributions and quantiles
//	golang.org/x/sys          ptrace, prctl, seccomp, reflinks
//	golang.org/x/text         charsets, widths of characters
//	golang.org/x/tools/txtar  the demonstration project in one file
//	google/go-cmp, rogpeppe/go-internal, yuin/goldmark, golang.org/x/net/html, honnef.co/go/tools
//	                          tests and checks
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/eval/resume"
	"patchbench/bot/input"
	"patchbench/bot/report"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// Exit statuses, a contract with scripts.
const (
	statusDone        = 0
	statusOurs        = 1 // infrastructure; try again
	statusUsage       = 2 // usage, configuration, unreadable input
	statusSeries      = 3 // the series is at fault
	statusUnsafe      = 4 // refused for safety
	statusWorse       = 5 // --fail-on is met
	statusInterrupted = 130
)

// failure is an error with the exit status that it means.
type failure struct {
	status int
	err    error // nil: everything has been said already
}

func (f *failure) Error() string { return fmt.Sprint(f.err) }
func (f *failure) Unwrap() error { return f.err }

func usage(err error) error { return &failure{statusUsage, err} }

type command struct {
	Eval    evalCommand    `cmd:"" help:"Evaluate a series, or the commits A..B: apply it, build base and every patch, run the suite on each, report."`
	Show    showCommand    `cmd:"" help:"Show what was understood of some mail: series, patches, what was skipped and why."`
	Apply   applyCommand   `cmd:"" help:"Apply a series to git objects; print the commit and tree of each step."`
	Compare compareCommand `cmd:"" help:"Compare samples (samples.jsonl, or Go benchmark output): statistics only."`
	Diff    diffCommand    `cmd:"" help:"Set the verdicts of two evaluations side by side, as of v1 and v2 of a series."`
	Report  reportCommand  `cmd:"" help:"Render a stored evaluation again."`
	History historyCommand `cmd:"" help:"Show a benchmark's record over time, by machine, with the points at which it changed."`
	Init    initCommand    `cmd:"" help:"Write a starter suite for a project, from the benchmarks that it has."`
	Check   checkCommand   `cmd:"" help:"Run a suite on the base alone, and say what is wrong or slow, how noisy it is and what evaluations will cost."`
	Watch   watchCommand   `cmd:"" help:"Serve mailing lists and pull requests: mail in, evaluations, replies, as a service file says."`
	Worker  workerCommand  `cmd:"" help:"Evaluate what bot watch has queued, in a process of its own."`
	Jobs    jobsCommand    `cmd:"" help:"See, approve, stop and retry what the service evaluates."`
	Outbox  outboxCommand  `cmd:"" help:"See, approve, hold, resend and drop the service's replies."`
	Demo    demoCommand    `cmd:"" help:"Evaluate five patches of a small project of our own, with nothing to set up."`

	Version versionCommand `cmd:"" help:"Print the version."`
}

// terminal is where a command reads and writes.
type terminal struct {
	stdin          io.Reader
	stdout, stderr io.Writer
}

func main() {
	sandbox.Main()
	os.Exit(run(os.Args[1:], &terminal{os.Stdin, os.Stdout, os.Stderr}))
}

func run(args []string, t *terminal) int {
	var c command
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("bot"),
		kong.Description("Tells what a patch series does to performance, patch by patch."),
		kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Writers(t.stdout, t.stderr),
		kong.Exit(func(status int) { exited = status }),
		kong.Bind(t))
	if err != nil {
		panic(err) // a struct tag above is wrong
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		help := "bot"
		var wrong *kong.ParseError
		if errors.As(err, &wrong) && wrong.Context.Selected() != nil {
			help = wrong.Context.Selected().FullPath()
		}
		return say(t.stderr, usage(fmt.Errorf("%w; see %s --help", err, help)))
	}
	ctx, stop := interruptible(t.stderr, !services[k.Command()])
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	return say(t.stderr, k.Run())
}

// services are the commands that run until they are told to end: SIGHUP means to
// them that their configuration changed.
var services = map[string]bool{"watch": true, "worker": true}

// say prints an error and gives its exit status.
func say(stderr io.Writer, err error) int {
	var f *failure
	switch {
	case err == nil:
		return statusDone
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled):
		f = &failure{statusInterrupted, errors.New("interrupted")}
	default:
		f = &failure{statusOurs, err}
	}
	if f.err != nil {
		// Lines of a joined error each get their prefix; all else in it that
		// a terminal would obey is escaped.
		for line := range strings.SplitSeq(f.err.Error(), "\n") {
			fmt.Fprintf(stderr, "bot: %s\n", printable(line))
		}
	}
	return f.status
}

// stageError gives an error of the stages its exit status.
func stageError(err error) error {
	var named *input.Error
	var suite *eval.InputError
	var repo *tree.InputError
	var other *resume.Error
	var id *store.IDError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrNone):
		return &failure{statusUnsafe, fmt.Errorf("%w; --unsafe-no-sandbox runs it all the same, as yourself: only for code that you trust", err)}
	case errors.Is(err, sandbox.ErrTemp), errors.As(err, &named), errors.As(err, &suite), errors.As(err, &repo), errors.As(err, &other), errors.As(err, &id):
		return usage(err)
	}
	return err
}

// interruptible gives a context that the first Ctrl-C, SIGTERM or, with hangUp,
// SIGHUP (the terminal was closed) ends; the second ends the process.
func interruptible(stderr io.Writer, hangUp bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if hangUp && !signal.Ignored(syscall.SIGHUP) { // by nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		s, ok := <-signals
		if !ok {
			return
		}
		if s == syscall.SIGHUP {
			// What read our output may be gone too, and to write to it would
			// end the process before its folders are removed.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		}
		fmt.Fprintln(stderr, "bot: stopping; what was measured is kept (once more to stop at once)")
		cancel()
		if _, ok := <-signals; ok {
			os.Exit(statusInterrupted)
		}
	}()
	return ctx, func() { signal.Stop(signals); close(signals); cancel() }
}

type versionCommand struct{}

func (versionCommand) Run(t *terminal) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("this binary does not know its version")
	}
	fmt.Fprintln(t.stdout, "bot", info.Main.Version, info.GoVersion)
	return nil
}

// printable escapes what a terminal would obey in text from outside.
func printable(s string) string { return report.Escape(s) }

// writeJSON writes what scripts read.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// orEmpty is a list that is written as [] if there is none.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
