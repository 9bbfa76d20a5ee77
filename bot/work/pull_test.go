package work

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bot/eval"
	"patchbench/bot/github"
	"patchbench/mbox"
	"patchbench/store"
)

// pulls knows one pull request.
type pulls struct {
	err error // of Prepare
}

func (p *pulls) Prepare(_ context.Context, pr store.PullPayload) (repo, from, to string, err error) {
	return "/mirror/" + pr.Repo, pr.Base, pr.Head, p.err
}

func (p *pulls) notice(pr store.PullPayload, text string) *store.Notice {
	return &store.Notice{Repo: pr.Repo, Number: pr.Number, Head: pr.Head, Comment: text}
}

func (p *pulls) Running(pr store.PullPayload, progress string) *store.Notice {
	return p.notice(pr, "running "+progress)
}

func (p *pulls) Failed(pr store.PullPayload, why string) *store.Notice {
	return p.notice(pr, "failed: "+why)
}

func (p *pulls) Render(e *store.Evaluation, pr store.PullPayload) (*store.Notice, error) {
	return p.notice(pr, "evaluation "+e.ID), nil
}

// comment is what should stand at the pull request now.
func (w *world) comment() string {
	w.t.Helper()
	n, err := w.st.NextNotice(context.Background(), time.Now().Add(24*time.Hour))
	if err != nil {
		w.t.Fatal(err)
	}
	if n == nil {
		return ""
	}
	n.Sent = n.Seq
	if err := w.st.SettleNotice(context.Background(), n); err != nil {
		w.t.Fatal(err)
	}
	return n.Comment
}

func TestPull(t *testing.T) {
	head, base := strings.Repeat("ab", 20), strings.Repeat("cd", 20)
	for name, c := range map[string]struct {
		prepare error
		state   store.State
		reason  string
		comment string // in the end; "ID" is the evaluation's
		after   time.Duration
	}{
		"done":       {nil, store.Done, "worse", "evaluation ID", 10 * time.Second},
		"unusable":   {fmt.Errorf("%w: 4711 commits", github.ErrPull), store.Failed, "4711 commits", "failed: not evaluated: 4711 commits", 10 * time.Second},
		"moved on":   {fmt.Errorf("fetch: %w", github.ErrMoved), store.Stopped, "fetch: ", "failed: fetch: the pull request's head is another commit by now", 10 * time.Second},
		"no network": {errors.New("no route"), store.Failed, "no route", "failed: no route", 7 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				task := w.queue(store.KindPull, "o/r#7@abc", store.EncodePayload(store.PullPayload{Repo: "o/r", Number: 7, Head: head, Base: base}))
				end := w.worker("a", &pulls{c.prepare})
				after(c.after)
				k := w.state(task.ID)
				if k.State != c.state || !strings.Contains(k.Reason, c.reason) {
					t.Errorf("task is %s (%s), want %s (%s)", k.State, k.Reason, c.state, c.reason)
				}
				if want, got := strings.Replace(c.comment, "ID", k.Evaluation, 1), w.comment(); got != want {
					t.Errorf("comment %q, want %q", got, want)
				}
				if l := w.letters(); len(l) > 0 {
					t.Errorf("letters %+v, want none", l)
				}
				if c.state == store.Done {
					if d := cmp.Diff([]string{base + ".." + head + " begins"}, w.happened()); d != "" {
						t.Errorf("happened (-want +got):\n%s", d)
					}
					if got := w.options[0].Repo; got != "/mirror/o/r" {
						t.Errorf("evaluated in %s", got)
					}
					if got := w.options[0].Command(mbox.Base{}); !strings.HasPrefix(got, "bot eval cdcdcdcdcdcd..abababababab --repo ") {
						t.Errorf("to do it again: %s", got)
					}
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// While a pull request is evaluated its progress is noted now and then.
func TestPullProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.evaluate = func(ctx context.Context, in eval.Input, o eval.Options) (*store.Evaluation, error) {
			o.Progress.Stage("measure", 80)
			for n := range 80 {
				o.Progress.Done(n, "hash", time.Minute)
				time.Sleep(2 * time.Second)
			}
			return w.keep(in, o, store.StoppedDecided)
		}
		w.queue(store.KindPull, "o/r#7@abc", store.EncodePayload(store.PullPayload{Repo: "o/r", Number: 7, Head: "abc", Base: "def"}))
		end := w.worker("a", &pulls{})
		after(10 * time.Second)
		if got := w.comment(); got != "running " {
			t.Errorf("in the beginning: %q", got)
		}
		after(80 * time.Second)
		if got := w.comment(); !strings.HasPrefix(got, "running measure: ") {
			t.Errorf("in the middle: %q", got)
		}
		after(2 * time.Minute)
		if got := w.comment(); !strings.HasPrefix(got, "evaluation ") {
			t.Errorf("in the end: %q", got)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}
