package watch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"patchbench/mbox/source/feed"
	"patchbench/store"
)

// month makes a month of a list's traffic and knows what must become of it.
type month struct {
	rnd   *rand.Rand
	mails []arrival
	// truth is the state of each series version that must have a task, by the
	// Message-ID of its head.
	truth map[string]store.State
	ids   int
}

// arrival is a mail and when it comes in.
type arrival struct {
	at  time.Time
	raw []byte
}

var monthStart = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

const monthLength = 30 * 24 * time.Hour

func newMonth(seed uint64, mails int) *month {
	m := &month{rnd: rand.New(rand.NewPCG(seed, 1)), truth: make(map[string]store.State)}
	for n := 0; len(m.mails) < mails; n++ {
		if m.rnd.IntN(10) < 4 {
			m.series(n)
		} else {
			m.noise(n)
		}
	}
	slices.SortStableFunc(m.mails, func(a, b arrival) int { return a.at.Compare(b.at) })
	return m
}

func (m *month) chance(percent int) bool { return m.rnd.IntN(100) < percent }

func (m *month) within(d time.Duration) time.Duration { return time.Duration(m.rnd.Int64N(int64(d))) }

func (m *month) id() string {
	m.ids++
	return fmt.Sprintf("%08x.%d", m.rnd.Uint32(), m.ids)
}

// send has a mail come in, some through a second list as well, earlier or later.
func (m *month) send(l note, sent time.Time, late time.Duration) {
	m.mails = append(m.mails, arrival{sent.Add(late), l.raw(sent)})
	if m.chance(20) {
		l.to = "To: dev@lists.test, other@lists.test\nList-Id: <other.lists.test>"
		l.header += "X-Other: 1\n"
		if !strings.Contains(l.body, "\ndiff ") {
			l.body += "\n_____\nother mailing list\n"
		}
		m.mails = append(m.mails, arrival{sent.Add(late + m.within(time.Minute) - 30*time.Second), l.raw(sent)})
	}
}

// series posts one to four versions of a series, and what people say of them.
func (m *month) series(n int) {
	author := m.rnd.IntN(40)
	from := fmt.Sprintf("Author %d <a%d@trusted.test>", author, author)
	state := store.Queued
	if author%5 == 0 {
		from, state = fmt.Sprintf("Author %d <a%d@far.test>", author, author), store.Held
	}
	topic := fmt.Sprintf("part%d: topic %d of %d", m.rnd.IntN(30), n, author)
	tag := ""
	if m.chance(14) {
		tag, state = "RFC ", store.Ignored
	}
	total := 1 + m.rnd.IntN(8)
	at := monthStart.Add(m.within(monthLength - 10*24*time.Hour))
	before, whole := "", "" // heads: of the version before, of the last whole one
	for v := 1; v == 1 || v < 5 && m.chance(45); v++ {
		word := tag + "PATCH"
		if v > 1 {
			word = fmt.Sprintf("%sPATCH v%d", tag, v)
		}
		number := func(n int) string { return fmt.Sprintf("[%s %d/%d] ", word, n, total) }
		if total == 1 {
			number = func(int) string { return "[" + word + "] " }
		}
		head, re := "", ""
		if v > 1 && m.chance(50) {
			re = before // in the same thread
		}
		lost := 0
		if total > 1 && m.chance(12) {
			lost = 1 + m.rnd.IntN(total)
		}
		if total > 1 && m.chance(80) || lost == 1 {
			head = m.id()
			m.send(note{id: head, re: re, from: from, subject: number(0) + topic, body: "It is about " + topic + ".\n\nWith words.\n"}, at, m.within(10*time.Second))
			re = head
		}
		for p := 1; p <= total; p++ {
			id := m.id()
			if head == "" {
				head = id
			}
			if p == lost {
				continue
			}
			late := m.within(20 * time.Second)
			if m.chance(2) {
				late = m.within(15 * time.Minute)
			}
			file := fmt.Sprintf("part%d/file%d.c", n%30, p)
			m.send(note{id: id, re: re, from: from, subject: number(p) + fmt.Sprintf("%s: step %d", topic, p),
				body: fmt.Sprintf("Step %d is needed.\n\nSigned-off-by: A\n---\n %s | 2 +-\n\n%s", p, file, diff(file, fmt.Sprint(topic, v, p)))}, at.Add(time.Duration(p)*time.Second), late)
			if re == "" {
				re = head
			}
			for range m.rnd.IntN(3) {
				m.review(id, topic, at.Add(m.within(36*time.Hour)), file)
			}
		}
		switch {
		case lost == 0:
			if whole != "" && state != store.Ignored {
				m.truth[whole] = store.Superseded
			}
			m.truth[head], whole = state, head
		case state == store.Ignored:
			m.truth[head] = state
		default:
			m.truth[head] = store.Incomplete
		}
		before = head
		at = at.Add(48*time.Hour + m.within(24*time.Hour))
	}
}

// review answers a patch, some with a diff that is a comment.
func (m *month) review(re, topic string, at time.Time, file string) {
	body := "> " + strings.ReplaceAll(diff(file, "x"), "\n", "\n> ") + "\nI do not like it.\n"
	if m.chance(15) {
		body = "How about this?\n\n" + diff(file, fmt.Sprint("better", m.rnd.Uint32()))
	}
	l := note{id: m.id(), re: re, from: fmt.Sprintf("R <r%d@far.test>", m.rnd.IntN(60)), subject: "Re: [PATCH] " + topic, body: body}
	m.send(l, at, m.within(time.Minute))
	if m.chance(50) {
		m.send(note{id: m.id(), re: l.id, from: "S <s@far.test>", subject: "Re: Re: [PATCH] " + topic, body: "> I do not like it.\n\nbench: run\nI do.\n"}, at.Add(time.Hour), m.within(time.Minute))
	}
}

// noise is what else comes through a list.
func (m *month) noise(n int) {
	at := monthStart.Add(m.within(monthLength))
	l := note{id: m.id(), from: fmt.Sprintf("N <n%d@far.test>", m.rnd.IntN(200)), subject: fmt.Sprintf("question %d", n), body: "How does one do that?\n"}
	switch m.rnd.IntN(8) {
	case 0:
		l.subject, l.body = "[GIT PULL] things", "The following changes since commit\n\n"+diff("x", "y")
	case 1:
		l.subject, l.header, l.body = "Out of office", "Auto-Submitted: auto-replied\n", "I am away.\n"
	case 2:
		l.subject, l.id, l.body = "no id", "", fmt.Sprintf("%d\n", n)
	case 3:
		l.header, l.body = "Content-Type: multipart/mixed; boundary=x\n", "--x\n\ncut off"
	case 4:
		for range 1 + m.rnd.IntN(5) {
			m.send(note{id: m.id(), re: l.id, from: "T <t@far.test>", subject: "Re: " + l.subject, body: "> How does one do that?\n\nLike this.\n"}, at.Add(m.within(5*time.Hour)), 0)
		}
	}
	m.send(l, at, 0)
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
	for _, a := range m.mails {
		for a.at.Sub(x.now) > every {
			flush()
			x.wait(every)
		}
		batch = append(batch, received("month", feed.Mail{Raw: a.raw, Received: a.at}))
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
			ref := strings.TrimSuffix(t.Ref, "@x.test")
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
	t.Logf("%d mails, %d series: %v", len(m.mails), len(m.truth), counts)
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
		for batch := range slices.Chunk(m.mails, feed.MaxMails) {
			var mails []store.Mail
			start := time.Now()
			for _, a := range batch {
				mails = append(mails, received("month", feed.Mail{Raw: a.raw, Received: a.at}))
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
		bytes = float64(live()-before) / float64(len(m.mails))
		start = time.Now()
		x.restart()
		x.step()
		b.ReportMetric(float64(len(m.mails))/time.Since(start).Seconds(), "mails/s-restart")
		x.w.close()
	}
	b.ReportMetric(float64(len(m.mails))*float64(b.N)/spent.Seconds(), "mails/s")
	b.ReportMetric(bytes, "B/mail")
}
