package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/eval"
	"patchbench/bot/eval/resume"
	"patchbench/store"
	"patchbench/store/storetest"
)

// A queued series is evaluated as its project and its command want, and answered.
func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var there bool
		w.evaluate = func(_ context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
			there = isFolder(o.WorkDir)
			return w.keep(in, o, store.StoppedDecided)
		}
		task := w.decide("one")
		end := w.worker("a", nil)
		after(10 * time.Second)
		k := w.state(task.ID)
		if k.State != store.Done || k.Evaluation == "" || k.Worker != "a/0" || k.Attempts != 1 {
			t.Errorf("task is %s (%s) by %q, evaluation %q, %d attempts", k.State, k.Reason, k.Worker, k.Evaluation, k.Attempts)
		}
		o := w.options[0]
		type chosen struct {
			Repo, Base, Branch, Suite, Text, Benchmarks string
			Budget                                      time.Duration
			Margin                                      float64
			Unsafe                                      bool
			Most                                        bench.Limits
		}
		most := bench.Limits{MemoryBytes: 1 << 30, Processes: 99, DiskBytes: 2 << 30, OutputBytes: 3 << 20, Timeout: 5 * time.Minute}
		want := chosen{"/nowhere/kit.git", "v1.0", "next", "/etc/kit.toml", "[[benchmark]]\n", `^(?:hash|a\.b)(?:\{|$)`, 4 * time.Minute, 0.02, false, most}
		got := chosen{o.Repo, o.Base, o.Branch, o.SuiteName, string(o.SuiteText), o.Benchmarks.String(), o.Budget, o.Margin, o.Sandbox.Unsafe, o.Most}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("options (-want +got):\n%s", d)
		}
		if !there {
			t.Errorf("work folder %s was not there, or not empty", o.WorkDir)
		}
		w.noWorkFolders()
		l := w.letters()
		if len(l) != 1 || l[0].State != store.LetterQueued || l[0].Task != task.ID || l[0].Key != "one" {
			t.Fatalf("letters %+v, want one, queued", l)
		}
		full, err := w.st.Letter(t.Context(), l[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(full.Body); !strings.Contains(text, "https://bench.example.org/evaluations/"+k.Evaluation) && !strings.Contains(text, "To: Some Author") {
			t.Errorf("letter:\n%s", text)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// On each database a task goes through the queue: one that is superseded while it
// runs, and the one that takes its place.
func TestEachStore(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		w := newWorldOn(t, st)
		w.poll = 100 * time.Millisecond
		began := make(chan struct{}, 2)
		w.evaluate = func(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
			began <- struct{}{}
			if in.Series.MessageID == "one" {
				return w.untilEnd(ctx, in, o)
			}
			return w.keep(in, o, store.StoppedDecided)
		}
		one := w.decide("one")
		end := w.worker("a", nil)
		<-began
		two := w.decide("two", "one")
		<-began
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"one begins", "one is interrupted", "two begins"}, w.happened()); d != "" {
			t.Errorf("happened (-want +got):\n%s", d)
		}
		if a, b := w.state(one.ID).State, w.state(two.ID).State; a != store.Superseded || b != store.Done {
			t.Errorf("the first is %s, the second %s", a, b)
		}
		if l := w.letters(); len(l) != 1 || l[0].Key != "two" {
			t.Errorf("letters %+v, want one of the second", l)
		}
	})
}

// A new version, or somebody's word, ends the running evaluation within seconds.
func TestEnded(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *world, id int64)
		want []string
		as   store.State
	}{
		"superseded": {func(w *world, _ int64) { w.decide("two", "one") },
			[]string{"one begins", "one is interrupted", "two begins"}, store.Superseded},
		"stopped": {func(w *world, id int64) {
			if err := w.st.End(context.Background(), id, store.Stopped, "by a command"); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"one begins", "one is interrupted"}, store.Stopped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.poll = time.Second
				w.evaluate = func(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
					if in.Series.MessageID == "one" {
						return w.untilEnd(ctx, in, o)
					}
					return w.keep(in, o, store.StoppedDecided)
				}
				task := w.decide("one")
				end := w.worker("a", nil)
				after(30 * time.Second)
				if k := w.state(task.ID); k.State != store.Running || k.Progress != "measure: 12 of 80" {
					t.Fatalf("task is %s: %q, want it running", k.State, k.Progress)
				}
				c.end(w, task.ID)
				after(5 * time.Second)
				if d := cmp.Diff(c.want, w.happened()); d != "" {
					t.Errorf("happened (-want +got):\n%s", d)
				}
				k := w.state(task.ID)
				if k.State != c.as {
					t.Errorf("task is %s, want %s", k.State, c.as)
				}
				for _, l := range w.letters() {
					if l.Task == task.ID {
						t.Errorf("it is answered: %s", l.Subject)
					}
				}
				if err := end(); err != nil {
					t.Error(err)
				}
				w.noWorkFolders()
			})
		})
	}
}

// What is at fault here is tried three times, with pauses; what no second attempt
// can mend is not tried again. Nothing of it is mailed.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fail   func() (*store.Evaluation, error)
		tries  int
		reason string
	}{
		"ours":  {func() (*store.Evaluation, error) { return nil, errors.New("disk is gone") }, 3, "disk is gone"},
		"panic": {func() (*store.Evaluation, error) { panic("index out of range") }, 3, "panic: index out of range"},
		"owner's": {func() (*store.Evaluation, error) { return nil, &eval.InputError{Err: errors.New("no suite")} },
			1, "no suite"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.evaluate = func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error) { return c.fail() }
				task := w.decide("one")
				end := w.worker("a", nil)
				after(30 * time.Second)
				if c.tries > 1 {
					if k := w.state(task.ID); k.State != store.Queued || !strings.Contains(k.Reason, "attempt 1: "+c.reason) {
						t.Errorf("after the first attempt: %s (%s)", k.State, k.Reason)
					}
				}
				after(7 * time.Minute)
				if got := len(w.happened()); got != c.tries {
					t.Errorf("tried %d times, want %d: %q", got, c.tries, w.happened())
				}
				if k := w.state(task.ID); k.State != store.Failed || k.Reason != c.reason {
					t.Errorf("task is %s (%s), want failed (%s)", k.State, k.Reason, c.reason)
				}
				if l := w.letters(); len(l) > 0 {
					t.Errorf("letters %+v, want none", l)
				}
				w.noWorkFolders()
				// By hand it is tried again.
				w.evaluate = nil
				if err := w.st.Retry(t.Context(), task.ID); err != nil {
					t.Fatal(err)
				}
				after(10 * time.Second)
				if k := w.state(task.ID); k.State != store.Done {
					t.Errorf("tried by hand: %s (%s)", k.State, k.Reason)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A task that this configuration cannot evaluate fails, and says why.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world) *store.Task
		reason string
	}{
		"no project": {func(w *world) *store.Task { w.cfg.Projects[0].Name = "other"; return w.decide("one") }, `project "kit" is not in the configuration`},
		"no github": {func(w *world) *store.Task {
			return w.queue(store.KindPull, "o/r#1@0", store.EncodePayload(store.PullPayload{}))
		}, "there is no [github]"},
		"damaged": {func(w *world) *store.Task { return w.queue(store.KindMail, "one", []byte("damaged")) }, "decode payload"},
		"unknown": {func(w *world) *store.Task { return w.queue("letter", "one", nil) }, `"letter" are not known`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				task := c.change(w)
				end := w.worker("a", nil)
				after(10 * time.Second)
				if k := w.state(task.ID); k.State != store.Failed || !strings.Contains(k.Reason, c.reason) {
					t.Errorf("task is %s (%s), want failed (%s)", k.State, k.Reason, c.reason)
				}
				if got := w.happened(); len(got) > 0 {
					t.Errorf("%q happened", got)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A worker that is told to end hands its task back, and the next one goes on with it.
func TestHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.evaluate = w.untilEnd
		task := w.decide("one")
		end := w.worker("a", nil)
		after(30 * time.Second)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		k := w.state(task.ID)
		if k.State != store.Queued || k.Attempts != 0 || !strings.Contains(k.Reason, "handed back by a") {
			t.Errorf("task is %s (%s) after %d attempts, want it queued", k.State, k.Reason, k.Attempts)
		}
		w.noWorkFolders()
		w.evaluate = nil
		end = w.worker("b", nil)
		after(10 * time.Second)
		if d := cmp.Diff([]string{"one begins", "one is interrupted", "one goes on"}, w.happened()); d != "" {
			t.Errorf("happened (-want +got):\n%s", d)
		}
		if a, b := w.options[0], w.options[1]; a.ID == "" || b.Resume != a.ID || a.Seed != b.Seed {
			t.Errorf("evaluation %q with seed %d was continued as %q with %d", a.ID, a.Seed, b.Resume, b.Seed)
		}
		if k := w.state(task.ID); k.State != store.Done || k.Evaluation != w.options[0].ID {
			t.Errorf("task is %s with evaluation %q", k.State, k.Evaluation)
		}
		if l := w.letters(); len(l) != 1 {
			t.Errorf("%d letters, want one", len(l))
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// A worker that was killed leaves its task in some state: the next one comes to the
// same end from each.
func TestKilled(t *testing.T) {
	ctx := context.Background()
	claim := func(w *world, id int64) *store.Task {
		k, err := w.st.Claim(ctx, id, "killed", lease)
		if err != nil {
			w.t.Fatal(err)
		}
		return k
	}
	// id is that which the killed worker gave the evaluation.
	id := func(w *world, k *store.Task) eval.Options {
		j := &job{Worker: New(w.st, nil, Options{}), task: k}
		return eval.Options{ID: j.id(0), Seed: seedOf(k.Key) % seeds, Now: time.Now}
	}
	for name, c := range map[string]struct {
		leave func(w *world, id int64)
		want  []string
	}{
		"before it took it": {func(*world, int64) {}, []string{"one begins"}},
		"behind the claim":  {func(w *world, id int64) { claim(w, id) }, []string{"one begins"}},
		"here, behind the claim": {func(w *world, id int64) {
			if _, err := w.st.Claim(ctx, id, "b/0", time.Hour); err != nil { // a lease is not waited for here
				w.t.Fatal(err)
			}
		}, []string{"one begins"}},
		"while measuring": {func(w *world, task int64) {
			if _, err := w.keep(eval.Input{}, id(w, claim(w, task)), store.StoppedInterrupted); err != nil {
				w.t.Fatal(err)
			}
		}, []string{"one goes on"}},
		"behind the evaluation": {func(w *world, task int64) {
			if _, err := w.keep(eval.Input{}, id(w, claim(w, task)), store.StoppedDecided); err != nil {
				w.t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				task := w.decide("one")
				c.leave(w, task.ID)
				end := w.worker("b", nil)
				after(2 * time.Minute)
				if d := cmp.Diff(c.want, w.happened()); d != "" {
					t.Errorf("happened (-want +got):\n%s", d)
				}
				k := w.state(task.ID)
				if k.State != store.Done || k.Worker != "b/0" {
					t.Errorf("task is %s (%s) by %s", k.State, k.Reason, k.Worker)
				}
				if l := w.letters(); len(l) != 1 || l[0].Key != "one" {
					t.Errorf("letters %+v, want one", l)
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A task that the bot dies of again and again waits longer each time, and leaves
// the machine to others.
func TestMourning(t *testing.T) {
	var got []time.Duration
	for n := range deaths {
		got = append(got, mourning(n+1))
	}
	m := time.Minute
	if want := []time.Duration{0, 0, m, 2 * m, 4 * m, 8 * m, 16 * m, 32 * m, 64 * m, 64 * m}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

// An evaluation that ends the bot each time is given up.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		task := w.decide("one")
		for range deaths {
			if _, err := w.st.Claim(t.Context(), task.ID, "killed", lease); err != nil {
				t.Fatal(err)
			}
			after(2 * lease)
		}
		end := w.worker("b", nil)
		after(time.Minute)
		if k := w.state(task.ID); k.State != store.Failed || k.Reason != "the bot ended 10 times while it evaluated this" {
			t.Errorf("task is %s (%s)", k.State, k.Reason)
		}
		if got := w.happened(); len(got) > 0 {
			t.Errorf("%q happened", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// A record that cannot be continued stays, and the evaluation is begun anew.
func TestBegunAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		task := w.decide("one")
		w.evaluate = w.untilEnd
		end := w.worker("a", nil)
		after(30 * time.Second)
		if err := end(); err != nil {
			t.Fatal(err)
		}
		w.evaluate = func(_ context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
			if o.Resume != "" {
				return nil, &resume.Error{ID: o.Resume, Why: "the kernel was 6.1 and is 6.2"}
			}
			return w.keep(in, o, store.StoppedDecided)
		}
		end = w.worker("b", nil)
		after(10 * time.Second)
		if d := cmp.Diff([]string{"one begins", "one is interrupted", "one goes on", "one begins"}, w.happened()); d != "" {
			t.Errorf("happened (-want +got):\n%s", d)
		}
		if a, c := w.options[0], w.options[2]; a.ID == c.ID || w.state(task.ID).Evaluation != c.ID {
			t.Errorf("evaluations %s and %s, kept %s", a.ID, c.ID, w.state(task.ID).Evaluation)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// An evaluation may take only as long as the configuration says.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.cfg.Worker.Timeout = 2 * time.Minute
		w.evaluate = w.untilEnd
		task := w.decide("one")
		end := w.worker("a", nil)
		after(150 * time.Second)
		if k := w.state(task.ID); k.State != store.Failed || !strings.Contains(k.Reason, "after 2m0s, which [worker] timeout sets") {
			t.Errorf("task is %s (%s)", k.State, k.Reason)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// Two workers of one machine share its slots, and none is idle while there is one.
func TestSlots(t *testing.T) {
	for _, slots := range []int{1, 2} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.cfg.Worker.Slots = slots
				running, most := 0, 0
				uids := map[int]bool{}
				w.evaluate = func(_ context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
					w.mu.Lock()
					running++
					most = max(most, running)
					uids[o.Sandbox.Slot] = true
					w.mu.Unlock()
					time.Sleep(20 * time.Second)
					w.mu.Lock()
					running--
					w.mu.Unlock()
					return w.keep(in, o, store.StoppedDecided)
				}
				ends := []func() error{w.worker("a", nil), w.worker("b", nil)}
				var ids []int64
				for i := range 6 {
					ids = append(ids, w.decide(fmt.Sprintf("s%d", i)).ID)
				}
				after(4 * time.Minute)
				for _, id := range ids {
					if k := w.state(id); k.State != store.Done || k.Attempts != 1 {
						t.Errorf("task %d is %s (%s) after %d attempts", id, k.State, k.Reason, k.Attempts)
					}
				}
				if most != slots || len(uids) != slots {
					t.Errorf("%d at once in %d slots, want %d", most, len(uids), slots)
				}
				for _, end := range ends {
					if err := end(); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// What was measured without a sandbox, or cannot be answered, is kept and not mailed.
func TestNotMailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.evaluate = func(_ context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
			e, err := w.keep(in, o, store.StoppedDecided)
			e.Unsafe = true
			return e, err
		}
		task := w.decide("one")
		end := w.worker("a", nil)
		after(10 * time.Second)
		if k := w.state(task.ID); k.State != store.Done || !strings.Contains(k.Reason, "not answered: ") || !strings.Contains(k.Reason, "without a sandbox") {
			t.Errorf("task is %s (%s)", k.State, k.Reason)
		}
		if l := w.letters(); len(l) > 0 {
			t.Errorf("letters %+v, want none", l)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// The watching ends an evaluation whose task another worker has, or whose lease it
// could not renew.
func TestKeep(t *testing.T) {
	t.Run("fence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			task := w.decide("one")
			mine, err := w.st.Claim(t.Context(), task.ID, "a", lease)
			if err != nil {
				t.Fatal(err)
			}
			after(lease + time.Second) // this process was stopped for long
			if _, err := w.st.Claim(t.Context(), task.ID, "b", time.Hour); err != nil {
				t.Fatal(err)
			}
			ctx, stop := New(w.st, nil, Options{}).keep(t.Context(), mine, func() string { return "" }, func(string) {})
			defer stop()
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, store.ErrFence) {
				t.Errorf("ended by %v, want %v", err, store.ErrFence)
			}
		})
	})
	t.Run("lease", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			task := w.decide("one")
			mine, err := w.st.Claim(t.Context(), task.ID, "a", lease)
			if err != nil {
				t.Fatal(err)
			}
			w.st.Close() // all that it is asked fails from here
			ctx, stop := New(w.st, nil, Options{}).keep(t.Context(), mine, func() string { return "" }, func(string) {})
			defer stop()
			<-ctx.Done()
			if err := context.Cause(ctx); !errors.Is(err, errLease) {
				t.Errorf("ended by %v, want %v", err, errLease)
			}
		})
	})
}

// The letter about a series is the same whichever of its parts came first.
func TestLetterKey(t *testing.T) {
	for key, want := range map[string]string{
		"mail:head@x.test":   "mail:head@x.test",
		"mail:part2@x.test":  "mail:head@x.test",
		"run:order@x.test":   "run:order@x.test",
		"run:order@x.test:2": "run:order@x.test:2",
	} {
		m := &mail{job: &job{task: &store.Task{Key: key}}, p: store.MailPayload{Thread: store.Thread{MessageID: "head@x.test"}}}
		if got := m.letterKey(); got != want {
			t.Errorf("task %s: letter %s, want %s", key, got, want)
		}
	}
}
