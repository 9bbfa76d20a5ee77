// Package slot counts the evaluations that run at a time on one machine. In go a
// folder and a number; out come slots, each held by one evaluation of one process:
// two processes that share the folder share the slots, so that no benchmark is
// measured beside another unless its owner wants that.
package slot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
