// Package notice keeps at each pull request what is to stand there: one comment
// and one check run.
//
// In go stored evaluations, states and progress; out come notices for the outbox,
// as bot/github/comment words them. In go notices from the outbox; out comes what
// stands at GitHub, found again by its marker and our name, edited in place.
//
//	store.Evaluation -> Render -> store.Notice -> Deliver -> comment, check run
//
// It decides nothing about what is evaluated.
package notice

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"patchbench/bot/github/api"
	"patchbench/bot/github/comment"
	"patchbench/store"
)

// Board is what stands at the pull requests. It may be used by several
// goroutines.
type Board struct {
	access *api.Access
	st     *store.Store
	now    func() time.Time

	mu    sync.Mutex
	shown map[string]shown // by pull request, what runs there
}

// New makes a board; nothing is sent.
func New(access *api.Access, st *store.Store, now func() time.Time) *Board {
	return &Board{access: access, st: st, now: now, shown: map[string]shown{}}
}

// Standing is the notice of where a task stands that has no evaluation. The task
// is one with its payload.
func (b *Board) Standing(t *store.Task) (*store.Notice, error) {
	var p store.PullPayload
	if err := store.DecodePayload(t.Payload, &p); err != nil {
		return nil, err
	}
	return b.notice(p, comment.Standing(b.about(t), t.State, detail(t))), nil
}

// notice is a text as it lies in the outbox.
func (b *Board) notice(p store.PullPayload, t comment.Text) *store.Notice {
	n := &store.Notice{Repo: p.Repo, Number: p.Number, Head: p.Head, Comment: t.Comment}
	if t.Check.Status != "" {
		text, err := json.Marshal(t.Check)
		if err != nil {
			panic(fmt.Sprintf("encode a check run: %v", err)) // it holds texts and times
		}
		n.Check = string(text)
	}
	return n
}

// Running is the notice that a run has come as far as progress.
func (b *Board) Running(p store.PullPayload, progress string) *store.Notice {
	return b.notice(p, comment.Standing(comment.About{Head: p.Head, Now: b.now().UTC()}, store.Running, progress))
}

// Failed is the notice that we could not find out, and why.
func (b *Board) Failed(p store.PullPayload, why string) *store.Notice {
	return b.notice(p, comment.Standing(comment.About{Head: p.Head, Now: b.now().UTC()}, store.Failed, why))
}

// Render is the notice that tells of an evaluation. One that was made without a
// sandbox is not told of.
func (b *Board) Render(e *store.Evaluation, p store.PullPayload) (*store.Notice, error) {
	if e.Unsafe {
		return nil, fmt.Errorf("evaluation %s was measured without a sandbox: it is not published", e.ID)
	}
	policy := ""
	if g := b.access.Config().GitHub; g != nil {
		_, r, _ := api.Find(g, p.Repo)
		policy = r.Policy
	}
	about := comment.About{Head: p.Head, Started: e.Created, Now: b.now().UTC(), URL: b.page(e.ID), Pull: b.pullPage(p.Repo, p.Number), Branch: p.BaseRef}
	return b.notice(p, comment.Report(e, about, policy)), nil
}

// detail is what there is to say of a task's state.
func detail(t *store.Task) string {
	switch t.State {
	case store.Queued:
		return ""
	case store.Running:
		return t.Progress
	}
	return t.Reason
}

// about is what texts say of a task.
func (b *Board) about(t *store.Task) comment.About {
	now := t.Ended // so that the same task gives the same text
	if now.IsZero() {
		now = b.now().UTC()
	}
	return comment.About{Key: t.Key, Head: t.Content, Started: t.Started, Now: now, URL: b.page(t.Evaluation)}
}

// pullPage is the address of a pull request's page.
func (b *Board) pullPage(repo string, number int) string {
	a, _, err := b.access.API()
	if err != nil {
		return ""
	}
	return a.PullURL(repo, number)
}

// page is the address of an evaluation's page, "" if there is none.
func (b *Board) page(id string) string {
	if w := b.access.Config().Web; w != nil && w.URL != "" && id != "" {
		return w.URL + "/evaluations/" + id
	}
	return ""
}
