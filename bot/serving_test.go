package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bot/part"
	"patchbench/bot/serving"
)

// A series is answered once, in its thread; its second version takes the place of
// the first that is being evaluated; commands end evaluations, from those who may.
func TestServiceConversation(t *testing.T) {
	needTool(t, "git")
	w := newMailWorld(t)
	w.will("hash: faster v1", w.untilEnd)
	w.will("table: smaller v1", w.untilEnd)
	s := w.start()
	w.post("one", "hash: faster", 1, somePatch(1), somePatch(2))
	w.settled("hash: faster v1 running")
	waitLong(t, "the evaluation to begin", func() bool { return len(w.happened()) == 1 }, s.log.String)
	w.post("two", "hash: faster", 2, somePatch(1), somePatch(3))
	w.settled("hash: faster v1 superseded", "hash: faster v2 done")
	if d := cmp.Diff([]string{"hash: faster v1 begins", "hash: faster v1 is interrupted", "hash: faster v2 begins"}, w.happened()); d != "" {
		t.Errorf("happened (-want +got):\n%s", d)
	}
	waitLong(t, "the answer", func() bool { return len(w.sent()) > 0 }, s.log.String)
	answer := w.sent()[0]
	h := answer.header(t)
	if d := cmp.Diff([]string{"one@example.org", "kit@lists.example.org"}, answer.to); d != "" {
		t.Errorf("recipients (-want +got):\n%s", d)
	}
	if h.Get("In-Reply-To") != "<two@example.org>" || h.Get("Subject") != "Re: [PATCH v2 0/2] hash: faster" || !strings.Contains(h.Get("To"), "one@example.org") {
		t.Errorf("the answer is not in the thread:\n%s", answer.text)
	}

	// The list has sent the answer to the bot too, which says nothing to itself.
	w.post("three", "table: smaller", 1, somePatch(5))
	waitLong(t, "the third series", func() bool { return len(w.happened()) == 4 }, s.log.String)
	w.reply("stranger", "three", "stranger@example.org", "bench: stop", true)
	w.reply("forged", "three", "maint@example.org", "bench: stop", false)
	w.reply("maint", "three", "maint@example.org", "Not now.\n\nbench: stop", true)
	w.settled("hash: faster v1 superseded", "hash: faster v2 done", "table: smaller v1 stopped")
	waitLong(t, "its end", func() bool { return len(w.happened()) == 5 }, s.log.String)
	if c := s.Mails(); c["own"] != 1 || c["refused command"] != 2 || c["decision"] != 3 {
		t.Errorf("outcomes %v, want one own mail, two commands refused, three decisions", c)
	}
	st := w.record()
	k, err := st.TaskByKey(t.Context(), "mail:three@example.org")
	if err != nil || !strings.Contains(k.Reason, "maint@example.org") {
		t.Errorf("stopped because %q (%v), want the maintainer's word", k.Reason, err)
	}
	st.Close()
	if err := s.end(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
	if n := len(w.sent()); n != 1 {
		t.Errorf("%d mails were sent, want one", n)
	}
}

// SIGTERM in the middle of an evaluation hands it back; the next start goes on with
// it, and answers once.
func TestServiceStops(t *testing.T) {
	needTool(t, "git")
	w := newMailWorld(t)
	w.will("hash: faster v1", w.untilEnd)
	s := w.start()
	w.post("one", "hash: faster", 1, somePatch(1))
	waitLong(t, "the evaluation to begin", func() bool { return len(w.happened()) == 1 }, s.log.String)
	if err := s.end(); err != nil {
		t.Fatalf("the service ended with %v", err)
	}
	w.settled("hash: faster v1 queued")
	// What comes meanwhile is not lost.
	w.post("two", "table: smaller", 1, somePatch(2))
	w.will("hash: faster v1", nil)
	s = w.start()
	w.settled("hash: faster v1 done", "table: smaller v1 done")
	waitLong(t, "the answers", func() bool { return len(w.sent()) == 2 }, s.log.String)
	if err := s.end(); err != nil {
		t.Fatalf("the service ended with %v", err)
	}
	if d := cmp.Diff([]string{"hash: faster v1 begins", "hash: faster v1 is interrupted", "hash: faster v1 goes on"}, w.happened()[:3]); d != "" {
		t.Errorf("happened (-want +got):\n%s", d)
	}
	// A third start has nothing to do.
	s = w.start()
	w.post("three", "sort: other", 1, somePatch(4))
	waitLong(t, "the third answer", func() bool { return len(w.sent()) == 3 }, s.log.String)
	if err := s.end(); err != nil {
		t.Fatalf("the service ended with %v", err)
	}
	if n := len(w.sent()); n != 3 {
		t.Errorf("%d mails were sent, want 3", n)
	}
}

// SIGHUP takes a file over whole or not at all, and what it does not change goes on.
func TestServiceReload(t *testing.T) {
	needTool(t, "git")
	w := newMailWorld(t)
	w.edit("branch = \"main\"\n", "branch = \"main\"\nbudget = \"3m\"\n")
	w.edit("[policy]", "[web]\nlisten = \"127.0.0.1:0\"\n[policy]")
	s := w.start()
	s.log.await("msg=started part=web")
	before := statuses(s.Status())
	for _, c := range []struct{ name, old, with, want string }{
		{"a fault", "strangers = \"run\"", "strangers = \"maybe\"\nbudget = 7", "policy.strangers"},
		{"another state", "strangers = \"maybe\"\nbudget = 7", "strangers = \"run\"", ""},
	} {
		w.edit(c.old, c.with)
		if c.want == "" {
			w.edit("state = \"state\"", "state = \"elsewhere\"")
			c.want = "state and .store. url cannot change"
		}
		s.hangUp <- os.Interrupt // which signal it is does not matter
		s.log.await("not taken over.*" + c.want)
	}
	w.post("one", "hash: faster", 1, somePatch(1))
	w.settled("hash: faster v1 done")
	if d := cmp.Diff(before, statuses(s.Status())); d != "" {
		t.Errorf("parts after files that were refused (-before +after):\n%s", d)
	}
	w.edit("state = \"elsewhere\"", "state = \"state\"")
	w.edit("budget = \"3m\"", "budget = \"7m\"")
	w.edit("[web]\nlisten = \"127.0.0.1:0\"\n", "[github]\ntoken_file = \"password\"\npoll = \"24h\"\nbase_url = \"https://127.0.0.1:1\"\nrepositories = { \"o/r\" = { project = \"kit\" } }\n")
	s.hangUp <- os.Interrupt
	s.log.await("was read again")
	after := statuses(s.Status())
	if after["imap:"] != before["imap:"] || after["watcher"] != before["watcher"] {
		t.Errorf("parts %v, before %v: want mailbox and watcher to go on", after, before)
	}
	if _, pages := after["web"]; pages || after["github"] == "" || after["sender"] == before["sender"] {
		t.Errorf("parts %v, before %v: want no pages, GitHub, and a sender that knows it", after, before)
	}
	w.edit("[github]", "[github]\nlabel = 3")
	s.hangUp <- os.Interrupt
	s.log.await("not taken over.*github.label")
	w.post("two", "table: smaller", 1, somePatch(2))
	w.settled("hash: faster v1 done", "table: smaller v1 done")
	w.mu.Lock()
	if d := cmp.Diff(map[string]time.Duration{"hash: faster": 3 * time.Minute, "table: smaller": 7 * time.Minute}, w.budgets); d != "" {
		t.Errorf("budgets (-want +got):\n%s", d)
	}
	w.mu.Unlock()
	if err := s.end(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

// statuses are the parts with the time of their start.
func statuses(all []part.Status) map[string]string {
	m := map[string]string{}
	for _, s := range all {
		name := s.Name
		if strings.HasPrefix(name, "imap:") {
			name = "imap:" // the port differs each time
		}
		m[name] = fmt.Sprintf("%v, %v", s.Since, s.Err)
	}
	return m
}

// What a service cannot start with it says, with the status that it means.
func TestServiceRefuses(t *testing.T) {
	needTool(t, "git")
	for name, c := range map[string]struct {
		prepare func(w *mailWorld)
		whole   bool
		status  int
		want    string
	}{
		"no file":         {func(w *mailWorld) { os.Remove(w.config) }, true, statusUsage, "no such file"},
		"a wrong key":     {func(w *mailWorld) { w.edit("branch =", "brunch =") }, true, statusUsage, `did you mean "branch"`},
		"a foreign store": {func(w *mailWorld) { makeState(w); write(w.t, w.dir+"/state/bot.db", strings.Repeat("text\n", 300)) }, true, statusOurs, "not an SQLite file"},
		"a second one": {func(w *mailWorld) {
			makeState(w)
			unlock, err := serving.Lock(filepath.Join(w.dir, "state"))
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(unlock)
		}, true, statusOurs, fmt.Sprintf("another bot watch (process %d) serves", os.Getpid())},
		"a worker of a record that was never served": {makeState, false, statusOurs, "start bot watch on it first"},
		"no sandbox": {func(w *mailWorld) { w.t.Setenv("PATH", "/nowhere") }, true, statusUnsafe, "bubblewrap"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newMailWorld(t)
			c.prepare(w)
			book := &logBook{t: t}
			o := serving.Options{File: w.config, Whole: c.whole, Worker: true, Env: func(string) string { return "" }, Log: newLog(book), Evaluate: w.run}
			if c.status == statusUnsafe {
				o.Evaluate = nil
			}
			err := serviceError(serving.New(o).Run(t.Context()))
			var f *failure
			status := statusOurs
			if errors.As(err, &f) {
				status = f.status
			}
			if err == nil || status != c.status || !strings.Contains(err.Error(), c.want) {
				t.Errorf("status %d, %v; want %d with %q", status, err, c.status, c.want)
			}
			if !strings.Contains(book.String(), "open-sesame") {
				return
			}
			t.Error("the password is in the log")
		})
	}
}

func makeState(w *mailWorld) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.dir, "state"), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// The record can be read by its owner alone, and no secret is in the log.
func TestServiceSecrets(t *testing.T) {
	needTool(t, "git")
	w := newMailWorld(t)
	s := w.start()
	st := w.record()
	secret, err := st.Value(t.Context(), serving.SecretName)
	if err != nil || len(secret) != 64 {
		t.Errorf("secret %q, %v", secret, err)
	}
	st.Close()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bot.db", "bot.db-wal", "watch.lock"} {
		info, err := os.Stat(filepath.Join(w.dir, "state", name))
		if errors.Is(err, os.ErrNotExist) && name == "bot.db-wal" {
			continue
		}
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", name, info.Mode(), err)
		}
	}
	for _, hidden := range []string{secret, "open-sesame"} {
		if strings.Contains(s.log.String(), hidden) {
			t.Errorf("the log has %q:\n%s", hidden, s.log)
		}
	}
	// The next start signs with the same.
	s = w.start()
	if err := s.end(); err != nil {
		t.Fatal(err)
	}
	st = w.record()
	defer st.Close()
	if again, err := st.Value(context.Background(), serving.SecretName); err != nil || again != secret {
		t.Errorf("the secret has changed: %v", err)
	}
}
