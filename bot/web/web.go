// Package web shows the record to people and to monitoring: evaluations, the
// queue, histories of benchmarks, health and metrics.
//
// In go the store and what the process knows of its own parts; out come pages
// that work without scripts, need nothing from elsewhere and change nothing:
//
//	/                        evaluations, the newest first (?project= ?verdict= ?before=)
//	/evaluations/ID          the report as a page; ID.json, ID.txt, ID.md; ID/samples.jsonl
//	/queue                   what was decided about series and pull requests (?state=)
//	/history                 benchmarks; ?benchmark=NAME&metric=NAME&days=N its course
//	/healthz                 200 if all is well, else 503, with the reasons
//	/metrics                 the same in numbers, for Prometheus
//
// Links are relative, so a proxy may put the pages below any folder. Whatever is
// foreign is cleaned as in every report and escaped by html/template; beside
// that a Content-Security-Policy allows each page its one style sheet and
// nothing else. Reports come from bot/report as everywhere; nothing is judged
// or decided here.
package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"patchbench/bot/part"
	"patchbench/bot/report/plain"
	"patchbench/config/service"
	"patchbench/store"
)

// Options are what the pages need beside the store. The zero value works.
type Options struct {
	Now func() time.Time // time.Now if nil
	Log *slog.Logger     // slog.Default if nil
	// Parts gives what runs in this process, as part.Group's Status does; nil if
	// nothing is known of it.
	Parts func() []part.Status
	// Mails counts what became of mails since this process started, by words such
	// as own; nil if nothing is known of it.
	Mails func() map[string]int64
}

// patience bounds the work on one request.
const patience = 30 * time.Second

type handler struct {
	store *store.Store
	cfg   func() *service.Config
	now   func() time.Time
	log   *slog.Logger
	parts func() []part.Status
	mails func() map[string]int64
	cache cache
	// rendering has room for as many reports as are rendered at once.
	rendering chan struct{}
}

// Handler serves the pages of a store. cfg gives the configuration that holds
// now; of it only the names of projects and lists are shown.
func Handler(st *store.Store, cfg func() *service.Config, o Options) http.Handler {
	h := &handler{store: st, cfg: cfg, now: o.Now, log: o.Log, parts: o.Parts, mails: o.Mails, rendering: make(chan struct{}, 2)}
	if h.now == nil {
		h.now = time.Now
	}
	if h.log == nil {
		h.log = slog.Default()
	}
	if h.parts == nil {
		h.parts = func() []part.Status { return nil }
	}
	if h.mails == nil {
		h.mails = func() map[string]int64 { return nil }
	}
	mux := http.NewServeMux()
	for pattern, page := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                            h.list,
		"GET /evaluations/{name}":             h.evaluation,
		"GET /evaluations/{id}/samples.jsonl": h.samples,
		"GET /queue":                          h.queue,
		"GET /history":                        h.history,
		"GET /healthz":                        h.health,
		"GET /":                               func(http.ResponseWriter, *http.Request) error { return missing("There is no such page.") },
	} {
		mux.HandleFunc(pattern, h.answer(page))
	}
	mux.Handle("GET /metrics", h.metrics())
	return guard(mux)
}

// guard puts on every answer what browsers shall never do with it.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy(""))
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// policy allows the style sheet with this hash, and no other thing.
func policy(hash string) string {
	styles := "'none'"
	if hash != "" {
		styles = "'sha256-" + hash + "'"
	}
	return "default-src 'none'; style-src " + styles + "; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

// fault is an answer that is no page of its own.
type fault struct {
	status int
	text   string
}

func (f *fault) Error() string { return f.text }

func missing(text string) error { return &fault{http.StatusNotFound, text} }
func badRequest(format string, args ...any) error {
	return &fault{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// answer runs a page with a bounded time, and tells what keeps it from being
// shown: to the reader in our own words, to the log with the cause.
func (h *handler) answer(page func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reader := r.Context()
		ctx, cancel := context.WithTimeout(reader, patience)
		defer cancel()
		r = r.WithContext(ctx)
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				h.log.Error("page", "path", r.URL.Path, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				h.fail(w, r, &fault{http.StatusInternalServerError, "This page cannot be shown."})
			}
		}()
		err := sound(r)
		if err == nil {
			err = page(w, r)
		}
		var f *fault
		switch {
		case err == nil:
		case errors.As(err, &f):
			h.fail(w, r, f)
		case reader.Err() != nil:
			// The reader has gone.
		default:
			h.log.Error("page", "path", r.URL.Path, "error", err)
			w.Header().Set("Retry-After", "60")
			h.fail(w, r, &fault{http.StatusServiceUnavailable, "The record cannot be read at the moment; try again in a minute."})
		}
	}
}

// sound says what is wrong with an address whose text no database takes.
func sound(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("What stands behind the question mark cannot be read.")
	}
	texts := []string{r.URL.Path}
	for name, values := range query {
		texts = append(append(texts, name), values...)
	}
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return badRequest("The address is not text in UTF-8.")
		}
	}
	return nil
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, f *fault) {
	w.Header().Set("Cache-Control", "no-store")
	title := http.StatusText(f.status)
	if err := h.page(w, r, f.status, "fault", view{Title: title, Content: plain.Clean(f.text)}); err != nil {
		h.log.Error("page", "path", r.URL.Path, "error", err)
	}
}

//go:embed pages.tmpl
var pagesText string

//go:embed style.css
var style string

var pages = template.Must(template.New("pages").Parse(pagesText))

// view is what surrounds every page of our own.
type view struct {
	Style   template.CSS
	Root    string // relative, from this page to the first
	Here    string // which entry of the navigation this is
	Title   string
	Content any
}

// page writes one of our own pages. Nothing was written before.
func (h *handler) page(w http.ResponseWriter, r *http.Request, status int, name string, v view) error {
	v.Style, v.Root, v.Here = template.CSS(style), rootOf(r.URL.Path), name
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, v); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	header := w.Header()
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-cache")
	}
	header.Set("Content-Security-Policy", policyOf(b.Bytes()))
	header.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// An error means that the reader has gone.
	_, _ = w.Write(b.Bytes())
	return nil
}

// among puts the way to the other pages on top of a page of bot/report, which by
// itself stands alone.
func among(page []byte, path string) []byte {
	var nav bytes.Buffer
	if err := pages.ExecuteTemplate(&nav, "nav", view{Root: rootOf(path)}); err != nil {
		panic(err) // the template is wrong
	}
	before, after, found := bytes.Cut(page, []byte("<header>\n"))
	if !found {
		return page
	}
	return slices.Concat(before, []byte("<header>\n"), nav.Bytes(), after)
}

// rootOf is the way from a page to the first one.
func rootOf(path string) string {
	if n := strings.Count(path, "/"); n > 1 {
		return strings.Repeat("../", n-1)
	}
	return "./"
}

// policyOf allows a page the style sheet that stands in it. It is the first
// style element: what is foreign comes later or is escaped.
func policyOf(page []byte) string {
	_, rest, _ := bytes.Cut(page, []byte("<style>"))
	sheet, _, found := bytes.Cut(rest, []byte("</style>"))
	if !found {
		return policy("")
	}
	sum := sha256.Sum256(sheet)
	return policy(base64.StdEncoding.EncodeToString(sum[:]))
}

// program tells one build of this program from another: they may render the same
// record in another way.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.String()
})

// tag is an entity tag made of all that decides an answer.
func tag(parts ...string) string {
	sum := sha256.Sum256([]byte(program() + "\x00" + strings.Join(parts, "\x00")))
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}
