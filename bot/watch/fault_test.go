package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/config/service"
	"patchbench/mbox/source/feed"
	"patchbench/store"
	"patchbench/store/storetest"
)

// TestDeathAnywhere ends the work at each statement to the store in turn, as a
// killed process would, begins anew from there, and wants the same tasks in the end.
func TestDeathAnywhere(t *testing.T) {
	// play has all that a Watcher does come up, in two looks; each is disturbed by do.
	play := func(x *world, look func()) []string {
		x.get(posted("a", "PATCH")...)
		x.get(stranger("b")...)
		x.get(note{id: "c", subject: "[PATCH] c", body: patchText + diff("c", "x")})
		look()
		x.now = x.now.Add(time.Hour)
		x.get(posted("a-v2", "PATCH v2")...)
		x.get(reply("r", "b.1", "bench: run\n"), reply("s", "c", "bench: ignore\nbench: run probe\n"), reply("w", "d", "bench: stop\n"))
		x.get(note{id: "d", subject: "[PATCH] d", body: patchText + diff("d", "x")})
		look()
		return x.jobs()
	}
	x := newWorld(t)
	want := play(x, x.step)
	if len(want) != 6 {
		t.Fatalf("an undisturbed run gives %q", want)
	}
	for k := 1; ; k++ {
		var fault storetest.Fault
		x := newWorldOn(t, storetest.OpenWrapped(t, storetest.SQLite(t), fault.Wrap))
		ended := 0
		look := func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			fault.Set(func(string) {
				if n++; n == k {
					cancel()
				}
			})
			err := x.w.step(ctx)
			fault.Set(nil)
			if n < k {
				ended++
			} else if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("statement %d: %v", k, err)
			}
			x.restart()
			x.step()
		}
		if d := cmp.Diff(want, play(x, look)); d != "" {
			t.Fatalf("ended at statement %d (-undisturbed +then):\n%s", k, d)
		}
		x.w.close()
		x.st.Close()
		if ended == 2 { // neither look has so many
			t.Logf("%d statements at most", k-1)
			break
		}
		if os.Getenv("PATCHBENCH_LONG") == "" {
			k += 12
		}
	}
}

// fakeFeed gives batches, each again until it is taken.
type fakeFeed struct {
	batches []feed.Batch
	events  []feed.Event
	given   int
}

func (*fakeFeed) Name() string { return "fake:box" }

func (f *fakeFeed) Follow(ctx context.Context, cursor string, take func(context.Context, feed.Batch) error, notify func(feed.Event)) error {
	for _, e := range f.events {
		notify(e)
	}
	for i, b := range f.batches {
		if cursor >= b.Cursor {
			continue
		}
		for {
			f.given++
			if err := take(ctx, f.batches[i]); err == nil {
				break
			} else if ctx.Err() != nil {
				return ctx.Err()
			} else {
				notify(feed.Event{Text: "again", Err: err})
			}
		}
	}
	return errors.New("that was all")
}

func TestTakeIn(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	mail := func(id string) feed.Mail {
		return feed.Mail{Raw: note{id: id, subject: "[PATCH] " + id}.raw(now), Received: now}
	}
	f := &fakeFeed{
		batches: []feed.Batch{
			{Cursor: "0"},
			{Cursor: "1", Mails: []feed.Mail{mail("a"), mail("b")}},
			{Cursor: "2", Mails: []feed.Mail{mail("b"), {Raw: []byte("no mail"), Received: now}, {Raw: mail("c").Raw, Received: now, Cut: true}, mail("")}},
			{Cursor: "3", Mails: []feed.Mail{mail("d")}},
		},
		events: []feed.Event{{Text: "hello"}},
	}
	var fault storetest.Fault
	st := storetest.OpenWrapped(t, storetest.SQLite(t), fault.Wrap)
	var heard []string
	run := func(ctx context.Context) {
		t.Helper()
		err := TakeIn(ctx, st, f, slog.New(slog.DiscardHandler), func(e feed.Event) { heard = append(heard, e.Text) })
		if err == nil || ctx.Err() == nil && err.Error() != "that was all" {
			t.Fatal(err)
		}
	}
	// Each run ends at another statement; the next goes on from the cursor.
	for k := 1; ; k++ {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		fault.Set(func(string) {
			if n++; n == k {
				cancel()
			}
		})
		run(ctx)
		fault.Set(nil)
		cancel()
		if n < k {
			break
		}
	}
	before := f.given
	run(t.Context())
	if f.given != before {
		t.Errorf("%d batches were given again", f.given-before)
	}
	mails, err := st.Mails(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mails {
		key := m.Key
		if strings.HasPrefix(key, "sha256:") {
			key = key[:7]
		}
		got = append(got, strings.TrimSpace(fmt.Sprint(key, " ", m.Source, " ", m.Received.Format(time.Kitchen), " ", m.Problem)))
	}
	want := []string{
		"a@x.test fake:box 12:00PM", "b@x.test fake:box 12:00PM", "sha256: fake:box 12:00PM no mail header",
		"c@x.test fake:box 12:00PM mail larger than 8 MiB", "sha256: fake:box 12:00PM", "d@x.test fake:box 12:00PM",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(heard) == 0 || heard[0] != "hello" {
		t.Errorf("heard %q", heard)
	}
}

// TestRun: a running Watcher sees what comes in, by a clock that jumps, and ends with
// its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.Open(t)
		cfg := newWorld(t).cfg
		var ahead atomic.Int64 // of the bubble's clock
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		w := New(st, func() *service.Config { return cfg }, Options{Dir: t.TempDir(), Now: now})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		for i := range 3 {
			raw := note{id: fmt.Sprint("a", i), subject: fmt.Sprint("[PATCH] a", i), body: patchText + diff(fmt.Sprint(i), "x")}.raw(now())
			if _, err := st.TakeIn(ctx, "test", "", []store.Mail{received("test", feed.Mail{Raw: raw, Received: now()})}); err != nil {
				t.Fatal(err)
			}
			<-time.After(2 * poll) // by the clock of the bubble
			list, err := st.Tasks(ctx, store.TaskFilter{})
			if err != nil || len(list) != i+1 {
				t.Fatalf("%v: %d tasks, want %d", err, len(list), i+1)
			}
			// Forward, and further back: the Watcher begins anew.
			ahead.Add(int64([]time.Duration{25 * time.Hour, -50 * time.Hour, 0}[i]))
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
