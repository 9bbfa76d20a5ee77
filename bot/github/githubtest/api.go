package githubtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// page is a part of a list.
type page struct {
	items []any
	more  bool
	last  int // number of the last one
}

func (p page) MarshalJSON() ([]byte, error) {
	if p.items == nil {
		p.items = []any{}
	}
	return json.Marshal(p.items)
}

// cut takes the page that a request asks for out of a list.
func cut(req *http.Request, all []any) page {
	q := req.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	if size <= 0 {
		size = 30
	}
	size = min(size, 100)
	n, _ := strconv.Atoi(q.Get("page"))
	from := min((max(n, 1)-1)*size, len(all))
	to := min(from+size, len(all))
	return page{all[from:to], to < len(all), (len(all) + size - 1) / size}
}

// routes are what the API can do; {} is one part of a path.
var routes = []struct {
	method string
	path   *regexp.Regexp
	do     func(*Server, *http.Request, *Repo, []string) (int, any)
}{
	{"GET", route("/repos/{}/{}/pulls"), listPulls},
	{"GET", route("/repos/{}/{}/pulls/{}"), getPull},
	{"GET", route("/repos/{}/{}/issues/comments"), listRepoComments},
	{"PATCH", route("/repos/{}/{}/issues/comments/{}"), editComment},
	{"DELETE", route("/repos/{}/{}/issues/comments/{}"), deleteComment},
	{"GET", route("/repos/{}/{}/issues/{}/comments"), listComments},
	{"POST", route("/repos/{}/{}/issues/{}/comments"), createComment},
	{"GET", route("/repos/{}/{}/issues/{}/events"), listEvents},
	{"GET", route("/repos/{}/{}/collaborators/{}/permission"), permission},
	{"GET", route("/repos/{}/{}/commits/{}/check-runs"), listChecks},
	{"POST", route("/repos/{}/{}/check-runs"), createCheck},
	{"PATCH", route("/repos/{}/{}/check-runs/{}"), updateCheck},
}

func route(path string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(path, "{}", "([^/]+)") + "$")
}

// api answers a request; the state is locked.
func (s *Server) api(req *http.Request, path string) (int, any) {
	if req.Header.Get("User-Agent") == "" {
		return 403, message("Request forbidden by administrative rules: no User-Agent")
	}
	who := s.who(req.Header.Get("Authorization"))
	switch {
	case who == "":
		return 401, message("Bad credentials")
	case who == "jwt":
		return s.appAPI(req, path)
	case path == "/user":
		if who != s.Login {
			return 403, message("Resource not accessible by integration")
		}
		return 200, user(s.Login)
	}
	for _, r := range routes {
		m := r.path.FindStringSubmatch(path)
		if m == nil || r.method != req.Method {
			continue
		}
		repo := s.repos[strings.ToLower(m[1]+"/"+m[2])]
		if repo == nil || repo.away && who != s.Login {
			return 404, message("Not Found")
		}
		return r.do(s, req, repo, m[3:])
	}
	s.t.Errorf("the API has no %s %s", req.Method, path)
	return 404, message("Not Found")
}

// who is the login that a header stands for, "jwt" for the App itself, "" for nobody.
func (s *Server) who(header string) string {
	kind, token, _ := strings.Cut(header, " ")
	switch {
	case kind == "Basic":
		text, _ := base64.StdEncoding.DecodeString(token)
		name, password, _ := strings.Cut(string(text), ":")
		if name != "x-access-token" {
			return ""
		}
		token = password
	case kind != "Bearer" && kind != "token":
		return ""
	}
	if token == s.Token {
		return s.Login
	}
	if until, ok := s.tokens[token]; ok && s.now.Before(until) {
		return s.Slug + "[bot]"
	}
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		var claims struct {
			Issuer  string `json:"iss"`
			Issued  int64  `json:"iat"`
			Expires int64  `json:"exp"`
		}
		now := time.Now().Unix() // the App's library has no other clock
		if json.Unmarshal(text, &claims) == nil && claims.Issuer == strconv.FormatInt(s.AppID, 10) &&
			claims.Issued <= now && claims.Expires > now && claims.Expires-claims.Issued <= 600 {
			return "jwt"
		}
	}
	return ""
}

var (
	installationPath = route("/repos/{}/{}/installation")
	tokensPath       = route("/app/installations/{}/access_tokens")
)

func (s *Server) appAPI(req *http.Request, path string) (int, any) {
	if path == "/app" {
		return 200, map[string]any{"id": s.AppID, "slug": s.Slug}
	}
	if m := installationPath.FindStringSubmatch(path); m != nil {
		repo := s.repos[strings.ToLower(m[1]+"/"+m[2])]
		if repo == nil || repo.away {
			return 404, message("Not Found")
		}
		return 200, map[string]any{"id": repo.ID}
	}
	if m := tokensPath.FindStringSubmatch(path); m != nil && req.Method == http.MethodPost {
		var want struct {
			Repositories []string          `json:"repositories"`
			Permissions  map[string]string `json:"permissions"`
		}
		if err := json.NewDecoder(req.Body).Decode(&want); err != nil || len(want.Repositories) != 1 || want.Permissions["contents"] != "read" {
			return 422, message("the token would be good for more than it needs")
		}
		token := fmt.Sprintf("ghs_%036d", s.id())
		until := s.now.Add(s.lifetime)
		s.tokens[token] = until
		// The library that asks compares with the real clock.
		return 201, map[string]any{"token": token, "expires_at": time.Now().Add(s.lifetime)}
	}
	return 404, message("Not Found")
}

func (r *Repo) pull(text string) *Pull {
	n, _ := strconv.Atoi(text)
	if p := r.pulls[n]; p != nil && !p.gone {
		return p
	}
	return nil
}

func listPulls(s *Server, req *http.Request, r *Repo, _ []string) (int, any) {
	var list []*Pull
	for _, p := range r.pulls {
		if state := req.URL.Query().Get("state"); state == "all" || state == p.state {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *Pull) int {
		if c := b.updated.Compare(a.updated); c != 0 {
			return c
		}
		return b.Number - a.Number
	})
	var all []any
	for _, p := range list {
		all = append(all, p.json())
	}
	return 200, cut(req, all)
}

func getPull(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	p := r.pull(m[0])
	if p == nil {
		return 404, message("Not Found")
	}
	return 200, p.json()
}

func (r *Repo) commentsOf(keep func(*Comment) bool) (list []*Comment) {
	for _, c := range r.comment {
		if keep(c) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *Comment) int {
		if c := a.Updated.Compare(b.Updated); c != 0 {
			return c
		}
		return int(a.ID - b.ID)
	})
	return list
}

func listRepoComments(s *Server, req *http.Request, r *Repo, _ []string) (int, any) {
	since, err := time.Parse(time.RFC3339, req.URL.Query().Get("since"))
	if err != nil {
		return 422, message("since is no time")
	}
	var all []any
	for _, c := range r.commentsOf(func(c *Comment) bool { return !c.Updated.Before(since) }) {
		all = append(all, r.commentJSON(c))
	}
	return 200, cut(req, all)
}

func listComments(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	p := r.pull(m[0])
	if p == nil {
		return 404, message("Not Found")
	}
	list := r.commentsOf(func(c *Comment) bool { return c.Number == p.Number })
	slices.SortFunc(list, func(a, b *Comment) int { return int(a.ID - b.ID) })
	var all []any
	for _, c := range list {
		all = append(all, r.commentJSON(c))
	}
	return 200, cut(req, all)
}

// body reads a comment's text.
func body(req *http.Request) (string, *refusal) {
	var v struct {
		Body string `json:"body"`
	}
	data, err := io.ReadAll(req.Body)
	if err != nil || json.Unmarshal(data, &v) != nil {
		return "", &refusal{400, "Problems parsing JSON"}
	}
	if n := utf8.RuneCountInString(v.Body); n > 65536 || n == 0 {
		return "", &refusal{422, fmt.Sprintf("Body is too long (maximum is 65536 characters): %d", n)}
	}
	return v.Body, nil
}

func createComment(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	p := r.pull(m[0])
	if p == nil {
		return 404, message("Not Found")
	}
	if p.locked {
		return 403, message("Unable to create comment because issue is locked")
	}
	text, no := body(req)
	if no != nil {
		return no.status, message(no.text)
	}
	c := &Comment{ID: s.id(), Number: p.Number, Login: s.who(req.Header.Get("Authorization")), Body: text, Created: s.now, Updated: s.now}
	r.comment[c.ID] = c
	return 201, r.commentJSON(c)
}

func (r *Repo) commentAt(text string) *Comment {
	id, _ := strconv.ParseInt(text, 10, 64)
	return r.comment[id]
}

func editComment(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	c := r.commentAt(m[0])
	if c == nil {
		return 404, message("Not Found")
	}
	if c.Login != s.who(req.Header.Get("Authorization")) {
		return 403, message("Must be the author of the comment")
	}
	if r.pulls[c.Number].locked {
		return 403, message("Unable to update comment because issue is locked")
	}
	text, no := body(req)
	if no != nil {
		return no.status, message(no.text)
	}
	c.Body, c.Updated = text, s.now
	c.Edits++
	return 200, r.commentJSON(c)
}

func deleteComment(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	c := r.commentAt(m[0])
	if c == nil {
		return 404, message("Not Found")
	}
	delete(r.comment, c.ID)
	return 204, nil
}

func listEvents(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	p := r.pull(m[0])
	if p == nil {
		return 404, message("Not Found")
	}
	var all []any
	for _, e := range p.events {
		all = append(all, map[string]any{"event": e.kind, "actor": user(e.actor), "created_at": e.at, "label": map[string]any{"name": e.label}})
	}
	return 200, cut(req, all)
}

func permission(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	right := r.rights[m[0]]
	if right == "" {
		right = "read" // of a public repository
	}
	return 200, map[string]any{"permission": right, "user": user(m[0])}
}

func listChecks(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	list := []any{}
	for _, c := range r.checks {
		if c.HeadSHA == m[0] && c.Name == req.URL.Query().Get("check_name") {
			list = append(list, c.json())
		}
	}
	return 200, map[string]any{"total_count": len(list), "check_runs": list}
}

// checkIn reads a check run over what is there.
func checkIn(s *Server, req *http.Request, c *Check) *refusal {
	if s.who(req.Header.Get("Authorization")) == s.Login {
		return &refusal{403, "You must authenticate via a GitHub App."}
	}
	if err := json.NewDecoder(req.Body).Decode(c); err != nil {
		return &refusal{400, "Problems parsing JSON"}
	}
	switch {
	case c.Output.Title == "" || c.Output.Summary == "":
		return &refusal{422, "output needs a title and a summary"}
	case utf8.RuneCountInString(c.Output.Summary) > 65535 || utf8.RuneCountInString(c.Output.Text) > 65535:
		return &refusal{422, "Only 65535 characters are allowed"}
	case !slices.Contains([]string{"queued", "in_progress", "completed"}, c.Status):
		return &refusal{422, "status is none"}
	case (c.Status == "completed") != (c.Conclusion != ""):
		return &refusal{422, "a completed check run, and only that, has a conclusion"}
	}
	return nil
}

func createCheck(s *Server, req *http.Request, r *Repo, _ []string) (int, any) {
	c := &Check{}
	if no := checkIn(s, req, c); no != nil {
		return no.status, message(no.text)
	}
	if !r.Git.Has(c.HeadSHA) {
		return 422, message("No commit found for SHA: " + c.HeadSHA)
	}
	c.ID = s.id()
	r.checks = append(r.checks, c)
	return 201, c.json()
}

func updateCheck(s *Server, req *http.Request, r *Repo, m []string) (int, any) {
	for _, c := range r.checks {
		if strconv.FormatInt(c.ID, 10) != m[0] {
			continue
		}
		next := *c
		if no := checkIn(s, req, &next); no != nil {
			return no.status, message(no.text)
		}
		if c.Status == "completed" && next.Status != "completed" {
			s.t.Errorf("check run %d is completed and cannot be %s again", c.ID, next.Status)
		}
		*c = next
		return 200, c.json()
	}
	return 404, message("Not Found")
}
