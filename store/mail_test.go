package store_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/store"
	"patchbench/store/storetest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestTakeIn(t *testing.T) { storetest.Each(t, testTakeIn) }

func testTakeIn(t *testing.T, s *store.Store) {
	ctx := t.Context()
	const source = "imap:bench@mx.example.org/INBOX"
	binary := make([]byte, 256)
	for i := range binary {
		binary[i] = byte(i)
	}
	for _, step := range []struct {
		name, cursor string
		mails        []store.Mail
		taken        int
	}{
		{"nothing, but further on", "1", nil, 0},
		{"two", "2", []store.Mail{{Key: "a@x", Received: noon, Raw: []byte("a")}, {Received: noon, Raw: binary, Problem: "no header"}}, 2},
		{"the same batch again", "2", []store.Mail{{Key: "a@x", Received: noon, Raw: []byte("a")}, {Received: noon, Raw: binary}}, 0},
		{"one known, one changed by a list", "3", []store.Mail{{Key: "a@x", Raw: []byte("a")}, {Key: "a@x", Received: noon.In(time.FixedZone("", 3600)), Raw: []byte("a [list]")}}, 1},
		{"twice in a batch", "4", []store.Mail{{Key: "b@x", Raw: []byte("b")}, {Key: "b@x", Raw: []byte("b")}}, 1},
		{"hostile key", "5\x00", []store.Mail{{Key: "c\x00\xff@x", Raw: []byte("c"), Problem: "bad \xfe"}}, 1},
		{"empty", "6", []store.Mail{{Raw: nil}}, 1},
		{"of no year", "7", []store.Mail{{Key: "d", Received: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), Raw: []byte("d")}}, 1},
	} {
		taken, err := s.TakeIn(ctx, source, step.cursor, step.mails)
		if err != nil || taken != step.taken {
			t.Errorf("%s: %d taken, %v, want %d", step.name, taken, err, step.taken)
		}
		if got, err := s.Cursor(ctx, source); err != nil || got != strings.TrimRight(step.cursor, "\x00") {
			t.Errorf("%s: cursor %q, %v", step.name, got, err)
		}
	}
	if got, err := s.Cursor(ctx, "another"); err != nil || got != "" {
		t.Errorf("cursor of another source %q, %v", got, err)
	}
	want := []store.Mail{
		{Key: "a@x", Source: source, Received: noon, Raw: []byte("a")},
		{Key: "sha256:40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880", Source: source, Received: noon, Raw: binary, Problem: "no header"},
		{Key: "a@x", Source: source, Received: noon.Add(-time.Hour).Add(time.Hour), Raw: []byte("a [list]")},
		{Key: "b@x", Source: source, Raw: []byte("b")},
		{Key: "c\ufffd@x", Source: source, Raw: []byte("c"), Problem: "bad \ufffd"},
		{Key: "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Source: source, Raw: []byte{}},
		{Key: "d", Source: source, Raw: []byte("d")},
	}
	got, err := s.Mails(ctx, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	ignore := cmpopts.IgnoreFields(store.Mail{}, "ID", "SHA256")
	if d := cmp.Diff(want, got, ignore); d != "" {
		t.Errorf("mails (-want +got):\n%s", d)
	}
	for i := 1; i < len(got); i++ {
		if got[i].ID <= got[i-1].ID {
			t.Errorf("ids %d and %d", got[i-1].ID, got[i].ID)
		}
	}
	page, err := s.Mails(ctx, got[0].ID, 2)
	if d := cmp.Diff(got[1:3], page); d != "" || err != nil {
		t.Errorf("second page, %v (-want +got):\n%s", err, d)
	}
	byKey, err := s.MailsByKey(ctx, "c\x00\xff@x", "a@x", "nobody@x")
	if d := cmp.Diff([]store.Mail{got[0], got[2], got[4]}, byKey); d != "" || err != nil {
		t.Errorf("by key, %v (-want +got):\n%s", err, d)
	}
	if none, err := s.MailsByKey(ctx); err != nil || len(none) != 0 {
		t.Errorf("by no key: %v, %v", none, err)
	}
}

func TestMailsAreBounded(t *testing.T) { storetest.Each(t, testMailsAreBounded) }

func testMailsAreBounded(t *testing.T, s *store.Store) {
	ctx := t.Context()
	var mails []store.Mail
	for i := range 6 {
		mails = append(mails, store.Mail{Raw: bytes.Repeat([]byte{byte(i)}, 7<<20)})
	}
	if _, err := s.TakeIn(ctx, "s", "", mails); err != nil {
		t.Fatal(err)
	}
	var pages []int
	var after int64
	for {
		got, err := s.Mails(ctx, after, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			break
		}
		pages, after = append(pages, len(got)), got[len(got)-1].ID
	}
	if d := cmp.Diff([]int{3, 3}, pages); d != "" {
		t.Errorf("pages of mails of 7 MiB (-want +got):\n%s", d)
	}
}

func TestPruneMails(t *testing.T) { storetest.Each(t, testPruneMails) }

func testPruneMails(t *testing.T, s *store.Store) {
	ctx := t.Context()
	take := func(at time.Time, key string, received time.Time) {
		s.SetClock(func() time.Time { return at })
		if _, err := s.TakeIn(ctx, "s", key, []store.Mail{{Key: key, Received: received, Raw: []byte(key)}}); err != nil {
			t.Fatal(err)
		}
	}
	day := 24 * time.Hour
	take(noon.Add(-9*day), "old", noon.Add(-9*day))
	take(noon, "old mail that came late", noon.Add(-9*day))
	take(noon.Add(-9*day), "from the future", noon.Add(9*day))
	take(noon, "new", noon)
	if n, err := s.PruneMails(ctx, noon.Add(-day)); err != nil || n != 1 {
		t.Errorf("%d removed, %v", n, err)
	}
	mails, err := s.Mails(ctx, 0, 10)
	var keys []string
	for _, m := range mails {
		keys = append(keys, m.Key)
	}
	if d := cmp.Diff([]string{"old mail that came late", "from the future", "new"}, keys); d != "" || err != nil {
		t.Errorf("left, %v (-want +got):\n%s", err, d)
	}
	// A number is not given again, else a reader behind it would miss the mail.
	last := mails[len(mails)-1].ID
	if _, err := s.PruneMails(ctx, noon.Add(99*day)); err != nil {
		t.Fatal(err)
	}
	take(noon, "newer", noon)
	if mails, err := s.Mails(ctx, last, 10); err != nil || len(mails) != 1 {
		t.Errorf("behind %d: %v, %v", last, mails, err)
	}
}

// Whoever reads mails behind the last one that he saw gets all, also when two
// sources are taken in at once: numbers are seen in their order.
func TestReadersMissNoMail(t *testing.T) { storetest.EachURL(t, testReadersMissNoMail) }

func testReadersMissNoMail(t *testing.T, url string) {
	const sources, batches, size = 4, 12, 5
	var wg sync.WaitGroup
	for source := range sources {
		s := storetest.OpenURL(t, url)
		wg.Go(func() {
			for batch := range batches {
				var mails []store.Mail
				for i := range size {
					mails = append(mails, store.Mail{Raw: fmt.Appendf(nil, "%d %d %d", source, batch, i)})
				}
				if _, err := s.TakeIn(t.Context(), fmt.Sprint(source), fmt.Sprint(batch), mails); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	s := storetest.OpenURL(t, url)
	seen := map[string]bool{}
	var after int64
	for last := false; ; {
		mails, err := s.Mails(t.Context(), after, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mails {
			if seen[string(m.Raw)] {
				t.Errorf("seen twice: %s", m.Raw)
			}
			seen[string(m.Raw)], after = true, m.ID
		}
		if len(mails) == 0 && last {
			break
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
	if want := sources * batches * size; len(seen) != want {
		t.Errorf("%d mails were seen, want %d", len(seen), want)
	}
}

// The same mail reaches two sources at once: it is there once.
func TestDuplicateAtOnce(t *testing.T) { storetest.EachURL(t, testDuplicateAtOnce) }

func testDuplicateAtOnce(t *testing.T, url string) {
	var mails, backwards []store.Mail
	for i := range 50 {
		mails = append(mails, store.Mail{Raw: fmt.Append(nil, i)})
		backwards = append([]store.Mail{{Raw: fmt.Append(nil, i)}}, backwards...)
	}
	var wg sync.WaitGroup
	taken := make([]int, 4)
	for i := range taken {
		s := storetest.OpenURL(t, url)
		wg.Go(func() {
			batch := mails
			if i%2 == 1 {
				batch = backwards
			}
			var err error
			if taken[i], err = s.TakeIn(t.Context(), fmt.Sprint(i), "c", batch); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sum := taken[0] + taken[1] + taken[2] + taken[3]; sum != 50 {
		t.Errorf("taken %v, want 50 together", taken)
	}
}

// BenchmarkTakeIn takes in 10,000 mails of 4 KiB in batches of 100.
func BenchmarkTakeIn(b *testing.B) {
	words := strings.Fields("the patch adds a line to table.c and removes two of them int const char return if for while static")
	r := rand.New(rand.NewPCG(1, 2))
	var batches [][]store.Mail
	for range 100 {
		var batch []store.Mail
		for range 100 {
			var raw []byte
			for len(raw) < 4096 {
				raw = fmt.Appendf(raw, "%s %x ", words[r.IntN(len(words))], r.IntN(1000))
			}
			batch = append(batch, store.Mail{Key: fmt.Sprintf("%x@example.org", r.Uint64()), Received: noon, Raw: raw})
		}
		batches = append(batches, batch)
	}
	each(b, func(b *testing.B, open func() *store.Store) {
		for b.Loop() {
			b.StopTimer()
			s := open()
			b.StartTimer()
			for i, batch := range batches {
				if n, err := s.TakeIn(context.Background(), "s", fmt.Sprint(i), batch); err != nil || n != len(batch) {
					b.Fatal(n, err)
				}
			}
		}
		b.ReportMetric(10000*float64(b.N)/b.Elapsed().Seconds(), "mails/s")
	})
}

// each runs a benchmark on each kind of database; open gives new stores.
func each(b *testing.B, f func(b *testing.B, open func() *store.Store)) {
	b.Run("sqlite", func(b *testing.B) { f(b, func() *store.Store { return storetest.Open(b) }) })
	b.Run("postgres", func(b *testing.B) {
		f(b, func() *store.Store { return storetest.OpenURL(b, storetest.Postgres(b)) })
	})
}
