// Package tree turns a series into versions of the code: it applies patches to
// the objects of a git repository and writes the trees out as files. In go a
// repository, a base and a series, or two commits; out comes a Stack of commits,
// one for each patch. It stands behind mbox/series on the path and before the
// builds.
//
//	mbox.Series --Base--> mbox.Base --Apply--> Stack --Pristine--> files
//
// The user's repository is only read. New blobs, trees and commits live in the
// memory of a Repo and are gone with it. A patch that does not apply is part of
// the Stack (Stack.Conflict), not an error; the oracle for what applies, and to
// which tree, is git am -3.
//
// What needs no series lies below: diff reads patches and knows files but no
// repository, merge joins three versions of files, overlay holds a repository's
// objects and the new ones, and checkout writes a commit's files. Neither commits
// nor files in work folders are ever handed to git, and no hook, filter or
// attribute of the repository has any effect.
package tree

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/checkout"
	"patchbench/mbox/tree/overlay"
)

// InputError says that what the user named cannot be used: no repository, one of
// a kind that is not read, an unknown revision.
type InputError = overlay.InputError

// LinkError is a symbolic link that is not written, as it leads out of the tree.
type LinkError = checkout.LinkError

// PathError is a name in a tree that is not written, because it is not safe.
type PathError = checkout.PathError

// Repo is an open repository with the new commits of its stacks, which live in
// memory. Its methods may be called by several goroutines.
type Repo struct {
	objects *overlay.Repo
}

// Open opens the repository that dir belongs to: a work tree or a folder below
// its top, a linked worktree, or a bare repository. Nothing in it is ever
// written. Repositories with SHA-256 ids, with references in reftables, and
// partial clones cannot be read; the error says what to do.
func Open(dir string) (*Repo, error) {
	objects, err := overlay.Open(dir)
	if err != nil {
		return nil, err
	}
	return &Repo{objects}, nil
}

// Close frees the files that are open. The new objects are gone.
func (r *Repo) Close() error { return r.objects.Close() }

// Pristine writes versions into folders; it keeps the files of the last one in a
// folder of its own: see package checkout.
type Pristine = checkout.Pristine

// Pristine makes a Pristine that keeps its files in dir, which belongs to it alone.
// A name or link that must not be written gives a *PathError or *LinkError.
func (r *Repo) Pristine(dir string) *Pristine { return checkout.New(r.objects, dir) }

// Tree gives the full hex id of a commit's tree.
func (r *Repo) Tree(commit string) (string, error) {
	c, err := r.objects.Commit(plumbing.NewHash(commit))
	if err != nil {
		return "", err
	}
	return c.Tree.String(), nil
}

// Files reads one file of a commit's tree. A path that is not there, or is a
// folder, a symbolic link or a submodule, gives an error that is fs.ErrNotExist.
func (r *Repo) Files(commit, path string) ([]byte, error) {
	c, err := r.objects.Commit(plumbing.NewHash(commit))
	if err != nil {
		return nil, err
	}
	e, ok, err := r.objects.Edit(c.Tree).Get(path)
	if err != nil {
		return nil, err
	}
	if !ok || !e.IsFile() {
		return nil, &fs.PathError{Op: "read", Path: fmt.Sprintf("%.12s:%s", commit, path), Err: fs.ErrNotExist}
	}
	return r.objects.Blob(e.ID)
}

// Changed lists the paths in which two commits differ.
func (r *Repo) Changed(from, to string) ([]string, error) {
	var trees [2]plumbing.Hash
	for i, id := range []string{from, to} {
		c, err := r.objects.Commit(plumbing.NewHash(id))
		if err != nil {
			return nil, err
		}
		trees[i] = c.Tree
	}
	var list []string
	err := r.objects.Differences(trees[0], trees[1], func(path string, _, _ *overlay.Entry) error {
		list = append(list, path)
		return nil
	})
	return list, err
}

// done reports that ctx has ended, wrapped with what was being done.
func done(ctx context.Context, what string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
