package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/fixture"
	"patchbench/bench/sample/plan"
	"patchbench/bench/sandbox"
)

// runner is a box with a runner in it: a *sandbox.Runner.
type runner interface {
	DoAll(context.Context, []sandbox.Job) ([]sandbox.Result, error)
	Worn() bool
	Close() error
}

// starter starts a box.
type starter func(context.Context, sandbox.Box) (runner, error)

// slot is a version in its box.
type slot struct {
	Version
	box      sandbox.Box
	fixtures *fixture.Laid
	run      runner // nil: it ended, and no other could be started
	// dirty says that /tmp may hold what an earlier run left.
	dirty bool
}

func boxOf(v Version, suite *bench.Suite) (sandbox.Box, error) {
	l := suite.Limits
	box := sandbox.Box{Limits: sandbox.Limits{
		MemoryBytes: l.MemoryBytes,
		Processes:   l.Processes,
		DiskBytes:   l.DiskBytes,
		OutputBytes: l.OutputBytes,
	}}
	mounts := map[string]string{"src": srcDir, "out": outDir}
	if slices.ContainsFunc(suite.Benchmarks, func(b bench.Benchmark) bool { return !b.Check.IsZero() }) {
		mounts[checkName] = checkDir
		if err := os.MkdirAll(filepath.Join(v.Dir, checkName), 0o755); err != nil {
			return box, fmt.Errorf("sample %s: %w", v, err)
		}
	}
	for name, inside := range mounts {
		dir := filepath.Join(v.Dir, name)
		if st, err := os.Stat(dir); err != nil {
			return box, fmt.Errorf("sample %s: %w", v, err)
		} else if !st.IsDir() {
			return box, fmt.Errorf("sample %s: %w", v, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a folder")})
		}
		box.Mounts = append(box.Mounts, sandbox.Mount{Host: dir, Inside: inside})
	}
	slices.SortFunc(box.Mounts, func(a, b sandbox.Mount) int { return strings.Compare(b.Inside, a.Inside) })
	return box, nil
}

// renew puts a new box in the place of a version's.
func (s *Sampler) renew(ctx context.Context, sl *slot) error {
	if sl.run != nil {
		// What remains of a broken box is told by what broke it.
		_ = sl.run.Close()
		sl.run = nil
	}
	r, err := s.start(ctx, sl.box)
	if err != nil {
		return fmt.Errorf("start another box: %w", err)
	}
	sl.run, sl.dirty = r, false
	return nil
}

// part carries out programs of a benchmark. These are strangers' programs:
// without a sandbox they can reach the runner, and those after which it is gone
// have failed, with a new box for what comes next. The results are nil then. The
// error is ours.
func (s *Sampler) part(ctx context.Context, sl *slot, jobs ...sandbox.Job) ([]sandbox.Result, *bench.Failed, error) {
	start := s.now()
	res, err := sl.do(ctx, jobs...)
	if err == nil {
		return res, nil, nil
	}
	// A runner that did not come back in time was ended by us.
	var limit time.Duration
	for _, j := range jobs {
		limit += cmp.Or(j.Timeout, sandboxTimeout)
	}
	late := s.now().Sub(start) > limit
	if late || ctx.Err() != nil || sl.alive(ctx) || ctx.Err() != nil {
		return nil, nil, err
	}
	if rerr := s.renew(ctx, sl); rerr != nil {
		return nil, nil, fmt.Errorf("%w; %w", err, rerr)
	}
	return nil, &bench.Failed{Status: -1, Reason: "it ended the runner that started it"}, nil
}

// alive says whether a version's runner still carries out commands.
func (sl *slot) alive(ctx context.Context) bool {
	_, err := sl.do(ctx, sandbox.Job{Command: sandbox.Command{Args: []string{"true"}, Timeout: time.Minute}})
	return err == nil
}

// ready gives the next run a box as no run has left it.
func (s *Sampler) ready(ctx context.Context, sl *slot) error {
	empty := func() error {
		_, err := sl.do(ctx, s.job(plan.Program{Program: bench.Program{Args: []string{"true"}}}))
		return err
	}
	if sl.dirty {
		if err := empty(); err != nil {
			return err
		}
	}
	if sl.run != nil && sl.run.Worn() {
		if err := s.renew(ctx, sl); err != nil {
			return err
		}
		// A runner's first start of a program takes longer than the others.
		if err := empty(); err != nil {
			return err
		}
	}
	return sl.fixtures.Fresh()
}

// do runs programs in the version's box and remembers whether they may have left
// something in /tmp, which must not reach the next run.
func (sl *slot) do(ctx context.Context, jobs ...sandbox.Job) ([]sandbox.Result, error) {
	if sl.run == nil {
		return nil, fmt.Errorf("%s has no box", sl.Version)
	}
	sl.dirty = true
	res, err := sl.run.DoAll(ctx, jobs)
	if err == nil {
		sl.dirty = jobs[len(jobs)-1].KeepTmp
	}
	return res, err
}

// job is a program of a benchmark as the box starts it.
func (s *Sampler) job(p plan.Program) sandbox.Job {
	return sandbox.Job{Command: sandbox.Command{
		Args:    p.Argv(),
		Env:     slices.Concat([]string{"SRC=" + srcDir, "OUT=" + outDir}, s.slots[0].fixtures.Env(), p.Env),
		Dir:     srcDir,
		Stdin:   stdin(p.Stdin),
		Timeout: cmp.Or(p.Timeout, s.suite.Limits.Timeout),
	}}
}

// stdin is the path inside the box of a file named relative to the source folder.
func stdin(name string) string {
	if name == "" {
		return ""
	}
	return path.Join(srcDir, name)
}
