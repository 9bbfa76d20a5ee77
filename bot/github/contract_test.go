package github

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"patchbench/bot/github/comment"
)

// tape keeps the requests that go through it.
type tape struct {
	mu   sync.Mutex
	list []recorded
}

type recorded struct{ method, path, body string }

func (t *tape) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	if path, ok := strings.CutPrefix(req.URL.RequestURI(), "/api/v3"); ok {
		t.mu.Lock()
		t.list = append(t.list, recorded{req.Method, path, string(body)})
		t.mu.Unlock()
	}
	return http.DefaultTransport.RoundTrip(req)
}

// operations are all that we ask of the API.
var operations = []string{
	"GET /user", "GET /app", "GET /repos/{owner}/{repo}/installation", "POST /app/installations/{installation_id}/access_tokens",
	"GET /repos/{owner}/{repo}/pulls", "GET /repos/{owner}/{repo}/pulls/{pull_number}",
	"GET /repos/{owner}/{repo}/issues/comments", "GET /repos/{owner}/{repo}/issues/{issue_number}/comments",
	"POST /repos/{owner}/{repo}/issues/{issue_number}/comments", "PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}",
	"DELETE /repos/{owner}/{repo}/issues/comments/{comment_id}", "GET /repos/{owner}/{repo}/issues/{issue_number}/events",
	"GET /repos/{owner}/{repo}/collaborators/{username}/permission", "GET /repos/{owner}/{repo}/commits/{ref}/check-runs",
	"POST /repos/{owner}/{repo}/check-runs", "PATCH /repos/{owner}/{repo}/check-runs/{check_run_id}",
}

// operationOf is the operation that a request is, "" if it is none of them.
func operationOf(r recorded) string {
	path, _, _ := strings.Cut(r.path, "?")
	have := strings.Split(path, "/")
	for _, o := range operations {
		method, template, _ := strings.Cut(o, " ")
		want := strings.Split(template, "/")
		fits := method == r.method && len(have) == len(want)
		for i := 0; fits && i < len(want); i++ {
			fits = have[i] == want[i] || strings.HasPrefix(want[i], "{") && have[i] != "comments"
		}
		if fits {
			return o
		}
	}
	return ""
}

// GitHub's own description of its API accepts every request that we make: those
// of a whole conversation are sent once more to a server that checks them
// against it.
func TestContract(t *testing.T) {
	mock := startPrism(t)
	heard := &tape{}
	w := newWorld(t)
	w.through = heard
	w.restart()
	converse(w)
	p := w.repo.Open("friend", "title", w.line("c", 1))
	p.Say(w.me, comment.Marker)
	p.Say(w.me, comment.Marker) // a second one, which is deleted
	w.event("pull_request", p.Changed("opened"))
	w.evaluate("hostile")
	w.polls = true
	for range 2 {
		w.c.Poll(t.Context())
		p.Say("maintainer", "/bench")
	}
	w = newWorld(t)
	w.through = heard
	w.token()
	p = w.repo.Open("friend", "title", w.line("c", 1))
	w.event("pull_request", p.Changed("opened"))

	seen := map[string]bool{}
	kinds := map[string]int{}
	for _, r := range heard.list {
		key := r.method + " " + r.path + " " + r.body
		if seen[key] {
			continue
		}
		seen[key] = true
		if status, answer := mock.send(t, r); status < 200 || status > 299 {
			t.Errorf("%s %s: %d: %s\nsent: %.500s", r.method, r.path, status, answer, r.body)
		}
		if o := operationOf(r); o != "" {
			kinds[o]++
		} else {
			t.Errorf("%s %s is none of the operations that are checked", r.method, r.path)
		}
	}
	for _, o := range operations {
		if kinds[o] == 0 {
			t.Errorf("no %s among the requests", o)
		}
	}
	// And the server does refuse.
	for _, r := range []recorded{
		{"POST", "/repos/kit/kit/check-runs", `{"name":"x"}`},
		{"POST", "/repos/kit/kit/issues/1/comments", `{"text":"x"}`},
		{"GET", "/repos/kit/kit/pulls?state=half", ""},
		{"GET", "/repos/kit/kit/nothing", ""},
	} {
		if status, answer := mock.send(t, r); status < 400 {
			t.Errorf("%+v is accepted: %d %.200s", r, status, answer)
		}
	}
}

// prism is a server that holds requests against GitHub's description.
type prism struct{ url string }

func (p *prism) send(t *testing.T, r recorded) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), r.method, p.url+r.path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json") // it knows no other
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusInternalServerError && blamesItself(text) {
		return http.StatusOK, ""
	}
	return res.StatusCode, string(text)
}

// blamesItself says whether an answer complains of nothing but itself: some of
// the description's own examples do not keep to it.
func blamesItself(text []byte) bool {
	var refusal struct {
		Validation []struct {
			Location []string `json:"location"`
		} `json:"validation"`
	}
	if json.Unmarshal(text, &refusal) != nil || len(refusal.Validation) == 0 {
		return false
	}
	for _, v := range refusal.Validation {
		if len(v.Location) == 0 || v.Location[0] != "response" {
			return false
		}
	}
	return true
}

// startPrism starts the server with the part of the description that is about
// what we use: the whole takes a minute to load.
func startPrism(t *testing.T) *prism {
	dir := os.Getenv("PATCHBENCH_PRISM")
	if dir == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("PATCHBENCH_PRISM does not say where prism and GitHub's description are, and CI must run this test")
		}
		t.Skip("set PATCHBENCH_PRISM to a folder in which npm has installed @stoplight/prism-cli and @octokit/openapi")
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "@octokit", "openapi", "generated", "api.github.com.json"))
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(t.TempDir(), "api.json")
	if err := os.WriteFile(part, excerpt(t, text), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "node_modules", ".bin", "prism"), "mock", "--errors", "-h", "127.0.0.1", "-p", fmt.Sprint(port), part)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var said bytes.Buffer // read when ended is closed
	go func() {
		defer close(ended)
		b := make([]byte, 4096)
		for told := false; ; {
			n, err := out.Read(b)
			said.Write(b[:n])
			if !told && strings.Contains(said.String(), "Prism is listening") {
				told = true
				close(ready)
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		cmd.Wait()
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatalf("prism ended:\n%s", said.String())
	}
	return &prism{url: (&url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}).String()}
}

// excerpt keeps of an OpenAPI description the paths that we may use, and what
// they refer to.
func excerpt(t *testing.T, text []byte) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	paths := map[string]any{}
	for _, o := range operations {
		_, path, _ := strings.Cut(o, " ")
		if paths[path] = doc["paths"].(map[string]any)[path]; paths[path] == nil {
			t.Fatalf("GitHub's description has no %s", path)
		}
	}
	all, kept := doc["components"].(map[string]any), map[string]any{}
	var follow func(v any)
	follow = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				follow(x)
			}
		case map[string]any:
			for _, x := range v {
				follow(x)
			}
			name, _ := v["$ref"].(string)
			parts := strings.Split(strings.TrimPrefix(name, "#/components/"), "/")
			if len(parts) != 2 {
				return
			}
			group, _ := kept[parts[0]].(map[string]any)
			if group == nil {
				group = map[string]any{}
				kept[parts[0]] = group
			}
			if group[parts[1]] == nil {
				group[parts[1]] = all[parts[0]].(map[string]any)[parts[1]]
				follow(group[parts[1]])
			}
		}
	}
	follow(paths)
	out, err := json.Marshal(map[string]any{"openapi": doc["openapi"], "info": doc["info"], "paths": paths, "components": kept})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
