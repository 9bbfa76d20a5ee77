package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/store"
	"patchbench/store/storetest"
)

func TestNotice(t *testing.T) { storetest.Each(t, testNotice) }

func testNotice(t *testing.T, s *store.Store) {
	ctx := t.Context()
	putNotice := func(n store.Notice) {
		t.Helper()
		if err := s.PutNotice(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	next := func(now time.Time) *store.Notice {
		t.Helper()
		n, err := s.NextNotice(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	queued := store.Notice{Repo: "o/r", Number: 12, Head: "h1", Comment: "queued", Check: "{}"}
	running := store.Notice{Repo: "o/r", Number: 12, Head: "h1", Comment: "running 1 of 5\x00", Check: "{}"}
	if n := next(noon); n != nil {
		t.Errorf("notice %+v of nothing", n)
	}
	putNotice(queued)
	putNotice(running)
	n := next(noon)
	want := store.Notice{Repo: "o/r", Number: 12, Head: "h1", Comment: "running 1 of 5", Check: "{}", Seq: 2, Lent: 1, Attempts: 1, Next: noon.Add(2 * time.Minute)}
	if d := cmp.Diff(&want, n); d != "" {
		t.Fatalf("the newest wins (-want +got):\n%s", d)
	}
	// While it is being delivered nobody else gets it, nor what comes meanwhile.
	done := running
	done.Comment = "done"
	putNotice(done)
	if other := next(noon.Add(time.Minute)); other != nil {
		t.Errorf("given twice: %+v", other)
	}
	n.Sent, n.CommentID, n.CheckID, n.CheckHead = n.Seq, 77, 88, "h1"
	if err := s.SettleNotice(ctx, n); err != nil {
		t.Fatal(err)
	}
	n = next(noon.Add(time.Minute))
	want = store.Notice{Repo: "o/r", Number: 12, Head: "h1", Comment: "done", Check: "{}", Seq: 3, Sent: 2, Lent: 2, CommentID: 77, CheckID: 88, CheckHead: "h1", Attempts: 1, Next: noon.Add(3 * time.Minute)}
	if d := cmp.Diff(&want, n); d != "" {
		t.Fatalf("what came meanwhile is due at once (-want +got):\n%s", d)
	}
	// A rate limit: the pause is kept, whatever comes.
	n.Next, n.Reason = noon.Add(time.Hour), "403, wait an hour"
	if err := s.SettleNotice(ctx, n); err != nil {
		t.Fatal(err)
	}
	done.Comment = "done, edited"
	putNotice(done)
	if n := next(noon.Add(59 * time.Minute)); n != nil {
		t.Errorf("the pause is not kept: %+v", n)
	}
	n = next(noon.Add(time.Hour))
	if n == nil || n.Attempts != 2 || n.Reason != "403, wait an hour" || n.CommentID != 77 || n.Comment != "done, edited" {
		t.Fatalf("after the pause: %+v", n)
	}
	// The deliverer is silent: another gets it, and the first cannot settle any more.
	other := next(noon.Add(2 * time.Hour))
	if other == nil || other.Seq != n.Seq || other.Attempts != 3 {
		t.Fatalf("after the loan: %+v", other)
	}
	n.Sent, n.CommentID = n.Seq, 99
	if err := s.SettleNotice(ctx, n); !errors.Is(err, store.ErrState) {
		t.Errorf("settled by the first: %v", err)
	}
	other.Sent, other.Reason = other.Seq, ""
	if err := s.SettleNotice(ctx, other); err != nil {
		t.Fatal(err)
	}
	putNotice(done) // nothing new
	if n := next(noon.Add(9 * time.Hour)); n != nil {
		t.Errorf("nothing new is due: %+v", n)
	}
	done.Head = "h2"
	putNotice(done)
	if n = next(noon.Add(9 * time.Hour)); n == nil || n.Attempts != 1 || n.CommentID != 77 || n.CheckHead != "h1" || n.Head != "h2" {
		t.Errorf("a new head: %+v", n)
	}
	for name, sent := range map[string]int64{"back": n.Sent - 1, "ahead": n.Seq + 1} {
		bad := *n
		bad.Sent = sent
		if err := s.SettleNotice(ctx, &bad); !errors.Is(err, store.ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []store.Notice{{Number: 1}, {Repo: "o/r"}, {Repo: "o/r", Number: -1}} {
		if err := s.PutNotice(ctx, bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

func TestDelivery(t *testing.T) { storetest.Each(t, testDelivery) }

func testDelivery(t *testing.T, s *store.Store) {
	c := at(s)
	for _, step := range []struct {
		after time.Duration
		id    string
		fresh bool
	}{
		{0, "a", true}, {0, "a", false}, {time.Hour, "b\x00", true}, {29 * 24 * time.Hour, "a", false}, {31 * 24 * time.Hour, "a", true}, {31 * 24 * time.Hour, "a", false},
	} {
		c.Time = noon.Add(step.after)
		if fresh, err := s.Delivery(t.Context(), step.id); fresh != step.fresh || err != nil {
			t.Errorf("%s after %v: %v, %v", step.id, step.after, fresh, err)
		}
	}
}

func TestValue(t *testing.T) { storetest.EachURL(t, testValue) }

func testValue(t *testing.T, url string) {
	ctx := t.Context()
	s := storetest.OpenURL(t, url)
	if v, err := s.Value(ctx, "etag"); v != "" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	for _, v := range []string{"one", "two", ""} {
		if err := s.SetValue(ctx, "etag", v); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Value(ctx, "etag"); got != v || err != nil {
			t.Errorf("%q, %v, want %q", got, err, v)
		}
	}
	// All who start at once use the secret of the first.
	secrets := make([]string, 4)
	var wg sync.WaitGroup
	for i := range secrets {
		own := storetest.OpenURL(t, url)
		wg.Go(func() {
			var err error
			if secrets[i], err = own.InitValue(ctx, "secret", fmt.Sprint("of ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	kept, err := s.Value(ctx, "secret")
	for _, secret := range secrets {
		if secret != kept || kept == "" || err != nil {
			t.Errorf("secrets %q, kept %q, %v", secrets, kept, err)
		}
	}
}

func TestAnswered(t *testing.T) { storetest.Each(t, testAnswered) }

func testAnswered(t *testing.T, s *store.Store) {
	ctx := t.Context()
	for _, step := range []struct{ set, want string }{{"", ""}, {"one@bench.example.org", "one@bench.example.org"}, {"two@bench.example.org", "two@bench.example.org"}} {
		if step.set != "" {
			if err := s.SetAnswered(ctx, "cover@example.org", step.set); err != nil {
				t.Fatal(err)
			}
		}
		if by, err := s.Answered(ctx, "cover@example.org"); by != step.want || err != nil {
			t.Errorf("answered by %q, %v, want %q", by, err, step.want)
		}
	}
	if by, err := s.Answered(ctx, "another@example.org"); by != "" || err != nil {
		t.Errorf("another mail is answered by %q, %v", by, err)
	}
}
