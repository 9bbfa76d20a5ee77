package slot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// Slots are given in order, each to one holder, and again when they are free. The
// locks are those of open files, so that this process stands for several.
func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "work")
		ctx := t.Context()
		a, err := Take(ctx, dir, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Take(ctx, dir, 2, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if a.N != 0 || b.N != 1 || a.Folder == b.Folder {
			t.Errorf("slots %d in %s and %d in %s, want two", a.N, a.Folder, b.N, b.Folder)
		}
		if _, err := Take(ctx, dir, 2, time.Minute); !errors.Is(err, ErrBusy) {
			t.Errorf("a third of two slots: %v, want %v", err, ErrBusy)
		}
		ended, cancel := context.WithCancel(ctx)
		time.AfterFunc(10*time.Second, cancel)
		if _, err := Take(ended, dir, 2, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("when the context ends: %v", err)
		}
		time.AfterFunc(10*time.Second, a.Release)
		c, err := Take(ctx, dir, 2, time.Minute)
		if err != nil || c.N != 0 {
			t.Fatalf("%+v, %v, want the slot that became free", c, err)
		}
		b.Release()
		c.Release()
	})
}

func TestTakeFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Take(t.Context(), filepath.Join(file, "work"), 1, time.Minute); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("below a file: %v, want an error that says so", err)
	}
}

// Free leaves out what is held, and Name stays as it is.
func TestFree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	held, err := Take(t.Context(), dir, 3, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	free, err := Free(dir, 3)
	if err != nil || len(free) != 2 || free[0].N != 1 || free[1].N != 2 {
		t.Errorf("%v, %v, want slots 1 and 2", free, err)
	}
	for _, s := range append(free, held) {
		s.Release()
	}
	one, err := Name(dir)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Name(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Name(dir); err != nil || again != one || other == one {
		t.Errorf("%q, then %q (%v), and another folder %q", one, again, err, other)
	}
}
