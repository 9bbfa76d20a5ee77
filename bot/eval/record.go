package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/headline"
	"patchbench/bench/sample"
	"patchbench/bot/eval/edits"
	"patchbench/bot/eval/resume"
	"patchbench/mbox/tree"
	"patchbench/store"
)

// begin fills in all that is known before anything is built.
func (r *run) begin(in Input, sandboxDigest string) {
	e := &store.Evaluation{
		ID: r.ID, Created: r.Now().UTC().Truncate(time.Second), Series: in.Series, Base: r.stack.Base,
		Suite: store.SuiteName{Name: r.suite.Name, Digest: r.suite.Digest},
		Host:  sample.HostFacts(r.sandbox.Facts().Name, sandboxDigest), Seed: r.Seed, Margin: r.Margin, FixedRounds: r.Rounds,
		Conflict: r.stack.Conflict, NotTried: r.stack.NotTried,
		// Until the end is reached: the record may outlive a killed process.
		Verdict: bench.Unclear, Headline: "unclear: unfinished: the bot ended before this evaluation did",
		Stopped: store.StoppedInterrupted, Unsafe: r.sandbox.Facts().Unsafe,
	}
	if len(r.cut) > 0 {
		e.Warnings = append(e.Warnings, "the suite asks for more than is given here; cut: "+strings.Join(r.cut, ", "))
	}
	r.total = len(r.stack.Steps)
	if in.Series != nil {
		r.total = in.Series.Total
		if !in.Series.Complete {
			e.Warnings = append(e.Warnings, fmt.Sprintf("series incomplete: %d of %d patches; missing %s",
				in.Series.Received, in.Series.Total, numbers(in.Series.Missing)))
		}
	}
	e.Versions = []bench.Version{{N: 0, Name: "base", Commit: r.stack.Base.Commit, Tree: r.baseTree, State: bench.NotBuilt}}
	for _, st := range r.stack.Steps {
		e.Versions = append(e.Versions, bench.Version{
			N: st.N, Name: fmt.Sprintf("%d/%d", st.N, r.total), Subject: st.Subject,
			Commit: st.Commit, Tree: st.Tree, State: bench.NotBuilt, Added: st.Added, Deleted: st.Deleted,
		})
	}
	if r.values != nil {
		// What the author says of his patches is not about them.
		e.CompareParam, e.Series, e.Versions = r.CompareParam, nil, r.valueVersions()
	}
	if r.Command != nil {
		e.Command = r.Command(e.Base)
	}
	r.e = e
	if e.Unsafe {
		r.warn("measured without a sandbox: this result cannot be mailed")
	}
	if len(r.extra) > 0 {
		r.warn(fmt.Sprintf("built with patches that are not judged, on base and on every version: %s", strings.Join(r.extra, ", ")))
	}
	for _, st := range r.stack.Steps {
		switch {
		case st.How == tree.HowFuzz:
			r.warn(fmt.Sprintf("%d/%d applied with fuzz, which may be the wrong place: %s", st.N, r.total, strings.Join(st.Notes, "; ")))
		case st.How == tree.HowCommit && len(st.Notes) > 0:
			r.warn(fmt.Sprintf("%d/%d is %s", st.N, r.total, strings.Join(st.Notes, "; ")))
		}
	}
}

// warn adds a warning, once.
func (r *run) warn(text string) {
	if !slices.Contains(r.e.Warnings, text) {
		r.e.Warnings = append(r.e.Warnings, text)
	}
}

// warnOfEdits tells of what the series changes beside what it is measured for.
func (r *run) warnOfEdits() error {
	if r.values != nil {
		return nil // all are of one version
	}
	var list []string
	seen := map[string]bool{}
	before := r.stack.Base.Commit
	for _, s := range r.stack.Steps {
		files, err := r.repo.Changed(before, s.Commit)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !seen[f] {
				seen[f] = true
				list = append(list, f)
			}
		}
		before = s.Commit
	}
	for _, text := range edits.Warnings(list, r.suite, r.suiteFile) {
		r.warn(text)
	}
	return nil
}

// goOn takes up the evaluation that Options.Resume names: its seed, rounds,
// samples and failures become those of this run.
func (r *run) goOn(ctx context.Context) error {
	if r.Store == nil {
		return errors.New("continue an evaluation: there is no store to read it from")
	}
	old, err := resume.Find(ctx, r.Store, r.Resume, r.e)
	if err != nil {
		return err
	}
	for s, err := range r.Store.Samples(ctx, old.ID) {
		if err != nil {
			return err
		}
		r.samples = append(r.samples, s)
	}
	r.resumed = old
	r.ID, r.Seed, r.Margin, r.Rounds = old.ID, old.Seed, old.Margin, old.FixedRounds
	e := r.e
	e.ID, e.Created, e.Seed, e.Margin, e.FixedRounds, e.Command = old.ID, old.Created, old.Seed, old.Margin, old.FixedRounds, old.Command
	e.Host.LoadBefore, e.Host.PressureBefore, e.Host.Compiler = old.Host.LoadBefore, old.Host.PressureBefore, old.Host.Compiler
	e.Host.Instructions = old.Host.Instructions
	e.BuildSeconds, e.MeasureSeconds = old.BuildSeconds, old.MeasureSeconds
	e.Failures = slices.Clone(old.Failures)
	for _, w := range old.Warnings {
		r.warn(w)
	}
	r.warn(fmt.Sprintf("interrupted after %d rounds, continued on %s UTC", old.Rounds, r.Now().UTC().Format("2006-01-02 15:04")))
	return nil
}

// finish judges what was measured, and keeps the evaluation.
func (r *run) finish(ctx context.Context) (*store.Evaluation, error) {
	if ctx.Err() != nil {
		r.e.Stopped = store.StoppedInterrupted
		ctx = context.WithoutCancel(ctx)
	} else if r.e.Stopped == store.StoppedInterrupted {
		r.e.Stopped = store.StoppedDecided
	}
	r.judge(true)
	r.e.Claims = r.claims()
	r.e.Verdict, r.e.Headline = r.summary()
	r.e.Host.LoadAfter, r.e.Host.PressureAfter = sample.Pressure()
	return r.e, r.keep(ctx, nil)
}

// summary is the verdict and the headline: what compare says of the figures, with
// what kept the series from being evaluated as a whole put before it.
func (r *run) summary() (bench.Verdict, string) {
	verdict, line := headline.Of(r.e.Versions, r.e.Results, r.e.Failures)
	var why string
	switch c := r.stack.Conflict; {
	case c != nil:
		why = fmt.Sprintf("failed: %d/%d does not apply", c.N, r.total)
	case len(r.stack.Submodules) > 0:
		return bench.FailedSeries, "failed: " + r.nothingToRun()
	case len(r.e.Versions) == 1 && r.e.Series != nil:
		return bench.FailedSeries, fmt.Sprintf("failed: incomplete: %d of %d patches came", r.e.Series.Received, r.total)
	case r.e.Stopped == store.StoppedInterrupted && r.e.Rounds == 0:
		return bench.Unclear, "unclear: interrupted before the first round was complete"
	case r.e.Series != nil && len(r.e.Series.Missing) > 0:
		// Nobody should merge on the word of a part.
		return verdict, headline.Incomplete(r.e.Series.Received, r.total, len(r.e.Versions)-1, line)
	default:
		return verdict, line
	}
	if len(r.e.Versions) > 1 {
		why += "; before it, " + line
	}
	return bench.FailedSeries, why
}

// keep stores the evaluation as it stands and the samples that are new.
func (r *run) keep(ctx context.Context, samples []bench.Sample) error {
	if r.Store == nil {
		return nil
	}
	err := r.Store.Save(ctx, r.e)
	if len(samples) > 0 {
		err = errors.Join(err, r.Store.AddSamples(ctx, r.e.ID, samples))
	}
	return err
}
