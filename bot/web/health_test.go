package web

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"patchbench/bench"
	"patchbench/bot/part"
	"patchbench/bot/report/cases"
	"patchbench/store"
	"patchbench/store/storetest"
)

func TestChecks(t *testing.T) {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		name  string
		o     store.Overview
		parts []part.Status
		want  string
	}{
		{"empty", store.Overview{}, nil, `
ok    store: 0 evaluations
ok    queue: 0 running, 0 waiting, 0 held
ok    outbox: 0 waiting, 0 held, 0 unknown
`},
		{"at work", store.Overview{
			Evaluations: map[bench.Verdict]int{bench.Worse: 3, bench.Same: 40},
			Sources:     []store.SourceState{{Name: "imap:b@h/INBOX", Mails: 7, Last: ago(4 * time.Minute)}, {Name: "maildir:/m"}},
			Tasks:       map[store.State]int{store.Running: 1, store.Queued: 2, store.Held: 3, store.Done: 50},
			Queued:      ago(time.Hour),
			Letters:     map[store.LetterState]int{store.LetterQueued: 1, store.LetterSending: 1, store.LetterUnknown: 2},
			Due:         ago(time.Hour), Sending: ago(time.Minute),
			Lapsed: []store.Task{{ID: 4, Worker: "w", Lease: ago(time.Minute)}},
		}, []part.Status{{Name: "sender", Since: ago(time.Hour)}, {Name: "mail", Since: ago(2 * time.Hour)}}, `
ok    store: 43 evaluations
ok    imap:b@h/INBOX: last mail 2026-11-30T18:56:00Z, 4m0s ago
ok    maildir:/m: no mail yet
ok    queue: 1 running, 2 waiting, the oldest since 2026-11-30T18:00:00Z, 1h0m0s ago, 3 held
ok    outbox: 1 waiting, 0 held, 2 unknown
ok    mail: runs since 2026-11-30T17:00:00Z
ok    sender: runs since 2026-11-30T18:00:00Z
`},
		{"a worker lost", store.Overview{Lapsed: []store.Task{{ID: 4, Worker: "bench1", Lease: ago(5 * time.Minute)}, {ID: 5, Lease: ago(time.Hour)}}}, nil, `
ok    store: 0 evaluations
bad   worker: bench1 was last heard of before 2026-11-30T18:55:00Z, 5m0s ago; its job 4 will be taken up by another
bad   worker: (unnamed) was last heard of before 2026-11-30T18:00:00Z, 1h0m0s ago; its job 5 will be taken up by another
ok    queue: 0 running, 0 waiting, 0 held
ok    outbox: 0 waiting, 0 held, 0 unknown
`},
		{"letters left", store.Overview{Letters: map[store.LetterState]int{store.LetterQueued: 3}, Due: ago(7 * time.Hour)}, nil, `
ok    store: 0 evaluations
ok    queue: 0 running, 0 waiting, 0 held
bad   outbox: 3 letters wait, the oldest since 2026-11-30T12:00:00Z, 7h0m0s ago
`},
		{"a letter stuck", store.Overview{Letters: map[store.LetterState]int{store.LetterSending: 1}, Sending: ago(20 * time.Minute)}, nil, `
ok    store: 0 evaluations
ok    queue: 0 running, 0 waiting, 0 held
bad   outbox: a letter is being sent since 2026-11-30T18:40:00Z, 20m0s ago
`},
		{"no mailbox", store.Overview{}, []part.Status{{Name: "imap:b@h/INBOX", Since: ago(time.Hour), Err: errors.New("connect: refused\nx")}}, `
ok    store: 0 evaluations
ok    queue: 0 running, 0 waiting, 0 held
ok    outbox: 0 waiting, 0 held, 0 unknown
bad   imap:b@h/INBOX: connect: refused\x0ax (since 2026-11-30T18:00:00Z)
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := checks{now: now}
			k.store(&c.o)
			k.parts(c.parts)
			if d := cmp.Diff(strings.TrimPrefix(c.want, "\n"), k.text.String()); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if k.bad != strings.Contains(c.want, "bad ") {
				t.Errorf("bad = %v", k.bad)
			}
		})
	}
}

// The numbers of health and metrics are those of the store.
func TestOverview(t *testing.T) {
	storetest.Each(t, func(t *testing.T, st *store.Store) {
		s := newSite(t, st)
		save(t, st, "one-improvement", "20261130-000001", 30)
		save(t, st, "regression-of-13", "20261130-000002", 20)
		finish(t, st, store.Task{Key: "a", Kind: store.KindMail, Project: "git"}, "20261130-000001")
		if _, _, err := st.Decide(t.Context(), store.Decision{Task: store.Task{Key: "b", Kind: store.KindMail, Class: "x86", State: store.Held}}); err != nil {
			t.Fatal(err)
		}
		for i, raw := range []string{"one", "two"} {
			m := store.Mail{Source: "imap:b@h/INBOX", Received: now.Add(time.Duration(i) * time.Second), Raw: []byte(raw)}
			cursor := `{"uidvalidity":1,"next":9,"aside":[{"uid":3,"since":"2026-11-30T18:00:00Z","again":"2026-11-30T20:00:00Z","tries":1}]}`
			if _, err := st.TakeIn(t.Context(), m.Source, cursor, []store.Mail{m}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := st.TakeIn(t.Context(), "maildir:/m", "5", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Put(t.Context(), store.Letter{Key: "k", MessageID: "k@users.test", To: []store.Recipient{{Address: "an@example.org"}}, Body: []byte("x"), State: store.LetterHeld}); err != nil {
			t.Fatal(err)
		}
		if err := st.PutNotice(t.Context(), store.Notice{Repo: "o/r", Number: 1, Head: "c", Comment: "x"}); err != nil {
			t.Fatal(err)
		}
		s.parts = []part.Status{{Name: "sender", Since: now}, {Name: "worker", Since: now, Err: errors.New("no sandbox")}, {Name: "sender", Since: now, Err: errors.New("x")}}

		w := s.get(t, "/healthz")
		for _, want := range []string{"ok    store: 2 evaluations\n", "imap:b@h/INBOX: last mail 2026-11-30T19:00:01Z", "maildir:/m: no mail yet", "1 held", "bad   worker: no sandbox"} {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("health does not say %q:\n%s", want, w.Body)
			}
		}
		if w.Code != 503 || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("health with a part that does not run: %d", w.Code)
		}

		w = s.get(t, "/metrics")
		got := map[string]bool{}
		for line := range strings.Lines(w.Body.String()) {
			got[strings.TrimSpace(line)] = true
		}
		for _, want := range []string{
			"patchbench_store_up 1",
			`patchbench_jobs{state="done"} 1`, `patchbench_jobs{state="held"} 1`, `patchbench_jobs{state="running"} 0`,
			`patchbench_letters{state="held"} 1`, `patchbench_letters{state="sent"} 0`,
			"patchbench_notices_due 1", "patchbench_mails_total 2", `patchbench_mails{source="imap:b@h/INBOX"} 2`, `patchbench_mails{source="maildir:/m"} 0`,
			`patchbench_mails_set_aside{source="imap:b@h/INBOX"} 1`,
			`patchbench_last_mail_timestamp_seconds{source="imap:b@h/INBOX"} 1.796065201e+09`,
			`patchbench_evaluations{verdict="worse"} 1`, `patchbench_evaluations{verdict="better"} 1`, `patchbench_evaluations{verdict="mixed"} 0`,
			"patchbench_evaluation_build_seconds_count 2", "patchbench_evaluation_measure_seconds_count 2",
			"patchbench_oldest_queued_timestamp_seconds 0", "patchbench_lapsed_leases 0",
			`patchbench_mail_outcomes_total{outcome="own"} 3`, `patchbench_mail_outcomes_total{outcome="refused command"} 0`,
			`patchbench_part_up{part="sender"} 0`, `patchbench_part_up{part="worker"} 0`,
		} {
			if !got[want] {
				t.Errorf("metrics lack %q", want)
			}
		}
		problems, err := promlint.New(strings.NewReader(ours(w.Body.String()))).Lint()
		if err != nil {
			t.Error(err)
		}
		for _, p := range problems {
			t.Errorf("metric %s: %s", p.Metric, p.Text)
		}

		o, err := st.Overview(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		e := cases.All["one-improvement"]().Evaluation
		if each := time.Duration(e.MeasureSeconds * float64(time.Second)); o.MeasureTime < each || o.BuildTime == 0 {
			t.Errorf("builds took %v, measuring %v", o.BuildTime, o.MeasureTime)
		}

		// A worker that is not heard of any more.
		made, _, err := st.Decide(t.Context(), store.Decision{Task: store.Task{Key: "c", Kind: store.KindMail, Class: "x86", State: store.Queued}})
		if err != nil {
			t.Fatal(err)
		}
		if o, err := st.Overview(t.Context(), now); err != nil || o.Queued.IsZero() || len(o.Lapsed) != 0 {
			t.Errorf("%+v, %v", o, err)
		}
		if _, err := st.Claim(t.Context(), made.ID, "bench9", time.Minute); err != nil {
			t.Fatal(err)
		}
		o, err = st.Overview(t.Context(), time.Now().Add(time.Hour))
		if err != nil || len(o.Lapsed) != 1 || o.Lapsed[0].Worker != "bench9" || o.Lapsed[0].ID != made.ID || !o.Queued.IsZero() {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// ours are the lines of our own metrics.
func ours(page string) string {
	var b strings.Builder
	for line := range strings.Lines(page) {
		if strings.Contains(line, "patchbench_") {
			b.WriteString(line)
		}
	}
	return b.String()
}
