package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"patchbench/config/service"
)

// What bot init --service writes.
const (
	serviceFile  = "bot.toml"
	passwordFile = "imap.password"
)

// service writes a service file, and the file of its password. Nothing that is
// there is touched: either may be the work of a day.
func (c *initCommand) service(t *terminal) error {
	if c.Force || c.Repo != "." {
		return usage(errors.New("--repo and --force are for suites: a service file is never written over"))
	}
	dir := c.Dir
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usage(err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return usage(err)
	}
	// Where the system keeps its configuration, it keeps no data.
	state := "state"
	if strings.HasPrefix(abs+"/", "/etc/") {
		state = "/var/lib/patchbench"
	}
	files := []struct {
		name, text string
		mode       fs.FileMode
	}{
		{serviceFile, service.Starter(state), 0o644},
		{passwordFile, service.Placeholder + "\n", 0o600},
	}
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.name)); err == nil {
			return usage(fmt.Errorf("%s is there already: change it, or name another folder", filepath.Join(dir, f.name)))
		}
	}
	for _, f := range files {
		if err := create(filepath.Join(dir, f.name), f.text, f.mode); err != nil {
			return usage(err)
		}
	}
	path := filepath.Join(dir, serviceFile)
	// What is written is tried at once: a fault in it would be ours.
	if _, err := service.Load(path, func(string) string { return "" }); err != nil {
		return fmt.Errorf("the service file is none, which is our fault: %w", err)
	}
	fmt.Fprintf(t.stdout, "%s: a service that answers nobody yet (mode \"dry-run\")\n%s: for the mailbox's password\n", printable(path), printable(filepath.Join(dir, passwordFile)))
	fmt.Fprintf(t.stdout, "Say in the first what to serve, write the password into the second, then try every part:\n  bot check --config %s\n", shellWord(path))
	return nil
}

// create writes a new file.
func create(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	// Whatever the umask takes away or leaves.
	return errors.Join(err, f.Chmod(mode), f.Close())
}
