package web

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"patchbench/bot/report/cases"
	"patchbench/store"
	"patchbench/store/storetest"
)

// BenchmarkPages asks for pages of a store of some years: 3,000 evaluations of
// 13 patches, a task for each, 10,000 mails of 4 KiB.
func BenchmarkPages(b *testing.B) {
	st := storetest.Open(b)
	e := cases.All["regression-of-13"]().Evaluation
	samples := cases.Samples(e)
	for i := range 3_000 {
		e.ID, e.Created = fmt.Sprintf("20261130-%06x", i), now.Add(-time.Duration(i)*time.Hour)
		if err := st.Save(b.Context(), e); err != nil {
			b.Fatal(err)
		}
		t := store.Task{Key: fmt.Sprint(i), Kind: store.KindMail, Project: "git", Title: "a series", State: store.Queued, Class: "x86", Payload: make([]byte, 10_000)}
		if i%3 == 0 {
			t.State = store.Ignored
		}
		made, _, err := st.Decide(b.Context(), store.Decision{Task: t})
		if err != nil {
			b.Fatal(err)
		}
		if i%3 == 1 {
			made, err := st.Claim(b.Context(), made.ID, "w", time.Minute)
			if err != nil {
				b.Fatal(err)
			}
			if err := st.Finish(b.Context(), made.ID, made.Fence, store.Done, "", e.ID, nil, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := st.AddSamples(b.Context(), e.ID, samples); err != nil {
		b.Fatal(err)
	}
	var mails []store.Mail
	for i := range 10_000 {
		raw := make([]byte, 4<<10)
		for j := range raw {
			raw[j] = byte(i*j*7 + j*j>>3)
		}
		mails = append(mails, store.Mail{Source: fmt.Sprint("source ", i%3), Received: now.Add(time.Duration(i) * time.Second), Raw: fmt.Append(raw, i)})
	}
	if _, err := st.TakeIn(b.Context(), "source 0", "1", mails); err != nil {
		b.Fatal(err)
	}
	s := newSite(b, st)
	for _, c := range []struct{ name, target string }{
		{"list", "/"}, {"project", "/?project=git"}, {"verdict", "/?verdict=better"}, {"old", "/?before=20261130-000b00"},
		{"queue", "/queue"}, {"history", "/history?benchmark=hash&days=90"}, {"health", "/healthz"}, {"metrics", "/metrics"}, {"cached", "/evaluations/" + e.ID},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if w := s.get(b, c.target, "Accept-Encoding", "gzip"); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			s.Handler.ServeHTTP(discard{}, request("/evaluations/"+e.ID))
			s = newSite(b, st) // nothing is rendered yet
		}
	})
}

func request(target string) *http.Request {
	r, err := http.NewRequest("GET", target, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// discard is a reader of pages who keeps none.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
