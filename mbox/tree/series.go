package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/diff"
	"patchbench/mbox/tree/overlay"
)

// Options choose how patches are applied. The zero value does as git am -3.
type Options struct {
	// NoThreeWay refuses a patch that does not apply directly, as git am
	// without -3.
	NoThreeWay bool
	// Fuzz is how many lines of context at an end of a hunk need not be what the
	// file has, as patch(1) takes with -F, where a patch applies in no other way;
	// 0 for none.
	Fuzz int
	// AtHand are the series of the mail at hand, from which the prerequisites of
	// a series are taken. The series itself may be among them.
	AtHand []mbox.Series
}

// Limits on one series, beside those of one patch in the package diff.
const (
	maxFiles = diff.MaxFiles
	maxHunks = diff.MaxHunks
)

// Apply applies the patches of a series in order on top of a base, one commit
// each. A conflict, names that must not get into a tree (then nothing at all is
// applied) and a missing patch end the stack; they are told in it. An error
// means that the repository could not be read or that ctx has ended.
func (r *Repo) Apply(ctx context.Context, base mbox.Base, s *mbox.Series, o Options) (*Stack, error) {
	st := newStack(base)
	at, err := r.objects.Commit(plumbing.NewHash(base.Commit))
	if err != nil {
		return nil, fmt.Errorf("apply series %s: base: %w", s.MessageID, err)
	}
	patches := make([]*parsed, 0, len(s.Patches))
	refused := false
	for i := range s.Patches {
		p, err := r.parse(at.Tree, &s.Patches[i])
		if err != nil {
			return nil, fmt.Errorf("apply series %s: %w", s.MessageID, err)
		}
		patches = append(patches, p)
		if p.names && !refused {
			refused = true
			st.Conflict = conflict(p.patch, p.bad)
		}
	}
	if bad := overLimit(patches); !refused && bad != nil {
		refused = true
		st.Conflict = conflict(bad.patch, bad.bad)
	}
	if refused {
		for _, p := range patches {
			if p.patch.N != st.Conflict.N {
				st.NotTried = append(st.NotTried, p.patch.N)
			}
		}
		return st, nil
	}
	on := version{at.ID, at.Tree}
	if st.Prerequisites, err = r.prerequisites(ctx, &on, s, o); err != nil {
		return nil, fmt.Errorf("apply series %s: %w", s.MessageID, err)
	}
	st.Built = on.built(at.ID)
	stop := r.readAhead(ctx, on.tree, patches)
	defer stop()
	for _, p := range patches {
		// What the user left out is no hole; what did not come is.
		hole := slices.ContainsFunc(s.Missing, func(n int) bool { return n < p.patch.N })
		if st.Conflict != nil || hole {
			st.NotTried = append(st.NotTried, p.patch.N)
			continue
		}
		out, bad, err := r.step(ctx, &on, p, o)
		if err != nil {
			return nil, fmt.Errorf("apply patch %d/%d: %w", p.patch.N, s.Total, err)
		}
		if bad != nil {
			st.Conflict = conflict(p.patch, bad)
			continue
		}
		step := Step{N: p.patch.N, Subject: p.patch.Subject, Author: p.patch.Author,
			How: out.how, Notes: append([]string{}, out.notes...)}
		for _, name := range diff.Withheld(p.patch.Diff) {
			step.Notes = append(step.Notes, name+" is left as it was: it is binary, and the patch does not hold its contents (hg export --git does)")
		}
		for i := range p.files {
			step.Added += p.files[i].Added
			step.Deleted += p.files[i].Deleted
		}
		if out.nothing {
			step.Added, step.Deleted = 0, 0
		}
		step.Commit, step.Tree = on.commit.String(), on.tree.String()
		if out.module {
			st.Submodules = append(st.Submodules, p.patch.N)
		}
		st.Steps = append(st.Steps, step)
	}
	return st, nil
}

// version is where a stack has come to.
type version struct {
	commit, tree plumbing.Hash
}

// built is the version as a stack names it, nil if it is a commit as it stands.
func (v version) built(commit plumbing.Hash) *Built {
	if v.commit == commit {
		return nil
	}
	return &Built{Commit: v.commit.String(), Tree: v.tree.String()}
}

// step applies a patch to a version, which becomes the next one.
func (r *Repo) step(ctx context.Context, at *version, p *parsed, o Options) (*applied, []refusal, error) {
	out, bad, err := r.applyPatch(ctx, at.tree, p, o)
	if err != nil || bad != nil {
		return nil, bad, err
	}
	if out.tree != at.tree || !out.nothing {
		at.commit, at.tree = r.objects.WriteCommit(out.tree, at.commit, p.patch), out.tree
	}
	return out, nil, nil
}

// overLimit gives the patch with which a series becomes too large, with the
// reason; nil if none does.
func overLimit(patches []*parsed) *parsed {
	files, hunks := 0, 0
	for _, p := range patches {
		files += len(p.files)
		for i := range p.files {
			hunks += len(p.files[i].Hunks)
		}
		reason := ""
		switch {
		case files > maxFiles:
			reason = fmt.Sprintf("series changes more than %d files", maxFiles)
		case hunks > maxHunks:
			reason = fmt.Sprintf("series has more than %d hunks", maxHunks)
		default:
			continue
		}
		return &parsed{patch: p.patch, bad: []refusal{{reason: reason}}}
	}
	return nil
}

func conflict(p *mbox.Patch, bad []refusal) *mbox.Conflict {
	c := &mbox.Conflict{N: p.N, Subject: p.Subject, Files: []mbox.ConflictFile{}}
	for _, b := range bad {
		c.Files = append(c.Files, mbox.ConflictFile{Path: b.path, Hunk: b.hunk, Line: b.line, Reason: b.reason})
	}
	return c
}

// parsed is a patch whose text was read, or the reasons why it cannot be used.
type parsed struct {
	patch *mbox.Patch
	files []diff.File
	bad   []refusal
	names bool // bad is about names: the whole series is refused
}

// parse reads a patch's text. The base tree decides whether names that lack a/
// and b/ are to be taken as they are.
func (r *Repo) parse(base plumbing.Hash, p *mbox.Patch) (*parsed, error) {
	out := &parsed{patch: p}
	files, err := diff.Parse(p.Diff, diff.Guess)
	if diff.SameHeaders(p.Diff) {
		if plain, err0 := diff.Parse(p.Diff, 0); err0 == nil {
			fits, err1 := r.fitsUnstripped(base, plain, files)
			if err1 != nil {
				return nil, err1
			}
			if fits || err != nil {
				files, err = plain, nil
			}
		}
	}
	var no *diff.Error
	if errors.As(err, &no) {
		path, reason := no.Path, no.Error()
		if path != "" && overlay.BadPath(path) != "" {
			out.names, reason = true, overlay.BadPath(path)
		}
		out.bad = []refusal{{path: path, reason: reason}}
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.files = files
	if bad := checkNames(files); bad != nil {
		out.bad, out.names = bad, true
		return out, nil
	}
	if len(files) == 0 && len(bytes.TrimSpace(p.Diff)) > 0 {
		reason := "its text holds no diff that can be applied"
		if combined(p.Diff) {
			reason = "a combined diff of a merge cannot be applied"
		}
		out.bad = []refusal{{reason: reason}}
	}
	return out, nil
}

func combined(text []byte) bool {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("diff --cc ")) || bytes.HasPrefix(line, []byte("diff --combined ")) {
			return true
		}
	}
	return false
}

// fitsUnstripped says that not fewer of a patch's files are in the tree under
// their names as they stand than with the first part stripped. A patch that only
// makes files gives no hint, and names that are the same on both sides are most
// likely whole.
func (r *Repo) fitsUnstripped(tree plumbing.Hash, plain, stripped []diff.File) (bool, error) {
	count := func(files []diff.File) (n int, err error) {
		ed := r.objects.Edit(tree)
		for i := range files {
			if files[i].Old == "" || overlay.BadPath(files[i].Old) != "" {
				continue
			}
			_, ok, err := ed.Get(files[i].Old)
			if err != nil {
				return 0, err
			}
			if ok {
				n++
			}
		}
		return n, nil
	}
	a, err := count(plain)
	if err != nil {
		return false, err
	}
	b, err := count(stripped)
	return a >= b, err
}

// applied is an outcome with what became of the patch as a whole.
type applied struct {
	outcome
	nothing bool // the patch is empty or already in the tree
}

// applyPatch applies one patch directly, else by a three-way merge, else finds
// out whether it is in the tree already, else applies it with fuzz.
func (r *Repo) applyPatch(ctx context.Context, tree plumbing.Hash, p *parsed, o Options) (*applied, []refusal, error) {
	if p.bad != nil {
		return nil, p.bad, nil
	}
	if len(p.files) == 0 {
		return &applied{outcome{tree: tree, how: HowClean, notes: []string{"the patch is empty"}}, true}, nil, nil
	}
	out, bad, err := r.applyFiles(ctx, tree, p.files, 0)
	if err != nil {
		return nil, nil, err
	}
	if bad == nil {
		return &applied{outcome: *out}, nil, nil
	}
	deleted := false
	if !o.NoThreeWay {
		merged, why, err := r.threeWay(ctx, tree, p.files)
		if err != nil {
			return nil, nil, err
		}
		if why == nil {
			nothing := merged.tree == tree
			if nothing {
				merged.notes = append(merged.notes, "the patch is in the base already")
			}
			return &applied{*merged, nothing}, nil, nil
		}
		bad = explain(bad, why)
		// A merge that was possible and failed knows better than the way back: that a
		// file is gone does not say that this patch deleted it.
		known := !slices.ContainsFunc(why, func(no refusal) bool { return no.unknown })
		deleted = known && slices.ContainsFunc(p.files, func(f diff.File) bool { return f.Delete == diff.Yes })
	}
	if !deleted {
		is, err := r.isApplied(ctx, tree, p.files)
		if err != nil {
			return nil, nil, err
		}
		if is {
			return &applied{outcome{tree: tree, how: HowClean, notes: []string{"the patch is in the base already"}}, true}, nil, nil
		}
	}
	if o.Fuzz > 0 {
		out, no, err := r.applyFiles(ctx, tree, p.files, o.Fuzz)
		if err != nil {
			return nil, nil, err
		}
		if no == nil {
			return &applied{outcome: *out}, nil, nil
		}
	}
	return nil, bad, nil
}

// isApplied says that a patch could be taken out of a tree.
func (r *Repo) isApplied(ctx context.Context, tree plumbing.Hash, files []diff.File) (bool, error) {
	back := make([]diff.File, len(files))
	for i := range files {
		var err error
		if back[len(back)-1-i], err = files[i].Reverse(); err != nil {
			return false, nil // it holds what cannot be turned round
		}
	}
	_, no, err := r.applyFiles(ctx, tree, back, 0)
	return err == nil && no == nil, err
}

// explain adds to the reasons why a patch does not apply why merging it was of
// no use either.
func explain(direct, merge []refusal) []refusal {
	out := slices.Clone(direct)
	for _, m := range merge {
		if m.reason == "" {
			continue
		}
		i := slices.IndexFunc(out, func(d refusal) bool { return d.path == m.path })
		if m.path == "" {
			i = 0
		}
		if i < 0 {
			m.reason = "three-way merge: " + m.reason
			out = append(out, m)
			continue
		}
		if !strings.Contains(out[i].reason, m.reason) {
			out[i].reason += "; three-way merge: " + m.reason
		}
	}
	return out
}
