package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/store"
)

const boss = "The Boss <boss@trusted.test>"

// reply is a mail of the boss to another.
func reply(id, re, body string) note {
	return note{id: id, re: re, from: boss, subject: "Re: [PATCH 1/2] x", body: body}
}

func stranger(name string) []note {
	list := posted(name, "PATCH")
	for i := range list {
		list[i].from = "Two <two@far.test>"
	}
	return list
}

const held = `held: nobody trusts "two@far.test"`

func TestApprove(t *testing.T) {
	for _, c := range []struct {
		name  string
		mails []note
		want  []string
	}{
		{"run", []note{reply("r", "a.1", "> diff\nbench: run\n")}, []string{`mail a.0 v1 queued: approved by "boss@trusted.test"`}},
		{"run to the cover letter", []note{reply("r", "a.0", "bench: run\n")}, []string{`mail a.0 v1 queued: approved by "boss@trusted.test"`}},
		{"run to somebody's reply", []note{
			{id: "q", re: "a.1", from: "X <x@far.test>", subject: "Re: x", body: "ok\n"},
			{id: "r", re: "q", from: boss, subject: "Re: x", body: "bench: run\n", header: "References: <a.1@x.test> <q@x.test>\n"}},
			[]string{`mail a.0 v1 queued: approved by "boss@trusted.test"`}},
		{"twice", []note{reply("r", "a.1", "bench: run\n"), reply("s", "a.1", "bench: run\n")}, []string{`mail a.0 v1 queued: approved by "boss@trusted.test"`}},
		{"with benchmarks", []note{reply("r", "a.1", "bench: run probe fill base v2 arm64\n")},
			[]string{"mail a.0 v1 superseded: by run:r@x.test", `run a.0 v1 queued: asked for by "boss@trusted.test"`}},
		{"stop", []note{reply("r", "a.1", "bench: stop\n")}, []string{`mail a.0 v1 stopped: stopped by "boss@trusted.test"`}},
		{"ignore", []note{reply("r", "a.1", "bench: ignore\n")}, []string{`mail a.0 v1 ignored: the thread is left alone, says "boss@trusted.test"`}},
		{"stop and run in one mail", []note{reply("r", "a.1", "bench: stop\nbench: run\n")},
			[]string{`mail a.0 v1 stopped: stopped by "boss@trusted.test"`, `run a.0 v1 queued: asked for by "boss@trusted.test"`}},
		{"nonsense", []note{reply("r", "a.1", "bench: run --help\nbench: dance\nbench: run base a..b\n")}, []string{"mail a.0 v1 " + held}},
		{"quoted", []note{reply("r", "a.1", "> bench: run\n")}, []string{"mail a.0 v1 " + held}},
		{"in a patch", []note{{id: "r", re: "a.1", from: boss, subject: "Re: x", body: "From: Boss <boss@trusted.test>\n\nbench: run\n---\n\n" + diff("z", "z")}}, []string{"mail a.0 v1 " + held,
			`mail r v1 queued: ` + trustedDKIM}},
		{"by a stranger", []note{{id: "r", re: "a.1", from: "Two <two@far.test>", subject: "Re: x", body: "bench: run\n"}}, []string{"mail a.0 v1 " + held}},
		{"by one who is trusted alone", []note{{id: "r", re: "a.1", subject: "Re: x", body: "bench: run\n"}}, []string{"mail a.0 v1 " + held}},
		{"in the boss's name", []note{{id: "r", re: "a.1", from: boss, subject: "Re: x", body: "bench: run\n", forged: true}}, []string{"mail a.0 v1 " + held}},
		{"by the boss's robot", []note{{id: "r", re: "a.1", from: boss, subject: "Re: x", body: "bench: run\n", header: "Auto-Submitted: auto-replied\n"}}, []string{"mail a.0 v1 " + held}},
		{"through a list that puts itself into From", []note{{id: "r", re: "a.1", from: "The Boss via dev <dev@lists.test>", subject: "Re: x", body: "bench: run\n", header: "Reply-To: " + boss + "\n"}}, []string{"mail a.0 v1 " + held}},
		{"of long ago, sent again", []note{{id: "r", re: "a.1", from: boss, subject: "Re: x", body: "bench: run\n", undated: true, header: "Date: Fri, 01 Jan 2021 10:00:00 +0000\n"}}, []string{"mail a.0 v1 " + held}},
		{"without a Message-ID", []note{{re: "a.1", from: boss, subject: "Re: x", body: "bench: run\n"}}, []string{"mail a.0 v1 " + held}},
		{"about nothing", []note{reply("r", "nobody", "bench: run\n")}, []string{"mail a.0 v1 " + held}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			x.get(stranger("a")...)
			x.step()
			x.now = x.now.Add(time.Hour)
			x.get(c.mails...)
			x.step()
			x.check("then", c.want...)
			// A second look, and another process, obey nothing twice.
			x.step()
			x.restart()
			x.wait(48 * time.Hour)
			x.check("later", c.want...)
		})
	}
}

func TestRunOfCommand(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.now = x.now.Add(time.Hour)
	x.get(reply("r", "a.2", "bench: run probe base topic/x\n"))
	x.step()
	p := x.payload("run:r@x.test")
	if p.Base != "topic/x" || !slices.Equal(p.Benchmarks, []string{"probe"}) || len(p.Series.Patches) != 2 || p.Thread.MessageID != "r@x.test" ||
		p.Thread.Author.Email != "boss@trusted.test" || p.Thread.List != "dev@lists.test" || !slices.Equal(p.Thread.References, []string{"a.2@x.test"}) {
		t.Errorf("payload %+v", p)
	}
	task, err := x.st.TaskByKey(t.Context(), "run:r@x.test")
	if err != nil || task.Class != "x86" || task.Project != "kit" {
		t.Errorf("%v: %+v", err, task)
	}
}

// TestOrderOfCommands: what came after a command is not meant by it.
func TestOrderOfCommands(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.now = x.now.Add(time.Hour)
	x.get(reply("r", "a.1", "bench: stop\n"))
	x.now = x.now.Add(time.Hour)
	x.get(posted("a-v2", "PATCH v2")...)
	x.step()
	x.check("all at once", "mail a.0 v1 superseded: by mail:a-v2.0@x.test", "mail a-v2.0 v2 queued: "+trustedDKIM)
}

// TestEarlyCommand: a command may come before the series is complete, and before
// the process dies.
func TestEarlyCommand(t *testing.T) {
	x := newWorld(t)
	all := stranger("a")
	x.get(all[0], all[1], reply("r", "a.1", "bench: run\n"))
	x.step()
	x.check("nothing yet")
	x.restart()
	x.step()
	x.get(all[2])
	x.step()
	x.check("then", `mail a.0 v1 queued: approved by "boss@trusted.test"`)
}

// TestUnseenParts: what comes after a command was not approved by it.
func TestUnseenParts(t *testing.T) {
	for _, args := range []string{"", " base v2"} {
		x := newWorld(t)
		all := stranger("a")
		x.get(all[0], all[1], reply("r", "a.1", "bench: run"+args+"\n"))
		x.wait(time.Second)
		x.get(all[2])
		x.step()
		x.check("a patch behind the command", "mail a.0 v1 "+held)
		x.wait(time.Minute)
		x.get(reply("s", "a.1", "bench: run\n"))
		x.step()
		x.check("another command", `mail a.0 v1 queued: approved by "boss@trusted.test"`)
	}
	x := newWorld(t)
	all := posted("b", "PATCH")
	x.get(all[0], all[1], reply("r", "b.1", "bench: run base v2\n"))
	x.wait(time.Second)
	x.get(all[2])
	x.step()
	x.check("of a trusted author", "mail b.0 v1 queued: "+trustedDKIM, `run b.0 v1 queued: asked for by "boss@trusted.test"`)
}

func TestIgnoredThread(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.get(reply("r", "a.0", "bench: ignore\n"))
	x.wait(time.Hour)
	v2 := posted("a-v2", "PATCH v2")
	v2[0].re = "a.0"
	x.get(v2...)
	x.step()
	leave := `ignored: the thread is left alone, says "boss@trusted.test"`
	x.check("a new version", "mail a.0 v1 "+leave, "mail a-v2.0 v2 "+leave)
	x.get(reply("s", "a-v2.1", "bench: run\n"))
	x.step()
	x.check("a run all the same", "mail a.0 v1 "+leave, "mail a-v2.0 v2 "+leave, `run a-v2.0 v2 queued: asked for by "boss@trusted.test"`)
}

// TestReplyToLetter: a command answers our own letter, and names nothing else.
func TestReplyToLetter(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	task, err := x.st.TaskByKey(t.Context(), "mail:a.0@x.test")
	if err != nil {
		t.Fatal(err)
	}
	x.put("l@x.test", task.ID)
	x.get(reply("r", "l", "bench: stop\n"))
	x.step()
	x.check("then", `mail a.0 v1 stopped: stopped by "boss@trusted.test"`)
}

// put puts a letter into the outbox, as if it was sent.
func (x *world) put(id string, task int64) *store.Letter {
	x.t.Helper()
	ctx := x.t.Context()
	l := store.Letter{Key: id, Task: task, MessageID: id, From: "bench@bot.test", To: []store.Recipient{{Address: "one@trusted.test"}}, Body: []byte("x"), State: store.LetterQueued}
	if _, err := x.st.Put(ctx, l); err != nil {
		x.t.Fatal(err)
	}
	sending, err := x.st.NextLetter(ctx, x.now)
	if err != nil || sending == nil {
		x.t.Fatal(sending, err)
	}
	sending.State = store.LetterSent
	if err := x.st.Settle(ctx, sending); err != nil {
		x.t.Fatal(err)
	}
	return sending
}

func TestBounce(t *testing.T) {
	x := newWorld(t)
	l := x.put("l@bot.test", 0)
	x.getRaw([]byte("Return-Path: <>\nFrom: MAILER-DAEMON@mx.test\nMessage-ID: <b@mx.test>\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n" +
		"--b\n\nSorry.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.test\n\nFinal-Recipient: rfc822; one@trusted.test\nAction: failed\nDiagnostic-Code: smtp; 550 no such user\n\n" +
		"--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: <l@bot.test>\n\n--b--\n"))
	x.step()
	got, err := x.st.Letter(t.Context(), l.ID)
	if err != nil || got.State != store.LetterFailed || got.Reason != "returned as undeliverable: smtp; 550 no such user" {
		t.Errorf("%v: %+v", err, got)
	}
	if n := x.w.Counts().Bounces; n != 1 {
		t.Errorf("%d bounces", n)
	}
	x.check("no job")
}

func TestRefusedAreLogged(t *testing.T) {
	x := newWorld(t)
	x.get(stranger("a")...)
	x.get(note{id: "r", re: "a.1", from: "Two <two@far.test>", subject: "Re: x", body: "bench: run\n"})
	x.step()
	if n := x.w.Counts().Refused; n != 1 {
		t.Errorf("%d refused", n)
	}
	var lines []string
	for line := range strings.SplitSeq(x.log.String(), "\n") {
		if strings.Contains(line, "refused") {
			_, line, _ = strings.Cut(line, "msg=")
			lines = append(lines, line)
		}
	}
	if d := cmp.Diff([]string{`"command refused" mail=4 message_id=r@x.test from=two@far.test reason="the sender may not give commands"`}, lines); d != "" {
		t.Error(d)
	}
	for _, state := range []store.LetterState{store.LetterHeld, store.LetterQueued, store.LetterSent} {
		if l, err := x.st.Letters(t.Context(), state); err != nil || len(l) > 0 {
			t.Errorf("%v: letters %s", err, fmt.Sprint(l))
		}
	}
}
