// Package slot counts the evaluations that run at a time on one machine. In go a
// folder and a number; out come slots, each held by one evaluation of one process:
// two processes that share the folder share the slots, so that no benchmark is
// measured beside another unless its owner wants that.
package slot

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy says that all slots are taken.
var ErrBusy = errors.New("all slots are taken")

// Slot is one of the machine's places for an evaluation. Its lock ends with the
// process that holds it.
type Slot struct {
	N      int    // from 0
	Folder string // for work folders, of this slot alone
	lock   *os.File
}

// Release gives the slot back.
func (s *Slot) Release() { s.lock.Close() }

// Take takes the first free of n slots below dir, which is made if it is not
// there, and waits for one until patience or ctx ends: then ErrBusy or the
// context's error is returned.
func Take(ctx context.Context, dir string, n int, patience time.Duration) (*Slot, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	end := time.NewTimer(patience)
	defer end.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		for i := range max(n, 1) {
			s, err := take(dir, i)
			if s != nil || err != nil {
				return s, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-end.C:
			return nil, ErrBusy
		case <-again.C:
		}
	}
}

// Free gives those of n slots below dir that nobody holds, to be released by the
// caller.
func Free(dir string, n int) (free []*Slot, err error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	for i := range max(n, 1) {
		s, err := take(dir, i)
		if err != nil {
			return free, err
		}
		if s != nil {
			free = append(free, s)
		}
	}
	return free, nil
}

// Name gives the name of a machine's folder of slots, which is made once: the
// host's, and something that no other folder has.
func Name(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("work folder: %w", err)
	}
	path := filepath.Join(dir, "name")
	for range 2 {
		text, err := os.ReadFile(path)
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("name of the work folder: %w", err)
		}
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		tmp, err := os.CreateTemp(dir, ".name-*")
		if err != nil {
			return "", fmt.Errorf("name of the work folder: %w", err)
		}
		_, err = fmt.Fprintf(tmp, "%s-%s\n", host, strings.ToLower(rand.Text()[:6]))
		err = errors.Join(err, tmp.Close())
		if err == nil {
			// Whoever links first names it.
			if err = os.Link(tmp.Name(), path); errors.Is(err, os.ErrExist) {
				err = nil
			}
		}
		if err = errors.Join(err, os.Remove(tmp.Name())); err != nil {
			return "", fmt.Errorf("name of the work folder: %w", err)
		}
	}
	return "", fmt.Errorf("name of the work folder: %s cannot be made", path)
}

// take gives nil if the slot is taken.
func take(dir string, n int) (*Slot, error) {
	s := &Slot{N: n, Folder: filepath.Join(dir, fmt.Sprintf("slot-%d", n))}
	if err := os.MkdirAll(s.Folder, 0o711); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	f, err := os.OpenFile(s.Folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the work folder: %w", err)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		s.lock = f
		return s, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	default:
		f.Close()
		return nil, fmt.Errorf("lock %s.lock: %w", s.Folder, err)
	}
}
