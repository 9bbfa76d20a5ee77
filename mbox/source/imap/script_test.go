package imap

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	goimap "github.com/emersion/go-imap/v2"

	"patchbench/mbox/source/feed"
)

// script is a server that does as little as works, and what a test wants instead.
// Its mail with UID n is number n of the test.
type script struct {
	greeting, caps string
	validity       int
	next           int // UIDNEXT
	mails          []int
	// answer may answer a command (without its tag) in place of the script; conn
	// counts the connections from 1. What it gives is sent, <tag> standing for
	// the command's tag; "" leaves the command to the script and HANGUP closes.
	answer func(conn int, command string) string

	mu    sync.Mutex
	conns int
	log   []string // commands, without tags
}

const hangup = "HANGUP"

// dial connects to the script over a pipe.
func (s *script) dial(context.Context, string) (net.Conn, error) {
	client, server := net.Pipe()
	s.mu.Lock()
	s.conns++
	n := s.conns
	s.mu.Unlock()
	go s.serve(n, server)
	return client, nil
}

func (s *script) commands(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.log {
		if strings.HasPrefix(c, name) {
			n++
		}
	}
	return n
}

func (s *script) serve(n int, c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	send := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(c, format, args...)
		return err == nil
	}
	if !send("%s\r\n", cmp.Or(s.greeting, "* OK ready")) {
		return
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		tag, command, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return
		}
		s.mu.Lock()
		s.log = append(s.log, command)
		s.mu.Unlock()
		if s.answer != nil {
			if a := s.answer(n, command); a != "" {
				text, end := strings.CutSuffix(strings.ReplaceAll(a, "<tag>", tag), hangup)
				if _, err := io.WriteString(c, text); err != nil || end {
					return
				}
				continue
			}
		}
		word := strings.Fields(command)[0]
		switch {
		case word == "CAPABILITY":
			send("* CAPABILITY %s\r\n", cmp.Or(s.caps, "IMAP4rev1 IDLE"))
		case word == "EXAMINE":
			send("* %d EXISTS\r\n* OK [UIDVALIDITY %d] x\r\n* OK [UIDNEXT %d] x\r\n", len(s.mails), s.validity, s.next)
		case strings.HasPrefix(command, "UID SEARCH"):
			send("* SEARCH%s\r\n", s.search(command))
		case strings.HasPrefix(command, "UID FETCH"):
			for _, uid := range s.asked(command) {
				if !send("%s", fetched(uid, strings.Contains(command, "BODY.PEEK"), testMail(uid))) {
					return
				}
			}
		case word == "FETCH":
			for i, uid := range s.mails {
				send("* %d FETCH (UID %d INTERNALDATE %s)\r\n", i+1, uid, internalDate(uid))
			}
		case word == "IDLE":
			send("+ go on\r\n")
			if _, err := r.ReadString('\n'); err != nil {
				return
			}
		}
		if !send("%s OK done\r\n", tag) {
			return
		}
	}
}

func internalDate(n int) string {
	return day0.Add(time.Duration(n) * time.Minute).Format(`"02-Jan-2006 15:04:05 -0700"`)
}

// fetched is one mail in the answer to FETCH.
func fetched(uid int, body bool, text string) string {
	s := fmt.Sprintf("* 1 FETCH (UID %d INTERNALDATE %s RFC822.SIZE %d", uid, internalDate(uid), len(text))
	if body {
		s += fmt.Sprintf(" BODY[] {%d}\r\n%s", len(text), text)
	}
	return s + ")\r\n"
}

var numberRange = regexp.MustCompile(`(\d+)(?::(\d+|\*))?`)

// asked lists the mails of the set in a UID FETCH.
func (s *script) asked(command string) []int {
	var list []int
	for _, part := range strings.Split(strings.Fields(command)[2], ",") {
		m := numberRange.FindStringSubmatch(part)
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		for _, uid := range s.mails {
			if uid >= from && uid <= to {
				list = append(list, uid)
			}
		}
	}
	return list
}

// search answers a search for a set of UIDs; n:* holds the last mail always.
func (s *script) search(command string) string {
	out := ""
	_, set, _ := strings.Cut(strings.Replace(command, "SEARCH ALL", "SEARCH UID 1:*", 1), "UID SEARCH UID ")
	for _, m := range numberRange.FindAllStringSubmatch(set, -1) {
		from, _ := strconv.Atoi(m[1])
		to := from
		switch m[2] {
		case "":
		case "*":
			to = 1 << 30
			if n := len(s.mails); n > 0 {
				from = min(from, s.mails[n-1])
			}
		default:
			to, _ = strconv.Atoi(m[2])
		}
		for _, uid := range s.mails {
			if uid >= from && uid <= to {
				out += " " + strconv.Itoa(uid)
			}
		}
	}
	return out
}

// matches says that a command begins and goes on as the pattern says: BEGINNING or
// BEGINNING...PART. The client asks for its items in any order.
func matches(command, pattern string) bool {
	beginning, part, _ := strings.Cut(pattern, "...")
	return strings.HasPrefix(command, beginning) && strings.Contains(command, part)
}

// once answers a command that matches the first n times.
func once(n int, pattern, answer string) func(int, string) string {
	return func(_ int, c string) string {
		if matches(c, pattern) && n > 0 {
			n--
			return answer
		}
		return ""
	}
}

// TestScripts follows scripted servers for ten minutes, from UID 10 on.
func TestScripts(t *testing.T) {
	const never = 1 << 20
	first := cursor{Validity: 7, Next: 10}.String()
	base := func() *script { return &script{validity: 7, next: 13, mails: []int{9, 10, 11, 12}} }
	all := []int{10, 11, 12}
	poison := func(line string) func(int, string) string {
		return func(_ int, c string) string {
			if strings.HasPrefix(c, "UID FETCH") && strings.Contains(c, "BODY.PEEK") && regexp.MustCompile(`^UID FETCH (10|11|10:1[12]|11:12) `).MatchString(c) {
				if strings.HasPrefix(c, "UID FETCH 10") && !strings.HasPrefix(c, "UID FETCH 10 ") {
					return fetched(10, true, testMail(10)) + fetched(12, true, testMail(12)) + line
				}
				if strings.HasPrefix(c, "UID FETCH 10 ") {
					return ""
				}
				if strings.HasPrefix(c, "UID FETCH 11:12") {
					return fetched(12, true, testMail(12)) + line
				}
				return line
			}
			return ""
		}
	}
	for _, c := range []struct {
		name   string
		change func(s *script, o *Options)
		want   []int
		event  string // part of one
		conns  int    // 0: any
		never  string // command that must not be sent
	}{
		{name: "works", want: all, conns: 1, never: "STORE"},
		{name: "known without asking", change: func(s *script, o *Options) { s.greeting = "* PREAUTH hello" }, want: all, conns: 1, never: "LOGIN"},
		{name: "known without asking, no TLS yet", change: func(s *script, o *Options) { s.greeting, o.TLS = "* PREAUTH hello", "starttls" }, event: "STARTTLS", never: "EXAMINE"},
		{name: "says goodbye", change: func(s *script, o *Options) { s.greeting = "* BYE too many" }, event: "too many", never: "LOGIN"},
		{name: "repeats the password", change: func(s *script, o *Options) {
			s.answer = once(never, "LOGIN", "<tag> BAD what is LOGIN "+testUser+" "+testPassword+"?\r\n")
		}, event: "what is LOGIN " + testUser + " (secret)?", never: "EXAMINE"},
		{name: "says nonsense", change: func(s *script, o *Options) { s.greeting = "220 mail ESMTP" }, event: "greeting", never: "LOGIN"},
		{name: "no password in plain text", change: func(s *script, o *Options) { s.caps = "IMAP4rev1 LOGINDISABLED" }, event: "use tls or starttls", never: "LOGIN"},
		{name: "no UIDVALIDITY", change: func(s *script, o *Options) { s.validity = 0 }, event: "no UIDVALIDITY"},
		{name: "no UIDNEXT", change: func(s *script, o *Options) {
			s.answer = once(never, "EXAMINE", "* 4 EXISTS\r\n* OK [UIDVALIDITY 7] x\r\n<tag> OK x\r\n")
		}, want: all, conns: 1},
		{name: "no IDLE", change: func(s *script, o *Options) { s.caps = "IMAP4rev1" }, want: all, conns: 1, never: "IDLE"},
		{name: "IDLE refused", change: func(s *script, o *Options) { s.answer = once(never, "IDLE", "<tag> NO not today\r\n") }, want: all, conns: 1},
		{name: "says nothing of what came before IDLE", change: func(s *script, o *Options) {
			s.answer = func(_ int, c string) string {
				if c == "IDLE" && len(s.mails) == 4 {
					s.mails, s.next = append(s.mails, 13), 14
				}
				return ""
			}
		}, want: []int{10, 11, 12, 13}, conns: 1},
		{name: "the last one again", change: func(s *script, o *Options) { s.mails, s.next = []int{8, 9}, 10 }, conns: 1, never: "UID FETCH"},
		{name: "cut in a literal", change: func(s *script, o *Options) {
			s.answer = once(2, "UID FETCH 10:12 ...BODY", fetched(10, true, testMail(10))+"* 2 FETCH (UID 11 INTERNALDATE "+internalDate(11)+" RFC822.SIZE 99 BODY[] {99}\r\nMessage-ID: <11@"+hangup)
		}, want: all, event: "in a mail of 99 bytes"},
		{name: "flags of another program come between", change: func(s *script, o *Options) {
			s.answer = once(1, "UID FETCH 10:12 ...BODY", `* 2 FETCH (UID 11 FLAGS (\Seen))`+"\r\n"+
				fetched(10, true, testMail(10))+fetched(11, true, testMail(11))+fetched(12, true, testMail(12))+"<tag> OK x\r\n")
		}, want: all, conns: 1},
		{name: "gone meanwhile, with NO", change: func(s *script, o *Options) {
			s.mails = []int{9, 10, 12}
			s.answer = func(_ int, c string) string {
				if strings.HasPrefix(c, "UID SEARCH UID 10:*") {
					return "* SEARCH 10 11 12\r\n<tag> OK x\r\n"
				}
				if strings.HasPrefix(c, "UID FETCH 10:12") && strings.Contains(c, "BODY") {
					return fetched(10, true, testMail(10)) + fetched(12, true, testMail(12)) + "<tag> NO [EXPUNGEISSUED] some are gone\r\n"
				}
				return ""
			}
		}, want: []int{10, 12}, conns: 1},
		{name: "one is refused", change: func(s *script, o *Options) { s.answer = poison("<tag> NO [SERVERBUG] broken file\r\n") }, want: []int{10, 12}, event: "mail UID 11 is set aside"},
		{name: "one is NIL", change: func(s *script, o *Options) {
			s.answer = poison("* 2 FETCH (UID 11 INTERNALDATE " + internalDate(11) + " RFC822.SIZE 5 BODY[] NIL)\r\n<tag> OK x\r\n")
		}, want: []int{10, 12}, event: "mail UID 11 is set aside"},
		{name: "all are refused", change: func(s *script, o *Options) {
			s.answer = func(_ int, c string) string {
				if strings.HasPrefix(c, "UID FETCH") && strings.Contains(c, "BODY") {
					return "<tag> NO disk trouble\r\n"
				}
				return ""
			}
		}, event: "does not give mail UID 10"},
		{name: "large", change: func(s *script, o *Options) {
			s.answer = func(_ int, c string) string {
				if strings.HasPrefix(c, "UID FETCH 10:12") {
					return fetched(10, false, testMail(10)) + "* 2 FETCH (UID 11 INTERNALDATE " + internalDate(11) + " RFC822.SIZE 99999999999)\r\n" + fetched(12, false, testMail(12)) + "<tag> OK x\r\n"
				}
				if matches(c, "UID FETCH 11 ...BODY.PEEK[]<0.65536>)") {
					return "* 2 FETCH (UID 11 INTERNALDATE " + internalDate(11) + " RFC822.SIZE 99999999999 BODY[]<0> {65536}\r\n" + pad(testMail(11), feed.CutAt) + ")\r\n<tag> OK x\r\n"
				}
				return ""
			}
		}, want: all, event: "mail UID 11 has 99999999999 bytes: its first 65536 are read", conns: 1},
		{name: "larger than it said", change: func(s *script, o *Options) {
			large := "* 2 FETCH (UID 11 INTERNALDATE " + internalDate(11) + " RFC822.SIZE 40 BODY[] {999999999999999}\r\n" + pad(testMail(11), 3*feed.CutAt)
			s.answer = func(_ int, c string) string {
				switch {
				case matches(c, "UID FETCH 10:12 ...BODY"):
					return fetched(10, true, testMail(10)) + large
				case matches(c, "UID FETCH 11:12 ...BODY"):
					return large
				}
				return ""
			}
		}, want: all, event: "mail UID 11 has 999999999999999 bytes", conns: 3},
		{name: "endless line", change: func(s *script, o *Options) {
			s.answer = once(1, "EXAMINE", "* OK "+strings.Repeat("x", 2*smallAnswer))
		}, want: all, event: errTooMuch.Error(), conns: 2},
		{name: "endless line in idle", change: func(s *script, o *Options) {
			s.answer = once(1, "IDLE", "+ go on\r\n* OK "+strings.Repeat("x", 2*smallAnswer))
		}, want: all, event: "connection lost", conns: 2},
		{name: "claims all UIDs", change: func(s *script, o *Options) {
			s.answer = once(1, "UID SEARCH UID 10:*", "* ESEARCH (TAG \"<tag>\") UID ALL 10:4294967295\r\n<tag> OK x\r\n"+hangup)
		}, want: all},
		{name: "answers with other numbers", change: func(s *script, o *Options) {
			s.answer = once(1, "UID SEARCH UID 10:*", "* ESEARCH (TAG \"<tag>\") ALL 1:4\r\n<tag> OK x\r\n")
		}, want: all, event: "other numbers", conns: 2},
		{name: "search refused", change: func(s *script, o *Options) {
			s.answer = once(1, "UID SEARCH UID 10:*", "<tag> BAD "+strings.Repeat("what? ", 1000)+"\r\n")
		}, want: all, event: "(cut)", conns: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := base()
				o := Options{Address: "mail.example.org:143", TLS: "none", User: testUser, Password: testPassword, Folder: testFolder, Dial: s.dial}
				if c.change != nil {
					c.change(s, &o)
				}
				k := newTaker(t)
				k.cursor = first
				stop := k.start(newSource(t, o))
				time.Sleep(10 * time.Minute)
				stop()
				k.mu.Lock()
				got := slices.Clone(k.numbers)
				k.mu.Unlock()
				if !slices.Equal(got, c.want) {
					t.Errorf("mails given %v, want %v; events %q", got, c.want, k.events)
				}
				if c.event != "" && !k.told(c.event)() {
					t.Errorf("events %.2000q, want one with %q", k.events, c.event)
				}
				if c.event == "" && c.conns == 1 && len(k.events) > 0 {
					t.Errorf("events %q", k.events)
				}
				if c.conns != 0 && s.conns != c.conns {
					t.Errorf("%d connections, want %d; events %q", s.conns, c.conns, k.events)
				}
				if c.never != "" && s.commands(c.never) > 0 {
					t.Errorf("%s was sent", c.never)
				}
				if s.commands("SELECT")+s.commands("UID STORE")+s.commands("EXPUNGE") > 0 {
					t.Errorf("the folder was changed: %q", s.log)
				}
			})
		})
	}
}

func pad(text string, size int) string {
	return text + strings.Repeat("x", size-len(text))
}

// Mails of 7 MiB that the server had called small come one at a time; each
// connection is given up for the rest.
func TestLargerThanSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{validity: 7, next: 13, mails: []int{10, 11, 12}}
		s.answer = func(_ int, c string) string {
			if !strings.Contains(c, "BODY") {
				return ""
			}
			out := ""
			for _, uid := range s.asked(c) {
				out += fetched(uid, true, pad(testMail(uid), 7<<20))
			}
			return out + "<tag> OK x\r\n"
		}
		o := Options{Address: "mail.example.org:143", TLS: "none", User: testUser, Password: testPassword, Dial: s.dial}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var sizes []int
		err := newSource(t, o).Follow(ctx, cursor{Validity: 7, Next: 10}.String(), func(_ context.Context, b feed.Batch) error {
			for _, m := range b.Mails {
				sizes = append(sizes, len(m.Raw))
			}
			if len(b.Mails) > 1 {
				t.Errorf("a batch of %d mails of 7 MiB", len(b.Mails))
			}
			return nil
		}, nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Follow: %v", err)
		}
		if !slices.Equal(sizes, []int{7 << 20, 7 << 20, 7 << 20}) || s.conns != 3 {
			t.Errorf("mails of %v bytes over %d connections", sizes, s.conns)
		}
	})
}

// A server may claim four thousand million mails.
func TestFirst(t *testing.T) {
	const last = 1<<32 - 1
	for _, c := range []struct {
		set  goimap.UIDSet
		from goimap.UID
		want []goimap.UID
	}{
		{goimap.UIDSet{{Start: 10, Stop: last}}, 11, []goimap.UID{11, 12, 13}},
		{goimap.UIDSet{{Start: last - 1, Stop: last}}, 1, []goimap.UID{last - 1, last}},
		{goimap.UIDSetNum(5, 7, 9), 6, []goimap.UID{7, 9}},
		{goimap.UIDSetNum(5), 6, nil},
		{nil, 1, nil},
	} {
		if got := first(c.set, c.from, 3); !slices.Equal(got, c.want) {
			t.Errorf("first 3 of %v from %d: %v, want %v", c.set, c.from, got, c.want)
		}
	}
}
