// Package intake takes in what GitHub tells: by the webhook, or asked for by
// polling.
//
// In go requests to the webhook, and lists of the API; out come hints in the
// queue of bot/github/hint. What an event says is not believed beyond that: who
// may ask for what is for bot/github to find out. The webhook asks nobody.
package intake

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"patchbench/bot/github/api"
	"patchbench/bot/github/hint"
	"patchbench/store"
)

// Intake fills a queue. It may be used by several goroutines.
type Intake struct {
	access *api.Access
	st     *store.Store
	queue  *hint.Queue
	o      Options
}

// Options of an Intake. All are needed but Woken.
type Options struct {
	Log   *slog.Logger
	Woken func() // is called when the webhook has added hints
}

// New makes an intake for a queue; nothing is sent.
func New(access *api.Access, st *store.Store, queue *hint.Queue, o Options) *Intake {
	if o.Woken == nil {
		o.Woken = func() {}
	}
	return &Intake{access: access, st: st, queue: queue, o: o}
}

// pullOf finds the pull request whose head a commit is or was; 0 for none.
func (in *Intake) pullOf(ctx context.Context, repo, head string) (int, error) {
	tasks, err := in.st.Tasks(ctx, store.TaskFilter{Kind: store.KindPull, Limit: 1000})
	for _, t := range tasks {
		if text, ok := strings.CutPrefix(t.Ref, repo+"#"); ok && t.Content == head {
			return strconv.Atoi(text)
		}
	}
	return 0, err
}
