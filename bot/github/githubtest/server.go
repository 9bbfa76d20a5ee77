// Package githubtest is a GitHub for tests: its API over HTTP, with the state
// that it changes, and its repositories over HTTP, served by git itself.
//
// In go pushes, labels, comments and rights, as people would make them; out come
// the events that a webhook is sent, and what stands at a pull request in the
// end. Whatever a program gets wrong with the API, such as a body that is too
// long or a token that has run out, is refused as GitHub refuses it. Faults can
// be laid in the way of any request.
package githubtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a GitHub. Its methods may be called from any goroutine.
type Server struct {
	URL   string // of an Enterprise server: the API is below /api/v3/
	Token string // that is let in, beside those given to the App
	Login string // whose Token is
	AppID int64
	Slug  string // of the App

	t  testing.TB
	mu sync.Mutex

	now      time.Time
	repos    map[string]*Repo
	tokens   map[string]time.Time // of the App, until when they are good
	nextID   int64
	faults   []Fault
	requests []string
	lifetime time.Duration
}

// Fault is laid in the way of the next requests that match.
type Fault struct {
	Method string            // "" for any
	Path   string            // a part of the path
	Times  int               // 0: once
	Status int               // of the answer
	Header map[string]string // of the answer
	Body   string            // JSON; "" for a message
	// After answers so only when the request has had its effect.
	After bool
	// HangUp closes the connection in place of an answer.
	HangUp bool
	// Do is called when the fault is met.
	Do func()
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	s := &Server{
		t: t, Token: "ghp_0123456789abcdefghijABCDEFGHIJ456789", Login: "bench-bot", AppID: 77, Slug: "patchbench-test",
		now:   time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
		repos: map[string]*Repo{}, tokens: map[string]time.Time{}, nextID: 1000, lifetime: time.Hour,
	}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	s.URL = web.URL
	return s
}

// Now is the server's clock, Advance moves it on.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Advance moves the clock on.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Fail lays faults in the way; each is met as often as it says.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.Times = max(f.Times, 1)
		s.faults = append(s.faults, f)
	}
}

// Waiting is how many faults have not been met.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults)
}

// Revoke makes every token that the App was given bad.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Lifetime says for how long tokens are good that the App gets from now on.
func (s *Server) Lifetime(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifetime = d
}

// Requests are the requests to the API since the last call, as "GET /repos/...";
// what nothing was sent for, as its tag was still good, ends with ", not modified".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.requests
	s.requests = nil
	return list
}

func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// message is the body of a refusal.
func message(text string) any {
	return map[string]any{"message": text, "documentation_url": "https://docs.github.com/rest"}
}

// refusal is an answer that is no success.
type refusal struct {
	status int
	text   string
}

func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path, isAPI := strings.CutPrefix(req.URL.Path, "/api/v3")
	if !isAPI {
		s.git(w, req)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req.Method+" "+path)
	fault := s.fault(req.Method, path)
	if fault != nil && fault.Do != nil {
		s.mu.Unlock()
		fault.Do()
		s.mu.Lock()
	}
	if fault != nil && !fault.After {
		s.fail(w, fault)
		return
	}
	status, answer := s.api(req, path)
	if fault != nil {
		s.fail(w, fault)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		s.t.Errorf("%s %s: %v", req.Method, path, err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Date", s.now.UTC().Format(http.TimeFormat))
	w.Header().Set("X-RateLimit-Limit", "5000")
	w.Header().Set("X-RateLimit-Remaining", "4999")
	w.Header().Set("X-RateLimit-Reset", strconv.FormatInt(s.now.Add(time.Hour).Unix(), 10))
	if req.Method == http.MethodGet && status == http.StatusOK {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(body))
		w.Header().Set("ETag", tag)
		if req.Header.Get("If-None-Match") == tag {
			s.requests[len(s.requests)-1] += ", not modified"
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	s.links(w, req, answer)
	w.WriteHeader(status)
	w.Write(body)
}

// links says that there is a next page where a list is full.
func (s *Server) links(w http.ResponseWriter, req *http.Request, answer any) {
	list, ok := answer.(page)
	if !ok || !list.more {
		return
	}
	u := *req.URL
	q := u.Query()
	n, _ := strconv.Atoi(q.Get("page"))
	q.Set("page", strconv.Itoa(max(n, 1)+1))
	u.RawQuery = q.Encode()
	next := u.String()
	q.Set("page", strconv.Itoa(list.last))
	u.RawQuery = q.Encode()
	w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next", <%s%s>; rel="last"`, s.URL, next, s.URL, u.String()))
}

func (s *Server) fault(method, path string) *Fault {
	for i, f := range s.faults {
		if f.Method != "" && f.Method != method || !strings.Contains(path, f.Path) {
			continue
		}
		if s.faults[i].Times--; s.faults[i].Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return &f
	}
	return nil
}

func (s *Server) fail(w http.ResponseWriter, f *Fault) {
	if f.HangUp {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Date", s.now.UTC().Format(http.TimeFormat))
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(f.Status)
	if f.Body != "" {
		w.Write([]byte(f.Body))
		return
	}
	json.NewEncoder(w).Encode(message(http.StatusText(f.Status)))
}

// Event makes the request that GitHub would send to a webhook at url.
func Event(url, secret, kind, delivery string, payload any) *http.Request {
	body, err := json.Marshal(payload)
	if err != nil {
		panic(err)
	}
	req := httptest.NewRequest(http.MethodPost, url, strings.NewReader(string(body)))
	req.RequestURI = ""
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", kind)
	req.Header.Set("X-GitHub-Delivery", delivery)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	return req
}
