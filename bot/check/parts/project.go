package parts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/storage/memory"
	"golang.org/x/sys/unix"

	"patchbench/bench"
	"patchbench/bench/suite"
	"patchbench/config/service"
	"patchbench/mbox/tree"
)

func (c *checker) projects(context.Context) {
	for i := range c.cfg.Projects {
		c.project(&c.cfg.Projects[i])
	}
}

func (c *checker) project(p *service.Project) {
	const name = "project"
	wrong := func(do, format string, args ...any) {
		c.say(name, Wrong, do, "%s: %s", p.Name, fmt.Sprintf(format, args...))
	}
	repo, err := tree.Open(p.Repo)
	if err != nil {
		do := "let " + self() + " read it"
		if _, gone := errors.AsType[*tree.InputError](err); gone || errors.Is(err, fs.ErrNotExist) {
			do = "make a mirror there: git clone --mirror URL " + p.Repo
		}
		wrong(do, "%v", err)
		return
	}
	defer repo.Close()
	tip, ok := "", true
	for _, branch := range c.branches(p) {
		rev := "refs/heads/" + branch
		if branch == "" {
			branch, rev = "HEAD", "HEAD"
		}
		base, err := repo.Base(nil, rev, "")
		switch {
		case err != nil:
			ok = false
			wrong("name a branch of it, or fetch it", "%s has no branch %s: %v", p.Repo, branch, err)
		case tip == "":
			tip = base.Commit
		}
	}
	if !ok {
		return
	}
	s, file, err := suiteOf(p, repo, tip)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		wrong("write one by bot init --repo, commit it, or name a file with suite", "there is no suite: none is configured, and %.12s has none of %s", tip, strings.Join(suite.DefaultNames, ", "))
	case err != nil:
		wrong("try it with bot check --repo", "the suite %s of %.12s: %v", file, tip, err)
	case p.Class != c.cfg.Worker.Class:
		c.say(name, Note, "start bot worker on one with [worker] class = "+fmt.Sprintf("%q", p.Class),
			"%s: %s at %.12s, suite %s (%s): machines of class %s evaluate it, this one is %s", p.Name, p.Repo, tip, s.Name, file, p.Class, c.cfg.Worker.Class)
	default:
		c.say(name, OK, "", "%s: %s at %.12s, suite %s (%s) with %d benchmarks", p.Name, p.Repo, tip, s.Name, file, len(s.Benchmarks))
	}
}

// branches are all that series of the project may be applied to, its own first.
func (c *checker) branches(p *service.Project) []string {
	all := []string{p.Branch}
	for _, l := range c.cfg.Lists {
		if l.Project == p.Name {
			all = append(all, slices.Sorted(maps.Values(l.Tags))...)
		}
	}
	slices.Sort(all[1:])
	return slices.Compact(all)
}

// suiteOf reads the project's suite as an evaluation does.
func suiteOf(p *service.Project, repo *tree.Repo, tip string) (*bench.Suite, string, error) {
	if p.Suite != "" {
		s, err := suite.Parse(p.Suite, p.SuiteText)
		return s, p.Suite, err
	}
	for _, file := range suite.DefaultNames {
		text, err := repo.Files(tip, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, file, err
		}
		s, err := suite.Parse(file, text)
		return s, file, err
	}
	return nil, "", fs.ErrNotExist
}

func (c *checker) remotes(ctx context.Context) {
	for i := range c.cfg.Projects {
		if p := &c.cfg.Projects[i]; p.Remote != "" {
			c.remote(ctx, p)
		}
	}
}

// remote asks where a mirror is fetched from for its branches.
func (c *checker) remote(ctx context.Context, p *service.Project) {
	const name = "remote"
	repo, err := git.PlainOpen(p.Repo)
	if err != nil {
		return // that has been said
	}
	if conf, err := repo.Config(); err == nil && !conf.Core.IsBare {
		c.say(name, Wrong, "make the mirror by git clone --mirror, or leave remote out and keep it fresh yourself", "%s: %s has files checked out, which a fetch would leave behind", p.Name, p.Repo)
		return
	}
	if err := unix.Access(p.Repo, unix.W_OK); err != nil {
		c.say(name, Wrong, "let "+self()+" write there: it is fetched into", "%s: %s: %v", p.Name, p.Repo, err)
		return
	}
	ctx, cancel := c.within(ctx)
	defer cancel()
	refs, err := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "check", URLs: []string{p.Remote}}).ListContext(ctx, &git.ListOptions{})
	if err != nil {
		c.failed(name, "check the address of remote", fmt.Errorf("%s: %s: %w", p.Name, p.Remote, err))
		return
	}
	branches := 0
	found := p.Branch == ""
	for _, r := range refs {
		if r.Name().IsBranch() {
			branches++
			found = found || r.Name().Short() == p.Branch
		}
	}
	if !found {
		c.say(name, Wrong, "name a branch that is there", "%s: %s has no branch %s", p.Name, p.Remote, p.Branch)
		return
	}
	word := "branches"
	if branches == 1 {
		word = "branch"
	}
	c.say(name, OK, "", "%s: %s, %d %s", p.Name, p.Remote, branches, word)
}
