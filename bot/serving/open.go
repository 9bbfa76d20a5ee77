package serving

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"patchbench/bench/sandbox"
	"patchbench/bot/work"
	"patchbench/config/service"
	"patchbench/store"
)

// open prepares what all parts stand on: the state folder, the sandbox, the record,
// the secret.
func (s *Service) open(ctx context.Context, c *service.Config) (end func(), err error) {
	var ends []func()
	end = func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	mode := os.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711 // for the way of other uids to the work folders
	}
	if err := os.MkdirAll(c.State, mode); err != nil {
		return end, &Error{fmt.Errorf("state: %w; make the folder, or name another one", err)}
	}
	if s.Whole {
		unlock, err := Lock(c.State)
		if err != nil {
			return end, err
		}
		ends = append(ends, unlock)
	}
	if s.Worker && s.Evaluate == nil {
		if err := trySandbox(ctx, c); err != nil {
			return end, err
		}
	}
	if file, ok := sqliteFile(string(c.Store.URL)); ok {
		if err := keepPrivate(file); err != nil {
			return end, err
		}
	}
	if s.st, err = store.Open(ctx, string(c.Store.URL)); err != nil {
		return end, err
	}
	ends = append(ends, func() { s.st.Close() })
	s.secret, err = s.readSecret(ctx)
	return end, err
}

// keepPrivate makes the record's file, if it is not there, such that only its owner
// can read it: it holds what letters are signed with. SQLite gives the files beside
// it the same mode.
func keepPrivate(file string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err != nil {
		return &Error{fmt.Errorf("[store] url: %w", err)}
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return &Error{fmt.Errorf("[store] url: %w", err)}
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// trySandbox refuses to start where the code of strangers would not be held.
func trySandbox(ctx context.Context, c *service.Config) error {
	box, err := sandbox.Open(ctx, work.Sandbox(c.Worker, 0))
	if err != nil {
		return err
	}
	return box.Close()
}

// SecretName is the value of the store with which letters are signed, in hexadecimal.
const SecretName = "secret"

// readSecret reads the secret, which the service makes when it starts first.
func (s *Service) readSecret(ctx context.Context) ([]byte, error) {
	text, err := s.st.Value(ctx, SecretName)
	if err != nil {
		return nil, err
	}
	if text == "" && !s.Whole {
		return nil, errors.New("this record has never been served: start bot watch on it first")
	}
	if text == "" {
		b := make([]byte, 32)
		rand.Read(b)
		text = hex.EncodeToString(b)
		if err := s.st.SetValue(ctx, SecretName, text); err != nil {
			return nil, err
		}
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) < 16 {
		return nil, fmt.Errorf("store: the value %q, with which letters are signed, is damaged: restore it from a copy of the record", SecretName)
	}
	return secret, nil
}

// OpenRecord opens the record of a service that has run before: a mistyped name is not
// to become a new one.
func OpenRecord(ctx context.Context, url string) (*store.Store, error) {
	if file, ok := sqliteFile(url); ok {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("no record: %w; the service makes it when it starts first", err)
		}
	}
	return store.Open(ctx, url)
}

// sqliteFile is the file that a store's URL names, if it names one.
func sqliteFile(url string) (string, bool) {
	if file, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return strings.TrimPrefix(file, "//"), true
	}
	return url, !strings.Contains(url, "://")
}

// Lock takes the state folder for this process: two services on one record
// would each send what the other sends.
func Lock(dir string) (unlock func(), err error) {
	path := dir + "/watch.lock"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		by, _ := io.ReadAll(io.LimitReader(f, 32))
		return nil, fmt.Errorf("another bot watch (process %s) serves %s already: end it, or name another folder as state", by, dir)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprint(f, os.Getpid())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
