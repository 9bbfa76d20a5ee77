// Package traffic makes up what goes through a mailing list in some time, for
// tests: series with versions, covers, lost and late parts, replies with and
// without diffs, commands, questions, vacations, broken mail, and copies that came
// through a second list. It also tells what must become of each series.
//
// In go a seed and lengths; out come mails in order of arrival, and versions. The
// same options give the same traffic.
//
// The service file for it has the list dev@lists.test (dev.lists.test), which
// ignores the tag RFC, trusts @trusted.test, obeys Boss, and holds strangers' series.
// The patches change files part0/file1.c to part29/file8.c, of one line "old".
package traffic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"patchbench/store"
)

// Parts and Files are how many folders the patches are for, and files in each.
const Parts, Files = 30, 8

// Boss is the one whose commands are obeyed.
const Boss = "boss@trusted.test"

// Options of a List.
type Options struct {
	Seed  uint64
	Mails int // at least
	Start time.Time
	// Length is the time in which all series begin, but the last third.
	Length time.Duration
	// Gap is the least time between two versions of a series.
	Gap time.Duration
	// Orders is how long after a version Boss answers with a command, if he does; 0:
	// he never does.
	Orders time.Duration
}

// List is what went through a list.
type List struct {
	Mails    []Mail
	Versions []Version

	o   Options
	rnd *rand.Rand
	ids int
}

// Mail is a mail and when it comes in.
type Mail struct {
	At  time.Time
	Raw []byte
}

// Version is one of a series.
type Version struct {
	Head string // id of the cover letter, or else of the first patch
	// Judged is what a Watcher makes of it when it has all of it.
	Judged store.State
	// After is the head of the whole version that it replaces, "" for none.
	After string
	// Whole is when its last mail comes in; of an incomplete one, too.
	Whole time.Time
	// Order is the id of the mail in which Boss wants it evaluated, "" for none. It comes
	// in at Ordered.
	Order   string
	Ordered time.Time
}

// New makes traffic.
func New(o Options) *List {
	l := &List{o: o, rnd: rand.New(rand.NewPCG(o.Seed, 1))}
	for n := 0; len(l.Mails) < o.Mails; n++ {
		if l.rnd.IntN(10) < 4 {
			l.series(n)
		} else {
			l.noise(n)
		}
	}
	slices.SortStableFunc(l.Mails, func(a, b Mail) int { return a.At.Compare(b.At) })
	return l
}

// Truth gives the state of each version, by its head, if nothing is evaluated.
func (l *List) Truth() map[string]store.State {
	truth := make(map[string]store.State)
	for _, v := range l.Versions {
		truth[v.Head] = v.Judged
		if v.After != "" {
			truth[v.After] = store.Superseded
		}
	}
	return truth
}

// Gap is the least time between two versions of a series.
func (l *List) Gap() time.Duration { return l.o.Gap }

func (l *List) chance(percent int) bool { return l.rnd.IntN(100) < percent }

func (l *List) within(d time.Duration) time.Duration { return time.Duration(l.rnd.Int64N(int64(d))) }

func (l *List) id() string {
	l.ids++
	return fmt.Sprintf("%08x.%d", l.rnd.Uint32(), l.ids)
}

// send has a mail come in, some through a second list as well, earlier or later. It
// gives when the first copy of it is in.
func (l *List) send(n Note, sent time.Time, late time.Duration) time.Time {
	at := sent.Add(late)
	l.Mails = append(l.Mails, Mail{at, n.Raw(sent)})
	if l.chance(20) {
		n.To = "To: dev@lists.test, other@lists.test\nList-Id: <other.lists.test>"
		n.Header += "X-Other: 1\n"
		if !strings.Contains(n.Body, "\ndiff ") {
			n.Body += "\n_____\nother mailing list\n"
		}
		l.Mails = append(l.Mails, Mail{sent.Add(late + l.within(time.Minute) - 30*time.Second), n.Raw(sent)})
	}
	return at
}

// series posts one to four versions of a series, and what people say of them.
func (l *List) series(n int) {
	author := l.rnd.IntN(40)
	from := fmt.Sprintf("Author %d <a%d@trusted.test>", author, author)
	state := store.Queued
	if author%5 == 0 {
		from, state = fmt.Sprintf("Author %d <a%d@far.test>", author, author), store.Held
	}
	topic := fmt.Sprintf("part%d: topic %d of %d", l.rnd.IntN(Parts), n, author)
	tag := ""
	if l.chance(14) {
		tag, state = "RFC ", store.Ignored
	}
	total := 1 + l.rnd.IntN(Files)
	at := l.o.Start.Add(l.within(l.o.Length * 2 / 3))
	before, whole := "", "" // heads: of the version before, of the last whole one
	for v := 1; v == 1 || v < 5 && l.chance(45); v++ {
		word := tag + "PATCH"
		if v > 1 {
			word = fmt.Sprintf("%sPATCH v%d", tag, v)
		}
		number := func(n int) string { return fmt.Sprintf("[%s %d/%d] ", word, n, total) }
		if total == 1 {
			number = func(int) string { return "[" + word + "] " }
		}
		head, re := "", ""
		if v > 1 && l.chance(50) {
			re = before // in the same thread
		}
		lost := 0
		if total > 1 && l.chance(12) {
			lost = 1 + l.rnd.IntN(total)
		}
		var last time.Time
		arrives := func(t time.Time) {
			if t.After(last) {
				last = t
			}
		}
		if total > 1 && l.chance(80) || lost == 1 {
			head = l.id()
			arrives(l.send(Note{ID: head, Re: re, From: from, Subject: number(0) + topic, Body: "It is about " + topic + ".\n\nWith words.\n"}, at, l.within(10*time.Second)))
			re = head
		}
		for p := 1; p <= total; p++ {
			id := l.id()
			if head == "" {
				head = id
			}
			if p == lost {
				continue
			}
			late := l.within(20 * time.Second)
			if l.chance(2) {
				late = l.within(15 * time.Minute)
			}
			file := fmt.Sprintf("part%d/file%d.c", n%Parts, p)
			arrives(l.send(Note{ID: id, Re: re, From: from, Subject: number(p) + fmt.Sprintf("%s: step %d", topic, p),
				Body: fmt.Sprintf("Step %d is needed.\n\nSigned-off-by: A\n---\n %s | 2 +-\n\n%s", p, file, Diff(file, fmt.Sprint(topic, v, p)))}, at.Add(time.Duration(p)*time.Second), late))
			if re == "" {
				re = head
			}
			for range l.rnd.IntN(3) {
				l.review(id, topic, at.Add(l.within(l.o.Gap*3/4)), file)
			}
		}
		made := Version{Head: head, Judged: state, Whole: last}
		switch {
		case lost == 0:
			if state != store.Ignored {
				made.After = whole
			}
			whole = head
		case state != store.Ignored:
			made.Judged = store.Incomplete
		}
		if l.o.Orders > 0 && (made.Judged == store.Held && l.chance(60) || made.Judged == store.Queued && l.chance(15)) {
			made.Order, made.Ordered = l.id(), last.Add(l.o.Orders)
			l.send(Note{ID: made.Order, Re: head, From: "Boss <" + Boss + ">", Subject: "Re: [PATCH] " + topic, Body: "bench: run\n"}, made.Ordered, 0)
		}
		l.Versions = append(l.Versions, made)
		before = head
		at = at.Add(l.o.Gap + l.within(l.o.Gap/2))
	}
}

// review answers a patch, some with a diff that is a comment.
func (l *List) review(re, topic string, at time.Time, file string) {
	body := "> " + strings.ReplaceAll(Diff(file, "x"), "\n", "\n> ") + "\nI do not like it.\n"
	if l.chance(15) {
		body = "How about this?\n\n" + Diff(file, fmt.Sprint("better", l.rnd.Uint32()))
	}
	n := Note{ID: l.id(), Re: re, From: fmt.Sprintf("R <r%d@far.test>", l.rnd.IntN(60)), Subject: "Re: [PATCH] " + topic, Body: body}
	l.send(n, at, l.within(time.Minute))
	if l.chance(50) {
		l.send(Note{ID: l.id(), Re: n.ID, From: "S <s@far.test>", Subject: "Re: Re: [PATCH] " + topic, Body: "> I do not like it.\n\nbench: run\nI do.\n"}, at.Add(l.o.Gap/48), l.within(time.Minute))
	}
}

// noise is what else comes through a list.
func (l *List) noise(num int) {
	at := l.o.Start.Add(l.within(l.o.Length))
	n := Note{ID: l.id(), From: fmt.Sprintf("N <n%d@far.test>", l.rnd.IntN(200)), Subject: fmt.Sprintf("question %d", num), Body: "How does one do that?\n"}
	switch l.rnd.IntN(8) {
	case 0:
		n.Subject, n.Body = "[GIT PULL] things", "The following changes since commit\n\n"+Diff("x", "y")
	case 1:
		n.Subject, n.Header, n.Body = "Out of office", "Auto-Submitted: auto-replied\n", "I am away.\n"
	case 2:
		n.Subject, n.ID, n.Body = "no id", "", fmt.Sprintf("%d\n", num)
	case 3:
		n.Header, n.Body = "Content-Type: multipart/mixed; boundary=x\n", "--x\n\ncut off"
	case 4:
		for range 1 + l.rnd.IntN(5) {
			l.send(Note{ID: l.id(), Re: n.ID, From: "T <t@far.test>", Subject: "Re: " + n.Subject, Body: "> How does one do that?\n\nLike this.\n"}, at.Add(l.within(l.o.Gap/10)), 0)
		}
	}
	l.send(n, at, 0)
}
