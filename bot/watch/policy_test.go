package watch

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"patchbench/config/service"
	"patchbench/store"
)

func TestPolicy(t *testing.T) {
	one := func(change ...func(*note)) []note {
		l := note{id: "a", subject: "[PATCH] a"}
		for _, f := range change {
			f(&l)
		}
		return []note{l}
	}
	subject := func(s string) func(*note) { return func(l *note) { l.subject = s } }
	from := func(s string) func(*note) { return func(l *note) { l.from = s } }
	to := func(s string) func(*note) { return func(l *note) { l.to = s } }
	header := func(s string) func(*note) { return func(l *note) { l.header = s } }
	file := func(s string) func(*note) { return func(l *note) { l.body = patchText + diff(s, "new") } }
	forged := func(l *note) { l.forged = true }
	const tool = "To: tool@lists.test"
	const queued = "queued: " + trustedDKIM
	for _, c := range []struct {
		name   string
		mails  []note
		change func(*service.Config)
		want   string // state and reason; "" for no task
	}{
		{"trusted", one(), nil, queued},
		{"trusted address", one(), func(c *service.Config) { c.Policy.Trusted = []string{"one@trusted.test"} }, queued},
		{"another address", one(), func(c *service.Config) { c.Policy.Trusted = []string{"two@trusted.test"} }, `held: nobody trusts "one@trusted.test"`},
		{"a domain that ends alike", one(from("One <one@mistrusted.test>")), func(c *service.Config) { c.Policy.Trusted = []string{"trusted.test"} }, `held: nobody trusts "one@mistrusted.test"`},
		{"forged", one(forged), nil, `held: "one@trusted.test" is trusted, but it is not known that this came from there: mx.test has said nothing of this mail`},
		{"forged below", one(forged, header("X-A: b\nAuthentication-Results: evil.test; x=y\nAuthentication-Results: mx.test; dkim=pass header.d=trusted.test\n")), nil,
			`held: "one@trusted.test" is trusted, but it is not known that this came from there: mx.test has said nothing of this mail`},
		{"nobody's word counts", one(), func(c *service.Config) { c.Policy.AuthservID = "" },
			`held: "one@trusted.test" is trusted, but it is not known that this came from there: no server is named whose word would count`},
		{"a stranger", one(from("Two <two@far.test>")), nil, `held: nobody trusts "two@far.test"`},
		{"a stranger is served", one(from("Two <two@far.test>"), forged), func(c *service.Config) { c.Policy.Strangers = service.Run }, "queued: strangers are served"},
		{"a stranger is ignored", one(from("Two <two@far.test>")), func(c *service.Config) { c.Policy.Strangers = service.Ignore }, `ignored: nobody trusts "two@far.test"`},
		{"no list", one(to("To: bench@bot.test")), nil, "ignored: came through no list that is served"},
		{"the list's address", one(to("Cc: x@y.test, Dev <DEV@lists.test>")), nil, queued},
		{"the list's id", one(to("List-Id: The list <DEV.lists.test>")), nil, queued},
		{"a tag that is ignored", one(subject("[RFC PATCH] a")), nil, `ignored: tag "RFC" is not evaluated on dev@lists.test`},
		{"a tag for a branch", one(subject("[PATCH next] a")), nil, queued},
		{"a tag that is missing", one(to(tool), file("src/x.c")), nil, "ignored: none of the tags tool, as tool@lists.test wants"},
		{"a tag that is there", one(to(tool), file("src/x.c"), subject("[tool PATCH] a")), nil, queued},
		{"files of no interest", one(to(tool), file("doc/x.c"), subject("[tool PATCH] a")), nil, "ignored: touches no file of interest for tool@lists.test"},
		{"files of interest, further down", one(to(tool), file("src/y/x.c"), subject("[tool PATCH] a")), nil, queued},
		{"a pull request", one(subject("[GIT PULL] a")), nil, ""},
		{"a comment with a diff", []note{{id: "x", subject: "Hello", body: "x\n"}, {id: "a", re: "x", subject: "Re: Hello", body: "What about\n" + diff("f.c", "x")}}, nil, ""},
		{"opted out by address", one(from("Q <quiet@trusted.test>")), nil, "ignored: its author wants no answers"},
		{"opted out by field", one(header("X-Patchbench: no\n")), nil, "ignored: its author wants no answer to it (X-Patchbench: no)"},
		{"opted out in one of two", []note{patch1("a", "PATCH", 1, 2), func() note { l := patch1("a", "PATCH", 2, 2); l.header = "X-Patchbench: NO\n"; return l }()}, nil,
			"ignored: its author wants no answer to it (X-Patchbench: no)"},
		{"a robot", one(header("Auto-Submitted: auto-generated\n")), nil, "ignored: sent by a program (Auto-Submitted: auto-generated)"},
		{"a robot's junk", one(to("To: dev@lists.test"), header("Precedence: junk\n")), nil, "ignored: sent by a program (Precedence: junk)"},
		{"a list's bulk", one(header("Precedence: bulk\n")), nil, queued},
		{"no way back", one(header("Return-Path: <>\n")), nil, "ignored: sent by a program (Return-Path: <>)"},
		{"Reply-To elsewhere", one(header("Reply-To: victim@far.test\n")), nil, queued},
		{"the list in From", one(from("One via dev <dev@lists.test>"), header("Reply-To: One <one@trusted.test>\n")), nil, `held: "one@trusted.test" is trusted, but somebody else sent a part of it: dev@lists.test`},
		{"the list in From and nobody else", one(from("One via dev <dev@lists.test>")), nil, "ignored: the list does not tell who sent it"},
		{"another list in From", one(from("Tool <tool@lists.test>")), nil, "ignored: the list does not tell who sent it"},
		{"the list in From and in Reply-To", one(from("One via dev <dev@lists.test>"), header("Reply-To: tool@lists.test\n")), nil, "ignored: the list does not tell who sent it"},
		{"the list in From is trusted", one(from("One via dev <dev@lists.test>"), header("Reply-To: One <one@far.test>\n")),
			func(c *service.Config) { c.Policy.Trusted = []string{"dev@lists.test"} }, "queued: its author is trusted: DKIM of lists.test, by mx.test"},
		{"X-Original-From of anybody", one(header("X-Original-From: Victim <victim@far.test>\n")), nil, queued},
		{"a local part that cannot be written", one(from(`"a b"@trusted.test`)), nil, "ignored: From is not one address: it cannot be answered"},
		{"an address that cannot be written", one(from("One <one@localhost>")), nil, `ignored: the sender's address "one@localhost" cannot be answered`},
		{"our own", one(from("Patchbench <bench@bot.test>")), nil, ""},
		{"our own with a tag", one(from("Patchbench <bench+x@bot.test>")), nil, ""},
		{"two in From", one(from("One <one@trusted.test>, Two <two@trusted.test>")), nil, "ignored: From is not one address: it cannot be answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			x.txt = func(context.Context, string) ([]string, error) { t.Error("the DNS was asked"); return nil, nil }
			if c.change != nil {
				c.change(x.cfg)
			}
			x.get(c.mails...)
			x.wait(coverWait)
			got := ""
			for _, line := range x.jobs() {
				_, line, _ = strings.Cut(line, "v1 ")
				got += line
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPayloadOfAPolicy(t *testing.T) {
	x := newWorld(t)
	x.get(note{id: "a", subject: "[PATCH next] a", header: "Reply-To: victim@far.test\n"})
	l := note{id: "b", subject: "[tool PATCH] b", to: "To: tool@lists.test", body: patchText + diff("src/x.c", "x"), header: "In-Reply-To: <p@x.test>\n"}
	x.get(l, note{id: "p", from: "Two <two@trusted.test>", subject: "Question", body: "x\n"})
	x.step()
	p := x.payload("mail:a@x.test")
	if p.Branch != "next" || p.Quiet || p.Mode != service.DryRun || p.Thread.Author.Email != "one@trusted.test" {
		t.Errorf("payload %+v", p)
	}
	if p = x.payload("mail:b@x.test"); p.Branch != "" || !p.Quiet || p.Mode != service.ToList || len(p.Thread.References) != 1 || p.Thread.References[0] != "p@x.test" {
		t.Errorf("payload %+v", p)
	}
	tasks, err := x.st.TaskByKey(t.Context(), "mail:b@x.test")
	if err != nil || tasks.Class != "arm64" || tasks.Project != "tool" {
		t.Errorf("%v: %+v", err, tasks)
	}
}

func TestPrerequisites(t *testing.T) {
	x := newWorld(t)
	x.get(note{id: "a", subject: "[PATCH] a"}, note{id: "b", subject: "[PATCH] b", body: "Why.\n---\nDepends-on: <a@x.test>\n\n" + diff("g.c", "x")})
	x.step()
	if p := x.payload("mail:b@x.test"); len(p.AtHand) != 1 || p.AtHand[0].MessageID != "a@x.test" {
		t.Errorf("at hand: %+v", p.AtHand)
	}
}

func TestAge(t *testing.T) {
	x := newWorld(t)
	x.get(note{id: "a", subject: "[PATCH] a"})
	x.now = x.now.Add(8 * 24 * time.Hour)
	x.get(note{id: "b", subject: "[PATCH] b", undated: true, header: "Date: Fri, 01 Jan 1999 10:00:00 +0000\n"})
	x.get(note{id: "c", subject: "[PATCH] c", undated: true, header: "Date: Thu, 01 Jan 2099 10:00:00 +0000\n"})
	x.step()
	x.check("old mail is left alone, whatever its date says", "mail a v1 ignored: came in on 2026-05-04, longer ago than 7 days", "mail b v1 queued: "+trustedDKIM, "mail c v1 queued: "+trustedDKIM)
}

func TestLimits(t *testing.T) {
	x := newWorld(t)
	for i := range 7 {
		x.get(note{id: fmt.Sprint("a", i), subject: fmt.Sprintf("[PATCH] a%d", i), body: patchText + diff(fmt.Sprint("f", i), "x")})
		x.wait(time.Minute)
	}
	want := []string{}
	for i := range 7 {
		state := "queued: " + trustedDKIM
		if i >= 5 {
			state = `held: 5 series of "one@trusted.test" in 24 hours already`
		}
		want = append(want, fmt.Sprintf("mail a%d v1 %s", i, state))
	}
	x.check("five a day", want...)
	x.now = x.now.Add(24 * time.Hour)
	x.get(note{id: "b", subject: "[PATCH] b", body: patchText + diff("g", "x")}, note{id: "c", from: "Two <two@trusted.test>", subject: "[PATCH] c", body: patchText + diff("h", "x")})
	x.step()
	x.check("the next day, and another author", append(want, "mail b v1 queued: "+trustedDKIM, "mail c v1 queued: "+trustedDKIM)...)
}

// TestManyNames: somebody who writes under many names is one to the limit for
// strangers, which takes nothing from those who are trusted.
func TestManyNames(t *testing.T) {
	x := newWorld(t)
	x.cfg.Policy.Strangers, x.cfg.Policy.StrangersDay = service.Run, 3
	bomb := func(name string) (served, kept int) {
		for i := range 10 {
			x.get(note{id: fmt.Sprint(name, i), from: fmt.Sprintf("X <x%d@far.test>", i), forged: i%2 > 0, subject: fmt.Sprintf("[PATCH 1/1] %s %d", name, i), body: patchText + diff(fmt.Sprint(name, i), "x")})
			x.step()
		}
		x.restart()
		x.wait(time.Minute)
		for _, line := range x.jobs() {
			if strings.HasPrefix(line, "mail "+name) && strings.HasSuffix(line, "queued: strangers are served") {
				served++
			} else if strings.HasPrefix(line, "mail "+name) && strings.HasSuffix(line, "held: 3 series of strangers in 24 hours already") {
				kept++
			}
		}
		return served, kept
	}
	if served, kept := bomb("a"); served != 3 || kept != 7 {
		t.Errorf("%d served, %d held, want 3 and 7", served, kept)
	}
	x.get(note{id: "true", subject: "[PATCH] true", body: patchText + diff("g", "x")})
	x.step()
	if task, err := x.st.TaskByKey(t.Context(), "mail:true@x.test"); err != nil || task.State != store.Queued {
		t.Errorf("%v: %+v", err, task)
	}
	x.now = x.now.Add(24 * time.Hour)
	if served, kept := bomb("b"); served != 3 || kept != 7 {
		t.Errorf("a day later %d served, %d held, want 3 and 7", served, kept)
	}
}

func TestThreadCap(t *testing.T) {
	x := newWorld(t)
	x.cfg.Policy.ThreadCap = 2
	x.get(note{id: "a", subject: "[PATCH] a"})
	for i := 1; i < 4; i++ {
		x.step()
		// Answers that were given count, whatever comes then.
		if task, err := x.st.TaskByKey(t.Context(), fmt.Sprintf("mail:a%s@x.test", []string{"", "", "-v2", "-v3"}[i])); err == nil && task.State == "queued" {
			claimed, err := x.st.Claim(t.Context(), task.ID, "w", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.st.Finish(t.Context(), claimed.ID, claimed.Fence, "done", "measured", "", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		x.now = x.now.Add(time.Hour)
		x.get(note{id: fmt.Sprint("a-v", i+1), re: "a", subject: fmt.Sprintf("[PATCH v%d] a", i+1), body: patchText + diff("f.c", fmt.Sprint(i))})
	}
	x.step()
	x.check("two in a thread", "mail a v1 done: measured", "mail a-v2 v2 done: measured",
		"mail a-v3 v3 ignored: 2 answers in this thread already", "mail a-v4 v4 ignored: 2 answers in this thread already")
}

// TestDKIM: signatures are verified here, with the DNS that the test is.
func TestDKIM(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(raw []byte) []byte {
		var out bytes.Buffer
		o := &dkim.SignOptions{Domain: "trusted.test", Selector: "s", Signer: private, HeaderKeys: []string{"From", "Subject", "Date", "Message-ID"}}
		if err := dkim.Sign(&out, bytes.NewReader(bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))), o); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	x := newWorld(t)
	x.cfg.Policy.VerifyDKIM, x.cfg.Policy.AuthservID = true, ""
	asked := 0
	x.txt = func(_ context.Context, name string) ([]string, error) {
		asked++
		if name != "s._domainkey.trusted.test" {
			return nil, errors.New("no such name")
		}
		return []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}, nil
	}
	x.getRaw(sign(note{id: "a", subject: "[PATCH] a", forged: true}.raw(x.now)))
	x.getRaw(bytes.Replace(sign(note{id: "b", subject: "[PATCH] b", forged: true}.raw(x.now)), []byte("Why."), []byte("why."), 1))
	x.getRaw(sign(note{id: "c", subject: "[PATCH] c", from: "Two <two@far.test>", forged: true}.raw(x.now)))
	x.step()
	x.check("signatures", "mail a v1 queued: its author is trusted: DKIM of trusted.test",
		`mail b v1 held: "one@trusted.test" is trusted, but it is not known that this came from there: DKIM of trusted.test: dkim: body hash did not verify`,
		`mail c v1 held: nobody trusts "two@far.test"`)
	if asked != 2 {
		t.Errorf("the DNS was asked %d times, want once for each author who would be trusted", asked)
	}
}
