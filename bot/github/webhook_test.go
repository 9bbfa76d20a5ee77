package github

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
	"patchbench/config/service"
	"patchbench/store/storetest"
)

// signed is a request with a body of any kind, signed as GitHub signs it.
func signed(body string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "http://bot.example/hook", strings.NewReader(body))
	mac := hmac.New(sha256.New, []byte(secret))
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
			if got := len(w.c.queue.waiting()); got != c.hints {
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

// A replay is taken and does nothing, also after the first was worked off and
// in another process.
func TestWebhookReplay(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	event := func() *http.Request {
		return githubtest.Event("http://bot.example/", secret, "pull_request", "d-1", p.Changed("opened"))
	}
	for i := range 3 {
		if got := w.send(event()); got != http.StatusAccepted {
			t.Errorf("status %d at try %d", got, i)
		}
	}
	if n := len(w.c.queue.waiting()); n != 1 {
		t.Errorf("%d hints of one delivery, want 1", n)
	}
	w.settle()
	w.restart()
	w.hub.Requests()
	if got := w.send(event()); got != http.StatusAccepted {
		t.Errorf("status %d of a replay", got)
	}
	w.settle()
	if got := w.hub.Requests(); len(got) > 0 {
		t.Errorf("a replay asks the API: %q", got)
	}
	// The same under another id does no harm either.
	if got := w.post("pull_request", "d-2", p.Changed("opened")); got != http.StatusAccepted {
		t.Errorf("status %d", got)
	}
	w.settle()
	w.wantStates("queued")
}

// What was taken in is not lost with the process.
func TestWebhookRestart(t *testing.T) {
	w := newWorld(t)
	p := w.repo.Open("friend", "title", w.line("a", 1))
	if got := w.post("pull_request", "d-1", p.Changed("opened")); got != http.StatusAccepted {
		t.Fatalf("status %d", got)
	}
	w.restart()
	w.settle()
	w.wantStates("queued")
	w.says(p, "**Queued.**")
}

// With too much to do, GitHub is told so; what was taken before stays.
func TestWebhookFull(t *testing.T) {
	w := newWorld(t)
	all := make([]hint, maxHints)
	for i := range all {
		all[i] = hint{Kind: changed, Repo: "kit/kit", Number: i + 10}
	}
	if err := w.c.queue.add(t.Context(), "", all...); err != nil {
		t.Fatal(err)
	}
	if got := w.send(signed(good)); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
	if n := len(w.c.queue.waiting()); n != maxHints {
		t.Errorf("%d hints, want %d", n, maxHints)
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

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		body string
		want string // "" none, "stop", or "run NAMES"
	}{
		{"/bench", "run"},
		{"/bench\n", "run"},
		{"text\r\n/bench \t \r\nmore", "run"},
		{"/bench hash table/n=1 a.b:c_d", "run hash table/n=1 a.b:c_d"},
		{"/bench stop", "stop"},
		{"/bench  stop  ", "stop"},
		{"/bench stop now", "run stop now"},
		{"/bench first\n/bench second", "run first"},
		{"> /bench", ""},
		{" /bench", ""},
		{"\t/bench", ""},
		{"please /bench", ""},
		{"`/bench`", ""},
		{"/benchmark", ""},
		{"/Bench", ""},
		{"/bench@me", ""},
		{"```\n/bench\n```", ""},
		{"```sh\n/bench\n```\n/bench after", "run after"},
		{"~~~~\n/bench\n~~~\n/bench\n~~~~\n/bench after", "run after"},
		{"```\n/bench\n``` no end\n/bench", ""},
		{"    ```\n/bench", "run"},
		{"``\n/bench", "run"},
		{"```make``` fails\n/bench", "run"},
		{"~~~ a`b\n/bench\n~~~", ""},
		{"/bench --upload-pack=x", ""},
		{"/bench $(reboot)", ""},
		{"/bench a;b", ""},
		{"/bench a\x1bb", ""},
		{"/bench h\u00e4sh", ""},
		{"/bench " + strings.Repeat("x", 101), ""},
		{"/bench" + strings.Repeat(" x", 21), ""},
		{strings.Repeat("x", 70000) + "\n/bench", ""},
		{"", ""},
		{"/bench none;\n/bench good", "run good"},
	} {
		got := ""
		if cmd, ok := parseCommand(c.body); ok && cmd.Stop {
			got = "stop"
		} else if ok {
			got = strings.TrimSpace("run " + strings.Join(cmd.Benchmarks, " "))
		}
		if got != c.want {
			t.Errorf("%.60q: %q, want %q", c.body, got, c.want)
		}
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
	cfg := &service.Config{GitHub: &service.GitHub{
		AppID: 77, Key: service.Secret(appKey()), Repositories: map[string]service.Repository{"kit/kit": {}},
	}}
	c, err := New(func() *service.Config { return cfg }, storetest.Open(f), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		var e event
		if json.Unmarshal([]byte(body), &e) != nil {
			return
		}
		list, err := c.hints(t.Context(), kind, "d", &e)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range list {
			if h.Repo != "kit/kit" || h.Number <= 0 || h.Kind != changed && !isLogin(h.Login) {
				t.Errorf("hint %+v", h)
			}
		}
	})
}

func FuzzParseCommand(f *testing.F) {
	f.Add("text\n/bench hash\n")
	f.Add("```\n/bench\n```\n/bench stop")
	f.Fuzz(func(t *testing.T, body string) {
		cmd, ok := parseCommand(body)
		if !ok {
			return
		}
		for _, name := range cmd.Benchmarks {
			if !isName(name) {
				t.Errorf("%q is no name of a benchmark", name)
			}
		}
		if !strings.Contains(body, word) {
			t.Errorf("a command without %s", word)
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
