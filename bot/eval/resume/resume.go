// Package resume finds the interrupted evaluation that a new one goes on with, and
// refuses it if their versions, suite, machine, builds or compiler are not the same:
// a comparison never crosses two. In go the new evaluation as it is before anything
// is built, and a store; out comes the old one. Its samples are not read here.
package resume

import (
	"context"
	"fmt"

	"patchbench/bench"
	"patchbench/bench/sample"
	"patchbench/store"
)

// Last stands for the newest interrupted evaluation of the same input.
const Last = "last"

// Error says why an evaluation is not continued.
type Error struct {
	ID  string
	Why string
}

func (e *Error) Error() string {
	if e.ID == Last {
		return "continue an evaluation: " + e.Why
	}
	return fmt.Sprintf("continue evaluation %s: %s", e.ID, e.Why)
}

// Find reads the evaluation of this id, or the Last one, and refuses it if now does
// not go on with it. The error is an *Error unless the store is at fault.
func Find(ctx context.Context, st *store.Store, id string, now *store.Evaluation) (*store.Evaluation, error) {
	old, err := interrupted(ctx, st, id, now)
	if err != nil {
		return nil, err
	}
	if why := differs(old, now); why != "" {
		return nil, &Error{old.ID, why}
	}
	return old, nil
}

func interrupted(ctx context.Context, st *store.Store, id string, now *store.Evaluation) (*store.Evaluation, error) {
	if id != Last {
		e, err := st.Evaluation(ctx, id)
		if err == nil && e.Stopped != store.StoppedInterrupted {
			return nil, &Error{e.ID, "it was not interrupted, but stopped because it was " + stopWords[e.Stopped]}
		}
		return e, err
	}
	list, err := st.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if s.Stopped != store.StoppedInterrupted {
			continue
		}
		e, err := st.Evaluation(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if sameVersions(e.Versions, now.Versions) == "" && e.Suite.Digest == now.Suite.Digest {
			return e, nil
		}
	}
	return nil, &Error{Last, "no interrupted one of this series and suite is in the store; bot report lists what is there"}
}

var stopWords = map[string]string{store.StoppedDecided: "decided", store.StoppedBudget: "out of budget"}

// differs says in what an evaluation is not the one that it should continue. Its seed
// and fixed rounds may be left out, 0.
func differs(old, now *store.Evaluation) string {
	if why := sameVersions(old.Versions, now.Versions); why != "" {
		return why
	}
	switch {
	case now.Seed != 0 && now.Seed != old.Seed:
		return fmt.Sprintf("its seed is %d, not %d: leave out the seed", old.Seed, now.Seed)
	case now.FixedRounds != 0 && now.FixedRounds != old.FixedRounds:
		return fmt.Sprintf("it was not to have %d rounds: leave out the number of rounds", now.FixedRounds)
	}
	a, b := old.Host, now.Host
	for _, x := range []struct{ what, old, now string }{
		{"the suite", old.Suite.Digest, now.Suite.Digest},
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

// SameBuild refuses a build that is not the one that was measured before. Old is nil
// for an evaluation that continues none, here and below.
func SameBuild(old *store.Evaluation, v *bench.Version) error {
	if old == nil {
		return nil
	}
	for _, o := range old.Versions {
		if o.N == v.N && o.Digest != "" && o.Digest != v.Digest {
			return &Error{old.ID, v.Name + " builds to other files than before: its build is not reproducible, or the toolchain changed; start a new evaluation"}
		}
	}
	return nil
}

// SameCompiler refuses another compiler than before.
func SameCompiler(old *store.Evaluation, now string) error {
	if old == nil || old.Host.Compiler == "" || old.Host.Compiler == now {
		return nil
	}
	return &Error{old.ID, fmt.Sprintf("the compiler was %s and is %s: start a new evaluation", old.Host.Compiler, now)}
}

// SameInstructions refuses another way to count instructions than before: figures of
// two ways differ.
func SameInstructions(old *store.Evaluation, now string) error {
	if old == nil || byPerf(old.Host.Instructions) == byPerf(now) || old.Host.Instructions == "" {
		return nil
	}
	return &Error{old.ID, fmt.Sprintf("it has %s, and now there are %s: start a new evaluation", old.Host.Instructions, now)}
}

func byPerf(how string) bool { return how == sample.ByPerf }
