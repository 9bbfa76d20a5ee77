package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"patchbench/bench/sandbox"
	"patchbench/bot/eval"
	"patchbench/bot/eval/resume"
	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/mbox/series/spill"
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

	// AtHand are the series of the mail that hold prerequisites of the chosen one,
	// set by series.
	AtHand []mbox.Series `kong:"-"`
}

// mailbox is all the mail that the flags name. Close it after use.
type mailbox struct {
	*series.Index
	spilled *spill.File
	percent int // of the garbage collector, before
}

// read reads all the mail that the flags name. It may be an archive larger than
// memory: what is at hand of it is little beside the garbage of reading it, and
// the rest is in a file.
func (m *mailFlags) read(ctx context.Context, t *terminal, o series.Options) (*mailbox, error) {
	box := &mailbox{spilled: spill.New(spillDir()), percent: debug.SetGCPercent(25)}
	o.Scissors, o.Keeper = m.Scissor, box.spilled
	c := series.NewCollector(o)
	for _, file := range m.Files {
		if err := m.collect(ctx, t, file, c); err != nil {
			box.Close()
			return nil, mailError(err)
		}
	}
	box.Index = c.Index()
	return box, nil
}

// Close gives back what the mail takes.
func (b *mailbox) Close() error {
	debug.SetGCPercent(b.percent)
	return b.spilled.Close()
}

// spillDir is where large files go: TMPDIR if it is set, else /var/tmp, as /tmp is
// often in memory.
func spillDir() string {
	if os.Getenv("TMPDIR") == "" {
		if _, err := os.Stat("/var/tmp"); err == nil {
			return "/var/tmp"
		}
	}
	return os.TempDir()
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
			err = c.AddProblem(*problem)
		default:
			err = c.Add(msg)
		}
		if err != nil && !errors.Is(err, source.ErrEnd) {
			return err
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
	box, err := m.read(ctx, t, series.Options{})
	if err != nil {
		return nil, err
	}
	defer box.Close()
	for p, err := range box.Problems() {
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(t.stderr, "bot: %s: %s\n", printable(p.Position), printable(p.Error))
	}
	if box.Len() == 0 {
		return nil, m.noPatches(box.Index)
	}
	return m.choose(box.Index)
}

// choose picks the series that the flags ask for.
func (m *mailFlags) choose(x *series.Index) (*mbox.Series, error) {
	needs, err := x.Needs()
	if err != nil {
		return nil, err
	}
	choice := series.Choice{Version: m.Series, Patches: m.Patches}
	for _, file := range m.Files {
		choice.Messages = append(choice.Messages, source.MessageID(file))
	}
	if choice.Except, err = beneath(x, needs); err != nil {
		return nil, err
	}
	i, s, err := x.Choose(choice)
	var none *series.ChoiceError
	if errors.As(err, &none) {
		return nil, usage(err)
	} else if err != nil {
		return nil, err
	}
	m.AtHand, err = load(x, needs[i])
	return s, err
}

// beneath gives the series that another one builds on: they are there for its
// sake. If nothing else would be left, there are none.
func beneath(x *series.Index, needs map[int][]int) (map[int]bool, error) {
	list := make(map[int]bool)
	for i, others := range needs {
		group := append(slices.Clone(others), i)
		slices.Sort(group)
		all, err := load(x, group)
		if err != nil {
			return nil, err
		}
		tops := tree.Tops(all)
		for k, n := range group {
			if len(tops) > 0 && tops[0].MessageID == all[k].MessageID && slices.EqualFunc(tops[0].Patches, all[k].Patches, samePatch) {
				tops = tops[1:]
				continue
			}
			list[n] = true
		}
	}
	if len(list) == x.Len() {
		return nil, nil
	}
	return list, nil
}

func samePatch(a, b mbox.Patch) bool {
	return a.MessageID == b.MessageID && a.DiffSHA256 == b.DiffSHA256
}

// load reads some series back.
func load(x *series.Index, numbers []int) ([]mbox.Series, error) {
	var list []mbox.Series
	for _, i := range numbers {
		s, err := x.Series(i)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (m *mailFlags) noPatches(x *series.Index) error {
	why := ""
	for first, err := range x.Skipped(false) {
		if err != nil {
			return err
		}
		if n := x.SkippedLen(); n == 1 {
			why = fmt.Sprintf(" (1 message read and skipped: %s)", first.Reason)
		} else {
			why = fmt.Sprintf(" (%d messages read; the first was skipped: %s)", n, first.Reason)
		}
		break
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
	Base   string `placeholder:"REV" help:"The commit that the series is applied to. Default: base-commit of the mail, else the newest commit of --branch that holds the files as the series knows them, else its tip."`
	Branch string `placeholder:"NAME" help:"The branch in which a base is looked for, if nothing else says it. Default: HEAD."`
}

// stageError gives an error of the stages its exit status.
func stageError(err error) error {
	var suite *eval.InputError
	var repo *tree.InputError
	var other *resume.Error
	var id *store.IDError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrNone):
		return &failure{statusUnsafe, fmt.Errorf("%w; --unsafe-no-sandbox runs it all the same, as yourself: only for code that you trust", err)}
	case errors.Is(err, sandbox.ErrTemp), errors.As(err, &suite), errors.As(err, &repo), errors.As(err, &other), errors.As(err, &id):
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
