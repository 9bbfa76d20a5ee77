package mbox

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseMessage(t *testing.T) {
	raw := "From someone Mon Sep 17 10:00:00 2018\n" +
		"Received: by mail\nfrom: \"O'Neil, Ann\" <ann@example.com>\nnot a header\n" +
		"Reply-To: dev@lists.example.com, =?utf-8?q?J=C3=B6rg?= <j@example.com>\n" +
		"Subject: [PATCH] =?utf-8?q?caf=C3=A9?=\n =?utf-8?q?_au_lait?= and\n\tmore\n" +
		"Date: Fri, 9 Jun 2006 00:44:16 -0700 (PDT)\nMessage-Id: <a@example.com>\n" +
		"In-Reply-To: Your message of Monday <b@example.com>\nReferences: <c@example.com>\n\t<b@example.com>\n" +
		"List-Id: The list <dev.lists.example.com>\nX-Odd: 8\xe9\x00bit\n\nbody\n"
	m, err := ParseMessage([]byte(raw), "here")
	if err != nil {
		t.Fatal(err)
	}
	type view struct {
		ID, Subject, Position, Odd string
		From                       Address
		ReplyTo                    []Address
		Date                       string
		InReplyTo, Refs, Lists     []string
		Text                       string
	}
	want := view{
		ID: "a@example.com", Subject: "[PATCH] café au lait and more", Position: "here", Odd: "8é\ufffdbit",
		From:      Address{Name: "O'Neil, Ann", Email: "ann@example.com"},
		ReplyTo:   []Address{{Name: "dev@lists.example.com", Email: "dev@lists.example.com"}, {Name: "Jörg", Email: "j@example.com"}},
		Date:      "2006-06-09T00:44:16-07:00",
		InReplyTo: []string{"b@example.com"}, Refs: []string{"c@example.com", "b@example.com"}, Lists: []string{"dev.lists.example.com"},
		Text: "body\n",
	}
	got := view{m.ID, m.Subject, m.Position, m.Header("x-odd"), m.From, m.ReplyTo, m.Date.Format(time.RFC3339), m.InReplyTo, m.References, m.Lists, m.Text()}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHeaderHidesNoLineBreak(t *testing.T) {
	m, err := ParseMessage([]byte("Subject: =?utf-8?q?[PATCH]_x=0D=0ABcc:_evil=40x?=\nFrom: =?utf-8?q?Eve=0AX?= <e@example.com>\n\n"), "")
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "[PATCH] x Bcc: evil@x" || m.From.Name != "Eve X" || strings.ContainsAny(m.Header("Subject"), "\r\n") {
		t.Errorf("subject %q, name %q, header %q", m.Subject, m.From.Name, m.Header("Subject"))
	}
}

func TestParseAddress(t *testing.T) {
	for in, want := range map[string]Address{
		"A U Thor <author@example.com>":       {"A U Thor", "author@example.com"},
		"author@example.com (A U Thor)":       {"A U Thor", "author@example.com"},
		"A (zzz) U <a@example.com> (Comment)": {"A (zzz) U (Comment)", "a@example.com"},
		`"A \"The\" U" <a@example.com>`:       {`A "The" U`, "a@example.com"},
		"a@example.com":                       {"a@example.com", "a@example.com"},
		"Nobody <>":                           {"Nobody", ""},
		"Me <local>":                          {"local", "local"},
		"nobody":                              {},
		"":                                    {},
	} {
		if got := ParseAddress(in); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

func TestParseDate(t *testing.T) {
	for in, want := range map[string]string{
		"Fri, 9 Jun 2006 00:44:16 -0700":               "2006-06-09T00:44:16-07:00",
		"Fri,  9 Jun 2006 00:44:16 +0000":              "2006-06-09T00:44:16Z",
		"9 Jun 2006 00:44 -0700":                       "2006-06-09T00:44:00-07:00",
		"Fri, 09 Jun 06 00:44:16 GMT":                  "2006-06-09T00:44:16Z",
		"Fri, 09 Jun 2006 00:44:16 EST":                "2006-06-09T00:44:16-05:00",
		"Fri Jun 9 00:44:16 2006 -0330":                "2006-06-09T00:44:16-03:30",
		"2006-06-09 00:44:16 +0200":                    "2006-06-09T00:44:16+02:00",
		"2006-06-09T00:44:16Z":                         "2006-06-09T00:44:16Z",
		"Fri, 9 Jun 2006 00:44:16 -0700 (PDT)":         "2006-06-09T00:44:16-07:00",
		"Fri, 9 Jun 2006 00:44:16 +2400":               "2006-06-09T00:44:16Z",
		"Fri, 9 Jun 2006 00:44:16 -9999":               "2006-06-09T00:44:16Z",
		"Fri, 9 Jun 2006 00:44:16 +0060":               "2006-06-09T00:44:16Z",
		"Fri, 9 Jun 2006 00:44:16 +2359":               "2006-06-09T00:44:16+23:59",
		"2006-06-09T00:44:16+25:00":                    "0001-01-01T00:00:00Z",
		"Fri, 31 Dec 9999 23:44:16 -0700":              "0001-01-01T00:00:00Z",
		"Fri, 9 Jun 12006 00:44:16 +0000":              "0001-01-01T00:00:00Z",
		"yesterday":                                    "0001-01-01T00:00:00Z",
		"Mon, 11 Sep 2016 23:22:904070804030804 +0100": "0001-01-01T00:00:00Z",
	} {
		if got := ParseDate(in).Format(time.RFC3339); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// nested makes a mail of multiparts inside each other, with that much text in the
// innermost.
func nested(depth, size int) string {
	var out strings.Builder
	out.WriteString("From: a@example.com\n")
	for i := range depth {
		fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
	}
	out.WriteString("\n" + strings.Repeat("+a line\n-- \n", size/12))
	for i := range depth {
		fmt.Fprintf(&out, "--b%d--\n", depth-1-i)
	}
	return out.String()
}

// refused is input that must be refused with a message that says why.
var refused = map[string]struct{ raw, want string }{
	"nested":         {nested(8000, 10), "MIME parts nested deeper than 20"},
	"nested, large":  {nested(25, 7<<20), "MIME parts nested deeper than 20"},
	"multiparts":     {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n", 50_000) + "--b--\n", "more than 200 MIME parts"},
	"parts":          {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n", 100_000) + "--b--\n", "more than 200 MIME parts"},
	"headers":        {strings.Repeat("X-n: 1\n", 100_000) + "\nx\n", "header longer than 64 KiB"},
	"one header":     {"Subject: " + strings.Repeat("a", 4<<20) + "\n\nx\n", "header longer than 64 KiB"},
	"folded":         {"Subject: a\n" + strings.Repeat(" a\n", 100_000) + "\nx\n", "header longer than 64 KiB"},
	"a part's":       {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n" + strings.Repeat("X-n: 1\n", 100_000) + "\nx\n--b--\n", "header of a MIME part longer than 64 KiB"},
	"line":           {"From: a@example.com\n\n+" + strings.Repeat("a", 2<<20) + "\n", "line 3 longer than 1 MiB"},
	"mail":           {"From: a@example.com\n\n" + strings.Repeat("a\n", 5<<20), "mail larger than 8 MiB"},
	"transfer":       {"From: a@example.com\nContent-Transfer-Encoding: x-uue\n\nb\xe9gin\n", `unknown Content-Transfer-Encoding "x-uue"`},
	"only =":         {"From: a@example.com\nContent-Transfer-Encoding: x\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Transfer-Encoding: quoted-printable\n\n" + strings.Repeat("=", 1<<19) + "\n--b\n\nx\n", errCutOff.Error()},
	"only padding":   {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Transfer-Encoding: base64\n\n" + strings.Repeat("YQ==\n", 1<<18) + "\n--b\n\nx\n", errCutOff.Error()},
	"only dashes":    {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\n" + strings.Repeat("--\n", 2<<20), errCutOff.Error()},
	"never closed":   {"From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nx\n", "unexpected EOF: the multipart's closing boundary is missing, the mail was cut off"},
	"no mail at all": {"\x7fELF\x02\x01\x01\n\n", "no mail header"},
	"empty":          {"", "no mail header"},
}

// TestLimits refuses without copying what is refused: what is allocated does not
// grow with the mail, whose header may be read once.
func TestLimits(t *testing.T) {
	for name, tc := range refused {
		t.Run(name, func(t *testing.T) {
			raw := []byte(tc.raw)
			took := allocated(func() {
				if _, err := ParseMessage(raw, "x"); err == nil || err.Error() != tc.want {
					t.Errorf("error %v, want %s", err, tc.want)
				}
			})
			if most := uint64(1 << 20); took > most {
				t.Errorf("%d bytes allocated, want %d at most", took, most)
			}
		})
	}
}

// TestDepthCostsNothing reads the same text at any depth without a copy for each.
func TestDepthCostsNothing(t *testing.T) {
	for _, depth := range []int{1, MaxDepth} {
		raw := []byte(nested(depth, 7<<20))
		took := allocated(func() {
			m, err := ParseMessage(raw, "x")
			if err != nil || len(m.Parts) != 1 || len(m.Parts[0].Body) < 6<<20 {
				t.Errorf("depth %d: %v", depth, err)
			}
		})
		if took > 1<<20 {
			t.Errorf("depth %d: %d bytes allocated for a mail of %d", depth, took, len(raw))
		}
	}
}

// allocated gives how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkRefuse refuses each mail that exceeds a limit.
func BenchmarkRefuse(b *testing.B) {
	for name, tc := range refused {
		b.Run(name, func(b *testing.B) {
			raw := []byte(tc.raw)
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := ParseMessage(raw, "x"); err == nil {
					b.Fatal("not refused")
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/mail")
		})
	}
}

// TestSloppyMail has mail that go-message alone gives up or reads otherwise than
// git mailinfo.
func TestSloppyMail(t *testing.T) {
	const multipart = "From: a@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\n"
	const qp = "From: a@example.com\nContent-Transfer-Encoding: quoted-printable\n\n"
	const base64 = "From: a@example.com\nContent-Transfer-Encoding: base64\n\n"
	long := strings.Repeat("a b\te=", 2000)
	for name, tc := range map[string]struct {
		raw  string
		want []string // the parts' bodies
	}{
		"a bad line in the header":         {"From: a@example.com\nbad line\nContent-Transfer-Encoding: base64\n\nYWJj\n", []string{"abc"}},
		"a bad line in a part's header":    {multipart + "X-A: 1\nbad line\nContent-Transfer-Encoding: base64\n\nYWJj\n--b--\n", []string{"abc"}},
		"a part without a header":          {multipart + "just text\n--b--\n", []string{"just text\n"}},
		"a part that is all header":        {multipart + "X-A: 1\n--b\n\nx\n--b--\n", []string{"", "x\n"}},
		"no parts":                         {strings.Replace(multipart, "--b\n", "--b--\n", 1), nil},
		"a line like a boundary":           {multipart + "\nx\n--b-1\n--b c\n--b--\n", []string{"x\n--b-1\n--b c\n"}},
		"line ends that change":            {multipart + "\r\nx\r\n--b\r\n\r\ny\n--b--\n", []string{"x\n", "y\n"}},
		"a boundary like an assignment":    {"From: a@example.com\nContent-Type: multipart/mixed; boundary==b=\n\n--=b=\n\nx\n--=b=--\n", []string{"x\n"}},
		"an inner multipart without end":   {multipart + "Content-Type: multipart/mixed; boundary=b-1\n\n--b-1\n\nx\n--b-1\n\ny\n--b--\n", []string{"x\n", "y\n"}},
		"a charset that the body belies":   {"From: a@example.com\nContent-Type: text/plain; charset=utf-16\n\n+caf\xe9\n", []string{"+caf\xe9\n"}},
		"quoted-printable, blanks":         {qp + "+a \n \n-b\t\n", []string{"+a \n \n-b\t\n"}},
		"quoted-printable, = alone":        {qp + "a = b=\nc=3Dd =  \ne=zz\n", []string{"a = bc=d e=zz\n"}},
		"quoted-printable, bytes":          {qp + "\x0c\x1b\xe9\rx\n", []string{"\x0c\x1b\xe9\rx\n"}},
		"quoted-printable, a long line":    {qp + strings.ReplaceAll(long, "=", "=3D") + "\n", []string{long + "\n"}},
		"base64 with a footer":             {base64 + "YWJj\nYQ==\n__\nThe list\n", []string{"abca"}},
		"base64 with padding in the midst": {base64 + "YWJj\nYQ==\nYWJj\n", []string{"abcaabc"}},
		"base64 without padding":           {base64 + "YWJj\nYQ\n", []string{"abca"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ParseMessage([]byte(tc.raw), "x")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range m.Parts {
				got = append(got, string(p.Body))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDecodeHeader(t *testing.T) {
	for in, want := range map[string]string{
		"=?utf-8?q?caf=C3?= =?utf-8?q?=A9?=": "café", // a character cut in two
		"=?utf-8?q?what??= x":                "what? x",
		"=?utf-8*en?b?xI1haiDEjQ?=":          "čaj č", // no padding
		"=?iso-8859-1?Q?=93a=94_=E9?=":       "“a” é",
		"=?x-none?q?caf=E9?=":                "café",
		"a=?utf-8?q?b?=c":                    "abc",
		"=?iso-2022-jp?B?GyRCJCIbKEI=?=":     "あ",
		"=?utf-8?x?b?=":                      "=?utf-8?x?b?=",
	} {
		if got := DecodeHeader([]byte(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	for _, s := range []string{
		"From: =?utf-8?q?a?= <a@b>\nSubject: x\n y\n\nbody\n",
		"Content-Type: multipart/alternative; boundary=\"a\"\n\n--a\nContent-Type: text/html\n\nx\n--a\n\ny\n--a--\n",
		"Content-Type: text/plain; format=flowed; delsp=yes; charset*=utf-8''x\nContent-Transfer-Encoding: quoted-printable\n\na=20=\nb =\r\n-- \n",
		"A: b\nContent-Transfer-Encoding: base64\n\nYWJj\nYQ==\nfooter here\n",
		"# HG changeset patch\n# User x\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseMessage(raw, "fuzz")
		if err != nil {
			return
		}
		if len(m.Parts) > MaxParts {
			t.Errorf("%d parts", len(m.Parts))
		}
		for _, s := range []string{m.Subject, m.From.Name, m.Text(), m.Header("subject")} {
			if strings.ToValidUTF8(s, "") != s {
				t.Errorf("not UTF-8: %q", s)
			}
		}
	})
}

// FuzzParseDate reads dates that JSON can hold, whatever is written.
func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"Fri, 9 Jun 2006 00:44:16 -0700 (PDT)", "Fri Jun 9 00:44:16 2006 -0330", "2006-06-09T00:44:16Z", "31 Dec 9999 23:59:59 -2359", "1 Jan 70 00:00:00 EST", "9 Jun 2006 00:44 +2400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := ParseDate(in)
		for _, at := range []time.Time{got, got.UTC()} {
			if _, err := at.MarshalJSON(); err != nil {
				t.Errorf("%q: %v", in, err)
			}
		}
	})
}
