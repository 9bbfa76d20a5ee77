package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"patchbench/bot/report/cases"
	"patchbench/bot/watch/command"
	"patchbench/config/service"
	"patchbench/mbox"
	"patchbench/store"
)

// letters are those in the outbox, the oldest first.
func (x *world) letters() []store.Letter {
	x.t.Helper()
	list, err := x.st.Letters(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	slices.Reverse(list)
	for i := range list {
		l, err := x.st.Letter(x.t.Context(), list[i].ID)
		if err != nil {
			x.t.Fatal(err)
		}
		list[i] = *l
	}
	return list
}

// TestTold: who may give commands is told of those that were not obeyed, once, and
// nobody else is.
func TestTold(t *testing.T) {
	const to, dry = "boss@trusted.test", store.LetterHeld
	by := func(from, body, header string) note {
		return note{id: "r", re: "a.1", from: from, subject: "Re: x", body: body, header: header}
	}
	boss := func(body string) note { return by(boss, body, "") }
	for _, c := range []struct {
		name   string
		mail   note
		mode   string // of the list; "" is a dry run
		change func(*world)
		want   []string // parts of the letter's text; nil: there is none
	}{
		{name: "a verb", mail: boss("bench: rnu probe\n"), want: []string{"  bench: rnu probe\r\n    there is no command \"rnu\"; did you mean \"run\"?\r\n"}},
		{name: "a verb like none", mail: boss("bench: dance\n"), want: []string{"valid here: run, stop, ignore"}},
		{name: "the mark", mail: boss("bnech: run\n"), want: []string{"  bnech: run\r\n    a command begins with \"bench:\"\r\n"}},
		{name: "the colon", mail: boss("bench run\n"), want: []string{"a command begins with"}},
		{name: "arguments", mail: boss("bench: run base\n"), want: []string{"no revision behind base"}},
		{name: "two of three", mail: boss("bench: hello\nbench: stop\nbench: run base a..b\n"), want: []string{`no command "hello"`, `base "a..b" is not`}},
		{name: "control characters", mail: boss("bench: r\x1b[31mun\n"), want: []string{`  bench: r\x1b[31mun`}},
		{name: "a list that is answered", mail: boss("bench: rnu\n"), mode: service.ToList, want: []string{"bench: rnu"}},
		{name: "a list whose authors are", mail: boss("bench: rnu\n"), mode: service.AuthorOnly, want: []string{"bench: rnu"}},
		{name: "what is right", mail: boss("bench: run probe\n")},
		{name: "of a stranger", mail: by("Two <two@far.test>", "bench: rnu\n", "")},
		{name: "of one who is trusted alone", mail: by("", "bench: rnu\n", "")},
		{name: "in the boss's name", mail: func() note { l := boss("bench: rnu\n"); l.forged = true; return l }()},
		{name: "of the boss's robot", mail: by("The Boss <boss@trusted.test>", "bench: rnu\n", "Auto-Submitted: auto-replied\n")},
		{name: "in a thread that is left alone", mail: boss("bench: ignore\nbench: rnu\n")},
		{name: "with no way out", mail: boss("bench: rnu\n"), change: func(x *world) { x.cfg.SMTP = nil }},
		{name: "about nothing", mail: func() note { l := boss("bench: rnu\n"); l.re = "nobody"; return l }()},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newWorld(t)
			state := dry
			if c.mode != "" {
				x.cfg.Lists[0].Mode, state = c.mode, store.LetterQueued
			}
			if c.change != nil {
				c.change(x)
			}
			x.get(stranger("a")...)
			x.step()
			x.now = x.now.Add(time.Hour)
			x.get(c.mail)
			x.step()
			// A second look, another copy and another process say nothing twice.
			c.mail.header += "X-Copy: 2\n"
			x.get(c.mail)
			x.step()
			x.restart()
			x.wait(25 * time.Hour)
			list := x.letters()
			if c.want == nil {
				if len(list) > 0 {
					t.Errorf("%d letters: %s", len(list), list[0].Body)
				}
				return
			}
			if len(list) != 1 {
				t.Fatalf("%d letters, want 1", len(list))
			}
			l := list[0]
			for _, part := range c.want {
				if !strings.Contains(string(l.Body), part) {
					t.Errorf("it lacks %q:\n%s", part, l.Body)
				}
			}
			if l.State != state || l.Channel != "dev@lists.test" || len(l.To) != 1 || l.To[0].Address != to || !strings.Contains(string(l.Body), "\r\nIn-Reply-To: <r@x.test>\r\n") {
				t.Errorf("%s %s to %v, of %s:\n%s", l.State, l.MessageID, l.To, l.Channel, l.Body)
			}
			for line := range strings.SplitSeq(string(l.Body), "\r\n") {
				if len(line) > 76 {
					t.Errorf("%d columns: %s", len(line), line)
				}
			}
			if c.name == "a verb" {
				cases.Golden(t, "told.eml", string(l.Body))
			}
		})
	}
}

// TestToldToRobots: a robot of somebody who may give commands, which sends back
// whatever it gets, is not answered for ever, and its mail says nothing.
func TestToldToRobots(t *testing.T) {
	x := newWorld(t)
	x.get(posted("a", "PATCH")...)
	x.step()
	x.get(reply("r", "a.1", "bench: hello\n"))
	x.step()
	first := x.letters()[0]
	m, err := mbox.ParseMessage(first.Body, "")
	if err != nil {
		t.Fatal(err)
	}
	if lines := command.Lines(m.Text()); len(lines) > 0 {
		t.Errorf("a letter commands: %v", lines)
	}
	x.getRaw(note{id: "back", from: boss, subject: m.Subject, body: "bench: hello\n" + m.Text(),
		header: fmt.Sprintf("In-Reply-To: <%s>\nReferences: <a.1@x.test> <r@x.test> <%s>\n", m.ID, m.ID)}.raw(x.now))
	x.step()
	if list := x.letters(); len(list) != 1 {
		t.Errorf("%d letters; the last one:\n%s", len(list), list[len(list)-1].Body)
	}
	x.check("no job", "mail a.0 v1 queued: "+trustedDKIM)
}

// TestToldCounts: what is told counts as an answer in its thread.
func TestToldCounts(t *testing.T) {
	x := newWorld(t)
	x.cfg.Policy.ThreadCap = 3
	x.get(posted("a", "PATCH")...)
	x.step()
	for n := range 5 {
		x.get(reply(fmt.Sprint("r", n), "a.1", "bench: hello\n"))
		x.wait(time.Minute)
	}
	var to []string
	for _, l := range x.letters() {
		to = append(to, l.Key)
	}
	if d := cmp.Diff([]string{"told:r0@x.test", "told:r1@x.test"}, to); d != "" {
		t.Errorf("letters, -want +got:\n%s", d)
	}
	x.get(reply("s", "a.1", "bench: run probe\n"))
	x.step()
	x.check("no further run", "mail a.0 v1 queued: "+trustedDKIM)
}
