package intake

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"patchbench/bot/github/api"
	"patchbench/bot/github/comment"
	"patchbench/bot/github/hint"
)

// maxEvent bounds an event's body; GitHub's own bound is 25 MiB, but what is
// read here is small.
const maxEvent = 5 << 20

// event is what we read of an event of any kind.
type event struct {
	Action     string `json:"action"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Sender struct {
		Login string `json:"login"`
		Type  string `json:"type"`
	} `json:"sender"`
	PullRequest *struct {
		Number int `json:"number"`
	} `json:"pull_request"`
	Issue *struct {
		Number      int       `json:"number"`
		PullRequest *struct{} `json:"pull_request"`
	} `json:"issue"`
	Comment *struct {
		ID        int64     `json:"id"`
		Body      string    `json:"body"`
		CreatedAt time.Time `json:"created_at"`
		User      struct {
			Login string `json:"login"`
			Type  string `json:"type"`
		} `json:"user"`
	} `json:"comment"`
	CheckRun   *check `json:"check_run"`
	CheckSuite *check `json:"check_suite"`
	Repos      []struct {
		FullName string `json:"full_name"`
	} `json:"repositories"`
	Added []struct {
		FullName string `json:"full_name"`
	} `json:"repositories_added"`
	Removed []struct {
		FullName string `json:"full_name"`
	} `json:"repositories_removed"`
}

type check struct {
	HeadSHA string `json:"head_sha"`
	App     struct {
		ID int64 `json:"id"`
	} `json:"app"`
	PullRequests []struct {
		Number int `json:"number"`
	} `json:"pull_requests"`
}

// Webhook takes in GitHub's events. It answers 401 to what is not signed with
// the secret, before reading any of it as JSON; 202 to what was taken, also
// before or for others; 400, 405, 413 and 415 to what is no event; 503 when it
// cannot be kept. The server it runs in bounds the time.
func (in *Intake) Webhook() http.Handler { return http.HandlerFunc(in.webhook) }

func (in *Intake) webhook(w http.ResponseWriter, req *http.Request) {
	status, err := in.take(w, req)
	if err != nil {
		in.o.Log.Warn("github: event refused", "status", status, "error", err, "from", req.RemoteAddr)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if status >= 400 && status != http.StatusServiceUnavailable {
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(status)
	io.WriteString(w, http.StatusText(status)+"\n")
}

func (in *Intake) take(w http.ResponseWriter, req *http.Request) (status int, err error) {
	g := in.access.Config().GitHub
	switch {
	case g == nil || g.WebhookSecret == "":
		return http.StatusNotFound, errors.New("there is no webhook in the service's file, or it has no secret")
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, fmt.Errorf("method %.20q", req.Method)
	case req.ContentLength > maxEvent:
		return http.StatusRequestEntityTooLarge, fmt.Errorf("%d bytes", req.ContentLength)
	}
	want, err := signature(req.Header.Get("X-Hub-Signature-256"))
	if err != nil {
		return http.StatusUnauthorized, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxEvent))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge, err
	} else if err != nil {
		return http.StatusBadRequest, err
	}
	mac := hmac.New(sha256.New, []byte(g.WebhookSecret))
	mac.Write(body)
	if !hmac.Equal(want, mac.Sum(nil)) {
		return http.StatusUnauthorized, errors.New("the signature is not that of the secret")
	}
	if t, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("set the webhook's content type to application/json")
	}
	delivery := req.Header.Get("X-GitHub-Delivery")
	if !isDelivery(delivery) {
		return http.StatusBadRequest, fmt.Errorf("delivery id %.40q", delivery)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return http.StatusBadRequest, fmt.Errorf("delivery %s: %w", delivery, err)
	}
	// The delivery's id is not signed: whoever has the body could send it under any.
	id := sha256.Sum256(body)
	hints, err := in.hints(req.Context(), req.Header.Get("X-GitHub-Event"), hex.EncodeToString(id[:16]), &e)
	if err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("delivery %s: %w", delivery, err)
	}
	if len(hints) == 0 {
		return http.StatusAccepted, nil
	}
	if err := in.queue.Add(req.Context(), delivery, hints...); err != nil {
		return http.StatusServiceUnavailable, fmt.Errorf("delivery %s: %w", delivery, err)
	}
	in.o.Woken()
	return http.StatusAccepted, nil
}

func signature(header string) ([]byte, error) {
	text, ok := strings.CutPrefix(header, "sha256=")
	sum, err := hex.DecodeString(text)
	if !ok || err != nil || len(sum) != sha256.Size {
		return nil, errors.New("no signature: set the webhook's secret")
	}
	return sum, nil
}

func isDelivery(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// hints reads an event of this kind; none if it is nothing to us. id is the same
// for the same event.
func (in *Intake) hints(ctx context.Context, kind, id string, e *event) ([]hint.Hint, error) {
	g := in.access.Config().GitHub
	if kind == "installation" || kind == "installation_repositories" {
		in.installation(e)
		return nil, nil
	}
	repo, _, ours := api.Find(g, e.Repository.FullName)
	if !ours {
		return nil, nil
	}
	switch kind {
	case "pull_request":
		if e.PullRequest != nil && e.PullRequest.Number > 0 {
			return []hint.Hint{{Kind: hint.Changed, Repo: repo, Number: e.PullRequest.Number}}, nil
		}
	case "issue_comment":
		if e.Action != "created" || e.Issue == nil || e.Issue.PullRequest == nil || e.Comment == nil {
			return nil, nil
		}
		return commentHint(repo, e.Issue.Number, e.Comment.ID, e.Comment.Body, e.Comment.User.Login, e.Comment.User.Type, e.Comment.CreatedAt), nil
	case "check_run", "check_suite":
		run := e.CheckRun
		if kind == "check_suite" {
			run = e.CheckSuite
		}
		if e.Action != "rerequested" || run == nil || g.AppID == 0 || run.App.ID != g.AppID || !hint.IsLogin(e.Sender.Login) {
			return nil, nil
		}
		var list []hint.Hint
		for _, p := range run.PullRequests {
			if p.Number > 0 {
				list = append(list, hint.Hint{Kind: hint.Rerun, Repo: repo, Number: p.Number, ID: id, Login: e.Sender.Login, Head: run.HeadSHA})
			}
		}
		if len(list) == 0 {
			// Of a fork's commit GitHub does not say which pull request it is.
			number, err := in.pullOf(ctx, repo, run.HeadSHA)
			if err != nil || number == 0 {
				return nil, err
			}
			list = []hint.Hint{{Kind: hint.Rerun, Repo: repo, Number: number, ID: id, Login: e.Sender.Login, Head: run.HeadSHA}}
		}
		return list, nil
	}
	return nil, nil
}

// commentHint reads a comment; none if it holds no command of a person. What our
// own comments hold is others' text, whoever's token wrote them.
func commentHint(repo string, number int, id int64, body, login, userType string, at time.Time) []hint.Hint {
	cmd, ok := hint.Parse(body)
	if !ok || strings.HasPrefix(strings.TrimSpace(body), comment.Marker) || number <= 0 || id <= 0 || userType == "Bot" || !hint.IsLogin(login) || at.IsZero() {
		return nil
	}
	return []hint.Hint{{Kind: hint.Commanded, Repo: repo, Number: number, ID: strconv.FormatInt(id, 10), Login: login, At: at.UTC(), Command: cmd}}
}

// installation tells of the App's installations; where it is one of ours, what
// is known of it is asked for anew.
func (in *Intake) installation(e *event) {
	a, g, err := in.access.API()
	if err != nil {
		return
	}
	for _, list := range [][]struct {
		FullName string `json:"full_name"`
	}{e.Repos, e.Added, e.Removed} {
		for _, r := range list {
			if name, _, ours := api.Find(g, r.FullName); ours {
				a.Forget(name)
				in.o.Log.Info("github: the App's installation changed", "repository", name, "action", e.Action)
			}
		}
	}
}
