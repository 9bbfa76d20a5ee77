package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"patchbench/bench"
	"patchbench/bench/sample/jsonl"
	"patchbench/bot/report"
	"patchbench/bot/report/html"
	"patchbench/bot/report/markdown"
	"patchbench/store"
)

// format is one of the forms of a report.
type format struct {
	media  string
	render func(ctx context.Context, w io.Writer, st *store.Store, e *store.Evaluation) error
}

// formats are the forms of a report by the ending of their address.
var formats = map[string]format{
	"": {"text/html; charset=utf-8", func(ctx context.Context, w io.Writer, st *store.Store, e *store.Evaluation) error {
		var all []bench.Sample
		for s, err := range st.Samples(ctx, e.ID) {
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		var page bytes.Buffer
		if err := html.Write(&page, e, all); err != nil {
			return err
		}
		_, err := w.Write(among(page.Bytes(), "/evaluations/"))
		return err
	}},
	".json": {"application/json", func(_ context.Context, w io.Writer, _ *store.Store, e *store.Evaluation) error {
		return report.JSON(w, e)
	}},
	".txt": {"text/plain; charset=utf-8", func(_ context.Context, w io.Writer, _ *store.Store, e *store.Evaluation) error {
		return report.Text(w, e, report.Options{})
	}},
	".md": {"text/markdown; charset=utf-8", func(_ context.Context, w io.Writer, _ *store.Store, e *store.Evaluation) error {
		return markdown.Write(w, e)
	}},
}

// evaluation answers with a report in one of its forms.
func (h *handler) evaluation(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	ending := path.Ext(name)
	f, ok := formats[ending]
	if !ok {
		return missing("There is no such form of a report: it is a page, or .json, .txt or .md.")
	}
	id, stamp, err := h.find(r, strings.TrimSuffix(name, ending))
	if err != nil {
		return err
	}
	if id+ending != name {
		w.Header().Set("Cache-Control", "no-cache")
		http.Redirect(w, r, id+ending, http.StatusFound)
		return nil
	}
	etag := tag(name, stamp)
	if unchanged(w, r, etag) {
		return nil
	}
	out, err := h.rendered(r.Context(), name, etag, func(ctx context.Context, w io.Writer) error {
		e, err := h.store.Evaluation(ctx, id)
		if err != nil {
			return err
		}
		return f.render(ctx, w, h.store, e)
	})
	if err != nil {
		return err
	}
	if ending == "" {
		w.Header().Set("Content-Security-Policy", out.policy)
	}
	send(w, r, f.media, out)
	return nil
}

// find gives the full id of an evaluation and a stamp of its record.
func (h *handler) find(r *http.Request, id string) (full, stamp string, err error) {
	if len(id) > 100 {
		return "", "", missing("There is no such evaluation.")
	}
	full, stamp, err = h.store.Stamp(r.Context(), id)
	var unknown *store.IDError
	if errors.As(err, &unknown) {
		if len(unknown.Matches) > 0 {
			return "", "", missing("More than one evaluation begins with this id: give more of it.")
		}
		return "", "", missing("There is no such evaluation.")
	}
	return full, stamp, err
}

// unchanged answers a reader who has this very state already.
func unchanged(w http.ResponseWriter, r *http.Request, etag string) bool {
	w.Header().Set("ETag", etag)
	w.Header().Set("Cache-Control", "no-cache")
	for one := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == etag || one == "*" {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// rendered gives what render writes, from the cache if the record is as it was
// then. Few are rendered at once; the others wait for their turn.
func (h *handler) rendered(ctx context.Context, name, etag string, render func(context.Context, io.Writer) error) (*rendered, error) {
	if r := h.cache.get(name, etag); r != nil {
		return r, nil
	}
	select {
	case h.rendering <- struct{}{}:
		defer func() { <-h.rendering }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r := h.cache.get(name, etag); r != nil {
		return r, nil // somebody else wanted it too
	}
	var body bytes.Buffer
	if err := render(ctx, &body); err != nil {
		return nil, err
	}
	r := &rendered{name: name, tag: etag, body: body.Bytes(), packed: pack(body.Bytes()), policy: policyOf(body.Bytes())}
	h.cache.put(r)
	return r, nil
}

func pack(b []byte) []byte {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(b) // writing to memory does not fail
	_ = z.Close()
	return packed.Bytes()
}

// send answers with a body, packed if the reader can unpack it.
func send(w http.ResponseWriter, r *http.Request, media string, out *rendered) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Vary", "Accept-Encoding")
	body := out.body
	if unpacks(r) {
		w.Header().Set("Content-Encoding", "gzip")
		body = out.packed
	}
	_, _ = w.Write(body) // an error means that the reader has gone
}

// unpacks says that the reader takes gzip.
func unpacks(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, quality, _ := strings.Cut(strings.TrimSpace(one), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return false
}

// batch is how many samples are written at a time.
const batch = 1000

// samples answers with the samples of an evaluation, a line each, as they are
// read from the store.
func (h *handler) samples(w http.ResponseWriter, r *http.Request) error {
	id, stamp, err := h.find(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	if id != r.PathValue("id") {
		w.Header().Set("Cache-Control", "no-cache")
		http.Redirect(w, r, "../"+id+"/samples.jsonl", http.StatusFound)
		return nil
	}
	if unchanged(w, r, tag("samples", id, stamp)) {
		return nil
	}
	control := http.NewResponseController(w)
	var lines []bench.Sample
	begun := false
	flush := func() error {
		if !begun {
			w.Header().Set("Content-Type", "application/jsonl; charset=utf-8")
			begun = true
		}
		// As long as the reader takes them he may take his time; not every
		// writer has deadlines.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
		err := jsonl.Write(w, lines)
		lines = lines[:0]
		return err
	}
	// The whole may take longer than one page: each step is bounded instead.
	for s, err := range h.store.Samples(context.WithoutCancel(r.Context()), id) {
		if err == nil {
			if lines = append(lines, s); len(lines) < batch {
				continue
			}
			err = flush()
		}
		if err != nil && !begun {
			return err
		}
		if err != nil {
			// Half of them must not look like all of them.
			h.log.Error("samples", "evaluation", id, "error", err)
			panic(http.ErrAbortHandler)
		}
	}
	if err := flush(); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}
