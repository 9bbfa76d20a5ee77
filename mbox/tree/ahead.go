package tree

import (
	"context"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// readAhead unpacks the files that the patches behind the first will ask for, so
// that they are at hand by then: unpacking takes more time than applying, and
// there is mostly a second processor. What is read is what the tree has; an object
// that cannot be read is left to the patch that needs it. stop ends it and must
// be called.
func (r *Repo) readAhead(ctx context.Context, tree plumbing.Hash, patches []*parsed) (stop func()) {
	if len(patches) < 2 {
		return func() {}
	}
	seen := map[string]bool{}
	for i := range patches[0].files {
		seen[patches[0].files[i].Old] = true
	}
	var names []string
	for _, p := range patches[1:] {
		for i := range p.files {
			if old := p.files[i].Old; old != "" && !seen[old] {
				seen[old] = true
				names = append(names, old)
			}
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		ed := r.objects.Edit(tree)
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			if e, ok, err := ed.Get(name); err == nil && ok && !e.IsDir() && !e.IsModule() {
				_, _ = r.objects.Blob(e.ID)
			}
		}
	})
	return func() {
		cancel()
		reading.Wait()
	}
}
