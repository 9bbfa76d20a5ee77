package tree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox/tree/diff"
	"patchbench/mbox/tree/overlay"
)

// refusal is why a file of a patch does not apply.
type refusal struct {
	path       string
	hunk, line int
	reason     string
	unknown    bool // the blobs for a merge are not known
}

// change is what a patch makes of one file.
type change struct {
	file *diff.File
	mode uint32
	id   plumbing.Hash
	data []byte
}

// outcome is what a patch makes of a tree.
type outcome struct {
	tree    plumbing.Hash
	changes []change
	how     string
	notes   []string
	module  bool // changes a submodule
}

// state of a path while the files of one patch are gone through, as the table of
// names in git apply: what is going to be deleted by a later part, what was
// deleted by an earlier one, and what an earlier one made.
type state struct {
	leaving bool // a part of the patch deletes or renames it away
	gone    bool // and that part has been gone through
	made    *change
}

// applier applies one patch to one tree. Nothing is changed until all files are
// known to apply, so that renames and copies read what was there before.
type applier struct {
	r     *Repo
	ed    *overlay.Editor
	files []diff.File
	fuzz  int // as diff.File.Text takes it
	state map[string]*state
	links map[string]bool // symbolic links: true made or kept, false removed
	out   outcome
	bad   []refusal
}

// applyFiles applies a patch's files to a tree. Refusals are data; an error
// means that the repository could not be read or ctx has ended.
func (r *Repo) applyFiles(ctx context.Context, tree plumbing.Hash, files []diff.File, fuzz int) (*outcome, []refusal, error) {
	a := &applier{r: r, ed: r.objects.Edit(tree), files: append([]diff.File(nil), files...), fuzz: fuzz,
		state: map[string]*state{}, links: map[string]bool{}}
	a.out.how = HowClean
	for i := range a.files {
		f := &a.files[i]
		if f.Old != "" && (f.New == "" || f.Rename) {
			a.at(f.Old).leaving = true
		}
		if f.Old != "" && f.OldMode&diff.TypeMask == diff.TypeLink && (f.Rename || f.Delete == diff.Yes) {
			a.links[f.Old] = false
		}
		if f.New != "" && f.NewMode&diff.TypeMask == diff.TypeLink {
			a.links[f.New] = true
		}
	}
	for i := range a.files {
		if err := done(ctx, "apply patch"); err != nil {
			return nil, nil, err
		}
		f := &a.files[i]
		no, err := a.check(ctx, f)
		if err != nil {
			return nil, nil, err
		}
		if no != nil {
			if no.path == "" {
				no.path = f.Name()
			}
			a.bad = append(a.bad, *no)
		}
	}
	if len(a.bad) > 0 {
		return nil, a.bad, nil
	}
	no, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	if no != nil {
		return nil, []refusal{*no}, nil
	}
	a.out.tree = a.ed.Write()
	return &a.out, nil, nil
}

func (a *applier) at(path string) *state {
	s := a.state[path]
	if s == nil {
		s = &state{}
		a.state[path] = s
	}
	return s
}

func refuse(format string, args ...any) *refusal {
	return &refusal{reason: fmt.Sprintf(format, args...)}
}

// check is check_patch of git's apply.c: the file before, whether the one after
// may be made, and its bytes.
func (a *applier) check(ctx context.Context, f *diff.File) (*refusal, error) {
	before, no, err := a.before(f)
	if no != nil || err != nil {
		return no, err
	}
	if f.New != "" && (f.Create == diff.Yes || f.Rename || f.Copy) {
		s := a.state[f.New]
		e, ok, err := a.ed.Get(f.New)
		if err != nil {
			return nil, err
		}
		if ok && !e.IsDir() && (s == nil || !s.leaving && !s.gone) {
			return &refusal{path: f.New, reason: "the file already exists in the tree"}, nil
		}
		if f.NewMode == 0 && f.Create == diff.Yes {
			f.NewMode = 0o100644
		}
	}
	if f.NewMode == 0 {
		f.NewMode = f.OldMode
	}
	if f.New != "" && f.Old != "" && (f.OldMode^f.NewMode)&diff.TypeMask != 0 {
		return refuse("new mode %06o does not match old mode %06o: a change of a file's type is a deletion and a creation", f.NewMode, f.OldMode), nil
	}
	if f.New != "" && f.Delete != diff.Yes {
		link, err := a.beyondLink(f.New)
		if err != nil {
			return nil, err
		}
		if a.links[link] {
			return &refusal{path: f.New, reason: fmt.Sprintf("%s is both a file and a directory", link)}, nil
		}
		if link != "" {
			return &refusal{path: f.New, reason: fmt.Sprintf("%q is a symbolic link", link)}, nil
		}
	}
	after, no, err := a.content(ctx, f, before)
	if no != nil || err != nil {
		return no, err
	}
	if f.Delete == diff.Yes && len(after) > 0 {
		return refuse("the patch deletes the file but leaves contents in it"), nil
	}
	c := change{file: f, mode: overlay.Canonical(f.NewMode), data: after}
	a.out.changes = append(a.out.changes, c)
	made := &a.out.changes[len(a.out.changes)-1]
	if f.New != "" {
		*a.at(f.New) = state{made: made}
	}
	if f.New == "" || f.Rename {
		*a.at(f.Old) = state{gone: true}
	}
	return nil, nil
}

// before gives the bytes that a file's hunks are held against, and settles
// modes and whether a plain diff creates the file.
func (a *applier) before(f *diff.File) ([]byte, *refusal, error) {
	if f.Old == "" {
		return nil, nil, nil
	}
	var made *change
	// Renames and copies read what was there before the patch.
	if s := a.state[f.Old]; s != nil && !f.Rename && !f.Copy {
		if s.gone {
			return nil, refuse("an earlier part of the patch has renamed or deleted it"), nil
		}
		made = s.made
	}
	mode, data := uint32(0), []byte(nil)
	if made != nil {
		mode, data = made.mode, made.data
	} else {
		e, ok, err := a.ed.Get(f.Old)
		if err != nil {
			return nil, nil, err
		}
		if !ok && f.Create == diff.Unknown {
			f.Create, f.Delete, f.Old = diff.Yes, diff.No, ""
			return nil, nil, nil
		}
		switch {
		case !ok:
			if link, err := a.linkAbove(f.Old); err != nil || link != "" {
				return nil, refuse("%q is a symbolic link", link), err
			}
			return nil, refuse("the file does not exist in the tree"), nil
		case e.IsDir():
			return nil, refuse("it is a directory"), nil
		}
		mode = overlay.Canonical(e.Mode)
		if data, err = a.r.content(e); err != nil {
			return nil, nil, err
		}
	}
	if f.Create == diff.Unknown {
		f.Create = diff.No
	}
	switch {
	case f.OldMode == 0:
		f.OldMode = mode
	case (f.OldMode^mode)&diff.TypeMask != 0:
		return nil, refuse("the file is %s in the tree, the patch is for %s", kindOf(mode), kindOf(f.OldMode)), nil
	case overlay.Canonical(f.OldMode) != mode:
		a.note("%s has mode %06o, the patch expected %06o", f.Old, mode, f.OldMode)
	}
	if f.NewMode == 0 && f.Delete != diff.Yes {
		f.NewMode = mode
	}
	return data, nil, nil
}

func (a *applier) note(format string, args ...any) {
	a.out.notes = append(a.out.notes, fmt.Sprintf(format, args...))
}

func kindOf(mode uint32) string {
	switch mode & diff.TypeMask {
	case diff.TypeLink:
		return "a symbolic link"
	case diff.TypeModule:
		return "a submodule"
	case diff.TypeRegular:
		return "a regular file"
	}
	return fmt.Sprintf("of mode %06o", mode)
}

const modulePrefix = "Subproject commit "

// content gives the bytes of a tree's entry as a patch sees them.
func (r *Repo) content(e overlay.Entry) ([]byte, error) {
	if e.IsModule() {
		return []byte(modulePrefix + e.ID.String() + "\n"), nil
	}
	return r.objects.Blob(e.ID)
}

// linkAbove gives the folder on a path that is a symbolic link in the tree.
func (a *applier) linkAbove(path string) (string, error) {
	for i, c := range path {
		if c != '/' {
			continue
		}
		e, ok, err := a.ed.Get(path[:i])
		if err != nil {
			return "", err
		}
		if ok && e.IsLink() {
			return path[:i], nil
		}
	}
	return "", nil
}

// beyondLink gives the folder on a path that is a symbolic link after the patch.
func (a *applier) beyondLink(path string) (string, error) {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if made, known := a.links[path[:i]]; known {
			if made {
				return path[:i], nil
			}
			continue
		}
		e, ok, err := a.ed.Get(path[:i])
		if err != nil {
			return "", err
		}
		if ok && e.IsLink() {
			return path[:i], nil
		}
	}
	return "", nil
}

// content gives the bytes of the file after the patch.
func (a *applier) content(ctx context.Context, f *diff.File, before []byte) ([]byte, *refusal, error) {
	if f.IsBinary {
		return a.binary(f, before)
	}
	after, places, err := f.Text(ctx, before, a.fuzz)
	var no *diff.HunkError
	if errors.As(err, &no) {
		return nil, &refusal{hunk: no.Hunk, line: no.Line, reason: no.Reason}, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("apply patch: %w", err)
	}
	for i, p := range places {
		switch {
		case p.Fuzz > 0:
			a.out.how = HowFuzz
			a.note("%s: hunk %d applied with fuzz %d at an offset of %+d lines: not all of its context is in the file", f.Name(), i+1, p.Fuzz, p.Offset)
		case p.Loose:
			a.out.how = HowFuzz
			a.note("%s: hunk %d applied at an offset of %+d lines, not at the start or end of the file where it belongs", f.Name(), i+1, p.Offset)
		case p.Offset != 0:
			if a.out.how == HowClean {
				a.out.how = HowOffset
			}
			a.note("%s: hunk %d applied at an offset of %+d lines", f.Name(), i+1, p.Offset)
		}
	}
	return after, nil, nil
}

// binary is apply_binary of git's apply.c, which insists on full ids in small
// letters.
func (a *applier) binary(f *diff.File, before []byte) ([]byte, *refusal, error) {
	if !plumbing.IsHash(f.OldID) || !plumbing.IsHash(f.NewID) {
		return nil, refuse("the binary patch has no full index line; make it with git format-patch --binary"), nil
	}
	if f.Old != "" {
		if have := overlay.ID(plumbing.BlobObject, before).String(); have != f.OldID {
			return nil, refuse("the binary patch is for another version of the file (%.12s, not %.12s)", f.OldID, have), nil
		}
	}
	want := plumbing.NewHash(f.NewID)
	if want.IsZero() {
		return nil, nil, nil
	}
	if f.Binary == nil {
		// As git apply: the file may be known from elsewhere.
		if a.r.objects.Has(want) {
			data, err := a.r.objects.Blob(want)
			return data, nil, err
		}
		return nil, refuse("the patch says only that the binary files differ; make it with git format-patch --binary"), nil
	}
	after, err := f.Binary.Apply(before)
	if err != nil {
		return nil, refuse("%v", err), nil
	}
	if have := overlay.ID(plumbing.BlobObject, after).String(); have != f.NewID {
		return nil, refuse("the binary patch makes %.12s of the file where its index line says %.12s", have, f.NewID), nil
	}
	return after, nil, nil
}

// store puts all changes into the tree: first what goes, then what comes.
func (a *applier) store() (*refusal, error) {
	for _, c := range a.out.changes {
		// Two names without a word of renaming are a renaming too.
		moved := c.file.Old != "" && c.file.New != "" && c.file.Old != c.file.New && !c.file.Copy
		if c.file.Delete == diff.Yes || moved {
			if err := a.ed.Remove(c.file.Old); err != nil {
				return nil, err
			}
		}
		if (c.file.OldMode|c.file.NewMode)&diff.TypeMask == diff.TypeModule {
			a.out.module = true
		}
	}
	for i := range a.out.changes {
		c := &a.out.changes[i]
		if c.file.Delete == diff.Yes {
			continue
		}
		if c.mode == diff.TypeModule {
			text, ok := strings.CutPrefix(string(c.data), modulePrefix)
			if text = strings.TrimSuffix(text, "\n"); !ok || !plumbing.IsHash(text) {
				return &refusal{path: c.file.New, reason: "the patch of the submodule names no commit"}, nil
			}
			c.id = plumbing.NewHash(text)
			a.note("%s is a submodule: its commit is recorded, its files are not there", c.file.New)
		} else {
			c.id = a.r.objects.Write(plumbing.BlobObject, c.data)
		}
		reason, err := a.ed.Set(c.file.New, c.mode, c.id)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			return &refusal{path: c.file.New, reason: reason}, nil
		}
	}
	return nil, nil
}

// checkNames gives a reason for each file of a patch that has a name which must
// not get into a tree, by file; nil for none.
func checkNames(files []diff.File) (bad []refusal) {
	for i := range files {
		for _, name := range []string{files[i].Old, files[i].New} {
			if name == "" {
				continue
			}
			if reason := overlay.BadPath(name); reason != "" {
				bad = append(bad, refusal{path: name, reason: reason})
				break
			}
		}
	}
	return bad
}
