// Package tree turns a series into versions of the code: it applies patches to
// the objects of a git repository and writes the trees out as files. In go a
// repository, a base and a series, or two commits; out comes a Stack of commits,
// one for each patch. It stands behind mbox/series on the path and before the
// builds.
//
//	mbox.Series --Base--> mbox.Base --Apply--> Stack --Checkout, Update--> files
//
// The user's repository is only read. New blobs, trees and commits live in the
// memory of a Repo and are gone with it. A patch that does not apply is part of
// the Stack (Stack.Conflict), not an error; the oracle for what applies, and to
// which tree, is git am -3.
//
// Patches are read by the package diff below this one, which knows files but no
// repository; objects are read by odb, which knows no patches. Neither commits
// nor files in work folders are ever handed to git, and no hook, filter or
// attribute of the repository has any effect.
package tree

import (
	"context"
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
	trees map[plumbing.Hash][]entry // parsed, shared, not to be changed
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
		return nil, inputErrorf("open repository %s: %w", dir, err)
	}
	store, err := odb.Open(filepath.Join(common, "objects"))
	if err != nil {
		return nil, inputErrorf("open repository %s: %w", dir, err)
	}
	r := &Repo{dir: dir, odb: store, refs: refs,
		over: map[plumbing.Hash]object{}, trees: map[plumbing.Hash][]entry{}}
	refs.objects = r
	if r.git, err = git.Open(refs, nil); err != nil {
		store.Close()
		return nil, inputErrorf("open repository %s: %w", dir, err)
	}
	return r, nil
}

// findGitDir looks for the git folder of dir and, as git does, of the folders
// above it.
func findGitDir(dir string) (string, error) {
	if fi, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", inputErrorf("no repository at %s: there is no such folder; name a git repository with --repo", dir)
	} else if err != nil {
		return "", inputErrorf("open repository: %w", err)
	} else if !fi.IsDir() {
		return "", inputErrorf("no repository at %s: it is a file; name a git repository with --repo", dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", inputErrorf("open repository %s: %w", dir, err)
	}
	for at := abs; ; {
		dot := filepath.Join(at, ".git")
		if fi, err := os.Stat(dot); err == nil && fi.IsDir() && isGitDir(dot) {
			return dot, nil
		} else if err == nil && fi.Mode().IsRegular() {
			text, err := os.ReadFile(dot)
			if err != nil {
				return "", inputErrorf("open repository %s: %w", dir, err)
			}
			to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
			if !ok {
				return "", inputErrorf("open repository %s: %s does not name a git folder", dir, dot)
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(at, to)
			}
			if !isGitDir(to) {
				return "", inputErrorf("open repository %s: %s names %s, which is no git folder; run git worktree repair", dir, dot, to)
			}
			return to, nil
		}
		if isGitDir(at) {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", inputErrorf("no repository at %s: neither it nor a folder above is a git repository; name one with --repo, or run git clone first", dir)
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

// Resolve gives the full hex id of the commit that a branch, tag, abbreviated id
// or git revision (HEAD~3) names.
func (r *Repo) Resolve(rev string) (string, error) {
	id, err := r.resolve(rev)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

func (r *Repo) resolve(rev string) (plumbing.Hash, error) {
	unknown := inputErrorf("unknown base %q: no such branch, tag or commit in %s", rev, r.dir)
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
		typ, data, err := r.read(id)
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

// Tree gives the full hex id of a commit's tree.
func (r *Repo) Tree(commit string) (string, error) {
	c, err := r.commit(plumbing.NewHash(commit))
	if err != nil {
		return "", err
	}
	return c.tree.String(), nil
}

// Files reads one file of a commit's tree. A path that is not there, or is a
// folder, a symbolic link or a submodule, gives an error that is fs.ErrNotExist.
func (r *Repo) Files(commit, path string) ([]byte, error) {
	c, err := r.commit(plumbing.NewHash(commit))
	if err != nil {
		return nil, err
	}
	e, ok, err := r.edit(c.tree).get(path)
	if err != nil {
		return nil, err
	}
	if !ok || !e.isFile() {
		return nil, &fs.PathError{Op: "read", Path: fmt.Sprintf("%.12s:%s", commit, path), Err: fs.ErrNotExist}
	}
	return r.blob(e.id)
}

// done reports that ctx has ended, wrapped with what was being done.
func done(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
