package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v62/github"

	"patchbench/bot/github/githubtest"
	"patchbench/config/service"
)

const token = "ghp_0123456789"

func TestNew(t *testing.T) {
	for _, c := range []struct {
		name      string
		cfg       service.GitHub
		api, repo string // addresses
		fault     string
	}{
		{name: "github.com", cfg: service.GitHub{Token: token}, api: "https://api.github.com/", repo: "https://github.com/o/r.git"},
		{name: "Enterprise", cfg: service.GitHub{Token: token, BaseURL: "https://ghe.example.org"}, api: "https://ghe.example.org/api/v3/", repo: "https://ghe.example.org/o/r.git"},
		{name: "Enterprise, with a slash", cfg: service.GitHub{Token: token, BaseURL: "https://ghe.example.org/"}, api: "https://ghe.example.org/api/v3/", repo: "https://ghe.example.org/o/r.git"},
		{name: "Enterprise, the API", cfg: service.GitHub{Token: token, BaseURL: "https://ghe.example.org:8443/api/v3/"}, api: "https://ghe.example.org:8443/api/v3/", repo: "https://ghe.example.org:8443/o/r.git"},
		{name: "a host of the API", cfg: service.GitHub{Token: token, BaseURL: "https://api.corp.ghe.com"}, api: "https://api.corp.ghe.com/", repo: "https://corp.ghe.com/o/r.git"},
		{name: "here", cfg: service.GitHub{Token: token, BaseURL: "http://127.0.0.1:80"}, api: "http://127.0.0.1:80/api/v3/", repo: "http://127.0.0.1:80/o/r.git"},
		{name: "in clear", cfg: service.GitHub{Token: token, BaseURL: "http://ghe.example.org"}, fault: "use https"},
		{name: "no address", cfg: service.GitHub{Token: token, BaseURL: "ghe"}, fault: "no address"},
		{name: "a password in it", cfg: service.GitHub{Token: token, BaseURL: "https://u:" + token + "@ghe.example.org"}, fault: "no address"},
		{name: "no access", cfg: service.GitHub{}, fault: "neither an App nor a token"},
		{name: "no key", cfg: service.GitHub{AppID: 1, Key: token}, fault: "no RSA private key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := New(c.cfg, Options{})
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) || strings.Contains(err.Error(), token) {
					t.Errorf("%v, want %q and no secret", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := a.self.BaseURL.String(); got != c.api {
				t.Errorf("API at %s, want %s", got, c.api)
			}
			if got := a.GitURL("o/r"); got != c.repo {
				t.Errorf("repository at %s, want %s", got, c.repo)
			}
		})
	}
}

func TestSplitRepo(t *testing.T) {
	for s, want := range map[string]bool{
		"o/r": true, "Some-1/a.b_c": true, "o": false, "o/": false, "/r": false, "o/r/x": false, "../r": false, "o/..": false, "o/.": false,
		"o/a b": false, "o/a%2fb": false, "o/" + strings.Repeat("x", 101): false, "ö/r": false,
	} {
		if _, _, ok := SplitRepo(s); ok != want {
			t.Errorf("%q: %v, want %v", s, ok, want)
		}
	}
}

// A redirect to another host gets no token, and is not followed; one on the same
// host, as after a repository was renamed, is.
func TestRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		t.Errorf("followed to another host, with %q", req.Header)
	}))
	defer elsewhere.Close()
	var here *httptest.Server
	here = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/api/v3/repos/o/r/pulls/1":
			http.Redirect(w, req, elsewhere.URL+"/x", http.StatusMovedPermanently)
		case "/api/v3/repos/o/r/pulls/2":
			http.Redirect(w, req, here.URL+"/api/v3/repositories/1/pulls/2", http.StatusMovedPermanently)
		case "/api/v3/repos/o/r/pulls/3":
			http.Redirect(w, req, req.URL.Path, http.StatusFound)
		case "/api/v3/repositories/1/pulls/2":
			if req.Header.Get("Authorization") != "Bearer "+token {
				t.Errorf("no token on the same host: %q", req.Header)
			}
			fmt.Fprint(w, `{"number":2}`)
		}
	}))
	defer here.Close()
	a, err := New(service.GitHub{Token: token, BaseURL: here.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Repo(t.Context(), "o/r")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{1: "another host", 2: "", 3: "more than 5"} {
		p, _, err := r.PullRequests.Get(t.Context(), r.Owner, r.Name, n)
		switch {
		case want == "" && (err != nil || p.GetNumber() != n):
			t.Errorf("%d: %v, %v", n, p, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%d: %v, want %q", n, err, want)
		case err != nil && strings.Contains(err.Error(), token):
			t.Errorf("%d: the error shows the token: %v", n, err)
		}
	}
}

// answers is a transport that answers with these, the last one for ever.
type answers struct {
	list  []*http.Response
	asked int
}

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	a.asked++
	res := a.list[min(a.asked, len(a.list))-1]
	return res, nil
}

func answer(status int, body string, header ...string) *http.Response {
	rec := httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		rec.Header().Set(header[i], header[i+1])
	}
	rec.WriteHeader(status)
	rec.WriteString(body)
	return rec.Result()
}

func TestLimits(t *testing.T) {
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	reset := fmt.Sprint(start.Add(20 * time.Minute).Unix())
	for _, c := range []struct {
		name string
		res  *http.Response
		wait time.Duration // 0: it is no limit
	}{
		{"fine", answer(200, `{}`), 0},
		{"429 with Retry-After", answer(429, `{}`, "Retry-After", "90"), 90 * time.Second},
		{"403 with Retry-After", answer(403, `{}`, "Retry-After", "90"), 90 * time.Second},
		{"403 with a date", answer(403, `{}`, "Retry-After", "Mon, 30 Nov 2026 12:03:00 GMT"), 3 * time.Minute},
		{"Retry-After of nothing", answer(403, `{}`, "Retry-After", "soon"), time.Minute},
		{"Retry-After of years", answer(429, `{}`, "Retry-After", "999999999"), 2 * time.Hour},
		{"Retry-After of more than fits", answer(429, `{}`, "Retry-After", "99999999999999999999"), time.Minute},
		{"Retry-After 0", answer(429, `{}`, "Retry-After", "0"), time.Second},
		{"a reset", answer(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), 20 * time.Minute},
		{"a reset with 429", answer(429, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset), 20 * time.Minute},
		{"a reset that is over", answer(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1"), time.Second},
		{"no reset", answer(403, `{}`, "X-RateLimit-Remaining", "0"), time.Minute},
		{"429 alone", answer(429, `<html>`), time.Minute},
		{"by text", answer(403, `{"message":"You have exceeded a secondary rate limit. Please wait"}`), time.Minute},
		{"by text, of old", answer(403, `{"message":"You have triggered an abuse detection mechanism."}`), time.Minute},
		// What GitHub's clock says is told by GitHub's clock: ours may be an hour off.
		{"a reset, our clock ahead", answer(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(start.Add(-40*time.Minute).Unix()),
			"Date", "Mon, 30 Nov 2026 11:00:00 GMT"), 20 * time.Minute},
		{"a reset, our clock behind", answer(403, `{}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", fmt.Sprint(start.Add(80*time.Minute).Unix()),
			"Date", "Mon, 30 Nov 2026 13:00:00 GMT"), 20 * time.Minute},
		{"a date, our clock ahead", answer(403, `{}`, "Retry-After", "Mon, 30 Nov 2026 11:03:00 GMT", "Date", "Mon, 30 Nov 2026 11:00:00 GMT"), 3 * time.Minute},
		{"403 for want of rights", answer(403, `{"message":"Resource not accessible by integration"}`, "X-RateLimit-Remaining", "4999"), 0},
		{"unwell", answer(503, `{}`, "Retry-After", "90"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := start
			through := &answers{list: []*http.Response{c.res, answer(200, `{}`)}}
			a, err := New(service.GitHub{Token: token}, Options{Now: func() time.Time { return now }, Transport: through})
			if err != nil {
				t.Fatal(err)
			}
			r, err := a.Repo(t.Context(), "o/r")
			if err != nil {
				t.Fatal(err)
			}
			get := func() error {
				_, _, err := r.PullRequests.Get(t.Context(), "o", "r", 1)
				return err
			}
			fault, until := FaultOf(get())
			if (fault == Limited) != (c.wait > 0) {
				t.Fatalf("fault %v", fault)
			}
			if c.wait == 0 {
				return
			}
			if got := until.Sub(start); got != c.wait {
				t.Errorf("waits %v, want %v", got, c.wait)
			}
			now = start.Add(c.wait - time.Millisecond)
			if fault, again := FaultOf(get()); fault != Limited || !again.Equal(until) || through.asked != 1 {
				t.Errorf("before the limit has passed: fault %v until %v, %d requests", fault, again, through.asked)
			}
			now = start.Add(c.wait)
			if err := get(); err != nil || through.asked != 2 {
				t.Errorf("after it: %v, %d requests", err, through.asked)
			}
		})
	}
}

// A limit that does not say for how long is waited for longer each time, until
// something is answered.
func TestLimitsInARow(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	vague := func() *http.Response { return answer(403, `{"message":"You have exceeded a secondary rate limit."}`) }
	through := &answers{list: []*http.Response{vague(), vague(), vague(), answer(200, `{}`), vague()}}
	a, err := New(service.GitHub{Token: token}, Options{Now: func() time.Time { return now }, Transport: through})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 0, time.Minute} {
		_, _, err := a.self.PullRequests.Get(t.Context(), "o", "r", 1)
		fault, until := FaultOf(err)
		if got := until.Sub(now); (fault == Limited) != (want > 0) || want > 0 && got != want {
			t.Errorf("request %d: fault %v, waits %v, want %v", n, fault, got, want)
		}
		now = now.Add(want)
	}
}

// An answer that is cut is no answer: what it lacks must not be taken for what is
// not there.
func TestAnswerCut(t *testing.T) {
	for name, body := range map[string]string{"cut": `[{"id":1},{"id":2`, "empty": ``, "no JSON": `<html>`} {
		a, err := New(service.GitHub{Token: token}, Options{Transport: &answers{list: []*http.Response{answer(200, body)}}})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = a.self.PullRequests.List(t.Context(), "o", "r", nil)
		if fault, _ := FaultOf(err); fault != Temporary {
			t.Errorf("%s: %v, want a temporary fault", name, err)
		}
	}
}

// One without an end is read no further than any answer goes, and is an error.
func TestAnswerEndless(t *testing.T) {
	res := answer(200, ``)
	res.Body = io.NopCloser(&endless{})
	g := &gate{now: time.Now, next: &answers{list: []*http.Response{res}}}
	got, err := g.RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, got.Body)
	if n != maxAnswer || err == nil || !strings.Contains(err.Error(), "it has more than 100663296 bytes") {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// endless has no end.
type endless struct{}

func (*endless) Read(b []byte) (int, error) { return len(b), nil }

// An App whose machine has a wrong clock is told so.
func TestClock(t *testing.T) {
	for _, c := range []struct {
		off  time.Duration
		want bool // that it is the clock
	}{{0, false}, {time.Hour, true}, {-time.Hour, true}} {
		hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Date", time.Now().Add(-c.off).UTC().Format(http.TimeFormat))
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"'Expiration time' claim ('exp') must be a numeric timestamp in the future"}`)
		}))
		a, err := New(service.GitHub{AppID: 1, BaseURL: hub.URL, Key: githubtest.AppKey()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Repo(t.Context(), "o/r")
		var clock *ClockError
		if fault, _ := FaultOf(err); fault != Denied || errors.As(err, &clock) != c.want {
			t.Errorf("%v: %v, fault %v", c.off, err, fault)
		}
		if clock != nil && (clock.Off > 0) != (c.off > 0) {
			t.Errorf("%v: off by %v", c.off, clock.Off)
		}
		hub.Close()
	}
	for off, want := range map[time.Duration]string{time.Hour: "1h0m0s ahead of", -10 * time.Minute: "10m0s behind"} {
		if got := (&ClockError{off}).Error(); !strings.Contains(got, want) {
			t.Errorf("%q, want %q in it", got, want)
		}
	}
}

// silence answers nothing, or begins an answer and goes on for ever.
type silence struct{ begins bool }

func (s silence) RoundTrip(req *http.Request) (*http.Response, error) {
	body := &silentBody{req.Context()}
	if !s.begins {
		_, err := body.Read(nil)
		return nil, err
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, Request: req}, nil
}

type silentBody struct{ ctx context.Context }

func (b *silentBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b *silentBody) Close() error { return nil }

// A GitHub that takes a request and then says nothing is waited for half a minute.
func TestSilence(t *testing.T) {
	for _, s := range []silence{{}, {begins: true}} {
		synctest.Test(t, func(t *testing.T) {
			a, err := New(service.GitHub{Token: token}, Options{Transport: s})
			if err != nil {
				t.Fatal(err)
			}
			r, err := a.Repo(t.Context(), "o/r")
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			_, _, err = r.PullRequests.Get(t.Context(), "o", "r", 1)
			if fault, _ := FaultOf(err); fault != Temporary || time.Since(begin) != timeout {
				t.Errorf("%+v: %v after %v, want a temporary fault after %v", s, err, time.Since(begin), timeout)
			}
		})
	}
}

// A limit is the installation's: it holds for each of its repositories, and
// after one of them is forgotten.
func TestLimitOfInstallation(t *testing.T) {
	asked := 0
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch path := req.URL.Path; {
		case strings.HasSuffix(path, "/installation"):
			fmt.Fprint(w, `{"id":5}`)
		case strings.HasSuffix(path, "/access_tokens"):
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"token":"ghs_1","expires_at":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))
		default:
			asked++
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer hub.Close()
	a, err := New(service.GitHub{AppID: 1, BaseURL: hub.URL, Key: githubtest.AppKey()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, repo := range []string{"o/one", "o/two", "o/one"} {
		r, err := a.Repo(t.Context(), repo)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = r.PullRequests.Get(t.Context(), r.Owner, r.Name, 1)
		if fault, until := FaultOf(err); fault != Limited || time.Until(until) < 5*time.Minute {
			t.Errorf("%s: %v until %v, want that it is limited", repo, err, until)
		}
		a.Forget(repo)
	}
	if asked != 1 {
		t.Errorf("%d requests, want 1", asked)
	}
}

func TestFaultOf(t *testing.T) {
	status := func(n int) error {
		return &github.ErrorResponse{Response: &http.Response{StatusCode: n, Request: &http.Request{URL: &url.URL{}}}}
	}
	install := func(n int) error {
		return &ghinstallation.HTTPError{Response: &http.Response{StatusCode: n}, RootCause: errors.New("x")}
	}
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{nil, None},
		{errors.New("database is locked"), Temporary},
		{&url.Error{Op: "Get", URL: "x", Err: context.DeadlineExceeded}, Temporary},
		{&LimitError{}, Limited},
		{&url.Error{Op: "Get", URL: "x", Err: &LimitError{}}, Limited},
		{&github.RateLimitError{Response: &http.Response{}}, Limited},
		{&github.AbuseRateLimitError{Response: &http.Response{}}, Limited},
		{status(304), Temporary}, {status(400), Refused}, {status(401), Denied}, {status(403), Denied}, {status(404), Missing},
		{status(408), Temporary}, {status(409), Temporary}, {status(410), Missing}, {status(413), Refused}, {status(422), Refused},
		{status(500), Temporary}, {status(502), Temporary}, {status(504), Temporary},
		{install(401), Denied}, {install(404), Missing}, {install(422), Denied}, {install(500), Temporary},
		{&github.TwoFactorAuthError{}, Denied},
	} {
		wrapped := c.err
		if wrapped != nil {
			wrapped = fmt.Errorf("do it: %w", c.err)
		}
		for _, err := range []error{c.err, wrapped} {
			if got, _ := FaultOf(err); got != c.want {
				t.Errorf("%v: %v, want %v", err, got, c.want)
			}
		}
	}
}
