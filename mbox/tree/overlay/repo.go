// Package overlay is a git repository as objects: those that are on disk, which
// are only read, with new ones in memory on top of them. In goes a folder; out
// come commits, the entries of trees and the bytes of files, by the ids or the
// names that the repository has for them, and ids for what is written.
//
//	           write            Write, WriteCommit, Editor.Write
//	Repo  --------------->  new objects, in memory
//	  |     read
//	  `---------------->  new objects, else the package odb (packs, loose files)
//
// It stands between odb, which knows one folder of objects, and the packages that
// know patches (mbox/tree) and files (checkout). It decides which names and modes
// a tree may have, but reads no diff. References are read by go-git, which sees
// the same objects and cannot write.
package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"patchbench/mbox/tree/odb"
)

// Repo is an open repository with an overlay in memory for new objects. Its
// methods may be called by several goroutines.
type Repo struct {
	dir  string
	odb  *odb.Store
	refs *storage
	git  *git.Repository // over refs and the objects of this Repo

	mu    sync.RWMutex
	over  map[plumbing.Hash]object
	trees map[plumbing.Hash][]Entry // parsed, shared, not to be changed
}

type object struct {
	typ  plumbing.ObjectType
	data []byte
}

// Open opens the repository that dir belongs to: a work tree or a folder below
// its top, a linked worktree, or a bare repository. Nothing in it is ever
// written. Repositories with SHA-256 ids, with references in reftables, and
// partial clones cannot be read; the error says what to do.
func Open(dir string) (*Repo, error) {
	gitDir, err := findGitDir(dir)
	if err != nil {
		return nil, err
	}
	common := gitDir
	if text, err := os.ReadFile(filepath.Join(gitDir, "commondir")); err == nil {
		if common = strings.TrimSpace(string(text)); !filepath.IsAbs(common) {
			common = filepath.Join(gitDir, common)
		}
	}
	fsys := osfs.New(gitDir, osfs.WithBoundOS())
	if common != gitDir {
		fsys = dotgit.NewRepositoryFilesystem(fsys, osfs.New(common, osfs.WithBoundOS()))
	}
	refs, err := newStorage(dotgit.New(fsys))
	if err != nil {
		return nil, InputErrorf("open repository %s: %w", dir, err)
	}
	store, err := odb.Open(filepath.Join(common, "objects"))
	if err != nil {
		return nil, InputErrorf("open repository %s: %w", dir, err)
	}
	r := &Repo{dir: dir, odb: store, refs: refs,
		over: map[plumbing.Hash]object{}, trees: map[plumbing.Hash][]Entry{}}
	refs.objects = r
	if r.git, err = git.Open(refs, nil); err != nil {
		store.Close()
		return nil, InputErrorf("open repository %s: %w", dir, err)
	}
	return r, nil
}

// Dir is the folder that the repository was opened by, for messages.
func (r *Repo) Dir() string { return r.dir }

// findGitDir looks for the git folder of dir and, as git does, of the folders
// above it.
func findGitDir(dir string) (string, error) {
	if fi, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", InputErrorf("no repository at %s: there is no such folder; name a git repository", dir)
	} else if err != nil {
		return "", InputErrorf("open repository: %w", err)
	} else if !fi.IsDir() {
		return "", InputErrorf("no repository at %s: it is a file; name a git repository", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", InputErrorf("open repository %s: %w", dir, err)
	}
	for at := abs; ; {
		dot := filepath.Join(at, ".git")
		if fi, err := os.Stat(dot); err == nil && fi.IsDir() && isGitDir(dot) {
			return dot, nil
		} else if err == nil && fi.Mode().IsRegular() {
			text, err := os.ReadFile(dot)
			if err != nil {
				return "", InputErrorf("open repository %s: %w", dir, err)
			}
			to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
			if !ok {
				return "", InputErrorf("open repository %s: %s does not name a git folder", dir, dot)
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(at, to)
			}
			if !isGitDir(to) {
				return "", InputErrorf("open repository %s: %s names %s, which is no git folder; run git worktree repair", dir, dot, to)
			}
			return to, nil
		}
		if isGitDir(at) {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", InputErrorf("no repository at %s: neither it nor a folder above is a git repository; name one with --repo, or run git clone first", dir)
		}
		at = up
	}
}

// isGitDir knows a git folder by what git requires of one: HEAD, and objects
// and refs of its own or of the repository that a worktree is linked to.
func isGitDir(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	if _, err := os.Stat(filepath.Join(dir, "commondir")); err == nil {
		return true
	}
	for _, name := range []string{"objects", "refs"} {
		if fi, err := os.Stat(filepath.Join(dir, name)); err != nil || !fi.IsDir() {
			return false
		}
	}
	return true
}

// Close frees the files that are open. The new objects are gone.
func (r *Repo) Close() error { return errors.Join(r.refs.close(), r.odb.Close()) }

// Resolve finds the commit that a branch, tag, abbreviated id or git revision
// (HEAD~3) names; an *InputError if there is none.
func (r *Repo) Resolve(rev string) (plumbing.Hash, error) {
	unknown := InputErrorf("unknown base %q: no such branch, tag or commit in %s", rev, r.dir)
	// A colon would name a file of a commit, not a commit.
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, "\x00\n:") {
		return plumbing.ZeroHash, unknown
	}
	if id, ok := r.byName(rev); ok {
		if id, err := r.peel(id); err == nil {
			return id, nil
		}
	}
	id, err := r.git.ResolveRevision(plumbing.Revision(rev))
	if err != nil || id == nil || id.IsZero() {
		return plumbing.ZeroHash, unknown
	}
	commit, err := r.peel(*id)
	if err != nil {
		return plumbing.ZeroHash, unknown
	}
	return commit, nil
}

// byName looks a plain name up among the references, in git's order; git prefers
// them to abbreviated ids.
func (r *Repo) byName(rev string) (plumbing.Hash, bool) {
	if strings.ContainsAny(rev, "^~@:{ ") || plumbing.IsHash(rev) {
		return plumbing.ZeroHash, false
	}
	for _, rule := range plumbing.RefRevParseRules {
		name := plumbing.ReferenceName(fmt.Sprintf(rule, rev))
		for range 5 {
			ref, err := r.refs.Reference(name)
			if err != nil {
				break
			}
			if ref.Type() == plumbing.HashReference {
				return ref.Hash(), true
			}
			name = ref.Target()
		}
	}
	return plumbing.ZeroHash, false
}

// peel follows tags to the commit behind them.
func (r *Repo) peel(id plumbing.Hash) (plumbing.Hash, error) {
	for range 10 {
		typ, data, err := r.Read(id)
		if err != nil {
			return id, err
		}
		if typ == plumbing.CommitObject {
			return id, nil
		}
		to, ok := strings.CutPrefix(string(data), "object ")
		if typ != plumbing.TagObject || !ok || len(to) < 40 {
			break
		}
		id = plumbing.NewHash(to[:40])
	}
	return id, fmt.Errorf("%s is no commit", id)
}
