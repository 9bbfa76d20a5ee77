package series

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
	"patchbench/mbox/series/patch"
)

// letterTo is a mail of a mailbox, with an id of its own, fields and a body.
func letterTo(id, fields, body string) string {
	date := "Date: Wed, 1 May 2024 10:00:00 +0000\n"
	if strings.Contains(fields, "Date:") {
		date = ""
	}
	return "From someone@example.com Mon Sep 17 10:00:00 2018\nMessage-ID: <" + id + ">\n" + date + fields + "\n" + body + "\n"
}

const author = "From: A U Thor <author@example.com>\n"

// seriesOf is n mails of one posting, the subjects by a format with the number.
func seriesOf(format string, n int) string {
	box := ""
	for i := 1; i <= n; i++ {
		re := ""
		if i > 1 {
			re = "In-Reply-To: <1>\n"
		}
		box += letterTo(fmt.Sprint(i), author+re+"Subject: "+fmt.Sprintf(format, i)+"\n", "---\n"+change("f", fmt.Sprint(i)))
	}
	return box
}

// TestTraps has what users of patch tools report again and again, one mailbox for
// each kind.
func TestTraps(t *testing.T) {
	dos := "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\r\n-two\r\n+three\r\n"
	binary := "diff --git a/x b/x\nindex 1111111..2222222 100644\nGIT binary patch\nliteral 3\nKcmZQzWMT#Y01f~L\n\nliteral 3\nKcmZQzWMT#Y01f~L\n\n"
	numbered := func(n, total int) string {
		var out []string
		for i := 1; i <= n; i++ {
			out = append(out, fmt.Sprintf("%d=%d", i, i))
		}
		return fmt.Sprintf("%d/%d %s", n, total, strings.Join(out, " "))
	}
	for _, tc := range []struct {
		name  string
		box   string
		want  []string // outline
		check func(*testing.T, mbox.Listing)
	}{
		{name: "comma between version and number", box: seriesOf("[PATCH v6,%02d/24] a", 24), want: []string{"1 v6 " + numbered(24, 24)}},
		{name: "no blank before the number", box: seriesOf("[PATCH%d/8] a", 8), want: []string{"1 v1 " + numbered(8, 8)}},
		{name: "version in the cover alone", box: letterTo("0", author+"Subject: [PATCH net-next v3 0/4] a\n", "Why.\n") + strings.ReplaceAll(strings.ReplaceAll(seriesOf("[PATCH %d/4] a", 4), "Message-ID: <1>\n", "Message-ID: <1>\nIn-Reply-To: <0>\n"), "In-Reply-To: <1>", "In-Reply-To: <0>"),
			want: []string{"0 v3 4/4 cover 1=1 2=2 3=3 4=4"}},
		{name: "a reply's prose before a diff", box: seriesOf("[PATCH] x%d", 1) + letterTo("r", "From: James <james@example.org>\nIn-Reply-To: <1>\nSubject: Re: [PATCH] x\n", "This would be shorter:\nJames\n"+change("f", "2")),
			want: []string{"1 v1 1/1 1=1", "skipped r: a reply with a diff that is a comment: no scissors, From, Subject or [PATCH] line before it"}},
		{name: "a binary part after a text hunk", box: letterTo("1", author+"Subject: [PATCH] x\n", "Why.\n---\n"+change("f", "1")+binary+change("g", "2")+"-- \n2.39\n"),
			want: []string{"1 v1 1/1 1=1"}, check: diffIs(change("f", "1") + binary + change("g", "2"))},
		{name: "signed mail", box: letterTo("1", author+"Subject: [PATCH] x\nContent-Type: multipart/signed; boundary=b; protocol=\"application/pgp-signature\"\n",
			"--b\nContent-Type: text/plain; charset=utf-8\n\nWhy.\n---\n"+change("f", "1")+"\n--b\nContent-Type: application/pgp-signature; name=signature.asc\n\n-----BEGIN PGP SIGNATURE-----\n\niQ\n-----END PGP SIGNATURE-----\n\n--b--\n"),
			want: []string{"1 v1 1/1 1=1"}, check: diffIs(change("f", "1"))},
		{name: "base64", box: letterTo("1", author+"Subject: [PATCH] x\nContent-Transfer-Encoding: base64\n", wrapBase64("Why.\n---\n"+change("f", "1"))+"\n"),
			want: []string{"1 v1 1/1 1=1"}, check: diffIs(change("f", "1"))},
		{name: "a list that writes its own address into From",
			box: letterTo("1", "From: Ann Example via dev <dev@lists.example.org>\nReply-To: Ann Example <ann@example.com>\nSubject: [PATCH] x\n", change("f", "1")) +
				letterTo("2", "From: Bob Example via dev <dev@lists.example.org>\nCc: Bob Example <bob@example.com>, x@example.org\nSubject: [PATCH] y\n", change("f", "2")) +
				letterTo("3", "From: Cat Example via dev <dev@lists.example.org>\nReply-To: cat@example.com\nSubject: [PATCH] z\n", "From: Dan Example <dan@example.com>\n\n"+change("f", "3")),
			want:  []string{"1 v1 1/1 1=1", "2 v1 1/1 1=2", "3 v1 1/1 1=3"},
			check: authors("Ann Example <ann@example.com>", "Bob Example <bob@example.com>", "Dan Example <dan@example.com>")},
		{name: "scissors below quoted talk", box: seriesOf("[PATCH] old%d", 1) + letterTo("2", "From: B <b@example.org>\nIn-Reply-To: <1>\nSubject: Re: [PATCH] old\n",
			"A U Thor wrote:\n> hm\n\nHow about this?\n\n--8<------------------\nSubject: [PATCH] new way\n\nBecause it is short.\n---\n"+change("f", "2")),
			want: []string{"1 v1 1/1 1=1", "2 v1 1/1 1=2"}, check: func(t *testing.T, l mbox.Listing) {
				if p := l.Series[1].Patches[0]; p.Message != "new way\n\nBecause it is short.\n" || string(p.Diff) != change("f", "2") {
					t.Errorf("message %q, diff %q", p.Message, p.Diff)
				}
			}},
		{name: "no cover letter", box: seriesOf("[PATCH %d/2] a", 2), want: []string{"1 v1 2/2 1=1 2=2"}},
		{name: "a diff that is all binary, and one that cannot be applied", box: letterTo("1", author+"Subject: [PATCH] x\n", "Why.\n---\n"+binary) +
			letterTo("2", author+"Subject: [PATCH] y\n", "Why.\n---\ndiff --git a/x b/x\nindex 1..2 100644\nBinary files a/x and b/x differ\n"),
			want: []string{"1 v1 1/1 1=1", "2 v1 1/1 1=2"}, check: diffIs(binary)},
		{name: "line numbers that are off", box: letterTo("1", author+"Subject: [PATCH] x\n", "---\n--- a/f\n+++ b/f\n@@ -3,3 +3,3 @@\n a\n-b\n+c\n d\n"),
			want: []string{"1 v1 1/1 1=1"}, check: diffIs("--- a/f\n+++ b/f\n@@ -3,3 +3,3 @@\n a\n-b\n+c\n d\n")},
		{name: "brackets in an address", box: letterTo("1", "From: \"helper[bot]\" <7+helper[bot]@users.noreply.example.com>\nSubject: [PATCH] x\n", change("f", "1")),
			want: []string{"1 v1 1/1 1=1"}, check: authors("helper[bot] <7+helper[bot]@users.noreply.example.com>")},
		{name: "an empty address", box: letterTo("1", "From: A U Thor <>\nSubject: [PATCH] x\n", change("f", "1")), want: []string{"1 v1 1/1 1=1"}, check: authors("A U Thor <>")},
		{name: "a separator inside an attachment", box: letterTo("1", author+"Subject: [PATCH] x\nContent-Type: multipart/mixed; boundary=\"=b\"\n",
			"--=b\n\nSee below. From now on it is fast.\nFrom 2019 onwards it was not.\n--=b\nContent-Type: text/x-patch; name=a.patch\nContent-Disposition: attachment; filename=a.patch\n\n"+
				"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\nFrom: Bob <b@example.org>\nDate: Tue, 2 Apr 2024 10:00:00 +0000\nSubject: [PATCH] of B\n\nText.\n---\n"+change("f", "1")+"--=b--\n") + letterTo("2", author+"Subject: [PATCH] y\n", change("f", "2")),
			want: []string{"1 v1 1/1 1=1", "2 v1 1/1 1=2"}, check: authors("Bob <b@example.org>", "A U Thor <author@example.com>")},
		{name: "base64 that holds CRLF and a no-break space", box: letterTo("1", author+"Subject: [PATCH] x\nContent-Transfer-Encoding: base64\n",
			base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll("Why.\n---\n"+change("f", "a\u00a0b"), "\n", "\r\n")))+"\n"),
			want: []string{"1 v1 1/1 1=1"}, check: diffIs(change("f", "a\u00a0b"))},
		{name: "a file with CRLF, saved with LF", box: letterTo("1", author+"Subject: [PATCH] x\n", "Why.\n---\n"+dos), want: []string{"1 v1 1/1 1=1"}, check: diffIs(dos)},
		{name: "a bot's own report, with an address that has an extension", box: seriesOf("[PATCH] x%d", 1) + letterTo("r", "From: bot+x@bench.example.org\nAuto-Submitted: auto-replied\nIn-Reply-To: <1>\nSubject: Re: [PATCH] x1\n",
			"> bench: run\n\n"+strings.ReplaceAll(change("f", "1"), "\n", "\n> ")),
			want: []string{"1 v1 1/1 1=1", "skipped r: a reply without a patch"}},
		{name: "a branch's name with a slash", box: seriesOf("[PATCH bpf-next/net] x%d", 1), want: []string{"1 v1 1/1 1=1"}, check: func(t *testing.T, l mbox.Listing) {
			if d := cmp.Diff([]string{"bpf-next/net"}, l.Series[0].Tags); d != "" {
				t.Errorf("tags (-want +got):\n%s", d)
			}
		}},
		{name: "a name with a dot and no quotes, several people in Cc", box: letterTo("1", "From: wile e. coyote <wile@example.com>\nCc: road r. runner <rr@example.com>,\"acme, inc.\" <acme@example.com>\nCc: x@example.com\nSubject: [PATCH] x\n", change("f", "1")),
			want: []string{"1 v1 1/1 1=1"}, check: authors("wile e. coyote <wile@example.com>")},
		{name: "a patch in the middle that is broken", box: strings.Replace(seriesOf("[PATCH %d/5] a", 5), "@@ -1 +1 @@\n-old\n+3\n", "@@ -1,9 +1,9 @@\n-old\n+3\nwrapped\n", 1), want: []string{"1 v1 " + numbered(5, 5)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := listing(readBox(t, tc.box))
			if d := cmp.Diff(tc.want, outline(l)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			if tc.check != nil {
				tc.check(t, l)
			}
		})
	}
	t.Run("a file with CRLF, sent with CRLF", func(t *testing.T) {
		// The way here adds one CR to each line, also to those that have one.
		m := parse(t, strings.ReplaceAll(author+"Message-ID: <1>\nSubject: [PATCH] x\n\nWhy.\n---\n"+dos, "\n", "\r\n"))
		diffIs(dos)(t, listing([]*mbox.Message{m}))
	})
	t.Run("the prose before a diff is not glued to it", func(t *testing.T) {
		m := parse(t, author+"Subject: Re: [PATCH] x\n\nThis would be shorter:\nJames\n"+change("f", "2"))
		if c := patch.Find(m, patch.Options{}); c.Text != "This would be shorter:\nJames\n" || string(c.Patches[0].Patch.Diff) != change("f", "2") {
			t.Errorf("text %q, diff %q", c.Text, c.Patches[0].Patch.Diff)
		}
	})
	t.Run("several people in Cc", func(t *testing.T) {
		got := mbox.ParseAddresses(`road r. runner <rr@example.com>,"acme, inc." <acme@example.com>`)
		want := []mbox.Address{{Name: "road r. runner", Email: "rr@example.com"}, {Name: "acme, inc.", Email: "acme@example.com"}}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// diffIs holds the diff of the first patch against bytes.
func diffIs(want string) func(*testing.T, mbox.Listing) {
	return func(t *testing.T, l mbox.Listing) {
		t.Helper()
		if d := cmp.Diff(want, string(l.Series[0].Patches[0].Diff)); d != "" {
			t.Errorf("diff (-want +got):\n%s", d)
		}
	}
}

// authors holds the authors of all patches against names.
func authors(want ...string) func(*testing.T, mbox.Listing) {
	return func(t *testing.T, l mbox.Listing) {
		t.Helper()
		var got []string
		for _, s := range l.Series {
			for _, p := range s.Patches {
				got = append(got, p.Author.String())
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("authors (-want +got):\n%s", d)
		}
	}
}

// TestBadMail has broken and hostile mail. The mail behind it is always read.
func TestBadMail(t *testing.T) {
	many := func(n int, format string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format, i)
		}
		return out.String()
	}
	for _, tc := range []struct {
		name   string
		fields string // default: an author and a subject
		body   string // default: a change
		want   []string
		check  func(*testing.T, mbox.Listing)
	}{
		{name: "a line break in an encoded subject", fields: author + "Subject: =?utf-8?q?[PATCH]_x=0D=0ABcc:_evil=40x?=\n", want: []string{"bad v1 1/1 1=bad"}, check: func(t *testing.T, l mbox.Listing) {
			if s := l.Series[0]; s.Subject != "x Bcc: evil@x" || s.Patches[0].Message != "x Bcc: evil@x\n\nWhy.\n" {
				t.Errorf("subject %q, message %q", s.Subject, s.Patches[0].Message)
			}
		}},
		{name: "a name that hides an address", fields: "From: \"x\\\" <evil@x>, \\\"y\" <a@b.example>\nSubject: [PATCH] x\n", want: []string{"bad v1 1/1 1=bad"}, check: func(t *testing.T, l mbox.Listing) {
			if a := l.Series[0].Author; strings.ContainsAny(a.Email+a.Name, "<>\r\n") {
				t.Errorf("author %+v", a)
			}
		}},
		{name: "an address with quotes and a line break", fields: "From: \"a@b.c>\\r\\nBcc: <e\"@x\nSubject: [PATCH] x\n", check: func(t *testing.T, l mbox.Listing) {
			for _, s := range l.Series {
				if strings.ContainsAny(s.Author.Email+s.Author.Name, "\r\n") {
					t.Errorf("author %+v", s.Author)
				}
			}
		}},
		{name: "Reply-To elsewhere", fields: author + "Reply-To: victim@example.org\nSubject: [PATCH] x\n", want: []string{"bad v1 1/1 1=bad"}, check: authors("A U Thor <author@example.com>", "A U Thor <author@example.com>")},
		{name: "another bot's patch", fields: author + "Auto-Submitted: auto-generated\nSubject: [PATCH] x\n", want: []string{"bad v1 1/1 1=bad"}},
		{name: "a bounce", fields: "From: MAILER-DAEMON@example.org\nReturn-Path: <>\nSubject: Undelivered Mail\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n",
			body: "--b\n\nIt could not be delivered.\n--b\nContent-Type: message/delivery-status\n\nAction: failed\n--b\nContent-Type: message/rfc822\n\nSubject: [PATCH] y\nFrom: a@example.org\n\n" + change("f", "1") + "--b--\n",
			want: []string{"skipped bad: no diff in it"}},
		{name: "100,000 fields", fields: author + many(100_000, "X-%d: 1\n"), want: []string{"problem bad: header longer than 64 KiB"}},
		{name: "a field of 64 MB", fields: author + "Subject: " + strings.Repeat("a", 64_000_000) + "\n", want: []string{"problem bad: mail larger than 8 MiB"}},
		{name: "a field of 4 MB", fields: author + "Subject: " + strings.Repeat("a", 4_000_000) + "\n", want: []string{"problem bad: header longer than 64 KiB"}},
		{name: "100,000 empty parts", fields: author + "Content-Type: multipart/mixed; boundary=b\n", body: strings.Repeat("--b\n\n", 100_000) + "--b--\n", want: []string{"problem bad: more than 200 MIME parts"}},
		{name: "8,000 nested parts", fields: author + "Content-Type: multipart/mixed; boundary=b0\n", body: "--b0\n" + many(8000, "Content-Type: multipart/mixed; boundary=c%[1]d\n\n--c%[1]d\n") + "--b0--\n", want: []string{"problem bad: MIME parts nested deeper than 20"}},
		{name: "a multipart without an end", fields: author + "Content-Type: multipart/mixed; boundary=b\n", body: "--b\n\nx\n", want: []string{"problem bad: unexpected EOF: the multipart's closing boundary is missing, the mail was cut off"}},
		{name: "an unknown charset", fields: author + "Subject: [PATCH] x\nContent-Type: text/plain; charset=x-evil\n", want: []string{"bad v1 1/1 1=bad"}},
		{name: "an unknown transfer encoding of ASCII", fields: author + "Subject: [PATCH] x\nContent-Transfer-Encoding: x-uue\n", want: []string{"bad v1 1/1 1=bad"}},
		{name: "an unknown transfer encoding of bytes", fields: author + "Subject: [PATCH] x\nContent-Transfer-Encoding: x-uue\n", body: change("f", "\xe9"), want: []string{`problem bad: unknown Content-Transfer-Encoding "x-uue"`}},
		{name: "a header line without a colon", fields: "not a header\n" + author + "Subject: [PATCH] x\n", want: []string{"bad v1 1/1 1=bad"}},
		{name: "HTML alone", fields: author + "Subject: [PATCH] x\nContent-Type: text/html\n", body: "<html><pre>\n" + change("f", "1") + "</pre></html>\n", want: []string{"skipped bad: no diff in it"}},
		{name: "a series of 500", fields: author + "Subject: [PATCH 1/500] x\n", want: []string{"skipped bad: series of 500 patches, limit 100"}},
		{name: "NUL and bytes in the subject", fields: author + "Subject: [PATCH] a\x00\xffb\n", want: []string{"bad v1 1/1 1=bad"}, check: func(t *testing.T, l mbox.Listing) {
			if s := l.Series[0].Subject; s != "a\ufffdÿb" {
				t.Errorf("subject %q", s)
			}
		}},
		{name: "5,000 references", fields: author + "Subject: [PATCH] x\nReferences:" + many(5000, "\n <%d@x>") + "\n", want: []string{"bad v1 1/1 1=bad"}},
		{name: "a date of the year 10000", fields: author + "Date: Fri, 31 Dec 9999 23:59:59 -0700\nSubject: [PATCH] x\n", want: []string{"bad v1 1/1 1=bad"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.body == "" {
				tc.body = "Why.\n---\n" + change("f", "1")
			}
			next := letterTo("next", author+"Subject: [PATCH] next\n", change("g", "2"))
			r := mbox.NewReader(strings.NewReader(letterTo("bad", tc.fields, tc.body)+next), "box")
			c := NewCollector(Options{})
			for {
				m, p, err := r.Next()
				if err != nil {
					break
				}
				if p != nil {
					c.AddProblem(*p)
				} else {
					c.Add(m)
				}
			}
			l := must(c.Listing())
			if _, err := json.Marshal(l); err != nil {
				t.Errorf("as JSON: %v", err)
			}
			got := outline(l)
			i := slices.Index(got, "next v1 1/1 1=next")
			if i < 0 {
				t.Fatalf("the mail behind it was not read: %v", got)
			}
			if got = slices.Delete(got, i, i+1); tc.want != nil {
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
			l.Series = slices.DeleteFunc(l.Series, func(s mbox.Series) bool { return s.MessageID == "next" && tc.name != "Reply-To elsewhere" })
			if tc.check != nil {
				tc.check(t, l)
			}
		})
	}
}

// TestNoMessageID gives a mail without an id a name of its own and finds its double.
func TestNoMessageID(t *testing.T) {
	raw := author + "Date: Wed, 1 May 2024 10:00:00 +0000\nSubject: [PATCH] x\n\n" + change("f", "1")
	m := parse(t, raw)
	if !strings.HasPrefix(m.Key(), "sha256:") {
		t.Errorf("key %q", m.Key())
	}
	if d := cmp.Diff([]string{" v1 1/1 1=", "skipped : a double of test"}, outline(listing([]*mbox.Message{m, parse(t, raw)}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
