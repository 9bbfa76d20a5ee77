// Package epoch reads the git repositories in which a public-inbox (format v2)
// keeps its mail: DIR/0.git, DIR/1.git and on, or DIR/git/0.git and on, each an
// epoch, the newest with the highest number. In an epoch each commit holds one
// mail as the file m, or, as the file d, one that was taken back.
//
// In goes the folder of a mirror on disk, out come commits and the bytes of mails.
// It is the lowest part of mbox/source: which mails are wanted is decided in
// mbox/source itself (a thread) and in mbox/source/inbox (what is new).
package epoch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"patchbench/mbox/tree/odb"
)

// Dirs lists the repositories of an archive, the newest first: the numbered ones,
// or dir itself if it is an epoch that was cloned by itself. It is empty for a
// folder that is no archive.
func Dirs(dir string) []string {
	for _, sub := range []string{"git", "."} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			continue
		}
		var numbers []int
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ".git")
			if n, err := strconv.Atoi(name); ok && err == nil && n >= 0 {
				numbers = append(numbers, n)
			}
		}
		slices.SortFunc(numbers, func(a, b int) int { return cmp.Compare(b, a) })
		var dirs []string
		for _, n := range numbers {
			dirs = append(dirs, filepath.Join(dir, sub, strconv.Itoa(n)+".git"))
		}
		if len(dirs) > 0 {
			return dirs
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, ".git")} {
		if fi, err := os.Stat(filepath.Join(path, "objects")); err == nil && fi.IsDir() {
			return []string{path}
		}
	}
	return nil
}

// Number is the N of an epoch's folder N.git, 0 for one without a number.
func Number(dir string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(dir), ".git"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Tip is an epoch's newest commit, zero if it has none yet.
func Tip(dir string) (plumbing.Hash, error) {
	git := dotgit.New(osfs.New(dir))
	ref, err := git.Ref(plumbing.HEAD)
	for hops := 0; err == nil && ref.Type() == plumbing.SymbolicReference && hops < 5; hops++ {
		ref, err = git.Ref(ref.Target())
	}
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

// Epoch is an open epoch. What is written to it later may not be seen. Close it
// after use.
type Epoch struct {
	*odb.Store
	Dir string
	Tip plumbing.Hash // zero if it has no commit yet
}

// Open opens the epoch in a folder.
func Open(dir string) (*Epoch, error) {
	tip, err := Tip(dir)
	if err != nil {
		return nil, err
	}
	store, err := odb.Open(filepath.Join(dir, "objects"))
	if err != nil {
		return nil, err
	}
	return &Epoch{Store: store, Dir: dir, Tip: tip}, nil
}

// Commit is what an archive's commit says.
type Commit struct {
	Parent plumbing.Hash // zero for the first
	// When the mail came, to the second; mails do not always come in order.
	When time.Time
	// Mail is what came, Removed what was taken back; zero if it has none.
	Mail, Removed plumbing.Hash
}

// Commit reads a commit and its tree.
func (e *Epoch) Commit(id plumbing.Hash) (Commit, error) {
	var c Commit
	typ, raw, err := e.Read(id)
	if err != nil {
		return c, err
	}
	if typ != plumbing.CommitObject {
		return c, fmt.Errorf("it is a %s", typ)
	}
	var tree plumbing.Hash
	for line := range bytes.Lines(raw) {
		key, v, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(" "))
		if len(key) == 0 {
			break
		}
		switch string(key) {
		case "tree":
			tree = plumbing.NewHash(string(v))
		case "parent":
			if c.Parent.IsZero() {
				c.Parent = plumbing.NewHash(string(v))
			}
		case "committer":
			f := bytes.Fields(v[bytes.LastIndexByte(v, '>')+1:])
			if len(f) > 0 {
				if sec, err := strconv.ParseInt(string(f[0]), 10, 64); err == nil {
					c.When = time.Unix(sec, 0).UTC()
				}
			}
		}
	}
	typ, raw, err = e.Read(tree)
	if err != nil {
		return c, err
	}
	if typ != plumbing.TreeObject {
		return c, fmt.Errorf("its tree %s is a %s", tree, typ)
	}
	for len(raw) > 0 {
		mode, rest, ok := bytes.Cut(raw, []byte{0})
		if !ok || len(rest) < 20 {
			return c, fmt.Errorf("its tree %s is cut off", tree)
		}
		_, name, _ := bytes.Cut(mode, []byte(" "))
		switch string(name) {
		case "m":
			copy(c.Mail[:], rest)
		case "d":
			copy(c.Removed[:], rest)
		}
		raw = rest[20:]
	}
	return c, nil
}
