package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"patchbench/bench/suite"
	"patchbench/bot/out"
	"patchbench/bot/starter"
)

type initCommand struct {
	Repo    string `default:"." placeholder:"DIR" help:"The project's folder. Default: this folder."`
	Force   bool   `help:"Write over a suite that is there."`
	Service bool   `help:"Write a service file instead, bot.toml, in DIR or this folder."`
	Dir     string `arg:"" optional:"" placeholder:"DIR" help:"With --service: the folder to write to."`
}

func (c *initCommand) Run(t *terminal) error {
	if c.Service {
		return c.service(t)
	}
	if c.Dir != "" {
		return usage(fmt.Errorf("%s: a folder is named with --repo, or with --service for a service file", c.Dir))
	}
	dir, err := filepath.Abs(c.Repo)
	if err != nil {
		return usage(err)
	}
	if info, err := os.Stat(dir); err != nil {
		return usage(fmt.Errorf("--repo: %w", err))
	} else if !info.IsDir() {
		return usage(fmt.Errorf("--repo %s: not a folder", c.Repo))
	}
	name := suite.DefaultNames[0]
	path := filepath.Join(c.Repo, name)
	if there := c.there(); there != "" && !c.Force {
		return usage(fmt.Errorf("%s is there already: try it with bot check, or write over it with --force", filepath.Join(c.Repo, there)))
	}
	s, err := starter.Suite(os.DirFS(dir), filepath.Base(dir))
	if err != nil {
		return usage(fmt.Errorf("look for benchmarks: %w", err))
	}
	if _, err := suite.Parse(name, []byte(s.Text)); err != nil {
		return fmt.Errorf("the starter suite for %s is no suite, which is our fault: %w", c.Repo, err)
	}
	if err := c.write(path, s.Text); err != nil {
		return err
	}
	fmt.Fprintf(t.stdout, "%s: %s\n", path, printable(s.Found))
	for _, l := range s.Left {
		fmt.Fprintf(t.stdout, "left out: %s\n", printable(l))
	}
	if s.Benchmarks == 0 {
		fmt.Fprintln(t.stdout, "It is a template: say in it what to run.")
	}
	again := "bot check"
	if c.Repo != "." {
		again += " --repo " + shellWord(c.Repo)
	}
	fmt.Fprintf(t.stdout, "Try it, then commit it:\n  %s --suite %s\n", again, shellWord(path))
	return nil
}

// there is the suite that the project has already, "" for none.
func (c *initCommand) there() string {
	i := slices.IndexFunc(suite.DefaultNames, func(name string) bool {
		_, err := os.Lstat(filepath.Join(c.Repo, name))
		return err == nil
	})
	if i < 0 {
		return ""
	}
	return suite.DefaultNames[i]
}

// write writes the suite, over another only with --force.
func (c *initCommand) write(path, text string) error {
	if c.Force {
		if err := out.File(filepath.Dir(path), filepath.Base(path), func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}); err != nil {
			return usage(err)
		}
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage(fmt.Errorf("%s is there already: try it with bot check, or write over it with --force", path))
	case err != nil:
		return usage(err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
