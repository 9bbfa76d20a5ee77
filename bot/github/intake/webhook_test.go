package intake

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"patchbench/bot/github/githubtest"
	"patchbench/bot/github/hint"
)

// signed is a request with a body of any kind, signed as GitHub signs it.
func signed(body string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "http://bot.example/hook", strings.NewReader(body))
	mac := hmac.New(sha256.New, []byte(githubtest.Secret))
	mac.Write([]byte(body))
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "pull_request")
	req.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	return req
}

// good is an event that is taken.
const good = `{"action":"labeled","repository":{"full_name":"kit/KIT"},"pull_request":{"number":7},"sender":{"login":"x"}}`

// endless yields blanks for ever, and counts them.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.n += int64(len(b))
	return len(b), nil
}

func TestWebhook(t *testing.T) {
	with := func(key, value string) func() *http.Request {
		return func() *http.Request {
			req := signed(good)
			req.Header.Set(key, value)
			return req
		}
	}
	body := func(text string) func() *http.Request { return func() *http.Request { return signed(text) } }
	flood := &endless{}
	for _, c := range []struct {
		name   string
		req    func() *http.Request
		status int
		hints  int
	}{
		{"good", body(good), 202, 1},
		{"good, with a charset", with("Content-Type", "application/json; charset=utf-8"), 202, 1},
		{"another method", func() *http.Request {
			req := signed(good)
			req.Method = http.MethodGet
			return req
		}, 405, 0},
		{"no signature", with("X-Hub-Signature-256", ""), 401, 0},
		{"wrong signature", with("X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64)), 401, 0},
		{"short signature", with("X-Hub-Signature-256", "sha256=00"), 401, 0},
		{"the old signature", with("X-Hub-Signature-256", "sha1="+strings.Repeat("0", 40)), 401, 0},
		{"wrong signature of no JSON", func() *http.Request {
			req := signed(good)
			req.Body = io.NopCloser(strings.NewReader("{{{"))
			return req
		}, 401, 0},
		{"signed with nothing", func() *http.Request {
			req := signed(good)
			mac := hmac.New(sha256.New, nil)
			mac.Write([]byte(good))
			req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
			return req
		}, 401, 0},
		{"100 MB", func() *http.Request {
			req := signed(good)
			req.ContentLength = 104857600
			return req
		}, 413, 0},
		{"without end", func() *http.Request {
			req := signed(good)
			req.ContentLength, req.Body = -1, io.NopCloser(flood)
			return req
		}, 413, 0},
		{"a form", with("Content-Type", "application/x-www-form-urlencoded"), 415, 0},
		{"no delivery", with("X-GitHub-Delivery", ""), 400, 0},
		{"a delivery that steers", with("X-GitHub-Delivery", "a b"), 400, 0},
		{"deep JSON", body(strings.Repeat("{\"a\":", 100000)), 400, 0},
		{"deep and closed JSON", body(strings.Repeat("[", 100000) + strings.Repeat("]", 100000)), 400, 0},
		{"a number that is a text", body(`{"repository":{"full_name":"kit/kit"},"pull_request":{"number":"7"}}`), 400, 0},
		{"a number that is none", body(`{"repository":{"full_name":"kit/kit"},"pull_request":{"number":1e99}}`), 400, 0},
		{"a list", body(`[1]`), 400, 0},
		{"nothing", body(``), 400, 0},
		{"null", body(`null`), 202, 0},
		{"a negative number", body(`{"repository":{"full_name":"kit/kit"},"pull_request":{"number":-7}}`), 202, 0},
		{"another repository", body(strings.ReplaceAll(good, "kit/KIT", "kit/other")), 202, 0},
		{"another event", with("X-GitHub-Event", "fork"), 202, 0},
		{"no event", with("X-GitHub-Event", ""), 202, 0},
		{"ping", with("X-GitHub-Event", "ping"), 202, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if got := w.send(c.req()); got != c.status {
				t.Errorf("status %d, want %d", got, c.status)
			}
			if got := len(w.queue.Waiting()); got != c.hints {
				t.Errorf("%d hints, want %d", got, c.hints)
			}
			if got := w.hub.Requests(); len(got) > 0 {
				t.Errorf("the API was asked: %q", got)
			}
		})
	}
	if flood.n > maxEvent+1<<20 {
		t.Errorf("%d bytes of an event were read, want no more than %d", flood.n, maxEvent)
	}
}

func TestWebhookWithoutSecret(t *testing.T) {
	w := newWorld(t)
	w.cfg.GitHub.WebhookSecret = ""
	req := signed(good)
	mac := hmac.New(sha256.New, nil)
	mac.Write([]byte(good))
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	if got := w.send(req); got != http.StatusNotFound {
		t.Errorf("status %d without a secret, want 404", got)
	}
}

// With too much to do, GitHub is told so; what was taken before stays.
func TestWebhookFull(t *testing.T) {
	w := newWorld(t)
	all := make([]hint.Hint, hint.MaxHints)
	for i := range all {
		all[i] = hint.Hint{Kind: hint.Changed, Repo: "kit/kit", Number: i + 10}
	}
	if err := w.queue.Add(t.Context(), "", all...); err != nil {
		t.Fatal(err)
	}
	if got := w.send(signed(good)); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
	if n := len(w.queue.Waiting()); n != hint.MaxHints {
		t.Errorf("%d hints, want %d", n, hint.MaxHints)
	}
	if got := w.send(signed(strings.ReplaceAll(good, ":7}", ":11}"))); got != http.StatusAccepted {
		t.Errorf("status %d of what waits already, want 202", got)
	}
}

// A store that cannot keep an event gives 503, so that GitHub shows it as failed.
func TestWebhookStoreFails(t *testing.T) {
	w := newWorld(t)
	w.st.Close()
	if got := w.send(signed(good)); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
}

// Nothing that anybody sends breaks the webhook, and what it takes is of our
// repository and can stand in a path.
func FuzzWebhook(f *testing.F) {
	f.Add("pull_request", good)
	f.Add("issue_comment", `{"action":"created","repository":{"full_name":"kit/kit"},"issue":{"number":1,"pull_request":{}},
		"comment":{"id":5,"body":"/bench","created_at":"2026-11-30T12:00:00Z","user":{"login":"x","type":"User"}}}`)
	f.Add("check_run", `{"action":"rerequested","repository":{"full_name":"kit/kit"},"sender":{"login":"x"},
		"check_run":{"head_sha":"../..","app":{"id":77},"pull_requests":[{"number":3}]}}`)
	f.Add("installation", `{"action":"created","repositories":[{"full_name":"kit/kit"}]}`)
	f.Add("issue_comment", `{"comment":null,"issue":{"pull_request":null}}`)
	in := newWorld(f).in
	f.Fuzz(func(t *testing.T, kind, body string) {
		var e event
		if json.Unmarshal([]byte(body), &e) != nil {
			return
		}
		list, err := in.hints(t.Context(), kind, "d", &e)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			if h.Repo != "kit/kit" || h.Number <= 0 || h.Kind != hint.Changed && !hint.IsLogin(h.Login) {
				t.Errorf("hint %+v", h)
			}
		}
	})
}

// The log of a refused event holds nothing that steers a terminal.
func TestWebhookLog(t *testing.T) {
	w := newWorld(t)
	req := signed(good)
	req.Header.Set("X-GitHub-Delivery", "a\x1b[2J")
	w.send(req)
	req = signed(good)
	req.Method = "GE\x1bT"
	w.send(req)
	if bytes.ContainsRune(w.log.Bytes(), 0x1b) || w.log.Len() == 0 {
		t.Errorf("log: %q", w.log.String())
	}
}
