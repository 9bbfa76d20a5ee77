package tree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"patchbench/mbox"
	"patchbench/mbox/tree/diff"
	"patchbench/mbox/tree/overlay"
)

// searchDepth is how many commits of a branch are looked at, along the first
// parent, for one that holds all that a series was made against.
const searchDepth = 2000

// Base chooses the commit that a series is applied to, in this order: flag, the
// user's own word; what the mails name, if the repository has it; the newest
// commit of the branch that holds every file as the series' index lines know it;
// the tip of the branch. branch "" is HEAD. The result says how and why; an
// error means that what the user named does not exist.
func (r *Repo) Base(s *mbox.Series, flag, branch string) (mbox.Base, error) {
	if flag != "" {
		id, err := r.objects.Resolve(flag)
		if err != nil {
			return mbox.Base{}, err
		}
		return mbox.Base{Commit: id.String(), How: mbox.HowFlag, Reason: fmt.Sprintf("named as %s", flag)}, nil
	}
	why := ""
	if s != nil && s.Base != nil && s.Base.Commit != "" {
		how := s.Base.How
		if how == "" {
			how = mbox.HowBaseCommit
		}
		if id, ok := r.objects.CommitByPrefix(s.Base.Commit); ok {
			return mbox.Base{Commit: id.String(), How: how, Reason: "the series names it as its base"}, nil
		}
		why = fmt.Sprintf("; the base %.12s that the series names is not in the repository", s.Base.Commit)
	}
	name := branch
	if name == "" {
		name = "HEAD"
	}
	tip, err := r.objects.Resolve(name)
	if err != nil {
		if branch == "" {
			return mbox.Base{}, overlay.InputErrorf("no base: %s has no commit at HEAD; name one with --base", r.objects.Dir())
		}
		return mbox.Base{}, err
	}
	if s != nil {
		want := preImages(s)
		id, n, err := r.newestWith(tip, want)
		if err != nil {
			return mbox.Base{}, err
		}
		if !id.IsZero() {
			files, place := fmt.Sprintf("all %d files as the series was made against them", len(want)), "its tip"
			if len(want) == 1 {
				files = "the file as the series was made against it"
			}
			if n > 0 {
				place = fmt.Sprintf("%d behind its tip", n)
			}
			return mbox.Base{Commit: id.String(), How: mbox.HowBlobs, Reason: fmt.Sprintf("the newest commit of %s that holds %s, %s%s", name, files, place, why)}, nil
		}
		if len(want) > 0 {
			why += fmt.Sprintf("; none of its last %d commits holds all files as the series was made against them", n)
		}
	}
	return mbox.Base{Commit: tip.String(), How: mbox.HowBranch, Reason: fmt.Sprintf("the tip of %s%s", name, why)}, nil
}

// image is a file as a series expects to find it.
type image struct{ path, id string }

// preImages lists the files of a series as they were before it: the first time
// that each is touched, and only those that are in the base.
func preImages(s *mbox.Series) (want []image) {
	seen := map[string]bool{}
	for i := range s.Patches {
		files, err := diff.Parse(s.Patches[i].Diff, diff.Guess)
		if err != nil {
			return nil
		}
		for _, f := range files {
			if f.Old != "" && !seen[f.Old] && f.Create != diff.Yes && len(f.OldID) >= 7 && strings.Trim(f.OldID, "0") != "" {
				want = append(want, image{f.Old, strings.ToLower(f.OldID)})
			}
			for _, name := range []string{f.Old, f.New} {
				if name != "" {
					seen[name] = true
				}
			}
		}
	}
	return want
}

// newestWith walks back from a tip to the first commit that holds all the files.
// n is how many commits behind the tip that is, or how many were looked at.
func (r *Repo) newestWith(tip plumbing.Hash, want []image) (id plumbing.Hash, n int, err error) {
	if len(want) == 0 {
		return plumbing.ZeroHash, 0, nil
	}
	var last plumbing.Hash
	for id = tip; n < searchDepth; n++ {
		c, err := r.objects.Commit(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) && n > 0 {
			break // a shallow clone ends here
		} else if err != nil {
			return plumbing.ZeroHash, n, err
		}
		if c.Tree != last {
			miss, err := r.firstMissing(c.Tree, want)
			if err != nil {
				return plumbing.ZeroHash, n, err
			}
			if miss < 0 {
				return id, n, nil
			}
			// What differs here will most likely differ in the next one too.
			want[0], want[miss] = want[miss], want[0]
			last = c.Tree
		}
		if len(c.Parents) == 0 {
			n++
			break
		}
		id = c.Parents[0]
	}
	return plumbing.ZeroHash, n, nil
}

func (r *Repo) firstMissing(tree plumbing.Hash, want []image) (int, error) {
	ed := r.objects.Edit(tree)
	for i, w := range want {
		e, ok, err := ed.Get(w.path)
		if err != nil {
			return 0, err
		}
		if !ok || !strings.HasPrefix(e.ID.String(), w.id) {
			return i, nil
		}
	}
	return -1, nil
}
