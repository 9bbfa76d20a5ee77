package work

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"patchbench/bot/eval"
	"patchbench/store"
)

// Who asks for a base or benchmarks that there are not is told so; other failures
// are told to nobody.
func TestAskedForWhatIsNotThere(t *testing.T) {
	none := &eval.InputError{Err: errors.New(`no benchmark of suite /etc/kit.toml matches "^(?:hash|a\\.b)(?:\\{|$)"; it has sort, in /nowhere/kit.git`)}
	for name, c := range map[string]struct {
		key    string
		err    error
		change func(*world)
		want   string // in the letter; "" is none
	}{
		"asked":       {key: "run:one", err: none, want: "  bench: run hash a.b base v1.0\r\n    no benchmark of suite kit.toml matches hash or a.b; it has sort,\r\n      in kit\r\n"},
		"posted":      {key: "mail:one", err: none},
		"our failure": {key: "run:one", err: errors.New("disk is gone")},
		"no way out":  {key: "run:one", err: none, change: func(w *world) { w.cfg.SMTP = nil }},
		"the owner's": {key: "run:one", err: final("project is gone")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.change != nil {
					c.change(w)
				}
				w.evaluate = func(context.Context, eval.Input, eval.Options) (*store.Evaluation, error) { return nil, c.err }
				task := w.decide(c.key)
				end := w.worker("a", nil)
				after(10 * time.Minute)
				if k := w.state(task.ID); k.State != store.Failed {
					t.Errorf("task is %s (%s), want failed", k.State, k.Reason)
				}
				list := w.letters()
				if c.want == "" {
					if len(list) > 0 {
						t.Errorf("letters %+v, want none", list)
					}
				} else if len(list) != 1 {
					t.Errorf("%d letters, want 1", len(list))
				} else if l, err := w.st.Letter(t.Context(), list[0].ID); err != nil || !strings.Contains(string(l.Body), c.want) || len(l.To) != 1 || l.Task != task.ID {
					t.Errorf("%v; to %v:\n%s", err, l.To, l.Body)
				}
				// By hand it is tried again, and what comes of it is told too.
				w.evaluate = nil
				if err := w.st.Retry(t.Context(), task.ID); err != nil {
					t.Fatal(err)
				}
				after(10 * time.Second)
				if k := w.state(task.ID); k.State != store.Done || len(w.letters()) != len(list)+1 {
					t.Errorf("tried by hand: %s (%s), %d letters", k.State, k.Reason, len(w.letters()))
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
