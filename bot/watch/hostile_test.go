package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"patchbench/mbox/source/feed"
	"patchbench/store"
)

// TestBadMail has each kind of bad mail between two good ones: whatever it is,
// those are evaluated, also after a restart.
func TestBadMail(t *testing.T) {
	const head = "Authentication-Results: mx.test; dkim=pass header.d=trusted.test\nFrom: One <one@trusted.test>\nTo: dev@lists.test\nDate: Mon, 4 May 2026 12:00:00 +0000\nMessage-ID: <bad@x.test>\nSubject: [PATCH] bad\n"
	body := patchText + diff("f.c", "bad")
	good := "queued: " + trustedDKIM
	replace := func(old, new string) string { return strings.Replace(head, old, new, 1) }
	var references strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&references, " <%d@a>\n", i)
	}
	for _, c := range []struct {
		name, mail string
		want       string // state and reason of its job, "" for none
		problem    string // "" if it can be read
	}{
		{"M01 line breaks in an encoded subject", replace("[PATCH] bad", "=?utf-8?q?[PATCH]_bad=0D=0ABcc:_evil=40x?=") + "\n" + body, good, ""},
		{"M03 two addresses", replace("One <one@trusted.test>", `"x" <evil@x.test>, "y" <a@b.test>`) + "\n" + body, "ignored: From is not one address: it cannot be answered", ""},
		{"M03 an address in quotes", replace("One <one@trusted.test>", `"x\" <evil@x>, \"y" <one@trusted.test>`) + "\n" + body, "ignored: From is not one address: it cannot be answered", ""},
		{"M04 a quoted local part", replace("One <one@trusted.test>", `"one@trusted.test>Bcc: <e"@x.test`) + "\n" + body, "ignored: From is not one address: it cannot be answered", ""},
		{"M06 no Message-ID", replace("Message-ID: <bad@x.test>\n", "") + "\n" + body, "ignored: no Message-ID: it cannot be answered", ""},
		{"M06 no id in it", replace("<bad@x.test>", "<>") + "\n" + body, "ignored: no Message-ID: it cannot be answered", ""},
		{"M06 what cannot be an id", replace("<bad@x.test>", "<bad>") + "\n" + body, "ignored: no Message-ID: it cannot be answered", ""},
		{"M12 another robot", head + "Auto-Submitted: auto-generated\n\n" + body, "ignored: sent by a program (Auto-Submitted: auto-generated)", ""},
		{"M18 20,000 fields", head + strings.Repeat("X-A: b\n", 20_000) + "\n" + body, "", "header longer than 64 KiB"},
		{"M19 a field of 1 MB", replace("bad\n", strings.Repeat("a", 1<<20)+"\n") + "\n" + body, "", "header longer than 64 KiB"},
		{"M21 20,000 parts", head + "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n\n", 20_000) + "--b--\n", "", "more than 200 MIME parts"},
		{"M21 deep", head + deep(50) + body, "", "MIME parts nested deeper than 20"},
		{"M22 cut off", head + "Content-Type: multipart/mixed; boundary=b\n\n", "", "unexpected EOF: the multipart's closing boundary is missing, the mail was cut off"},
		{"M24 unknown encodings of ASCII", head + "Content-Type: text/plain; charset=x-evil\nContent-Transfer-Encoding: x-uue\n\n" + body, good, ""},
		{"M24 of other bytes", head + "Content-Transfer-Encoding: x-uue\n\n" + body + "\xff", "", `unknown Content-Transfer-Encoding "x-uue"`},
		{"M25 a line that is no field", replace("Date:", "not a header\nDate:") + "\n" + body, good, ""},
		{"M27 HTML", head + "Content-Type: text/html\n\n<pre>" + body + "</pre>", "", ""},
		{"M28 500 patches", replace("[PATCH]", "[PATCH 1/500]") + "List-Id: <dev.lists.test>\n\n" + body, "ignored: series of 500 patches, limit 100", ""},
		{"M28 patch 2 of 500", replace("[PATCH]", "[PATCH 2/500]") + "List-Id: <dev.lists.test>\n\n" + body, "", ""},
		{"M31 a date of 1970", replace("Mon, 4 May 2026", "Thu, 1 Jan 1970") + "\n" + body, good, ""},
		{"M31 a date of 2099", replace("Mon, 4 May 2026", "Thu, 1 Jan 2099") + "\n" + body, good, ""},
		{"M31 no date", replace("Date: Mon, 4 May 2026 12:00:00 +0000\n", "") + "\n" + body, good, ""},
		{"M33 bytes in a subject", replace("bad\n", "\x00\xff\x1b[2J\n") + "\n" + body, good, ""},
		{"M34 5,000 references", head + "References:" + references.String() + "\n" + body, good, ""},
		{"nothing", "", "", "no mail header"},
		{"no mail", "\x7fELF\x01\x02", "", "no mail header"},
		{"a header alone", head, "", ""},
		{"a long line", head + "\n" + strings.Repeat("x", 2<<20), "", "line 8 longer than 1 MiB"},
		{"refers to itself", head + "In-Reply-To: <bad@x.test>\nReferences: <bad@x.test>\n\n" + body, good, ""},
		{"replaces itself", head + "\nSupersedes: <bad@x.test>\n" + body, good, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			first := note{id: "first", subject: "[PATCH] first", body: patchText + diff("a", "x")}
			last := note{id: "last", subject: "[PATCH] last", body: patchText + diff("b", "x")}
			x.get(first)
			x.getRaw([]byte(c.mail))
			x.get(last)
			for _, round := range []string{"at once", "after a restart"} {
				x.wait(coverWait)
				got := ""
				n := 0
				for _, line := range x.jobs() {
					_, rest, _ := strings.Cut(line, " v1 ")
					if strings.HasPrefix(line, "mail first v1") || strings.HasPrefix(line, "mail last v1") {
						n++
						if rest != good {
							t.Errorf("%s: %s", round, line)
						}
						continue
					}
					got += rest
				}
				if got != c.want || n != 2 {
					t.Errorf("%s: got %q, want %q, and %d good ones", round, got, c.want, n)
				}
				x.restart()
			}
			mails, err := x.st.Mails(t.Context(), 1, 1)
			if err != nil || string(mails[0].Raw) != c.mail || mails[0].Problem != c.problem {
				t.Errorf("stored %d bytes, problem %q, want %q; %v", len(mails[0].Raw), mails[0].Problem, c.problem, err)
			}
			if got := x.w.Counts().Unreadable; (got > 0) != (c.problem != "") && got != 0 {
				t.Errorf("%d unreadable", got)
			}
		})
	}
}

// deep nests multiparts.
func deep(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%[1]d\n\n--b%[1]d\n", i)
	}
	return b.String() + "\n"
}

func TestCut(t *testing.T) {
	raw := note{id: "big", subject: "[PATCH] big"}.raw(time.Now())
	if m := received("x", feed.Mail{Raw: raw, Cut: true}); m.Problem != "mail larger than 8 MiB" || m.Key != "big@x.test" {
		t.Errorf("%+v", m)
	}
}

// TestSubjectOfMail: what is shown of a hostile subject is one line (M01, M33).
func TestSubjectOfMail(t *testing.T) {
	x := newWorld(t)
	x.get(note{id: "a", subject: "=?utf-8?q?[PATCH]_x=0D=0ABcc:_evil=40x?="}, note{id: "b", subject: "[PATCH] \x00\xff", body: patchText + diff("g", "x")})
	x.step()
	if p := x.payload("mail:a@x.test"); strings.ContainsAny(p.Thread.Subject, "\r\n") {
		t.Errorf("subject %q", p.Thread.Subject)
	}
	task, err := x.st.TaskByKey(t.Context(), "mail:b@x.test")
	if err != nil || strings.ContainsAny(task.Title, "\x00") || !strings.Contains(task.Title, "\ufffd") {
		t.Errorf("%v: title %q", err, task.Title)
	}
}

// TestCollision (M07): the first mail with a Message-ID counts, however early the
// date of another is.
func TestCollision(t *testing.T) {
	x := newWorld(t)
	first := note{id: "a", subject: "[PATCH] a"}
	x.get(first)
	x.step()
	second := first
	second.body, second.undated, second.header = patchText+diff("evil.c", "evil"), true, "Date: Fri, 01 May 2026 10:00:00 +0000\n"
	x.get(second)
	x.step()
	x.check("after the second", "mail a v1 queued: "+trustedDKIM)
	if p := x.payload("mail:a@x.test"); p.Series.Patches[0].Files[0] != "f.c" {
		t.Errorf("files %q", p.Series.Patches[0].Files)
	}
	if n := x.w.Counts().Collisions; n != 1 {
		t.Errorf("%d collisions", n)
	}
	if n := strings.Count(x.log.String(), "message-id collision"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	x.restart()
	x.step()
	x.check("after a restart", "mail a v1 queued: "+trustedDKIM)
	if n := strings.Count(x.log.String(), "message-id collision"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	// Before the first was decided.
	x = newWorld(t)
	x.get(first, second)
	x.step()
	if p := x.payload("mail:a@x.test"); p.Series.Patches[0].Files[0] != "f.c" {
		t.Errorf("files %q", p.Series.Patches[0].Files)
	}
}

// TestOwnMail (M10): what the bot has sent comes back through the list.
func TestOwnMail(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.get(note{id: "l", re: "a.0", from: "Patchbench <bench@bot.test>", subject: "Re: [PATCH 0/2] a", body: "bench: run\n", header: "Auto-Submitted: auto-replied\n"})
	x.step()
	x.check("then", "mail a.0 v1 queued: "+trustedDKIM)
	if n := x.w.Counts().Own; n != 1 {
		t.Errorf("%d own mails", n)
	}
}

// TestTwoVersionsUnderOneCover (M30).
func TestTwoVersionsUnderOneCover(t *testing.T) {
	x := newWorld(t)
	x.get(cover("a", "PATCH", 2))
	for _, v := range []string{"", " v2"} {
		for n := 1; n <= 2; n++ {
			l := patch1("a", "PATCH"+v, n, 2)
			l.id += v
			l.id = strings.ReplaceAll(l.id, " ", "-")
			l.body = patchText + diff("f.c", l.id)
			x.get(l)
		}
		x.step()
		x.now = x.now.Add(time.Hour)
	}
	x.check("then", "mail a.0 v1 superseded: by mail:a.1-v2@x.test", "mail a.1-v2 v2 queued: "+trustedDKIM)
}

// TestVersionsAtOnce: within a second the order in which mail came in counts, and not
// that of Message-IDs.
func TestVersionsAtOnce(t *testing.T) {
	for _, names := range []string{"a b", "b a"} {
		x := newWorld(t)
		first, second, _ := strings.Cut(names, " ")
		x.get(note{id: first, subject: "[PATCH] t", body: patchText + diff("f.c", "1")}, note{id: second, subject: "[PATCH] t", body: patchText + diff("f.c", "2")})
		x.step()
		x.check(names, "mail "+first+" v1 superseded: by mail:"+second+"@x.test", "mail "+second+" v2 queued: "+trustedDKIM)
	}
}

// TestOrder: of two postings without version the later that came in is the new one,
// whatever their dates say.
func TestOrder(t *testing.T) {
	x := newWorld(t)
	x.get(note{id: "b", subject: "[PATCH] a", body: patchText + diff("f.c", "first")})
	x.step()
	x.now = x.now.Add(time.Hour)
	x.get(note{id: "a", subject: "[PATCH] a", body: patchText + diff("f.c", "second"), undated: true, header: "Date: Sun, 03 May 2026 10:00:00 +0000\n"})
	x.step()
	want := []string{"mail b v1 superseded: by mail:a@x.test", "mail a v2 queued: " + trustedDKIM}
	x.check("then", want...)
	x.restart()
	x.step()
	x.check("after a restart", want...)
}

// TestLostMail: mail that is pruned, and a task that is retried, bring nothing back.
func TestLostMail(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.get(reply("r", "a.1", "bench: stop\n"))
	x.step()
	task, err := x.st.TaskByKey(t.Context(), "mail:a.0@x.test")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.st.Retry(t.Context(), task.ID); err != nil {
		t.Fatal(err)
	}
	x.restart()
	x.wait(time.Minute)
	if task, err = x.st.Task(t.Context(), task.ID); err != nil || task.State != store.Queued {
		t.Errorf("%v: %+v: a command was obeyed again", err, task)
	}
	x.now = x.now.Add(retention + time.Hour)
	x.step()
	if mails, err := x.st.Mails(t.Context(), 0, 10); err != nil || len(mails) != 0 {
		t.Errorf("%v: %d mails are left", err, len(mails))
	}
	if task, err = x.st.Task(t.Context(), task.ID); err != nil || task.State != store.Queued {
		t.Errorf("%v: %+v", err, task)
	}
}
