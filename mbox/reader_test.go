package mbox

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const (
	sep   = "From someone@example.com Mon Sep 17 10:00:00 2018\n"
	fpSep = "From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
)

func simple(subject, body string) string {
	return "From: A U Thor <author@example.com>\nSubject: " + subject + "\n\n" + body
}

// readAll tells what a mailbox holds: raw mails, and problems with their position.
func readAll(t testing.TB, r *Reader) (raw []string, problems []string) {
	t.Helper()
	for {
		m, p, err := r.Next()
		switch {
		case err == io.EOF:
			return raw, problems
		case err != nil:
			t.Fatal(err)
		case p != nil:
			problems = append(problems, p.Position+": "+p.Error)
		default:
			raw = append(raw, string(m.Raw))
		}
	}
}

func TestReader(t *testing.T) {
	multipart := "From: A U Thor <author@example.com>\nContent-Type: multipart/mixed; boundary=\"=b\"\n\n--=b\n\n" +
		"see attached\n--=b\nContent-Type: text/x-patch\n\n" + fpSep + simple("[PATCH] x", "y\n") + "\n"
	big := strings.Repeat("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n", MaxMail/64+10)
	cl := func(body string) string {
		return fmt.Sprintf("From: A U Thor <author@example.com>\nContent-Length: %d\n\n%s", len(body), body)
	}
	for _, tc := range []struct {
		name     string
		in       string
		format   Format
		want     []string
		problems []string
	}{
		{name: "nothing", in: ""},
		{name: "blank lines", in: "\n\n  \n"},
		{name: "one mail", in: simple("x", "y\n"), want: []string{simple("x", "y\n")}},
		{name: "one mail keeps From lines", in: simple("x", sep+"y\n"), want: []string{simple("x", sep+"y\n")}},
		{name: "two", in: sep + simple("x", "y\n") + "\n" + sep + simple("z", "y\n") + "\n",
			want: []string{simple("x", "y\n"), simple("z", "y\n")}},
		{name: "no blank line between", in: fpSep + simple("x", "y\n") + fpSep + simple("z", "y\n"),
			want: []string{simple("x", "y\n"), simple("z", "y\n")}},
		{name: "prose", in: sep + simple("x", "\nFrom now on\nFrom 2019 onwards\nFrom the top at 10:00:00\n") + "\n",
			want: []string{simple("x", "\nFrom now on\nFrom 2019 onwards\nFrom the top at 10:00:00\n")}},
		{name: "quoted stays", in: sep + simple("x", ">From here\n"), want: []string{simple("x", ">From here\n")}},
		{name: "mboxrd when asked", in: sep + simple("x", ">From here\n>>From there\n > From\n"), format: MboxRD,
			want: []string{simple("x", "From here\n>From there\n > From\n")}},
		{name: "mboxrd of archives", in: "From mboxrd@z Thu Jan  1 00:00:00 1970\n" + simple("x", ">From here\n"),
			want: []string{simple("x", "From here\n")}},
		{name: "CRLF", in: strings.ReplaceAll(sep+simple("x", "y\n")+"\n"+sep+simple("z", "y\n"), "\n", "\r\n"),
			want: []string{strings.ReplaceAll(simple("x", "y\n"), "\n", "\r\n"), strings.ReplaceAll(simple("z", "y\n"), "\n", "\r\n")}},
		{name: "attached mailbox", in: sep + multipart + "--=b--\n\n" + sep + simple("z", "y\n"),
			want: []string{multipart + "--=b--\n", simple("z", "y\n")}},
		{name: "multipart cut off", in: sep + multipart + sep + simple("z", "y\n"),
			want: []string{simple("[PATCH] x", "y\n"), simple("z", "y\n")},
			problems: []string{
				"in: message 1 at byte 0: unexpected EOF: the multipart's closing boundary is missing, the mail was cut off",
			}},
		{name: "Content-Length", in: sep + cl("a\n"+sep+"b\n") + "\n" + sep + simple("z", "y\n"),
			want: []string{cl("a\n" + sep + "b\n"), simple("z", "y\n")}},
		{name: "wrong Content-Length", in: sep + strings.Replace(cl("a\n"), ": 2", ": 90", 1) + "\n" + sep + simple("z", "y\n"),
			want: []string{strings.Replace(cl("a\n"), ": 2", ": 90", 1), simple("z", "y\n")}},
		{name: "no header", in: sep + "\nprose without a header\n\n" + sep + simple("z", "y\n"),
			want: []string{simple("z", "y\n")}, problems: []string{"in: message 1 at byte 0: no mail header"}},
		{name: "too large", in: sep + simple("x", big) + "\n" + sep + simple("z", "y\n"),
			want: []string{simple("z", "y\n")}, problems: []string{"in: message 1 at byte 0: mail larger than 8 MiB"}},
		{name: "much too large", in: sep + simple("x", big+big+big) + "\n" + sep + simple("z", "y\n"),
			want: []string{simple("z", "y\n")}, problems: []string{"in: message 1 at byte 0: mail larger than 8 MiB"}},
		{name: "one mail too large", in: simple("x", big+big), problems: []string{"in: message 1 at byte 0: mail larger than 8 MiB"}},
		{name: "hg export", in: "# HG changeset patch\n# User a\none\n\n# HG changeset patch\n# User b\ntwo\n",
			want: []string{"# HG changeset patch\n# User a\none\n\n", "# HG changeset patch\n# User b\ntwo\n"}},
		{name: "byte order mark", in: "\xef\xbb\xbf" + simple("x", "y\n"), want: []string{simple("x", "y\n")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader} {
				r := NewReader(wrap(strings.NewReader(tc.in)), "in")
				r.Format = tc.format
				got, problems := readAll(t, r)
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("%s: mails (-want +got):\n%.2000s", name, d)
				}
				if d := cmp.Diff(tc.problems, problems); d != "" {
					t.Errorf("%s: problems (-want +got):\n%s", name, d)
				}
			}
		})
	}
}

func TestReaderError(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader(sep+simple("x", "y\n")), iotest.ErrReader(io.ErrClosedPipe)), "in")
	if _, _, err := r.Next(); err == nil || err == io.EOF || !strings.Contains(err.Error(), "read in: ") {
		t.Errorf("error %v, want one that names the input", err)
	}
}

func TestWriteRoundTrip(t *testing.T) {
	raws := []string{
		simple("x", "From here\n>From there\n>>From everywhere\n\nFrom "),
		simple("y", "\n\n\n"), simple("z", ""), "Subject: a\n\n" + sep + sep,
	}
	var messages []*Message
	for _, raw := range raws {
		messages = append(messages, &Message{Raw: []byte(raw)})
	}
	var box bytes.Buffer
	if err := Write(&box, messages...); err != nil {
		t.Fatal(err)
	}
	got, problems := readAll(t, NewReader(bytes.NewReader(box.Bytes()), "in"))
	raws[0] += "\n" // a mailbox ends lines
	if d := cmp.Diff(raws, got); d != "" || problems != nil {
		t.Errorf("%v (-want +got):\n%s", problems, d)
	}
}

// TestWriteAnything writes mails made of lines that a mailbox must quote or might
// take for something else, and reads the same bytes back.
func TestWriteAnything(t *testing.T) {
	pieces := []string{"From ", "From a@b Mon Sep 17 10:00:00 2018\n", fpSep, ">From ", ">>From x\n", "\n", "\n\n", "\r\n", "\r", "text", " ", "\x00", "\xff\xfe",
		"# HG changeset patch\n", "Content-Length: 3\n", "--b\n", "--b--\n", "Content-Type: multipart/mixed; boundary=b\n\n", "diff --git a/f b/f\n", "-- \n"}
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var raws []string
		var messages []*Message
		for range 1 + rnd.IntN(5) {
			raw := "Subject: x\n"
			if rnd.IntN(3) > 0 {
				raw += "\n"
			}
			for range rnd.IntN(12) {
				raw += pieces[rnd.IntN(len(pieces))]
			}
			if !strings.HasSuffix(raw, "\n") {
				raw += "\n"
			}
			m, err := ParseMessage([]byte(raw), "made")
			if err != nil {
				continue // no mail, or a multipart that does not end
			}
			raws = append(raws, string(m.Raw))
			messages = append(messages, m)
		}
		var box bytes.Buffer
		if err := Write(&box, messages...); err != nil {
			t.Fatal(err)
		}
		got, problems := readAll(t, NewReader(bytes.NewReader(box.Bytes()), "in"))
		if d := cmp.Diff(raws, got); d != "" || problems != nil {
			t.Fatalf("seed %d: %v (-want +got):\n%s\nthe mailbox: %q", seed, problems, d, box.String())
		}
	}
}

// TestLostEnds has mails whose multiparts do not end, beside ones that hold what
// looks like the start of a mail.
func TestLostEnds(t *testing.T) {
	part := func(boundary, text string, closed bool) string {
		s := "Content-Type: multipart/mixed; boundary=" + boundary + "\n\n--" + boundary + "\n\n" + text + "\n"
		if closed {
			s += "--" + boundary + "--\n"
		}
		return s
	}
	var box strings.Builder
	var want []string
	for i := range 400 {
		b := fmt.Sprint("b", i)
		switch i % 4 {
		case 0: // lost
			box.WriteString(sep + part(b, "x", false) + "\n")
			want = append(want, errCutOff.Error())
		case 1: // a mail within a part
			inside := part(b, sep+simple("inside", "y\n"), true)
			box.WriteString(sep + inside + "\n")
			want = append(want, inside)
		case 2: // the end of another's, as far away as the reader looks
			box.WriteString(sep + simple("plain", "--b"+fmt.Sprint(i+2)+"--x\n"+strings.Repeat("-- \n", i*20)) + "\n")
			want = append(want, simple("plain", "--b"+fmt.Sprint(i+2)+"--x\n"+strings.Repeat("-- \n", i*20)))
		case 3:
			inside := part(b, strings.Repeat("z\n", i)+sep+"--"+b+"-1--\n--\n", true)
			box.WriteString(sep + inside + "\n")
			want = append(want, inside)
		}
	}
	for name, in := range map[string]io.Reader{"at once": strings.NewReader(box.String()), "in pieces": iotest.OneByteReader(strings.NewReader(box.String()))} {
		r := NewReader(in, "in")
		var got []string
		for {
			m, p, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if p != nil {
				got = append(got, p.Error)
			} else {
				got = append(got, string(m.Raw))
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// BenchmarkLostEnds reads many mails whose multiparts do not end.
func BenchmarkLostEnds(b *testing.B) {
	var box strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&box, "%sContent-Type: multipart/mixed; boundary=b%d\n\n--b%d\n\n%s\n", sep, i, i, strings.Repeat("hello there text\n", 20))
	}
	b.SetBytes(int64(box.Len()))
	for b.Loop() {
		r := NewReader(strings.NewReader(box.String()), "in")
		n := 0
		for {
			_, _, err := r.Next()
			if err == io.EOF {
				break
			}
			n++
		}
		if n != 20_000 {
			b.Fatalf("%d mails", n)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, s := range []string{
		sep + simple("x", "y\n") + "\n" + fpSep + simple("z", ">From y\n"),
		"From mboxrd@z Thu Jan  1 00:00:00 1970\n" + simple("x", ">From here\n"),
		sep + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" + sep + "--b--\n\n" + sep + simple("z", ""),
		sep + "A: b\nContent-Length: 4\n\nabcd\n" + sep, "# HG changeset patch\nx\n# HG changeset patch\ny\n",
		"\xef\xbb\xbf\n \nFrom: a\n\n",
		sep + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" + sep + "Content-Type: multipart/mixed; boundary=c\n\n--c\n\n" + sep + "\n--c--\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in), "fuzz")
		var messages []*Message
		for range len(in) + 2 {
			m, p, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if (m == nil) == (p == nil) {
				t.Fatal("neither or both of message and problem")
			}
			if m != nil {
				messages = append(messages, m)
			}
		}
		if _, _, err := r.Next(); err != io.EOF {
			t.Fatalf("no end: %v", err)
		}
		var box, again bytes.Buffer
		if err := Write(&box, messages...); err != nil {
			t.Fatal(err)
		}
		r = NewReader(bytes.NewReader(box.Bytes()), "again")
		var back []*Message
		for {
			m, p, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil || p != nil {
				t.Fatalf("a mail of ours cannot be read: %v %v", p, err)
			}
			back = append(back, m)
		}
		if err := Write(&again, back...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(box.Bytes(), again.Bytes()) {
			t.Errorf("written %q, read and written %q", box.Bytes(), again.Bytes())
		}
	})
}
