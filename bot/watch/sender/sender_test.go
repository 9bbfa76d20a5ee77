package sender

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/google/go-cmp/cmp"

	"patchbench/mbox"
)

// parse makes a mail of lines.
func parse(t testing.TB, lines ...string) *mbox.Message {
	t.Helper()
	m, err := mbox.ParseMessage([]byte(strings.Join(lines, "\n")), "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestByServer(t *testing.T) {
	const id = "mx.example.org"
	for _, c := range []struct {
		name   string
		header string
		known  bool
	}{
		{"dkim", "Authentication-Results: mx.example.org; dkim=pass header.d=author.test header.s=x", true},
		{"dkim by identity", "Authentication-Results: mx.example.org; dkim=pass header.i=@author.test", true},
		{"dkim of the domain above", "Authentication-Results: mx.example.org; dkim=pass header.d=test.author.test", false},
		{"version and case", "Authentication-Results: MX.example.org 1; DKIM=PASS header.d=AUTHOR.test", true},
		{"with comments", "Authentication-Results: mx.example.org (Patch; dkim=fail);\n\tdkim=pass (2048-bit; d=x) header.d=author.test;\n dmarc=pass (p=none dis=none) header.from=author.test", true},
		{"dmarc", "Authentication-Results: mx.example.org; spf=pass smtp.mailfrom=x@author.test; dmarc=pass header.from=author.test", true},
		{"dmarc of another domain", "Authentication-Results: mx.example.org; dmarc=pass header.from=evil.test", false},
		{"spf alone", "Authentication-Results: mx.example.org; spf=pass smtp.mailfrom=one@author.test", false},
		{"fail", "Authentication-Results: mx.example.org; dkim=fail header.d=author.test", false},
		{"another signer", "Authentication-Results: mx.example.org; dkim=pass header.d=evil.test", false},
		{"a name that ends alike", "Authentication-Results: mx.example.org; dkim=pass header.d=thor.test", false},
		{"a top level domain", "Authentication-Results: mx.example.org; dkim=pass header.d=test", false},
		{"none", "X-Other: 1", false},
		{"another server", "Authentication-Results: mx.evil.test; dkim=pass header.d=author.test", false},
		{"ours below a foreign one", "Authentication-Results: mx.evil.test; dkim=pass header.d=author.test\nAuthentication-Results: mx.example.org; dkim=pass header.d=author.test", false},
		{"ours forged below our own", "Authentication-Results: mx.example.org; dkim=none\nAuthentication-Results: mx.example.org; dkim=pass header.d=author.test", false},
		{"ours forged below the next server", "Authentication-Results: mx.example.org; spf=none\nReceived: from evil.test by mx.example.org\nAuthentication-Results: mx.example.org; dkim=pass header.d=author.test", false},
		{"below the own Received", "Received: from x by mx.example.org\nAuthentication-Results: mx.example.org; dkim=pass header.d=author.test", true},
		{"one field for each method", "Authentication-Results: mx.example.org; dmarc=none\nAuthentication-Results: mx.example.org; dkim=pass header.d=author.test", true},
		{"a result in a quoted reason", `Authentication-Results: mx.example.org; dkim=fail reason="x; dkim=pass header.d=author.test" header.d=author.test`, false},
		{"a result in a comment", "Authentication-Results: mx.example.org; dkim=fail (x; dkim=pass header.d=author.test) header.d=author.test", false},
		{"a result in a sender", `Authentication-Results: mx.example.org; spf=pass smtp.mailfrom="a; dkim=pass header.d=author.test"@evil.test`, false},
		{"an unclosed comment", "Authentication-Results: mx.example.org; dkim=fail (x; dkim=pass header.d=author.test", false},
		{"two signatures", "Authentication-Results: mx.example.org; dkim=fail header.d=author.test; dkim=pass header.d=author.test", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.header, "From: One <One@Author.test>", "", "x")
			if got := Check(t.Context(), m, Options{AuthservID: id}); got.Known != c.known || got.Address != "one@author.test" {
				t.Errorf("got %+v, want known %t", got, c.known)
			}
			if got := Check(t.Context(), m, Options{}); got.Known {
				t.Errorf("known though nobody is believed: %+v", got)
			}
		})
	}
}

func TestUnsigned(t *testing.T) {
	const mail = "From: a@author.test\nSubject: x\nDate: x\nMessage-ID: <1@x>\nIn-Reply-To: <2@x>\n"
	names := []string{"subject", "date", "in-reply-to", "references"}
	for _, c := range []struct {
		name, header string
		want         []string
		partly       bool
	}{
		{"no signature", mail, nil, false},
		{"all", mail + "DKIM-Signature: d=author.test; h=From:Subject:Date:In-Reply-To", nil, false},
		{"folded", mail + "DKIM-Signature: d=author.test; h=From:Sub\n ject : Date:In-\n\tReply-To", nil, false},
		{"some", mail + "DKIM-Signature: d=author.test; h=from:date", []string{"subject", "in-reply-to"}, false},
		{"nothing", mail + "DKIM-Signature: d=author.test", []string{"subject", "date", "in-reply-to"}, false},
		{"of the domain above", mail + "DKIM-Signature: d=mail.author.test; h=from:subject:date", []string{"in-reply-to"}, false},
		{"of another", mail + "DKIM-Signature: d=other.test; h=from; l=3", nil, false},
		{"one of two", mail + "DKIM-Signature: d=author.test; h=subject:date:in-reply-to\nDKIM-Signature: d=author.test; h=date", []string{"subject", "in-reply-to"}, false},
		{"a second field", mail + "Subject: y\nDKIM-Signature: d=author.test; h=subject:date:in-reply-to", []string{"subject"}, false},
		{"signed against a second", mail + "Subject: y\nDKIM-Signature: d=author.test; h=subject:date:subject:in-reply-to", nil, false},
		{"a part", mail + "DKIM-Signature: d=author.test; l=7; h=subject:date:in-reply-to", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, "Authentication-Results: mx.test; dkim=pass header.d=author.test", c.header, "", "x")
			if d := cmp.Diff(c.want, Unsigned(m, names...)); d != "" {
				t.Error(d)
			}
			if v := Check(t.Context(), m, Options{AuthservID: "mx.test"}); v.Known == c.partly {
				t.Errorf("%+v, want it known: %t", v, !c.partly)
			}
		})
	}
}

func TestFrom(t *testing.T) {
	for _, c := range []struct{ name, from, want string }{
		{"plain", "From: a@b.test", "a@b.test"},
		{"a name", "From: A <a@B.test>", "a@b.test"},
		{"raw letters", "From: J\xf6rg <a@b.test>", "a@b.test"},
		{"an address in the name", `From: "trusted@author.test" <evil@evil.test>`, "evil@evil.test"},
		{"an address in front", "From: trusted@author.test <evil@evil.test>", ""},
		{"two", "From: a@b.test, c@d.test", ""},
		{"two fields", "From: a@b.test\nFrom: c@d.test", ""},
		{"none", "X-From: a@b.test", ""},
		{"two in brackets", "From: J\xf6rg <a@b.test> <c@d.test>", ""},
		{"a group", "From: friends: a@b.test;", "a@b.test"},
		{"quotes that end in the name", `From: "x" <evil@x>, "y" <a@b.test>`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.from, "Subject: x", "", "x")
			if got := from(fields(m.Raw)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestSignature verifies mails that are signed here.
func TestSignature(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(_ context.Context, name string) ([]string, error) {
		if name != "sel._domainkey.author.test" && name != "sel._domainkey.evil.test" {
			return nil, errors.New("no such name")
		}
		return []string{"v=DKIM1; k=ed25519; p=" + base64.StdEncoding.EncodeToString(public)}, nil
	}
	const text = "From: One <one@author.test>\r\nSubject: [PATCH] x\r\nMessage-ID: <1@author.test>\r\n\r\nBody.\r\n"
	sign := func(domain, text string) string {
		var out bytes.Buffer
		err := dkim.Sign(&out, strings.NewReader(text), &dkim.SignOptions{Domain: domain, Selector: "sel", Signer: private, HeaderKeys: []string{"From", "Subject", "Message-ID"}})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	down := func(context.Context, string) ([]string, error) { return nil, errors.New("no network") }
	for _, c := range []struct {
		name, mail string
		lookup     func(context.Context, string) ([]string, error)
		known      bool
	}{
		{"signed", sign("author.test", text), lookup, true},
		{"with LF as a mailbox has it", strings.ReplaceAll(sign("author.test", text), "\r\n", "\n"), lookup, true},
		{"signed by another", sign("evil.test", text), lookup, false},
		{"by both", sign("evil.test", sign("author.test", text)), lookup, true},
		{"changed", strings.Replace(sign("author.test", text), "Body", "body", 1), lookup, false},
		{"another subject", strings.Replace(sign("author.test", text), "PATCH", "Patch", 1), lookup, false},
		{"not signed", text, lookup, false},
		{"not asked", sign("author.test", text), nil, false},
		{"no DNS", sign("author.test", text), down, false},
		{"a second From above", "From: trusted@author.test\r\n" + sign("author.test", text), lookup, false},
		{"behind many of others", strings.Repeat("DKIM-Signature: v=1; d=x\r\n", 100) + sign("author.test", text), lookup, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.mail)
			if got := Check(t.Context(), m, Options{LookupTXT: c.lookup}); got.Known != c.known {
				t.Errorf("got %+v, want known %t", got, c.known)
			}
		})
	}
}

func TestAutomatic(t *testing.T) {
	for _, c := range []struct {
		name, header string
		want         string
	}{
		{"a person", "Return-Path: <a@b.test>", ""},
		{"Auto-Submitted: no", "Auto-Submitted: no", ""},
		{"a robot", "Auto-Submitted: auto-generated; x=y", "Auto-Submitted: auto-generated"},
		{"an answer", "Auto-Submitted: Auto-Replied (vacation)", "Auto-Submitted: auto-replied"},
		{"no way back", "Return-Path: <>", "Return-Path: <>"},
		{"no way back, with a blank", "Return-Path: < >", "Return-Path: <>"},
		{"a report", "Content-Type: multipart/report; report-type=delivery-status; boundary=b", "a report of a mail server"},
		{"bulk", "Precedence: bulk", "Precedence: bulk"},
		{"bulk of a list", "Precedence: bulk\nList-Id: <dev.lists.test>", ""},
		{"a list", "Precedence: list", ""},
		{"junk", "Precedence: junk", "Precedence: junk"},
		{"vacation", "X-Autoreply: yes", "X-Autoreply"},
		{"a bot of our kind", "X-Patchbench: 0123456789abcdef0123456789abcdef01234567", "a letter of another Patchbench"},
		{"who wants no answer", "X-Patchbench: no", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.header, "From: a@b.test", "", "--b", "", "x", "--b--", "")
			if got := Automatic(m); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := Automatic(parse(t, "From: MAILER-DAEMON@x.test", "", "x")); got != "sent by mailer-daemon" {
		t.Errorf("got %q", got)
	}
}

func TestBounce(t *testing.T) {
	report := func(action, part, id string) []string {
		return []string{
			"From: MAILER-DAEMON@mx.test", "Content-Type: multipart/report; report-type=delivery-status; boundary=b", "",
			"--b", "", "I could not deliver it.",
			"--b", "Content-Type: message/delivery-status", "", "Reporting-MTA: dns; mx.test", "", "Final-Recipient: rfc822; x@y.test", "Action: " + action, "Diagnostic-Code: smtp; 550 no such", "  user", "",
			"--b", "Content-Type: " + part, "", "Message-ID: <" + id + ">", "Subject: Re: [PATCH] x", "", "--b--", "",
		}
	}
	type result struct{ ID, Why string }
	failed := result{"1@bot.test", "returned as undeliverable: smtp; 550 no such user"}
	for _, c := range []struct {
		name  string
		lines []string
		want  result
	}{
		{"failed", report("failed", "message/rfc822", "1@bot.test"), failed},
		{"headers alone", report("Failed", "text/rfc822-headers", "1@bot.test"), failed},
		{"delayed", report("delayed", "message/rfc822", "1@bot.test"), result{}},
		{"of nothing", report("failed", "text/plain", "1@bot.test"), result{}},
		{"no report", []string{"From: a@b.test", "", "Action: failed"}, result{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			id, why := Bounce(parse(t, c.lines...))
			if d := cmp.Diff(c.want, result{id, why}); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("Authentication-Results: mx.example.org; dkim=pass header.d=author.test\nFrom: a@author.test\n\nx")
	f.Add("Authentication-Results: mx.example.org; dkim=fail (x; \\) dkim=pass header.d=author.test\nFrom: \"a\" <a@author.test>\n\nx")
	f.Add("Authentication-Results: evil.test; x=\"mx.example.org; dkim=pass header.d=author.test\"\nFrom: a@author.test\n\nx")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := mbox.ParseMessage([]byte(s), "")
		if err != nil {
			return
		}
		Automatic(m)
		Bounce(m)
		Unsigned(m, "from", "subject")
		v := Check(t.Context(), m, Options{AuthservID: "mx.example.org"})
		if v.Known && (v.Address == "" || !strings.Contains(strings.ToLower(s), "mx.example.org")) {
			t.Errorf("known without a word of the server: %+v", v)
		}
	})
}
