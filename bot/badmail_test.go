package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"patchbench/store"
)

// badMail is an entry of the shared list of bad input, as mail.
type badMail struct {
	id    string
	mails []string
	// answered are the mails that get a reply, by their Message-ID at example.org,
	// and log what the service says.
	answered []string
	log      string
	check    func(t *testing.T, sent sentMail)
}

// TestBadMails gives a running bot all bad mail of the shared list at once, between
// good mail: what is good is answered once, what is bad as the list says, and the
// log tells why.
func TestBadMails(t *testing.T) {
	needTool(t, "bwrap")
	needTool(t, "git")
	bot := buildBot(t)
	t.Setenv("PATCHBENCH_IMAP_PASSWORD", "open-sesame")
	w := quickWorld(t)
	cases := w.badMails()
	first := w.launch(bot, nil)
	w.deliver(w.patchMail("good", "", "[PATCH] good", ""))
	waitLong(t, "the first answer", func() bool { return len(w.sent()) == 1 }, first.log.String)
	w.deliver(bounce(w.sent()[0].header(t).Get("Message-ID")))
	for _, c := range cases {
		for _, text := range c.mails {
			w.deliver(text)
		}
	}
	w.deliver(w.patchMail("last", "", "[PATCH] last", ""))
	want := []string{"good", "last"}
	for _, c := range cases {
		want = append(want, c.answered...)
	}
	waitLong(t, "all answers", func() bool { return len(w.sent()) >= len(want) && w.idle() }, func() string {
		return fmt.Sprintf("%q\n%s", w.states(), first.log)
	})
	// The replies have come back through the list too; another mail behind them, and a
	// new start, bring no more.
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	first.ended.Wait()
	second := w.launch(bot, nil)
	w.deliver(w.patchMail("end", "", "[PATCH] end", ""))
	want = append(want, "end")
	waitLong(t, "the last answer", func() bool { return len(w.sent()) >= len(want) && w.idle() }, second.log.String)
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	second.ended.Wait()
	log := first.log.String() + second.log.String()
	if a, b := first.cmd.ProcessState.ExitCode(), second.cmd.ProcessState.ExitCode(); a != 0 || b != 0 {
		t.Errorf("ended with status %d and %d", a, b)
	}
	for _, bad := range []string{"open-sesame", "panic", "goroutine "} {
		if strings.Contains(log, bad) {
			t.Errorf("the log has %q:\n%s", bad, log)
		}
	}
	answers := map[string]sentMail{}
	var got []string
	for _, m := range w.sent() {
		id := strings.TrimSuffix(strings.Trim(m.header(t).Get("In-Reply-To"), "<>"), "@example.org")
		answers[id] = m
		got = append(got, id)
		w.sane(t, m)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("answered %q, want %q\n%s", got, want, log)
	}
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			if !regexp.MustCompile(c.log).MatchString(log) {
				t.Errorf("the log has nothing like %q:\n%s", c.log, log)
			}
			for _, id := range c.answered {
				if m := answers[id]; c.check != nil && m.text != "" {
					c.check(t, m)
				}
			}
		})
	}
	if states := w.letterStates(); strings.Count(states, "failed") != 1 || strings.Count(states, "sent") != len(want)-1 {
		t.Errorf("letters %s: want the one that came back failed, the others sent", states)
	}
	var tried []string
	for _, c := range cases {
		tried = append(tried, c.id)
	}
	checkTried(t, "mail", tried)
}

// quickWorld is a service of which every evaluation takes no time: what patches
// change is in no build. The build fails where it finds what it must not see.
func quickWorld(t *testing.T) *mailWorld {
	t.Helper()
	w := maildirWorld(t)
	repo := filepath.Join(w.dir, "repo")
	runGit(t, w.dir, "init", "-q", "-b", "main", repo)
	write(t, filepath.Join(repo, ".patchbench.toml"), `
[build]
run = "if env | grep PATCHBENCH_ || cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | grep -a -e 'open[-]sesame' -e 'bot[.]toml'; then exit 7; fi; cp work.sh built"
keep = ["built"]
[[benchmark]]
name = "none"
run = "sh built"
`)
	write(t, filepath.Join(repo, "work.sh"), ":\n")
	runGit(t, repo, "add", ".")
	runGit(t, repo, "commit", "-q", "-m", "base")
	w.configure("\n[maildir]\npath = \"mail\"\n", "repo", "budget = \"10s\"\n")
	w.edit("tls = \"none\"\n", "tls = \"none\"\nper_hour = 1000\n")
	w.edit("authserv_id", "per_author_day = 1000\nstrangers_day = 1000\nauthserv_id")
	w.edit("project = \"kit\"\n", "project = \"kit\"\nwait = \"1s\"\n")
	return w
}

const goodHead = `Authentication-Results: mx.example.org; dkim=pass header.d=example.org
From: Some Author <one@example.org>
To: kit@lists.example.org
List-Id: <kit.lists.example.org>
`

// patchMail is a mail with a patch that adds a file; more are further fields.
func (w *mailWorld) patchMail(id, parent, subject, more string) string {
	w.mu.Lock()
	w.serial++
	n := w.serial
	w.mu.Unlock()
	text := goodHead
	if id != "" {
		text += fmt.Sprintf("Message-ID: <%s@example.org>\n", id)
	}
	if parent != "" {
		text += fmt.Sprintf("In-Reply-To: <%s@example.org>\n", parent)
	}
	if !strings.Contains(more, "Date:") {
		text += fmt.Sprintf("Date: %s\n", time.Now().UTC().Format(time.RFC1123Z))
	}
	return text + "Subject: " + subject + "\n" + more + "\n" + addsFile(n)
}

func addsFile(n int) string {
	return fmt.Sprintf("Says more.\n---\n\ndiff --git a/doc%d b/doc%[1]d\nnew file mode 100644\n--- /dev/null\n+++ b/doc%[1]d\n@@ -0,0 +1 @@\n+text\n-- \n2.47\n", n)
}

// bounce is a report that a mail could not be delivered.
func bounce(id string) string {
	return "Return-Path: <>\nFrom: MAILER-DAEMON@mx.example.org\nTo: bench@example.org\nMessage-ID: <report@mx.example.org>\nSubject: Undelivered\n" +
		"Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n--b\n\nNo.\n--b\nContent-Type: message/delivery-status\n\n" +
		"Reporting-MTA: dns; mx\n\nFinal-Recipient: rfc822; one@example.org\nAction: failed\nDiagnostic-Code: smtp; 550 no such user\n\n--b\nContent-Type: text/rfc822-headers\n\nMessage-ID: " + id + "\n\n--b--\n"
}

// badMails are the entries of the list.
func (w *mailWorld) badMails() []badMail {
	patch := w.patchMail
	one := func(text string) []string { return []string{text} }
	from := func(text, field string) string {
		return strings.Replace(text, "From: Some Author <one@example.org>", field, 1)
	}
	// body replaces what is below the header, and adds fields.
	body := func(text, fields, body string) string {
		head, _, _ := strings.Cut(text, "\n\n")
		return head + "\n" + fields + "\n" + body
	}
	command := func(id, sender, text string) string {
		return from(body(patch(id, "good", "Re: [PATCH] good", ""), "", text), "From: "+sender)
	}
	references := &strings.Builder{}
	for i := range 4000 {
		fmt.Fprintf(references, " <%d@a.b>\n", i)
	}
	cover := body(patch("m30", "", "[PATCH 0/2] thirty", ""), "", "Two versions.\n")
	subject := func(want string) func(*testing.T, sentMail) {
		return func(t *testing.T, m sentMail) {
			got, err := new(mime.WordDecoder).DecodeHeader(m.header(t).Get("Subject"))
			if err != nil || got != want {
				t.Errorf("subject %q (%v), want %q", got, err, want)
			}
		}
	}
	decided := func(reason string) string { return `series was decided.*reason="?` + reason }
	aside := func(problem string) string { return `mail cannot be read and is put aside.*problem="?` + problem }
	return []badMail{
		{id: "M30", mails: []string{cover, patch("m30.1", "m30", "[PATCH 1/2] thirty: a", ""), patch("m30.2", "m30", "[PATCH 2/2] thirty: b", ""),
			patch("m30.v2.1", "m30", "[PATCH v2 1/2] thirty: a", ""), patch("m30.v2.2", "m30", "[PATCH v2 2/2] thirty: b", "")},
			answered: []string{"m30.v2.1"}, log: `series=m30.v2.1@example.org version=2 state=queued`},
		{id: "M01", mails: one(patch("m01", "", "=?utf-8?q?[PATCH]_x=0D=0ABcc:_evil=40x?=", "")), answered: []string{"m01"}, log: `series=m01@example.org`,
			check: subject("Re: [PATCH] x Bcc: evil@x")},
		{id: "M03", mails: one(from(patch("m03", "", "[PATCH] three", ""), `From: "x\" <evil@x>, \"y" <a@b.example>`)), log: decided("From is not one address")},
		{id: "M04", mails: one(from(patch("m04", "", "[PATCH] four", ""), `From: "a@b.c>\r\nBcc: <e"@x.example`)), log: decided("From is not one address")},
		{id: "M06", mails: one(patch("", "", "[PATCH] six", "")), log: decided("no Message-ID")},
		{id: "M07", mails: []string{patch("m07", "", "[PATCH] seven", ""), patch("m07", "", "[PATCH] seven", "")}, answered: []string{"m07"},
			log: `message-id collision.*m07@example.org`},
		{id: "M09", mails: one(patch("m09", "", "[PATCH] nine", "Reply-To: victim@example.net\n")), answered: []string{"m09"}, log: `m09@example.org`},
		{id: "M10", mails: one(from(patch("m10", "good", "Re: [PATCH] good", "Auto-Submitted: auto-replied\nX-Loop: bench@example.org\n"), "From: Patchbench <bench@example.org>")), log: `mail came in`},
		{id: "M12", mails: []string{patch("m12", "", "[PATCH] twelve", "Auto-Submitted: auto-generated\n"),
			from(body(patch("m12.c", "good", "Re: [PATCH] good", ""), "Auto-Submitted: auto-generated\n", "bench: run\n"), "From: maint@example.org")},
			log: decided(`sent by a program \(Auto-Submitted: auto-generated\)`)},
		{id: "M13", mails: []string{patch("m13", "", "[PATCH] thirteen", "Return-Path: <>\n"), patch("m13.v", "good", "Out of office: [PATCH] good", "Auto-Submitted: auto-replied\n")},
			log: `a letter came back.*550 no such user`},
		{id: "M15", mails: one(command("m15", "Stranger <stranger@example.org>", "bench: run\n")), log: `command refused.*message_id=m15@example.org.*may not give commands`},
		{id: "M16", mails: one(command("m16", "maint@example.org", "Look:\n\n> bench: run\n>> bench: stop\n")), log: `mail came in`},
		{id: "M18", mails: one(patch("m18", "", "[PATCH] eighteen", strings.Repeat("X-A: b\n", 100_000))), log: aside("header longer than 64 KiB")},
		{id: "M19", mails: one(patch("m19", "", "[PATCH] "+strings.Repeat("a", 64<<20), "")), log: aside("mail larger than 8 MiB|header longer than 64 KiB")},
		{id: "M21", mails: one(body(patch("m21", "", "[PATCH] twenty-one", ""), "Content-Type: multipart/mixed; boundary=b\n", strings.Repeat("--b\n\n", 100_000)+"--b--\n")), log: aside("more than 200 MIME parts")},
		{id: "M22", mails: one(body(patch("m22", "", "[PATCH] twenty-two", ""), "Content-Type: multipart/mixed; boundary=b\n", "--b\n\n"+addsFile(1000))), log: aside("unexpected EOF")},
		{id: "M24", mails: []string{patch("m24", "", "[PATCH] twenty-four", "Content-Type: text/plain; charset=x-evil\nContent-Transfer-Encoding: x-uue\n"),
			patch("m24.b", "", "[PATCH] twenty-four", "Content-Type: text/plain; charset=x-evil\nContent-Transfer-Encoding: x-uue\n") + "\xff\n"},
			answered: []string{"m24"}, log: aside("unknown Content-Transfer-Encoding")},
		{id: "M25", mails: one(patch("m25", "", "[PATCH] twenty-five", "not a field\n")), answered: []string{"m25"}, log: `m25@example.org`},
		{id: "M27", mails: one(body(patch("m27", "", "[PATCH] twenty-seven", ""), "Content-Type: text/html\n", "<html><pre>"+addsFile(1001)+"</pre></html>\n")), log: `mail came in`},
		{id: "M28", mails: []string{patch("m28.1", "", "[PATCH 1/500] twenty-eight", ""), patch("m28.2", "m28.1", "[PATCH 2/500] twenty-eight", "")},
			log: decided("series of 500 patches, limit 100")},
		{id: "M31", mails: []string{patch("m31.old", "", "[PATCH] thirty-one", "Date: Thu, 01 Jan 1970 00:00:00 +0000\n"), patch("m31.far", "", "[PATCH] one and thirty", "Date: Thu, 01 Jan 2099 00:00:00 +0000\n"),
			patch("m31.none", "", "[PATCH] 31", "X-Date: none\n")}, answered: []string{"m31.old", "m31.far", "m31.none"}, log: `m31.far@example.org`},
		{id: "M33", mails: one(patch("m33", "", "[PATCH] a\x00\xffb", "")), answered: []string{"m33"}, log: `m33@example.org`, check: subject("Re: [PATCH] a\ufffd\u00ffb")},
		{id: "M34", mails: one(patch("m34", "", "[PATCH] thirty-four", "References:"+references.String())), answered: []string{"m34"}, log: `m34@example.org`,
			check: func(t *testing.T, m sentMail) {
				ids := strings.Fields(m.header(t).Get("References"))
				if len(ids) != 21 || ids[0] != "<0@a.b>" || ids[1] != "<3981@a.b>" || ids[20] != "<m34@example.org>" {
					t.Errorf("References %q", ids)
				}
			}},
	}
}

// sane holds a reply to what is true of all.
func (w *mailWorld) sane(t *testing.T, m sentMail) {
	t.Helper()
	head, text, _ := strings.Cut(m.text, "\r\n\r\n")
	if !slices.Equal(m.to, []string{"one@example.org", "kit@lists.example.org"}) {
		t.Errorf("sent to %q:\n%s", m.to, head)
	}
	seen := map[string]int{}
	for line := range strings.SplitSeq(head, "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n\x00") {
			t.Errorf("bad line %.100q", line)
		}
		if name, _, ok := strings.Cut(line, ":"); ok && line[0] != ' ' {
			seen[name]++
		}
	}
	for _, name := range []string{"From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted", "X-Patchbench", "MIME-Version", "Content-Type", "Content-Transfer-Encoding"} {
		if seen[name] != 1 {
			t.Errorf("%d fields %s:\n%s", seen[name], name, head)
		}
		delete(seen, name)
	}
	if len(seen) > 0 {
		t.Errorf("fields %v that nobody wanted:\n%s", seen, head)
	}
	for name, want := range map[string]string{"To": "one@example.org", "Cc": "kit@lists.example.org"} {
		if list, err := mail.ParseAddressList(m.header(t).Get(name)); err != nil || len(list) != 1 || list[0].Address != want {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	if strings.Contains(text, "does not build") {
		t.Errorf("the build saw what it must not see:\n%s", text)
	}
}

// idle says that the service has nothing to do.
func (w *mailWorld) idle() bool {
	st := w.record()
	defer st.Close()
	tasks, err := st.Tasks(w.t.Context(), store.TaskFilter{States: []store.State{store.Queued, store.Running}})
	if err != nil {
		w.t.Fatal(err)
	}
	letters, err := st.Letters(w.t.Context(), store.LetterQueued, store.LetterSending, store.LetterUnknown)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(tasks) == 0 && len(letters) == 0
}

// checkTried fails for an entry of the shared list, of this kind, that is not among ids.
func checkTried(t *testing.T, kind string, ids []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sharedCases(t), "bad-inputs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ ID, Kind string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, in := range list {
		if in.Kind == kind && !slices.Contains(ids, in.ID) {
			t.Errorf("%s is in the shared list and not tried here", in.ID)
		}
	}
}

// TestBadServiceFiles gives the built command the bad service files of the shared
// list: it says what is wrong, and starts nothing.
func TestBadServiceFiles(t *testing.T) {
	needTool(t, "git")
	bot := buildBot(t)
	var tried []string
	for _, c := range []struct {
		id, name  string
		old, with string // a change of the service file
		prepare   func(w *mailWorld)
		env       []string
		args      []string
		status    int
		want      string // what watch and check say
	}{
		{id: "C02", name: "a password that others may read", old: "[smtp]\n", with: "[smtp]\nuser = \"bench\"\npassword = \"hunter2-smtp\"\n", status: statusUsage,
			want: `config has a password and is readable by others \(mode 0644\)`},
		{id: "C02", name: "a password file that others may read", old: "[smtp]\n", with: "[smtp]\nuser = \"bench\"\npassword_file = \"open\"\n", status: statusUsage,
			prepare: func(w *mailWorld) { write(w.t, w.dir+"/open", "hunter2-smtp\n") }, want: `open .*readable by others \(mode 0644\)`},
		{id: "C03", name: "SMTP to another machine", old: "address = \"127.0.0.1", with: "address = \"mail.example.net", status: statusUsage,
			want: `smtp.tls = "none" would send password and mail to mail.example.net as plain text.*smtp.allow_plaintext = true`},
		{id: "C03", name: "IMAP to another machine", old: "[maildir]\npath = \"mail\"\n", with: "[imap]\naddress = \"mail.example.net:143\"\ntls = \"none\"\nuser = \"bench\"\n", status: statusUsage,
			env: []string{"PATCHBENCH_IMAP_PASSWORD=hunter2-imap"}, want: `imap.tls = "none" would send password and mail to mail.example.net as plain text.*imap.allow_plaintext = true`},
		{id: "C05", name: "the list's address", old: "bench@example.org>\"", with: "KIT@lists.example.org>\"", status: statusUsage, want: `smtp.from = "KIT@lists.example.org" is the address of a list: every reply would loop`},
		{id: "C06", name: "a negative time", old: "budget = \"10s\"", with: "budget = \"-1s\"", status: statusUsage, want: `budget = -1s is out of range: give 1s to 24h`},
		{id: "C06", name: "no slots", old: "[policy]", with: "[worker]\nslots = 0\n[policy]", status: statusUsage, want: `worker.slots = 0 is out of range: give 1 to \d+`},
		{id: "C06", name: "too little memory", old: "[policy]", with: "[worker]\nlimits = { memory = \"1B\" }\n[policy]", status: statusUsage, want: `memory.* = .*1.* is out of range: give .* to `},
		{id: "C06", name: "no author", old: "per_author_day = 1000", with: "per_author_day = 0", status: statusUsage, want: `policy.per_author_day = 0 is out of range: give 1 to \d+`},
		{id: "C08", name: "a repository that is a link", old: "repo = \"repo\"", with: "repo = \"link\"", status: statusUsage,
			prepare: func(w *mailWorld) {
				if err := os.Symlink("repo", filepath.Join(w.dir, "link")); err != nil {
					w.t.Fatal(err)
				}
			}, want: `repo = "link" is a symbolic link`},
		{id: "C08", name: "a repository in the sandbox's folder", old: "repo = \"repo\"", with: "repo = \"state/work/repo\"", status: statusUsage,
			prepare: func(w *mailWorld) {
				if err := os.MkdirAll(filepath.Join(w.dir, "state/work"), 0o755); err != nil {
					w.t.Fatal(err)
				}
				runGit(w.t, w.dir, "clone", "-q", "repo", "state/work/repo")
			}, want: `repo .*state/work/repo.*work`},
		{id: "E04", name: "no sandbox", env: []string{"PATH=/nowhere"}, status: statusUnsafe, want: `bubblewrap`},
		{id: "E04", name: "the flag of bot eval", args: []string{"--unsafe-no-sandbox"}, status: statusUsage, want: `unknown flag --unsafe-no-sandbox|--config tries a service; the flags of suites.* have no meaning`},
	} {
		tried = append(tried, c.id)
		t.Run(c.id+" "+c.name, func(t *testing.T) {
			w := quickWorld(t)
			if c.prepare != nil {
				c.prepare(w)
			}
			if c.old != "" {
				w.edit(c.old, c.with)
			}
			for _, command := range []string{"watch", "worker", "check"} {
				if c.status == statusUnsafe && command == "check" {
					continue // it lists this with all that is wrong
				}
				cmd := exec.Command(bot, append([]string{command, "--config", w.config}, c.args...)...)
				cmd.Env = append(os.Environ(), c.env...)
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				err := cmd.Run()
				if got := cmd.ProcessState.ExitCode(); got != c.status || !regexp.MustCompile(c.want).Match(out.Bytes()) {
					t.Errorf("bot %s: status %d (%v), want %d and %q:\n%s", command, got, err, c.status, c.want, &out)
				}
				if bytes.Contains(out.Bytes(), []byte("hunter2")) {
					t.Errorf("bot %s tells a secret:\n%s", command, &out)
				}
			}
			if _, err := os.Stat(filepath.Join(w.dir, "state", "bot.db")); err == nil {
				t.Error("a record was made")
			}
		})
	}
	checkTried(t, "config", tried)
}
