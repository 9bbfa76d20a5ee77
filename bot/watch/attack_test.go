package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestForeignParts: what somebody else adds to a trusted author's series is either no
// part of it, or takes the trust from it.
func TestForeignParts(t *testing.T) {
	const evil = "Evil <evil@far.test>"
	const unknown = `held: "one@trusted.test" is trusted, but it is not known that this came from there: mx.test has said nothing of this mail`
	foreign := func(l note, id, from string) note {
		l.id, l.from = id, from
		l.body = patchText + diff("evil.c", "evil")
		l.forged = from == ""
		return l
	}
	a := posted("a", "PATCH")
	for _, c := range []struct {
		name  string
		mails []note
		want  []string
	}{
		{"a patch without an id", []note{a[0], a[1], foreign(a[2], "", "")}, []string{"mail a.0 v1 " + unknown}},
		{"a patch in the author's name", []note{a[0], a[1], foreign(a[2], "evil", "")}, []string{"mail a.0 v1 " + unknown}},
		{"the author's comes later", []note{a[0], a[1], foreign(a[2], "evil", evil), a[2]},
			[]string{"mail a.0 v1 queued: " + trustedDKIM, "mail evil v1 incomplete: missing 1 of 2"}},
		{"a cover letter above it", []note{foreign(cover("a", "PATCH", 2), "c.0", evil), func() note { l := a[1]; l.re = "c.0"; return l }(), func() note { l := a[2]; l.re = "a.1"; return l }()},
			[]string{"mail a.1 v1 queued: " + trustedDKIM, "mail c.0 v1 incomplete: missing 1, 2 of 2"}},
		{"a cover letter below it", []note{func() note { l := a[1]; l.re = ""; return l }(), func() note { l := a[2]; l.re = "a.1"; return l }(),
			{id: "c.0", re: "a.1", from: evil, subject: "[PATCH 0/2] a", body: "Mine.\n"}},
			[]string{"mail a.1 v1 queued: " + trustedDKIM, "mail c.0 v1 incomplete: missing 1, 2 of 2"}},
		{"a series that refers to itself in a ring", []note{
			{id: "l1", re: "l2", subject: "[PATCH 1/3] l", body: patchText + diff("f", "1")},
			{id: "l2", re: "l3", subject: "[PATCH 2/3] l", body: patchText + diff("f", "2")},
			{id: "l3", re: "l1", subject: "[PATCH 3/3] l", body: patchText + diff("f", "3")}},
			[]string{"mail l1 v1 queued: " + trustedDKIM}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			x.get(c.mails...)
			x.step()
			x.wait(2 * time.Hour)
			x.check("then", c.want...)
		})
	}
}

// TestForeignVersions: a newer version ends the work on an older one only if at
// least as much is known of who sent it, and it is that author's.
func TestForeignVersions(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*note)
		ends   bool
	}{
		{"the author's", func(*note) {}, true},
		{"in his name", func(l *note) { l.forged = true }, false},
		{"of somebody else in the thread", func(l *note) { l.from = "Evil <evil@evil.test>" }, false},
		{"of somebody else who names him", func(l *note) { l.from, l.body = "Evil <evil@evil.test>", "From: Two <two@far.test>\n\n"+l.body }, false},
		{"through the list, in his name", func(l *note) { l.from, l.header = "Two via dev <dev@lists.test>", "Reply-To: Two <two@far.test>\n" }, false},
		{"of somebody else under his name", func(l *note) { l.from = `"Two <two@far.test>" <evil@evil.test>` }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			x.get(stranger("a")...)
			x.step()
			x.now = x.now.Add(time.Hour)
			for _, l := range posted("a-v2", "PATCH v2") {
				l.from = "Two <two@far.test>"
				if l.re == "" {
					l.re = "a.0"
				}
				c.change(&l)
				x.get(l)
			}
			x.step()
			x.wait(time.Minute)
			task, err := x.st.TaskByKey(t.Context(), "mail:a.0@x.test")
			if err != nil || (task.State == "superseded") != c.ends {
				t.Errorf("%v: v1 is %s (%s), want it ended: %t", err, task.State, task.Reason, c.ends)
			}
			task, err = x.st.TaskByKey(t.Context(), "mail:a-v2.0@x.test")
			if err != nil || task.State != "held" && task.State != "ignored" {
				t.Errorf("%v: v2 is %s (%s)", err, task.State, task.Reason)
			}
		})
	}
}

// TestReplayedCommand: a signed mail can be sent again by anybody, with what is not
// signed changed.
func TestReplayedCommand(t *testing.T) {
	const b = "mail b.0 v1 " + held
	const approved = `mail b.0 v1 queued: approved by "boss@trusted.test"`
	signature := func(h string) string {
		return "DKIM-Signature: v=1; a=rsa-sha256; d=trusted.test; s=x;\n\th=" + h + "; bh=x; b=y\n"
	}
	for _, c := range []struct {
		name   string
		change func(*note)
		want   string
	}{
		{"another mail", func(l *note) { l.id = "other" }, approved},
		{"turned to another series", func(*note) {}, b},
		{"turned, with another id", func(l *note) { l.id, l.header = "other", signature("from:subject:date") }, b},
		{"whose thread is signed", func(l *note) { l.id, l.header = "other", signature("from:subject:date:in-reply-to:References") }, approved},
		{"whose thread was added", func(l *note) { l.id, l.header = "other", signature("from:subject:date:in-reply-to") }, b},
		{"whose thread stands there twice", func(l *note) {
			l.id, l.header = "other", "In-Reply-To: <a.1@x.test>\n"+signature("from:subject:date:in-reply-to:references")
		}, b},
		{"whose id is signed", func(l *note) { l.id, l.header = "other", signature("from:subject:date:message-id") }, approved},
		{"whose date is not", func(l *note) { l.id, l.header = "other", signature("from:message-id:in-reply-to:references") }, b},
		{"whose end is not signed", func(l *note) {
			l.id, l.header = "other", strings.Replace(signature("from:date:message-id:in-reply-to:references"), "s=x", "s=x; l=5", 1)
		}, b},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			x.get(stranger("a")...)
			x.get(stranger("b")...)
			x.step()
			x.now = x.now.Add(time.Hour)
			l := reply("r", "a.1", "bench: run\n")
			x.get(l)
			x.step()
			l.re = "b.1"
			c.change(&l)
			x.get(l)
			x.step()
			x.check("then", `mail a.0 v1 queued: approved by "boss@trusted.test"`, c.want)
			if c.want == b && !strings.Contains(x.log.String(), "command refused") && !strings.Contains(x.log.String(), "heard already") {
				t.Errorf("the log says nothing of it:\n%s", &x.log)
			}
		})
	}
	// A copy that nobody vouches for takes nothing from the true one.
	x := newWorld(t)
	x.get(stranger("b")...)
	x.step()
	l := reply("r", "b.1", "bench: run\n")
	l.forged = true
	x.get(l)
	x.step()
	l.forged = false
	x.get(l)
	x.step()
	x.check("the true one comes second", approved)
}

// TestOddIDs: nothing of what may stand in Message-ID stops the mail behind it, and
// what cannot be referred to is not answered.
func TestOddIDs(t *testing.T) {
	const none = "ignored: no Message-ID: it cannot be answered"
	good := "queued: " + trustedDKIM
	for _, c := range []struct{ field, ref, want string }{
		{"<ü@x.test>", "", none},
		{"<<a@x.test>>", "", none},
		{"<a@x.test> <b@x.test>", "a@x.test", good},
		{"a@x.test", "a@x.test", good},
		{"(c) <c@x.test>", "c@x.test", good},
		{"<" + strings.Repeat("x", 300) + "@x.test>", "", none},
		{"<e@x.test\x00>", "", none},
		{"<@x.test>", "", none},
		{"<a@>", "", none},
		{"<a@x.test\n\t>", "a@x.test", good},
	} {
		t.Run(fmt.Sprintf("%.30q", c.field), func(t *testing.T) {
			x := newWorld(t)
			x.get(note{subject: "[PATCH] odd", header: "Message-ID: " + c.field + "\n"}, note{id: "last", subject: "[PATCH] last", body: patchText + diff("g", "x")})
			x.step()
			got := x.jobs()
			want := fmt.Sprintf("mail %s v1 %s", strings.TrimSuffix(c.ref, "@x.test"), c.want)
			if len(got) != 2 || got[0] != want && got[1] != want || got[0] != "mail last v1 "+good && got[1] != "mail last v1 "+good {
				t.Errorf("got %q, want %q and the last one", got, want)
			}
		})
	}
}
