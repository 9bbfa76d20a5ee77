package watch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"patchbench/bot/watch/traffic"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/mbox/source/feed"
	"patchbench/store"
	"patchbench/store/storetest"
)

// world is a Watcher with its store, a clock that is set by hand, and a service
// file that tests change.
type world struct {
	t   testing.TB
	st  *store.Store
	cfg *service.Config
	now time.Time
	log bytes.Buffer
	w   *Watcher
	txt func(context.Context, string) ([]string, error)
}

const secret = "a secret of the tests"

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, storetest.Open(t))
}

func newWorldOn(t testing.TB, st *store.Store) *world {
	t.Helper()
	x := &world{t: t, st: st, now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	x.cfg = &service.Config{
		Projects: []service.Project{{Name: "kit", Branch: "main"}, {Name: "tool", Class: "arm64"}},
		SMTP:     &service.SMTP{From: mbox.Address{Name: "Patchbench", Email: "bench@bot.test"}},
		Lists: []service.List{
			{Address: "dev@lists.test", ID: "dev.lists.test", Project: "kit", Mode: service.DryRun, Wait: 30 * time.Minute, GiveUp: 24 * time.Hour,
				Tags: map[string]string{"next": "next"}, IgnoreTags: []string{"rfc"}},
			{Address: "tool@lists.test", ID: "tool.lists.test", Project: "tool", Mode: service.ToList, Quiet: true, Wait: time.Hour, GiveUp: 24 * time.Hour,
				RequireTags: []string{"tool"}, Paths: []string{"src/*.c"}},
		},
		Policy: service.Policy{
			Trusted: []string{"@trusted.test"}, Commands: []string{"boss@trusted.test"}, OptOut: []string{"quiet@trusted.test"},
			AuthservID: "mx.test", Strangers: service.Hold, PerAuthorDay: 5, MaxAge: 7 * 24 * time.Hour, ThreadCap: 10,
		},
		Worker: service.Worker{Class: "x86"},
	}
	x.st.SetClock(func() time.Time { return x.now })
	x.restart()
	return x
}

// restart makes a new Watcher, as a new process would.
func (x *world) restart() {
	x.t.Helper()
	if x.w != nil {
		x.w.close()
	}
	x.w = New(x.st, func() *service.Config { return x.cfg }, Options{
		Now: func() time.Time { return x.now }, Log: slog.New(slog.NewTextHandler(&x.log, nil)), Secret: []byte(secret), Dir: x.t.TempDir(),
		LookupTXT: func(ctx context.Context, name string) ([]string, error) { return x.txt(ctx, name) },
	})
	if err := x.w.load(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(x.w.close)
}

// step lets the Watcher look into the store once.
func (x *world) step() {
	x.t.Helper()
	if err := x.w.step(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// wait lets time go by, and a look follow.
func (x *world) wait(d time.Duration) {
	x.t.Helper()
	x.now = x.now.Add(d)
	x.step()
}

// note is a mail in short.
type note struct {
	id, re, from, subject, body, header string
	to                                  string // default: the list dev
	forged                              bool   // no word of the own server
	undated                             bool
}

const patchText = "Why.\n---\n f.c | 2 +-\n\n"

func diff(file, to string) string { return traffic.Diff(file, to) }

// raw writes the mail down.
func (l note) raw(now time.Time) []byte {
	if l.from == "" {
		l.from = "One <one@trusted.test>"
	}
	if l.body == "" {
		l.body = patchText + diff("f.c", l.subject)
	}
	return traffic.Note{ID: l.id, Re: l.re, From: l.from, Subject: l.subject, Body: l.body, Header: l.header, To: l.to, Forged: l.forged, Undated: l.undated}.Raw(now)
}

// get puts mails into the store, as a feed would.
func (x *world) get(list ...note) {
	x.t.Helper()
	for _, l := range list {
		x.getRaw(l.raw(x.now))
	}
}

func (x *world) getRaw(raw []byte) {
	x.t.Helper()
	if _, err := x.st.TakeIn(x.t.Context(), "test", "", []store.Mail{received("test", feed.Mail{Raw: raw, Received: x.now})}); err != nil {
		x.t.Fatal(err)
	}
}

// cover and patch are the mails of a series with the ids NAME.0, NAME.1, ...
func cover(name, tag string, total int) note {
	return note{id: name + ".0", subject: fmt.Sprintf("[%s 0/%d] %s", tag, total, title(name)), body: "What it is about.\n"}
}

func patch1(name, tag string, n, total int) note {
	return note{id: fmt.Sprint(name, ".", n), re: name + ".0", subject: fmt.Sprintf("[%s %d/%d] %s: step %d", tag, n, total, title(name), n),
		body: patchText + diff("f.c", fmt.Sprint(name, n))}
}

// title is the same for all versions of a series: NAME without its version.
func title(name string) string {
	t, _, _ := strings.Cut(name, "-v")
	return t
}

// posted is a whole series of two patches.
func posted(name, tag string) []note {
	return []note{cover(name, tag, 2), patch1(name, tag, 1, 2), patch1(name, tag, 2, 2)}
}

// jobs tells all tasks, the oldest first: ref, version, state and reason.
func (x *world) jobs() []string {
	x.t.Helper()
	list, err := x.st.Tasks(x.t.Context(), store.TaskFilter{Limit: 100_000})
	if err != nil {
		x.t.Fatal(err)
	}
	out := []string{}
	for i := len(list) - 1; i >= 0; i-- {
		t := list[i]
		kind, _, _ := strings.Cut(t.Key, ":")
		out = append(out, fmt.Sprintf("%s %s v%d %s: %s", kind, strings.TrimSuffix(t.Ref, "@x.test"), t.Version, t.State, t.Reason))
	}
	return out
}

// payload is that of a task.
func (x *world) payload(key string) store.MailPayload {
	x.t.Helper()
	t, err := x.st.TaskByKey(x.t.Context(), key)
	if err != nil {
		x.t.Fatal(err)
	}
	var p store.MailPayload
	if err := store.DecodePayload(t.Payload, &p); err != nil {
		x.t.Fatal(err)
	}
	return p
}
