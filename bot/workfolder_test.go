package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWorkFolder(t *testing.T) {
	parent := t.TempDir()
	used, err := newWorkFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	left, err := newWorkFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	// What a killed bot leaves: files, and a lock that nobody holds.
	locked := filepath.Join(left.work, "locked")
	if err := os.MkdirAll(filepath.Join(locked, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	left.lock.Close()
	// A folder of that name that is none of ours stays.
	foreign := filepath.Join(parent, workPrefix+"notes")
	if err := os.Mkdir(foreign, 0o755); err != nil {
		t.Fatal(err)
	}

	next, err := newWorkFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	exists := func(dir string) bool { _, err := os.Stat(dir); return err == nil }
	if exists(left.dir) {
		t.Error("the folder of a bot that is gone was not removed")
	}
	if !exists(used.dir) || !exists(next.dir) || !exists(foreign) {
		t.Error("a folder in use, or one that is not ours, was removed")
	}
	used.remove()
	next.remove()
	if exists(used.dir) || exists(next.dir) {
		t.Error("a folder was not removed after use")
	}
}
