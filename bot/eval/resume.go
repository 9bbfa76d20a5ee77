package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/store"
)

// ResumeLast stands for the newest interrupted evaluation of the same input.
const ResumeLast = "last"

// ResumeError says why an evaluation is not continued.
type ResumeError struct {
	ID  string
	Why string
}

func (e *ResumeError) Error() string {
	if e.ID == ResumeLast {
		return "continue an evaluation: " + e.Why
	}
	return fmt.Sprintf("continue evaluation %s: %s", e.ID, e.Why)
}

// resume takes up the evaluation that Options.Resume names: its seed, rounds,
// samples and failures become those of this run, whose versions, suite and
// machine must be the same. A comparison never crosses two.
func (r *run) resume(ctx context.Context) error {
	if r.Store == nil {
		return errors.New("continue an evaluation: there is no store to read it from")
	}
	old, err := r.interrupted(ctx)
	if err != nil {
		return err
	}
	if why := r.differs(old); why != "" {
		return &ResumeError{old.ID, why}
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

// interrupted finds the evaluation to continue.
func (r *run) interrupted(ctx context.Context) (*store.Evaluation, error) {
	if r.Resume != ResumeLast {
		e, err := r.Store.Evaluation(ctx, r.Resume)
		if err == nil && e.Stopped != store.StoppedInterrupted {
			return nil, &ResumeError{e.ID, "it was not interrupted, but stopped because it was " + stopWords[e.Stopped]}
		}
		return e, err
	}
	list, err := r.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Stopped != store.StoppedInterrupted {
			continue
		}
		e, err := r.Store.Evaluation(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if sameVersions(e.Versions, r.e.Versions) == "" && e.Suite.Digest == r.e.Suite.Digest {
			return e, nil
		}
	}
	return nil, &ResumeError{ResumeLast, "no interrupted one of this series and suite is in the store; bot report lists what is there"}
}

var stopWords = map[string]string{store.StoppedDecided: "decided", store.StoppedBudget: "out of budget"}

// differs says in what this run is not the evaluation that it should continue.
func (r *run) differs(old *store.Evaluation) string {
	if why := sameVersions(old.Versions, r.e.Versions); why != "" {
		return why
	}
	switch {
	case r.Seed != 0 && r.Seed != old.Seed:
		return fmt.Sprintf("its seed is %d, not %d: leave out the seed", old.Seed, r.Seed)
	case r.Rounds != 0 && r.Rounds != old.FixedRounds:
		return fmt.Sprintf("it was not to have %d rounds: leave out the number of rounds", r.Rounds)
	}
	a, b := old.Host, r.e.Host
	for _, x := range []struct{ what, old, now string }{
		{"the suite", old.Suite.Digest, r.e.Suite.Digest},
		{"the machine", a.Name, b.Name},
		{"the processor", fmt.Sprintf("%s, %d cores", a.CPU, a.Cores), fmt.Sprintf("%s, %d cores", b.CPU, b.Cores)},
		{"the kernel", a.Kernel, b.Kernel},
		{"the sandbox", a.Sandbox, b.Sandbox},
		{"the sandbox's digest", a.SandboxDigest, b.SandboxDigest},
	} {
		if x.old != x.now {
			return fmt.Sprintf("%s was %s and is %s: start a new evaluation", x.what, x.old, x.now)
		}
	}
	return ""
}

// sameVersions says how the versions differ, "" if they are the same trees.
func sameVersions(old, now []bench.Version) string {
	if len(old) != len(now) {
		return fmt.Sprintf("it has %d versions and this series %d: give the same mail, base and patches", len(old), len(now))
	}
	for i := range old {
		if old[i].N != now[i].N || old[i].Tree != now[i].Tree {
			return fmt.Sprintf("its %s has tree %.12s and this series' %s %.12s: give the same mail, base and patches",
				old[i].Name, old[i].Tree, now[i].Name, now[i].Tree)
		}
	}
	return ""
}

// sameBuild refuses a build that is not the one that was measured before.
func (r *run) sameBuild(v *bench.Version) error {
	if r.resumed == nil {
		return nil
	}
	for _, o := range r.resumed.Versions {
		if o.N == v.N && o.Digest != "" && o.Digest != v.Digest {
			return &ResumeError{r.ID, v.Name + " builds to other files than before: its build is not reproducible, or the toolchain changed; start a new evaluation"}
		}
	}
	return nil
}

// sameCompiler refuses another compiler than before.
func (r *run) sameCompiler(now string) error {
	if r.resumed == nil || r.resumed.Host.Compiler == "" || r.resumed.Host.Compiler == now {
		return nil
	}
	return &ResumeError{r.ID, fmt.Sprintf("the compiler was %s and is %s: start a new evaluation", r.resumed.Host.Compiler, now)}
}

// sameInstructions refuses another way to count instructions than before: figures of
// two ways differ.
func (r *run) sameInstructions(now string) error {
	if r.resumed == nil || byPerf(r.resumed.Host.Instructions) == byPerf(now) || r.resumed.Host.Instructions == "" {
		return nil
	}
	return &ResumeError{r.ID, fmt.Sprintf("it has %s, and now there are %s: start a new evaluation", r.resumed.Host.Instructions, now)}
}

func byPerf(how string) bool { return how == sample.ByPerf }

// budget is the time for measuring when none was named: with a fixed number of
// rounds it has no bound.
func (r *run) budget() {
	if r.Budget == 0 && r.Rounds == 0 {
		r.Budget = 10 * time.Minute
	}
}
