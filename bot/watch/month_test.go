package watch

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"patchbench/bot/watch/traffic"
	"patchbench/mbox/source/feed"
	"patchbench/store"
)

// month is a month of a list's traffic.
type month struct {
	*traffic.List
	truth map[string]store.State
}

var monthStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const monthLength = 30 * 24 * time.Hour

func newMonth(seed uint64, mails int) *month {
	l := traffic.New(traffic.Options{Seed: seed, Mails: mails, Start: monthStart, Length: monthLength, Gap: 48 * time.Hour})
	return &month{l, l.Truth()}
}

// deliver has all mails come in and be looked at each so often, and gives the
// states that came of it, by head.
func (m *month) deliver(x *world, every time.Duration) map[string]store.State {
	x.t.Helper()
	x.cfg.Policy.PerAuthorDay, x.cfg.Policy.ThreadCap = 0, 0
	x.now = monthStart
	var batch []store.Mail
	flush := func() {
		if _, err := x.st.TakeIn(x.t.Context(), "month", "", batch); err != nil {
			x.t.Fatal(err)
		}
		batch = batch[:0]
	}
	for _, a := range m.Mails {
		for a.At.Sub(x.now) > every {
			flush()
			x.wait(every)
		}
		batch = append(batch, received("month", feed.Mail{Raw: a.Raw, Received: a.At}))
	}
	flush()
	x.wait(every)
	x.wait(25 * time.Hour)
	return x.states()
}

// states are those of all tasks by head.
func (x *world) states() map[string]store.State {
	x.t.Helper()
	got := make(map[string]store.State)
	f := store.TaskFilter{Limit: 1000}
	for {
		list, err := x.st.Tasks(x.t.Context(), f)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, t := range list {
			ref := strings.TrimSuffix(t.Ref, "@"+traffic.Domain)
			if got[ref] != "" {
				x.t.Errorf("%s has two tasks", ref)
			}
			got[ref] = t.State
			f.Before = t.ID
		}
		if len(list) == 0 {
			return got
		}
	}
}

// compare tells where a month went wrong.
func (m *month) compare(t testing.TB, got map[string]store.State) {
	t.Helper()
	wrong := 0
	for _, head := range slices.Sorted(func(yield func(string) bool) {
		for h := range m.truth {
			if !yield(h) {
				return
			}
		}
	}) {
		if got[head] != m.truth[head] {
			if wrong++; wrong < 10 {
				t.Errorf("series %s is %q, want %q", head, got[head], m.truth[head])
			}
		}
	}
	for head, state := range got {
		if m.truth[head] == "" {
			if wrong++; wrong < 10 {
				t.Errorf("%s is %q, and no series", head, state)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d series are wrong", wrong, len(m.truth))
	}
}

// TestMonth: each whole series is decided once, old versions are dropped, and
// nothing else is taken for a series.
func TestMonth(t *testing.T) {
	mails, every := 600, 6*time.Hour
	if os.Getenv("PATCHBENCH_LONG") != "" {
		mails, every = 10_000, time.Hour
	}
	m := newMonth(1, mails)
	x := newWorld(t)
	got := m.deliver(x, every)
	m.compare(t, got)
	counts := make(map[store.State]int)
	for _, s := range m.truth {
		counts[s]++
	}
	t.Logf("%d mails, %d series: %v", len(m.Mails), len(m.truth), counts)
	for _, s := range []store.State{store.Queued, store.Held, store.Superseded, store.Incomplete, store.Ignored} {
		if counts[s] == 0 {
			t.Errorf("the month has no series that is %s", s)
		}
	}
	x.restart()
	x.step()
	m.compare(t, x.states())
}

// BenchmarkMonth has 10,000 mails of a month come in and decided at once: how many
// a second, with what is stored, and how many bytes are at hand of each.
func BenchmarkMonth(b *testing.B) {
	m := newMonth(1, 10_000)
	live := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	var spent time.Duration
	var bytes float64
	for b.Loop() {
		x := newWorld(b)
		x.cfg.Policy.PerAuthorDay, x.cfg.Policy.ThreadCap = 0, 0
		for batch := range slices.Chunk(m.Mails, feed.MaxMails) {
			var mails []store.Mail
			start := time.Now()
			for _, a := range batch {
				mails = append(mails, received("month", feed.Mail{Raw: a.Raw, Received: a.At}))
			}
			if _, err := x.st.TakeIn(b.Context(), "month", "", mails); err != nil {
				b.Fatal(err)
			}
			spent += time.Since(start)
		}
		before := live()
		x.now = monthStart.Add(monthLength)
		x.cfg.Policy.MaxAge = 0
		start := time.Now()
		x.step()
		spent += time.Since(start)
		bytes = float64(live()-before) / float64(len(m.Mails))
		start = time.Now()
		x.restart()
		x.step()
		b.ReportMetric(float64(len(m.Mails))/time.Since(start).Seconds(), "mails/s-restart")
		x.w.close()
	}
	b.ReportMetric(float64(len(m.Mails))*float64(b.N)/spent.Seconds(), "mails/s")
	b.ReportMetric(bytes, "B/mail")
}
