package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/api"
	"patchbench/bot/github/comment"
	"patchbench/store"
)

// maxDeliveries is how often a notice is tried; with an hour between, for two days.
const maxDeliveries = 60

// longestDelivery is the longest pause between two tries.
const longestDelivery = time.Hour

// maxPages bounds how many comments are looked through for ours, by the hundred.
const maxPages = 120

// BetweenProgress is how long a comment stands before another progress replaces
// it: GitHub counts each change against a limit.
const BetweenProgress = 30 * time.Second

// deliveryTime bounds a delivery, which the store lends for two minutes.
const deliveryTime = 100 * time.Second

// shown is what a comment said last.
type shown struct {
	at  time.Time
	key string // of the task
}

// Deliver makes a pull request's comment and check run what a notice says, and
// writes into the notice what came of it: Sent when there is nothing more to do,
// else when to try again, and why. The error is for the log; whether it comes
// again is in the notice. One notice must not be delivered twice at once.
//
// What stands there is found again by its marker and our own name, so that a
// crash before the notice is kept makes no second one.
func (b *Board) Deliver(ctx context.Context, n *store.Notice) error {
	limited, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	again, err := b.deliver(limited, n)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	n.Reason = ""
	if err != nil {
		n.Reason = err.Error()
		err = fmt.Errorf("deliver to pull request %s: %w", api.Ref(n.Repo, n.Number), err)
	}
	give := maxDeliveries
	fault, until := worst(err)
	b.access.Forget(n.Repo, fault)
	switch {
	case fault == api.None && !again.IsZero():
		n.Attempts, n.Next = max(n.Attempts-1, 0), again
		return nil
	case fault == api.None, errors.As(err, new(*lockedError)) && fault == api.Refused:
		give = 0
	case fault == api.Missing, fault == api.Refused:
		give = api.TriesMissing
	case fault == api.Limited:
		n.Attempts, n.Next = max(n.Attempts-1, 0), until
		return err
	}
	if n.Attempts < give {
		n.Next = b.now().UTC().Add(api.Pause(n.Attempts, longestDelivery))
		return err
	}
	n.Sent, n.Attempts, n.Next = n.Seq, 0, time.Time{}
	return err
}

// worst is the fault that decides what becomes of several.
func worst(err error) (fault api.Fault, until time.Time) {
	list := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		list = joined.Unwrap()
	}
	order := []api.Fault{api.None, api.Refused, api.Missing, api.Denied, api.Temporary, api.Limited}
	for _, e := range list {
		f, u := api.FaultOf(e)
		if errors.As(e, new(*lockedError)) {
			f = api.Refused
		}
		if slices.Index(order, f) > slices.Index(order, fault) {
			fault, until = f, u
		}
	}
	return fault, until
}

// deliver does what Deliver says. again is when to come back, zero if all is said.
func (b *Board) deliver(ctx context.Context, n *store.Notice) (again time.Time, err error) {
	a, g, err := b.access.API()
	if err != nil {
		return again, err
	}
	if _, _, ours := api.Find(g, n.Repo); !ours {
		return again, nil // taken out of the service's file
	}
	text, err := b.current(ctx, n)
	if err != nil {
		return again, err
	}
	at, now := api.Ref(n.Repo, n.Number), b.now().UTC()
	running := ""
	if text.Check.Status == comment.CheckRunning {
		running = text.Check.Key
	}
	b.mu.Lock()
	last := b.shown[at]
	b.mu.Unlock()
	if running != "" && last.key == running && now.Before(last.at.Add(BetweenProgress)) {
		return last.at.Add(BetweenProgress), nil
	}
	r, err := a.Repo(ctx, n.Repo)
	if err != nil {
		return again, err
	}
	if err := b.comment(ctx, a, r, n, text.Comment); err != nil {
		if fault, _ := api.FaultOf(err); fault == api.Limited {
			return again, err
		}
		return again, errors.Join(err, b.check(ctx, a, r, n, text.Check))
	}
	b.mu.Lock()
	if b.shown[at] = (shown{now, running}); running == "" {
		delete(b.shown, at)
	}
	b.mu.Unlock()
	return again, b.check(ctx, a, r, n, text.Check)
}

// current is what should stand at the pull request: what the notice says, unless
// the store knows better by now.
func (b *Board) current(ctx context.Context, n *store.Notice) (comment.Text, error) {
	text := comment.Text{Comment: n.Comment}
	if n.Check != "" {
		if err := json.Unmarshal([]byte(n.Check), &text.Check); err != nil {
			return text, fmt.Errorf("read the check run: %w", err)
		}
	}
	tasks, err := b.st.Tasks(ctx, store.TaskFilter{Kind: store.KindPull, Ref: api.Ref(n.Repo, n.Number), Limit: 50})
	if err != nil || len(tasks) == 0 {
		return text, err
	}
	t := &tasks[0]
	final := text.Check.Status == comment.CheckCompleted
	if ended := t.State == store.Done || t.State == store.Failed; !ended || !final || t.Content != n.Head {
		text = comment.Standing(b.about(t), t.State, detail(t))
		if t.State == store.Done {
			e, err := b.st.Evaluation(ctx, t.Evaluation)
			if err != nil {
				return text, err
			}
			var p store.PullPayload
			full, err := b.st.Task(ctx, t.ID)
			if err == nil {
				err = store.DecodePayload(full.Payload, &p)
			}
			if err != nil {
				return text, err
			}
			notice, err := b.Render(e, p)
			if err != nil {
				return text, err
			}
			text = comment.Text{Comment: notice.Comment}
			if err := json.Unmarshal([]byte(notice.Check), &text.Check); err != nil {
				return text, err
			}
		}
		n.Head = t.Content
	}
	text.Check.Key = t.Key
	earlier, err := b.earlier(ctx, tasks[1:])
	text.Comment = comment.WithEarlier(text.Comment, earlier)
	return text, err
}

// maxEarlier is how many runs before are listed.
const maxEarlier = 10

// earlier are the runs before that came to something.
func (b *Board) earlier(ctx context.Context, tasks []store.Task) (list []comment.Earlier, err error) {
	for _, t := range tasks {
		if len(list) == maxEarlier {
			break
		}
		if t.State != store.Done {
			continue
		}
		e, err := b.st.Evaluation(ctx, t.Evaluation)
		var gone *store.IDError
		if errors.As(err, &gone) {
			continue
		} else if err != nil {
			return nil, err
		}
		list = append(list, comment.Earlier{Head: t.Content, Base: e.Base.Commit, Outcome: string(e.Verdict), URL: b.page(e.ID)})
	}
	return list, nil
}

// comment makes our one comment say body.
func (b *Board) comment(ctx context.Context, a *api.API, r *api.Repo, n *store.Notice, body string) error {
	want := &github.IssueComment{Body: &body}
	var edit error // of the comment that is known
	if n.CommentID != 0 {
		_, _, err := r.Issues.EditComment(ctx, r.Owner, r.Name, n.CommentID, want)
		if err == nil {
			return nil
		}
		switch fault, _ := api.FaultOf(err); {
		case isLocked(err):
			return &lockedError{err}
		case fault != api.Missing && fault != api.Denied:
			return wrap("edit the comment", err)
		}
		edit = err
	}
	ours, err := b.ours(ctx, a, r, n.Number)
	if err != nil {
		return err
	}
	if fault, _ := api.FaultOf(edit); fault == api.Denied && slices.Contains(ours, n.CommentID) {
		return wrap("edit the comment", edit)
	}
	n.CommentID = 0 // somebody deleted it, or our name was another one then
	if len(ours) == 0 {
		made, _, err := r.Issues.CreateComment(ctx, r.Owner, r.Name, n.Number, want)
		if err != nil {
			if isLocked(err) {
				return &lockedError{err}
			}
			return wrap("comment", err)
		}
		n.CommentID = made.GetID()
		return nil
	}
	n.CommentID = ours[0]
	if _, _, err := r.Issues.EditComment(ctx, r.Owner, r.Name, n.CommentID, want); err != nil {
		return wrap("edit the comment", err)
	}
	for _, id := range ours[1:] {
		// Two processes were at it, or an answer to an earlier try was lost.
		if _, err := r.Issues.DeleteComment(ctx, r.Owner, r.Name, id); err != nil {
			return wrap("delete a second comment", err)
		}
	}
	return nil
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// ours finds our comments at a pull request, the oldest first.
func (b *Board) ours(ctx context.Context, a *api.API, r *api.Repo, number int) (ids []int64, err error) {
	login, err := a.Login(ctx)
	if err != nil {
		return nil, err
	}
	opts := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	for range maxPages {
		list, res, err := r.Issues.ListComments(ctx, r.Owner, r.Name, number, opts)
		if err != nil {
			return nil, fmt.Errorf("list the comments: %w", err)
		}
		for _, m := range list {
			if strings.EqualFold(m.GetUser().GetLogin(), login) && strings.HasPrefix(strings.TrimSpace(m.GetBody()), comment.Marker) {
				ids = append(ids, m.GetID())
			}
		}
		if res.NextPage == 0 {
			slices.Sort(ids)
			return ids, nil
		}
		opts.Page = res.NextPage
	}
	// Ours may be among the rest: rather none than a second one.
	return nil, fmt.Errorf("list the comments: there are more than %d", maxPages*opts.PerPage)
}

// lockedError says that nobody may comment: asking again does not help.
type lockedError struct{ err error }

func (e *lockedError) Error() string {
	return "the conversation is locked: unlock it, or let the App write there: " + e.err.Error()
}

func isLocked(err error) bool {
	var plain *github.ErrorResponse
	return errors.As(err, &plain) && plain.Response != nil && plain.Response.StatusCode == 403 && strings.Contains(plain.Message, "locked")
}

// theRun is what is known of the check run that was delivered last; it is kept
// in a notice's CheckHead as text.
type theRun struct {
	Key       string `json:"key"`
	Completed bool   `json:"completed,omitempty"`
}

// check makes the check run of the notice's head say what it should. Each task
// has its own, as one that is completed cannot wait again.
func (b *Board) check(ctx context.Context, a *api.API, r *api.Repo, n *store.Notice, want comment.Check) error {
	if !a.IsApp() {
		return nil // GitHub lets only Apps make check runs
	}
	var was theRun
	if n.CheckHead != "" {
		if err := json.Unmarshal([]byte(n.CheckHead), &was); err != nil {
			return fmt.Errorf("read what is known of the check run: %w", err)
		}
	}
	completed := want.Status == comment.CheckCompleted
	if n.CheckID != 0 && (was.Key != want.Key || want.Status == "" || was.Completed && !completed) {
		if !was.Completed {
			if err := b.cancel(ctx, r, n.CheckID); err != nil {
				return err
			}
		}
		n.CheckID, n.CheckHead = 0, ""
	}
	if want.Status == "" {
		return nil
	}
	if n.CheckID == 0 {
		id, err := b.findCheck(ctx, a, r, n.Head, want.Key)
		if err != nil {
			return err
		}
		if n.CheckID = id; id != 0 {
			n.CheckHead = known(want.Key, false)
		}
	}
	output := &github.CheckRunOutput{Title: &want.Title, Summary: &want.Summary}
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	stamp := func(t time.Time) *github.Timestamp {
		if t.IsZero() {
			return nil
		}
		return &github.Timestamp{Time: t.UTC().Truncate(time.Second)}
	}
	if n.CheckID != 0 {
		_, _, err := r.Checks.UpdateCheckRun(ctx, r.Owner, r.Name, n.CheckID, github.UpdateCheckRunOptions{
			Name: comment.CheckName, Status: &want.Status, Conclusion: text(want.Conclusion), CompletedAt: stamp(want.Ended),
			DetailsURL: text(want.DetailsURL), ExternalID: &want.Key, Output: output,
		})
		if fault, _ := api.FaultOf(err); fault != api.Missing {
			if err == nil {
				n.CheckHead = known(want.Key, completed)
			}
			return wrap("update the check run", err)
		}
		n.CheckID, n.CheckHead = 0, ""
	}
	made, _, err := r.Checks.CreateCheckRun(ctx, r.Owner, r.Name, github.CreateCheckRunOptions{
		Name: comment.CheckName, HeadSHA: n.Head, Status: &want.Status, Conclusion: text(want.Conclusion),
		StartedAt: stamp(want.Started), CompletedAt: stamp(want.Ended), DetailsURL: text(want.DetailsURL),
		ExternalID: &want.Key, Output: output,
	})
	if err != nil {
		return wrap("make the check run", err)
	}
	n.CheckID, n.CheckHead = made.GetID(), known(want.Key, completed)
	return nil
}

func known(key string, completed bool) string {
	text, err := json.Marshal(theRun{key, completed})
	if err != nil {
		panic(fmt.Sprintf("encode what is known of a check run: %v", err)) // a text and a bool
	}
	return string(text)
}

// cancel ends the check run of a task that will not be told of again.
func (b *Board) cancel(ctx context.Context, r *api.Repo, id int64) error {
	completed, cancelled := comment.CheckCompleted, "cancelled"
	title, summary := "Superseded", "A newer run has taken the place of this one.\n"
	_, _, err := r.Checks.UpdateCheckRun(ctx, r.Owner, r.Name, id, github.UpdateCheckRunOptions{
		Name: comment.CheckName, Status: &completed, Conclusion: &cancelled,
		CompletedAt: &github.Timestamp{Time: b.now().UTC().Truncate(time.Second)},
		Output:      &github.CheckRunOutput{Title: &title, Summary: &summary},
	})
	if fault, _ := api.FaultOf(err); fault == api.Missing {
		return nil
	}
	return wrap("cancel the check run of an older commit", err)
}

// findCheck finds the check run of a task that is not completed, which was made
// by a try whose answer was lost; 0 for none.
func (b *Board) findCheck(ctx context.Context, a *api.API, r *api.Repo, head, key string) (int64, error) {
	name, all := comment.CheckName, "all"
	id := a.AppID()
	opts := &github.ListCheckRunsOptions{CheckName: &name, Filter: &all, AppID: &id, ListOptions: github.ListOptions{PerPage: 100}}
	list, _, err := r.Checks.ListCheckRunsForRef(ctx, r.Owner, r.Name, head, opts)
	if err != nil {
		return 0, fmt.Errorf("list the check runs of %.12s: %w", head, err)
	}
	for _, run := range list.CheckRuns {
		if run.GetExternalID() == key && run.GetStatus() != comment.CheckCompleted {
			return run.GetID(), nil
		}
	}
	return 0, nil
}
