package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"patchbench/mbox"
	"patchbench/mbox/tree"
)

type applyCommand struct {
	mailFlags
	repoFlags
	withFlag
	fuzzFlag
	JSON bool `name:"json" help:"Print JSON and nothing else."`
}

// collectSeldom has garbage collected less often, as long as memory is small: a series
// is applied in a few dozen milliseconds, of which collecting takes a sixth. Who sets
// GOGC or GOMEMLIMIT gets what he sets.
func collectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
}

func (c *applyCommand) Run(ctx context.Context, t *terminal) error {
	collectSeldom()
	s, err := c.mail(t).Series(ctx)
	if err != nil {
		return stageError(err)
	}
	repo, err := tree.Open(c.Repo)
	if err != nil {
		return stageError(err)
	}
	defer repo.Close()
	base, err := repo.Base(s.Series, c.Base, c.Branch)
	if err != nil {
		return stageError(err)
	}
	extra, err := c.extras(ctx, t, c.mailFlags)
	if err != nil {
		return err
	}
	stack, err := repo.Apply(ctx, base, s.Series, tree.Options{AtHand: s.AtHand, Fuzz: int(c.Fuzz)})
	if err == nil {
		err = repo.With(ctx, stack, extra, tree.Options{Fuzz: int(c.Fuzz)})
	}
	if err != nil {
		return stageError(err)
	}
	if c.JSON {
		err = writeJSON(t.stdout, stack)
	} else {
		err = printStack(t.stdout, stack)
	}
	if err != nil {
		return err
	}
	if stack.Conflict != nil || !s.Complete {
		return &failure{status: statusSeries, err: incomplete(s.Series)}
	}
	return nil
}

// incomplete says which patches of a series are missing, nil if none is.
func incomplete(s *mbox.Series) error {
	if s == nil || s.Complete {
		return nil
	}
	return fmt.Errorf("series incomplete: %d of %d patches; missing %s", s.Received, s.Total,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Missing), " ", ", "), "[]"))
}

func printStack(w io.Writer, s *tree.Stack) error {
	var b strings.Builder
	fmt.Fprintf(&b, "base %s (%s: %s)\n", s.Base.Commit, s.Base.How, printable(s.Base.Reason))
	for _, p := range s.Prerequisites {
		fmt.Fprintf(&b, "prerequisite %s%s: %s", p.PatchID, printable(p.MessageID), p.State)
		if p.Note != "" {
			fmt.Fprintf(&b, ": %s", printable(p.Note))
		}
		b.WriteByte('\n')
	}
	if s.Built != nil {
		fmt.Fprintf(&b, "    built as %s tree %s\n", s.Built.Commit, s.Built.Tree)
	}
	for _, st := range s.Steps {
		fmt.Fprintf(&b, "%3d commit %s tree %s %s %s\n", st.N, st.Commit, st.Tree, st.How, printable(st.Subject))
		for _, note := range st.Notes {
			fmt.Fprintf(&b, "    %s\n", printable(note))
		}
		if st.Built != nil {
			fmt.Fprintf(&b, "    built as %s tree %s\n", st.Built.Commit, st.Built.Tree)
		}
	}
	if c := s.Conflict; c != nil {
		fmt.Fprintf(&b, "%3d does not apply: %s\n", c.N, printable(c.Subject))
		for _, f := range c.Files {
			fmt.Fprintf(&b, "    %s\n", printable(f.String()))
		}
	}
	for _, n := range s.NotTried {
		fmt.Fprintf(&b, "%3d not tried\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
