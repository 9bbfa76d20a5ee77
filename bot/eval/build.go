package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/unlink"
	"patchbench/bot/eval/resume"
	"patchbench/bot/eval/variant"
	"patchbench/mbox/tree"
)

// build checks out and builds every version. What does not build is data, kept
// with its log; a build that equals an earlier one is not kept a second time.
func (r *run) build(ctx context.Context) error {
	before, start := r.e.BuildSeconds, r.Now()
	defer func() { r.e.BuildSeconds = before + r.Now().Sub(start).Seconds() }()

	versions := r.e.Versions
	if err := r.openFields(ctx); err != nil {
		return err
	}
	r.Progress.Stage("build", len(versions))
	first := make([]map[string]int, len(r.fields)) // digest -> version that is measured
	for k, f := range r.fields {
		f.builds, first[k] = make([]bench.Build, len(versions)), map[string]int{}
	}
	for n := range versions {
		v := &versions[n]
		r.Progress.Done(n, v.Name+" "+v.Subject, leftOf(start, r.Now(), n, len(versions)))
		builds, err := r.buildVersion(ctx, v)
		if err != nil {
			return err
		}
		if err := resume.SameBuild(r.resumed, v); err != nil {
			return err
		}
		for k, b := range builds {
			same, seen := first[k][b.Digest]
			switch {
			case b.State != bench.Built:
				r.Progress.Note(v.Name + " does not build" + variant.With(r.fields[k].params))
			case seen:
				variant.Enter(v, k, b, &same)
			default:
				first[k][b.Digest] = v.N
				r.fields[k].builds[n] = b
				continue
			}
			if err := unlink.All(b.Dir); err != nil {
				return err
			}
		}
	}
	r.Progress.Done(len(versions), "", 0)
	if err := r.pristine.Close(); err != nil {
		return err
	}
	return r.keep(ctx, nil)
}

// buildOne checks out a version and builds it in one field.
func (r *run) buildOne(ctx context.Context, f *field, k int, v *bench.Version) (bench.Build, error) {
	dir := filepath.Join(r.WorkDir, r.folder(fmt.Sprintf("v%03d", v.N), k))
	// Entered, but not listed, by the uid that programs run under.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return bench.Build{}, err
	}
	if err := r.pristine.Checkout(ctx, r.commit(v.N), filepath.Join(dir, "src")); err != nil {
		if why := refused(err); why != nil {
			return bench.Build{Version: v.N, State: bench.BuildFailed, Dir: dir, LogTail: "not checked out: " + why.Error()}, nil
		}
		return bench.Build{}, fmt.Errorf("check out %s: %w", v.Name, err)
	}
	n := v.N
	if r.values != nil {
		n = 0 // of a builder of its own
	}
	b, err := f.builder(v.N).Build(ctx, n, dir)
	if err != nil {
		return bench.Build{}, fmt.Errorf("build %s: %w", v.Name, err)
	}
	b.Version = v.N
	return b, nil
}

// commit is what is built of a version.
func (r *run) commit(n int) string {
	if r.values != nil {
		n = 0
		for _, s := range r.stack.Steps {
			n = max(n, s.N)
		}
	}
	return r.stack.Commit(n)
}

// refused gives what in a version's tree is not written as a file, which is the
// code's fault like a build that fails; nil if err is another.
func refused(err error) error {
	var link *tree.LinkError
	var path *tree.PathError
	switch {
	case errors.As(err, &link):
		return link
	case errors.As(err, &path):
		return path
	}
	return nil
}

// leftOf estimates the time from the units that are done; 0 when none is.
func leftOf(start, now time.Time, done, total int) time.Duration {
	if done == 0 {
		return 0
	}
	return now.Sub(start) / time.Duration(done) * time.Duration(total-done)
}

func numbers(n []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(n), " ", ", "), "[]")
}

func keys(s *bench.Suite) string {
	var k []string
	for _, b := range s.Benchmarks {
		k = append(k, b.Key())
	}
	return strings.Join(k, ", ")
}
