// Package input reads what a user names to be evaluated: mail as files, folders,
// Maildirs, standard input or messages of an archive, and the one series in it that he
// means; or a range of commits.
//
//	names --> Mail.Read --> Mailbox --> Choose --> mbox.Series, and those that it needs
//
// What cannot be read, or chosen, is an *Error: the user's to mend. Nothing is applied
// here.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/mbox/series"
	"patchbench/mbox/series/spill"
	"patchbench/mbox/source"
	"patchbench/mbox/tree"
)

// Error says that what the user named is not there, cannot be read, or holds no such
// series.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Mail names mail and a series in it.
type Mail struct {
	// Files are mboxes, patches, folders of them, Maildirs, "-" for Stdin, addresses
	// of messages in an archive, or Message-IDs.
	Files []string
	// Archive is the public-inbox that Message-IDs are looked up in: its address, or
	// the folder of its git epochs.
	Archive  string
	Patches  string // only these of the series, as 1-3,5; "" is all
	Version  int    // of the series; 0 is the newest
	Scissors bool   // cut messages at scissors lines
	Stdin    io.Reader
	Problems io.Writer // told by Series what could not be read
}

// Chosen is a series, and those of the same mail that hold prerequisites of it.
type Chosen struct {
	*mbox.Series
	AtHand []mbox.Series
}

// Mailbox is all the mail that was named. Close it after use.
type Mailbox struct {
	*series.Index
	spilled *spill.File
	percent int // of the garbage collector, before
}

// Read reads all the mail that is named. It may be an archive larger than
// memory: what is at hand of it is little beside the garbage of reading it, and
// the rest is in a file.
func (m *Mail) Read(ctx context.Context, o series.Options) (*Mailbox, error) {
	box := &Mailbox{spilled: spill.New(SpillDir()), percent: debug.SetGCPercent(25)}
	o.Scissors, o.Keeper = m.Scissors, box.spilled
	c := series.NewCollector(o)
	for _, file := range m.Files {
		if err := m.collect(ctx, file, c); err != nil {
			box.Close()
			var in *source.InputError
			if errors.As(err, &in) {
				err = &Error{err}
			}
			return nil, err
		}
	}
	box.Index = c.Index()
	return box, nil
}

// Close gives back what the mail takes.
func (b *Mailbox) Close() error {
	debug.SetGCPercent(b.percent)
	return b.spilled.Close()
}

// SpillDir is where large files go: TMPDIR if it is set, else /var/tmp, as /tmp is
// often in memory.
func SpillDir() string {
	if os.Getenv("TMPDIR") == "" {
		if _, err := os.Stat("/var/tmp"); err == nil {
			return "/var/tmp"
		}
	}
	return os.TempDir()
}

// collect reads one of the files into the collector.
func (m *Mail) collect(ctx context.Context, file string, c *series.Collector) error {
	src, err := m.open(ctx, file)
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

func (m *Mail) open(ctx context.Context, file string) (*source.Source, error) {
	if !source.NamesMessage(file) {
		return source.Open(file, m.Stdin)
	}
	if m.Archive == "" && !strings.Contains(file, "://") {
		return nil, &Error{fmt.Errorf("%s: no such file; to look a Message-ID up, name the archive with --archive URL or --archive DIR", file)}
	}
	return source.OpenArchive(ctx, m.Archive, file, source.ArchiveOptions{})
}

// Series reads the mail and chooses the one series in it.
func (m *Mail) Series(ctx context.Context) (Chosen, error) {
	box, err := m.Read(ctx, series.Options{})
	if err != nil {
		return Chosen{}, err
	}
	defer box.Close()
	for p, err := range box.Problems() {
		if err != nil {
			return Chosen{}, err
		}
		fmt.Fprintf(m.Problems, "bot: %s: %s\n", plain.Clean(p.Position), plain.Clean(p.Error))
	}
	if box.Len() == 0 {
		return Chosen{}, m.NoPatches(box.Index)
	}
	return m.Choose(box.Index)
}

// Choose picks the series that is asked for.
func (m *Mail) Choose(x *series.Index) (Chosen, error) {
	needs, err := x.Needs()
	if err != nil {
		return Chosen{}, err
	}
	choice := series.Choice{Version: m.Version, Patches: m.Patches}
	for _, file := range m.Files {
		choice.Messages = append(choice.Messages, source.MessageID(file))
	}
	if choice.Except, err = beneath(x, needs); err != nil {
		return Chosen{}, err
	}
	i, s, err := x.Choose(choice)
	var none *series.ChoiceError
	if errors.As(err, &none) {
		return Chosen{}, &Error{err}
	} else if err != nil {
		return Chosen{}, err
	}
	atHand, err := load(x, needs[i])
	return Chosen{s, atHand}, err
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

// NoPatches says that the mail holds none, and why not.
func (m *Mail) NoPatches(x *series.Index) error {
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
	return &Error{fmt.Errorf("%s: no patches found%s", strings.Join(m.Files, ", "), why)}
}

// Range reads A..B, which names commits if there is no such file.
func Range(arg string) (from, to string, ok bool) {
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
