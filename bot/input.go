package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/mbox/source"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// mailFlags name mail and choose a series in it.
type mailFlags struct {
	Files   []string `arg:"" name:"file" help:"An mbox, .patch files, a folder of them, a Maildir, - for standard input, or a message: its address in an archive, or its Message-ID."`
	Archive string   `placeholder:"URL|DIR" help:"The public-inbox that Message-IDs are looked up in: its address, or the folder of its git epochs."`
	Patches string   `short:"P" name:"patches" placeholder:"1-3,5" help:"Only these patches of the series."`
	Series  int      `name:"version" placeholder:"N" help:"Version N of the series; default: the newest."`
	Scissor bool     `name:"scissors" help:"Cut each commit message at a scissors line, as git mailinfo --scissors."`

	// AtHand are all series of the mail, set by series.
	AtHand []mbox.Series `kong:"-"`
}

// listing reads all the mail that the flags name.
func (m *mailFlags) listing(ctx context.Context, t *terminal, o series.Options) (mbox.Listing, error) {
	o.Scissors = m.Scissor
	c := series.NewCollector(o)
	for _, file := range m.Files {
		if err := m.collect(ctx, t, file, c); err != nil {
			return mbox.Listing{}, mailError(err)
		}
	}
	return c.Listing(), nil
}

// collect reads one of the files into the collector.
func (m *mailFlags) collect(ctx context.Context, t *terminal, file string, c *series.Collector) error {
	src, err := m.openMail(ctx, t, file)
	if err != nil {
		return err
	}
	defer src.Close()
	for ctx.Err() == nil {
		msg, problem, err := src.Next()
		switch {
		case errors.Is(err, source.ErrEnd):
			return src.Close()
		case err != nil:
			return err
		case problem != nil:
			c.AddProblem(*problem)
		default:
			c.Add(msg)
		}
	}
	return ctx.Err()
}

func (m *mailFlags) openMail(ctx context.Context, t *terminal, file string) (*source.Source, error) {
	if !source.NamesMessage(file) {
		return source.Open(file, t.stdin)
	}
	if m.Archive == "" && !strings.Contains(file, "://") {
		return nil, usage(fmt.Errorf("%s: no such file; to look a Message-ID up, name the archive with --archive URL or --archive DIR", file))
	}
	return source.OpenArchive(ctx, m.Archive, file, source.ArchiveOptions{})
}

// series reads the mail and chooses the one series in it.
func (m *mailFlags) series(ctx context.Context, t *terminal) (*mbox.Series, error) {
	l, err := m.listing(ctx, t, series.Options{})
	if err != nil {
		return nil, err
	}
	for _, p := range l.Problems {
		fmt.Fprintf(t.stderr, "bot: %s: %s\n", printable(p.Position), printable(p.Error))
	}
	if len(l.Series) == 0 {
		return nil, m.noPatches(l)
	}
	return m.choose(l)
}

// choose picks the series of a listing that the flags ask for.
func (m *mailFlags) choose(l mbox.Listing) (*mbox.Series, error) {
	choice := series.Choice{Version: m.Series, Patches: m.Patches}
	for _, file := range m.Files {
		choice.Messages = append(choice.Messages, source.MessageID(file))
	}
	m.AtHand = l.Series
	// What another series builds on is there for its sake.
	l.Series = tree.Tops(l.Series)
	s, err := series.Choose(l, choice)
	if err != nil {
		return nil, usage(err)
	}
	return s, nil
}

func (m *mailFlags) noPatches(l mbox.Listing) error {
	why := ""
	if n := len(l.Skipped); n > 0 {
		why = fmt.Sprintf(" (%d messages read; the first was skipped: %s)", n, l.Skipped[0].Reason)
	}
	return usage(fmt.Errorf("%s: no patches found%s", strings.Join(m.Files, ", "), why))
}

func mailError(err error) error {
	var in *source.InputError
	if errors.As(err, &in) {
		return usage(err)
	}
	return err
}

// repoFlags name the repository and the base.
type repoFlags struct {
	Repo   string `default:"." placeholder:"DIR" help:"The git repository; it is only read. Default: this folder."`
	Base   string `placeholder:"REV" help:"The commit that the series is applied to. Default: base-commit of the mail, else the tip of --branch."`
	Branch string `placeholder:"NAME" help:"The branch whose tip is the base if nothing else says. Default: HEAD."`
}

// stageError gives an error of the stages its exit status.
func stageError(err error) error {
	var suite *eval.InputError
	var repo *tree.InputError
	var resume *eval.ResumeError
	var id *store.IDError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrNone):
		return &failure{statusUnsafe, fmt.Errorf("%w; --unsafe-no-sandbox runs it all the same, as yourself: only for code that you trust", err)}
	case errors.Is(err, sandbox.ErrTemp), errors.As(err, &suite), errors.As(err, &repo), errors.As(err, &resume), errors.As(err, &id):
		return usage(err)
	}
	return err
}

// rangeOf reads A..B, which names commits if there is no such file.
func rangeOf(arg string) (from, to string, ok bool) {
	if _, err := os.Lstat(arg); err == nil || strings.Contains(arg, "://") {
		return "", "", false
	}
	from, to, ok = strings.Cut(arg, "..")
	if !ok || strings.HasPrefix(to, ".") || from == "" {
		return "", "", false
	}
	if to == "" {
		to = "HEAD"
	}
	return from, to, true
}

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
