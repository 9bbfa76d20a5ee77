package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"patchbench/bench/sample/jsonl"
	"patchbench/bot/part"
	"patchbench/bot/report"
	"patchbench/bot/report/cases"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
	"patchbench/store/storetest"
)

var now = time.Date(2026, 11, 30, 19, 0, 0, 0, time.UTC)

// hostile is what nobody may write into a page.
const hostile = "<script>alert(1)</script>\x1b[2J\u202e\"'&<img src=x onerror=y>\r\nSet-Cookie: a=b {{.}} javascript:x"

// site is a handler with what it serves and says.
type site struct {
	http.Handler
	store *store.Store
	parts []part.Status
	cfg   service.Config
	log   bytes.Buffer
}

func newSite(t testing.TB, st *store.Store) *site {
	s := &site{store: st, cfg: service.Config{Projects: []service.Project{{Name: "git"}, {Name: "kit"}}}}
	s.Handler = Handler(st, func() *service.Config { return &s.cfg }, Options{
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Parts: func() []part.Status { return s.parts },
		Mails: func() map[string]int64 { return map[string]int64{"own": 3, "refused command": 0} },
	})
	return s
}

// get asks for an address, with pairs of header fields, and checks what holds of
// every answer.
func (s *site) get(t testing.TB, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawQuery, r.RequestURI = path, query, target
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkAnswer(t, target, w)
	return w
}

func checkAnswer(t testing.TB, target string, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("X-Content-Type-Options"); got != "nosniff" {
		t.Errorf("%s: X-Content-Type-Options %q", target, got)
	}
	if len(w.Header()["Set-Cookie"]) > 0 {
		t.Errorf("%s: sets a cookie", target)
	}
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; style-src '") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s: policy %q", target, csp)
	}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && w.Header().Get("Content-Encoding") == "" && w.Body.Len() > 0 && w.Code < 300 {
		checkPage(t, target, w.Body.String(), csp)
	}
}

// elements are all that pages are made of.
var elements = strings.Fields(`html head meta title style body a header nav ul ol li h1 h2 h3 h4 main footer div p span time strong section
	dl dt dd table caption thead tbody tr th td figure figcaption details summary pre code q svg g path circle text line rect desc defs use tspan`)

// checkPage parses a page: only our elements, no handler, no foreign address,
// one style sheet, which the policy allows.
func checkPage(t testing.TB, target, page, csp string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	sheets, titles, ids := 0, 0, map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && strings.ContainsAny(n.Data, "\x1b\u202e") {
			t.Errorf("%s: text %q is not clean", target, n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(elements, n.Data) {
			t.Errorf("%s: has an element %s", target, n.Data)
		}
		if n.Data == "title" && n.Namespace == "" {
			titles++
		}
		if n.Data == "style" {
			sheets++
			sum := sha256.Sum256([]byte(n.FirstChild.Data))
			if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(csp, want) {
				t.Errorf("%s: the policy %q does not allow the style sheet %s", target, csp, want)
			}
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src":
				t.Errorf("%s: attribute %s=%q", target, a.Key, a.Val)
			case a.Key == "href" && (strings.Contains(a.Val, ":") || strings.HasPrefix(a.Val, "/")):
				t.Errorf("%s: link to %q", target, a.Val)
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("%s: id %q twice", target, a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
	}
	if sheets != 1 || titles < 1 || !strings.HasPrefix(page, "<!DOCTYPE html>\n<html lang=\"en\">") {
		t.Errorf("%s: %d style sheets, %d titles, begins %.40q", target, sheets, titles, page)
	}
}

// text is what a page says, without its markup.
func text(t testing.TB, page string) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for n := range doc.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "style" {
			b.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// links are the addresses of a page's links in its main part.
func links(t testing.TB, page string) (all []string) {
	t.Helper()
	_, page, _ = strings.Cut(page, "<main")
	doc, err := html.Parse(strings.NewReader("<main" + page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			if n.Type == html.ElementNode && n.Data == "a" && a.Key == "href" {
				all = append(all, a.Val)
			}
		}
	}
	return all
}

// some is how many of a case's samples are kept.
const some = 50

// save keeps a case under an id, so many minutes before now.
func save(t testing.TB, st *store.Store, name, id string, minutes int) *store.Evaluation {
	t.Helper()
	e := cases.All[name]().Evaluation
	e.ID, e.Created = id, now.Add(-time.Duration(minutes)*time.Minute)
	if err := st.Save(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if err := st.AddSamples(t.Context(), id, cases.Samples(e)[:some]); err != nil {
		t.Fatal(err)
	}
	return e
}

// finish makes a task that has come to an evaluation.
func finish(t testing.TB, st *store.Store, task store.Task, evaluation string) {
	t.Helper()
	task.State, task.Class = store.Queued, "x86"
	made, _, err := st.Decide(t.Context(), store.Decision{Task: task})
	if err != nil {
		t.Fatal(err)
	}
	got, err := st.Claim(t.Context(), made.ID, "bench1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Finish(t.Context(), got.ID, got.Fence, store.Done, "", evaluation, nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newSite(t, st)
		if got := text(t, s.get(t, "/").Body.String()); !strings.Contains(got, "No evaluations yet") {
			t.Errorf("an empty store: %s", got)
		}
		save(t, st, "regression-of-13", "20261130-000001", 30)
		save(t, st, "one-improvement", "20261130-000002", 20)
		save(t, st, "build-failure", "20261130-000003", 10)
		finish(t, st, store.Task{Key: "a", Kind: store.KindMail, Project: "git", Title: "one", Version: 3}, "20261130-000001")
		finish(t, st, store.Task{Key: "b", Kind: store.KindPull, Project: "kit", Ref: "o/r#7", Title: "two"}, "20261130-000002")
		for _, c := range []struct {
			name, query string
			want        []string // ids, the newest first
			says        string
		}{
			{"all", "", []string{"3", "2", "1"}, ""},
			{"a project's", "?project=git", []string{"1"}, ""},
			{"a pull request's", "?project=kit", []string{"2"}, "o/r#7"},
			{"worse ones", "?verdict=worse", []string{"1"}, "Worse: 8/13 makes hash 5.1 % slower (cpu) 2026-11-30 18:30 UTC v3 git kit bench1 20 rounds"},
			{"better ones", "?verdict=better", []string{"2"}, "Better:"},
			{"of both", "?verdict=better&project=git", nil, "No evaluation is like that."},
			{"older than", "?before=20261130-000003", []string{"2", "1"}, "To the newest"},
			{"older than nothing", "?before=x", nil, "No evaluation is like that."},
			{"an unknown project's", "?project=" + "%3Cb%3E", nil, "<b>"},
		} {
			t.Run(c.name, func(t *testing.T) {
				w := s.get(t, "/"+c.query)
				if w.Code != 200 {
					t.Fatalf("status %d", w.Code)
				}
				var got []string
				for _, l := range links(t, w.Body.String()) {
					if id, ok := strings.CutPrefix(l, "./evaluations/20261130-00000"); ok {
						got = append(got, id)
					}
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
				if got := text(t, w.Body.String()); !strings.Contains(got, c.says) {
					t.Errorf("does not say %q: %s", c.says, got)
				}
			})
		}
		if w := s.get(t, "/?verdict=bad"); w.Code != 400 || !strings.Contains(text(t, w.Body.String()), "one of worse, mixed") {
			t.Errorf("an unknown verdict: %d, %s", w.Code, w.Body)
		}
	})
}

func TestListPages(t *testing.T) {
	st := storetest.Open(t)
	s := newSite(t, st)
	e := cases.All["one-improvement"]().Evaluation
	for i := range 2*perPage + 3 {
		e.ID, e.Created = fmt.Sprintf("20261130-%06x", i), now.Add(time.Duration(i/4)*time.Second) // some at one time
		if err := st.Save(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	target, pages := "/?verdict=better", 0
	for target != "" {
		pages++
		page := s.get(t, target).Body.String()
		target = ""
		for _, l := range links(t, page) {
			if id, ok := strings.CutPrefix(l, "./evaluations/"); ok {
				if seen[id] {
					t.Errorf("%s stands in two places", id)
				}
				seen[id] = true
			}
			if strings.Contains(l, "before=") {
				target = "/" + l
			}
		}
	}
	if len(seen) != 2*perPage+3 || pages != 3 {
		t.Errorf("%d evaluations on %d pages", len(seen), pages)
	}
}

func TestEvaluation(t *testing.T) {
	st := storetest.Open(t)
	s := newSite(t, st)
	e := save(t, st, "planted", "20261130-3f9a2c", 5)
	kept, err := st.Evaluation(t.Context(), e.ID)
	if err != nil {
		t.Fatal(err)
	}
	var asText, asJSON, lines bytes.Buffer
	if err := errors.Join(report.Text(&asText, kept, report.Options{}), report.JSON(&asJSON, kept), jsonl.Write(&lines, cases.Samples(e)[:some])); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, media, body string
		code              int
		location          string
	}{
		{path: "20261130-3f9a2c", media: "text/html; charset=utf-8", code: 200},
		{path: "20261130-3f9a2c.txt", media: "text/plain; charset=utf-8", body: asText.String(), code: 200},
		{path: "20261130-3f9a2c.json", media: "application/json", body: asJSON.String(), code: 200},
		{path: "20261130-3f9a2c.md", media: "text/markdown; charset=utf-8", code: 200},
		{path: "20261130-3f9a2c/samples.jsonl", media: "application/jsonl; charset=utf-8", body: lines.String(), code: 200},
		{path: "20261130", code: 302, location: "/evaluations/20261130-3f9a2c"},
		{path: "20261130.txt", code: 302, location: "/evaluations/20261130-3f9a2c.txt"},
		{path: "20261130/samples.jsonl", code: 302, location: "/evaluations/20261130-3f9a2c/samples.jsonl"},
		{path: "20261130-3f9a2c.pdf", code: 404},
		{path: "20261130-3f9a2d", code: 404},
		{path: ".txt", code: 404},
		{path: "20261130-3f9a2c/other", code: 404},
		{path: "<script>", code: 404},
		{path: strings.Repeat("a", 5000), code: 404},
	} {
		t.Run(c.path[:min(len(c.path), 30)], func(t *testing.T) {
			w := s.get(t, "/evaluations/"+c.path)
			if w.Code != c.code {
				t.Fatalf("status %d, want %d", w.Code, c.code)
			}
			if got := w.Header().Get("Location"); got != c.location {
				t.Errorf("location %q, want %q", got, c.location)
			}
			if w.Code != 200 {
				if strings.Contains(w.Body.String(), st.Path()) {
					t.Errorf("tells the path of the store: %s", w.Body)
				}
				return
			}
			if got := w.Header().Get("Content-Type"); got != c.media {
				t.Errorf("type %q, want %q", got, c.media)
			}
			if c.body != "" {
				if d := cmp.Diff(c.body, w.Body.String()); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
			}
			tag := w.Header().Get("ETag")
			again := s.get(t, "/evaluations/"+c.path, "If-None-Match", `"x", W/`+tag)
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
				t.Errorf("asked again with its tag %s: %d, %d bytes", tag, again.Code, again.Body.Len())
			}
			packed := s.get(t, "/evaluations/"+c.path, "Accept-Encoding", "br, gzip")
			if packed.Header().Get("Content-Encoding") == "gzip" {
				z, err := gzip.NewReader(packed.Body)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(z)
				if err != nil || string(b) != w.Body.String() {
					t.Errorf("unpacked it is another: %v", err)
				}
			} else if !strings.HasSuffix(c.path, "jsonl") {
				t.Error("is not packed")
			}
			if s.get(t, "/evaluations/"+c.path, "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding") != "" {
				t.Error("is packed for a reader who does not want that")
			}
		})
	}
	for target, want := range map[string]string{"/evaluations/20261130-3f9a2c": `<a href="../queue">`, "/history?benchmark=hash": `<a href="./queue">`, "/queue": `<a href="./queue" aria-current="page">`} {
		if page := s.get(t, target).Body.String(); strings.Count(page, want) != 1 {
			t.Errorf("%s has no way to the other pages", target)
		}
	}
	two := save(t, st, "crash", "20261130-4f9a2c", 4)
	if w := s.get(t, "/evaluations/20261130"); w.Code != 404 || !strings.Contains(text(t, w.Body.String()), "More than one") {
		t.Errorf("an ambiguous id: %d", w.Code)
	}

	// What is saved anew is seen anew, from the cache or not.
	before := s.get(t, "/evaluations/20261130-4f9a2c.txt")
	two.Headline = "another end"
	if err := st.Save(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	after := s.get(t, "/evaluations/20261130-4f9a2c.txt", "If-None-Match", before.Header().Get("ETag"))
	if after.Code != 200 || !strings.Contains(after.Body.String(), "another end") {
		t.Errorf("an evaluation saved anew: %d %.60s", after.Code, after.Body)
	}
	page := s.get(t, "/evaluations/20261130-4f9a2c")
	if err := st.AddSamples(t.Context(), two.ID, cases.Samples(two)[some:some+1]); err != nil {
		t.Fatal(err)
	}
	if w := s.get(t, "/evaluations/20261130-4f9a2c", "If-None-Match", page.Header().Get("ETag")); w.Code != 200 {
		t.Errorf("an evaluation with one sample more: %d", w.Code)
	}
}

func TestQueue(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newSite(t, st)
		decide := func(key, project string, state store.State, reason string) *store.Task {
			t.Helper()
			made, _, err := st.Decide(t.Context(), store.Decision{Task: store.Task{Key: key, Kind: store.KindMail, Project: project, Class: "x86", List: "git@example.org",
				Title: key, Version: 2, Author: mbox.Address{Name: "An Author", Email: "an@example.org"}, State: state, Reason: reason}})
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		decide("waits", "git", store.Queued, "")
		decide("stranger's", "kit", store.Held, "not trusted")
		decide("parts", "git", store.Incomplete, "2/5 is missing")
		run := decide("runs", "git", store.Queued, "")
		run, err := st.Claim(t.Context(), run.ID, "bench1", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Beat(t.Context(), run.ID, run.Fence, time.Minute, "measure: 12 of 80"); err != nil {
			t.Fatal(err)
		}
		for i := range few + 2 {
			decide(fmt.Sprintf("ignored %d", i), "git", store.Ignored, "no path of interest")
		}
		all := text(t, s.get(t, "/queue").Body.String())
		for _, want := range []string{"running: measure: 12 of 80", "on bench1", "held: not trusted", "incomplete: 2/5 is missing", "v2 An Author git@example.org git", "ignored 11", "Older ones"} {
			if !strings.Contains(all, want) {
				t.Errorf("the queue does not say %q: %s", want, all)
			}
		}
		if strings.Contains(all, "an@example.org") {
			t.Error("the queue tells an author's address")
		}
		if i, j := strings.Index(all, "runs"), strings.Index(all, "waits"); i < 0 || j < i {
			t.Error("what runs does not stand before what waits")
		}
		kit := text(t, s.get(t, "/queue?project=kit").Body.String())
		if strings.Contains(kit, "An Author git@example.org git") || !strings.Contains(kit, "stranger's") {
			t.Errorf("of one project: %s", kit)
		}
		page := s.get(t, "/queue?state=ignored").Body.String()
		if got := text(t, page); strings.Contains(got, "waits") || !strings.Contains(got, "ignored 0") {
			t.Errorf("of one state: %s", got)
		}
		for _, bad := range []string{"?state=x", "?before=x", "?before=-1", "?before=99999999999999999999"} {
			if w := s.get(t, "/queue"+bad); w.Code != 400 {
				t.Errorf("%s: %d", bad, w.Code)
			}
		}
	})
}

func TestHistory(t *testing.T) {
	st := storetest.Open(t)
	s := newSite(t, st)
	if got := text(t, s.get(t, "/history").Body.String()); !strings.Contains(got, "Nothing was measured yet") {
		t.Errorf("an empty store: %s", got)
	}
	for i := range 4 {
		save(t, st, "nothing-found", fmt.Sprintf("20261130-00000%d", i), 24*60*i)
	}
	e := cases.New("", "", "one")
	e.ID, e.Created = "20261130-h", now
	e.Row(hostile, "cpu", "s", 1, 0.1, nil)
	if err := st.Save(t.Context(), e.Judged().Evaluation); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, l := range links(t, s.get(t, "/history").Body.String()) {
		w := s.get(t, "/history"+l)
		if w.Code != 200 {
			t.Errorf("%s: %d", l, w.Code)
		}
		found = append(found, l)
		if w := s.get(t, "/history"+l, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified {
			t.Errorf("%s asked again: %d", l, w.Code)
		}
	}
	if len(found) != 5 {
		t.Errorf("histories of %q", found)
	}
	count := func(query string) int {
		return strings.Count(s.get(t, "/history?benchmark=hash"+query).Body.String(), "2026-11-")
	}
	if all, few := count(""), count("&days=2"); few >= all || few == 0 {
		t.Errorf("%d dates of all time, %d of two days", all, few)
	}
	for query, code := range map[string]int{"?benchmark=none": 404, "?benchmark=hash&metric=none": 404, "?benchmark=hash&metric=rss": 200, "?benchmark=hash&days=x": 400, "?benchmark=hash&days=999999999": 400} {
		if w := s.get(t, "/history"+query); w.Code != code {
			t.Errorf("%s: %d, want %d", query, w.Code, code)
		}
	}
}

// Whatever is foreign is shown as text, on every page.
func TestHostileText(t *testing.T) {
	st := storetest.Open(t)
	s := newSite(t, st)
	s.cfg.Projects[0].Name = hostile
	s.parts = []part.Status{{Name: hostile, Since: now, Err: errors.New(hostile)}}
	e := cases.All["hostile"]().Evaluation
	e.ID, e.Created = "20261130-0b0b0b", now
	e.Series.Subject, e.Headline, e.Suite.Name, e.Host.Name = hostile, hostile, hostile, hostile
	if err := st.Save(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	task := store.Task{Key: "k", Kind: store.KindPull, Project: hostile, Ref: hostile, Title: hostile, Author: mbox.Address{Name: hostile}, List: hostile}
	finish(t, st, task, e.ID)
	task.Key, task.Class, task.State, task.Reason, task.Progress = "l", "x86", store.Held, hostile, hostile
	if _, _, err := st.Decide(t.Context(), store.Decision{Task: task}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.TakeIn(t.Context(), hostile, "1", []store.Mail{{Source: hostile, Received: now, Raw: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/", "/?project=" + "%3Cscript%3E%1b%0d%0aSet-Cookie:%20a", "/queue", "/history", "/evaluations/20261130-0b0b0b", "/evaluations/%3Cscript%3E", "/" + hostile} {
		w := s.get(t, target) // looks at every page
		if w.Code >= 500 || strings.Contains(w.Body.String(), "<script") {
			t.Errorf("%q: %d %s", target, w.Code, w.Body)
		}
	}
	if got := text(t, s.get(t, "/").Body.String()); !strings.Contains(got, "<script>alert(1)</script>") {
		t.Errorf("the text itself is not shown: %s", got)
	}
	for _, target := range []string{"/healthz", "/metrics", "/evaluations/20261130-0b0b0b.txt"} {
		w := s.get(t, target)
		if strings.ContainsAny(w.Body.String(), "\x1b\r\u202e") {
			t.Errorf("%s is not clean: %q", target, w.Body)
		}
	}
}

// What no database takes as text never gets to one.
func TestNoText(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newSite(t, st)
		for _, target := range []string{
			"/?project=%00", "/?before=%ff", "/?verdict=%zz", "/queue?project=%c3%28", "/queue?;", "/history?benchmark=%00", "/history?benchmark=a&metric=%ff",
			"/evaluations/\x00", "/evaluations/\xff.txt", "/evaluations/\xff/samples.jsonl", "/\xff",
		} {
			if w := s.get(t, target); w.Code != http.StatusBadRequest {
				t.Errorf("%q: %d %s", target, w.Code, s.log.String())
			}
		}
		for _, target := range []string{"/?project='%20OR%201=1--", "/?before=%25", "/queue?project=%5c", "/queue?before=1"} {
			if w := s.get(t, target); w.Code != 200 {
				t.Errorf("%q: %d %s", target, w.Code, s.log.String())
			}
		}
	})
}

func TestOnlyReads(t *testing.T) {
	s := newSite(t, storetest.Open(t))
	for _, target := range []string{"/", "/evaluations/x", "/queue", "/history", "/healthz", "/metrics", "/none"} {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "X"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader("x")))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, allows %q", method, target, w.Code, w.Header().Get("Allow"))
			}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("HEAD", target, nil))
		if w.Code == http.StatusMethodNotAllowed {
			t.Errorf("HEAD %s: %d", target, w.Code)
		}
	}
}

// A store that cannot be read is said to be so, without what only the operator
// may know, and the log tells why.
func TestStoreGone(t *testing.T) {
	st := storetest.Open(t)
	s := newSite(t, st)
	path := st.Path()
	st.Close()
	for _, target := range []string{"/", "/queue", "/history", "/evaluations/x", "/healthz"} {
		s.log.Reset()
		w := s.get(t, target)
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), path) || strings.Contains(w.Body.String(), "closed") {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		if !strings.Contains(s.log.String(), "level=ERROR") {
			t.Errorf("%s: the log says %q", target, s.log.String())
		}
	}
	if w := s.get(t, "/metrics"); w.Code != 200 || !strings.Contains(w.Body.String(), "patchbench_store_up 0") {
		t.Errorf("metrics: %d %s", w.Code, w.Body)
	}
}

func TestPanic(t *testing.T) {
	s := newSite(t, storetest.Open(t))
	h := Handler(s.store, func() *service.Config { panic("of secrets") }, Options{Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secrets") || !strings.Contains(s.log.String(), "of secrets") {
		t.Errorf("%d %s; the log: %.200s", w.Code, w.Body, s.log.String())
	}
}

func FuzzPaths(f *testing.F) {
	st := storetest.Open(f)
	e := cases.All["one-improvement"]().Evaluation
	e.ID, e.Created = "20261130-000001", now
	if err := st.Save(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"/", "/evaluations/20261130-000001", "/evaluations/2.md", "/evaluations/../queue", "//example.org/..", "/evaluations//samples.jsonl",
		"/queue?state=running&before=3", "/history?benchmark=table&metric=cpu&days=7", "/?project=%00&verdict=&before=%ff", "/evaluations/%2e%2e%2fetc",
		"/?;=&&&", "/\x00", "/history?benchmark=%27%20OR%201=1--", "/evaluations/_", "/evaluations/%",
	} {
		f.Add(seed)
	}
	s := newSite(f, st)
	f.Fuzz(func(t *testing.T, target string) {
		if !strings.HasPrefix(target, "/") {
			target = "/" + target
		}
		w := s.get(t, target)
		if w.Code >= 500 {
			t.Errorf("%q: status %d: %s", target, w.Code, s.log.String())
		}
		if l := w.Header().Get("Location"); strings.HasPrefix(l, "//") || strings.Contains(l, ":") && !strings.HasPrefix(l, "/") {
			t.Errorf("%q leads to %q", target, l)
		}
	})
}
