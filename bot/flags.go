package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"patchbench/bot/input"
	"patchbench/bot/report"
	"patchbench/bot/serving"
	"patchbench/config/service"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// measureFlags say how to measure.
type measureFlags struct {
	Rounds     rounds  `placeholder:"N" help:"Exactly N rounds. Default: until every row is decided, 80 at most."`
	Budget     budget  `placeholder:"10m" help:"Time for measuring, builds not counted. Default: 10m, or none with --rounds."`
	Benchmarks string  `placeholder:"REGEX" help:"Only the benchmarks whose name, with its parameters as in grep{n=100}, matches."`
	Seed       *uint64 `placeholder:"N" help:"Seed of the order of runs and of the tests. Default: a new one."`
	Margin     float64 `default:"1" placeholder:"PERCENT" help:"Changes below this many percent count as the same. Default: 1."`
	placeFlags
}

// placeFlags say where programs run.
type placeFlags struct {
	WorkDir    string `placeholder:"DIR" help:"Where checkouts and builds go while it runs. Default: a new folder below /var/tmp."`
	SandboxUID int    `name:"sandbox-uid" placeholder:"UID" help:"Under which user id programs run when the bot is root. Default: 64000."`
	Unsafe     bool   `name:"unsafe-no-sandbox" help:"Run the code of the series without a sandbox, as yourself. Only for code that you trust."`
}

// check refuses values that cannot be meant.
func (f *measureFlags) check() error {
	switch {
	case f.SandboxUID < 0:
		return usage(fmt.Errorf("--sandbox-uid %d: must be a user id above 0", f.SandboxUID))
	}
	return checkMargin(f.Margin)
}

// rounds is a number of rounds as somebody gives it; 0 is none given.
type rounds int

// UnmarshalText reads a number from 1 to 10000.
func (r *rounds) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > 10000 {
		return fmt.Errorf("%q: must be a number from 1 to 10000", text)
	}
	*r = rounds(n)
	return nil
}

// budget is a length of time as somebody gives it; 0 is none given.
type budget time.Duration

// UnmarshalText reads a duration above 0.
func (b *budget) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q: must be a time above 0, as 90s or 10m", text)
	}
	*b = budget(d)
	return nil
}

// checkMargin refuses what is no margin in percent, NaN too.
func checkMargin(percent float64) error {
	if percent >= 0.01 && percent <= 50 {
		return nil
	}
	return usage(fmt.Errorf("--margin %v: must be 0.01 to 50 percent", percent))
}

// mailFlags name mail and choose a series in it.
type mailFlags struct {
	Files   []string `arg:"" name:"file" help:"An mbox, .patch files, a folder of them, a Maildir, - for standard input, or a message: its address in an archive, or its Message-ID."`
	Archive string   `placeholder:"URL|DIR" help:"The public-inbox that Message-IDs are looked up in: its address, or the folder of its git epochs."`
	Patches string   `short:"P" name:"patches" placeholder:"1-3,5" help:"Only these patches of the series."`
	Series  int      `name:"version" placeholder:"N" help:"Version N of the series; default: the newest."`
	Scissor bool     `name:"scissors" help:"Cut each commit message at a scissors line, as git mailinfo --scissors."`
}

// mail is the mail that the flags name.
func (m *mailFlags) mail(t *terminal) *input.Mail {
	return &input.Mail{Files: m.Files, Archive: m.Archive, Patches: m.Patches, Version: m.Series, Scissors: m.Scissor, Stdin: t.stdin, Problems: t.stderr}
}

// repoFlags name the repository and the base.
type repoFlags struct {
	Repo   string `default:"." placeholder:"DIR" help:"The git repository; it is only read. Default: this folder."`
	Base   string `placeholder:"REV" help:"The commit that the series is applied to. Default: base-commit of the mail, else the newest commit of --branch that holds the files as the series knows them, else its tip."`
	Branch string `placeholder:"NAME" help:"The branch in which a base is looked for, if nothing else says it. Default: HEAD."`
}

// pattern reads --benchmarks.
func pattern(s string) (*regexp.Regexp, error) {
	if s == "" {
		return nil, nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, usage(fmt.Errorf("--benchmarks: %w", err))
	}
	return re, nil
}

// withFlag names patches that are put on every version.
type withFlag struct {
	With []string `placeholder:"FILE" help:"Put the patches of this mail on base and on every version, without judging them. May be given several times."`
}

// extras reads the patches. How mail is looked up is as for the series itself.
func (f *withFlag) extras(ctx context.Context, t *terminal, m mailFlags) ([]tree.Extra, error) {
	var list []tree.Extra
	for _, name := range f.With {
		own := mailFlags{Files: []string{name}, Archive: m.Archive, Scissor: m.Scissor}
		s, err := own.mail(t).Series(ctx)
		if err != nil {
			return nil, stageError(err)
		}
		list = append(list, tree.Extra{Name: name, Series: s.Series})
	}
	return list, nil
}

// fuzzFlag says how loosely patches may be applied.
type fuzzFlag struct {
	Fuzz uint `placeholder:"N" help:"Where a patch applies in no other way, leave up to N lines of context out at an end of a hunk, as patch -F; the report says so."`
}

// storeFlag names the file that keeps evaluations.
type storeFlag struct {
	Store string `placeholder:"FILE" help:"The SQLite file that keeps evaluations. Default: bot.db in the user's state folder."`
}

func (f *storeFlag) open(ctx context.Context) (*store.Store, error) {
	path := f.Store
	if path == "" {
		dir, err := stateDir()
		if err != nil {
			return nil, err
		}
		path = filepath.Join(dir, "bot.db")
	}
	s, err := store.Open(ctx, path)
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}

// stateDir is where a user's programs keep their state.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "patchbench"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usage(fmt.Errorf("no folder for the record: %w; name a file with --store", err))
	}
	return filepath.Join(home, ".local", "state", "patchbench"), nil
}

// recordFlags name the service's record: by its configuration, or as it stands.
type recordFlags struct {
	Config string `placeholder:"FILE" help:"The service file, which names the record."`
	Store  string `placeholder:"FILE" help:"The record itself, where there is no service file at hand."`
}

// open opens the record, which must be there.
func (f *recordFlags) open(ctx context.Context) (*store.Store, error) {
	st, _, err := f.record(ctx)
	return st, err
}

// record opens the record, and gives the service file if it was named by that.
func (f *recordFlags) record(ctx context.Context) (st *store.Store, c *service.Config, err error) {
	url := f.Store
	switch {
	case f.Config != "" && f.Store != "":
		return nil, nil, usage(errors.New("--config names the record already: leave --store out"))
	case f.Config != "":
		if c, err = service.Load(f.Config, os.Getenv); err != nil {
			return nil, nil, usage(err)
		}
		url = string(c.Store.URL)
	case f.Store == "":
		return nil, nil, usage(errors.New("name the service's file with --config, or its record with --store"))
	}
	if st, err = serving.OpenRecord(ctx, url); err != nil {
		return nil, nil, usage(err)
	}
	return st, c, nil
}

// formatFlag chooses how a report is rendered.
type formatFlag struct {
	Format string `enum:"text,json" default:"text" help:"text or json."`
}

func (f *formatFlag) write(w io.Writer, e *store.Evaluation) error {
	if f.Format == "json" {
		return report.JSON(w, e)
	}
	return report.Text(w, e, report.Options{Color: colourful(w)})
}
