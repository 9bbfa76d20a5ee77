package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"patchbench/store"
	"patchbench/store/storetest"
)

func note(key string) store.Letter {
	return store.Letter{
		Key: key, Channel: "kit@lists.example.org", MessageID: key + "@bench.example.org", From: "bench@example.org",
		To: []store.Recipient{{Address: "ada@example.org"}, {Address: "kit@lists.example.org"}}, Subject: "Re: s", Body: []byte("From: bench\r\n\r\n\x00\xff"),
	}
}

func put(t testing.TB, s *store.Store, l store.Letter) {
	t.Helper()
	if added, err := s.Put(context.Background(), l); err != nil || !added {
		t.Fatalf("put %s: %v, %v", l.Key, added, err)
	}
}

func TestPut(t *testing.T) { storetest.Each(t, testPut) }

func testPut(t *testing.T, s *store.Store) {
	ctx := t.Context()
	at(s)
	l := note("a")
	l.Subject, l.Task = "a\x00\xff", 7
	put(t, s, l)
	again := note("a")
	again.Body = []byte("something else")
	if added, err := s.Put(ctx, again); added || err != nil {
		t.Errorf("the same key again: %v, %v", added, err)
	}
	want := l
	want.ID, want.State, want.Subject, want.Created = 1, store.LetterQueued, "a\ufffd", noon
	got, err := s.LetterByMessageID(ctx, "a@bench.example.org")
	if d := cmp.Diff(&want, got); d != "" || err != nil {
		t.Fatalf("letter, %v (-want +got):\n%s", err, d)
	}
	if byID, err := s.Letter(ctx, got.ID); !cmp.Equal(got, byID) || err != nil {
		t.Errorf("by id: %+v, %v", byID, err)
	}
	held := note("b")
	held.State, held.Reason = store.LetterHeld, "dry-run"
	put(t, s, held)
	for name, bad := range map[string]store.Letter{
		"no key":        {To: l.To},
		"no recipients": {Key: "c"},
		"begun as sent": {Key: "c", To: l.To, State: store.LetterSent},
	} {
		if added, err := s.Put(ctx, bad); added || err == nil {
			t.Errorf("%s: %v, %v", name, added, err)
		}
	}
	for _, c := range []struct {
		states []store.LetterState
		want   []string
	}{
		{nil, []string{"b", "a"}},
		{[]store.LetterState{store.LetterHeld}, []string{"b"}},
		{[]store.LetterState{store.LetterHeld, store.LetterQueued}, []string{"b", "a"}},
		{[]store.LetterState{store.LetterSent}, nil},
	} {
		letters, err := s.Letters(ctx, c.states...)
		var keys []string
		for _, l := range letters {
			keys = append(keys, l.Key)
			if l.Body != nil {
				t.Errorf("%s has a body", l.Key)
			}
		}
		if !slices.Equal(keys, c.want) || err != nil {
			t.Errorf("letters %v: %v, %v, want %v", c.states, keys, err, c.want)
		}
	}
	_, err1 := s.Letter(ctx, 999)
	_, err2 := s.LetterByMessageID(ctx, "nobody")
	for _, err := range []error{err1, err2, s.MoveLetter(ctx, 999, []store.LetterState{store.LetterHeld}, store.LetterQueued, ""), s.Settle(ctx, &store.Letter{ID: 999, State: store.LetterSent})} {
		if !errors.Is(err, store.ErrNoLetter) {
			t.Errorf("of a letter that is not there: %v", err)
		}
	}
}

func TestSending(t *testing.T) { storetest.Each(t, testSending) }

func testSending(t *testing.T, s *store.Store) {
	ctx := t.Context()
	c := at(s)
	for _, key := range []string{"first", "later", "held", "second"} {
		l := note(key)
		switch key {
		case "later":
			l.Next = noon.Add(time.Hour)
		case "held":
			l.State = store.LetterHeld
		}
		put(t, s, l)
	}
	next := func(now time.Time, want string) *store.Letter {
		t.Helper()
		l, err := s.NextLetter(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		if l == nil {
			if want != "" {
				t.Fatalf("no letter, want %s", want)
			}
			return nil
		}
		if l.Key != want || l.State != store.LetterSending || !l.Started.Equal(now) || len(l.Body) == 0 {
			t.Fatalf("letter %+v, want %s", l, want)
		}
		return l
	}
	first := next(noon, "first")
	second := next(noon, "second")
	next(noon, "")
	// A temporary refusal of one recipient: tried again when it is due, with what
	// is known of the others.
	first.State, first.Reason, first.Next = store.LetterQueued, "greylisted", noon.Add(5*time.Minute)
	first.To[0].State, first.To[0].Reply, first.To[1].Reply = "sent", "250 ok", "450 later\xff"
	if err := s.Settle(ctx, first); err != nil {
		t.Fatal(err)
	}
	next(noon.Add(4*time.Minute), "")
	c.Time = noon.Add(5 * time.Minute)
	first = next(c.Time, "first")
	if want := []store.Recipient{{Address: "ada@example.org", State: "sent", Reply: "250 ok"}, {Address: "kit@lists.example.org", State: "", Reply: "450 later\ufffd"}}; first.Attempts != 2 || !slices.Equal(first.To, want) {
		t.Errorf("second attempt %d with %v", first.Attempts, first.To)
	}
	first.State, first.Reason = store.LetterSent, ""
	if err := s.Settle(ctx, first); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx, first); !errors.Is(err, store.ErrState) {
		t.Errorf("settled twice: %v", err)
	}
	if l, err := s.Letter(ctx, first.ID); err != nil || l.State != store.LetterSent || !l.Ended.Equal(c.Time) {
		t.Errorf("sent: %+v, %v", l, err)
	}
	// The second one's sender is silent; somebody decides, and it is sent by another.
	if err := s.MoveLetter(ctx, second.ID, []store.LetterState{store.LetterSending}, store.LetterUnknown, "the sender died"); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveLetter(ctx, second.ID, []store.LetterState{store.LetterUnknown}, store.LetterQueued, "resend"); err != nil {
		t.Fatal(err)
	}
	another := next(noon.Add(10*time.Minute), "second")
	if another.Attempts != 1 {
		t.Errorf("attempts are counted anew: %d", another.Attempts)
	}
	second.State, second.Reason = store.LetterFailed, "of the first sender"
	if err := s.Settle(ctx, second); !errors.Is(err, store.ErrState) {
		t.Errorf("settled by a sender who had lost it: %v", err)
	}
	another.State = store.LetterUnknown
	if err := s.Settle(ctx, another); err != nil {
		t.Fatal(err)
	}
	next(noon.Add(time.Hour), "later")
	next(noon.Add(99*time.Hour), "")
}

// TestLetterMoves has every way from every state tried.
func TestLetterMoves(t *testing.T) { storetest.Each(t, testLetterMoves) }

func testLetterMoves(t *testing.T, s *store.Store) {
	ctx := t.Context()
	at(s)
	const (
		held, queued, sending, sent = store.LetterHeld, store.LetterQueued, store.LetterSending, store.LetterSent
		failed, unknown, dropped    = store.LetterFailed, store.LetterUnknown, store.LetterDropped
	)
	all := []store.LetterState{held, queued, sending, sent, failed, unknown, dropped}
	byHand := map[store.LetterState][]store.LetterState{
		held: {queued, dropped}, queued: {held, dropped}, sending: {unknown}, sent: {failed}, failed: {held, queued, dropped},
		unknown: {held, queued, sent, failed, dropped}, dropped: {held, queued},
	}
	bySender := map[store.LetterState][]store.LetterState{sending: {queued, held, sent, failed, unknown}, unknown: {queued, held, sent, failed, unknown}}
	// begin makes a letter in a state, by legal ways, and gives what its last sender has of it.
	begin := func(key string, state store.LetterState) *store.Letter {
		l := note(key)
		switch state {
		case held, dropped:
			l.State = held
		}
		put(t, s, l)
		var got *store.Letter
		var err error
		switch state {
		case held, queued, dropped:
			got, err = s.LetterByMessageID(ctx, l.MessageID)
		default:
			got, err = s.NextLetter(ctx, noon)
		}
		if err != nil || got == nil || got.Key != key {
			t.Fatalf("%s: %+v, %v", key, got, err)
		}
		switch state {
		case sent, failed, unknown:
			settled := *got
			settled.State = state
			err = s.Settle(ctx, &settled)
		case dropped:
			err = s.MoveLetter(ctx, got.ID, []store.LetterState{held}, dropped, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	check := func(name string, l *store.Letter, from, to store.LetterState, legal bool, err error) {
		t.Helper()
		want := from
		if legal {
			want = to
		}
		got, readErr := s.Letter(ctx, l.ID)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if legal != (err == nil) || !legal && !errors.Is(err, store.ErrState) {
			t.Errorf("%s: %v, legal is %v", name, err, legal)
		}
		over := want == sent || want == failed || want == dropped
		if got.State != want || got.Ended.IsZero() == over {
			t.Errorf("%s: it is %s, ended %v, want %s", name, got.State, got.Ended, want)
		}
		if d := cmp.Diff(l, got, cmpopts.IgnoreFields(store.Letter{}, "State", "Reason", "Approved", "Ended", "Attempts", "Started")); d != "" {
			t.Errorf("%s (-before +after):\n%s", name, d)
		}
		// Out of the way of the next one.
		if got.State == queued {
			if err := s.MoveLetter(ctx, l.ID, []store.LetterState{queued}, dropped, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, from := range all {
		for _, to := range append(slices.Clone(all), "nonsense", "") {
			name := fmt.Sprintf("by hand %s to %q", from, to)
			l := begin(name, from)
			err := s.MoveLetter(ctx, l.ID, all, to, "by hand")
			approved := false
			if err == nil {
				moved, err := s.Letter(ctx, l.ID)
				if err != nil {
					t.Fatal(err)
				}
				approved = moved.Approved
			}
			if approved != (err == nil && to == queued) {
				t.Errorf("%s: approved is %v", name, approved)
			}
			check(name, l, from, to, slices.Contains(byHand[from], to), err)

			name = fmt.Sprintf("by its sender %s to %q", from, to)
			l = begin(name, from)
			settled, readErr := s.Letter(ctx, l.ID)
			if readErr != nil {
				t.Fatal(readErr)
			}
			settled.State = to
			err = s.Settle(ctx, settled)
			check(name, l, from, to, slices.Contains(bySender[from], to), err)
		}
		name := fmt.Sprintf("by hand %s, which is not where it was thought to be", from)
		l := begin(name, from)
		others := slices.DeleteFunc(slices.Clone(all), func(s store.LetterState) bool { return s == from })
		to := queued
		if from == queued {
			to = held
		}
		check(name, l, from, to, false, s.MoveLetter(ctx, l.ID, others, to, ""))
	}
}

// A letter that is sent again goes to those who refused it, not to those who have it.
func TestResend(t *testing.T) { storetest.Each(t, testResend) }

func testResend(t *testing.T, s *store.Store) {
	ctx := t.Context()
	put(t, s, note("a"))
	l, err := s.NextLetter(ctx, noon)
	if err != nil {
		t.Fatal(err)
	}
	l.State = store.LetterFailed
	l.To[0].State, l.To[0].Reply, l.To[1].State, l.To[1].Reply = "sent", "250 ok", "failed", "550 no such list"
	if err := s.Settle(ctx, l); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveLetter(ctx, l.ID, []store.LetterState{store.LetterFailed}, store.LetterQueued, "resend"); err != nil {
		t.Fatal(err)
	}
	l, err = s.NextLetter(ctx, noon)
	if err != nil {
		t.Fatal(err)
	}
	if want := []store.Recipient{{Address: "ada@example.org", State: "sent", Reply: "250 ok"}, {Address: "kit@lists.example.org", State: "", Reply: ""}}; !slices.Equal(l.To, want) {
		t.Errorf("recipients %v, want %v", l.To, want)
	}
}

// Of several senders each letter has exactly one.
func TestNextAtOnce(t *testing.T) { storetest.EachURL(t, testNextAtOnce) }

func testNextAtOnce(t *testing.T, url string) {
	const n = 30
	s := storetest.OpenURL(t, url)
	for i := range n {
		put(t, s, note(fmt.Sprint(i)))
		if err := s.PutNotice(t.Context(), store.Notice{Repo: "o/r", Number: i + 1, Comment: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	letters, notices := map[string]int{}, map[int]int{}
	for range 4 {
		own := storetest.OpenURL(t, url)
		wg.Go(func() {
			for {
				l, err := own.NextLetter(t.Context(), noon)
				if err != nil {
					t.Error(err)
					return
				}
				n, err := own.NextNotice(t.Context(), noon)
				if err != nil {
					t.Error(err)
					return
				}
				if l == nil && n == nil {
					return
				}
				mu.Lock()
				if l != nil {
					letters[l.Key]++
				}
				if n != nil {
					notices[n.Number]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(letters) != n || len(notices) != n {
		t.Errorf("%d letters and %d notices were taken, want %d", len(letters), len(notices), n)
	}
	for key, times := range letters {
		if times != 1 {
			t.Errorf("letter %s has %d senders", key, times)
		}
	}
	for number, times := range notices {
		if times != 1 {
			t.Errorf("notice %d has %d deliverers", number, times)
		}
	}
}
