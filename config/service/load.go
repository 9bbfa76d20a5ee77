package service

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"patchbench/config"
)

// Load reads a service file and all that it names: secrets, suites. The
// environment is asked by env, as os.Getenv; a secret that is set there wins
// over its file. The error is config.Errors if the file is at fault or what it
// names is, any other if it cannot be read.
func Load(file string, env func(string) string) (*Config, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("service file %s: %w", file, err)
	}
	text, mode, err := read(file, config.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("service file: %w", err)
	}
	return parse(file, text, mode, env)
}

// parse makes the Config of a text that was read from a file with these
// permissions.
func parse(name string, text []byte, mode fs.FileMode, env func(string) string) (*Config, error) {
	var f file
	doc, err := config.Read(name, text, &f)
	if doc == nil {
		return nil, err
	}
	// A mistyped key would also show as a missing one.
	c := checker{doc: doc, partial: err != nil, dir: filepath.Dir(name), mode: mode, env: env}
	cfg := c.config(f)
	var errs config.Errors
	errors.As(err, &errs)
	if err := errs.Join(c.errs); err != nil {
		return nil, err
	}
	cfg.File = name
	return cfg, nil
}

// read reads a regular file of up to most bytes. Anything else could block, or
// never end.
func read(name string, most int) ([]byte, fs.FileMode, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, &fs.PathError{Op: "read", Path: name, Err: errors.New("is no regular file")}
	}
	text, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err == nil && len(text) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("has more than %d bytes", most)}
	}
	return text, info.Mode().Perm(), err
}
