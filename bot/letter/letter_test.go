package letter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bench"
	"patchbench/bot/report/cases"
	"patchbench/bot/report/plain"
	"patchbench/mbox"
	"patchbench/store"
)

var bot = mbox.Address{Name: "Patchbench", Email: "bench@example.org"}

func options() Options {
	return Options{From: bot, Secret: []byte("a secret for tests"), AutoSubmitted: true, URL: "https://bench.example.org/e/20261130-3f9a2c",
		Key: "mail:20261129.kit@example.org", Now: time.Date(2026, 11, 30, 10, 11, 12, 0, time.UTC)}
}

func payload(e *store.Evaluation) store.MailPayload {
	return store.MailPayload{Mode: "list", Thread: store.Thread{
		MessageID: "20261129.kit@example.org", Subject: "[PATCH 0/5] kit: cleaner hash, faster table",
		References: []string{"20261120.kit@example.org"}, Author: mbox.Address{Name: "Some Author", Email: "one@example.org"},
		List: "kit@lists.example.org", Date: time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC),
	}}
}

// evaluations are those whose letters are kept as goldens.
var evaluations = map[string]func() *store.Evaluation{
	"worse":           func() *store.Evaluation { return cases.All["regression-of-13"]().Evaluation },
	"nothing":         func() *store.Evaluation { return cases.All["nothing-found"]().Evaluation },
	"unclear":         func() *store.Evaluation { return cases.All["unclear"]().Evaluation },
	"does-not-apply":  func() *store.Evaluation { return cases.All["conflict"]().Evaluation },
	"nothing-applies": nothingApplies,
	"nothing-builds":  nothingBuilds,
	"budget": func() *store.Evaluation {
		e := cases.All["regression-of-13"]().Evaluation
		e.Stopped = store.StoppedBudget
		return e
	},
	"does-not-build": func() *store.Evaluation { return cases.All["build-failure"]().Evaluation },
	"incomplete":     incomplete,
	"not-ascii":      notASCII,
	"second-version": second,
}

func incomplete() *store.Evaluation {
	b := cases.New("", bench.Same, "hash: say what the seed is for", "hash: mix in the length")
	b.Row("hash", "cpu", "s", 0.412, 0.004, map[int]float64{2: 0.05})
	s := b.Series
	s.Total, s.Received, s.Complete, s.Missing = 4, 2, false, []int{3, 4}
	return b.Judged().Evaluation
}

func nothingApplies() *store.Evaluation {
	b := cases.New("failed: 1/2 does not apply", bench.FailedSeries, "hash: mix in the length", "table: keep a spare half")
	b.Row("hash", "cpu", "s", 0.412, 0.004, nil)
	c := &b.Results[0]
	c.Values, c.Steps, c.Rounds, c.Detectable = []bench.Value{{}}, nil, 0, nil
	c.Total = bench.Step{Verdict: bench.NotMeasured, Reason: "not built"}
	b.Versions = b.Versions[:1]
	b.Versions[0].State = bench.NotBuilt
	b.Base.How, b.Base.Reason = mbox.HowBranch, "the tip of master; the base 123456789012 that the series names is not in the repository"
	b.Conflict = &mbox.Conflict{N: 1, Subject: "hash: mix in the length", Files: []mbox.ConflictFile{{Path: "hash.c", Hunk: 1, Line: 12, Reason: "context differs at line 12"}}}
	b.NotTried, b.Rounds, b.BuildSeconds, b.MeasureSeconds = []int{2}, 0, 0, 0
	return b.Evaluation
}

func nothingBuilds() *store.Evaluation {
	b := cases.New("", "", "hash: mix in the length", "table: keep a spare half")
	b.Row("hash", "cpu", "s", 0.412, 0.004, nil)
	for n := 1; n <= 2; n++ {
		b.Unbuilt(n, "hash.c:12: error: expected ';'\nmake: *** [hash.o] Error 1\n")
	}
	c := &b.Results[0]
	c.Values[0], c.Rounds, c.Detectable = bench.Value{}, 0, nil
	c.Total = bench.Step{N: 2, Verdict: bench.NotMeasured, Reason: "does not build"}
	b.Rounds, b.MeasureSeconds = 0, 0
	return b.Judged().Evaluation
}

func notASCII() *store.Evaluation {
	b := cases.New("", bench.Same, "hash: Länge einmischen")
	b.Series.Author.Name = "Zoë Łukasz"
	b.Row("表", "cpu", "s", 0.412, 0.004, nil)
	return b.Judged().Evaluation
}

func second() *store.Evaluation {
	b := cases.New("", bench.Same, "hash: mix in the length", "table: keep a spare half")
	b.Series.Version = 2
	b.Row("hash", "cpu", "s", 0.412, 0.004, nil)
	b.Row("table", "rss", "B", 64<<20, 0.001, map[int]float64{2: 0.18})
	b.Row("sort", "cpu", "s", 0.2, 0.004, map[int]float64{1: 0.07})
	return b.Judged().Evaluation
}

func first() *store.Evaluation {
	b := cases.New("", bench.Same, "hash: mix in the length", "table: keep a spare half")
	b.ID, b.Host.Name = "20261120-aaaaaa", "bench2"
	b.Row("hash", "cpu", "s", 0.412, 0.004, map[int]float64{1: 0.05})
	b.Row("table", "rss", "B", 64<<20, 0.001, map[int]float64{2: 0.19})
	b.Row("sort", "cpu", "s", 0.2, 0.004, nil)
	return b.Judged().Evaluation
}

func TestCompose(t *testing.T) {
	for name, build := range evaluations {
		t.Run(name, func(t *testing.T) {
			e := build()
			var before *store.Evaluation
			if e.Series.Version > 1 {
				before = first()
			}
			p, o := payload(e), options()
			p.Thread.Author = e.Series.Author
			l, err := Compose(e, before, p, o)
			if err != nil {
				t.Fatal(err)
			}
			cases.Golden(t, name+".eml", string(l.Body))
			to := []string{p.Thread.Author.Email, p.Thread.List}
			if e.Conflict != nil {
				to = to[:1]
			}
			check(t, l, to)
			again, err := Compose(build(), before, p, o)
			if err != nil || !bytes.Equal(again.Body, l.Body) {
				t.Errorf("composed again it differs, %v", err)
			}
		})
	}
}

// fields are those that a letter may have, in their order.
var fields = []string{"From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted", "X-Patchbench",
	"MIME-Version", "Content-Type", "Content-Transfer-Encoding"}

// check holds for every letter: the wanted fields and recipients and no other, in
// a form that every server passes on.
func check(t *testing.T, l *store.Letter, to []string) *mail.Message {
	t.Helper()
	head, text, ok := bytes.Cut(l.Body, []byte("\r\n\r\n"))
	if !ok || bytes.Count(l.Body, []byte("\n")) != bytes.Count(l.Body, []byte("\r\n")) || bytes.Count(l.Body, []byte("\r")) != bytes.Count(l.Body, []byte("\r\n")) {
		t.Fatalf("lines do not all end in CRLF:\n%q", l.Body)
	}
	var names []string
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if len(line) > 998 || strings.TrimSpace(line) == "" {
			t.Errorf("header line of %d bytes: %q", len(line), line)
		}
		if line[0] != ' ' {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, name)
		}
		if strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("header line with other than ASCII: %q", line)
		}
	}
	want := slices.Clone(fields)
	if len(to) == 1 {
		want = slices.DeleteFunc(want, func(s string) bool { return s == "Cc" })
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Fatalf("fields, -want +got:\n%s", d)
	}
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > 78 || strings.HasPrefix(line, "From ") || strings.IndexFunc(line, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("body line of %d bytes that servers may change: %q", len(line), line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(l.Body))
	if err != nil {
		t.Fatal(err)
	}
	var got, envelope []string
	for _, name := range []string{"To", "Cc"} {
		if m.Header.Get(name) == "" {
			continue
		}
		list, err := m.Header.AddressList(name)
		if err != nil {
			t.Fatalf("%s: %v: %q", name, err, m.Header.Get(name))
		}
		for _, a := range list {
			got = append(got, a.Address)
		}
	}
	for _, r := range l.To {
		envelope = append(envelope, r.Address)
	}
	if d := cmp.Diff(to, got); d != "" {
		t.Errorf("recipients in the header, -want +got:\n%s", d)
	}
	if d := cmp.Diff(to, envelope); d != "" {
		t.Errorf("recipients of the envelope, -want +got:\n%s", d)
	}
	own, err := mbox.ParseMessage(l.Body, "")
	if err != nil {
		t.Fatal(err)
	}
	if own.ID != l.MessageID || own.From != bot || !Ours(own, options().Secret, "other@example.org") || Ours(own, []byte("another"), "other@example.org") {
		t.Errorf("read again: id %s, from %s", own.ID, own.From)
	}
	if len(own.Parts) != 1 {
		t.Fatalf("%d parts", len(own.Parts))
	}
	lines := strings.Split(strings.TrimSuffix(own.Text(), "\n"), "\n")
	if len(lines) > mostLines {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if plain.Columns(line) > 78 || plain.Clean(line) != line {
			t.Errorf("line of %d columns: %q", plain.Columns(line), line)
		}
	}
	return m
}

func TestWhetherAndToWhom(t *testing.T) {
	same := func() *store.Evaluation { return cases.All["nothing-found"]().Evaluation }
	worse := func() *store.Evaluation { return cases.All["one-improvement"]().Evaluation }
	cancelled := func() *store.Evaluation { return cases.All["cancelled"]().Evaluation }
	for name, c := range map[string]struct {
		e, before *store.Evaluation
		change    func(*store.MailPayload, *Options)
		to        string // joined by blanks
		state     store.LetterState
		refused   string
	}{
		"list":                     {e: same(), to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"author only":              {e: worse(), change: func(p *store.MailPayload, o *Options) { p.Mode = "author-only" }, to: "one@example.org", state: store.LetterQueued},
		"dry run":                  {e: worse(), change: func(p *store.MailPayload, o *Options) { p.Mode = "dry-run" }, to: "one@example.org kit@lists.example.org", state: store.LetterHeld},
		"quiet and neutral":        {e: same(), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }},
		"quiet, but better":        {e: worse(), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }, to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"quiet, but a patch has":   {e: cancelled(), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }, to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"quiet, but v1 was worse":  {e: same(), before: first(), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }, to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"quiet, does not build":    {e: evaluations["does-not-build"](), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }, to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"quiet, incomplete":        {e: incomplete(), change: func(p *store.MailPayload, o *Options) { p.Quiet = true }, to: "one@example.org kit@lists.example.org", state: store.LetterQueued},
		"without a list":           {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.List = "" }, to: "one@example.org", state: store.LetterQueued},
		"the author is the list":   {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "Kit@Lists.example.org" }, to: "Kit@Lists.example.org", state: store.LetterQueued},
		"the list is the bot":      {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.List = "bench@example.org" }, to: "one@example.org", state: store.LetterQueued},
		"the author is the bot":    {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "Bench@example.org" }, refused: "bot's own"},
		"no Message-ID":            {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.MessageID = "" }, refused: "no valid Message-ID"},
		"a Message-ID in two":      {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.MessageID = "a@b> <c@d" }, refused: "no valid Message-ID"},
		"no author":                {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author = mbox.Address{} }, refused: "name@domain"},
		"a quoted author":          {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = `"a b"@example.org` }, refused: "name@domain"},
		"an author with a line":    {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "a@b.c>\r\nBcc: <e@x" }, refused: "name@domain"},
		"an author of two":         {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "a@b.c,e@x" }, refused: "name@domain"},
		"an author on an address":  {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "root@[127.0.0.1]" }, refused: "name@domain"},
		"an author with a percent": {e: same(), change: func(p *store.MailPayload, o *Options) { p.Thread.Author.Email = "e%x@b.c" }, to: "e%x@b.c kit@lists.example.org", state: store.LetterQueued},
		"without a sandbox": {e: func() *store.Evaluation { e := same(); e.Unsafe = true; return e }(), change: func(p *store.MailPayload, o *Options) {},
			refused: "without a sandbox"},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := payload(c.e), options()
			if c.change != nil {
				c.change(&p, &o)
			}
			l, err := Compose(c.e, c.before, p, o)
			if c.refused != "" {
				if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused) || l != nil {
					t.Fatalf("letter %v, error %v, want %q", l, err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.to == "" {
				if l != nil {
					t.Fatalf("a letter: %s", l.Body)
				}
				return
			}
			check(t, l, strings.Fields(c.to))
			if l.State != c.state || (l.State == store.LetterHeld) != (l.Reason != "") {
				t.Errorf("state %s, reason %q", l.State, l.Reason)
			}
		})
	}
}

// TestBadMail composes answers to hostile mails as they are read.
func TestBadMail(t *testing.T) {
	many := strings.Builder{}
	for i := range 5000 {
		fmt.Fprintf(&many, "<id.%d@example.org>\r\n ", i)
	}
	for name, c := range map[string]struct {
		head    string
		to      string
		refused bool
		subject string
		refs    int
	}{
		"M01 a line end in an encoded word": {"From: A Uthor <a@b.example>\r\nSubject: =?utf-8?q?[PATCH]_x=0D=0ABcc:_evil=40x?=", "a@b.example", false, "Re: [PATCH] x Bcc: evil@x", 1},
		"M03 an address in a display name":  {"From: \"x\\\" <evil@x>, \\\"y\" <a@b>\r\nSubject: [PATCH] x", "a@b", false, "Re: [PATCH] x", 1},
		"M04 a quoted address":              {"From: \"a@b.c>\\\r\\\nBcc: <e\"@x\r\nSubject: [PATCH] x", "", true, "", 0},
		"M09 Reply-To elsewhere":            {"From: Real Name <a@b.example>\r\nReply-To: victim@y.example\r\nSubject: [PATCH] x", "a@b.example", false, "Re: [PATCH] x", 1},
		"M34 References of 5000 ids":        {"From: Real Name <a@b.example>\r\nSubject: Re: [PATCH] x\r\nReferences: " + many.String(), "a@b.example", false, "Re: [PATCH] x", 21},
	} {
		t.Run(name, func(t *testing.T) {
			head := strings.TrimRight(c.head, "\r\n ")
			m, err := mbox.ParseMessage([]byte(head+"\r\nMessage-ID: <one@b.example>\r\n\r\ntext\r\n"), "")
			if err != nil && strings.HasPrefix(name, "M34") {
				// The reader refuses a header of more than 64 KiB; the rule is kept all the same.
				m = &mbox.Message{ID: "one@b.example", From: mbox.Address{Name: "Real Name", Email: "a@b.example"}, Subject: "Re: [PATCH] x"}
				for i := range 5000 {
					m.References = append(m.References, fmt.Sprintf("id.%d@example.org", i))
				}
			} else if err != nil {
				t.Fatal(err)
			}
			e := cases.All["nothing-found"]().Evaluation
			p := payload(e)
			p.Thread.MessageID, p.Thread.Subject, p.Thread.References, p.Thread.Author = m.ID, m.Subject, m.References, m.From
			if a, err := mail.ParseAddress(m.Header("From")); err == nil {
				p.Thread.Author = mbox.Address{Name: a.Name, Email: a.Address}
			} else if h := m.Header("From"); h != "" {
				p.Thread.Author = mbox.Address{Email: h}
			}
			l, err := Compose(e, nil, p, options())
			if c.refused {
				if !errors.Is(err, ErrRefused) {
					t.Fatalf("a letter, error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := check(t, l, []string{c.to, p.Thread.List})
			if s := got.Header.Get("Subject"); s != c.subject {
				t.Errorf("subject %q, want %q", s, c.subject)
			}
			refs := strings.Fields(got.Header.Get("References"))
			if len(refs) != c.refs || refs[len(refs)-1] != "<one@b.example>" {
				t.Errorf("%d references: %v", len(refs), refs)
			}
			if c.refs > 1 && (refs[0] != "<id.0@example.org>" || refs[1] != "<id.4981@example.org>") {
				t.Errorf("references %v", refs)
			}
		})
	}
}

func TestSubject(t *testing.T) {
	dec := func(s string) string { return mbox.DecodeHeader([]byte(s)) }
	for _, c := range []struct{ name, in, want string }{
		{"plain", "[PATCH] x", "Re: [PATCH] x"},
		{"an answer's", "RE: re: [PATCH] x", "Re: [PATCH] x"},
		{"letters", "[PATCH] Größe", "Re: [PATCH] Größe"},
		{"words that look encoded", "[PATCH] =?utf-8?q?=0D=0ABcc:?= x", "Re: [PATCH] =?utf-8?q?=0D=0ABcc:?= x"},
		{"controls", "[PATCH]\x00\t\x1b[2J x", `Re: [PATCH]\x00 \x1b[2J x`},
		{"none", " \r\n", "Re: (no subject)"},
		{"long", strings.Repeat("ä", 500), "Re: " + strings.Repeat("ä", 199) + ".."},
		{"one long word", strings.Repeat("x", 900), "Re: " + strings.Repeat("x", 398) + ".."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := dec(encoded(subject(c.in))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestOurs(t *testing.T) {
	secret := []byte("a secret for tests")
	e := cases.All["nothing-found"]().Evaluation
	l, err := Compose(e, nil, payload(e), options())
	if err != nil {
		t.Fatal(err)
	}
	read := func(b string) *mbox.Message {
		m, err := mbox.ParseMessage([]byte(b), "")
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	mark := read(string(l.Body)).Header(markField)
	for name, c := range map[string]struct {
		m    string
		want bool
	}{
		"as sent":               {string(l.Body), true},
		"munged by the list":    {"From: Patchbench via kit <kit@lists.example.org>\r\n" + string(l.Body[bytes.IndexByte(l.Body, '\n')+1:]), true},
		"by sender alone":       {"From: BENCH@example.org\r\nMessage-ID: <x@y>\r\n\r\n", true},
		"with a tag":            {"From: bench+bounces@example.org\r\nMessage-ID: <x@y>\r\n\r\n", true},
		"a name that begins so": {"From: benches@example.org\r\nMessage-ID: <x@y>\r\n\r\n", false},
		"a foreign mail":        {"From: a@b\r\nMessage-ID: <x@y>\r\n\r\n", false},
		"a mark without an id":  {"From: a@b\r\nX-Patchbench: " + mark + "\r\n\r\n", false},
		"a mark copied":         {"From: a@b\r\nMessage-ID: <x@y>\r\nX-Patchbench: " + mark + "\r\n\r\n", false},
		"an empty mark":         {"From: a@b\r\nMessage-ID: <x@y>\r\nX-Patchbench:\r\n\r\n", false},
		"a quotation of a mark": {"From: a@b\r\nMessage-ID: <x@y>\r\n\r\n> X-Patchbench: " + mark + "\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ours(read(c.m), secret, bot.String()); got != c.want {
				t.Errorf("got %v", got)
			}
			if Ours(read(c.m), nil, "") {
				t.Error("without a secret and an address it is ours")
			}
		})
	}
}

// A letter of any bot under the address is known, and what it answers; nothing else is.
func TestUnder(t *testing.T) {
	e := cases.All["nothing-found"]().Evaluation
	o := options()
	o.Secret = []byte("of another bot")
	l, err := Compose(e, nil, payload(e), o)
	if err != nil {
		t.Fatal(err)
	}
	sent := string(l.Body)
	const answers = "20261129.kit@example.org"
	with := func(old, new string) string {
		if !strings.Contains(sent, old) {
			t.Fatalf("no %q in the letter", old)
		}
		return strings.Replace(sent, old, new, 1)
	}
	from := "From: Patchbench <bench@example.org>\r\n"
	for name, c := range map[string]struct {
		m, want string
	}{
		"as sent":                  {sent, answers},
		"munged by the list":       {with(from, "From: Patchbench via kit <kit@lists.example.org>\r\nReply-To: Patchbench <bench@example.org>\r\n"), answers},
		"of another address":       {with(from, "From: Patchbench <other@example.org>\r\n"), ""},
		"without the mark":         {with("X-Patchbench: ", "X-Other: "), ""},
		"a mark of another form":   {with("X-Patchbench: ", "X-Patchbench: no"), ""},
		"an id of another form":    {with("<patchbench.", "<patchbench.z"), ""},
		"an id of another domain":  {with("Message-ID: <"+l.MessageID, "Message-ID: <"+l.MessageID+".test"), ""},
		"no answer":                {with("In-Reply-To: ", "X-Other: "), ""},
		"a mail of the bot's host": {"From: bench@example.org\r\nMessage-ID: <x@example.org>\r\nIn-Reply-To: <" + answers + ">\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := mbox.ParseMessage([]byte(c.m), "")
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := Under(m, bot.String()); got != c.want || ok != (c.want != "") {
				t.Errorf("answers %q, %v, want %q", got, ok, c.want)
			}
			if _, ok := Under(m, ""); ok {
				t.Error("without an address it is under it")
			}
		})
	}
}

func TestLongest(t *testing.T) {
	e := cases.All["largest"]().Evaluation
	e.Warnings, e.Unsafe = nil, false
	for i := range 400 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("a warning of the number %d that is long enough for more than a single line of text", i))
	}
	for _, url := range []string{"", "https://bench.example.org/e/1"} {
		o := options()
		o.URL = url
		l, err := Compose(e, e, payload(e), o)
		if err != nil {
			t.Fatal(err)
		}
		m := check(t, l, []string{"one@example.org", "kit@lists.example.org"})
		text, err := io.ReadAll(m.Body)
		if err != nil {
			t.Fatal(err)
		}
		if url != "" && !strings.Contains(string(text), "All figures: "+url) {
			t.Error("no link to the rest")
		}
	}
}

// FuzzCompose: whatever stands in a series, the letter has exactly the wanted
// fields and goes to nobody else.
func FuzzCompose(f *testing.F) {
	f.Add("[PATCH] x", "Some Author", "one@example.org", "a@b", "c@d", "hash")
	f.Add("x\r\nBcc: evil@x", "A\r\nBcc: evil@x", "a@b.c>\r\nBcc: <e@x", "a@b>\r\nX: y", "c d>\x00", "\r\n\r\nFrom me")
	f.Add("=?utf-8?q?=0D=0A?=", "=?utf-8?q?=0D=0A?=", "ä@b.c", "=?x@y", "\t", "\u202e")
	f.Add(strings.Repeat("a", 3000), strings.Repeat("長", 60), "x@y", strings.Repeat("i", 900)+"@x", "a@b", "From ")
	f.Add("", `a"b\c, d@e`, "a@b@c", "@", "x@", ".")
	f.Fuzz(func(t *testing.T, subject, name, email, id, ref, text string) {
		b := cases.New(text, bench.Same, text)
		b.Series.Subject, b.Series.Author.Name = subject, name
		b.Row(text, "cpu", "s", 0.4, 0.004, map[int]float64{1: 0.05})
		e := b.Evaluation
		p := payload(e)
		p.Thread.Subject, p.Thread.Author, p.Thread.MessageID, p.Thread.References = subject, mbox.Address{Name: name, Email: email}, id, []string{ref, ref + "x", "ok@example.org"}
		l, err := Compose(e, e, p, options())
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			if l != nil {
				t.Fatal("a letter and an error")
			}
			return
		}
		m := check(t, l, []string{email, p.Thread.List})
		if got := m.Header.Get("In-Reply-To"); got != "<"+id+">" {
			t.Errorf("In-Reply-To %q", got)
		}
	})
}
